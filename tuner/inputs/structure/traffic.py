"""The messages of a method, stage by stage, and their sums as statistics that the library keeps."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tuner.inputs.matrices.market import Indices
from tuner.inputs.structure.halo import Halo


class MessageStage(NamedTuple):
    """The messages of one stage; it begins when those of the stage before have arrived.

    `forwarded` are the items that each process receives to be passed on.
    """

    sender: Indices
    receiver: Indices
    items: Indices
    forwarded: Indices | int = 0

    @property
    def most_sent(self) -> int:
        """Return the most items that one rank sends."""
        return int(np.bincount(self.sender, self.items).max(initial=0))

    @property
    def most_moved(self) -> int:
        """Return the most items that one rank sends or receives."""
        return max(self.most_sent, int(np.bincount(self.receiver, self.items).max(initial=0)))


@dataclass(frozen=True)
class MessageStatistics:
    """The statistics of a method's messages at each execution, named as in raw files of launches.

    `buffer_bytes` is the largest over processes of the sum of original sends, receives and what is
    forwarded. Messages on and off the node are those with `ppn` processes per node, in the order of
    ranks.
    """

    stages: int
    mmax: int
    mavg: float
    vavg_bytes: float
    vmax_bytes: int
    buffer_bytes: int
    hop_bytes: int
    on_node_messages: int
    off_node_messages: int
    on_node_bytes: int
    off_node_bytes: int
    off_node_mmax: int
    off_node_vmax_bytes: int


class Traffic:
    """The messages of all stages, and what each process holds meanwhile. Sizes are in items."""

    def __init__(self, halo: Halo, ppn: int, stages: Iterable[MessageStage]) -> None:
        self.procs = halo.procs
        self.stages = 0
        self._node = np.arange(self.procs, dtype=np.int64) // ppn
        self._messages, self._items, self._off_messages, self._off_items = np.zeros(
            (4, self.procs), dtype=np.int64
        )
        self._buffer = per_process(halo.source, halo.items, self.procs)
        self._buffer += per_process(halo.destination, halo.items, self.procs)
        for stage in stages:
            self._add(stage)

    def _add(self, stage: MessageStage) -> None:
        sender, receiver, items, forwarded = stage
        self.stages += 1
        off = self._node[sender] != self._node[receiver]
        self._messages += np.bincount(sender, minlength=self.procs)
        self._items += per_process(sender, items, self.procs)
        self._off_messages += np.bincount(sender[off], minlength=self.procs)
        self._off_items += per_process(sender[off], items[off], self.procs)
        self._buffer += forwarded

    def statistics(self, item_bytes: int) -> MessageStatistics:
        """Return all statistics, with items of that size."""
        messages, items = int(self._messages.sum()), int(self._items.sum())
        off_messages, off_items = int(self._off_messages.sum()), int(self._off_items.sum())
        return MessageStatistics(
            stages=self.stages,
            mmax=int(self._messages.max()),
            mavg=messages / self.procs,
            vavg_bytes=items * item_bytes / self.procs,
            vmax_bytes=int(self._items.max()) * item_bytes,
            buffer_bytes=int(self._buffer.max()) * item_bytes,
            hop_bytes=items * item_bytes,
            on_node_messages=messages - off_messages,
            off_node_messages=off_messages,
            on_node_bytes=(items - off_items) * item_bytes,
            off_node_bytes=off_items * item_bytes,
            off_node_mmax=int(self._off_messages.max()),
            off_node_vmax_bytes=int(self._off_items.max()) * item_bytes,
        )


def per_process(process: Indices, items: Indices, procs: int) -> Indices:
    """Return the sum of the items of each process."""
    return np.bincount(process, weights=items, minlength=procs).astype(np.int64)
