"""Overlap of communication and computation: a breakdown of the time by method."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
from dash import html

from dashboard.choice import Filters, layout_keys, named, options_of, system_options, systems_of
from dashboard.elements import data_cell, row_head, table_row
from dashboard.figures.breakdown import PARTS, breakdown
from dashboard.frames import rows_of
from dashboard.markup import Component
from dashboard.measuring import with_own_commands
from dashboard.pages.page import FilteredPage
from dashboard.pages.parts import Block, Plot
from dashboard.query import INTEGER, LAYOUT, PageQuery, Query, parameter
from dashboard.units import ratio_text, time_text
from dashboard.widgets import Option, badge, card, data_table, prose
from tuner.domain.records import NAME, PATTERN_SPEC
from tuner.errors import SwitchpointError
from tuner.models import breakdowns, fitting
from tuner.models.system import SystemModel
from tuner.store.store import Store
from tuner.units import share_text

PATH = "/overlap"
_HEADER = ("Method", "Whole", *(name.capitalize() for name, *_ in PARTS.values()))
_MORE = ("Computation slowdown", "Predicted whole", "Launches")


@dataclass(frozen=True)
class OverlapQuery(PageQuery):
    """A case of overlap, and the amount of computation during the communication."""

    system: str = parameter("s", NAME, "System")
    pattern: str = parameter("p", PATTERN_SPEC, "Case")
    layout: str = parameter("r", LAYOUT, "Processes")
    flops: str = parameter("f", INTEGER, "Computation")


@dataclass(frozen=True)
class OverlapChoice:
    """A complete query, its selects' options, the methods, and the reason if none is predicted."""

    query: OverlapQuery
    options: dict[str, list[Option]]
    rows: pd.DataFrame
    reason: str


def _choose(store: Store, query: OverlapQuery, *, strict: bool) -> OverlapChoice:
    """Complete a query: see `FilteredPage`.

    The defaults are the most processes that are not oversubscribed, and the most computation.
    """
    systems = systems_of(store)
    measured = systems["system"].isin(store.systems_with("overlap"))
    systems = systems[measured] if measured.any() else systems
    filters = Filters(query, strict=strict)
    system = filters.choose("system", system_options(systems))
    rows = breakdowns.last_measured(store, system)
    if rows.empty:
        empty: dict[str, list[Option]] = {"pattern": [], "layout": [], "flops": []}
        return OverlapChoice(OverlapQuery(system), filters.options | empty, rows, "")
    patterns = sorted(rows["pattern"].unique())
    rows = rows[rows["pattern"] == filters.choose("pattern", named(patterns))]
    keys = layout_keys(rows.assign(sync=""))
    rows = rows[keys == filters.choose("layout", options_of(rows, keys))]
    rows = rows[rows["flops"] == int(filters.choose("flops", _amounts(rows)))]
    predicted, reason = _predicted(store, system, rows)
    rows = rows.assign(predicted_s=predicted)
    return OverlapChoice(filters.query, filters.options, rows, reason)


def _amounts(rows: pd.DataFrame) -> list[Option]:
    """Return the amounts of computation, the largest first, as shares of full rows."""
    unique = rows.drop_duplicates("flops").sort_values("flops", ascending=False)
    return [
        (str(flops), share_text(flops / full_flops if full_flops else 0))
        for flops, full_flops in zip(unique["flops"], unique["full_flops"], strict=True)
    ]


def _predicted(store: Store, system: str, rows: pd.DataFrame) -> tuple[list[float], str]:
    """Return the predicted total time of each row, NaN for none, and why there is none."""
    try:
        model = fitting.fitted(store, system)
        return [_whole_s(model, row) for row in rows.itertuples()], ""
    except SwitchpointError as error:
        return [math.nan] * len(rows), with_own_commands(str(error), store, system)


def _whole_s(model: SystemModel, row: Any) -> float:
    found = breakdowns.predicted(model, row.pattern, row.procs, row.ppn, row.method, row.alone_s)
    return found.total_s if found else math.nan


def _draw(store: Store, choice: OverlapChoice) -> dict[str, Any]:
    return {
        "breakdown": breakdown(choice.rows),
        "notes": _notes(choice),
        "methods": _methods(choice.rows),
    }


def _notes(choice: OverlapChoice) -> list[Component]:
    marks = []
    if choice.rows["oversubscribed"].any():
        marks.append(badge("oversubscribed"))
    if choice.reason:
        marks.append(badge(prose(f"not predicted: {choice.reason}"), "secondary"))
    return marks


def _missing(choice: OverlapChoice) -> str:
    return "Run `switchpoint run -- --tag=overlap`." if choice.rows.empty else ""


def _methods(rows: pd.DataFrame) -> Component | None:
    if rows.empty:
        return None
    body = []
    for each in rows_of(rows.sort_values("total_s")):
        slowed = each["computation_s"] / each["alone_s"] if each["alone_s"] else float("nan")
        texts = (
            time_text(each["total_s"]),
            *(time_text(each[part]) for part in PARTS),
            ratio_text(slowed),
            time_text(each["predicted_s"]),
            str(each["launches"]),
        )
        body.append(table_row([row_head(each["method"]), *map(data_cell, texts)]))
    return data_table("Overlap by method, the fastest first", (*_HEADER, *_MORE), body)


def _body(parts: Mapping[str, Component]) -> Sequence[Component]:
    return [
        parts["notes"],
        card(
            "Time breakdown of a rank",
            html.P(
                "Medians over the launches of the last campaign. The whole lasts until the last "
                "rank is done; its parts are means over ranks. Time to the right of the mark for "
                "computation alone is the cost of communication.",
                className="hint",
            ),
            parts["breakdown"],
            parts["methods"],
        ),
    ]


def _reported(store: Store, system: str) -> list[Query]:
    """Return the overlap of a system, if any was measured."""
    return [OverlapQuery(system)] if system in store.systems_with("overlap") else []


PAGE = FilteredPage(
    path=PATH,
    title="Overlap",
    query=OverlapQuery,
    parts={
        "breakdown": Plot("Computation, initiation, wait and barrier of each method."),
        "notes": Block("notes"),
        "methods": Block(),
    },
    choose=_choose,
    draw=_draw,
    body=_body,
    data={"breakdown": lambda store, choice: choice.rows},
    missing=_missing,
    reported=_reported,
)
