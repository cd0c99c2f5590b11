"""Row partitions: by rule, or from a file of one part number (from 0) a row."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tuner.matrices.market import Indices, MatrixError, Pattern
from tuner.matrices.ownership import RULES, Ownership


def ownership(matrix: Path, pattern: Pattern, by: str, procs: int) -> Ownership:
    """Deals the rows of the pattern in the file `matrix` to processes.

    Args:
        matrix: Where the pattern comes from.
        pattern: What to deal.
        by: One of RULES, or the path of a partition file.
        procs: To how many processes.

    Raises:
        MatrixError: the matrix is not square, or the partition cannot be read or does not fit it.
    """
    rows, columns = pattern.shape
    if rows != columns:
        raise MatrixError(f"{matrix}: {rows} x {columns}; only a square matrix can be dealt")
    if by in RULES:
        return RULES[by](rows, procs)
    return Ownership(procs, read_parts(Path(by), rows, procs))


def read_parts(path: Path, rows: int, procs: int) -> Indices:
    """The part of each row.

    Raises:
        MatrixError: the file cannot be read, or does not hold a part from 0 to procs - 1 a row.
    """
    try:
        parts = np.array(path.read_text(encoding="ascii").split(), dtype=np.int64)
    except OSError as error:
        raise MatrixError(f"{path}: the partition cannot be read: {error.strerror}") from error
    except (ValueError, OverflowError) as error:
        raise MatrixError(f"{path}: not a partition, which has a part number a line") from error
    if len(parts) != rows:
        raise MatrixError(f"{path}: {len(parts)} parts for the {rows} rows of the matrix")
    if rows and not 0 <= parts.min() <= parts.max() < procs:
        raise MatrixError(f"{path}: a part is not from 0 to {procs - 1}")
    return parts
