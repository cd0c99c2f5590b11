"""The times of discovery methods: finding the senders, and the payload's delivery.

The finding is counted round by round: MPI_Alltoall of 4 bytes as Bruck does it, or by P - 1
messages; a reduction that halves what it scatters; accumulating by small messages; barriers as lg P
rounds (Hoefler, Siebert, Lumsdaine, PPoPP'10, and the collectives they call). Methods that forward
take, at each stage, as many messages as they have partners, which share the bytes of the busiest
rank evenly (Selvitopi & Aykanat, SC'19; Bienz, Gropp, Olson, 2019).
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

import numpy as np

from tuner.domain.operations import arguments
from tuner.inputs.structure.grid import Grid
from tuner.inputs.structure.methods import stfw_grid, stfw_specs
from tuner.inputs.structure.traffic import MessageStage
from tuner.models.algorithms import COUNT_BYTES, steps, with_bit
from tuner.models.delivery import RankNetwork
from tuner.models.exchange import through_memory_s
from tuner.models.parameter import Estimate, NotIdentified
from tuner.stats import Floats

_SMALL_BYTES = 8
_HEADER_BYTES = 16  # of each part that is forwarded
_SLIP_BYTES = 48  # the largest message that `put` puts


@dataclass(frozen=True)
class Census:
    """The payload to deliver, `size_bytes` an item. A fence takes `fence_barriers` barriers."""

    network: RankNetwork
    payload: MessageStage
    size_bytes: float
    fence_barriers: float = 1.0
    copy_s_per_byte: float = 0.0

    @property
    def procs(self) -> int:
        """Return the number of ranks."""
        return self.network.procs

    @property
    def begin_s(self) -> Floats:
        """Return times at which all ranks begin at once."""
        return np.zeros(self.procs)

    @property
    def degree(self) -> int:
        """Return the most messages that a rank sends."""
        return int(np.bincount(self.payload.sender).max(initial=0))

    @property
    def parts_bytes(self) -> float:
        """Return the most bytes that a rank sends or receives, with their headers."""
        return self.payload.most_moved * self.size_bytes + self.degree * _HEADER_BYTES

    def forward_s(self, partners: int, local: bool) -> float:
        """Return the time of a stage that forwards parts to so many partners, found one by one.

        local: they are on the same node. A rank's own share of the bytes stays, the rest is copied.
        """
        if partners == 0:
            return 0.0
        moved_bytes = self.parts_bytes * partners / (partners + 1)
        each = (self.network.on if local else self.network.slowest).of(moved_bytes / partners)
        later_s = (partners - 1) * (each.step_s + each.receive_s)
        return each.alpha_s + later_s + moved_bytes * (each.beta_s + self.copy_s_per_byte)

    def forward_by_memory_s(self) -> float:
        """Return the time of a stage on a node by its memory: a small message's, and two copies."""
        ppn = min(self.network.ppn, self.procs)
        copied_bytes = 2 * self.parts_bytes * (ppn - 1) / ppn
        return self.network.on.of(_SMALL_BYTES).alpha_s + copied_bytes * self.copy_s_per_byte

    def rounds_s(self, blocks: Iterable[tuple[int, int]], began_s: Floats) -> Floats:
        """Return when rounds end; in each, ranks send `size` bytes to the rank `distance` on."""
        for distance, size in blocks:
            began_s = self.network.round_ended_s(distance, size, began_s)
        return began_s

    def barrier_s(self, began_s: Floats) -> Floats:
        """Return when a barrier by dissemination ends."""
        lg = steps(self.procs)
        return self.rounds_s(((1 << place, 1) for place in range(lg)), began_s)

    def fence_s(self, began_s: Floats) -> Floats:
        """Return when a fence ends, after which all that was begun before is done everywhere."""
        alone = float(self.barrier_s(self.begin_s).max())
        return self.barrier_s(began_s) + (self.fence_barriers - 1) * alone


def _pex(census: Census) -> float:
    p, each = census.procs, census.network.slowest.of(_SMALL_BYTES)
    blocks = ((1 << place, with_bit(place, p) * COUNT_BYTES) for place in range(steps(p)))
    found = census.rounds_s(blocks, census.begin_s)
    pairwise = (p - 1) * each.step_s + each.alpha_s
    if pairwise < found.max():
        found = census.begin_s + pairwise
    return float(census.network.ended_s(census.payload, census.size_bytes, found).max())


def _pcx(census: Census) -> float:
    halves, left = [], census.procs
    while left > 1:
        left = -(-left // 2)
        halves.append((left, left * COUNT_BYTES))
    return _probed_s(census, census.rounds_s(halves, census.begin_s))


def _rsx(census: Census) -> float:
    fenced = census.fence_s(census.begin_s) + _one_sided_s(census)
    return _probed_s(census, census.fence_s(fenced))


def _put(census: Census) -> float:
    fenced = census.fence_s(census.begin_s + _one_sided_s(census))
    short = census.payload.items * census.size_bytes <= _SLIP_BYTES
    return float(fenced.max()) if short.all() else _probed_s(census, fenced)


def _one_sided_s(census: Census) -> float:
    """Return the time of a small one-sided operation on each receiver.

    The process that owns the memory handles each, as in most libraries.
    """
    each = census.network.slowest.of(_SMALL_BYTES)
    return each.alpha_s + max(census.degree - 1, 0) * (each.step_s + each.receive_s)


def _nbx(census: Census) -> float | NotIdentified:
    return _consensus(census, _probed_s(census, census.begin_s))


def _consensus(census: Census, sent_s: float) -> float | NotIdentified:
    """Return the time of messages, and of the consensus that all of them have arrived."""
    penalty = census.network.slowest.pair.synchronous
    found = sent_s + float(census.barrier_s(census.begin_s).max())
    if isinstance(penalty, Estimate):
        return found + penalty.value
    return found if penalty.is_zero else penalty


def _dense(census: Census) -> float:
    each = census.network.slowest.of(_SMALL_BYTES)
    empty = census.procs - 1 - census.degree
    later_s = each.step_s + each.receive_s
    if census.degree:
        return _probed_s(census, census.begin_s) + empty * later_s
    return each.alpha_s + (empty - 1) * later_s if empty else 0.0


def _shared(census: Census) -> float:
    """Return the time until bulletins are seen, as a small message takes, and of two copies."""
    seen_s = census.network.slowest.of(_SMALL_BYTES).alpha_s
    return seen_s + through_memory_s(
        census.payload, census.network, census.size_bytes, census.copy_s_per_byte, census.begin_s
    )


def _stfw(grid: Grid, census: Census) -> float:
    total = 0.0
    for stage, size in enumerate(grid.sizes, 1):
        partners = grid.most_neighbors(stage)
        local = partners < size and census.network.ppn % grid.strides[stage] == 0
        total += census.forward_s(partners, local)
    return total


def _nap(find: str, by_memory: bool, census: Census) -> float | NotIdentified:
    """Return the time of both steps on the nodes, and of the letters between them."""
    ppn = min(census.network.ppn, census.procs)
    nodes = -(-census.procs // ppn)
    on_node_s = census.forward_by_memory_s() if by_memory else census.forward_s(ppn - 1, local=True)
    if nodes == 1:
        return on_node_s
    sizes = [ppn] * (nodes - 1) + [census.procs - (nodes - 1) * ppn]
    share = max(_dealt(nodes, node, size) for node, size in enumerate(sizes))
    letters = share if find == "dense" else min(share, census.degree)
    crossed_s = 2 * on_node_s + census.forward_s(letters, local=False)
    if find == "dense":
        return crossed_s
    if find == "put":
        return crossed_s + float(census.fence_s(census.begin_s).max())
    return _consensus(census, crossed_s)


def _dealt(nodes: int, node: int, size: int) -> int:
    """Return the most nodes that a rank of a node of so many ranks gets; its own is not dealt."""
    each, more = divmod(nodes, size)  # the first places get one more
    return each - 1 if size == 1 else each + (more > 1 or (more == 1 and node % size != 0))


def _probed_s(census: Census, began_s: Floats) -> float:
    """Return when methods end that receive each message when they have found it, one by one."""
    return census.network.probed_s(census.payload, census.size_bytes, began_s)


Formula = Callable[[Census], float | NotIdentified]

FORMULAS: dict[str, Formula] = {
    "pex": _pex,
    "pcx": _pcx,
    "rsx": _rsx,
    "put": _put,
    "nbx": _nbx,
    "dense": _dense,
    "shared": _shared,
    "nap": partial(_nap, "consensus", False),
}
"""Formulas by method; that of `stfw` depends on its grid, others of `nap` on its parameters."""

_BARRIERS = ("ibarrier", "dissemination")
_PARAMETERS: dict[str, dict[str, tuple[str, ...]]] = {
    "nbx": {"barrier": _BARRIERS},
    "nap": {"barrier": _BARRIERS, "find": ("consensus", "dense", "put"), "node": ("mpi", "shared")},
}

_NAP_ON_NODES = ("nap:find=dense", "nap:find=put", "nap:find=dense,node=shared")


def formula(spec: str, procs: int) -> Formula | None:
    """Return the formula of a method, whichever barrier it uses; None where it has none.

    Raise MethodError for a grid that there is not on so many ranks.
    """
    name = spec.partition(":")[0]
    if name == "stfw":
        return partial(_stfw, stfw_grid(spec, procs))
    given = arguments(spec)
    known = _PARAMETERS.get(name, {})
    if given is None or any(value not in known.get(key, ()) for key, value in given.items()):
        return None
    if name == "nap":
        return partial(_nap, given.get("find", "consensus"), given.get("node") == "shared")
    return FORMULAS.get(name)


def methods(procs: int, ppn: int) -> list[str]:
    """Return the specs that the library would try, with either barrier as one."""
    names = [name for name in FORMULAS if name != "shared" or procs <= ppn]
    more = [spec for spec in _NAP_ON_NODES if ppn > 1 or "shared" not in spec]
    return [*names, *more * (2 < procs > ppn), *stfw_specs(procs)]
