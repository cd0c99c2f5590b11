"""Where results lie: SWITCHPOINT_RESULTS, else the checkout's results/, else the user's state."""

from __future__ import annotations

import errno
import fcntl
import os
import tempfile
from functools import cache
from pathlib import Path

from tuner.home import own_directory


def results_directory() -> Path:
    """The directory of raw files and database; it need not exist yet."""
    named = os.environ.get("SWITCHPOINT_RESULTS")
    if named:
        return Path(named).expanduser()
    checkout = Path(__file__).resolve().parent.parent / "results"
    if (checkout / "README.md").is_file() and os.access(checkout, os.W_OK):
        return checkout
    return own_directory("XDG_STATE_HOME", ".local/state") / "results"


def database_path() -> Path:
    """The store's file; it can be rebuilt from the raw files beside it."""
    return results_directory() / "switchpoint.db"


@cache
def has_locks(directory: Path) -> bool:
    """Whether files there can be locked; network file systems may not know how.

    Where nothing can be written they are taken to be.
    """
    try:
        with tempfile.TemporaryFile(dir=directory) as file:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        return error.errno not in (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)
    return True
