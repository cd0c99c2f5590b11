"""Rows' numbers of entries with a given sum, maximum and coefficient of variation."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from tuner.inputs.matrices.market import Indices, MatrixError
from tuner.stats import Floats

_STEPS = 50  # steps of a bisection
_COARSE_STEPS = 8
_SAMPLES = 20_000  # samples of the distribution, while it is looked for


@dataclass(frozen=True)
class Target:
    """The target properties of a matrix's rows. Every row has its diagonal entry."""

    rows: int
    nnz: int
    max_degree: int
    cv: float

    @property
    def mean(self) -> float:
        """Return the mean number of entries per row."""
        return self.nnz / self.rows

    @property
    def least_cv(self) -> float:
        """Return the variation that one row with the most entries already causes."""
        return max(self.max_degree - self.mean, 0) / self.mean / float(np.sqrt(self.rows))


def degree_sequence(target: Target, rng: np.random.Generator) -> Indices:
    """Return decreasing numbers of entries of a symmetric matrix's rows.

    They are distributed log-normally, cut off at the maximum. The sum is exact, and one row has the
    maximum. The coefficient of variation is smaller than the target if no symmetric matrix has it.

    Raises:
        MatrixError: there is no room for the entries.
    """
    if not target.rows <= target.nnz <= target.rows * target.max_degree:
        raise MatrixError(
            f"{target.nnz} entries do not fit {target.rows} rows with 1 to {target.max_degree} each"
        )
    degrees = _log_normal(target, target.cv, rng)
    if not _has_matrix(degrees):
        cv = _bisect(
            lambda cv: 0.0 if _has_matrix(_log_normal(target, cv, rng)) else 1.0,
            0.5,
            *(0.0, target.cv),
            steps=_COARSE_STEPS,
        )
        degrees = _log_normal(target, cv, rng)
    return degrees


def _log_normal(target: Target, cv: float, rng: np.random.Generator) -> Indices:
    """Return degrees with any coefficient of variation."""
    normal = _quantiles(min(target.rows - 1, _SAMPLES))
    spread = _bisect(lambda spread: _cv(target, _scaled(target, normal, spread)), cv, 0.0, 12.0)
    exact = _scaled(target, _quantiles(target.rows - 1), spread)
    degrees = np.concatenate(([target.max_degree], exact)).astype(np.int64)
    return np.sort(_with_sum(degrees, target, rng))[::-1]


def _has_matrix(degrees: Indices) -> bool:
    """Return whether a symmetric matrix can have these degrees (Erdős & Gallai).

    The first k rows have room for k entries each among themselves, and for at most k in every other
    row.
    """
    below = np.append(np.cumsum(degrees[::-1])[::-1], 0)  # the sum from each row on
    k = np.arange(1, len(degrees) + 1)
    larger = np.maximum(len(degrees) - np.searchsorted(degrees[::-1], k), k)  # rows of at least k
    room = k * k + k * (larger - k) + below[larger]
    return bool(np.all(below[0] - below[1:] <= room))


def _quantiles(count: int) -> Floats:
    """Return quantiles of the normal distribution."""
    found: Floats = ndtri((np.arange(count) + 0.5) / max(count, 1))
    return found


def _scaled(target: Target, normal: Floats, spread: float) -> Floats:
    """Return all rows but the greatest, with the spread given and the mean that is left to them."""
    mean = (target.nnz - target.max_degree) / max(target.rows - 1, 1)
    shape = spread * normal

    def cut(logarithm: float) -> Floats:
        return np.clip(np.exp(np.minimum(shape + logarithm, 50.0)), 1.0, target.max_degree)

    return cut(_bisect(lambda logarithm: float(cut(logarithm).mean()), mean, -200.0, 50.0))


def _cv(target: Target, others: Floats) -> float:
    """Return the variation of the others with the one row that has the most."""
    square = float(np.mean(np.square(others - target.mean))) * (target.rows - 1)
    square += (target.max_degree - target.mean) ** 2
    return float(np.sqrt(square / target.rows)) / target.mean


def _bisect(
    rising: Callable[[float], float], wanted: float, low: float, high: float, steps: int = _STEPS
) -> float:
    """Return where a rising function has the wanted value."""
    for _ in range(steps):
        middle = (low + high) / 2
        low, high = (middle, high) if rising(middle) < wanted else (low, middle)
    return (low + high) / 2


def _with_sum(degrees: Indices, target: Target, rng: np.random.Generator) -> Indices:
    """Add or take one here and there until the sum is right; the greatest row stays."""
    while missing := target.nnz - int(degrees.sum()):
        step = 1 if missing > 0 else -1
        changeable = 1 + np.flatnonzero(
            degrees[1:] < target.max_degree if step > 0 else degrees[1:] > 1
        )
        if len(changeable) == 0:
            break
        chosen = rng.choice(changeable, min(abs(missing), len(changeable)), replace=False)
        degrees[chosen] += step
    return degrees
