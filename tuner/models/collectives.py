"""The times of collective methods on P ranks, composed of messages alone (the postal model).

m is the block of a rank, or the whole vector of bcast, reduce and allreduce. There are lg =
ceil(log2 P) steps. Hartmann, Kühnemann, Rauber, Rünger, "Adaptive selection of communication
methods"; Thakur, Rabenseifner, Gropp, IJHPCA'05.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

from tuner.models.costs import Costs


def steps(procs: int) -> int:
    """Return ceil(log2 P)."""
    return (procs - 1).bit_length()


@dataclass(frozen=True)
class Group:
    """The ranks of a collective, with the costs of their messages and of a byte of a reduction."""

    costs: Costs
    procs: int
    reduce_s_per_byte: float

    def message_s(self, size_bytes: float) -> float:
        """Return alpha + beta m."""
        return self.costs.of(size_bytes).alone_s(size_bytes)


Formula = Callable[[Group, float], float]


def _bcast_binomial(group: Group, m: float) -> float:
    return steps(group.procs) * group.message_s(m)


def _bcast_scatter_allgather(group: Group, m: float) -> float:
    p = group.procs
    piece = group.costs.of(m / p)
    return 2 * steps(p) * piece.alpha_s + 2 * (p - 1) / p * m * piece.beta_s


def _star(group: Group, m: float) -> float:
    each = group.costs.of(m)
    overhead = each.receive_s + m * each.per_byte_s
    return (group.procs - 1) * max(each.step_s, overhead) + each.alpha_s


def _tree_of_blocks(group: Group, m: float) -> float:
    """Return the time of binomial gather and scatter, and of allgather by recursive doubling."""
    each = group.costs.of(m)
    return steps(group.procs) * each.alpha_s + (group.procs - 1) * m * each.beta_s


def _reduce_star(group: Group, m: float) -> float:
    each = group.costs.of(m)
    per_byte = each.per_byte_s + group.reduce_s_per_byte
    return (group.procs - 1) * (each.receive_s + m * per_byte)


def _reduce_binomial(group: Group, m: float) -> float:
    return steps(group.procs) * (group.message_s(m) + m * group.reduce_s_per_byte)


def _allreduce_binomial(group: Group, m: float) -> float:
    lg = steps(group.procs)
    return 2 * lg * group.message_s(m) + lg * m * group.reduce_s_per_byte


def _ring(group: Group, m: float) -> float:
    return (group.procs - 1) * group.message_s(m)


FORMULAS: dict[str, dict[str, Formula]] = {
    "bcast": {"binomial": _bcast_binomial, "scatter_allgather": _bcast_scatter_allgather},
    "gather": {"star": _star, "binomial": _tree_of_blocks},
    "scatter": {"star": _star, "binomial": _tree_of_blocks},
    "reduce": {"star": _reduce_star, "binomial": _reduce_binomial},
    "allreduce": {"binomial": _allreduce_binomial, "hypercube": _reduce_binomial},
    "allgather": {"ring": _ring, "hypercube": _tree_of_blocks},
}
"""Formulas by operation and method. A hypercube's allreduce takes as long as binomial reduction."""


def methods(operation: str, procs: int) -> list[str]:
    """Return the specs that can be predicted: FORMULAS, and orthogonal on every grid of two."""
    grids = [f"{p}x{procs // p}" for p in range(2, procs // 2 + 1) if procs % p == 0]
    return [*FORMULAS[operation], *(f"orthogonal:grid={grid}" for grid in grids)]


def time_s(operation: str, method: str, group: Group, size_bytes: float) -> float:
    """Return the time of a method; `orthogonal` takes the best of FORMULAS in each dimension.

    The library's own collective, which `orthogonal` is made of, has no formula.
    """
    if group.procs == 1:
        return 0.0
    _, _, grid = method.partition("orthogonal:grid=")
    if not grid:
        return FORMULAS[operation][method](group, size_bytes)
    sizes = [int(size) for size in grid.split("x")]
    total = 0.0
    for place, procs in enumerate(sizes):
        grown = math.prod(sizes[:place])
        m = size_bytes * (grown if operation in ("gather", "scatter", "allgather") else 1)
        part = replace(group, procs=procs)
        total += min(time_s(operation, each, part, m) for each in FORMULAS[operation])
    return total
