"""Signs that other work disturbed a campaign, or one of its cases: of both by one baseline."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pandas as pd

from dashboard.choice import layout_text
from dashboard.snapshot import kept
from dashboard.units import ratio_text, time_text
from tuner.domain.cases import STAGGERED, Case
from tuner.selection.trust import Trust
from tuner.store.store import Store
from tuner.units import share_text

UNSTEADY = 2.0
"""The slowest canary of a cell, as a multiple of the usual one, from which other load shows."""

_WITHOUT_START = "barrier"
"""The beginning of `sync` without a start instant, for which no rank is late."""

_PLACE = ["operation", "procs", "nodes", "ppn", "sync", "oversubscribed"]


@dataclass(frozen=True)
class Steadiness:
    """The canaries of cells, and shares of their samples.

    canaries_s: the medians by layout. slowest: the slowest canary of a cell, as a multiple of the
    usual one on its layout at its size in the whole campaign (tuner/selection/trust.py), as large
    messages slow it; 0 if there is none. late: None where ranks had no start instant.
    """

    canaries_s: dict[str, float]
    slowest: float
    above_2_medians: float
    late: float | None

    @classmethod
    def of(cls, store: Store, system: str, campaign: str, case: Mapping[str, Any]) -> Self:
        """Return the steadiness of the cells with these columns, at least one; {} takes all."""
        cells = _slowdowns(store, system, campaign)
        if "sync" not in case:  # ranks that arrive apart are late by intention
            staggered = cells["sync"].str.endswith(STAGGERED)
            cells = cells if staggered.all() else cells[~staggered]
        for name in (*_PLACE, "pattern"):
            if name in case:
                cells = cells[cells[name] == case[name]]
        played = cells[cells["canary_median_s"] > 0]  # one process has no partner
        by_layout = played.groupby(["nodes", "ppn"], sort=False, as_index=False)
        medians_s = by_layout["canary_median_s"].median()
        canaries_s = {
            layout_text(nodes, ppn, oversubscribed=False): float(median_s)
            for nodes, ppn, median_s in medians_s.itertuples(index=False, name=None)
        }
        started = cells[~cells["sync"].str.startswith(_WITHOUT_START)]
        return cls(
            canaries_s,
            slowest=float(cells["slowdown"].max()),
            above_2_medians=_share(cells, "above_2_medians"),
            late=_share(started, "late") if len(started) else None,
        )

    def doubts(self) -> list[str]:
        """Return what warns of other load."""
        if not self.slowest > UNSTEADY:
            return []
        return [f"unsteady machine: slowest canary {ratio_text(self.slowest)} the usual one"]

    def text(self) -> str:
        """Return all figures as text, for the reader to judge."""
        texts = [f"{time_text(each_s)} on {layout}" for layout, each_s in self.canaries_s.items()]
        canary = f"median canary (8-byte ping-pong) {', '.join(texts)}; " if texts else ""
        if texts:
            canary += f"at most {ratio_text(self.slowest)} the usual one in any cell; "
        late = "" if self.late is None else f", {share_text(self.late)} have a late rank"
        above = share_text(self.above_2_medians)
        return f"{canary}{above} of the samples exceed twice their median{late}"


def _share(cells: pd.DataFrame, name: str) -> float:
    """Return a share of all samples of cells."""
    return float(np.average(cells[name], weights=cells["n"]))


@kept(64)
def _slowdowns(store: Store, system: str, campaign: str) -> pd.DataFrame:
    """Return `Store.steadiness`, with the `slowdown` of the slowest canary of each case; cached."""
    contents = store.contents(system, campaign=campaign, samples=False)
    trust = Trust(contents, drifts=False)
    rows = [(*_where(cell.key.case), trust.slowdown(cell)) for cell in contents]
    places = [*_PLACE, "pattern"]
    slowest = pd.DataFrame(rows, columns=[*places, "slowdown"]).groupby(places).max().reset_index()
    return store.steadiness(system, campaign).merge(slowest, how="left", on=places)


def _where(case: Case) -> tuple[str, int, int, int, str, bool, str]:
    its = case.layout
    place = case.operation, its.procs, its.nodes, its.ppn, case.sync, its.oversubscribed
    return *place, case.pattern
