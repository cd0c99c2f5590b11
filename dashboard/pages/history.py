"""History: changes between the campaigns of a machine, and one case in all of them."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from dash import html

from dashboard import compared
from dashboard.choice import (
    CaseChoice,
    CaseQuery,
    Filters,
    campaigns_of,
    case_of,
    cases_of,
    explorable,
    layout_key,
    size_options,
    system_options,
    upgrades,
)
from dashboard.compared import MachineCampaign, Step
from dashboard.elements import Element, anchor, data_cell, row_head, table_row
from dashboard.figures.changes import history
from dashboard.frames import described
from dashboard.markup import Component
from dashboard.measuring import with_own_commands
from dashboard.pages import compare
from dashboard.pages.page import FilteredPage
from dashboard.pages.parts import Block, Plot
from dashboard.query import INTEGER, Query, UnmeasuredError, parameter
from dashboard.snapshot import kept
from dashboard.units import interval_text, ratio_text
from dashboard.widgets import Option, card, data_table, href, method_name, prose
from tuner import stats
from tuner.domain.records import NAME, Cell
from tuner.selection.changes import FALSE_DISCOVERIES, Shift, Where
from tuner.store.store import Store
from tuner.units import share_text, size_text

PATH = "/history"


@dataclass(frozen=True)
class HistoryQuery(CaseQuery):
    """One case in all campaigns, and the size that is drawn."""

    campaign: str = parameter("c", NAME)
    size: str = parameter("b", INTEGER, "Message size")


@dataclass(frozen=True)
class HistoryChoice(CaseChoice[HistoryQuery]):
    """The case, as the newest campaign with it has it, and all campaigns in order of date."""

    measured: list[tuple[MachineCampaign, list[Cell]]]  # of the size; cells have no samples
    steps: list[Step]  # of all operations


def _choose(store: Store, query: HistoryQuery, *, strict: bool) -> HistoryChoice:
    """Complete a query: see `FilteredPage`. All campaigns of a machine count, in any version.

    The default is the case that changed most in the last campaign with changes.
    """
    systems = explorable(store)
    filters = Filters(query, strict=strict)
    system = filters.choose("system", system_options(systems))
    steps = compared.steps(store, system)
    if not (query.pattern or query.layout or query.size):
        changed = _most_changed(steps, query.operation)
        filters.query = replace(filters.query, **changed)
    case = case_of(filters, _cases(store, system))
    which = system, frozenset(case.items())
    sizes = _sizes(store, *which)
    size = filters.choose("size", sizes, default=sizes[len(sizes) // 2][0])
    return HistoryChoice(
        query=replace(filters.query, campaign=""),
        options=filters.options,
        system=described(systems, system),
        case=case,
        measured=_of_case(store, *which, int(size)),
        steps=steps,
    )


def _most_changed(steps: Sequence[Step], operation: str) -> dict[str, str]:
    """Return the parameters of the case that changed most (of an operation, or of any), or {}."""
    for step in steps:
        for shift in step.changed:
            if operation in ("", shift.operation):
                return _parameters(shift.changes[0].where)
    return {}


def _parameters(where: Where) -> dict[str, str]:
    case = where.case
    return {
        "operation": case.operation,
        "pattern": case.pattern,
        "layout": layout_key(case.layout, case.sync),
        "size": str(case.size_bytes),
    }


@kept(64)
def _cases(store: Store, system: str) -> pd.DataFrame:
    """Return the cases of all campaigns, those of the newest first."""
    campaigns = reversed(compared.campaigns(store, system))
    cases = [cases_of(store, campaign.system, campaign.name) for campaign in campaigns]
    if not cases:  # a store of others may have cells of campaigns without launches
        raise UnmeasuredError("The store holds no campaign here: run `switchpoint run`.")
    return pd.concat(cases, ignore_index=True)


@kept(64)
def _sizes(store: Store, system: str, case: Collection[tuple[str, Any]]) -> list[Option]:
    """Return the sizes of a case in all campaigns."""
    campaigns = compared.campaigns(store, system)
    cells = [store.cells(**_where(campaign, case)) for campaign in campaigns]
    return size_options(pd.concat(cells, ignore_index=True))


@kept(32)
def _of_case(
    store: Store, system: str, case: Collection[tuple[str, Any]], size_bytes: int | None
) -> list[tuple[MachineCampaign, list[Cell]]]:
    """Return the cells of a case at a size, or at all sizes, in the campaigns that have any."""
    campaigns = compared.campaigns(store, system)
    found = [
        (each, store.contents(**_where(each, case), size_bytes=size_bytes, samples=False))
        for each in campaigns
    ]
    return [(campaign, cells) for campaign, cells in found if cells]


def _where(campaign: MachineCampaign, case: Collection[tuple[str, Any]]) -> dict[str, Any]:
    return dict(case) | {"system": campaign.system, "campaign": campaign.name}


def _at_all_sizes(store: Store, choice: HistoryChoice) -> pd.DataFrame:
    case = frozenset(choice.case.items())
    return _medians(_of_case(store, choice.query.system, case, None))


def _medians(measured: list[tuple[MachineCampaign, list[Cell]]]) -> pd.DataFrame:
    """Return one row for each campaign, size and method: its median and interval over launches."""
    rows: list[tuple[str, str, int, str]] = []
    alike: dict[int, dict[int, Any]] = defaultdict(dict)  # medians of cells by number of launches
    for campaign, cells in measured:
        for cell in cells:
            alike[len(cell.parts)][len(rows)] = cell.parts["median_s"]
            which = cell.key.case.size_bytes, cell.key.method
            rows.append((campaign.name, campaign.mpi_library, *which))
    figures = np.empty((len(rows), 3))
    for of_rows in alike.values():
        figures[[*of_rows]] = np.transpose(stats.of_launches(np.array([*of_rows.values()])))
    frame = pd.DataFrame(rows, columns=["campaign", "mpi_library", "size_bytes", "method"])
    return frame.assign(**dict(zip(("median_s", "low_s", "high_s"), figures.T, strict=True)))


def _draw(store: Store, choice: HistoryChoice) -> dict[str, Any]:
    frame = _medians(choice.measured)
    size = dict(choice.options["size"])[choice.query.size]
    return {"history": history(frame, size), "changes": _changes(store, choice)}


def _changes(store: Store, choice: HistoryChoice) -> Component:
    """Return the changes of all operations in each campaign."""
    if not choice.steps:
        text = "Each case has only one campaign: `switchpoint run` adds another."
        return html.P(prose(with_own_commands(text, store, choice.query.system)))
    rows = [row for step in choice.steps for row in _rows(step)]
    if not rows:
        return html.P("No operation changed significantly.")
    header = (
        "Campaign",
        "Operation",
        "Mean time",
        "Changed cells",
        f"Largest change, {share_text(stats.LEVEL, 0)}",
        "MPI",
        "Links",
    )
    return data_table("Changes between campaigns, the newest first", header, rows)


def _rows(step: Step) -> list[Element]:
    """Return a row for each operation that changed."""
    return [_row(step, shift) for shift in step.changed]


def _row(step: Step, shift: Shift) -> Element:
    before, after = step.before[shift.operation], step.campaign
    library = after.mpi_library
    if library != before.mpi_library:
        library = f"{before.mpi_library} → {library}"
    largest = shift.changes[0]
    where = largest.where
    shown = HistoryQuery(after.system, **_parameters(where)).search()
    interval = interval_text(largest.low, largest.high, ratio_text)
    sides = (before.system, before.name, after.system, after.name)
    cells = (
        data_cell(shift.operation),
        data_cell(ratio_text(shift.ratio)),
        data_cell(f"{len(shift.changes)} of {shift.compared}"),
        data_cell(
            [
                *(method_name(where.method), " "),
                anchor(f"at {size_text(where.case.bytes)}", href(PATH, shown)),
                f": {ratio_text(largest.ratio)} ({interval})",
            ]
        ),
        data_cell(library, className="wrap wide"),
        data_cell(anchor("compare", href(compare.PATH, compare.CompareQuery(*sides).search()))),
    )
    return table_row([row_head(after.name), *cells])


def _body(parts: Mapping[str, Component]) -> Sequence[Component]:
    return [
        card(
            "Significant changes",
            html.P(
                "Changes of each operation in each campaign since its cells were last measured, "
                f"the largest first; at most {share_text(FALSE_DISCOVERIES, 0)} of a campaign's "
                "changes are expected by chance. Mean time is a multiple of the previous time, "
                "averaged over all cells of the operation.",
                className="hint",
            ),
            parts["changes"],
        ),
        card(
            "Time by campaign",
            html.P(
                "All campaigns of this machine and environment, in any version; a vertical line "
                "marks an upgrade.",
                className="hint",
            ),
            parts["history"],
        ),
    ]


def _reported(store: Store, system: str) -> list[Query]:
    """Return the case that changed most, if the system has methods and other campaigns."""
    having = campaigns_of(store, system) and len(compared.campaigns(store, system)) > 1
    return [HistoryQuery(system)] if having else []


PAGE = FilteredPage(
    path=PATH,
    title="History",
    query=HistoryQuery,
    parts={"history": Plot("Time of each method in successive campaigns."), "changes": Block()},
    choose=_choose,
    draw=_draw,
    body=_body,
    data={"history": _at_all_sizes},
    reported=_reported,
    systems=lambda store, query: upgrades(explorable(store), query.system)["system"],
)
