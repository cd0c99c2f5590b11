"""The times of exchange methods, from the messages of every stage.

`direct` is D, `stfw` and `nap` the sum of D over their stages, as planning makes them; what `stfw`
forwards is copied once a stage (Selvitopi & Aykanat, SC'19; Bienz, Gropp, Olson, 2019).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tuner.models.delivery import Network
from tuner.structure.stages import Stage


def time_s(
    method: str,
    stages: Sequence[Stage],
    network: Network,
    item_bytes: float,
    copy_s_per_byte: float,
) -> float:
    """The time of a method with these stages, and items of that size."""
    ended_s = np.zeros(network.procs)
    for stage in stages:
        ended_s = network.ended_s(stage, item_bytes, ended_s)
    total = float(ended_s.max())
    if method.startswith("stfw"):
        total += sum(_most_items(stage) for stage in stages) * item_bytes * copy_s_per_byte
    return total


def _most_items(stage: Stage) -> float:
    """That one rank sends."""
    return float(np.bincount(stage.sender, weights=stage.items).max(initial=0))
