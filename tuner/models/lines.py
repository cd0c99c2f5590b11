"""One line through the points of one segment, with its replicates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tuner.models.parameter import Parameter, parameter
from tuner.models.points import Points
from tuner.models.segments import fit_lines
from tuner.stats import Floats, Integers


@dataclass(frozen=True)
class Line:
    """Intercept and slope, with the replicates of both."""

    values: tuple[float, float]
    replicates: tuple[Floats, Floats]

    def parameters(self, launches: int) -> tuple[Parameter, Parameter]:
        """Both as parameters."""
        first, second = zip(self.values, self.replicates, strict=True)
        return parameter(*first, launches), parameter(*second, launches)


def fit_line(each: Points, x: Floats, scale: float) -> Line:
    """A line through points over x.

    Residuals are relative to the times, or to a second column of the keys where there is one.
    """
    rows = np.vstack([each.time_s, each.replicates])
    one = each.keys[:, 1] if each.keys.shape[1] > 1 else each.time_s
    units = np.broadcast_to(one, rows.shape)
    weights = np.ones_like(rows)
    intercepts, slopes, _ = fit_lines(x, no_groups(each), rows, weights, scale, units)
    values = float(intercepts[0]), float(slopes[0, 0])
    return Line(values, (intercepts[1:], slopes[1:, 0]))


def no_groups(each: Points) -> Integers:
    """All points in one group."""
    return np.zeros(len(each.time_s), dtype=np.int64)
