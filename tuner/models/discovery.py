"""The times of discovery methods: finding the senders, and the payload's delivery.

The finding is counted round by round: MPI_Alltoall of 4 bytes as Bruck does it, or by P - 1
messages; a reduction that halves what it scatters; accumulating by small messages; barriers as lg P
rounds (Hoefler, Siebert, Lumsdaine, PPoPP'10, and the collectives they call).
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from tuner.inputs.structure.stages import MessageStage
from tuner.models.collectives import steps
from tuner.models.delivery import RankNetwork
from tuner.models.parameter import NOT_TOLD_FROM_ZERO, Estimate, NotIdentified
from tuner.stats import Floats

COUNT_BYTES = 4
_SMALL_BYTES = 8


@dataclass(frozen=True)
class Census:
    """The payload to deliver, `size_bytes` an item. A fence takes `fence_barriers` barriers."""

    network: RankNetwork
    payload: MessageStage
    size_bytes: float
    fence_barriers: float = 1.0

    @property
    def procs(self) -> int:
        """Return the number of ranks."""
        return self.network.procs

    @property
    def begin_s(self) -> Floats:
        """Return times at which all ranks begin at once."""
        return np.zeros(self.procs)

    def rounds_s(self, blocks: Iterable[tuple[int, int]], began_s: Floats) -> Floats:
        """Return when rounds end; in each, ranks send `size` bytes to the rank `distance` on."""
        rank = np.arange(self.procs)
        for distance, size in blocks:
            one = MessageStage(
                rank, (rank + distance) % self.procs, np.ones(self.procs, dtype=np.int64)
            )
            began_s = self.network.ended_s(one, size, began_s)
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
    blocks = ((1 << place, _with_bit(place, p) * COUNT_BYTES) for place in range(steps(p)))
    found = census.rounds_s(blocks, census.begin_s)
    pairwise = (p - 1) * each.step_s + each.alpha_s
    if pairwise < found.max():
        found = census.begin_s + pairwise
    return float(census.network.ended_s(census.payload, census.size_bytes, found).max())


def _with_bit(place: int, below: int) -> int:
    """Return how many of 0 … below - 1 have the bit, as sent in that round of Bruck's algorithm."""
    whole, rest = divmod(below, 2 << place)
    return (whole << place) + max(rest - (1 << place), 0)


def _pcx(census: Census) -> float:
    halves, left = [], census.procs
    while left > 1:
        left = -(-left // 2)
        halves.append((left, left * COUNT_BYTES))
    return _probed_s(census, census.rounds_s(halves, census.begin_s))


def _rsx(census: Census) -> float:
    each = census.network.slowest.of(_SMALL_BYTES)
    most = int(np.bincount(census.payload.sender).max(initial=0))
    # The process that owns a sum handles each contribution, as in most libraries.
    counted_s = each.alpha_s + max(most - 1, 0) * (each.step_s + each.receive_s)
    fenced = census.fence_s(census.begin_s) + counted_s
    return _probed_s(census, census.fence_s(fenced))


def _nbx(census: Census) -> float | NotIdentified:
    penalty = census.network.slowest.pair.synchronous
    lg = census.barrier_s(census.begin_s).max()
    found = _probed_s(census, census.begin_s) + float(lg)
    if isinstance(penalty, Estimate):
        return found + penalty.value
    return penalty if penalty.reason != NOT_TOLD_FROM_ZERO else found


def _probed_s(census: Census, began_s: Floats) -> float:
    """Return when methods end that receive each message when they have found it, one by one."""
    return census.network.probed_s(census.payload, census.size_bytes, began_s)


Formula = Callable[[Census], float | NotIdentified]

FORMULAS: dict[str, Formula] = {"pex": _pex, "pcx": _pcx, "rsx": _rsx, "nbx": _nbx}


def formula(spec: str) -> Formula | None:
    """Return the formula of a method, whichever barrier it uses; None where it has none."""
    return FORMULAS.get(spec.partition(":")[0])
