"""The messages of store-and-forward, `stfw` (STFW_n of Selvitopi & Aykanat, SC'19).

The library plans it rank by rank; here all ranks are planned at once, stage by stage.
"""

from collections.abc import Iterator

import numpy as np

from tuner.inputs.matrices.market import Indices
from tuner.inputs.structure.grid import Grid
from tuner.inputs.structure.halo import Halo
from tuner.inputs.structure.traffic import MessageStage, per_process


def stfw(halo: Halo, grid: Grid) -> Iterator[MessageStage]:
    """Yield messages as parcels that travel along the grid's coordinates, the first one first."""
    items = halo.items
    at = halo.source
    for stage in range(1, len(grid.sizes) + 1):
        after = grid.route(halo.source, halo.destination, stage)
        messages = _messages(halo.procs, at, after, grid.steps(at, after, stage), items)
        forwarded = (after != at) & (after != halo.destination)
        kept = per_process(after[forwarded], items[forwarded], halo.procs)
        yield MessageStage(*messages, forwarded=kept)
        at = after


def _messages(
    procs: int, at: Indices, after: Indices, step: Indices, items: Indices
) -> tuple[Indices, Indices, Indices]:
    """Return one message for each place and step, of all parcels that take it.

    Table look-ups replace sorting: there are as many entries as places have steps, a few million.
    """
    steps = int(step.max(initial=0)) + 1
    code = at * steps + step
    sums = np.bincount(code, weights=items, minlength=procs * steps)
    receiver = np.arange(procs).repeat(steps)  # itself where no parcel is, or it stays
    sender = receiver.copy()
    receiver[code] = after
    moved = np.flatnonzero(sender != receiver)
    return sender[moved], receiver[moved], sums[moved].astype(np.int64)
