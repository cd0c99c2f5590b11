"""Counts of store-and-forward, `stfw` (STFW_n of Selvitopi & Aykanat, SC'19).

The library plans it rank by rank; here all ranks are planned at once, stage by stage. A message of
a stage is sent from where its parcels lie when all are the sender's own or all lie side by side
among what it forwards, else packed. It is received in place when every parcel has arrived, else
kept in the incoming buffer.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from tuner.matrices.market import Indices
from tuner.structure.grid import Grid
from tuner.structure.halo import Halo, group_starts
from tuner.structure.traffic import Traffic

_Flags = npt.NDArray[np.bool_]
_Scalar = TypeVar("_Scalar", bound=np.generic)

_OWN = -1  # the offset of a parcel that lies in the send buffer of its source


def stfw(halo: Halo, grid: Grid, ppn: int) -> Traffic:
    """Every message is a parcel that travels along the grid's coordinates, the first one first."""
    traffic = Traffic(halo, ppn)
    # The order of parcels within a message: by route, then by source.
    order = np.lexsort((halo.source, grid.route_keys[halo.destination]))
    source, destination, items = halo.source[order], halo.destination[order], halo.items[order]
    offset = np.full(len(items), _OWN, dtype=np.int64)
    incoming = np.zeros(halo.procs, dtype=np.int64)
    at = source
    for stage in range(1, len(grid.sizes) + 1):
        after = grid.route(source, destination, stage)
        moving, first = _sort_by_message(at, after, halo.procs)
        messages = _Messages(
            first, at[moving[first]], after[moving[first]], items[moving], offset[moving]
        )
        traffic.add_stage(messages.sender, messages.receiver, messages.items)
        packed = messages.are_packed()
        arrived = destination[moving] == after[moving]
        kept = messages.are_kept(arrived)
        offset[moving] = messages.place(kept, incoming)
        incoming += traffic.per_process(messages.receiver[kept], messages.items[kept])
        unpacked = items[moving[arrived & messages.told(kept)]].sum()
        traffic.copied += int(messages.items[packed].sum()) + int(unpacked)
        traffic.buffer += traffic.per_process(after[moving[~arrived]], items[moving[~arrived]])
        at = after
    return traffic


def _sort_by_message(at: Indices, after: Indices, procs: int) -> tuple[Indices, Indices]:
    """The parcels that move, by sender and receiver and else in their order; where each begins."""
    moving = np.flatnonzero(at != after)
    # Sorting numbers is several times faster than sorting their indices.
    bits = len(at).bit_length()
    codes = (at[moving] * procs + after[moving]) << bits
    codes |= moving
    codes.sort()
    return codes & ((1 << bits) - 1), np.flatnonzero(group_starts(codes >> bits))


@dataclass(frozen=True)
class _Messages:
    """The messages of a stage by sender and receiver, with their parcels one after another."""

    first: Indices  # parcel of each
    sender: Indices
    receiver: Indices
    parcel_items: Indices
    parcel_offset: Indices  # in the sender's incoming buffer, or _OWN

    @cached_property
    def parcels(self) -> Indices:
        """How many each message has."""
        return np.diff(self.first, append=len(self.parcel_items))

    @cached_property
    def items(self) -> Indices:
        """Of each message."""
        return self._sums(self.parcel_items)

    def told(self, values: npt.NDArray[_Scalar]) -> npt.NDArray[_Scalar]:
        """What is known of messages, told of their parcels."""
        return np.repeat(values, self.parcels)

    def are_packed(self) -> _Flags:
        """Which are neither all the sender's own nor one piece of what it forwards."""
        own = self._sums(self.parcel_offset == _OWN)
        continues = np.zeros(len(self.parcel_items), dtype=np.bool_)
        ends = self.parcel_offset + self.parcel_items
        np.equal(self.parcel_offset[1:], ends[:-1], out=continues[1:])
        continues[self.first] = True
        in_one_piece = self._sums(continues) == self.parcels
        packed: _Flags = (own < self.parcels) & ((own > 0) | ~in_one_piece)
        return packed

    def are_kept(self, arrived: _Flags) -> _Flags:
        """Which bring a parcel that has to go on."""
        return self._sums(arrived) < self.parcels

    def place(self, kept: _Flags, incoming: Indices) -> Indices:
        """Where parcels lie at the receiver, whose kept messages follow what it has, by sender."""
        order = np.flatnonzero(kept)
        order = order[np.argsort(self.receiver[order], kind="stable")]
        begins = np.zeros(len(kept), dtype=np.int64)
        begins[order] = _sums_before(self.items[order], group_starts(self.receiver[order]))
        begins += incoming[self.receiver]
        starts = np.zeros(len(self.parcel_items), dtype=np.bool_)
        starts[self.first] = True
        return self.told(begins) + _sums_before(self.parcel_items, starts)

    def _sums(self, values: npt.NDArray[np.generic]) -> Indices:
        """Sums of the parcels' values, for each message."""
        return np.add.reduceat(values, self.first, dtype=np.int64)


def _sums_before(values: Indices, starts: _Flags) -> Indices:
    """The sum of the values before each in its group."""
    before: Indices = np.cumsum(values) - values
    before -= before[starts][np.cumsum(starts) - 1]
    return before
