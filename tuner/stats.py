"""Medians, intervals and tests of differences (docs/explanation/statistics.md). No input or output.

"Segments" are the samples of many cases in one array, one after the other, with their lengths.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

LEVEL = 0.95
_UPPER = (1 + LEVEL) / 2  # the probability below the upper end of an interval
BOOTSTRAP_LAUNCHES = 10
"""Launches from which on intervals are bootstrapped; with fewer they are Student's t."""

MIN_SAMPLES = 6
"""Samples that bound their median at LEVEL."""

_RESAMPLES = 1999
_STUDENT = (12.7062047, 4.3026527, 3.1824463, 2.7764451, 2.5705818, 2.4469119, 2.3646243, 2.3060041)
"""Quantiles of Student's t at _UPPER, by degrees of freedom from 1."""

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Bools = NDArray[np.bool_]


def sort_segments(values: NDArray[np.float32], lengths: Integers) -> NDArray[np.float32]:
    """Sort each segment of positive values.

    One sort does for all: the bits of positive floats are ordered as the floats are, so the
    segment's number above them makes a 64-bit key.
    """
    segment = np.repeat(np.arange(len(lengths), dtype=np.uint64), lengths)
    keys = (segment << np.uint64(32)) | np.ascontiguousarray(values).view(np.uint32)
    keys.sort()
    return keys.astype(np.uint32).view(np.float32)


def segment_quantiles(
    ordered: NDArray[np.float32], lengths: Integers, quantiles: float | Sequence[float]
) -> Floats:
    """Return a quantile of every sorted segment, interpolated between neighbours.

    Of several quantiles each has a row. No segment may be empty.
    """
    begin = np.cumsum(lengths) - lengths
    position = np.multiply.outer(quantiles, lengths - 1)
    lower = np.floor(position).astype(np.int64)
    upper = np.ceil(position).astype(np.int64)
    low, high = ordered[begin + lower].astype(float), ordered[begin + upper].astype(float)
    between: Floats = low + (high - low) * (position - lower)
    return between


def median_interval_ranks(n: Integers) -> tuple[Integers, Integers]:
    """Return the order statistics (from 0) that bound the median of n independent samples.

    They are exact for every continuous distribution. Too few samples for the level give the
    extremes.
    """
    values, inverse = np.unique(n, return_inverse=True)
    ranks = np.array([_lower_rank(int(value)) for value in values], dtype=np.int64)
    lower = ranks[inverse]
    return lower, n - 1 - lower


@lru_cache(maxsize=4096)
def _lower_rank(n: int) -> int:
    # x[k] is above the median exactly when at most k of n samples lie below it.
    log_factorials = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, n + 1)))])
    below = np.arange(n // 2 + 1)
    log_ways = log_factorials[n] - log_factorials[below] - log_factorials[n - below]
    probabilities = np.cumsum(np.exp(log_ways - n * np.log(2)))
    return max(int(np.searchsorted(probabilities, (1 - LEVEL) / 2, side="right")) - 1, 0)


@dataclass(frozen=True, slots=True)
class Summary:
    """A summary of many segments, one value per segment."""

    median: Floats
    low: Floats
    high: Floats
    p10: Floats
    p90: Floats
    above_2_medians: Floats  # share of the samples


def summarise(values: NDArray[np.float32], lengths: Integers) -> Summary:
    """Summarise segments; `low` and `high` are the order-statistic interval of the median."""
    ordered = sort_segments(values, lengths)
    begin = np.cumsum(lengths) - lengths
    p10, median, p90 = segment_quantiles(ordered, lengths, (0.1, 0.5, 0.9))
    lower, upper = median_interval_ranks(lengths)
    above = ordered > np.repeat(2 * median, lengths)
    return Summary(
        median=median,
        low=ordered[begin + lower].astype(float),
        high=ordered[begin + upper].astype(float),
        p10=p10,
        p90=p90,
        above_2_medians=np.add.reduceat(above, begin, dtype=np.int64) / lengths,
    )


def mean_interval(values: Floats) -> tuple[Floats, Floats]:
    """Return the interval of the mean over the last axis: launches, at least two.

    It is Student's t up to nine launches; from ten on it is the bootstrap, which does not need them
    to be normal. Both are deterministic.
    """
    launches = values.shape[-1]
    if launches < BOOTSTRAP_LAUNCHES:
        mean = values.mean(axis=-1)
        error = values.std(axis=-1, ddof=1) / np.sqrt(launches)
        reach = student(launches - 1, _UPPER) * error
        return mean - reach, mean + reach
    rows = values.reshape(-1, launches)
    ends = np.array([_bootstrap(row) for row in rows]).reshape(*values.shape[:-1], 2)
    return ends[..., 0], ends[..., 1]


def of_launches(medians: Floats) -> tuple[Floats, Floats, Floats]:
    """Return the median of positive medians over the last axis: launches, and its interval.

    The interval contains it.
    """
    middle = np.median(medians, axis=-1)
    if medians.shape[-1] == 1:
        return middle, middle, middle
    low, high = np.exp(mean_interval(np.log(medians)))
    return middle, np.minimum(low, middle), np.maximum(high, middle)


def _bootstrap(values: Floats) -> tuple[float, float]:
    """Return the percentile interval of a mean, widened for small numbers (Hesterberg 2015).

    Unlike the studentised bootstrap, it never leaves the range of the values.
    """
    n = len(values)
    tail = bootstrap_tail(n)
    low, high = np.quantile(_resamples(n) @ values, [tail, 1 - tail])
    return float(low), float(high)


def bootstrap_tail(n: int) -> float:
    """Return the tail that a percentile interval of n values, at least two, leaves at each end."""
    reach = np.sqrt(n / (n - 1)) * student(n - 1, _UPPER)
    return NormalDist().cdf(-float(reach))


@lru_cache(maxsize=64)
def _resamples(launches: int) -> Floats:
    """Return resampling weights: each row holds the share of every launch in a resample."""
    random = np.random.default_rng(launches)
    equal = np.full(launches, 1 / launches)
    return random.multinomial(launches, equal, size=_RESAMPLES) / launches


@lru_cache(maxsize=1024)
def student(freedom: float, probability: float) -> float:
    """Return the quantile of Student's t with these degrees of freedom, positive or infinite."""
    if probability == _UPPER and freedom in range(1, len(_STUDENT) + 1):
        return _STUDENT[int(freedom) - 1]
    from scipy import special  # here, because ingest is faster to start without it

    return float(special.stdtrit(freedom, probability))


@dataclass(frozen=True, slots=True)
class Difference:
    """The difference of two means, its interval, and its two-sided p-value."""

    difference: Floats
    low: Floats
    high: Floats
    p: Floats


def welch(
    values: Floats,
    others: Floats,
    weights: Floats | float = 1.0,
    others_weights: Floats | float = 1.0,
) -> Difference:
    """Return the mean of `others` minus that of `values`, by Welch's t, along the last axis.

    There are at least two values on each side; the other axes are alike. The weights are relative
    precisions.
    """
    from scipy import special  # here, because ingest is faster to start without it

    means, terms = zip(
        *(_weighted(*each) for each in ((values, weights), (others, others_weights))), strict=True
    )
    difference = means[1] - means[0]
    error = np.sqrt(terms[0] + terms[1])
    repeated = error == 0  # as in simulations, to the last digit
    squares = [
        term**2 / (each.shape[-1] - 1) for term, each in zip(terms, (values, others), strict=True)
    ]
    with np.errstate(divide="ignore", invalid="ignore"):
        freedom = error**4 / (squares[0] + squares[1])
        reach = np.where(repeated, 0, special.stdtrit(freedom, _UPPER) * error)
        p = 2 * special.stdtr(freedom, -np.abs(difference) / error)
    p = np.where(repeated, difference == 0, p)
    return Difference(difference, difference - reach, difference + reach, p)


def _weighted(values: Floats, weights: Floats | float) -> tuple[Floats, Floats]:
    """Return weighted means along the last axis, and the squares of their standard errors."""
    weights = np.broadcast_to(weights, values.shape)
    total = weights.sum(axis=-1)
    mean = (weights * values).sum(axis=-1) / total
    squares = (weights * (values - mean[..., None]) ** 2).sum(axis=-1)
    return mean, squares / (values.shape[-1] - 1) / total


def discoveries(p: Floats, share: float) -> Bools:
    """Return which of many tests to believe, with a bound on the expected share of false ones.

    This is the method of Benjamini and Hochberg (1995); it also holds for tests that depend on each
    other positively.
    """
    order = np.argsort(p, kind="stable")
    bounds = share * np.arange(1, len(p) + 1) / max(len(p), 1)
    (below,) = np.nonzero(p[order] <= bounds)
    discovered = np.zeros(len(p), dtype=np.bool_)
    discovered[order[: below[-1] + 1 if len(below) else 0]] = True
    return discovered
