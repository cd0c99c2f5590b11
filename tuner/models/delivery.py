"""The time of messages that all begin together: D, the composition of LogGP and max-rate.

D is the longest over ranks of alpha + (m_s - 1) max(o, g) + (m_r - 1) o + G v for m_s messages
sent, m_r received and v bytes sent or received, whichever are more. Alpha has the o of one of each;
to it comes what the bytes of a message alone take longer than those of a flood.
On-node and off-node messages have their own parameters, latencies pass at the same time, what
leaves a node obeys the max-rate bound, and where routes are known (simulated machines) all that the
busiest link on its way carries takes its time (Culler et al., PPoPP'93; Alexandrov et al., SPAA'95;
Gropp, Olson, Samfass, EuroMPI'16).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from tuner.models.costs import Costs
from tuner.models.system import Links
from tuner.simulation.routes import busiest
from tuner.stats import Floats
from tuner.structure.stages import Stage


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
        if not len(stage.sender):
            return 0.0
        size: Floats = np.multiply(stage.items, item_bytes, dtype=float)
        leaves = self._node[stage.sender] != self._node[stage.receiver]
        table = self.on.table(size)
        if self.off is not None:
            table[leaves] = self.off.table(size[leaves])
        ahead, step, receive, per_byte = table.T
        latency, most, late = np.zeros((3, self.procs))
        for rank in (stage.sender, stage.receiver):
            np.maximum.at(latency, rank, ahead)
        np.maximum.at(most, stage.sender, step)
        total = latency + self._sums(stage.sender, step) - most
        np.maximum.at(late, stage.receiver, receive)
        total += self._sums(stage.receiver, receive) - late
        moved = per_byte * size
        sent = self._sums(stage.sender[~leaves], moved[~leaves]) + np.maximum(
            self._sums(stage.sender[leaves], moved[leaves]),
            self._bound(stage.sender[leaves], size[leaves]),
        )
        total += np.maximum(sent, self._sums(stage.receiver, moved))
        carried = self._carried(stage.sender[leaves], stage.receiver[leaves], moved[leaves])
        total = np.maximum(total, latency + carried)
        return float(total.max())

    def _carried(
        self, sender: NDArray[np.int64], receiver: NDArray[np.int64], moved: Floats
    ) -> Floats:
        """Until the busiest link on the ways of each rank's messages has carried all of its own.

        moved: what the bytes of each message take; those of a slow protocol hold up a link longer.
        """
        latest = np.zeros(self.procs)
        if self._links is None or not len(moved):
            return latest
        nodes = math.prod(self._links.sizes)
        source, target = self._node[sender], self._node[receiver]
        pairs = np.bincount(source * nodes + target, weights=moved, minlength=nodes**2)
        traffic: Floats = pairs.reshape(nodes, nodes).astype(float)
        most = busiest(self._links.kind, self._links.sizes, traffic)
        for rank in (sender, receiver):
            np.maximum.at(latest, rank, most[source, target])
        return latest

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
