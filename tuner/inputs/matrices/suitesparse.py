"""The download of matrices of the SuiteSparse collection, by its Python client."""

import re
from pathlib import Path

from tuner.inputs.matrices.market import MatrixError


def fetch(name: str, directory: Path) -> Path:
    """Download and unpack `NAME` or `GROUP/NAME`, and return its file below the directory.

    Raises:
        MatrixError: no network, no client, or no such matrix.
    """
    if not re.fullmatch(r"([\w-]+/)?[\w-]+", name):
        raise MatrixError(f"{name}: give NAME or GROUP/NAME")
    try:
        import ssgetpy  # requests the collection's index at import
    except ImportError as error:
        raise MatrixError("ssgetpy is not installed; get it with: pip install ssgetpy") from error
    except OSError as error:
        raise MatrixError(_unreachable(name)) from error
    try:
        found = [each for each in ssgetpy.search(name) if each.name == name.split("/")[-1]]
        if len(found) != 1:
            groups = ", ".join(f"{each.group}/{each.name}" for each in found)
            hint = f"it is in several groups: {groups}" if found else "not in the collection"
            raise MatrixError(f"{name}: {hint}")
        directory.mkdir(parents=True, exist_ok=True)
        found[0].download("MM", str(directory), extract=True)
    except OSError as error:
        raise MatrixError(_unreachable(name)) from error
    unpacked = str(found[0].name)
    return directory / unpacked / f"{unpacked}.mtx"


def _unreachable(name: str) -> str:
    return (
        f"{name}: the SuiteSparse collection cannot be reached; fetch it on a machine with "
        "network access, or make a look-alike: switchpoint matrix make lookalike"
    )
