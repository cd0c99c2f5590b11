"""The headings and units with which parameters are shown in tables and on pages."""

from __future__ import annotations

from tuner.models.parameter import NotIdentified, Parameter
from tuner.units import significant, size_text

LOGGP = {  # heading, field, and its unit in terms of the stored one
    "L us": ("latency", 1e6),
    "o_s us": ("overhead_send", 1e6),
    "o_r us": ("overhead_receive", 1e6),
    "g us": ("gap", 1e6),
    "G ns/B": ("gap_per_byte", 1e9),
    "loaded g us": ("loaded_gap", 1e6),
    "loaded G ns/B": ("loaded_gap_per_byte", 1e9),
    "alpha us": ("alpha", 1e6),
    "beta ns/B": ("beta", 1e9),
    "loaded alpha us": ("loaded_alpha", 1e6),
    "loaded beta ns/B": ("loaded_beta", 1e9),
}
MAXRATE = {
    "alpha us": ("alpha", 1e6),
    "B_max GB/s": ("b_max", 1e-9),
    "B_inj GB/s": ("b_inj", 1e-9),
    "B_N GB/s": ("b_node", 1e-9),
}


def sizes_text(from_bytes: int, up_to_bytes: int | None) -> str:
    """Return the sizes of a protocol as text."""
    if up_to_bytes is None:
        return f"from {size_text(from_bytes)}"
    return f"{size_text(from_bytes)} to {size_text(up_to_bytes)}"


def parameter_text(value: Parameter, unit: float) -> str:
    """Return a parameter times `unit` with its interval as text; `-` when it is not identified."""
    if isinstance(value, NotIdentified):
        return "-"
    ends = (significant(unit * end) for end in (value.low, value.high))
    return f"{significant(unit * value.value)} [{', '.join(ends)}]"
