"""Tells which parts of a campaign were disturbed, by its canaries. No input or output.

A canary, a ping-pong of 8 bytes, is measured in every round, and knows nothing of methods: leaving
out the parts of launches in which it was slow favours none.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from tuner.records import Cell

SLOW = math.log(2)
"""How much slower than usual a canary is that tells of a disturbance, as a logarithm."""

DEVIATIONS = 5.0
"""And how many standard deviations of the fast ones: where those differ by much, much is usual."""

CLEAN = "clean"
STATES = {CLEAN: 0.02, "noisy": 0.1}
"""The largest share of disturbed parts; above, a campaign is contaminated."""

_QUANTILES = (0.05, 0.25)
"""What usual is: the fast ones, for half of a campaign may be disturbed."""

_SIGMAS_BETWEEN = 0.9704  # those quantiles of a normal distribution

Place = tuple[str, int, int, int, bool, str]


def place_of(cell: Cell) -> Place:
    """Where canaries are comparable: campaign, processes, layout and scheme."""
    key = cell.key
    return key.campaign, key.procs, key.nodes, key.ppn, key.oversubscribed, key.sync


def limits(cells: Iterable[Cell]) -> dict[Place, float]:
    """The slowest canary, in seconds, with which a launch's part of a cell counts."""
    canaries: dict[Place, list[float]] = defaultdict(list)
    for cell in cells:
        canaries[place_of(cell)] += cell.parts["canary_s"].tolist()
    return {place: _limit(np.array(values)) for place, values in canaries.items()}


def _limit(canaries_s: NDArray[np.float64]) -> float:
    known = canaries_s[canaries_s > 0]
    if not len(known):
        return float("inf")
    fastest, usual = np.quantile(np.log(known), _QUANTILES)
    deviation = (usual - fastest) / _SIGMAS_BETWEEN
    return float(np.exp(usual + max(SLOW, DEVIATIONS * deviation)))


def disturbed(cells: Iterable[Cell]) -> float:
    """The share of launches' parts of cells that do not count."""
    cells = list(cells)
    allowed = limits(cells)
    parts = sum(len(cell.parts) for cell in cells)
    slow = sum(int((cell.parts["canary_s"] > allowed[place_of(cell)]).sum()) for cell in cells)
    return slow / parts if parts else 0.0


def state(share: float) -> str:
    """In a word, what a share of disturbed parts makes of a campaign."""
    return next((word for word, most in STATES.items() if share <= most), "contaminated")
