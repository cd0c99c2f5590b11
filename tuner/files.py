"""Files that users name: only regular ones are read, and every name can be printed."""

import errno
import os
import re
import stat
from collections.abc import Callable
from contextlib import suppress
from io import DEFAULT_BUFFER_SIZE, BufferedReader, FileIO
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from tuner.units import size_text

T = TypeVar("T")
CONTROL = r"\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069"
"""Characters that a terminal obeys, and those that change the direction of writing: for `[]`."""

_CONTROL = re.compile(rf"(?!\n)[{CONTROL}]")
_MOST_LETTERS = 255


def open_file(path: Path, buffer_bytes: int = DEFAULT_BUFFER_SIZE) -> BufferedReader:
    """Open a regular file for reading. Raise OSError for anything else, which may never end.

    A FIFO waits for its writer, a terminal for its user, and /dev/zero has no end.
    """
    return BufferedReader(FileIO(path, opener=_open_regular), buffer_bytes)


def require_regular(path: str | Path) -> None:
    """Raise OSError if the path is not a regular file; nothing is opened."""
    mode = Path(path).stat().st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):  # opening a directory has its own error
        raise OSError(
            errno.EINVAL, "not a regular file; save its contents to a file first", str(path)
        )


def _open_regular(path: str | Path, flags: int) -> int:
    require_regular(path)
    return os.open(path, flags | os.O_NONBLOCK)  # no wait if it was replaced


def open_lock(path: Path) -> FileIO:
    """Open a regular file to lock it, and make it if need be. Raise OSError for anything else."""
    file = FileIO(path, "r+", opener=_open_lock)
    if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        return file
    file.close()
    raise OSError(errno.EINVAL, "not a regular file; delete it", str(path))


def _open_lock(path: str | Path, flags: int) -> int:
    return os.open(path, flags | os.O_CREAT | os.O_NONBLOCK, 0o666)  # a FIFO waits for its readers


def read_bytes(path: Path, most_bytes: int = 1 << 26) -> bytes:
    """Return the content of a regular file. Raise OSError as `open_file` does, or if it is larger.

    What a file holds takes many times its size once it is decoded.
    """
    with open_file(path) as file:
        content = file.read(most_bytes + 1)
    if len(content) > most_bytes:
        raise OSError(errno.EFBIG, f"larger than {size_text(most_bytes)}", str(path))
    return content


def read_json(path: Path, kind: type[T], dec_hook: Callable[[type, Any], Any] | None = None) -> T:
    """Return the content of a JSON file, checked and converted to `kind` by msgspec.

    Raises:
        ValueError: it is not such a file; the message says in what.
        OSError: it cannot be read.
    """
    try:
        return msgspec.json.decode(read_bytes(path), type=kind, dec_hook=dec_hook)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(str(error)) from error


def files_below(directory: Path, suffix: str, links: bool = False) -> list[Path]:
    """Return the files below a directory whose names end in `suffix`, sorted.

    `links` walks links to directories, too. What cannot be listed, or is deleted meanwhile, is left
    out. Directories may be deeper than functions can call each other.
    """
    found: list[Path] = []
    walked: set[tuple[int, int]] = set()
    waiting = [os.fspath(directory)]
    while waiting:
        with suppress(OSError), os.scandir(place := waiting.pop()) as listed:
            its = os.stat(place)  # noqa: PTH116 - a Path of each depth takes long
            if (its.st_dev, its.st_ino) in walked:  # links may make a circle
                continue
            walked.add((its.st_dev, its.st_ino))
            inside = []
            # Where a directory lies beside a link to it, its own name is found.
            for entry in sorted(listed, key=lambda entry: (entry.is_symlink(), entry.name)):
                if _is_directory(entry):
                    inside += [entry.path] if links or not entry.is_symlink() else []
                elif entry.name.endswith(suffix):
                    found.append(Path(entry))
            waiting += reversed(inside)
    return sorted(found)


def _is_directory(entry: os.DirEntry[str]) -> bool:
    """Return whether an entry is a directory, or a link to one that can be followed."""
    try:
        return entry.is_dir()
    except OSError:
        return False


def printable(text: str) -> str:
    r"""Return a text whose control characters, but for line ends, are written as `\x1b`.

    Texts of errors quote files, and a terminal would obey these characters, and those that change
    the direction of writing.
    """
    return _CONTROL.sub(lambda found: ascii(found[0])[1:-1], text)


def one_line(text: str, letters: int = _MOST_LETTERS) -> str:
    """Return a text of a file as a line that can be printed, cut where it is longer than names."""
    line = printable(re.sub(r"\s", " ", text))
    return line if len(line) <= letters else f"{line[: letters - 1]}…"


def shown(path: str | Path) -> str:
    r"""Return a name as it can be printed and stored: bytes that are not UTF-8 as `\xff`."""
    return os.fsencode(path).decode(errors="backslashreplace")
