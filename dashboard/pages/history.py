"""History: one case through all campaigns of a machine, and what changed on the way."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import pandas as pd
from dash import html
from dash.development.base_component import Component

from dashboard.choice import CaseChoice, CaseQuery, choose_case, newest_operations, upgrades
from dashboard.elements import Element, anchor, data_cell, row_head, table_row
from dashboard.figures.changes import history
from dashboard.pages import compare
from dashboard.pages.page import FilteredPage
from dashboard.pages.parts import Block, Plot
from dashboard.query import INTEGER, Query, choose, parameter
from dashboard.units import interval_text, ratio_text
from dashboard.widgets import card, data_table, href, method_name, prose
from tuner import comparison, stats
from tuner.comparison import Change
from tuner.records import NAME, Cell
from tuner.store import Store
from tuner.units import size_text

PATH = "/history"


@dataclass(frozen=True)
class HistoryQuery(CaseQuery):
    """One case in whatever campaigns, and the size that is drawn."""

    campaign: str = parameter("c", NAME)
    size: str = parameter("b", INTEGER, "Message size")


@dataclass(frozen=True)
class Campaign:
    """A campaign that measured the case, with its cells, which have no samples."""

    system: str
    name: str
    mpi_library: str
    cells: list[Cell]


@dataclass(frozen=True)
class HistoryChoice(CaseChoice):
    """The case, in the newest campaign, and all campaigns of the machine in order of date."""

    query: HistoryQuery
    campaigns: list[Campaign]


def _choose(store: Store, query: HistoryQuery, *, strict: bool) -> HistoryChoice:
    """See `FilteredPage`. All campaigns of a machine count, whatever its versions."""
    chosen = choose_case(store, replace(query, campaign=""), strict=strict)
    campaigns = _campaigns(store, chosen)
    sizes = sorted({cell.key.size_bytes for cell in campaigns[-1].cells})
    middle = str(sizes[len(sizes) // 2])
    size = choose([middle, *map(str, sizes)], query.size, "size", strict=strict)
    return HistoryChoice(
        query=replace(chosen.query, campaign="", size=size),
        options=chosen.options | {"size": [(str(size), size_text(size)) for size in sizes]},
        system=chosen.system,
        case=chosen.case,
        campaigns=campaigns,
    )


def _campaigns(store: Store, chosen: CaseChoice) -> list[Campaign]:
    alike = upgrades(store.systems(), chosen.query.system)
    libraries = dict(zip(alike["system"], alike["mpi_library"], strict=True))
    measured = store.campaigns()
    measured = measured[measured["system"].isin(libraries)].sort_values(["last_date", "campaign"])
    case = tuple(chosen.case.values())[2:]
    found = [
        Campaign(
            *(system, name, libraries[system]),
            cells=store.contents((system, name, *case), samples=False),
        )
        for system, name in zip(measured["system"], measured["campaign"], strict=True)
    ]
    return [campaign for campaign in found if campaign.cells]


def _medians(store: Store, choice: HistoryChoice) -> pd.DataFrame:
    """One row a campaign, size and method: its median, and the interval over launches."""
    rows = []
    for campaign in choice.campaigns:
        for cell in campaign.cells:
            middle, low, high = stats.of_launches(cell.parts["median_s"])
            key = cell.key
            rows.append(
                (campaign.name, campaign.mpi_library, key.size_bytes, key.method, middle, low, high)
            )
    names = ["campaign", "mpi_library", "size_bytes", "method", "median_s", "low_s", "high_s"]
    return pd.DataFrame(rows, columns=names)


def _draw(store: Store, choice: HistoryChoice) -> dict[str, Any]:
    size = int(choice.query.size)
    here = [
        replace(campaign, cells=[c for c in campaign.cells if c.key.size_bytes == size])
        for campaign in choice.campaigns
    ]
    frame = _medians(store, replace(choice, campaigns=here))
    return {"history": history(frame, size), "changes": _changes(choice)}


def _changes(choice: HistoryChoice) -> Component:
    """What changed from each campaign to the next, at all sizes of the case."""
    if len(choice.campaigns) == 1:
        return html.P(prose("One campaign measured this case: `switchpoint run` adds another."))
    medians = [comparison.medians_of(campaign.cells) for campaign in choice.campaigns]
    rows = []
    for (before, a), (after, b) in pairwise(zip(choice.campaigns, medians, strict=True)):
        exact = comparison.exact_in(before.cells) and comparison.exact_in(after.cells)
        rows += _rows(before, after, comparison.changes(a, b, exact=exact), choice)
    if not rows:
        return html.P("No cell of this case changed by more than its launches differ.")
    header = ("Campaign", "MPI", "Changed cells", "Largest change", "95 %", "")
    return data_table("Changes from campaign to campaign, the newest first", header, rows[::-1])


def _rows(
    before: Campaign, after: Campaign, changed: list[Change], choice: HistoryChoice
) -> list[Element]:
    if not changed:
        return []
    largest = changed[0]
    library = after.mpi_library
    if library != before.mpi_library:
        library = f"{before.mpi_library} → {library}"
    sides = (before.system, before.name, after.system, after.name)
    compared = compare.CompareQuery(*sides, choice.query.operation)
    where = largest.where
    what = f" at {size_text(where.bytes)}: {ratio_text(largest.ratio)} the time"
    cells = (
        library,
        f"{len(changed)} of {len(after.cells)}",
        [method_name(where.method), what],
        interval_text(largest.low, largest.high, ratio_text),
        anchor("compare", href(compare.PATH, compared.search())),
    )
    return [table_row([row_head(after.name), *map(data_cell, cells)])]


def _body(parts: Mapping[str, Component]) -> Sequence[Component]:
    return [
        card(
            "Time by campaign",
            html.P(
                "All campaigns of this machine and environment, whatever their versions; a line "
                "between two campaigns marks an upgrade.",
                className="hint",
            ),
            parts["history"],
        ),
        card(
            "Significant changes",
            html.P(
                "Between one campaign and the next, at any size; at most "
                f"{100 * comparison.FALSE_DISCOVERIES:.0f} % of them by chance.",
                className="hint",
            ),
            parts["changes"],
        ),
    ]


def _reported(store: Store, system: str) -> list[Query]:
    """Every operation of the newest campaign, where there are others."""
    _, operations = newest_operations(store, system)
    several = operations if len(store.campaigns_with_cells(system)) > 1 else []
    return [HistoryQuery(system, operation=operation) for operation in several]


PAGE = FilteredPage(
    path=PATH,
    title="History",
    query=HistoryQuery,
    parts={
        "history": Plot("Time of each method in one campaign after the other."),
        "changes": Block(),
    },
    choose=_choose,
    draw=_draw,
    body=_body,
    data={"history": _medians},
    reported=_reported,
)
