"""The time of messages that all begin together: D, the composition of LogGP and max-rate.

D is the longest over ranks of alpha + (m_s - 1) max(o, g) + (m_r - 1) o + G v for m_s messages
sent, m_r received and v bytes sent or received, whichever are more. Alpha has the o of one of each;
to it comes what the bytes of a message alone take longer than those of a flood.
On-node and off-node messages have their own parameters, latencies pass at the same time, and what
leaves a node obeys the max-rate bound (Culler et al., PPoPP'93; Alexandrov et al., SPAA'95; Gropp,
Olson, Samfass, EuroMPI'16). Where routes are known (simulated machines) each message is followed.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tuner.models.costs import Costs
from tuner.models.system import Links
from tuner.simulation.routes import busiest
from tuner.stats import Floats
from tuner.structure.stages import Stage


@dataclass(frozen=True)
class _Messages:
    """Of one stage. `moved_s` is what the bytes take in a flood, `alone_s` those of one message."""

    sender: NDArray[np.int64]
    receiver: NDArray[np.int64]
    size: Floats
    leaves: NDArray[np.bool_]  # its node
    alpha_s: Floats
    step_s: Floats
    receive_s: Floats
    moved_s: Floats
    alone_s: Floats

    @property
    def ahead_s(self) -> Floats:
        """Alpha, and what the bytes of a message alone take longer than in a flood."""
        return self.alpha_s + np.maximum(self.alone_s - self.moved_s, 0)


class Network:
    """Who is on which node, and what messages cost; `off` is needed when some leave their node."""

    def __init__(
        self, procs: int, ppn: int, on: Costs, off: Costs | None, links: Links | None = None
    ) -> None:
        self.procs, self.ppn = procs, ppn
        self.on, self.off, self._links = on, off, links
        self._node = np.arange(procs) // ppn

    @property
    def slowest(self) -> Costs:
        """The costs of the pairs that decide when all ranks wait for each other."""
        return self.on if self.off is None else self.off

    def delivery_s(self, stage: Stage, item_bytes: float) -> float:
        """D of the messages of a stage."""
        return float(self.ended_s(stage, item_bytes, np.zeros(self.procs)).max())

    def ended_s(self, stage: Stage, item_bytes: float, began_s: Floats) -> Floats:
        """When each rank has ended a stage, from when it begins it.

        Without known routes that is D after the last begins.
        """
        if not len(stage.sender):
            return began_s
        messages = self._messages(stage, item_bytes)
        if self._links is not None:
            return self._followed(messages, self._links, began_s)
        return np.full(self.procs, began_s.max() + self._together(messages))

    def one_by_one_s(self, stage: Stage, item_bytes: float) -> float:
        """Of messages that are received one after the other, each when it is found."""
        if not len(stage.sender):
            return 0.0
        each = self._messages(stage, item_bytes)
        latency, late = np.zeros((2, self.procs))
        np.maximum.at(latency, each.receiver, each.alpha_s)
        np.maximum.at(late, each.receiver, each.receive_s)
        took = self._sums(each.receiver, each.receive_s + each.alone_s)
        return float((latency + took - late).max())

    def _messages(self, stage: Stage, item_bytes: float) -> _Messages:
        size: Floats = np.multiply(stage.items, item_bytes, dtype=float)
        leaves = self._node[stage.sender] != self._node[stage.receiver]
        table = self.on.table(size)
        if self.off is not None:
            table[leaves] = self.off.table(size[leaves])
        alpha, step, receive, per_byte, beta = table.T
        return _Messages(
            *(stage.sender, stage.receiver, size, leaves),
            *(alpha, step, receive, per_byte * size, beta * size),
        )

    def _together(self, each: _Messages) -> float:
        """The longest over ranks of what its messages take in all."""
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
        """A rank ends when its processor has, and when all that it receives has come.

        A message waits for its sender's others and for those that its receiver handles before it,
        or until the busiest link on its way has carried all of its own; meanwhile processors work.
        """
        leaves = each.leaves
        busy = np.where(leaves, each.step_s, each.step_s + each.moved_s)
        steps = self._sums(each.sender, busy)
        receives = self._sums(each.receiver, each.receive_s)
        waits = steps[each.sender] - busy + receives[each.receiver] - each.receive_s + each.moved_s
        if leaves.any():
            source, target = (self._node[rank[leaves]] for rank in (each.sender, each.receiver))
            carried = _carried(links, source, target, each.moved_s[leaves])
            waits[leaves] = np.maximum(waits[leaves], carried)
        ended = began_s + steps + receives
        np.maximum.at(ended, each.receiver, began_s[each.sender] + each.ahead_s + waits)
        return ended

    def _sums(self, rank: NDArray[np.int64], values: Floats) -> Floats:
        sums: Floats = np.bincount(rank, weights=values, minlength=self.procs).astype(float)
        return sums

    def _bound(self, sender: NDArray[np.int64], size: Floats) -> Floats:
        """What the max-rate model says of the bytes that each rank sends to other nodes."""
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


def _carried(
    links: Links, source: NDArray[np.int64], target: NDArray[np.int64], moved_s: Floats
) -> Floats:
    """Until the busiest link between a message's nodes has carried all that takes it.

    moved_s: what the bytes of each message take; those of a slow protocol hold up a link longer.
    """
    nodes = math.prod(links.sizes)
    pairs = np.bincount(source * nodes + target, weights=moved_s, minlength=nodes**2)
    traffic: Floats = pairs.reshape(nodes, nodes).astype(float)
    return busiest(links.kind, links.sizes, traffic)[source, target]
