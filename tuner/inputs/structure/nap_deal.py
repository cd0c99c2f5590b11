"""Dealing of nodes to processes (Bienz, Gropp, Olson, 2019, section 4.1), as in the library.

Ranks lie on the nodes in their order, `ppn` on each; the last node may have fewer.
"""

from dataclasses import dataclass

import numpy as np

from tuner.inputs.matrices.market import Indices


@dataclass(frozen=True)
class Parts:
    """The parts from one process to one of another node, by nodes and share.

    Their items are, part by part, all that goes between nodes.
    """

    origin: Indices  # node
    target: Indices  # node
    items: Indices
    sender: Indices
    receiver: Indices


def deal(
    origin: Indices, target: Indices, items: Indices, procs: int, ppn: int, sharing: bool
) -> Parts:
    """Deal the items from each origin to each target node, by increasing nodes.

    An origin deals its targets by decreasing volume to its ranks 0, 1, …. With `sharing` and fewer
    targets than ranks, the ranks left over take shares too. A target deals what comes, share by
    share and by decreasing volume, to its ranks from the last one down.
    """
    first, shares = _deal_sends(origin, target, items, _node_sizes(procs, ppn), sharing)
    lot = np.repeat(np.arange(len(items)), shares)
    share = np.arange(len(lot)) - np.repeat(np.cumsum(shares) - shares, shares)
    begin = (np.cumsum(items) - items)[lot] + _share_begin(items[lot], shares[lot], share)
    sizes = np.diff(begin, append=items.sum())
    receivers = _deal_receives(target[lot], sizes, _node_sizes(procs, ppn))
    return Parts(
        origin[lot],
        target[lot],
        sizes,
        sender=origin[lot] * ppn + first[lot] + share,
        receiver=target[lot] * ppn + receivers,
    )


def _node_sizes(procs: int, ppn: int) -> Indices:
    return np.bincount(np.arange(procs) // ppn)


def _deal_sends(
    origin: Indices, target: Indices, items: Indices, sizes: Indices, sharing: bool
) -> tuple[Indices, Indices]:
    """Return the first local rank of each lot, and how many consecutive ones share it."""
    order = np.lexsort((target, -items, origin))
    shares = np.ones(len(items), dtype=np.int64)
    counts = np.bincount(origin, minlength=len(sizes))
    ends = np.cumsum(counts)
    if sharing:
        for node in np.flatnonzero((counts > 0) & (counts < sizes)).tolist():
            lots = order[ends[node] - counts[node] : ends[node]]
            shares[lots] = _share_out(items[lots].tolist(), int(sizes[node]))
    dealt = np.cumsum(shares[order]) - shares[order]
    dealt -= np.repeat(dealt[(ends - counts)[counts > 0]], counts[counts > 0])
    first = np.empty_like(shares)
    first[order] = dealt % sizes[origin[order]]
    return first, shares


def _share_out(items: list[int], ranks: int) -> list[int]:
    """Return the shares of lots by decreasing volume: spare ranks go to the largest shares."""
    shares = [1] * len(items)
    for _ in range(ranks - len(items)):
        largest = -1
        for lot, volume in enumerate(items):
            if shares[lot] < volume and (
                largest < 0 or volume * shares[largest] > items[largest] * shares[lot]
            ):
                largest = lot
        if largest < 0:
            break
        shares[largest] += 1
    return shares


def _share_begin(items: Indices, shares: Indices, share: Indices) -> Indices:
    """Return where a share begins in whole items."""
    begin: Indices = items // shares * share + items % shares * share // shares
    return begin


def _deal_receives(target: Indices, items: Indices, sizes: Indices) -> Indices:
    """Return the local rank of the target that receives each part."""
    # Parts come by origin, target and share; the sort is stable.
    order = np.lexsort((-items, target))
    counts = np.bincount(target, minlength=len(sizes))
    place = np.arange(len(items)) - np.repeat(np.cumsum(counts) - counts, counts)
    local = np.empty_like(place)
    size = sizes[target[order]]
    local[order] = size - 1 - place % size
    return local
