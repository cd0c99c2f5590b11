"""Closed forms of the papers, shown beside times that are composed of counted messages.

Each is a bound in which messages wait for each other: every one of them takes its alpha.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tuner.inputs.structure.halo import Halo
from tuner.inputs.structure.methods import method, stfw_grid, stfw_specs
from tuner.models.costs import Costs
from tuner.models.delivery import RankNetwork
from tuner.models.maxrate import Rates

STFW = "postal bound of equal messages between all pairs (Selvitopi & Aykanat, 2019)"
NAP = "max-rate bound (equations 10 and 12 of Bienz, Gropp, Olson, 2019)"


@dataclass(frozen=True)
class ClosedForm:
    """A method's time by the bytes of an item, and the size below which it beats `direct`."""

    method: str
    source: str
    time_s: Callable[[int], float]
    beats_direct_below_bytes: float | None = None


def closed_forms(network: RankNetwork, halo: Halo, copy_s_per_byte: float) -> Iterator[ClosedForm]:
    """Yield the closed forms that hold for a pattern.

    The form of `stfw` needs pairs that all send the same, that of `nap` nodes of several processes.
    """
    procs = halo.procs
    if procs > 1 and len(halo.items) == procs * (procs - 1) and np.ptp(halo.items) == 0:
        for spec in stfw_specs(procs):
            grid = stfw_grid(spec, procs)
            if grid.complete:
                yield _stfw(spec, grid.sizes, int(halo.items[0]), network.slowest, copy_s_per_byte)
    if network.off is not None and network.ppn > 1:
        yield _nap(network, network.off, halo)


def stfw_dense_s(
    sizes: Sequence[int], message_bytes: float, message_s: Callable[[float], float]
) -> float:
    """Return the postal bound of `stfw` on a complete grid where all pairs send the same.

    It is the sum over dimensions of k_d - 1 messages of K/k_d submessages; `message_s` gives the
    time of one, alpha + (beta + gamma) s.
    """
    ranks = math.prod(sizes)
    return sum((size - 1) * message_s(ranks // size * message_bytes) for size in sizes)


def dense_switch_point_bytes(
    sizes: Sequence[int], costs: Costs, copy_s_per_byte: float
) -> float | None:
    """Return the message size below which `stfw` on a grid beats `direct`, all pairs equal.

    Both are postal, and `stfw` copies what it sends. While all messages keep their protocols, that
    is (alpha (K - 1) - sum(alpha_d (k_d - 1))) / (sum((beta_d + gamma) (k_d - 1) K/k_d) - beta
    (K - 1)); where one changes, `stfw` may lose at once. None where it always wins, or never.
    """
    ranks = math.prod(sizes)
    stages = [(size - 1, ranks // size) for size in sizes]  # messages, and submessages of each
    factors = {1, *(parts for _, parts in stages)}
    changes = sorted({end / factor for end in costs.ends.tolist() for factor in factors})
    begin = 0.0
    for end in (*changes, math.inf):
        within = min((begin + end) / 2, begin + 1)
        direct = costs.of(within)
        saved_s = (ranks - 1) * direct.alpha_s
        further_s_per_byte = -(ranks - 1) * direct.beta_s
        for messages, parts in stages:
            each = costs.of(parts * within)
            saved_s -= messages * each.alpha_s
            further_s_per_byte += messages * parts * (each.beta_s + copy_s_per_byte)
        if saved_s <= begin * further_s_per_byte:
            return begin or None
        if saved_s <= end * further_s_per_byte:
            return saved_s / further_s_per_byte
        begin = end
    return None


def nap_max_rate_s(
    local: tuple[float, float], off: Rates, ppn: int, messages: int, bytes_: tuple[float, ...]
) -> float:
    """Return the bound of `nap` where every process of a node sends to every other.

    local: alpha and seconds per byte on the node; messages: the most that a process sends off its
    node; bytes_: the most that one process moves on the node, a node sends, and a process sends off
    it.
    """
    on_node, of_node, of_process = bytes_
    gathered = 2 * (local[0] * (ppn - 1) + on_node * local[1])
    if off.b_max is None:
        return gathered + off.alpha_s * messages
    of_one = off.rising(ppn) / ppn
    shared = of_node / off.b_node if off.b_node else 0.0
    return gathered + off.alpha_s * messages + max(shared, of_process / of_one)


def _stfw(
    spec: str, sizes: tuple[int, ...], items: int, costs: Costs, copying: float
) -> ClosedForm:
    def message_s(size: float) -> float:
        return costs.of(size).alone_s(size) + copying * size

    at = dense_switch_point_bytes(sizes, costs, copying)
    return ClosedForm(
        spec,
        STFW,
        lambda size: stfw_dense_s(sizes, items * size, message_s),
        None if at is None else at / items,
    )


def _nap(network: RankNetwork, off: Costs, halo: Halo) -> ClosedForm:
    gather, cross, distribute = method("nap", halo.procs).stages(halo, network.ppn)
    node = np.arange(halo.procs) // network.ppn
    leaves = node[cross.sender] != node[cross.receiver]
    sender, items = cross.sender[leaves], cross.items[leaves]
    moved = max(stage.most_moved for stage in (gather, distribute))
    of_process = np.bincount(sender, weights=items, minlength=halo.procs)
    of_node = np.bincount(node, weights=of_process)
    messages = int(np.bincount(sender, minlength=1).max())
    mean_items = float(items.mean()) if len(items) else 0.0

    def time_s(size: int) -> float:
        on = network.on.of(mean_items * size)
        rates = off.rates(mean_items * size) or _of_one(off, mean_items * size)
        bytes_ = tuple(size * float(most) for most in (moved, of_node.max(), of_process.max()))
        return nap_max_rate_s((on.alpha_s, on.beta_s), rates, network.ppn, messages, bytes_)

    return ClosedForm("nap", NAP, time_s)


def _of_one(costs: Costs, size: float) -> Rates:
    """Return rates where no further process was measured: each has the rate of one."""
    message = costs.of(size)
    rate = 1 / message.beta_s if message.beta_s > 0 else None
    return Rates(message.alpha_s, rate, rate or 0.0, None, 1 << 30)
