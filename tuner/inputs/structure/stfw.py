"""Counts of store-and-forward, `stfw` (STFW_n of Selvitopi & Aykanat, SC'19).

The library plans it rank by rank; here all ranks are planned at once, stage by stage.
"""

import numpy as np

from tuner.inputs.matrices.market import Indices
from tuner.inputs.structure.grid import Grid
from tuner.inputs.structure.halo import Halo
from tuner.inputs.structure.traffic import Traffic


def stfw(halo: Halo, grid: Grid, ppn: int, kind: type[Traffic] = Traffic) -> Traffic:
    """Count messages as parcels that travel along the grid's coordinates, the first one first."""
    traffic = kind(halo, ppn)
    items = halo.items
    at = halo.source
    for stage in range(1, len(grid.sizes) + 1):
        after = grid.route(halo.source, halo.destination, stage)
        _add_messages(traffic, at, after, grid.steps(at, after, stage), items)
        forwarded = (after != at) & (after != halo.destination)
        traffic.buffer += traffic.per_process(after[forwarded], items[forwarded])
        at = after
    return traffic


def _add_messages(
    traffic: Traffic, at: Indices, after: Indices, step: Indices, items: Indices
) -> None:
    """Add a stage of one message for each place and step, of all parcels that take it.

    Table look-ups replace sorting: there are as many entries as places have steps, a few million.
    """
    steps = int(step.max(initial=0)) + 1
    code = at * steps + step
    sums = np.bincount(code, weights=items, minlength=traffic.procs * steps)
    receiver = np.arange(traffic.procs).repeat(steps)  # itself where no parcel is, or it stays
    sender = receiver.copy()
    receiver[code] = after
    moved = np.flatnonzero(sender != receiver)
    traffic.add_stage(sender[moved], receiver[moved], sums[moved].astype(np.int64))
