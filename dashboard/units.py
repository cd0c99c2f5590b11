"""Numbers as people read them: sizes in binary units, times with three significant digits."""

import math
from collections.abc import Callable

_BYTE_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
_TIME_UNITS = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))


def _significant(value: float, digits: int = 3) -> str:
    """`value` with that many significant digits, never in exponent form."""
    if value == 0:
        return "0"
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(value))))
    return f"{value:.{decimals}f}"


def size_text(size_bytes: float) -> str:
    """Bytes as `512 B`, `1 KiB`, `1.5 MiB`."""
    value = float(size_bytes)
    unit = 0
    while value >= 1024 and unit < len(_BYTE_UNITS) - 1:
        value /= 1024
        unit += 1
    return (
        f"{value:.0f} {_BYTE_UNITS[unit]}" if value >= 100 else f"{value:.3g} {_BYTE_UNITS[unit]}"
    )


def time_text(seconds: float) -> str:
    """Seconds as `850 ns`, `12.3 µs`, `1.20 s`; `–` for a missing value."""
    if not math.isfinite(seconds):
        return "–"
    # The unit is chosen for the rounded value: 999.9 µs is 1.00 ms.
    for scale, unit in _TIME_UNITS:
        if float(f"{seconds / scale:.2e}") >= 1:
            return f"{_significant(float(f'{seconds / scale:.2e}'))} {unit}"
    return f"{_significant(seconds / 1e-9)} ns"


def ratio_text(ratio: float) -> str:
    """A ratio as `1.07×`; `–` for a missing value."""
    if math.isnan(ratio):
        return "–"
    if not 1e-3 < ratio < 1e3:  # so far off, it is the launches that disagree
        return "> 1000×" if ratio > 1 else "< 0.001×"
    return f"{_significant(ratio)}×"


def share_text(share: float) -> str:
    """A share as `0.4 %`; `–` for a missing value."""
    if not math.isfinite(share):
        return "–"
    return f"{100 * share:.1f} %" if share else "0 %"


def interval_text(low: float, high: float, text: Callable[[float], str]) -> str:
    """Both ends, each by `text`; empty when an end is missing."""
    if not (math.isfinite(low) and math.isfinite(high)):
        return ""
    return f"{text(low)} – {text(high)}"


def bytes_range_text(low: float, high: float) -> str:
    """An interval of message sizes whose ends are included; infinite ends are open.

    Intervals of a table begin one byte after the one before, which reads best as `over`.
    """
    over = f"over {size_text(low - 1)}" if math.isfinite(low) and low > 0 else ""
    to = f"to {size_text(high)}" if math.isfinite(high) else ""
    return f"{over} {to}".strip() or "any"
