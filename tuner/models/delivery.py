"""The time of messages that all begin together: D, the composition of LogGP and max-rate.

D is the longest over ranks of alpha + (m_s - 1) max(o, g) + (m_r - 1) o + G v for m_s messages
sent, m_r received and v bytes sent or received, whichever are more. Alpha has the o of one of each;
the extra time of the bytes of a lone message over those of a flood is added to it. On-node and
off-node messages have their own parameters, latencies pass at the same time, and what leaves a node
obeys the max-rate bound (Culler et al., PPoPP'93; Alexandrov et al., SPAA'95; Gropp, Olson,
Samfass, EuroMPI'16). Where routes are known (simulated machines) each message is followed.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from tuner.inputs.structure.traffic import MessageStage
from tuner.machine.simulation.routes import carried
from tuner.models.costs import Costs
from tuner.models.system import Links
from tuner.stats import Floats, Integers


@dataclass(frozen=True)
class _Messages:
    """The messages of one stage.

    `moved_s` is the time of their bytes in a flood, `alone_s` in lone messages.
    """

    sender: Integers
    receiver: Integers
    size: Floats
    leaves: NDArray[np.bool_]  # whether a message leaves its node
    alpha_s: Floats
    step_s: Floats
    receive_s: Floats
    moved_s: Floats
    alone_s: Floats

    @property
    def ahead_s(self) -> Floats:
        """Return alpha, plus the extra time of a lone message's bytes over those of a flood."""
        return self.alpha_s + np.maximum(self.alone_s - self.moved_s, 0)


class RankNetwork:
    """The nodes of the ranks, and the costs of messages.

    `off` is needed when some messages leave their node.
    """

    def __init__(
        self, procs: int, ppn: int, on: Costs, off: Costs | None, links: Links | None = None
    ) -> None:
        self.procs, self.ppn = procs, ppn
        self.on, self.off, self._links = on, off, links
        self._rounds: dict[tuple[int, int], tuple[_Messages, float]] = {}

    @cached_property
    def _node(self) -> Integers:
        """Return the node of each rank; costs alone, of any number of ranks, do not need it."""
        return np.arange(self.procs) // self.ppn

    @property
    def slowest(self) -> Costs:
        """Return the costs of the pairs that decide when all ranks wait for each other."""
        return self.on if self.off is None else self.off

    def stays(self, stage: MessageStage) -> NDArray[np.bool_]:
        """Return whether each message stays on its node."""
        near: NDArray[np.bool_] = self._node[stage.sender] == self._node[stage.receiver]
        return near

    def ended_s(self, stage: MessageStage, item_bytes: float, began_s: Floats) -> Floats:
        """Return when each rank has ended a stage, from when it begins it.

        Without known routes that is D after the last begins.
        """
        if not len(stage.sender):
            return began_s
        messages = self._messages(stage, item_bytes)
        if self._links is not None:
            return self._followed(messages, self._links, began_s)
        return np.full(self.procs, began_s.max() + self._together(messages))

    def round_ended_s(self, distance: int, size_bytes: int, began_s: Floats) -> Floats:
        """Return when each rank has ended a round in which it sends to the rank `distance` on.

        Its costs are kept: barriers repeat the same rounds, whatever the size of other messages.
        """
        if (distance, size_bytes) not in self._rounds:
            rank = np.arange(self.procs)
            ones = np.ones(self.procs, dtype=np.int64)
            stage = MessageStage(rank, (rank + distance) % self.procs, ones)
            made = self._messages(stage, size_bytes)
            self._rounds[distance, size_bytes] = made, self._together(made)
        messages, took_s = self._rounds[distance, size_bytes]
        if self._links is not None:
            return self._followed(messages, self._links, began_s)
        return np.full(self.procs, began_s.max() + took_s)

    def probed_s(self, stage: MessageStage, item_bytes: float, began_s: Floats) -> float:
        """Return when the last rank ends a stage with messages received one after the other."""
        delivered = float(self.ended_s(stage, item_bytes, began_s).max())
        if not len(stage.sender):
            return delivered
        each = self._messages(stage, item_bytes)
        latency, late = np.zeros((2, self.procs))
        np.maximum.at(latency, each.receiver, each.alpha_s)
        np.maximum.at(late, each.receiver, each.receive_s)
        took = self._sums(each.receiver, each.receive_s + each.alone_s)
        return max(delivered, float((began_s + latency + took - late).max()))

    def _messages(self, stage: MessageStage, item_bytes: float) -> _Messages:
        size: Floats = np.multiply(stage.items, item_bytes, dtype=float)
        leaves = ~self.stays(stage)
        table = self.on.table(size)
        if self.off is not None:
            table[leaves] = self.off.table(size[leaves])
        alpha, step, receive, per_byte, beta = table.T
        return _Messages(
            *(stage.sender, stage.receiver, size, leaves),
            *(alpha, step, receive, per_byte * size, beta * size),
        )

    def _together(self, each: _Messages) -> float:
        """Return the longest total time over ranks of its messages."""
        latency, most, late = np.zeros((3, self.procs))
        for rank in (each.sender, each.receiver):
            np.maximum.at(latency, rank, each.ahead_s)
        np.maximum.at(most, each.sender, each.step_s)
        total = latency + self._sums(each.sender, each.step_s) - most
        np.maximum.at(late, each.receiver, each.receive_s)
        total += self._sums(each.receiver, each.receive_s) - late
        leaves, stays = each.leaves, ~each.leaves
        sent = self._sums(each.sender[stays], each.moved_s[stays]) + np.maximum(
            self._sums(each.sender[leaves], each.moved_s[leaves]),
            self._bound(each.sender[leaves], each.size[leaves]),
        )
        total += np.maximum(sent, self._sums(each.receiver, each.moved_s))
        return float(total.max())

    def _followed(self, each: _Messages, links: Links, began_s: Floats) -> Floats:
        """Return when each rank has sent its messages and handled all that it receives.

        It sends them one after the other, and then handles those of others as they come, which is
        when the busiest link on their way has carried all of its own; meanwhile processors work.
        """
        leaves = each.leaves
        busy = np.where(leaves, each.step_s, each.step_s + each.moved_s)
        sent = began_s + self._sums(each.sender, busy)
        arrived = began_s[each.sender] + _running(each.sender, busy) - each.step_s
        arrived += each.ahead_s - each.receive_s
        if leaves.any():
            source, target = (self._node[rank[leaves]] for rank in (each.sender, each.receiver))
            turn = _running(each.sender, np.ones(len(each.sender)))[leaves].astype(np.int64)
            moved = each.moved_s[leaves]
            shared = carried(links.kind, links.sizes, source, target, turn, moved)
            begun = arrived[leaves]
            arrived[leaves] = np.maximum(
                begun + each.moved_s[leaves],
                (began_s[each.sender] + each.ahead_s - each.receive_s)[leaves] + shared,
            )
        # All messages from each arrival on take their time; the latest of these bounds holds.
        order = np.argsort(-arrived, kind="stable")
        handling = _running(each.receiver[order], each.receive_s[order])
        ended = sent + self._sums(each.receiver, each.receive_s)
        np.maximum.at(ended, each.receiver[order], arrived[order] + handling)
        return ended

    def _sums(self, rank: Integers, values: Floats) -> Floats:
        sums: Floats = np.bincount(rank, weights=values, minlength=self.procs).astype(float)
        return sums

    def _bound(self, sender: Integers, size: Floats) -> Floats:
        """Return the time by the max-rate model of each rank's bytes to other nodes."""
        rates = self.off.rates(float(size.mean())) if self.off and len(size) else None
        if rates is None or rates.b_max is None:
            return np.zeros(self.procs)
        volume = self._sums(sender, size)
        nodes = int(self._node[-1]) + 1
        senders = np.bincount(self._node, weights=volume > 0, minlength=nodes)
        by_node = np.bincount(self._node, weights=volume, minlength=nodes)
        share = [count / rates.rising(count) for count in senders.astype(int).tolist()]
        own: Floats = volume * np.array(share)[self._node]
        if rates.b_node is None:
            return own
        shared: Floats = np.where(volume > 0, (by_node / rates.b_node)[self._node], 0)
        return np.maximum(own, shared)


def _running(group: Integers, values: Floats) -> Floats:
    """Return for each value the sum of its group's values up to it."""
    order = np.argsort(group, kind="stable")
    sums = np.cumsum(values[order])
    first = np.flatnonzero(np.diff(group[order], prepend=-1))
    counts = np.diff(np.append(first, len(order)))
    before = np.repeat(sums[first] - values[order][first], counts)
    found = np.empty(len(order))
    found[order] = sums - before
    return found
