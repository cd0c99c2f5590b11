"""A fitted parameter: a value with its interval, or the reason why there is none."""

import math
from typing import Annotated

import msgspec
import numpy as np

from tuner import stats
from tuner.errors import SwitchpointError
from tuner.stats import Floats

NOT_SIGNIFICANT = "not significantly different from zero"
HIDDEN = "its part of the time is no larger than the noise"


_MOST = 1e30
Natural = Annotated[int, msgspec.Meta(ge=0, le=2**62)]
Number = Annotated[float, msgspec.Meta(ge=-_MOST, le=_MOST)]
Rate = Annotated[float, msgspec.Meta(ge=1 / _MOST, le=_MOST)]
"""What stored models may have, which come from anybody: nothing with which times are infinite."""


class ModelError(SwitchpointError):
    """Error raised when no model can be fitted to data; the message says which and why."""


class Estimate(msgspec.Struct, frozen=True, tag="estimate"):
    """A value and its interval at `stats.LEVEL`; all finite."""

    value: Number
    low: Number
    high: Number


class NotIdentified(msgspec.Struct, frozen=True, tag="not identified"):
    """A parameter that the data do not show, and the reason."""

    reason: str

    @property
    def is_zero(self) -> bool:
        """Return whether it is not significantly different from zero; stored models say so."""
        return self.reason == NOT_SIGNIFICANT


Parameter = Estimate | NotIdentified

NOT_MEASURED = NotIdentified("not measured")


def or_zero(parameter: Parameter) -> float:
    """Return the value, 0 where it is not identified."""
    return parameter.value if isinstance(parameter, Estimate) else 0.0


def parameter(value: float, replicates: Floats, launches: int, signed: bool = False) -> Parameter:
    """Return the estimate `value` with the interval that its replicates give.

    Replicates are one a launch up to nine launches, else resamples (`points.Points`). A parameter
    that is not signed must be positive, and its interval too: else it is not identified.
    """
    if not math.isfinite(value) or not np.isfinite(replicates).all():
        return NotIdentified("no finite value fits")
    if not signed and (value <= 0 or (replicates <= 0).any()):
        return NotIdentified(NOT_SIGNIFICANT)
    scaled = replicates if signed else np.log(replicates)
    low, high = interval(scaled, launches)
    if not signed:
        if max(high - math.log(value), math.log(value) - low) > math.log(100):
            return NotIdentified("known to no better than a factor of 100")
        low, high = math.exp(low), math.exp(high)
    return Estimate(value, min(low, value), max(high, value))


def interval(replicates: Floats, launches: int) -> tuple[float, float]:
    """Return where the value would lie in another launch or, with one launch, in a resample."""
    if 1 < launches < stats.BOOTSTRAP_LAUNCHES:
        low, high = stats.mean_interval(replicates)
        return float(low), float(high)
    tail = stats.bootstrap_tail(launches) if launches > 1 else (1 - stats.LEVEL) / 2
    low, high = np.quantile(replicates, [tail, 1 - tail])
    return float(low), float(high)
