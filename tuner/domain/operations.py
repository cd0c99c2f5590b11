"""What is communicated, by name, and what every operation falls back to."""

from __future__ import annotations

COLLECTIVES = (
    "bcast",
    "gather",
    "scatter",
    "reduce",
    "allreduce",
    "allgather",
    "allgatherv",
    "alltoall",
    "reduce_scatter_block",
)
"""The operations of MPI that have no messages of their own, and no degree."""

DEFAULT_METHODS = {
    "exchange": "direct",
    "discovery": "pex",
    "spmv": "direct",
    **dict.fromkeys(COLLECTIVES, "vendor"),
}
"""What every operation falls back to; left only for a method that is shown to be faster."""

RULED_OPERATIONS = ("exchange", "discovery", *COLLECTIVES)
"""Those that method tables have rules for: the exchange of an spmv is planned as any other."""

PROBE_OPERATION = "probe"
"""What the header of a launch calls probes: they measure parameters of models, not methods."""

OVERLAP_OPERATION = "overlap"
"""What the header of a launch calls the races of communication that hides behind computation."""

SOAK_OPERATION = "soak"
"""What the header of a launch calls executing methods very often, to see whether they fail."""

AUTO = "auto"
"""The library's own choice by a table, measured beside the methods; no rule can name it."""

APART = "vendor:environment="
"""Begins the methods that hold for a whole launch, so that no other can be in its rounds."""
