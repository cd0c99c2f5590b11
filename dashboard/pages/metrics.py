"""Metrics: time against the messages and bytes of plans, for all patterns on a layout."""

import json
import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
from dash import html

from dashboard.choice import (
    Filters,
    campaigns_of,
    cases_of,
    explorable,
    layout_keys,
    named,
    operations_of,
    options_of,
    size_options,
    system_options,
)
from dashboard.figures.metrics import METRICS, against_time
from dashboard.markup import Component
from dashboard.pages.page import FilteredPage
from dashboard.pages.parts import Plot
from dashboard.query import INTEGER, LAYOUT, WORD, PageQuery, Query, parameter
from dashboard.widgets import Option, card
from tuner.domain.records import NAME
from tuner.store.store import Store

PATH = "/metrics"
_COUNTING = ("exchange", "spmv")  # operations whose plans count their messages


@dataclass(frozen=True)
class MetricsQuery(PageQuery):
    """The cells of a campaign with one operation, layout and size, for all patterns."""

    system: str = parameter("s", NAME, "System")
    campaign: str = parameter("c", NAME, "Campaign")
    operation: str = parameter("o", WORD, "Operation")
    layout: str = parameter("r", LAYOUT, "Processes")
    size: str = parameter("b", INTEGER, "Message size")


@dataclass(frozen=True)
class MetricsChoice:
    """A complete query, the options of its selects, and the cells with a column for each metric."""

    query: MetricsQuery
    options: dict[str, list[Option]]
    cells: pd.DataFrame


def _choose(store: Store, query: MetricsQuery, *, strict: bool) -> MetricsChoice:
    """Complete a query: see `FilteredPage`.

    The defaults are the newest campaign whose plans count, a layout on which the counts of methods
    or patterns differ, of those with a core for each rank if there is one, and its middle size.
    """
    filters = Filters(query, strict=strict)
    system = filters.choose("system", system_options(explorable(store)))
    wanted = [query.operation] if query.operation else _COUNTING
    having = [name for each in wanted for name in campaigns_of(store, system, each)]
    measured = named(campaigns_of(store, system))
    newest = next((name for name, _ in measured if name in having), "")
    campaign = filters.choose("campaign", measured, default=newest)
    operations = operations_of(cases_of(store, system, campaign))
    counting = next((name for name in _COUNTING if name in operations), "")
    operation = filters.choose("operation", named(operations), default=counting)
    cells = store.cells(system, campaign=campaign, operation=operation)
    keys = layout_keys(cells)
    layouts = options_of(cells, keys, with_sync=cells["sync"].nunique() > 1)
    counted = _counted(cells.assign(layout=keys))
    counts = counted.groupby("layout")["mmax"].nunique()
    differing = next((key for key, _ in layouts if counts.get(key, 0) > 1), "")
    layout = filters.choose("layout", layouts, default=differing)
    sizes = size_options(cells[keys == layout])
    size = filters.choose("size", sizes, default=sizes[len(sizes) // 2][0])
    found = counted[(counted["layout"] == layout) & (counted["size_bytes"] == int(size))]
    return MetricsChoice(filters.query, filters.options, found.drop(columns="layout"))


def statistics(text: str) -> dict[str, float]:
    """Return the statistics of a plan that are finite numbers; files may have had any others."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):  # an integer of too many digits
        return {}
    if not isinstance(found, dict):
        return {}
    return {name: its for name, its in found.items() if _is_finite(its)}


def _is_finite(value: Any) -> bool:
    return isinstance(value, int | float) and abs(value) <= sys.float_info.max


def _counted(cells: pd.DataFrame) -> pd.DataFrame:
    """Return the cells whose plans count messages, with the counts of plans, not of patterns."""
    counts = [statistics(text) for text in cells["statistics"]]
    columns = {name: [each.get(name, math.nan) for each in counts] for name in METRICS}
    found = cells.drop(columns="statistics").assign(**columns)
    found = found.astype(dict.fromkeys(METRICS, float))
    return found[(found["mmax"] > 0) & (found["mavg"] > 0) & (found["vavg_bytes"] >= 0)]


def _draw(store: Store, choice: MetricsChoice) -> dict[str, Any]:
    return {name: against_time(choice.cells, name) for name in METRICS}


def _missing(choice: MetricsChoice) -> str:
    if not choice.cells.empty:
        return ""
    return (
        "Only plans of exchanges and sparse products count their messages: choose one, or run "
        "`switchpoint run -- --name ^exchange`."
    )


def _body(parts: Mapping[str, Component]) -> Sequence[Component]:
    return [
        card(
            "Time against messages and bytes sent",
            html.P(
                "Each point is a method on a pattern, with the 95 % interval of its time. Messages "
                "and bytes are those of the method's plan, including forwarded ones: a method that "
                "forwards sends fewer messages and more bytes. Plans of discoveries and "
                "collectives have no counts.",
                className="hint",
            ),
            html.Div([parts[name] for name in METRICS], className="metrics"),
        )
    ]


def _reported(store: Store, system: str) -> list[Query]:
    """Return the default of a system whose plans count."""
    counts = any(campaigns_of(store, system, operation) for operation in _COUNTING)
    return [MetricsQuery(system)] if counts else []


PAGE = FilteredPage(
    path=PATH,
    title="Metrics",
    query=MetricsQuery,
    parts={
        name: Plot(f"Time of each method and pattern against {metric.title}.")
        for name, metric in METRICS.items()
    },
    choose=_choose,
    draw=_draw,
    body=_body,
    data=dict.fromkeys(METRICS, lambda store, choice: choice.cells),
    missing=_missing,
    reported=_reported,
)
