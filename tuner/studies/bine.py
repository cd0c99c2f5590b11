"""Bytes on links by collective: binomial negabinary trees (De Sensi et al., SC'25) and others.

All is counted from who sends what to whom, as the library's methods do it, one rank on each node.
On a torus the butterflies are those of Swing (De Sensi et al., NSDI'24).
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tuner.errors import SwitchpointError
from tuner.machine.simulation import routes
from tuner.stats import Floats, Integers
from tuner.studies.findings import Finding

Ranks = Integers
Stage = tuple[Ranks, Ranks, Floats]
"""Sources, destinations, and what is sent: blocks, or parts of the vector."""

PAPER = "SC'25: up to 33 % fewer"
SWING = "NSDI'24: up to 3 times the speed"
PLACEMENTS = ("aligned", "shifted", "fragmented")
_ALLOCATIONS = 20  # of fragmented placements, each on half of the nodes


class BineStudyError(SwitchpointError):
    """Error raised for a number of ranks that the study cannot count."""


# ---- Trees ----


def _binomial(procs: int, root: int) -> Iterator[tuple[int, int, int]]:
    for position in range(1, procs):
        low = position & -position
        parent, child = (position - low + root) % procs, (position + root) % procs
        yield parent, child, min(low, procs - position)


def _halves(first: int, end: int, root: int) -> Iterator[tuple[int, int, int]]:
    if end - first == 1:
        return
    half = (end - first) // 2
    if root - first < end - first - half:
        cut, near, far = end - half, (first, end - half), (end - half, end)
        leader = cut + half // 3
    else:
        cut, near, far = first + half, (first + half, end), (first, first + half)
        leader = cut - 1 - half // 3
    yield root, leader, half
    yield from _halves(*near, root)
    yield from _halves(*far, leader)


def _bine(procs: int, root: int) -> Iterator[tuple[int, int, int]]:
    before = procs // 3
    for parent, child, blocks in _halves(root - before, root - before + procs, root):
        yield parent % procs, child % procs, blocks


Tree = Callable[[int, int], Iterator[tuple[int, int, int]]]


def _along(tree: Tree, procs: int, root: int, *, up: bool, blocks: bool) -> list[Stage]:
    """Return the messages of a tree, which have the blocks of a subtree or one vector."""
    edges = np.array(list(tree(procs, root)), np.int64).reshape(-1, 3)
    amounts = edges[:, 2].astype(float) if blocks else np.ones(len(edges))
    return [(edges[:, int(up)], edges[:, 1 - int(up)], amounts)]


# ---- Butterflies ----


def distance(step: int) -> int:
    """Return the distance of a step, nearest first: 1, -1, 3, -5, 11, …."""
    power = 2 << step
    return (1 - (power if step % 2 else -power)) // 3


def _negabinary(procs: int, grid: Sequence[int]) -> list[Ranks]:
    """Return the peers of each rank by step, the nearest first, over the coordinates of a grid."""
    ranks, found = np.arange(procs), list[Ranks]()
    for step in range(procs.bit_length()):
        stride = 1
        for size in grid:
            if 1 << step < size:
                here = ranks // stride % size
                there = (here + np.where(here % 2 == 0, 1, -1) * distance(step)) % size
                found.append(ranks + (there - here) * stride)
            stride *= size
    return found


def _cube(procs: int) -> list[Ranks]:
    return [np.arange(procs) ^ 1 << step for step in range(procs.bit_length() - 1)]


def _exchanges(peers: Sequence[Ranks], amounts: Sequence[float]) -> list[Stage]:
    ranks = np.arange(len(peers[0]))
    pairs = zip(peers, amounts, strict=True)
    return [(ranks, peer, np.full(len(ranks), amount)) for peer, amount in pairs]


def _doubled(peers: Sequence[Ranks]) -> list[Stage]:
    """Return exchanges of 1, 2, 4, … blocks."""
    return _exchanges(peers, [float(1 << step) for step in range(len(peers))])


def _there_and_back(peers: Sequence[Ranks]) -> list[Stage]:
    """Return exchanges of halves of the vector, halves of these, …, and the same backwards."""
    halves = _exchanges(peers, [0.5 ** (step + 1) for step in range(len(peers))])
    return halves + halves[::-1]


def _bruck(procs: int) -> list[Stage]:
    ranks, distances = np.arange(procs), np.arange(procs)
    bits = [1 << step for step in range(procs.bit_length() - 1)]
    amounts = [float(np.count_nonzero(distances & bit)) for bit in bits]
    return _exchanges([(ranks + bit) % procs for bit in bits], amounts)


def stages(
    operation: str, method: str, procs: int, root: int = 0, grid: Sequence[int] = ()
) -> list[Stage]:
    """Return the messages of a method on a power of two ranks; of a tree on any number.

    Raise KeyError for what the study does not have.
    """
    peers = _negabinary(procs, grid or [procs])
    cases: dict[tuple[str, str], Callable[[], list[Stage]]] = {
        ("allgather", "hypercube"): lambda: _doubled(_cube(procs)),
        ("allgather", "bine"): lambda: _doubled(peers[::-1]),
        ("reduce_scatter_block", "hypercube"): lambda: _doubled(_cube(procs))[::-1],
        ("reduce_scatter_block", "bine"): lambda: _doubled(peers[::-1])[::-1],
        ("allreduce", "rabenseifner"): lambda: _there_and_back(_cube(procs)),
        ("allreduce", "bine"): lambda: _there_and_back(peers),
        ("alltoall", "bruck"): lambda: _bruck(procs),
        ("alltoall", "bine"): lambda: _exchanges(peers, [procs / 2] * len(peers)),
    }
    trees: dict[str, Tree] = {"binomial": _binomial, "bine": _bine}
    if operation in ("bcast", "gather", "scatter", "reduce"):
        up, blocks = operation in ("gather", "reduce"), operation in ("gather", "scatter")
        return _along(trees[method], procs, root, up=up, blocks=blocks)
    return cases[operation, method]()


RIVALS = {
    "bcast": "binomial",
    "gather": "binomial",
    "allgather": "hypercube",
    "reduce_scatter_block": "hypercube",
    "allreduce": "rabenseifner",
    "alltoall": "bruck",
}
"""The method that bine is compared with; reduce and scatter send what bcast and gather do."""

BY_ORDER = ("allgather", "reduce_scatter_block")
"""Where the rival sends its largest messages farthest: the ratio is hardly one of distances."""


# ---- Global links ----


@dataclass(frozen=True)
class Placed:
    """Bytes of bine on links between groups / those of its rival, over placements."""

    operation: str
    rival: str
    network: str
    placement: str
    least: float
    mean: float
    most: float


def leaving(messages: Sequence[Stage], group_of: Ranks) -> float:
    """Return what is sent from one group to another, group_of being that of each rank."""
    return float(sum(amounts[group_of[a] != group_of[b]].sum() for a, b, amounts in messages))


def placements(placement: str, procs: int, group: int) -> list[Ranks]:
    """Return the groups of ranks: from a group's start, all other starts, or nodes by chance."""
    ranks = np.arange(procs)
    match placement:
        case "aligned":
            return [ranks // group]
        case "shifted":
            return [(ranks + shift) // group for shift in range(1, group)]
    random = np.random.default_rng(1)
    chosen = (random.choice(2 * procs, procs, replace=False) for _ in range(_ALLOCATIONS))
    return [np.sort(nodes) // group for nodes in chosen]


def on_groups(procs: int, networks: dict[str, int]) -> Iterator[Placed]:
    """Yield ratios by operation, network (nodes of a group, by name) and placement.

    Raise BineStudyError.
    """
    if procs < 8 or procs & procs - 1:
        raise BineStudyError(f"{procs} ranks: a power of two from 8 on")
    for network, group in networks.items():
        if group >= procs:
            raise BineStudyError(f"one group of the {network} has all {procs} ranks")
    for operation, rival in RIVALS.items():
        ours, theirs = stages(operation, "bine", procs), stages(operation, rival, procs)
        for network, group in networks.items():
            for placement in PLACEMENTS:
                ratios = [
                    leaving(ours, groups) / leaving(theirs, groups)
                    for groups in placements(placement, procs, group)
                ]
                mean = math.fsum(ratios) / len(ratios)
                yield Placed(operation, rival, network, placement, min(ratios), mean, max(ratios))


# ---- A torus ----


@dataclass(frozen=True)
class Loaded:
    """The load of the busiest link of a torus in an allreduce, in vectors.

    in_turn: the sum over steps of the busiest link's load.
    """

    torus: str
    method: str
    most: float
    in_turn: float


def on_torus(sizes: Sequence[int]) -> Iterator[Loaded]:
    """Yield the loads of an allreduce by rabenseifner, and bine without and with a grid."""
    procs, name = math.prod(sizes), "x".join(map(str, sizes))
    grids: list[tuple[str, str, Sequence[int]]] = [
        ("rabenseifner", "rabenseifner", ()),
        ("bine", "bine", ()),
        (f"bine:grid={name}", "bine", sizes),
    ]
    for spec, method, grid in grids:
        loads = [_link_loads(sizes, stage) for stage in stages("allreduce", method, procs, 0, grid)]
        total = np.sum(loads, axis=0)
        yield Loaded(name, spec, float(total.max()), float(sum(each.max() for each in loads)))


def _link_loads(sizes: Sequence[int], stage: Stage) -> Floats:
    source, target, amounts = stage
    loads = np.zeros(2 * math.prod(sizes) * len(sizes))
    for message, link in routes.torus(sizes, source, target):
        np.add.at(loads, link, amounts[message])
    return loads


# ---- Conclusions ----


def findings(placed: Sequence[Placed], loaded: Sequence[Loaded]) -> Iterator[Finding]:
    """Yield the papers' conclusions, and whether they hold here, by placement and by torus.

    They hold where every operation sends less, those of BY_ORDER aside, and where a grid does so
    on the busiest link: of the whole allreduce and of its steps.
    """
    for network, placement in dict.fromkeys((each.network, each.placement) for each in placed):
        here = [
            each
            for each in placed
            if (each.network, each.placement) == (network, placement)
            and each.operation not in BY_ORDER
        ]
        yield Finding(
            f"{network}, {placement}: fewer bytes on global links; {PAPER}",
            all(each.mean < 1 for each in here),
            ", ".join(f"{each.operation} {each.mean:.2f} of {each.rival}'s" for each in here),
        )
    for torus in dict.fromkeys(load.torus for load in loaded):
        loads = {load.method: load for load in loaded if load.torus == torus}
        grid, rival = loads.pop(f"bine:grid={torus}"), loads["rabenseifner"]
        yield Finding(
            f"{torus}: by a grid the busiest link carries less than by rabenseifner; {SWING}",
            grid.most < rival.most and grid.in_turn < rival.in_turn,
            "; ".join(
                f"{load.method} {load.most / grid.most:.2f} times as much, "
                f"{load.in_turn / grid.in_turn:.2f} times over its steps"
                for load in loads.values()
            ),
        )
