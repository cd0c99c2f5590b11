"""Piecewise lines: sizes are cut where the protocol changes, found from the data.

In a segment, the time of group g at x is a + b_g x with a, b_g >= 0; groups share cuts and a.
Residuals are relative. Cuts are exact for the cost (dynamic programming, Bellman 1961), the cost is
Huber's (1964), and the number of segments is that of the least BIC (Schwarz 1978), where residuals
below the noise of the points count as that noise.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from tuner.stats import Floats, Integers

LEAST_SIZES = 3
"""The least number of sizes of a segment: two fit any line."""

MOST_SEGMENTS = 5

FLOOR = 1e-4
"""Relative residuals below this are rounding, and no reason for another segment."""

_HUBER = 1.345  # in deviations; 95 % efficient for normal residuals
_ITERATIONS = 4


@dataclass(frozen=True)
class Segments:
    """The cuts: segment k has the sizes with index from bounds[k] to bounds[k + 1] - 1."""

    bounds: tuple[int, ...]
    scale: float  # deviation of relative residuals

    @property
    def count(self) -> int:
        """Return the number of segments."""
        return len(self.bounds) - 1


def cut(
    x: Floats, group: Integers, time_s: Floats, noise: float = 0.0, parameters: int = 2
) -> Segments:
    """Return the segments of points with the values x, in the order of x.

    x, group and time_s have an entry for each point; `noise` is the relative deviation of a time,
    and `parameters` the number in a segment. There must be at least LEAST_SIZES distinct x.
    """
    problem = _SegmentCosts(x, group, time_s, max(noise, FLOOR), parameters)
    fullest = _best_bounds(problem.costs(np.inf), problem.most_segments)[-1]
    costs = problem.costs(problem.deviation(fullest))
    found = _best_bounds(costs, problem.most_segments)
    chosen = min(found, key=lambda bounds: problem.criterion(costs, bounds))
    return Segments(chosen, problem.deviation(chosen))


def fit_lines(
    x: Floats,
    group: Integers,
    time_s: Floats,
    weights: Floats,
    scale: float,
    unit_s: Floats | None = None,
) -> tuple[Floats, Floats, Floats]:
    """Fit many lines at once, by non-negative least squares with Huber's weights.

    time_s, weights and unit_s have a row for each line. Residuals are in unit_s, by default time_s;
    `scale` is their deviation, from which on weights fall. Returns intercepts, slopes (a column for
    each group), residuals.
    """
    unit = time_s if unit_s is None else unit_s
    groups = np.zeros((len(x), int(group.max()) + 1))
    groups[np.arange(len(x)), group] = 1
    w = weights
    for _ in range(_ITERATIONS if np.isfinite(scale) else 1):
        intercept, slopes = _non_negative(x, time_s, w / unit**2, groups)
        residuals = (intercept[:, None] + slopes @ groups.T * x - time_s) / unit
        if np.isfinite(scale):
            reach = _HUBER * scale / np.maximum(np.abs(residuals), 1e-300)
            w = weights * np.minimum(reach, 1)
    return intercept, slopes, residuals


def _non_negative(
    x: Floats, value: Floats, weights: Floats, groups: Floats
) -> tuple[Floats, Floats]:
    """Return the line of each row of values."""
    xx, x1, xy = ((weights * each) @ groups for each in (x * x, x, value * x))
    return _solve(xx, x1, xy, weights.sum(axis=1), (weights * value).sum(axis=1))


def _solve(
    xx: Floats, x1: Floats, xy: Floats, total: Floats, right: Floats
) -> tuple[Floats, Floats]:
    """Solve for the line from weighted sums of x x, x and x value by group, and of 1 and value.

    The solution is exact: for a given intercept a the best slopes are known, and what remains is
    convex in a.
    """
    xx = np.maximum(xx, 1e-300)
    with np.errstate(over="ignore"):  # such a limit is infinite
        limit = np.where(x1 > 0, xy / np.maximum(x1, 1e-300), np.inf)  # above it slopes are zero
    active = np.ones_like(xx, dtype=bool)
    intercept = np.zeros(len(right))
    for _ in range(xx.shape[1] + 2):
        below = total - np.where(active, x1 * x1 / xx, 0).sum(axis=1)
        above = right - np.where(active, x1 * xy / xx, 0).sum(axis=1)
        small = below <= 1e-9 * total  # a single size: the intercept is not determined
        intercept = np.where(small, 0, np.maximum(above / np.where(small, 1, below), 0))
        now = intercept[:, None] < limit
        if (now == active).all():
            break
        active = now
    slopes = np.where(active, (xy - intercept[:, None] * x1) / xx, 0)
    return intercept, np.maximum(slopes, 0)


class _SegmentCosts:
    """The costs of every possible segment."""

    def __init__(
        self, x: Floats, group: Integers, time_s: Floats, noise: float, parameters: int
    ) -> None:
        self._x, self._group, self._time_s = x, group, time_s
        self._noise, self._parameters = noise, parameters
        sizes, self._index = np.unique(x, return_inverse=True)
        self._sizes = len(sizes)
        self.most_segments = min(MOST_SEGMENTS, self._sizes // LEAST_SIZES)
        # The points by size and group; points that were not measured have no weight.
        shape = (self._sizes, int(group.max()) + 1)
        self._table_s, self._measured = np.ones(shape), np.zeros(shape)
        self._table_s[self._index, group] = time_s
        self._measured[self._index, group] = 1
        self._row_x = sizes

    def costs(self, scale: float) -> Floats:
        """Return costs[i, j], the cost of the segment of sizes i … j - 1.

        It is infinite where the segment is too short.
        """
        costs = np.full((self._sizes + 1, self._sizes + 1), np.inf)
        for length in range(LEAST_SIZES, self._sizes + 1):
            begin = np.arange(self._sizes - length + 1)
            costs[begin, begin + length] = self._costs_of(length, scale)
        return costs

    def _costs_of(self, length: int, scale: float) -> Floats:
        """Return the costs of all segments of one length at once: their data fits the cache."""
        places = np.arange(self._sizes - length + 1)[:, None] + np.arange(length)
        x = self._row_x[places][:, :, None]
        time_s, measured = self._table_s[places], self._measured[places]
        relative, over = measured / time_s, x / time_s
        weights = measured
        for _ in range(_ITERATIONS if np.isfinite(scale) else 1):
            w = weights * relative / time_s
            wx = w * x
            intercept, slopes = _solve(
                (wx * x).sum(axis=1),
                wx.sum(axis=1),
                (weights * over).sum(axis=1),
                w.sum(axis=(1, 2)),
                (weights * relative).sum(axis=(1, 2)),
            )
            residuals = intercept[:, None, None] / time_s + slopes[:, None, :] * over - 1
            if np.isfinite(scale):
                reach = _HUBER * scale / np.maximum(np.abs(residuals), 1e-300)
                weights = measured * np.minimum(reach, 1)
        total: Floats = (_huber(residuals, scale) * measured).sum(axis=(1, 2))
        return total

    def _residuals(self, inside: NDArray[np.bool_], scale: float) -> Floats:
        weights = inside.astype(float)
        rows = np.broadcast_to(self._time_s, weights.shape)
        return fit_lines(self._x, self._group, rows, weights, scale)[2]

    def deviation(self, bounds: tuple[int, ...]) -> float:
        """Return a robust deviation of the relative residuals (median absolute deviation)."""
        begin, end = np.array(bounds[:-1]), np.array(bounds[1:])
        inside = (self._index >= begin[:, None]) & (self._index < end[:, None])
        residuals = self._residuals(inside, np.inf)[inside]
        spare = len(residuals) - self._parameters * len(begin)
        middle = 1.4826 * float(np.median(np.abs(residuals)))
        return max(middle * float(np.sqrt(len(residuals) / max(spare, 1))), self._noise)

    def criterion(self, costs: Floats, bounds: tuple[int, ...]) -> float:
        """Return the BIC; a cut is a parameter too."""
        n, segments = len(self._x), len(bounds) - 1
        total = sum(costs[i, j] for i, j in pairwise(bounds))
        parameters = segments * self._parameters + segments - 1
        return float(n * np.log(max(total / n, self._noise**2)) + parameters * np.log(n))


def _huber(residuals: Floats, scale: float) -> Floats:
    size = np.abs(residuals)
    reach = _HUBER * scale
    if not np.isfinite(reach):
        return size**2
    return np.where(size <= reach, size**2, 2 * reach * size - reach**2)


def _best_bounds(costs: Floats, at_most: int) -> list[tuple[int, ...]]:
    """Return the cuts of the least total cost for 1, 2, … segments."""
    last = len(costs) - 1
    best = costs[0].copy()
    origin: list[Integers] = []
    found: list[tuple[int, ...]] = [(0, last)]
    for _ in range(2, at_most + 1):
        through = best[:, None] + costs
        origin.append(through.argmin(axis=0))
        best = through.min(axis=0)
        if not np.isfinite(best[last]):
            break
        bounds = [last]
        for step in reversed(origin):
            bounds.append(int(step[bounds[-1]]))
        found.append((0, *reversed(bounds)))
    return found
