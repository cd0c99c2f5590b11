"""Directories of the results and of the user's own files, and names of new campaigns."""

import errno
import fcntl
import hashlib
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import cache
from pathlib import Path

from tuner.files import open_lock

CHECKOUT = Path(__file__).resolve().parents[1]
"""The directory of all parts: the checkout, or the package that a wheel installs."""


def is_checkout() -> bool:
    """Return whether the parts lie in a checkout, where results and builds have their place."""
    return (CHECKOUT / "results" / "README.md").is_file()


def own_directory(variable: str, otherwise: str) -> Path:
    """Return the user's directory: named by the variable, else in the home, else for this boot."""
    try:
        return Path(os.environ.get(variable) or f"~/{otherwise}").expanduser() / "switchpoint"
    except RuntimeError:  # no HOME, and a user without a name
        return Path(tempfile.gettempdir()) / f"switchpoint-{os.getuid()}" / otherwise


def results_directory() -> Path:
    """Return the directory of raw files and database; it need not exist yet."""
    named = os.environ.get("SWITCHPOINT_RESULTS")
    if named:
        try:
            return Path(named).expanduser()
        except RuntimeError:  # ~ of an unknown user is an ordinary name, as in shells
            return Path(named)
    if is_checkout() and os.access(CHECKOUT / "results", os.W_OK):
        return CHECKOUT / "results"
    return own_directory("XDG_STATE_HOME", ".local/state") / "results"


def database_path() -> Path:
    """Return the path of the store; it can be rebuilt from the raw files beside it."""
    return results_directory() / "switchpoint.db"


def results_id() -> str:
    """Return what distinguishes campaigns of one name in several results directories."""
    return hashlib.sha256(os.fsencode(results_directory().absolute())).hexdigest()[:8]


def campaign_name() -> str:
    """Return the name of a campaign that begins now, without reserving it."""
    return f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}"


def new_campaign(prefix: str = "") -> str:
    """Return a campaign name made of the time, which no other call returns for these results.

    An empty file campaigns/NAME reserves it. Raise OSError when that cannot be written.
    """
    while True:
        name = f"{prefix}{campaign_name()}"
        if not any(results_directory().glob(f"*/{name}")):  # other programs name campaigns too
            with suppress(FileExistsError):
                _reservation(name).touch(exist_ok=False)
                return name
        time.sleep(0.1)


def _reservation(campaign: str) -> Path:
    path = results_directory() / "campaigns" / campaign
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


@contextmanager
def only_here(campaign: str) -> Iterator[bool]:
    """Lock a campaign against other processes, and yield whether none has it.

    It counts as free where files cannot be locked. Raise OSError when its file cannot be written.
    """
    with open_lock(_reservation(campaign)) as file:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            yield error.errno not in (errno.EAGAIN, errno.EACCES)
        else:
            yield True


@cache
def has_locks(path: Path) -> bool:
    """Return whether a file can be locked; some network file systems have no locks.

    Another in its directory is tried, if that can be written: closing a file drops all locks that
    the process has on it. The answer is yes if nothing can be tried.
    """
    try:
        aside = os.access(path.parent, os.W_OK)
        with tempfile.TemporaryFile(dir=path.parent) if aside else path.open("rb") as file:
            fcntl.lockf(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno not in (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)
    return True
