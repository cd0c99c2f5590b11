"""Variances pooled over groups of values, so that few values of each suffice.

No input or output.
"""

import math
from typing import NamedTuple

import numpy as np

from tuner.stats import Bools, Floats, Integers

SMALLEST = 1e-3
"""The least standard deviation that is resolved, of logarithms."""


class Prior(NamedTuple):
    """The variance to expect of a group, by all of them: its scale, and degrees of freedom."""

    variance: float
    freedom: float


def between(values: Floats, variances: Floats, groups: Integers, weights: Floats) -> float:
    """Return the variance that values of all groups share, beside their known `variances`.

    It is the value with which the weighted squares about the groups' means have their expectation
    (Paule and Mandel 1982), summed over groups, and SMALLEST squared at least.

    groups: numbers, one for each value. weights: factors of the precision, 1 for most; values with
    0 do not count.
    """
    from scipy import optimize  # here, because commands are faster to start without it

    counted = weights > 0
    if not counted.any():
        return SMALLEST**2
    values, variances, weights = values[counted], variances[counted], weights[counted]
    _, groups = np.unique(groups[counted], return_inverse=True)
    expected = len(values) - int(groups.max() + 1)

    def excess(variance: float) -> float:
        _, squares, _ = weighted(values, weights / (variances + variance), groups)
        return float(squares.sum()) - expected

    least = SMALLEST**2
    if expected == 0 or excess(least) <= 0:
        return least
    most = least + float(np.ptp(values)) ** 2 * len(values)
    return float(optimize.brentq(excess, least, most, rtol=1e-3))


def weighted(values: Floats, weights: Floats, groups: Integers) -> tuple[Floats, Floats, Floats]:
    """Return each group's weighted mean, its weighted sum of squares about that, and its weight."""
    weight = sums(weights, groups)
    mean = sums(weights * values, groups) / weight
    return mean, sums(weights * (values - mean[groups]) ** 2, groups), weight


def sums(values: Floats | Integers | Bools, groups: Integers, count: int = 0) -> Floats:
    """Return the sum of each group, of `count` groups at least."""
    found: Floats = np.bincount(groups, values, count).astype(float)
    return found


def prior_of(squares: Floats, freedoms: Floats, clusters: Integers) -> Prior:
    """Return the prior of residual variances from sums of squares and their degrees of freedom.

    The mean and variance of their logarithms are matched (Smyth 2004). Those of one cluster share
    launches, so only pairs in different clusters count where there are several: others would make
    variances look more alike than they are. `freedom` is infinite where all are alike, and 0 where
    there is no variance.
    """
    from scipy import special

    some = freedoms > 0
    if not some.any():
        return Prior(1.0, 0.0)
    freedoms, variances = freedoms[some], squares[some] / freedoms[some]
    positive = variances[variances > 0]
    floor = SMALLEST * (float(np.median(positive)) if len(positive) else 1.0)
    logs = np.log(np.maximum(variances, floor))
    logs += np.log(freedoms / 2) - special.digamma(freedoms / 2)
    _, cluster = np.unique(clusters[some], return_inverse=True)
    sizes = np.bincount(cluster)
    means = sums(logs, cluster) / sizes
    middle, count = float(means.mean()), len(sizes)
    if count > 1:
        own = float((sums(logs**2, cluster) / sizes).mean())
        spread = own - float(means.sum() ** 2 - (means**2).sum()) / (count * (count - 1))
    else:
        spread = float(np.var(logs, ddof=1)) if len(logs) > 1 else math.inf
    spread -= float((sums(special.polygamma(1, freedoms / 2), cluster) / sizes).mean())
    if spread <= 0:
        return Prior(math.exp(middle), math.inf)
    freedom = 2 * _trigamma_inverse(spread)
    scale = middle + float(special.digamma(freedom / 2)) - math.log(freedom / 2)
    return Prior(math.exp(scale), freedom)


def moderated(squares: Floats, freedoms: Floats, prior: Prior) -> Floats:
    """Return variances from sums of squares, shrunk towards the prior."""
    if math.isinf(prior.freedom):
        return np.full(len(squares), prior.variance)
    total = freedoms + prior.freedom
    shrunk = (squares + prior.freedom * prior.variance) / np.where(total > 0, total, 1.0)
    return np.where(total > 0, shrunk, 1.0)


def _trigamma_inverse(value: float) -> float:
    """Return the positive number whose trigamma function is `value`."""
    from scipy import special

    if value > 1e7 or not math.isfinite(value):
        return 1 / math.sqrt(min(value, 1e14))
    if value < 1e-6:
        return 1 / value
    guess = 0.5 + 1 / value
    for _ in range(50):  # Newton's method, as in Smyth (2004); it converges from below
        trigamma = float(special.polygamma(1, guess))
        step = trigamma * (1 - trigamma / value) / float(special.polygamma(2, guess))
        guess += step
        if abs(step) < 1e-8 * guess:
            break
    return guess
