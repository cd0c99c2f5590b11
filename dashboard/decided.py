"""The decisions of single campaigns, and the speed-ups that they rest on."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd

from dashboard.snapshot import cached_table, kept
from tuner.domain.cases import Case, DegreeClass
from tuner.domain.flat import columns, take
from tuner.domain.operations import DEFAULT_METHODS
from tuner.domain.tables import Point
from tuner.selection import tuning
from tuner.selection.evidence import sure_verdict
from tuner.selection.intervals import degree_class_of
from tuner.store.store import Store

SPEEDUPS = ["speedup", "speedup_low", "speedup_high", "level"]

_Points = dict[tuple[DegreeClass, int], Point]


def points_of(store: Store, cells: pd.DataFrame) -> list[Point | None]:
    """Return the decision of its campaign on each row of `Store.cells`, None where there is none.

    cells: of one operation in one campaign.
    """
    if cells.empty:
        return []
    first = cells.iloc[0]
    points = _decided(store, first["system"], first["campaign"], first["operation"])
    found = []
    names = ("mmax", "mavg", *columns(Case))
    for mmax, mavg, *row in zip(*(cells[name].tolist() for name in names), strict=True):
        case = take(Case, iter(row))
        point = points.get((degree_class_of(case, mmax, mavg), case.bytes))
        # Only one scheme of a layout is decided on.
        found.append(point if point and point.case.sync == case.sync else None)
    return found


def speedups(store: Store, cells: pd.DataFrame) -> pd.DataFrame:
    """Return cells with their decisions' time(default) / time(method) and its interval.

    cells: of one operation in one campaign. `speedup`, `speedup_low`, `speedup_high` and `level`,
    that of the interval, are missing where nothing is known.
    """
    figures: list[tuple[float | None, ...]] = []
    for method, point in zip(cells["method"], points_of(store, cells), strict=True):
        its = [ratio for ratio in point.ratios if ratio.method == method] if point else []
        if point is not None and method == DEFAULT_METHODS[point.case.operation]:
            figures.append((1.0, 1.0, 1.0, 1.0))
        elif point and its:
            ends = (its[0].high, its[0].low) if point.level is not None else (None, None)
            found = (1 / end if end else None for end in (its[0].ratio, *ends))
            figures.append((*found, point.level))
        else:
            figures.append((None, None, None, None))
    return cells.assign(**pd.DataFrame(figures, cells.index, SPEEDUPS, dtype=float))


def verdicts(store: Store, system: str, point: Point) -> list[str]:
    """Return what a campaign decides at a point, and the table, if others made it too."""
    said = {"This campaign alone": point} | _in_table(store, system, point)
    return [f"{by}: {sure_verdict(its)}" for by, its in said.items()]


def _in_table(store: Store, system: str, point: Point) -> dict[str, Point]:
    """Return the table's decision beside that of a campaign alone, by what it rests on.

    Return {} if the table is of one campaign, so that both are the same, or has none.
    """
    table = cached_table(store, system)
    if table is None or len(table.provenance.campaigns) < 2:
        return {}
    key = degree_class_of(point.case, point.mmax, point.mavg), point.case.bytes
    found = _by_degree_class(store, system).get(key)
    return {f"The table, by {len(table.provenance.campaigns)} campaigns": found} if found else {}


@kept(32)
def _by_degree_class(store: Store, system: str) -> _Points:
    table = cached_table(store, system)
    return _places(table.points if table else [])


def _places(points: Iterable[Point]) -> _Points:
    return {(degree_class_of(its.case, its.mmax, its.mavg), its.case.bytes): its for its in points}


def of_campaign(
    store: Store, system: str, campaign: str, operation: str | None = None
) -> list[Point]:
    """Return the decisions on one campaign alone, of an operation or of all, as `compare` does."""
    return tuning.decisions_of(store, system, campaign, operation, anew=_anew)


@kept(32)
def _decided(store: Store, system: str, campaign: str, operation: str) -> _Points:
    return _places(of_campaign(store, system, campaign, operation))


_anew = kept(4)(tuning.decide_again)
