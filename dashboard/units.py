"""Units that only the pages need: times with three significant digits, ratios."""

import math
from collections.abc import Callable

from tuner.units import multiple_text, significant

_TIME_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))


def time_text(seconds: float) -> str:
    """Return seconds as `850 ns`, `12.3 µs`, `1.20 s`; `–` for a missing value."""
    if not math.isfinite(seconds):
        return "–"
    # The unit is chosen for the rounded value: 999.9 µs is 1.00 ms.
    for scale, unit in _TIME_UNITS:
        if float(f"{seconds / scale:.2e}") >= 1:
            return f"{significant(float(f'{seconds / scale:.2e}'))} {unit}"
    return f"{significant(seconds / 1e-9)} ns"


def ratio_text(ratio: float) -> str:
    """Return a ratio as `1.07×`; `–` for a missing value."""
    if math.isnan(ratio):
        return "–"
    return f"{multiple_text(ratio)}×"


def interval_text(low: float, high: float, text: Callable[[float], str]) -> str:
    """Return both ends, each formatted by `text`; empty when an end is missing."""
    if not (math.isfinite(low) and math.isfinite(high)):
        return ""
    return f"{text(low)} – {text(high)}"
