"""The spread of a matrix's entries over its rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tuner.inputs.matrices.market import Indices, Pattern


@dataclass(frozen=True)
class Degrees:
    """`max_degree` and `mean_degree` are entries per row, `cv` their coefficient of variation."""

    rows: int
    columns: int
    nnz: int
    max_degree: int
    mean_degree: float
    cv: float

    @staticmethod
    def of(counts: Indices, columns: int) -> Degrees:
        """Return the degrees from the number of entries of each row."""
        mean = float(counts.mean())
        cv = float(counts.std()) / mean if mean else 0.0
        return Degrees(len(counts), columns, int(counts.sum()), int(counts.max()), mean, cv)


def degrees(pattern: Pattern) -> Degrees:
    """Return the degrees of a matrix."""
    rows, columns = pattern.shape
    return Degrees.of(np.bincount(pattern.rows, minlength=rows), columns)
