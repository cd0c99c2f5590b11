"""Compare: changes between two campaigns, and the cost of using B's table on A."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from dash import ClientsideFunction, Dash, Input, Output, State, html

from dashboard import compared, ids, soaked
from dashboard.choice import (
    Filters,
    before_upgrade,
    campaigns_of,
    cases_of,
    cores_text,
    explorable,
    layout_text,
    named,
    newest_operations,
    operations_of,
    system_options,
)
from dashboard.compared import MachineCampaign, Side
from dashboard.elements import anchor, data_cell, row_head, table_row
from dashboard.figures.axes import message
from dashboard.figures.changes import changes, significance
from dashboard.frames import described
from dashboard.markup import Component
from dashboard.pages import explore
from dashboard.pages.page import FilteredPage
from dashboard.pages.parts import Block, Plot
from dashboard.query import WORD, PageQuery, Query, parameter
from dashboard.soaked import SoakResults
from dashboard.units import interval_text, ratio_text
from dashboard.web import OpenStore
from dashboard.widgets import Option, badge, card, data_table, method_name
from tuner.domain.operations import COLLECTIVES
from tuner.domain.records import NAME
from tuner.machine.systems import unreal
from tuner.selection.changes import FALSE_DISCOVERIES, Change, Shift, Where
from tuner.selection.comparison import Choice, Comparison, Loss, Moved, Replaced
from tuner.store.store import Store
from tuner.units import change_text, share_text, size_text

PATH = "/compare"
ALL = "all"  # operations
_ROWS = 40
_PIN = ids.of(PATH, "pin")
_CASE = ("operation", "pattern", "procs", "nodes", "ppn", "bytes", "method")
_FIGURES = ("ratio", "low", "high", "p")
_MACHINE = ["name", "cpu_model", "cores"]


@dataclass(frozen=True)
class CompareQuery(PageQuery):
    """A and B, each a campaign of a system, and the operation or `all`; B is the page's subject."""

    other_system: str = parameter("t", NAME, "A: system")
    other_campaign: str = parameter("u", NAME, "A: campaign")
    system: str = parameter("s", NAME, "B: system")
    campaign: str = parameter("c", NAME, "B: campaign")
    operation: str = parameter("o", WORD, "Operation")


@dataclass(frozen=True)
class CompareChoice:
    """A complete query, its selects' options, and the differences; None: A and B are the same.

    sides: the systems of A and B. undecided: the first of the two campaigns whose decisions the
    store lacks, or "".
    """

    query: CompareQuery
    options: dict[str, list[Option]]
    sides: list[dict[str, Any]]
    found: Comparison | None
    undecided: str


def _choose(store: Store, query: CompareQuery, *, strict: bool) -> CompareChoice:
    """Complete a query: see `FilteredPage`. By default the newest campaign and its predecessor.

    The predecessor is of the system before an upgrade, if any, else the previous campaign, else of
    another MPI, but never of another machine: the one since which most changed, if any did.
    """
    systems = explorable(store)
    offered = system_options(systems)
    filters = Filters(query, strict=strict)
    system = filters.choose("system", offered)
    measured = campaigns_of(store, system)
    campaign = filters.choose("campaign", named(measured))
    operations = operations_of(cases_of(store, system, campaign))
    machines = systems[_MACHINE].apply(tuple, axis=1)
    here = systems[machines == tuple(described(systems, system)[name] for name in _MACHINE)]
    # A system with one campaign is compared with others.
    others = [name for name in here["system"] if name != system] if len(measured) == 1 else []
    wanted = operations if query.operation in ("", ALL) else [query.operation]
    before = [*before_upgrade(here, system), *others, system][0]
    other_system = filters.choose("other_system", offered, default=before)
    campaigns = campaigns_of(store, other_system)
    if other_system == system:  # earlier campaigns first
        campaigns = [*(name for name in campaigns if name != campaign), campaign]
    since = _changed_since(store, system, campaign, wanted)
    if since and other_system == since.system:
        earlier = since.name
    else:
        earlier = _most_alike(store, other_system, (system, campaign), wanted)
    other_campaign = filters.choose("other_campaign", named(campaigns), default=earlier)
    others_operations = set(operations_of(cases_of(store, other_system, other_campaign)))
    common = [name for name in operations if name in others_operations]
    operation = filters.choose("operation", [(ALL, "all, largest effect first"), *named(common)])
    a, b = (other_system, other_campaign), (system, campaign)
    of = "" if operation == ALL else operation
    found = None if a == b else compared.compare(store, a, b, of)
    sides = [described(systems, name) for name in (other_system, system)]
    undecided = compared.undecided(store, a, b)
    return CompareChoice(filters.query, filters.options, sides, found, undecided)


def _changed_since(
    store: Store, system: str, campaign: str, operations: Sequence[str]
) -> MachineCampaign | None:
    """Return the campaign since which one of the operations changed most, as Overview says it.

    Return None if none changed, or the campaign is not the newest.
    """
    step = compared.newest_step(store, system)
    changed = step.changed if step and step.campaign.name == campaign else []
    of_operations = (shift.operation for shift in changed if shift.operation in operations)
    first = next(of_operations, None)
    return step.before[first] if step and first else None


def _most_alike(store: Store, system: str, than: Side, operations: Sequence[str]) -> str:
    """Return the other campaign that measured most of the operations, the newest if tied.

    Return "" if none measured any.
    """
    count: Counter[str] = Counter()
    for operation in operations:
        having = campaigns_of(store, system, operation)
        count.update(name for name in having if (system, name) != than)
    newest = [name for name in campaigns_of(store, system) if name in count]
    return max(newest, key=lambda name: count[name], default="")


def _changed(store: Store, choice: CompareChoice) -> pd.DataFrame:
    """Return one row for each changed cell, the largest change first."""
    return _rows(choice.found.changes if choice.found else [])


def _tested(store: Store, choice: CompareChoice) -> pd.DataFrame:
    """Return one row for each cell that can be tested, first those that changed."""
    changed = choice.found.changes if choice.found else []
    operations = choice.found.operations if choice.found else []
    rows = _rows([*changed, *(each for shift in operations for each in shift.unchanged)])
    return rows.assign(changed=np.arange(len(rows)) < len(changed))


def _rows(compared: Sequence[Change]) -> pd.DataFrame:
    return pd.DataFrame(map(_row, compared), columns=["where", *_CASE, *_FIGURES])


def _row(change: Change) -> tuple[Any, ...]:
    case, its = change.where.case, change.where.case.layout
    return (
        f"{case.operation}, {_case_text(change.where)}",
        *(case.operation, case.pattern, its.procs, its.nodes, its.ppn, case.bytes),
        *(change.where.method, change.ratio, change.low, change.high, change.p),
    )


def _case_text(where: Where) -> str:
    its = where.case.layout
    layout = layout_text(its.nodes, its.ppn, oversubscribed=its.oversubscribed)
    return f"{where.case.pattern}, {layout}"


def _draw(store: Store, choice: CompareChoice) -> dict[str, Any]:
    found = choice.found
    nothing = html.P("Nothing to compare.")
    empty = message("Nothing to compare.", 120)
    parts: dict[str, Any] = {"significance": empty, "changes": empty, "rows": []}
    parts |= {"sides": _sides(choice)}
    parts |= {"moved": nothing, "loss": nothing}
    if found is None or found.common_ratio is None:
        return parts | {"summary": []}
    tested, soaks = _tested(store, choice), _soaks(store, choice)
    parts |= {"significance": significance(tested), "changes": changes(tested)}
    parts |= {"summary": _summary(found, found.common_ratio), "rows": _change_table(choice)}
    parts |= {"moved": _both(found, lambda of, which: _moved_table(of.moved, soaks, which))}
    parts |= {"loss": _both(found, lambda of, _: _loss(of.loss))}
    if choice.undecided:
        tune = html.Code("switchpoint tune")
        waiting = html.P(["Run ", tune, f" first: {choice.undecided} has no decisions yet."])
        parts |= {"moved": waiting, "loss": waiting}
    return parts


def _sides(choice: CompareChoice) -> list[Component]:
    """Return the machine and MPI of A and B, and a mark where the machines differ."""
    campaigns = (choice.query.other_campaign, choice.query.campaign)
    rows = []
    for letter, its, campaign in zip("AB", choice.sides, campaigns, strict=True):
        kind = unreal(its["name"], its["cpu_model"])
        machine = ", ".join(filter(None, (its["name"], its["cpu_model"], cores_text(its))))
        texts = (f"{machine} ({kind})" if kind else machine, its["mpi_library"], its["compiler"])
        cells = [data_cell(text, className="wrap") for text in texts]
        rows.append(table_row([row_head(letter), *cells, data_cell(campaign)]))
    header = ("Side", "Machine", "MPI", "Compiler", "Campaign")
    a, b = ([its[name] for name in _MACHINE] for its in choice.sides)
    marks = [] if a == b else [html.Div(badge("different machines"), className="notes")]
    return [*marks, data_table("Machine and MPI of A and B", header, rows)]


def _both(found: Comparison, shown: Callable[[Replaced, str], Component]) -> list[Component]:
    """Return the measured values, and separately the deployable ones where they differ."""
    parts = {"Measured": found.measured, "Deployable": found.deployable}
    if found.measured == found.deployable:
        parts = {"Measured and deployable": found.measured}
    return [
        component
        for which, of in parts.items()
        for component in (html.H3(which, className="h6"), shown(of, which.lower()))
    ]


def _missing(choice: CompareChoice) -> str:
    if choice.found is not None:
        shared = choice.found.common_ratio is not None
        return "" if shared else "A and B share no cells: choose another campaign or system."
    return (
        "A and B are the same. Choose another campaign or system, or measure again with "
        "`switchpoint run`."
    )


def _summary(found: Comparison, common_ratio: float) -> list[Component]:
    texts = [
        f"{len(found.changes)} of {found.compared} shared cells changed; at most "
        f"{share_text(FALSE_DISCOVERIES, 0)} of these changes are expected by chance.",
        f"On average over all cells, B takes {ratio_text(common_ratio)} the time of A.",
    ]
    first = found.operations[0]
    if len(found.operations) == 1 or not first.changes:
        return [html.P(" ".join(texts))]
    most = html.Strong(f"{first.operation} changed most.")
    return [html.P([most, " ", " ".join(texts)]), _operation_table(found.operations)]


def _operation_table(operations: Sequence[Shift]) -> Component:
    rows = [
        table_row(
            [
                row_head(shift.operation),
                data_cell(f"{len(shift.changes)} of {shift.compared}"),
                data_cell(ratio_text(shift.ratio)),
                data_cell(_largest_text(shift.changes), className="wrap wide"),
            ]
        )
        for shift in operations
    ]
    header = ("Operation", "Changed cells", "Time in B / A, mean", "Largest change")
    return data_table("Operations, the largest change first", header, rows)


def _largest_text(of_operation: Sequence[Change]) -> str:
    if not of_operation:
        return ""
    largest = of_operation[0]
    where = largest.where
    return f"{ratio_text(largest.ratio)} by {where.method} at {size_text(where.case.bytes)}"


def _change_table(choice: CompareChoice) -> list[Component]:
    found = choice.found.changes if choice.found else []
    if not found:
        return []
    rows = []
    for change in found[:_ROWS]:
        where = change.where
        cells = [
            row_head(method_name(where.method)),
            data_cell(where.case.operation),
            data_cell(size_text(where.case.bytes)),
            data_cell(ratio_text(change.ratio)),
            data_cell(interval_text(change.low, change.high, ratio_text)),
            data_cell(_case_text(where), className="wrap wide"),
            data_cell(_samples(choice.query, where)),
        ]
        rows.append(table_row(cells))
    header = ("Method", "Operation", "Bytes", "Time in B / A", "95 %", "Case", "Samples")
    table = data_table("Changed cells, the largest change first", header, rows)
    if len(found) <= _ROWS:
        return [table]
    rest = html.P(f"The CSV above lists {len(found) - _ROWS} more.", className="hint")
    return [table, rest]


def _samples(query: CompareQuery, where: Where) -> list[Any]:
    """Return links to the cell in A and in B."""
    links: list[Any] = []
    for letter, system, campaign in (
        ("A", query.other_system, query.other_campaign),
        ("B", query.system, query.campaign),
    ):
        links += [anchor(letter, explore.cell_link(system, campaign, where.case)), " "]
    return links


def _soaks(store: Store, choice: CompareChoice) -> tuple[SoakResults, SoakResults]:
    """Return the soaks of A's and of B's system."""
    query = choice.query
    return soaked.of_now(store, query.other_system), soaked.of_now(store, query.system)


def _moved_table(
    moved: Sequence[Moved], soaks: tuple[SoakResults, SoakResults], which: str
) -> Component:
    if not moved:
        return html.P("No switch point moved at the sizes measured in both.")
    rows = []
    for each in moved:
        operation = each.operation
        degree = "" if operation in COLLECTIVES else f", degree {each.mmax}, mean {each.mavg:.3g}"
        case = f"{operation}, {layout_text(each.nodes, each.ppn, oversubscribed=False)}{degree}"
        methods = [
            _choices_text(each, choices, its_soaks)
            for choices, its_soaks in zip((each.a, each.b), soaks, strict=True)
        ]
        texts = (*methods, f"{each.sizes}, {each.settled}")
        rows.append(
            table_row([row_head(case), *(data_cell(text, className="wrap") for text in texts)])
        )
    header = ("Case", "Methods of A", "Methods of B", "Sizes that differ, settled by both")
    return data_table(f"Cases with a different choice, {which}", header, rows)


def _choices_text(moved: Moved, choices: Sequence[Choice], its_soaks: SoakResults) -> str:
    """Return the methods by size, each with its soak on this layout at its first mention."""
    texts = []
    named: set[str] = set()
    for number, choice in enumerate(choices):
        text = f"from {size_text(choice.from_bytes)} {choice.method}" if number else choice.method
        soak = its_soaks.text(moved.operation, choice.method, moved.nodes, moved.ppn)
        texts.append(f"{text} ({soak})" if soak and choice.method not in named else text)
        named.add(choice.method)
    return ", ".join(texts)


def _loss(loss: Loss) -> Component:
    if loss.mean is None or loss.p95 is None or loss.worst is None:
        return html.P("Not known: A did not measure the methods in B's table.")
    texts = [
        f"With B's table, the times of A's {loss.cases} cases change by {change_text(loss.mean)} "
        f"on average and {change_text(loss.p95)} at the 95th percentile."
    ]
    if loss.worst_where:
        where = loss.worst_where
        texts.append(
            f"Worst: {change_text(loss.worst)} with {where.method} for {where.case.operation}, "
            f"{_case_text(where)} at {size_text(where.case.bytes)}."
        )
    if loss.without_rule:
        texts.append(f"{loss.without_rule} cases have no rule in B and use the default.")
    if loss.not_measured:
        texts.append(f"In {loss.not_measured} more cases, A did not measure B's choice.")
    return html.P(" ".join(texts))


def _body(parts: Mapping[str, Component]) -> Sequence[Component]:
    return [
        card(
            "A and B",
            parts["sides"],
            html.P(
                html.Button("Pin A as baseline", id=_PIN, type="button", className="btn btn-sm")
            ),
        ),
        card(
            "Changed cells",
            parts["summary"],
            html.P(
                "Effect against significance: cells above the line changed. They are also drawn by "
                "size.",
                className="hint",
            ),
            html.Div([parts["significance"], parts["changes"]], className="pair"),
            parts["rows"],
        ),
        card(
            "Switch points that moved",
            html.P(
                "Measured: methods chosen by time alone. Deployable: methods in exported tables, "
                "which have passed the soaks that the system's table requires.",
                className="hint",
            ),
            parts["moved"],
        ),
        card("Cost of using B's table on A", parts["loss"]),
    ]


def _reported(store: Store, system: str) -> list[Query]:
    """Return the newest campaign, if an earlier system or campaign measured its operations."""
    campaign, operations = newest_operations(store, system)
    before = [*before_upgrade(explorable(store), system), system][0] if campaign else system
    alike = _most_alike(store, before, (system, campaign), operations)
    return [CompareQuery(system=system, campaign=campaign)] if alike else []


class _ComparePage(FilteredPage[CompareChoice]):
    """A page that also pins a baseline, which the browser keeps, and links to it begin with."""

    def register(self, app: Dash, open_store: OpenStore) -> None:
        super().register(app, open_store)
        sides = [ids.of(PATH, name) for name in ("other_system", "other_campaign")]
        app.clientside_callback(
            ClientsideFunction("switchpoint", "pin"),
            Output(ids.BASELINE, "data"),
            Output(_PIN, "children"),
            Output(_PIN, "aria-pressed"),
            Input(_PIN, "n_clicks"),
            *(Input(side, "value") for side in sides),
            State(ids.BASELINE, "data"),
        )


PAGE = _ComparePage(
    path=PATH,
    title="Compare",
    query=CompareQuery,
    parts={
        "sides": Block(),
        "summary": Block(),
        "significance": Plot("Significance of each cell's change against its size."),
        "changes": Plot("Time in B as a multiple of the time in A, for each changed cell."),
        "rows": Block(),
        "moved": Block(),
        "loss": Block(),
    },
    choose=_choose,
    draw=_draw,
    body=_body,
    data={"significance": _tested, "changes": _changed},
    missing=_missing,
    reported=_reported,
)
