"""Counts of node-aware exchange, `nap` (Bienz, Gropp, Olson, 2019).

Processes of a node gather what other nodes need, an element once on each process that sends it on;
parts of that go from node to node; their receivers distribute them. What stays on the node goes
directly, meanwhile. Messages that do not lie in one piece are packed; a part is received in place
when all of it is for its receiver alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from tuner.matrices.market import Indices
from tuner.structure.halo import Halo, group_starts
from tuner.structure.nap_deal import Parts, deal
from tuner.structure.traffic import Traffic

_Flags = npt.NDArray[np.bool_]


def nap(halo: Halo, ppn: int, sharing: bool) -> Traffic:
    """Every element goes once to a node, whoever needs it there."""
    traffic = Traffic(halo, ppn)
    wants = _Wants.of(halo, ppn)
    items = _Items.of(wants, halo, ppn, sharing)
    _gather(items, traffic)
    _cross(items, halo, ppn, traffic)
    _distribute(wants, items, traffic)
    return traffic


@dataclass(frozen=True)
class _Wants:
    """Which process of another node wants which element, by nodes, element and process."""

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
        """The first process that wants an element on its node."""
        return group_starts(self.pair * (int(self.slot.max(initial=0)) + 1) + self.slot)

    @cached_property
    def item(self) -> Indices:
        """The number of what is wanted, among all that goes between nodes."""
        return np.cumsum(self.is_first) - 1


@dataclass(frozen=True)
class _Items:
    """What goes between nodes, by nodes and element, and the part that each item belongs to."""

    slot: Indices
    source: Indices
    part: Indices
    parts: Parts

    @staticmethod
    def of(wants: _Wants, halo: Halo, ppn: int, sharing: bool) -> _Items:
        slot, pair = wants.slot[wants.is_first], wants.pair[wants.is_first]
        source = np.searchsorted(halo.begins, slot, side="right") - 1
        starts = np.flatnonzero(group_starts(pair))
        origin, target = np.divmod(pair[starts], wants.nodes)
        volumes = np.diff(starts, append=len(slot))
        parts = deal(origin, target, volumes, halo.procs, ppn, sharing)
        return _Items(slot, source, np.repeat(np.arange(len(parts.items)), parts.items), parts)


def _gather(items: _Items, traffic: Traffic) -> None:
    """Elements go to the process of their node that sends them on, once for all its parts."""
    sender = items.parts.sender[items.part]
    away = np.flatnonzero(items.source != sender)
    # The slot tells the source; of what goes to several nodes, the first of them counts.
    codes = items.slot[away] * traffic.procs + sender[away]
    once = away[np.sort(np.unique(codes, return_index=True)[1])]
    traffic.copied += len(away) - len(once)
    traffic.buffer += np.bincount(sender[once], minlength=traffic.procs)
    _send_runs(items.source[once], sender[once], items.slot[once], traffic)


def _cross(items: _Items, halo: Halo, ppn: int, traffic: Traffic) -> None:
    """Parts go to the other node, and messages on the node beside them."""
    parts = items.parts
    last = items.slot[parts.begin + parts.items - 1]
    own = items.source == parts.sender[items.part]
    owned = np.bincount(items.part[own], minlength=len(parts.items))
    in_place = (owned == parts.items) & (last - items.slot[parts.begin] + 1 == parts.items)
    here = halo.source // ppn == halo.destination // ppn
    packed = here & ~halo.together
    traffic.add_stage(
        np.concatenate((parts.sender, halo.source[here])),
        np.concatenate((parts.receiver, halo.destination[here])),
        np.concatenate((parts.items, halo.items[here])),
    )
    traffic.copied += int(owned[~in_place].sum() + halo.items[packed].sum())


def _distribute(wants: _Wants, items: _Items, traffic: Traffic) -> None:
    """What a part has for other processes of the node goes to them."""
    parts = items.parts
    part = items.part[wants.item]
    receiver = parts.receiver[part]
    here = wants.destination == receiver
    kept = np.bincount(part[~here], minlength=len(parts.items)) > 0
    passed_on = np.unique(wants.item[~here])
    traffic.buffer += np.bincount(parts.receiver[items.part[passed_on]], minlength=traffic.procs)
    traffic.copied += int(np.count_nonzero(here & kept[part]))
    # A receiver keeps its parts one after the other, by origin and share.
    order = np.flatnonzero(kept)
    order = order[np.argsort(parts.receiver[order], kind="stable")]
    base = np.zeros(len(kept), dtype=np.int64)
    base[order] = np.cumsum(parts.items[order]) - parts.items[order]
    place = base[part] + wants.item - parts.begin[part]
    away = np.flatnonzero(~here)
    by_place = away[np.argsort(place[away], kind="stable")]
    _send_runs(receiver[by_place], wants.destination[by_place], place[by_place], traffic)


def _send_runs(sender: Indices, receiver: Indices, place: Indices, traffic: Traffic) -> None:
    """A stage of one message for each pair, of items in their order; packed unless in one run."""
    order = np.lexsort((receiver, sender))
    pair = sender[order] * traffic.procs + receiver[order]
    starts = np.flatnonzero(group_starts(pair))
    items = np.diff(starts, append=len(pair))
    goes_on = np.diff(place[order], prepend=-1) == 1
    goes_on[starts] = True
    runs_on = np.add.reduceat(goes_on, starts, dtype=np.int64) if len(starts) else items
    packed = runs_on < items
    sender, receiver = np.divmod(pair[starts], traffic.procs)
    traffic.add_stage(sender, receiver, items)
    traffic.copied += int(items[packed].sum())
