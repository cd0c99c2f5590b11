"""The times of exchange methods, from the messages of every stage.

`direct` takes D, `stfw` and `nap` the sum of D over their stages, as planning makes them. Items
that `stfw` forwards are copied once a stage, and messages of scattered items are packed before they
are sent (Selvitopi & Aykanat, SC'19; Bienz, Gropp, Olson, 2019). Libraries send the messages of a
vector collective all at once, as `direct` does, and none where there is nothing to send.
"""

from collections.abc import Sequence

import numpy as np

from tuner.inputs.structure.halo import Halo
from tuner.inputs.structure.stages import MessageStage
from tuner.models.delivery import RankNetwork

SENT_AS = {"neighbor": "direct", "alltoallv": "direct"}
"""The methods that leave the exchange to the MPI library, and the one with the same messages."""


def time_s(
    method: str,
    stages: Sequence[MessageStage],
    network: RankNetwork,
    item_bytes: float,
    packed_items: int,
    copy_s_per_byte: float,
) -> float:
    """Return the time of a method with these stages, and items of that size.

    packed_items: those of the rank that packs most (`packed`).
    """
    ended_s = np.zeros(network.procs)
    for stage in stages:
        ended_s = network.ended_s(stage, item_bytes, ended_s)
    total = float(ended_s.max())
    copied = packed_items
    if method.startswith("stfw"):  # a stage packs all that it sends
        copied = sum(_most_items(stage) for stage in stages)
    return total + copied * item_bytes * copy_s_per_byte


def packed(halo: Halo) -> int:
    """Return the most items that a rank packs, as its messages' items are not contiguous."""
    breaks = np.diff(halo.slots, prepend=-1) != 1
    breaks[halo.first[:-1]] = False
    of_message = np.repeat(np.arange(len(halo.items)), halo.items)
    scattered = np.bincount(of_message, weights=breaks, minlength=len(halo.items)) > 0
    items = np.where(scattered, halo.items, 0)
    return int(np.bincount(halo.source, weights=items, minlength=halo.procs).max(initial=0))


def _most_items(stage: MessageStage) -> int:
    """Return the most items that one rank sends."""
    return int(np.bincount(stage.sender, weights=stage.items).max(initial=0))
