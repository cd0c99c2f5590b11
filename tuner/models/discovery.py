"""The times of discovery methods: finding the senders, and X, the payload's delivery.

G, o, g and alpha are those of 8-byte messages between the slowest pairs, k the most messages that a
rank sends; Hoefler, Siebert, Lumsdaine, PPoPP'10, and the costs of the collectives they call.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tuner.models.collectives import steps
from tuner.models.costs import Costs, Message
from tuner.models.parameter import NOT_TOLD_FROM_ZERO, Estimate, NotIdentified

COUNT_BYTES = 4
_SMALL_BYTES = 8


@dataclass(frozen=True)
class Census:
    """What finding out takes, before or beside a delivery of payload_s seconds.

    probed_s is that of methods which receive a message when they have found it, one by one.
    """

    costs: Costs
    procs: int
    most_messages: int
    payload_s: float
    probed_s: float

    @property
    def small(self) -> Message:
        """The costs of a small message."""
        return self.costs.of(_SMALL_BYTES)


def _pex(census: Census) -> float:
    each, p, lg = census.small, census.procs, steps(census.procs)
    pairwise = (p - 1) * each.step_s + each.alpha_s
    bruck = lg * each.alpha_s + lg * (p / 2) * COUNT_BYTES * each.beta_s
    return min(pairwise, bruck) + census.payload_s


def _pcx(census: Census) -> float:
    each, p, lg = census.small, census.procs, steps(census.procs)
    block = COUNT_BYTES * each.beta_s
    return block * (p - 1) + max(each.alpha_s - block, 0) * lg + census.probed_s


def _rsx(census: Census) -> float:
    each, lg = census.small, steps(census.procs)
    remote = census.most_messages * each.step_s + each.alpha_s
    return 2 * lg * each.alpha_s + remote + census.probed_s


def _nbx(census: Census) -> float | NotIdentified:
    penalty = census.costs.synchronous
    barrier = steps(census.procs) * census.small.alpha_s
    if isinstance(penalty, Estimate):
        return census.probed_s + penalty.value + barrier
    return penalty if penalty.reason != NOT_TOLD_FROM_ZERO else census.probed_s + barrier


Formula = Callable[[Census], float | NotIdentified]

FORMULAS: dict[str, Formula] = {
    "pex": _pex,
    "pcx": _pcx,
    "rsx": _rsx,
    "nbx": _nbx,
}


def formula(spec: str) -> Formula | None:
    """Of a method; which barrier it uses makes no difference. None: it has no formula."""
    return FORMULAS.get(spec.partition(":")[0])
