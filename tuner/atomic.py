"""Files that are written whole: readers see the old one or the new one, never a half."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A file to write aside, which takes the place of `path` if nothing goes wrong.

    The directory is made. A link stays, and what it leads to is replaced; what is there and no
    file, as /dev/stdout, is written as it is. Raises OSError with the name of `path`.
    """
    try:
        if path.exists() and not path.is_file():
            yield path
            return
        target = Path(os.path.realpath(path))
        target.parent.mkdir(parents=True, exist_ok=True)
        aside = target.with_name(f".{target.name}.{os.getpid()}.partial")
        try:
            yield aside
            aside.replace(target)
        finally:
            aside.unlink(missing_ok=True)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error


def write(path: Path, content: str | bytes) -> None:
    """Writes a whole file, text as UTF-8. Raises OSError with the name of `path`."""
    with replacing(path) as aside:
        aside.write_bytes(content.encode() if isinstance(content, str) else content)
