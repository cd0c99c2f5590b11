"""History: changes between the campaigns of a machine, and one case in all of them."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

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
from dashboard.compared import Step
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
from dashboard.widgets import card, data_table, href, method_name, prose
from tuner import stats
from tuner.domain.records import NAME
from tuner.selection.changes import FALSE_DISCOVERIES, Shift, Where
from tuner.store.store import Store
from tuner.units import share_text, size_text

PATH = "/history"
_NUMBERS = ["campaign", "mpi_library", "size_bytes", "method", "median_s", "low_s", "high_s"]


@dataclass(frozen=True)
class HistoryQuery(CaseQuery):
    """One case in all campaigns, and the size that is drawn."""

    campaign: str = parameter("c", NAME)
    size: str = parameter("b", INTEGER, "Message size")


@dataclass(frozen=True)
class HistoryChoice(CaseChoice[HistoryQuery]):
    """The case, as the newest campaign with it has it, and all campaigns in order of date."""

    measured: pd.DataFrame  # its cells of all sizes, as by `_of_case`
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
    measured = _of_case(store, system, frozenset(case.items()))
    sizes = size_options(measured)
    filters.choose("size", sizes, default=sizes[len(sizes) // 2][0])
    return HistoryChoice(
        query=replace(filters.query, campaign=""),
        options=filters.options,
        system=described(systems, system),
        case=case,
        measured=measured,
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
def _of_case(store: Store, system: str, case: Collection[tuple[str, Any]]) -> pd.DataFrame:
    """Return the rows of `Store.cells` of a case in all campaigns, and their `mpi_library`."""
    cells = (
        store.cells(**dict(case) | {"system": each.system, "campaign": each.name}).assign(
            mpi_library=each.mpi_library
        )
        for each in compared.campaigns(store, system)
    )
    return pd.concat([its for its in cells if len(its)], ignore_index=True)


def _draw(store: Store, choice: HistoryChoice) -> dict[str, Any]:
    size = choice.query.size
    cells = choice.measured[choice.measured["size_bytes"] == int(size)]
    figure = history(cells, dict(choice.options["size"])[size])
    return {"history": figure, "changes": _changes(store, choice)}


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
    data={"history": lambda store, choice: choice.measured[_NUMBERS]},
    reported=_reported,
    systems=lambda store, query: upgrades(explorable(store), query.system)["system"],
)
