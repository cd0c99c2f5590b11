"""The messages of node-aware exchange, `nap` (Bienz, Gropp, Olson, 2019).

Processes of a node gather the elements that other nodes need, an element once on each process that
sends it on; parts of that go from node to node; their receivers distribute them. Messages that stay
on the node go directly, meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from tuner.inputs.matrices.market import Indices
from tuner.inputs.structure.halo import Halo, group_starts
from tuner.inputs.structure.nap_deal import Parts, deal
from tuner.inputs.structure.traffic import MessageStage

_Flags = npt.NDArray[np.bool_]


def nap(halo: Halo, ppn: int, sharing: bool) -> Iterator[MessageStage]:
    """Yield messages where every element goes once to a node, however many ranks need it there."""
    wants = _Wants.of(halo, ppn)
    items = _Items.of(wants, halo, ppn, sharing)
    yield _gather(items, halo)
    yield _cross(items, halo, ppn)
    yield _distribute(wants, items, halo.procs)


@dataclass(frozen=True)
class _Wants:
    """The elements wanted by processes of other nodes, by nodes, element and process."""

    pair: Indices  # origin node x nodes + target node
    slot: Indices
    destination: Indices
    nodes: int

    @staticmethod
    def of(halo: Halo, ppn: int) -> _Wants:
        nodes = -(-halo.procs // ppn)
        origin, target = halo.source // ppn, halo.destination // ppn
        away = np.repeat(origin != target, halo.items)
        pair = np.repeat(origin * nodes + target, halo.items)[away]
        count = int(halo.begins[-1])
        codes = pair * count + halo.slots[away]
        codes = codes * ppn + np.repeat(halo.destination % ppn, halo.items)[away]
        codes.sort()
        codes, local = np.divmod(codes, ppn)
        pair, slot = np.divmod(codes, max(count, 1))
        return _Wants(pair, slot, pair % nodes * ppn + local, nodes)

    @cached_property
    def is_first(self) -> _Flags:
        """Return whether each process is the first that wants the element on its node."""
        return group_starts(self.pair * (int(self.slot.max(initial=0)) + 1) + self.slot)

    @cached_property
    def item(self) -> Indices:
        """Return the number of each wanted element among all that go between nodes."""
        return np.cumsum(self.is_first) - 1


@dataclass(frozen=True)
class _Items:
    """The elements that go between nodes, by nodes and element, and the part of each item."""

    slot: Indices
    part: Indices
    parts: Parts

    @staticmethod
    def of(wants: _Wants, halo: Halo, ppn: int, sharing: bool) -> _Items:
        slot, pair = wants.slot[wants.is_first], wants.pair[wants.is_first]
        starts = np.flatnonzero(group_starts(pair))
        origin, target = np.divmod(pair[starts], wants.nodes)
        volumes = np.diff(starts, append=len(slot))
        parts = deal(origin, target, volumes, halo.procs, ppn, sharing)
        return _Items(slot, np.repeat(np.arange(len(parts.items)), parts.items), parts)


def _gather(items: _Items, halo: Halo) -> MessageStage:
    """Send elements to the process of their node that sends them on, once for all its parts."""
    sender = items.parts.sender[items.part]
    away = np.flatnonzero(halo.owner(items.slot) != sender)
    codes = items.slot[away] * halo.procs + sender[away]  # the slot determines the source
    codes.sort()
    slot, sender = np.divmod(codes[group_starts(codes)], halo.procs)
    return _stage(halo.owner(slot), sender, sender, halo.procs)


def _cross(items: _Items, halo: Halo, ppn: int) -> MessageStage:
    """Send parts to the other node, and messages on the node beside them."""
    parts = items.parts
    here = halo.source // ppn == halo.destination // ppn
    return MessageStage(
        np.concatenate((parts.sender, halo.source[here])),
        np.concatenate((parts.receiver, halo.destination[here])),
        np.concatenate((parts.items, halo.items[here])),
    )


def _distribute(wants: _Wants, items: _Items, procs: int) -> MessageStage:
    """Send the elements of a part to the other processes of the node that want them."""
    receiver = items.parts.receiver[items.part[wants.item]]
    away = wants.destination != receiver
    passed_on = wants.item[away]
    passed_on = passed_on[group_starts(passed_on)]
    holder = items.parts.receiver[items.part[passed_on]]
    return _stage(receiver[away], wants.destination[away], holder, procs)


def _stage(sender: Indices, receiver: Indices, holder: Indices, procs: int) -> MessageStage:
    """Return one message for each pair, given a pair, or who holds it meanwhile, for each item."""
    pairs, items = np.unique(sender * procs + receiver, return_counts=True)
    return MessageStage(*np.divmod(pairs, procs), items, np.bincount(holder, minlength=procs))
