"""The formulas of collective methods, and of MPI libraries' algorithms by their names.

The library's own choice is not known: `vendor` takes the least of the textbook's algorithms, and so
do the methods that are made of it.
"""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from tuner.domain.operations import OF_TWO, REDUCTIONS, arguments
from tuner.inputs.structure.grid import choose
from tuner.models import algorithms
from tuner.models.algorithms import Group
from tuner.models.parameter import ModelError

Formula = Callable[[Group, float], float]

_SMALL_BYTES = 8
_SLICED_BYTES = 8192  # of an allreduce that `shared` does by slices
RADIXES = (3, 4, 8)
_RADIX = 4
_BRUCKS = {
    **dict.fromkeys((2, 4, 8), ("", ",global=2", ",global=4")),
    **dict.fromkeys((16, 32), ("",)),
}
"""Radices of an alltoallv, with what follows them in specs."""
SEGMENTS_BYTES = (8192, 32768, 131072)

FORMULAS: dict[str, dict[str, Formula]] = {
    "bcast": {
        "binomial": algorithms.bcast_binomial,
        "knomial": algorithms.bcast_knomial,
        "chain": algorithms.bcast_chain,
        "scatter_allgather": algorithms.bcast_scatter_allgather,
    },
    "gather": {"binomial": algorithms.tree_of_blocks, "star": algorithms.star},
    "scatter": {"binomial": algorithms.tree_of_blocks, "star": algorithms.star},
    "reduce": {
        "binomial": algorithms.reduce_binomial,
        "star": algorithms.reduce_star,
        "rabenseifner": algorithms.reduce_rabenseifner,
    },
    "allreduce": {
        "binomial": algorithms.allreduce_binomial,
        "hypercube": algorithms.allreduce_hypercube,
        "rabenseifner": algorithms.allreduce_rabenseifner,
        "ring": algorithms.ring_allreduce,
    },
    "allgather": {
        "hypercube": algorithms.allgather_hypercube,
        "ring": algorithms.ring,
        "bruck": algorithms.allgather_bruck,
    },
    "allgatherv": {"ring": algorithms.ring, "bruck": algorithms.allgather_bruck},
    "alltoall": {"bruck": algorithms.alltoall_bruck, "pairwise": algorithms.ring},
    "reduce_scatter_block": {
        "hypercube": algorithms.reduce_scatter_hypercube,
        "ring": algorithms.ring_reduce_scatter,
        "pairwise": algorithms.ring_reduce_scatter,
    },
    "alltoallv": {"pairwise": algorithms.ring},
    "barrier": {"binomial": algorithms.barrier_binomial, "bruck": algorithms.bcast_binomial},
}
"""Formulas by operation and method. Those made of the library's collectives are in `formula`."""

OWN: dict[str, dict[str, Formula]] = {
    "bcast": {"bine": algorithms.bcast_binomial},
    "gather": {"knomial": algorithms.blocks_knomial, "bine": algorithms.tree_of_blocks},
    "scatter": {"knomial": algorithms.blocks_knomial, "bine": algorithms.tree_of_blocks},
    "reduce": {"knomial": algorithms.reduce_knomial, "bine": algorithms.reduce_binomial},
    "allreduce": {
        "multiplying": algorithms.allreduce_multiplying,
        "bine": algorithms.allreduce_rabenseifner,
    },
    "allgather": {
        "multiplying": algorithms.allgather_multiplying,
        "bine": algorithms.allgather_bine,
    },
    "allgatherv": {},
    "alltoall": {"bine": algorithms.alltoall_bruck},
    "alltoallv": {},
    "reduce_scatter_block": {"bine": algorithms.reduce_scatter_bine},
    "barrier": {"knomial": algorithms.barrier_knomial},
}
"""Formulas of methods that no MPI library has."""

_OTHERS_ALLGATHER: dict[str, Formula] = {
    "linear": algorithms.allgather_linear,
    "neighbor": algorithms.allgather_neighbor,
    "sparbit": algorithms.tree_of_blocks,
}
OTHERS: dict[str, dict[str, Formula]] = {
    "bcast": {
        "linear": algorithms.bcast_linear,
        "binary": algorithms.bcast_binary,
        "split_binary_tree": algorithms.bcast_split_binary,
        "pipeline": algorithms.ring,
        "chain": algorithms.bcast_chains,
        "scatter_allgather_ring": algorithms.bcast_scatter_ring,
    },
    "gather": {"linear": algorithms.star},
    "scatter": {"linear": algorithms.star},
    "reduce": {
        "linear": algorithms.reduce_star,
        "binary": algorithms.reduce_binary,
        "pipeline": algorithms.ring_reduce_scatter,
        "chain": algorithms.reduce_chains,
    },
    "allreduce": {
        "linear": algorithms.allreduce_linear,
        "nonoverlapping": algorithms.allreduce_binomial,
    },
    "allgather": _OTHERS_ALLGATHER,
    "allgatherv": {**_OTHERS_ALLGATHER, "hypercube": algorithms.allgather_hypercube},
    "alltoall": {"linear": algorithms.alltoall_linear},
    "reduce_scatter_block": {"recursive_doubling": algorithms.reduce_scatter_doubling},
    "alltoallv": {"linear": algorithms.alltoall_linear},
    "barrier": {
        "linear": algorithms.barrier_linear,
        "tree": algorithms.barrier_binomial,
        "hypercube": algorithms.barrier_hypercube,
        "double_ring": algorithms.barrier_rings,
    },
}
"""Algorithms of MPI libraries that no method has, by the libraries' names."""

ALIASES = {
    "basic_linear": "linear",
    "linear_nb": "linear",
    "linear_sync": "linear",
    "scattered": "linear",
    "binary_tree": "binary",
    "in-order_binary": "binary",
    "scatter_recursive_doubling_allgather": "scatter_allgather",
    "scatter_ring_allgather": "scatter_allgather_ring",
    "recursive_doubling": "hypercube",
    "recursive_multiplying": "hypercube",
    "recursive_halving": "hypercube",
    "recexch_doubling": "hypercube",
    "recexch_halving": "hypercube",
    "butterfly": "hypercube",
    "reduce_scatter_gather": "rabenseifner",
    "reduce_scatter_allgather": "rabenseifner",
    "k_reduce_scatter_allgather": "rabenseifner",
    "segmented_ring": "ring",
    "brucks": "bruck",
    "k_brucks": "bruck",
    "bruck-k-fanout": "bruck",
    "modified_bruck": "bruck",
    "dissemination": "bruck",
    "k_dissemination": "bruck",
    "pairwise_sendrecv_replace": "pairwise",
}
"""Other names that libraries have for the same algorithms."""


def _algorithm(operation: str, name: str) -> Formula:
    """Return the formula of a library's algorithm; of an unknown one that of any."""
    known = FORMULAS[operation] | OTHERS[operation]
    return known.get(name) or known.get(ALIASES.get(name, "")) or partial(_vendor, operation)


def _vendor(operation: str, group: Group, m: float) -> float:
    """Return the least time of the textbook's algorithms, as the library's choice is not known."""
    if group.procs == 1:
        return 0.0
    known = (*FORMULAS[operation].values(), *OTHERS[operation].values())
    return min(each(group, m) for each in known)


# ---- Methods made of the library's collectives ----

_GROWS = ("gather", "scatter", "allgather", "allgatherv", "reduce_scatter_block")


def _orthogonal(operation: str, sizes: Sequence[int], group: Group, m: float) -> float:
    """Return the time of the library's collective along one dimension after the other."""
    total = 0.0
    for place, procs in enumerate(sizes):
        before = math.prod(sizes[:place])
        block = m
        if operation in _GROWS:
            block = before * m
        elif operation == "alltoall":
            block = group.procs // procs * m
            total += group.procs * m * group.copy_s_per_byte
        total += _vendor(operation, group.part(procs, before * procs), block)
    return total


OnNode = Callable[[str, Group, float], float]


def _twolevel(on_node: OnNode, operation: str, group: Group, m: float) -> float:
    """Return the time within nodes and between their leaders (Karonis et al., IPDPS'00)."""
    node = group.part(group.ppn, group.ppn)
    leaders = replace(group, procs=-(-group.procs // group.ppn), on_node=None)
    if operation in ("allgather", "allgatherv"):
        between = _vendor(operation, leaders, group.ppn * m)
        spread = on_node("bcast", node, group.procs * m)
        return on_node("gather", node, m) + between + spread
    if operation == "allreduce":
        summed = on_node("reduce", node, m) + _vendor(operation, leaders, m)
        return summed + on_node("bcast", node, m)
    if operation == "barrier":
        met = on_node("gather", node, m) + _vendor(operation, leaders, m)
        return met + on_node("bcast", node, m)
    block = group.ppn * m if operation in ("gather", "scatter") else m
    return on_node(operation, node, m) + _vendor(operation, leaders, block)


def _by_levels(group: Group, m: float) -> float:
    """Return the time of a bruck of two levels, the radix of which is the ranks of a node.

    Bienz, Gautam, Kharel, EuroMPI'22: the rank with the first local number has most to send.
    """
    ppn, nodes = group.ppn, group.procs // group.ppn
    node = group.part(ppn, ppn)
    total = _vendor("allgather", node, m) + group.procs * m * group.copy_s_per_byte
    known = 1
    while known < nodes:
        new = min(known * ppn, nodes) - known
        total += group.message_s(min(known, nodes - known) * ppn * m)
        total += _vendor("allgather", node, new * m)
        known *= ppn
    return total


def _by_leaders(on_node: OnNode, operation: str, leaders: int, group: Group, m: float) -> float:
    """Return the time of shares that several leaders of each node exchange with their peers.

    What they hand to all ranks of the node counts as an allgather of all of these. By memory, the
    root's node has all of a bcast at once, and leaders reduce their slices one after the other.
    """
    size, p = group.ppn // leaders, group.procs
    node, own = group.part(group.ppn, group.ppn), group.part(size, size)
    others = group.part(leaders, group.ppn)
    peers = replace(group, procs=p // group.ppn, on_node=None)
    slice_bytes, piece, by_memory = m / leaders, m / group.ppn, on_node is _shared
    match operation:
        case "bcast":
            first = (
                _shared("bcast", node, m) if by_memory else _vendor("scatter", others, slice_bytes)
            )
            between = _vendor("bcast", peers, slice_bytes)
            return first + between + on_node("allgather", node, piece)
        case "allreduce":
            first = (
                leaders * _shared("reduce", node, slice_bytes)
                if by_memory
                else _vendor("reduce_scatter_block", node, piece)
            )
            between = _vendor("allreduce", peers, slice_bytes)
            return first + between + on_node("allgather", node, piece)
        case "allgather":
            between = _vendor("allgather", peers, size * m)
            last = on_node("allgather", node, peers.procs * m) + p * m * group.copy_s_per_byte
            return on_node("gather", own, m) + between + last
    between = _vendor("alltoall", peers, size * group.ppn * m)
    last = on_node("alltoall", node, peers.procs * size * m)
    copied = 2 * (1 + size) * p * m
    return on_node("gather", own, p * m) + between + last + copied * group.copy_s_per_byte


_SENDS_ALL = ("scatter", "alltoall", "alltoallv", "reduce_scatter_block")
_RECEIVES_ALL = ("gather", "allgather", "alltoall", "alltoallv")


def _shared(operation: str, group: Group, m: float) -> float:
    """Return the time through the node's memory.

    That is of a small message for each step, and what the busiest rank copies to its board and from
    the others'.
    """
    if group.procs == 1:
        return 0.0
    out = group.procs if operation in _SENDS_ALL else 1
    into = group.procs if operation in _RECEIVES_ALL else 1
    step_s = (group.on_node or group.costs).of(_SMALL_BYTES).alpha_s
    seconds = step_s + (out + into) * m * group.copy_s_per_byte
    if operation not in REDUCTIONS:
        return seconds
    folded = m
    if operation == "allreduce" and group.procs > 2 and m >= _SLICED_BYTES:
        folded = m / group.procs
        seconds += step_s + 2 * folded * group.copy_s_per_byte
    return seconds + (group.procs - 1) * folded * group.reduce_s_per_byte


_BY_MEMORY = ("bcast", "gather", "scatter", "reduce", "allreduce", "allgather", "barrier")
_TWOLEVEL = (*_BY_MEMORY, "allgatherv")
_BY_LEADERS = ("bcast", "allreduce", "allgather", "alltoall")
LEADERS = (2, 4)
_TREES = ("bcast", "gather", "scatter", "reduce")  # of bine
_WITHOUT_GRID = ("alltoallv", "barrier")


# ---- Specs ----

_RANGES = {
    "bruck": range(2, 65),
    "knomial": range(3, 65),
    "multiplying": range(3, 65),
    "chain": range(16, (1 << 30) + 1),
    "twolevel": range(1, 1025),
}
"""The numbers that methods take in the library: `parameters` in kernels/methods/collective/."""
_UNEVEN_RADIXES = range(2, 1025)  # of an alltoallv by bruck

_SCATTER_ALLGATHER: dict[str, Formula] = {
    "hypercube": algorithms.bcast_scatter_allgather,
    "ring": algorithms.bcast_scatter_ring,
}


def formula(operation: str, spec: str, procs: int, ppn: int) -> Formula | None:
    """Return the formula of a method by its spec, on so many ranks, `ppn` to a node.

    None where it has none, and where the library refuses the spec, or refuses it on such a layout.
    """
    name, given = spec.partition(":")[0], arguments(spec)
    if given is None:
        return None
    value = next(iter(given.values()), "")
    on_nodes = procs > ppn > 1
    alike = on_nodes and procs % ppn == 0  # all nodes have as many ranks
    match name, *given:
        case ("vendor",) | ("vendor", "environment"):
            return partial(_vendor, operation)
        case "vendor", "algorithm" if value != OF_TWO or procs == 2:
            return _algorithm(operation, value)
        case "bruck", *_ if operation == "alltoallv":
            return _uneven_bruck(given, alike)
        case "bruck", "levels" if value == "2" and operation == "allgather" and alike:
            return _by_levels
        case ("shared",) if operation != "allgatherv" and procs <= ppn:
            return partial(_shared, operation)
        case "twolevel", *_ if on_nodes:
            return _on_nodes(operation, given, ppn if alike else 0)
        case "orthogonal", "dims" | "grid" if operation not in _WITHOUT_GRID:
            sizes = grid_of(spec, procs)
            return partial(_orthogonal, operation, sizes) if sizes else None
        case ("bine",) | ("bine", "grid"):
            grid = _sizes(value, procs) if given else None
            return OWN[operation].get(name) if _has_bine(operation, procs, grid) else None
        case (_,):
            return (FORMULAS[operation] | OWN[operation]).get(spec)
        case "chain", "segment" if operation == "bcast":
            size = _number(value, _RANGES[name])
            return partial(algorithms.bcast_chain, segment_bytes=size) if size else None
        case "scatter_allgather", "allgather" if operation == "bcast":
            return _SCATTER_ALLGATHER.get(value)
        case _, "radix" if its := _BY_RADIX.get((name, operation)):
            radix = _number(value, _RANGES[name])
            return partial(its, radix=radix) if radix else None
    return None


def _number(text: str, known: range) -> int | None:
    """Return a parameter's number; None if there is none of those that the library knows."""
    number = int(text) if re.fullmatch(r"[1-9][0-9]{0,9}", text) else 0
    return number if number in known else None


def grid_of(spec: str, procs: int) -> tuple[int, ...] | None:
    """Return the sizes of the grid of an `orthogonal`; None where it has none on so many ranks."""
    key, _, value = spec.removeprefix("orthogonal:").partition("=")
    if key == "grid":
        sizes = _sizes(value, procs)
        return sizes if len(sizes) > 1 and min(sizes) > 1 else None
    return _balanced(procs, int(value)) if re.fullmatch(r"[0-9]{1,2}", value) else None


def _sizes(text: str, procs: int) -> tuple[int, ...]:
    """Return the sizes of a grid as AxB; none unless they multiply to the number of ranks."""
    sizes = re.fullmatch(r"[0-9]{1,9}(x[0-9]{1,9})*", text) and tuple(map(int, text.split("x")))
    return sizes if sizes and math.prod(sizes) == procs else ()


def _balanced(procs: int, dims: int) -> tuple[int, ...] | None:
    """Return the sizes of a grid that differ least, the smallest first."""
    grid = choose(procs, dims) if dims > 1 else None
    return grid.sizes[::-1] if grid and grid.complete else None


def _has_bine(operation: str, procs: int, grid: tuple[int, ...] | None) -> bool:
    """Return whether there is a `bine`: trees have no grid, and others one of powers of two."""
    if grid is None:
        return operation != "alltoall" or _is_power_of_two(procs)
    return operation not in _TREES and bool(grid) and all(map(_is_power_of_two, grid))


def _is_power_of_two(number: int) -> bool:
    return number & number - 1 == 0


def _on_nodes(operation: str, given: dict[str, str], ppn: int) -> Formula | None:
    """Return the formula of a `twolevel`; `ppn` are the ranks of each node, 0 if these differ."""
    node, leaders = given.get("node", "mpi"), given.get("leaders")
    if not given.keys() <= {"node", "leaders"} or node not in ("mpi", "shared"):
        return None
    on_node = _shared if node == "shared" else _vendor
    if leaders is None:
        known = _BY_MEMORY if node == "shared" else _TWOLEVEL
        return partial(_twolevel, on_node, operation) if operation in known else None
    number = _number(leaders, _RANGES["twolevel"])
    if operation not in _BY_LEADERS or not ppn or not number or ppn % number != 0:
        return None
    return partial(_by_leaders, on_node, operation, number)


def _uneven_bruck(given: dict[str, str], alike: bool) -> Formula | None:
    """Return the formula of a bruck of uneven blocks; `global` is for several nodes all alike."""
    radixes = {key: k for key, value in given.items() if (k := _number(value, _UNEVEN_RADIXES))}
    known = {"radix", "global"} if alike else {"radix"}
    if radixes.keys() != given.keys() or not radixes.keys() <= known:
        return None
    local, across = radixes.get("radix", 2), radixes.get("global", 0)
    return partial(algorithms.uneven_bruck, radix=local, global_radix=across)


_BY_RADIX: dict[tuple[str, str], Callable[..., float]] = {
    ("knomial", "bcast"): algorithms.bcast_knomial,
    ("knomial", "gather"): algorithms.blocks_knomial,
    ("knomial", "scatter"): algorithms.blocks_knomial,
    ("knomial", "reduce"): algorithms.reduce_knomial,
    ("knomial", "barrier"): algorithms.barrier_knomial,
    ("multiplying", "allreduce"): algorithms.allreduce_multiplying,
    ("multiplying", "allgather"): algorithms.allgather_multiplying,
    ("bruck", "allgather"): algorithms.allgather_bruck_by,
    ("bruck", "allgatherv"): algorithms.allgather_bruck_by,
    ("bruck", "alltoall"): algorithms.alltoall_bruck_by,
    ("bruck", "barrier"): algorithms.barrier_bruck_by,
}


def methods(operation: str, procs: int, ppn: int) -> list[str]:
    """Return the specs that the library would try, without the algorithms that it has itself."""
    radixes = [k for k in RADIXES if k == RADIXES[0] or k <= procs]
    more = procs > _RADIX  # where these are no stars, and bine has distances of its own
    variants = {
        "knomial": [f"knomial:radix={k}" for k in radixes],
        "bruck": ["bruck", *([f"bruck:radix={_RADIX}"] if more else [])],
        "chain": [f"chain:segment={size}" for size in SEGMENTS_BYTES],
        "scatter_allgather": [f"scatter_allgather:allgather={a}" for a in _SCATTER_ALLGATHER],
    }
    own = {name: f"{name}:radix={_RADIX}" for name in ("knomial", "multiplying")}
    tried = ["vendor", *(s for name in FORMULAS[operation] for s in variants.get(name, [name]))]
    tried += (own.get(name, name) for name in OWN[operation] if more)
    tried += _brucks(procs) if operation == "alltoallv" else _grids(procs)
    leaders = [f"leaders={k}" for k in LEADERS]
    tried += ("twolevel", "twolevel:node=shared", *(f"twolevel:{each}" for each in leaders))
    tried += (f"twolevel:node=shared,{each}" for each in leaders)
    tried += ("bruck:levels=2", "shared")
    return [spec for spec in tried if formula(operation, spec, procs, ppn)]


def _brucks(procs: int) -> list[str]:
    known = [radix for radix in _BRUCKS if radix <= max(procs, 2)]
    return [f"bruck:radix={radix}{level}" for radix in known for level in _BRUCKS[radix]]


def _grids(procs: int) -> list[str]:
    """Return the specs of all grids of two and of three dimensions, the balanced ones first."""
    sides = [p for p in range(2, procs // 2 + 1) if procs % p == 0]
    grids: list[tuple[int, ...]] = [(a, procs // a) for a in sides]
    grids += [
        (a, b, procs // a // b)
        for a in sides
        for b in sides
        if procs % (a * b) == 0 and a * b < procs
    ]
    balanced = {sizes: dims for dims in (2, 3) if (sizes := _balanced(procs, dims))}
    specs = [f"orthogonal:dims={dims}" for dims in balanced.values()]
    others = (sizes for sizes in grids if sizes not in balanced)
    return specs + [f"orthogonal:grid={'x'.join(map(str, sizes))}" for sizes in others]


def time_s(operation: str, method: str, group: Group, size_bytes: float) -> float:
    """Return the time of a method that has a formula."""
    its = formula(operation, method, group.procs, group.ppn)
    if its is None:
        raise ModelError(
            f"{method} has no formula for {operation} on {group.procs} ranks, {group.ppn} per node"
        )
    return its(group, size_bytes) if group.procs > 1 else 0.0
