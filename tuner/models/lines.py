"""One line through the points of one segment, with its replicates."""

from dataclasses import dataclass

import numpy as np

from tuner.models.parameter import HIDDEN, NotIdentified, Parameter, parameter
from tuner.models.points import Points
from tuner.models.segments import FLOOR, fit_lines
from tuner.stats import Floats, Integers


@dataclass(frozen=True)
class Line:
    """Intercept and slope, with the replicates of both; smaller slopes are lost in the noise."""

    values: tuple[float, float]
    replicates: tuple[Floats, Floats]
    least_slope: float
    launches: int

    def parameters(self) -> tuple[Parameter, Parameter]:
        """Return both as parameters."""
        first, second = zip(self.values, self.replicates, strict=True)
        slope = parameter(*second, self.launches)
        if 0 < self.values[1] < self.least_slope:
            slope = NotIdentified(HIDDEN)
        return parameter(*first, self.launches), slope


def fit_line(each: Points, x: Floats, scale: float) -> Line:
    """Fit a line to points over x.

    Residuals are relative to the times, or to a second column of the keys where there is one.
    """
    rows = np.vstack([each.time_s, each.replicates])
    one = each.keys[:, 1] if each.keys.shape[1] > 1 else each.time_s
    units = np.broadcast_to(one, rows.shape)
    weights = np.ones_like(rows)
    intercepts, slopes, _ = fit_lines(x, no_groups(each), rows, weights, scale, units)
    values = float(intercepts[0]), float(slopes[0, 0])
    last = int(x.argmax())
    noise = max(scale if np.isfinite(scale) else 0.0, FLOOR)
    least_slope = noise * float(one[last]) / max(float(x[last]), 1.0)
    return Line(values, (intercepts[1:], slopes[1:, 0]), least_slope, each.launches)


def no_groups(each: Points) -> Integers:
    """Return groups with all points in one."""
    return np.zeros(len(each.time_s), dtype=np.int64)
