"""Files that are written whole: readers see the old one or the new one, never a part."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from glob import escape
from pathlib import Path
from threading import get_native_id


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a file to write beside `path`, which replaces `path` if nothing goes wrong.

    The directory is made. A link stays, and its target is replaced; an existing path that is no
    file, such as /dev/stdout, is written directly. The file is on the disk afterwards, and what
    killed processes left beside it is deleted. Raise OSError with the name of `path`.
    """
    try:
        if path.exists() and not path.is_file():
            yield path
            return
        target = Path(os.path.realpath(path))
        target.parent.mkdir(parents=True, exist_ok=True)
        _delete_left(target)
        aside = target.with_name(f"{_stem(target)}.{get_native_id()}.{os.getpid()}.partial")
        try:
            yield aside
            _sync(aside)
            aside.replace(target)
            _sync(target.parent)
        finally:
            aside.unlink(missing_ok=True)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error


def write(path: Path, content: str | bytes) -> None:
    """Write a whole file, text as UTF-8. Raise OSError with the name of `path`."""
    with replacing(path) as aside:
        aside.write_bytes(content.encode() if isinstance(content, str) else content)


def _stem(target: Path) -> str:
    """Return the first part of the names beside a file; a pid has a meaning on one host only."""
    name = os.fsdecode(os.fsencode(target.name)[:100])  # as a name has 255 bytes at most
    return f".{name}.{os.uname().nodename}"


def _delete_left(target: Path) -> None:
    for path in target.parent.glob(f"{escape(_stem(target))}.*.partial"):
        pid = path.name.split(".")[-2]
        if pid.isdecimal() and not _runs(int(pid)):
            path.unlink(missing_ok=True)


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
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
