"""Files that are written whole: readers see the old one or the new one, never a part."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Yield a file to write beside `path`, which replaces `path` if nothing goes wrong.

    The directory is made. A link stays, and its target is replaced; an existing path that is no
    file, such as /dev/stdout, is written directly. Raises OSError with the name of `path`.
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
    """Write a whole file, text as UTF-8. Raise OSError with the name of `path`."""
    with replacing(path) as aside:
        aside.write_bytes(content.encode() if isinstance(content, str) else content)
