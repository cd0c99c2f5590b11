"""The writer of Matrix Market files, in blocks, packed by gzip when the name ends in .gz."""

import gzip
import io
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO, cast

import pandas as pd

from tuner.atomic import replacing
from tuner.inputs.matrices.market import BANNER, Indices
from tuner.stats import Floats

# Rows and columns from 0 and, in a real matrix, values.
Entries = tuple[Indices, Indices] | tuple[Indices, Indices, Floats]

_ENTRIES = 1 << 18  # entries formatted at a time
_GZIP_LEVEL = 3  # digits pack well, and higher levels take many times as long


def write(
    path: Path,
    rows: int,
    entries: int,
    blocks: Iterable[Entries],
    *,
    field: str = "pattern",
    symmetry: str = "general",
    comment: str = "",
) -> None:
    """Write a square matrix, first to another name: a file of this name is always whole.

    Args:
        path: The file; its directory is made.
        rows: Number of rows and of columns.
        entries: Number of entries in all blocks; a symmetric matrix has only the lower triangle.
        blocks: The entries, in any order.
        field: "pattern", or "real" when blocks have values.
        symmetry: "general" or "symmetric".
        comment: One line of comment.

    Raises:
        OSError: it cannot be written; nothing is left of it.
    """
    head = f"{BANNER} matrix coordinate {field} {symmetry}\n% {comment}\n{rows} {rows} {entries}\n"
    with replacing(path) as aside, aside.open("wb") as plain, _packed_as_named(path, plain) as file:
        file.write(head.encode())
        for block in blocks:
            _write_block(file, block)


def _packed_as_named(path: Path, plain: BinaryIO) -> BinaryIO:
    if path.suffix != ".gz":
        return plain
    return cast(BinaryIO, gzip.GzipFile("", "wb", _GZIP_LEVEL, plain, mtime=0))


def _write_block(file: BinaryIO, block: Entries) -> None:
    for start in range(0, len(block[0]), _ENTRIES):
        rows, columns, *values = (part[start : start + _ENTRIES] for part in block)
        frame = pd.DataFrame(dict(enumerate((rows + 1, columns + 1, *values))))
        text = io.StringIO()
        frame.to_csv(text, sep=" ", header=False, index=False)
        file.write(text.getvalue().encode())
