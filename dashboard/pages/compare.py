"""Compare: what changed between two campaigns or systems, and the cost of the other's table."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
from dash import html
from dash.development.base_component import Component

from dashboard import soaked
from dashboard.choice import (
    Filters,
    before_upgrade,
    explorable,
    layout_key,
    layout_text,
    named,
    newest_operations,
    operations_of,
    system_options,
    unreal,
)
from dashboard.elements import anchor, data_cell, row_head, table_row
from dashboard.figures.axes import message
from dashboard.figures.changes import changes
from dashboard.pages import explore
from dashboard.pages.page import FilteredPage
from dashboard.pages.parts import Block, Plot
from dashboard.query import WORD, Query, parameter
from dashboard.soaked import Standing
from dashboard.units import change_text, interval_text, ratio_text
from dashboard.widgets import Option, card, data_table, href, method_name
from tuner import comparison, tuning
from tuner.comparison import Change, Choice, Comparison, Loss, Measured, Moved, Where
from tuner.operations import COLLECTIVES
from tuner.records import NAME
from tuner.selection import soaks
from tuner.store import Store
from tuner.units import size_text

PATH = "/compare"
_ROWS = 40


@dataclass(frozen=True)
class CompareQuery(Query):
    """A and B, each a campaign of a system, and the operation; B is what the page is about."""

    other_system: str = parameter("t", NAME, "A: system")
    other_campaign: str = parameter("u", NAME, "A: campaign")
    system: str = parameter("s", NAME, "B: system")
    campaign: str = parameter("c", NAME, "B: campaign")
    operation: str = parameter("o", WORD, "Operation")


@dataclass(frozen=True)
class CompareChoice:
    """A complete query, what its selects offer, and what differs; None: A and B are the same.

    undecided: a campaign of the two whose decisions the store does not have, or "".
    """

    query: CompareQuery
    options: dict[str, list[Option]]
    found: Comparison | None
    undecided: str


def _choose(store: Store, query: CompareQuery, *, strict: bool) -> CompareChoice:
    """See `FilteredPage`. The default is the newest campaign against what was before it.

    That is the system before an upgrade where there was one, else the campaign before, else another
    system, but no simulated one beside a real one.
    """
    systems = explorable(store)
    offered = system_options(systems)
    filters = Filters(query, strict=strict)
    system = filters.choose("system", offered)
    measured = store.campaigns_with_cells(system)
    campaign = filters.choose("campaign", named(measured))
    operations = operations_of(store.cases(system, campaign))
    # Of a system with one campaign there is nothing else to compare with.
    kinds = {name: unreal(*of) for name, *of in systems[["system", "name", "cpu_model"]].to_numpy()}
    alike = [name for name, kind in kinds.items() if name != system and kind == kinds[system]]
    others = alike if len(measured) == 1 else []
    before = [*before_upgrade(systems, system), *others, system][0]
    other_system = filters.choose("other_system", offered, default=before)
    wanted = [query.operation] if query.operation else operations
    found_in = _others(store, other_system, (system, campaign), wanted)
    campaigns = store.campaigns_with_cells(other_system)
    if other_system == system:  # what lies before it first
        campaigns = [*(name for name in campaigns if name != campaign), campaign]
    other_campaign = filters.choose("other_campaign", named(campaigns), default=next(found_in, ""))
    others_operations = set(operations_of(store.cases(other_system, other_campaign)))
    common = [name for name in operations if name in others_operations]
    operation = filters.choose("operation", named(operations), default=next(iter(common), ""))
    sides = [(other_system, other_campaign), (system, campaign)]
    found = None
    if sides[0] != sides[1]:
        found = comparison.compare(*(_measured(store, *side, operation) for side in sides))
    undecided = next((name for of, name in sides if name in store.undecided(of)), "")
    return CompareChoice(filters.query, filters.options, found, undecided)


def _others(
    store: Store, system: str, than: tuple[str, str], operations: Iterable[str]
) -> Iterator[str]:
    """The campaigns of a system but one that measured an operation, the newest of each first."""
    for operation in operations:
        for name in store.campaigns_with_cells(system, operation):
            if (system, name) != than:
                yield name


def _measured(store: Store, system: str, campaign: str, operation: str) -> Measured:
    return comparison.measured(
        store.contents((system, campaign, operation), samples=False),
        store.decisions(system, campaign, operation),
        soaks.verdicts(store.soaks(system)),
        tuning.required_on(str(store.systems().set_index("system").loc[system, "name"])),
    )


def _changed(store: Store, choice: CompareChoice) -> pd.DataFrame:
    """One row a cell that changed, the largest change first."""
    rows = [
        (_case_text(change.where), *_numbers(change))
        for change in (choice.found.changes if choice.found else ())
    ]
    names = ("pattern", "procs", "nodes", "ppn", "bytes", "method", "ratio", "low", "high")
    return pd.DataFrame(rows, columns=["where", *names])


def _numbers(change: Change) -> tuple[Any, ...]:
    where = change.where
    return (
        *(where.pattern, where.procs, where.nodes, where.ppn, where.bytes, where.method),
        *(change.ratio, change.low, change.high),
    )


def _case_text(where: Where) -> str:
    layout = layout_text(where.nodes, where.ppn, oversubscribed=where.oversubscribed)
    return f"{where.pattern}, {layout}"


def _draw(store: Store, choice: CompareChoice) -> dict[str, Any]:
    found = choice.found
    nothing = html.P("Nothing to compare.")
    parts: dict[str, Any] = {"changes": message("Nothing to compare.", 120), "rows": []}
    parts |= {"moved": nothing, "loss": nothing}
    if found is None:
        return parts | {"summary": _same()}
    parts |= {"summary": _summary(found), "loss": _loss(found.loss)}
    if found.common_ratio is not None:
        moved = _moved_table(found.moved, choice.query.operation, _soaks(store, choice))
        parts |= {"changes": changes(_changed(store, choice)), "rows": _change_table(choice)}
        parts |= {"moved": moved}
    if choice.undecided:
        tune = html.Code("switchpoint tune")
        waiting = html.P(["Not known before ", tune, f" has decided {choice.undecided}."])
        parts |= {"moved": waiting, "loss": waiting}
    return parts


def _same() -> Component:
    text = "A and B are the same: choose another campaign or system, or measure another by "
    return html.P([text, html.Code("switchpoint run"), "."])


def _summary(found: Comparison) -> Component:
    if found.common_ratio is None:
        return html.P("No method was measured in the same case by both: choose another campaign.")
    return html.P(
        f"{len(found.changes)} of {found.compared} cells that both have changed, at most "
        f"{100 * comparison.FALSE_DISCOVERIES:.0f} % of those by chance. On average over all, B "
        f"takes {ratio_text(found.common_ratio)} the time of A."
    )


def _change_table(choice: CompareChoice) -> list[Component]:
    found = choice.found.changes if choice.found else []
    if not found:
        return []
    rows = []
    for change in found[:_ROWS]:
        where = change.where
        cells = [
            row_head(method_name(where.method)),
            data_cell(size_text(where.bytes)),
            data_cell(ratio_text(change.ratio)),
            data_cell(interval_text(change.low, change.high, ratio_text)),
            data_cell(_case_text(where), className="wrap"),
            data_cell(_samples(choice.query, where)),
        ]
        rows.append(table_row(cells))
    header = ("Method", "Bytes", "Time in B / A", "95 %", "Case", "Samples")
    table = data_table("Cells that changed, the largest first", header, rows)
    if len(found) <= _ROWS:
        return [table]
    rest = html.P(f"And {len(found) - _ROWS} smaller ones, in the CSV above.", className="hint")
    return [table, rest]


def _samples(query: CompareQuery, where: Where) -> list[Any]:
    """Links to the cell in A and in B."""
    links: list[Any] = []
    layout = (where.procs, where.nodes, where.ppn, where.sync, where.oversubscribed)
    for letter, system, campaign in (
        ("A", query.other_system, query.other_campaign),
        ("B", query.system, query.campaign),
    ):
        query_of_cell = explore.ExploreQuery(
            *(system, campaign, where.operation, where.pattern, layout_key(*layout)),
            size=str(where.size_bytes),
        )
        links += [anchor(letter, href(explore.PATH, query_of_cell.search())), " "]
    return links


def _soaks(store: Store, choice: CompareChoice) -> tuple[Standing, Standing]:
    """Of A's and of B's system."""
    query = choice.query
    return soaked.of_now(store, query.other_system), soaked.of_now(store, query.system)


def _moved_table(
    moved: Sequence[Moved], operation: str, standings: tuple[Standing, Standing]
) -> Component:
    if not moved:
        return html.P("No switch point moved, at the sizes that both measured.")
    rows = []
    for each in moved:
        degree = "" if operation in COLLECTIVES else f", degree {each.mmax}, mean {each.mavg:.3g}"
        case = layout_text(each.nodes, each.ppn, oversubscribed=False) + degree
        methods = [
            _choices_text(operation, choices, standing)
            for choices, standing in zip((each.a, each.b), standings, strict=True)
        ]
        texts = (*methods, f"{each.sizes}, {each.shown}")
        rows.append(
            table_row([row_head(case), *(data_cell(text, className="wrap") for text in texts)])
        )
    header = ("Case", "Methods of A", "Methods of B", "Sizes that differ, shown by both")
    return data_table("Cases in which another method is chosen", header, rows)


def _choices_text(operation: str, choices: Sequence[Choice], standing: Standing) -> str:
    """The methods by size, each with its soak where it is first named."""
    texts = []
    named: set[str] = set()
    for number, choice in enumerate(choices):
        text = f"from {size_text(choice.from_bytes)} {choice.method}" if number else choice.method
        soak = standing.text(operation, choice.method)
        texts.append(f"{text} ({soak})" if soak and choice.method not in named else text)
        named.add(choice.method)
    return ", ".join(texts)


def _loss(loss: Loss) -> Component:
    if loss.mean is None or loss.p95 is None or loss.worst is None:
        return html.P("Not known: A has not measured the methods of B's table.")
    texts = [
        f"With the table of B, the times of A's {loss.cases} cases change by "
        f"{change_text(loss.mean)} in the mean and {change_text(loss.p95)} at the 95th percentile."
    ]
    if loss.worst_where:
        where = loss.worst_where
        texts.append(
            f"Worst: {change_text(loss.worst)} by {where.method} for {_case_text(where)} at "
            f"{size_text(where.bytes)}."
        )
    if loss.without_rule:
        texts.append(f"{loss.without_rule} cases have no rule in B: they take the default.")
    if loss.not_measured:
        texts.append(f"Of {loss.not_measured} more cases A has not measured B's choice.")
    return html.P(" ".join(texts))


def _body(parts: Mapping[str, Component]) -> Sequence[Component]:
    return [
        card(
            "Cells that changed",
            parts["summary"],
            parts["changes"],
            parts["rows"],
        ),
        card(
            "Switch points that moved",
            html.P(
                "Of what was measured alone: a table takes these methods once they are soaked.",
                className="hint",
            ),
            parts["moved"],
        ),
        card("What A loses with the table of B", parts["loss"]),
    ]


def _reported(store: Store, system: str) -> list[Query]:
    """Every operation of the newest campaign that another of the system or before it measured."""
    campaign, operations = newest_operations(store, system)
    if not campaign:
        return []
    before = [*before_upgrade(explorable(store), system), system][0]
    return [
        CompareQuery(system=system, campaign=campaign, operation=operation)
        for operation in operations
        if any(_others(store, before, (system, campaign), [operation]))
    ]


PAGE = FilteredPage(
    path=PATH,
    title="Compare",
    query=CompareQuery,
    parts={
        "summary": Block(),
        "changes": Plot("Time in B as a multiple of the time in A, of every cell that changed."),
        "rows": Block(),
        "moved": Block(),
        "loss": Block(),
    },
    choose=_choose,
    draw=_draw,
    body=_body,
    data={"changes": _changed},
    reported=_reported,
)
