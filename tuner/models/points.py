"""Medians of probes, one for each measured point, and replicates of them for intervals."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tuner import stats
from tuner.domain.records import LONGEST_S, SHORTEST_S
from tuner.models.parameter import ModelError
from tuner.stats import Floats

RESAMPLES = 199

_DRAWS = 999

REJECTION = 3.5
"""Samples further from their point's median, in robust deviations of the logarithm, are rejected.

They are from a disturbed machine: left in, a share e moves the median to the quantile 1/2 + e/2.
"""

PointKey = tuple[float, ...]
"""The key of a point, with the size first."""


@dataclass(frozen=True)
class Points:
    """Times at `keys`, a row for each point, by size; `replicates` has rows of other such times.

    Replicates are the launches' medians up to nine launches, above that resamples of the launches,
    and with one launch resamples of its samples (docs/explanation/models.md).
    """

    keys: Floats
    time_s: Floats
    replicates: Floats
    launches: int

    def of(self, chosen: NDArray[np.bool_]) -> Points:
        """Return the chosen points only."""
        return Points(
            self.keys[chosen], self.time_s[chosen], self.replicates[:, chosen], self.launches
        )

    def noise(self) -> float:
        """Return the relative deviation of a point's time, without that common to all times."""
        if len(self.replicates) < 2:
            return 0.0
        spread = np.log(self.replicates)
        level = spread.mean(axis=1, keepdims=True)
        spread = spread - level
        deviation = float(np.median(spread.std(axis=0, ddof=1)))
        if not 1 < self.launches < stats.BOOTSTRAP_LAUNCHES:
            return deviation
        # Replicates are launches here. The median of their deviations is below the true one by the
        # cube root of Wilson and Hilferty (1931). A time is their median, not their mean; where
        # they differ by more than the noise, it is that of one launch, whose noise it has.
        deviation /= math.sqrt((1 - 2 / (9 * (self.launches - 1))) ** 3)
        draws = np.random.default_rng(self.launches).normal(0, deviation, (self.launches, _DRAWS))
        of_one = float(np.median(level + draws, axis=0).std())
        return max(deviation * math.sqrt(math.pi / 2 / self.launches), of_one)

    def replaced(self, time_s: Floats, replicates: Floats) -> Points:
        """Return points of the same keys, with values computed from their times."""
        return Points(self.keys, time_s, replicates, self.launches)


def points(samples: Iterable[Mapping[PointKey, NDArray[Any]]]) -> Points:
    """Return points of the samples in seconds of each launch, with the keys that all launches have.

    Raise ModelError for an invalid time.
    """
    by_launch = list(samples)
    if not by_launch:
        return Points(np.empty((0, 1)), np.empty(0), np.empty((0, 0)), 0)
    keys = sorted(set.intersection(*(set(launch) for launch in by_launch)))
    ordered = [[_undisturbed(_checked(key, launch[key])) for key in keys] for launch in by_launch]
    medians = np.array([[_median(values) for values in launch] for launch in ordered])
    medians = medians.reshape(len(by_launch), len(keys))
    width = len(keys[0]) if keys else 1
    table = np.array(keys, dtype=float).reshape(len(keys), width)
    return Points(table, np.median(medians, axis=0), _replicates(medians, ordered), len(by_launch))


def _checked(key: PointKey, samples: NDArray[Any]) -> Floats:
    values = np.sort(np.asarray(samples, dtype=float))
    if not len(values):
        raise ModelError(f"no samples at {key[0]:.0f} bytes")
    wrong = values[~((values >= SHORTEST_S) & (values <= LONGEST_S))]
    if len(wrong):
        raise ModelError(
            f"a time of {wrong[0]:g} s at {key[0]:.0f} bytes: "
            f"times must be positive, from {SHORTEST_S:.3g} to {LONGEST_S:.3g} s"
        )
    return values


def _undisturbed(values: Floats) -> Floats:
    """Return sorted values without outliers; at least half of them remain."""
    away = np.abs(np.log(values / _median(values)))
    reach = REJECTION * 1.4826 * _median(np.sort(away))
    return values[away <= reach]


def _median(values: Floats) -> float:
    below, above = values[(len(values) - 1) // 2], values[len(values) // 2]
    return float(below + (above - below) / 2)


def _replicates(medians: Floats, ordered: list[list[Floats]]) -> Floats:
    launches, count = medians.shape
    random = np.random.default_rng(launches)
    if launches >= stats.BOOTSTRAP_LAUNCHES:
        drawn = random.integers(0, launches, (RESAMPLES, launches))
        resampled: Floats = np.median(medians[drawn], axis=1)
        return resampled
    if launches > 1:
        return medians
    # The median of a resample is the order statistic of a rank that is known in distribution.
    replicates = np.empty((RESAMPLES, count))
    for place, values in enumerate(ordered[0]):
        middle = (len(values) + 1) / 2
        at = random.beta(middle, middle, RESAMPLES) * (len(values) - 1)
        replicates[:, place] = np.interp(at, np.arange(len(values)), values)
    return replicates
