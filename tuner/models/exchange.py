"""The times of exchange methods: from the messages of every stage, and closed forms.

`direct` is D, `stfw` and `nap` the sum of D over their stages, as planning makes them; what `stfw`
forwards is copied once a stage (Selvitopi & Aykanat, SC'19; Bienz, Gropp, Olson, 2019).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tuner.models.delivery import Network
from tuner.models.maxrate import Rates
from tuner.structure.stages import Stage


def time_s(
    method: str,
    stages: Sequence[Stage],
    network: Network,
    item_bytes: float,
    copy_s_per_byte: float,
) -> float:
    """The time of a method with these stages, and items of that size."""
    total = sum(network.delivery_s(stage, item_bytes) for stage in stages)
    if method.startswith("stfw"):
        total += sum(_most_items(stage) for stage in stages) * item_bytes * copy_s_per_byte
    return total


def _most_items(stage: Stage) -> float:
    """That one rank sends."""
    return float(np.bincount(stage.sender, weights=stage.items).max(initial=0))


def stfw_dense_s(
    dims: int, size: int, message_bytes: float, alpha_s: float, per_byte_s: float
) -> float:
    """The postal bound of `stfw` for equal messages between all pairs of size^dims ranks.

    n (k - 1) alpha + n (k - 1) k^(n - 1) s (beta + gamma), per_byte_s being beta + gamma.
    """
    messages = dims * (size - 1)
    moved = messages * float(size) ** (dims - 1) * message_bytes
    return messages * alpha_s + moved * per_byte_s


def dense_switch_point_bytes(sizes: Sequence[int], alpha_s: float, per_byte_s: float) -> float:
    """The message size below which `stfw` on a grid beats `direct`, both postal, all pairs equal.

    (alpha/beta) ((K - 1) - sum(k_d - 1)) / (sum((k_d - 1) K/k_d) - (K - 1)).
    """
    ranks = int(np.prod(sizes))
    messages = sum(size - 1 for size in sizes)
    volume = sum((size - 1) * (ranks // size) for size in sizes)
    return alpha_s / per_byte_s * (ranks - 1 - messages) / (volume - (ranks - 1))


def nap_max_rate_s(
    local: tuple[float, float], off: Rates, ppn: int, messages: int, bytes_: tuple[float, ...]
) -> float:
    """The paper's bound of `nap` (equation 16): every process of a node sends to every other.

    local: alpha and bandwidth on the node; messages: the most that a process sends off its node;
    bytes_: the most that one process moves on the node, a node sends, and a process sends off it.
    """
    on_node, of_node, of_process = bytes_
    gathered = 2 * (local[0] * (ppn - 1) + on_node / local[1])
    if off.b_max is None:
        return gathered + off.alpha_s * messages
    of_one = (off.b_max + (ppn - 1) * off.b_inj) / ppn
    shared = of_node / off.b_node if off.b_node else 0.0
    return gathered + off.alpha_s * messages + max(shared, of_process / of_one)
