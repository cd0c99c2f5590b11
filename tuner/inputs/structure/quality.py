"""The quality of a partition: balance, volume and messages of the product with a vector."""

from dataclasses import dataclass

import numpy as np

from tuner.inputs.matrices.market import Pattern
from tuner.inputs.matrices.ownership import Ownership
from tuner.inputs.structure.halo import halo


@dataclass(frozen=True)
class Quality:
    """Volumes in elements of the vector. `volume` is connectivity - 1, summed over the columns."""

    parts: int
    imbalance: float  # entries of the fullest part over those of the mean part, less 1
    volume: int
    vavg: float
    vmax: int
    messages: int
    mavg: float
    mmax: int


def quality(pattern: Pattern, owned: Ownership) -> Quality:
    """Return the quality of a square matrix with this ownership."""
    messages = halo(pattern, owned)
    work = np.bincount(owned.owner[pattern.rows], minlength=owned.procs)
    sent = np.bincount(messages.source, minlength=owned.procs)
    volumes = np.bincount(messages.source, weights=messages.items, minlength=owned.procs)
    volume = int(messages.items.sum())
    return Quality(
        parts=owned.procs,
        imbalance=float(work.max() * owned.procs / max(work.sum(), 1)) - 1 if work.any() else 0.0,
        volume=volume,
        vavg=volume / owned.procs,
        vmax=int(volumes.max()),
        messages=len(messages.items),
        mavg=len(messages.items) / owned.procs,
        mmax=int(sent.max()),
    )
