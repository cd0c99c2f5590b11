"""The times of exchange methods, from the messages of every stage.

`direct` takes D, `stfw` and `nap` the sum of D over their stages, as planning makes them. Items
that `stfw` forwards are copied once a stage, and messages of scattered items are packed before they
are sent (Selvitopi & Aykanat, SC'19; Bienz, Gropp, Olson, 2019). Libraries send the messages of a
vector collective all at once, as `direct` does, and none where there is nothing to send. `shared`
copies small messages within nodes twice, and sends others as `direct` does; `nap:node=shared` does
so with those of its stages. `lent` copies each item that is sent once, and each that is received.
"""

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tuner.domain.operations import SHARED_BYTES, by_memory
from tuner.inputs.structure.halo import Halo
from tuner.inputs.structure.traffic import MessageStage
from tuner.models.delivery import RankNetwork
from tuner.models.parameter import NotIdentified
from tuner.stats import Floats

SENT_AS = dict.fromkeys(("neighbor", "alltoallv", "shared", "lent"), "direct")
"""Methods, and the one that delivers the same messages."""

_SMALL_BYTES = 8


def sent_as(spec: str) -> str:
    """Return the spec of the method that delivers the same messages, which can be counted."""
    return SENT_AS.get(spec, re.sub(r"^(nap.*)[:,]node=(?:mpi|shared)$", r"\1", spec))


def has_layout(spec: str, procs: int, ppn: int) -> bool:
    """Return whether there are the nodes that a method is for."""
    several = procs > ppn
    if spec == "lent":
        return not several
    if spec == "shared":
        return ppn > 1 or not several
    return not by_memory(spec) or (several and ppn > 1)


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
        copied = sum(stage.most_sent for stage in stages)
    return total + copied * item_bytes * copy_s_per_byte


def shared_s(
    halo: Halo,
    payload: MessageStage,
    network: RankNetwork,
    item_bytes: float,
    copy_s_per_byte: float,
) -> float | NotIdentified:
    """Return the time of `shared`, whose payload is that of `direct`."""
    fits = _fit_slots(payload, network, item_bytes)
    if not fits.any():
        return _none_fits(network)
    began_s = np.zeros(network.procs)
    ended_s = _copied_ended_s(payload, fits, network, item_bytes, copy_s_per_byte, began_s)
    packed_bytes = packed(halo, ~fits) * item_bytes
    seen_s = network.on.of(_SMALL_BYTES).alpha_s
    return seen_s + float(ended_s.max()) + packed_bytes * copy_s_per_byte


def lent_s(halo: Halo, network: RankNetwork, item_bytes: float, copy_s_per_byte: float) -> float:
    """Return the time of `lent`."""
    if not len(halo.items):
        return 0.0
    sent = np.bincount(halo.owner(np.unique(halo.slots)), minlength=halo.procs)
    received = np.bincount(halo.destination, halo.items, halo.procs)
    copied_bytes = float(np.max(sent + received)) * item_bytes
    return network.slowest.of(_SMALL_BYTES).alpha_s + copied_bytes * copy_s_per_byte


def nap_by_memory_s(
    halo: Halo,
    stages: Sequence[MessageStage],
    network: RankNetwork,
    item_bytes: float,
    copy_s_per_byte: float,
) -> float | NotIdentified:
    """Return the time of `nap:node=shared`, whose stages are those of `nap`."""
    ended_s = np.zeros(network.procs)
    seen_s = network.on.of(_SMALL_BYTES).alpha_s
    any_fits = False
    for stage in stages:
        fits = _fit_slots(stage, network, item_bytes)
        ended_s = _copied_ended_s(stage, fits, network, item_bytes, copy_s_per_byte, ended_s)
        if fits.any():
            ended_s = ended_s + seen_s
            any_fits = True
    if not any_fits:
        return _none_fits(network)
    # Most bytes of small messages that leave the node go to its sender by a slot: copied already.
    packed_bytes = packed(halo, halo.items * item_bytes > SHARED_BYTES) * item_bytes
    return float(ended_s.max()) + packed_bytes * copy_s_per_byte


def _fit_slots(
    messages: MessageStage, network: RankNetwork, item_bytes: float
) -> NDArray[np.bool_]:
    """Return which messages go through a node's memory: those that stay there, if small."""
    return network.stays(messages) & (messages.items * item_bytes <= SHARED_BYTES)


def _none_fits(network: RankNetwork) -> NotIdentified:
    where = " on a node" if network.off is not None else ""
    return NotIdentified(f"no message{where} is of {SHARED_BYTES} bytes or less")


def through_memory_s(
    payload: MessageStage,
    network: RankNetwork,
    item_bytes: float,
    copy_s_per_byte: float,
    begin_s: Floats,
) -> float:
    """Return the time of messages through a node's memory: copied twice, or sent if large."""
    fits = payload.items * item_bytes <= SHARED_BYTES
    return float(
        _copied_ended_s(payload, fits, network, item_bytes, copy_s_per_byte, begin_s).max()
    )


def _copied_ended_s(
    stage: MessageStage,
    fits: NDArray[np.bool_],
    network: RankNetwork,
    item_bytes: float,
    copy_s_per_byte: float,
    began_s: Floats,
) -> Floats:
    """Return when ranks have ended a stage: messages that fit are copied twice, others sent."""
    copied = sum(
        np.bincount(rank[fits], stage.items[fits], network.procs) * item_bytes
        for rank in (stage.sender, stage.receiver)
    )
    sent = MessageStage(stage.sender[~fits], stage.receiver[~fits], stage.items[~fits])
    ended_s = network.ended_s(sent, item_bytes, began_s)
    return ended_s + float(np.max(copied)) * copy_s_per_byte


def packed(halo: Halo, counted: NDArray[np.bool_] | None = None) -> int:
    """Return the most items that a rank packs, as its messages' items are not contiguous.

    `counted` says which messages count; all if it is None.
    """
    breaks = np.diff(halo.slots, prepend=-1) != 1
    breaks[halo.first[:-1]] = False
    of_message = np.repeat(np.arange(len(halo.items)), halo.items)
    scattered = np.bincount(of_message, weights=breaks, minlength=len(halo.items)) > 0
    items = np.where(scattered if counted is None else scattered & counted, halo.items, 0)
    return int(np.bincount(halo.source, weights=items, minlength=halo.procs).max(initial=0))
