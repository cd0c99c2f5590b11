"""The names of the operations that communicate, and the default method of each."""

from collections.abc import Collection

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
    "alltoallv",
    "barrier",
)
"""The operations of MPI that have no messages of their own, and no degree."""

MOST_CALLED = ("bcast", "allreduce", "allgather", "alltoall")
"""The collectives that applications call most; campaigns measure the others only if named."""

NO_DATA = ("barrier",)
"""The collectives that move nothing."""

NO_DATA_BYTES = 1
"""The size of their calls, so that they have one as all others."""

DISPATCHED = tuple(name for name in COLLECTIVES if name != "alltoallv")
"""Those that the preload does by a method in any program; the other one needs a promise."""

EXCHANGED = ("gatherv", "scatterv", "alltoallw")
"""The collectives that the preload does as exchanges, where a program promises fixed counts."""

DEFAULT_METHODS = {
    "exchange": "direct",
    "discovery": "pex",
    "spmv": "direct",
    **dict.fromkeys(COLLECTIVES, "vendor"),
}
"""The default of every operation; it is left only for a method that is shown to be faster."""

RULED_OPERATIONS = ("exchange", "discovery", *COLLECTIVES)
"""The operations that method tables have rules for; an spmv plans its exchange as any other."""

REDUCTIONS = ("reduce", "allreduce", "reduce_scatter_block")
"""The collectives that reduce."""

AUTO = "auto"
"""The library's own choice by a table, measured beside the methods; no rule can name it."""

SHARED_BYTES = 8192
"""The largest message of an exchange that goes by a node's memory; larger ones are sent."""

ALGORITHM = "vendor:algorithm="
"""Prefix of the methods that ask the MPI library for one of its algorithms."""

OF_TWO = "two_proc"
"""Open MPI's algorithm for two processes, which fails with any other number."""

BY_ENVIRONMENT = "vendor:environment="
"""Prefix of the methods that hold for a whole launch, so that no other can be in its rounds."""

FOREIGN = "pico:"
"""Prefix of the systems that PICO measured, and of its own algorithms, which no rule can name."""


def known_cores(system: str, cores: int) -> int | None:
    """Return the stored cores of a system by its name; None for PICO's, which does not record them.

    What is stored for these is 1.
    """
    return None if system.startswith(FOREIGN) else cores


def by_memory(exchange: str) -> bool:
    """Return whether messages of an exchange method go by a node's memory if they are small."""
    return exchange == "shared" or exchange.endswith("node=shared")


def takes_node_memory(method: str) -> bool:
    """Return whether plans by a method's spec take memory of the node."""
    name, _, parameters = method.partition(":")
    return name in {"shared", "lent"} or "node=shared" in parameters.split(",")


def fits_one_count(method: str) -> bool:
    """Return whether a method is for one number of processes alone."""
    return "grid=" in method or method == ALGORITHM + OF_TWO


def is_named(method: str, words: Collection[str]) -> bool:
    """Return whether a user's words name a method's spec, by itself or by its family."""
    return method in words or method.partition(":")[0] in words


def method_word(method: str) -> str:
    """Return swpbench's word for one method; a name without parameters stands for its family."""
    return method if ":" in method else f"{method}:"


def arguments(spec: str) -> dict[str, str] | None:
    """Return what a method's spec gives after its name, by the names of its parameters.

    None where the library refuses it: without a value, or with two of the same name.
    """
    _, colon, parameters = spec.partition(":")
    pairs = [each.partition("=")[::2] for each in parameters.split(",")] if colon else []
    given = dict(pairs)
    return given if len(given) == len(pairs) and all(given) and all(given.values()) else None


def sizes_for(operation: str, sizes: str) -> str:
    """Return the sizes that an operation has of those in a list as swpbench's --sizes."""
    return f"{NO_DATA_BYTES}" if operation in NO_DATA else sizes
