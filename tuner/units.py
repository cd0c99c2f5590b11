"""Numbers as text, and lists of sizes from it: binary units, intervals in words, ratios, shares.

An end of an interval that is None or infinite is open.
"""

import math
import re
from typing import TypeGuard

_PREFIXES = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
_MOST_BYTES = 1 << 40
_BYTE_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def is_digits(text: str) -> bool:
    """Return whether a text has ASCII digits alone, and some."""
    return text.isascii() and text.isdigit()


def parse_number(text: str) -> float:
    """Return the number of ASCII digits, signs, point and exponent. Raise ValueError.

    Python would take the digits of all scripts, `1_0` as 10, and NaN.
    """
    if not re.fullmatch("[-+.0-9eE]+", text):
        raise ValueError(f"{text!r} is not a number")
    return float(text)


def significant(value: float, digits: int = 3) -> str:
    """Return `value` with that many significant digits, never in exponent form."""
    if value == 0:
        return "0"
    rounded = float(f"{value:.{digits - 1}e}")  # 0.9996 has the decimals of 1, which it becomes
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(rounded))))
    return f"{value:.{decimals}f}"


def us_text(seconds: float, digits: int = 3) -> str:
    """Return microseconds with that many significant digits, without their unit."""
    return significant(1e6 * seconds, digits)


def parse_sizes(text: str) -> list[int]:
    """Return the bytes of a list in the form of swpbench's --sizes, as 8:1M:x2,3000, increasing.

    Raise ValueError, as swpbench does, for any other text.
    """
    found: set[int] = set()
    for element in text.split(","):
        first, last, factor = _element(element) or (0, 0, 0)
        if not 1 <= first <= last <= _MOST_BYTES or not 2 <= factor <= _MOST_BYTES:
            raise ValueError(f"{text!r} is neither SIZE nor FIRST:LAST:xFACTOR, as 8:1M:x2,3000")
        while first <= last:
            found.add(first)
            first *= factor
    return sorted(found)


def _element(text: str) -> tuple[int, int, int] | None:
    size = f"([0-9]{{1,13}})([{''.join(_PREFIXES)}]?)"
    parts = re.fullmatch(f"{size}(?::{size}:x{size})?", text)
    if not parts:
        return None
    bytes_ = [
        int(number) * _PREFIXES.get(unit, 1)
        for number, unit in zip(parts.groups()[::2], parts.groups()[1::2], strict=True)
        if number is not None
    ]
    return (bytes_[0], bytes_[0], 2) if len(bytes_) == 1 else (bytes_[0], bytes_[1], bytes_[2])


def size_text(size_bytes: float) -> str:
    """Return bytes as `512 B`, `1 KiB`, `1.5 MiB`."""
    value = float(size_bytes)
    unit = 0
    while round(value) >= 1024 and unit < len(_BYTE_UNITS) - 1:
        value /= 1024
        unit += 1
    return (
        f"{value:.0f} {_BYTE_UNITS[unit]}" if value >= 100 else f"{value:.3g} {_BYTE_UNITS[unit]}"
    )


def multiple_text(ratio: float) -> str:
    """Return a ratio as `1.07`; ratios so large that launches disagree are `over 1000`."""
    if ratio >= 1000:
        return "over 1000"
    return significant(ratio) if ratio > 0.001 else "under 0.001"


def share_text(share: float, decimals: int = 1) -> str:
    """Return a share as `0.4 %`, none and all as `0 %` and `100 %`; `–` for a missing value."""
    if not math.isfinite(share):
        return "–"
    return f"{100 * share:.{0 if share in (0, 1) else decimals}f} %"


def change_text(share: float, decimals: int = 1) -> str:
    """Return a change by a share as `+0.4 %`, `-2.0 %`; `0 %` for one that rounds to it.

    `–` stands for a missing value.
    """
    if not math.isfinite(share):
        return "–"
    return f"{100 * share:+.{decimals}f} %" if round(100 * share, decimals) else "0 %"


def bytes_text(low: float | None, high: float | None) -> str:
    """Return the sizes of a rule: `up to 1.41 KiB`, and for the next `above 1.41 KiB`."""
    above = f"above {size_text(low - 1)}" if _is_end(low) and low > 0 else ""
    if not _is_end(high):
        return above or "all"
    return f"{above} to {size_text(high)}" if above else f"up to {size_text(high)}"


def counted(number: int, one: str, many: str = "") -> str:
    """Return a number with its noun: `1 launch`, `2 launches`; many is by default `one` with s."""
    return f"{number} {one if number == 1 else many or f'{one}s'}"


def span_text(low: int, high: int) -> str:
    """Return whole numbers from one to another: `5 to 7`, or `8`."""
    return str(low) if low == high else f"{low} to {high}"


def degree_text(
    mmax: tuple[float | None, float | None], mavg: tuple[float | None, float | None]
) -> str:
    """Return a rule's degrees: `degree 3 to 8, mean degree up to 4.5`; "" when both are open."""
    texts = (("degree", _range_text(*mmax)), ("mean degree", _range_text(*mavg)))
    return ", ".join(f"{word} {text}" for word, text in texts if text)


def _range_text(low: float | None, high: float | None) -> str:
    if not _is_end(low):
        return f"up to {high:.4g}" if _is_end(high) else ""
    if not _is_end(high):
        return f"from {low:.4g}"
    return f"{low:.4g}" if low == high else f"{low:.4g} to {high:.4g}"


def _is_end(value: float | None) -> TypeGuard[float]:
    return value is not None and math.isfinite(value)
