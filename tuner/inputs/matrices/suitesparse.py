"""The download of matrices of the SuiteSparse collection, by its Python client."""

import re
import shutil
import sqlite3
import zlib
from gzip import BadGzipFile
from pathlib import Path
from tarfile import TarError
from tempfile import TemporaryDirectory

from tuner import atomic
from tuner.inputs.matrices.market import MatrixError

_MOST_MATRICES = 1_000_000  # the client's own limit is ten, of all whose names contain one

_UNUSABLE = (
    LookupError,
    ValueError,
    StopIteration,
    sqlite3.Error,
    EOFError,
    BadGzipFile,
    zlib.error,
    TarError,
)
"""Errors of the client where the index, which it keeps in a home, is a page or is locked, and where
what it unpacks is broken."""


def fetch(name: str, directory: Path) -> Path:
    """Download and unpack `NAME` or `GROUP/NAME`, and return its file below the directory.

    The file is GROUP/NAME.mtx; one that is there is not fetched again.

    Raises:
        MatrixError: no network, no client, no such matrix, or an answer that cannot be used.
        OSError: a file here cannot be written.
    """
    if not re.fullmatch(r"([\w-]+/)?[\w-]+", name):
        raise MatrixError(f"{name}: give NAME or GROUP/NAME")
    try:
        import ssgetpy  # requests the collection's index at import

        similar = ssgetpy.search(name, limit=_MOST_MATRICES)
        found = [each for each in similar if each.name == name.split("/")[-1]]
        if len(found) != 1:
            groups = ", ".join(f"{each.group}/{each.name}" for each in found)
            hint = f"it is in several groups: {groups}" if found else "not in the collection"
            raise MatrixError(f"{name}: {hint}")
        path = directory / str(found[0].group) / f"{found[0].name}.mtx"
        if not path.is_file():
            path.parent.mkdir(parents=True, exist_ok=True)
            # The client takes any directory of a matrix's name for what it has unpacked.
            with TemporaryDirectory(dir=path.parent) as scratch:
                found[0].download("MM", scratch, extract=True)
                unpacked = Path(scratch) / path.stem / path.name
                if not unpacked.is_file():
                    raise MatrixError(f"{name}: what the collection sent does not hold it")
                with atomic.replacing(path) as aside:
                    shutil.copyfile(unpacked, aside)
    except ImportError as error:
        raise MatrixError("ssgetpy is not installed; get it with: pip install ssgetpy") from error
    except _UNUSABLE as error:
        raise MatrixError(_broken(name, error)) from error
    except OSError as error:
        if error.errno is not None:  # of a file here; those of the client's requests have none
            raise
        raise MatrixError(_unreachable(name)) from error
    return path


def _broken(name: str, error: Exception) -> str:
    return f"{name}: the answer of the collection, or what is kept of it, is broken: {error!r}"


def _unreachable(name: str) -> str:
    return (
        f"{name}: the SuiteSparse collection cannot be reached; fetch it on a machine with "
        "network access, or make a look-alike: switchpoint matrix make lookalike"
    )
