"""Map: the best method for every layout and size, and its gain."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from dash import ClientsideFunction, Dash, Input, Output, State, html

from dashboard import decided, ids
from dashboard.choice import (
    PatternChoice,
    PatternQuery,
    choose_pattern,
    layout_key,
    layout_keys,
    layout_options,
    newest_queries,
)
from dashboard.elements import anchor, data_cell, row_head, table_row
from dashboard.figures.methods import short_name
from dashboard.figures.tiles import tiles
from dashboard.frames import rows_of
from dashboard.markup import Component
from dashboard.pages import explore
from dashboard.pages.page import FilteredPage
from dashboard.pages.parts import Block, Link, Plot
from dashboard.query import choose, parameter
from dashboard.speedup import paired_speedups
from dashboard.units import ratio_text
from dashboard.web import OpenStore
from dashboard.widgets import card, data_table, href
from tuner.domain.operations import DEFAULT_METHODS, RULED_OPERATIONS
from tuner.domain.records import Cell
from tuner.selection.evidence import verdict
from tuner.store.cells import KEY
from tuner.store.store import Store
from tuner.units import size_text

PATH = "/map"
_LAYOUTS = {"fits": "not oversubscribed", "all": "all, including oversubscribed"}


@dataclass(frozen=True)
class MapQuery(PatternQuery):
    """A pattern, and the choice among its layouts."""

    layouts: str = parameter("l", [*_LAYOUTS], "Layouts")


@dataclass(frozen=True)
class MapChoice(PatternChoice[MapQuery]):
    """A pattern. best: the method that each layout and size decides for, as `tiles` draws it."""

    best: pd.DataFrame


def _choose(store: Store, query: MapQuery, *, strict: bool) -> MapChoice:
    """Complete a query: see `FilteredPage`. If every layout is oversubscribed, all are shown."""
    chosen = choose_pattern(store, query, strict=strict)
    fits = not chosen.cases["oversubscribed"].all()
    offered = [(name, text) for name, text in _LAYOUTS.items() if fits or name == "all"]
    which = choose([name for name, _ in offered], query.layouts, "choice", strict=strict)
    best = _best(store, chosen)
    if which == "fits":
        best = best[~best["oversubscribed"]]
    return MapChoice(
        query=replace(chosen.query, layouts=which),
        options=chosen.options | {"layouts": offered},
        system=chosen.system,
        cases=chosen.cases,
        best=best,
    )


def _best(store: Store, chosen: PatternChoice[MapQuery]) -> pd.DataFrame:
    """Return one row for each layout and size, the largest layouts first."""
    operation = chosen.query.operation
    cells = store.cells(**chosen.where)
    cells = cells[[*KEY, "mmax", "mavg", "median_s"]].assign(layout=layout_keys(cells))
    layouts = dict(layout_options(chosen.cases))
    if operation in RULED_OPERATIONS:
        best = _decided(store, cells)
    else:
        contents = store.contents(**chosen.where, samples=False)
        best = pd.concat(
            _fastest(contents, of, str(layout)) for layout, of in cells.groupby("layout")
        )
    order = {layout: place for place, layout in enumerate(layouts)}
    best = best.sort_values("layout", key=lambda keys: keys.map(order), kind="stable")
    texts = best["layout"].map(layouts)
    return best.assign(row=texts, default=DEFAULT_METHODS[operation]).reset_index(drop=True)


def _decided(store: Store, rows: pd.DataFrame) -> pd.DataFrame:
    """Return the cells of the methods that their campaign decides for."""
    points = decided.points_of(store, rows)
    pairs = list(zip(points, rows["method"], strict=True))
    its = [point for point, method in pairs if point and point.method == method]
    lines = [decided.verdicts(store, str(rows["system"].iloc[0]), point) for point in its]
    taken = [point is not None and point.method == method for point, method in pairs]
    return decided.speedups(store, rows[taken]).assign(
        settled=np.array([point.settled for point in its], bool),
        verdict=[verdict(point, "×") for point in its],
        verdict_lines=["<br>".join(each) for each in lines],
    )


def _fastest(contents: Iterable[Cell], rows: pd.DataFrame, layout: str) -> pd.DataFrame:
    """Return the cells of the fastest methods of an operation that has no rules."""
    here = [
        cell for cell in contents if layout_key(cell.key.case.layout, cell.key.case.sync) == layout
    ]
    default = DEFAULT_METHODS[rows["operation"].iloc[0]]
    rows = rows.merge(paired_speedups(here, default), on=["size_bytes", "method"])
    fastest = rows.loc[rows.groupby("size_bytes")["median_s"].idxmin()]
    settled = (fastest["speedup_low"] > 1) | (fastest["method"] == default)
    words = settled.map({True: "the fastest", False: "no significant difference"})
    return fastest.assign(settled=settled, verdict=words, verdict_lines=words)


_NUMBERS = [
    *("procs", "nodes", "ppn", "oversubscribed", "size_bytes", "bytes", "method", "default"),
    *("median_s", "speedup", "speedup_low", "speedup_high", "level", "settled", "verdict"),
]


def _draw(store: Store, choice: MapChoice) -> dict[str, Any]:
    query = choice.query
    link = explore.ExploreQuery(query.system, query.campaign, query.operation, query.pattern)
    return {
        "tiles": tiles(choice.best),
        "explore": href(explore.PATH, link.search()),
        "listed": _listed(choice.best, link),
    }


def _listed(best: pd.DataFrame, link: explore.ExploreQuery) -> Component:
    """Return the tiles as a table of links, for readers without a pointer or colour vision."""
    sizes = sorted(best["size_bytes"].unique().tolist())
    rows = []
    for row, tiles_of_row in best.groupby("row", sort=False):
        cells = dict.fromkeys(sizes, data_cell())
        for tile in rows_of(tiles_of_row):
            to = replace(link, layout=tile["layout"], size=str(tile["size_bytes"])).search()
            text = short_name(tile["method"])
            if tile["method"] != tile["default"]:
                text += f" {ratio_text(tile['speedup'])}"
            even = None if tile["settled"] else "even"
            shown = anchor(text, href(explore.PATH, to))
            cells[tile["size_bytes"]] = data_cell(shown, className=even)
        rows.append(table_row([row_head(row), *cells.values()]))
    header = ["Processes", *map(size_text, sizes)]
    return data_table("Best method by processes and size", header, rows)


def _body(parts: Mapping[str, Component]) -> Sequence[Component]:
    return [
        card(
            "Best method by size and processes",
            html.P(
                [
                    "Each tile shows the method that this campaign alone decides for, soaked or "
                    "not, and its speed as a multiple of the default's. Pale: the measurements do "
                    "not decide. ",
                    html.Span(
                        ["Click a tile to show its samples; ", parts["explore"], "."],
                        className="interactive",
                    ),
                ],
                className="hint",
            ),
            parts["tiles"],
            html.Details(
                [html.Summary("Show as a table with links to the samples"), parts["listed"]]
            ),
        )
    ]


class _MapPage(FilteredPage[MapChoice]):
    """A page that also handles the click on a tile."""

    def register(self, app: Dash, open_store: OpenStore) -> None:
        super().register(app, open_store)
        app.clientside_callback(
            ClientsideFunction("switchpoint", "openTile"),
            Output(ids.of(PATH, "tiles"), "clickData"),
            Input(ids.of(PATH, "tiles"), "clickData"),
            State(ids.of(PATH, "explore"), "href"),
            prevent_initial_call=True,
        )


PAGE = _MapPage(
    path=PATH,
    title="Map",
    query=MapQuery,
    parts={
        "tiles": Plot("Best method by message size and number of processes."),
        "explore": Link("show all times"),
        "listed": Block(),
    },
    choose=_choose,
    draw=_draw,
    body=_body,
    data={"tiles": lambda store, choice: choice.best[_NUMBERS]},
    reported=partial(newest_queries, MapQuery),
)
