"""Files that are written whole: readers see the old one or the new one, never a part."""

import errno
import fcntl
import os
import secrets
import shutil
import signal
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from glob import escape
from pathlib import Path

from tuner.signals import exits_on

_LEFT_S = 86400.0
"""Where files cannot be locked, one that was not written for so long has no writer any more."""

# Linux's numbers: a Python that was built on an old system has no names for them.
_LOCK, _LOCK_AND_WAIT = getattr(fcntl, "F_OFD_SETLK", 37), getattr(fcntl, "F_OFD_SETLKW", 38)

_MARK = struct.pack("hhqqi", fcntl.F_WRLCK, os.SEEK_SET, 1 << 40, 1, 0)
"""The lock of a byte beyond all content: on SMB, what is locked cannot be written elsewhere."""


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a file to write beside `path`, which replaces `path` if nothing goes wrong.

    The directory is made. A link stays, and its target is replaced; an existing path that is no
    file, such as a pipe, is written directly, and a file that is the standard output is printed to.
    Any other is on the disk afterwards, and what killed processes left beside it is deleted; who is
    terminated leaves nothing. Raise OSError with the name of `path`.
    """
    try:
        if path.exists() and not path.is_file():
            yield path
            return
        target = Path(os.path.realpath(path))
        target.parent.mkdir(parents=True, exist_ok=True)
        _delete_left(target)
        with exits_on(signal.SIGTERM, signal.SIGHUP):
            aside, lock = _make(target)
            try:
                yield aside
                if is_stdout(target):
                    _print(aside)
                    return
                _sync(aside)
                aside.replace(target)
                _sync(target.parent)
            finally:
                aside.unlink(missing_ok=True)
                os.close(lock)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error


def write(path: Path, content: str | bytes) -> None:
    """Write a whole file, text as UTF-8. Raise OSError with the name of `path`."""
    with replacing(path) as aside:
        aside.write_bytes(content.encode() if isinstance(content, str) else content)


def is_stdout(path: Path) -> bool:
    """Return whether a path is what this process prints to, as /dev/stdout is."""
    with suppress(OSError):
        return os.path.samestat(path.stat(), os.fstat(1))
    return False


def _print(path: Path) -> None:
    """Write a file where this process prints: opened anew, it would lose what it has."""
    with path.open("rb") as file, os.fdopen(1, "wb", closefd=False) as output:
        shutil.copyfileobj(file, output)


def _stem(target: Path) -> str:
    """Return the first part of the names beside a file; some locks hold on one host only."""
    name = os.fsdecode(os.fsencode(target.name)[:100])  # as a name has 255 bytes at most
    return f".{name}.{os.uname().nodename}"


def _make(target: Path) -> tuple[Path, int]:
    """Make a file beside `target`; return its path, and the descriptor that locks it.

    Others know by the lock that it is written: a process id has a meaning in one container only.
    """
    while True:
        path = target.with_name(f"{_stem(target)}.{secrets.token_hex(8)}.partial")
        number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        try:
            with suppress(OSError):  # file systems without locks
                fcntl.fcntl(number, _LOCK_AND_WAIT, _MARK)
            if path.exists():
                return path, number
        except BaseException:
            path.unlink(missing_ok=True)
            os.close(number)
            raise
        os.close(number)  # before it was locked, it was taken for one that was left


def _delete_left(target: Path) -> None:
    for path in target.parent.glob(f"{escape(_stem(target))}.*.partial"):
        with suppress(OSError):  # gone meanwhile, or another user's
            number = os.open(path, os.O_WRONLY | os.O_NONBLOCK | os.O_NOFOLLOW)  # no pipe, no link
            try:
                if _is_left(number):
                    path.unlink()
            finally:
                os.close(number)


def _is_left(number: int) -> bool:
    """Return whether nobody writes an open file; it is locked then, where that is possible."""
    try:
        fcntl.fcntl(number, _LOCK, _MARK)
    except (BlockingIOError, PermissionError):
        return False
    except OSError:
        return time.time() - os.fstat(number).st_mtime > _LEFT_S
    return True


def _sync(path: Path) -> None:
    """Wait until a file, or the names in a directory, would outlast a failure of the machine."""
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # file systems that cannot
            raise
    finally:
        os.close(number)
