"""Explore: one case in depth, from the curves of all methods to the raw samples of a cell."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from dash import ClientsideFunction, Dash, Input, Output, html

from dashboard import decided, ids, rules
from dashboard.choice import (
    CaseChoice,
    CaseQuery,
    choose_case,
    layout_key,
    layout_text,
    newest_queries,
    size_options,
)
from dashboard.elements import data_cell, row_head, table_row
from dashboard.figures.axes import Figure, message
from dashboard.figures.curves import curves
from dashboard.figures.ecdf import HEIGHT_PX as ECDF_HEIGHT_PX
from dashboard.figures.ecdf import Samples, ecdf, ecdf_by_launch
from dashboard.frames import rows_of
from dashboard.markup import Component
from dashboard.pages.page import FilteredPage
from dashboard.pages.parts import Block, Plot
from dashboard.query import INTEGER, choose, parameter
from dashboard.speedup import paired_speedups
from dashboard.steadiness import Steadiness
from dashboard.units import interval_text, ratio_text, time_text
from dashboard.web import OpenStore
from dashboard.widgets import badge, card, data_table, href, method_name
from tuner.domain.cases import Case
from tuner.domain.flat import columns, take
from tuner.domain.operations import COLLECTIVES, DEFAULT_METHODS, RULED_OPERATIONS
from tuner.domain.records import Cell
from tuner.machine.systems import unreal
from tuner.selection import products
from tuner.selection.evidence import level_text
from tuner.store.store import Store
from tuner.units import share_text

PATH = "/explore"

# The timed part: the whole of every operation, and also the parts of sparse products.
WHOLE = "whole"
_PARTS = {
    "communication": ("exchange alone", "communication_s"),
    "local": ("local part alone", "local_s"),
}
_OF_SAMPLES = ("p10_s", "p90_s", "above_2_medians")

TOGETHER, APART = "together", "apart"

BEST, ALL = "best", "all"
_BEST = 5  # methods that are drawn beside the default unless all are asked for

_COLUMNS = (
    "Method",
    "Median",
    "95 %",
    "Speed-up",
    "Interval",
    "Samples in launches",
    "Over 2 × median",
    "Planning",
)
_PRODUCT_COLUMNS = {"whole_s": "Whole", "communication_s": "Exchange", "local_s": "Local part"}


@dataclass(frozen=True)
class ExploreQuery(CaseQuery):
    """One case, the part whose times are shown, and the `--sizes` value whose samples are shown."""

    part: str = parameter("t", [WHOLE, *_PARTS], "Time of")
    methods: str = parameter("m", [BEST, ALL], "Methods drawn")
    size: str = parameter("b", INTEGER, "Message size")
    launches: str = parameter("f", [TOGETHER, APART], "Launches")


def cell_link(system: str, campaign: str, case: Case) -> str:
    """Return the link to the cells of a case."""
    layout = layout_key(case.layout, case.sync)
    query = ExploreQuery(
        *(system, campaign, case.operation, case.pattern, layout), size=str(case.size_bytes)
    )
    return href(PATH, query.search())


def evidence_link(row: Mapping[Any, Any]) -> str:
    """Return the link to the cells that a row of `Store.points` or `Store.rules` rests on."""
    case = take(Case, (row[name] for name in columns(Case)))
    return cell_link(row["system"], row["campaign"], case)


@dataclass(frozen=True)
class ExploreChoice(CaseChoice[ExploreQuery]):
    """One case.

    cells: by size, the fastest first, with their speed-ups over the default.
    drawn: the methods in figures. sampled: the cells of the size, with their samples.
    steadiness: of the case.
    """

    cells: pd.DataFrame
    drawn: set[str]
    sampled: list[Cell]
    steadiness: Steadiness


def _choose(store: Store, query: ExploreQuery, *, strict: bool) -> ExploreChoice:
    """Complete a query: see `FilteredPage`. The default size has the surest gain."""
    choice = choose_case(store, query, strict=strict)
    timed, cells = store.contents(**choice.case, samples=False), store.cells(**choice.case)
    measured = None
    if choice.query.operation == "spmv":
        measured = store.products(choice.query.system, choice.query.campaign)
        cells = products.with_parts(cells, measured).assign(whole_s=lambda rows: rows["median_s"])
    parts = _part_options(cells)
    part = choose([value for value, _ in parts], query.part, "part", strict=strict)
    if measured is not None and part != WHOLE:
        timed, cells = _take_part(timed, cells, measured, part)
    gained = paired_speedups(timed, DEFAULT_METHODS[choice.query.operation])
    cells = cells.merge(gained, on=["size_bytes", "method"])
    if choice.query.operation in RULED_OPERATIONS:
        of_decisions = decided.speedups(store, cells)
        # Nothing is decided on `auto`, on schemes beside the best, and on what is never chosen.
        known = of_decisions["speedup"].notna()
        cells.loc[known, decided.SPEEDUPS] = of_decisions.loc[known, decided.SPEEDUPS]
    cells = cells.sort_values(["size_bytes", "median_s"], ignore_index=True)
    sizes = size_options(cells)
    surest = str(cells["size_bytes"].iloc[cells["speedup_low"].fillna(0).argmax()])
    size = choose([surest, *(value for value, _ in sizes)], query.size, "size", strict=strict)
    offered = _method_options(cells)
    methods = choose([value for value, _ in offered], query.methods, "choice", strict=strict)
    sampled = store.contents(**choice.case, size_bytes=int(size))
    facets = _launch_options(sampled)
    launches = choose([value for value, _ in facets], query.launches, "choice", strict=False)
    shown = {"part": part, "methods": methods, "size": size, "launches": launches}
    offers = {"part": parts, "methods": offered, "size": sizes, "launches": facets}
    return ExploreChoice(
        query=replace(choice.query, **shown),
        options=choice.options | offers,
        system=choice.system,
        case=choice.case,
        cells=cells,
        drawn=_best(cells) if methods == BEST else set(cells["method"]),
        sampled=sampled,
        steadiness=Steadiness.of(store, choice.query.system, choice.query.campaign, choice.case),
    )


def _method_options(cells: pd.DataFrame) -> list[tuple[str, str]]:
    count = cells["method"].nunique()
    every = (ALL, f"all {count}")
    return [(BEST, f"the {_BEST} best, the default"), every] if count > _BEST + 1 else [every]


def _launch_options(sampled: Sequence[Cell]) -> list[tuple[str, str]]:
    count = len({launch for cell in sampled for launch in cell.parts["launch"].tolist()})
    together = [(TOGETHER, f"all {count} together" if count > 1 else "the only one")]
    return [*together, (APART, "each by itself")] if count > 1 else together


def _best(cells: pd.DataFrame) -> set[str]:
    """Return the default, and the methods that are nearest to the fastest at some size."""
    behind = cells["median_s"] / cells.groupby("size_bytes")["median_s"].transform("min")
    default = DEFAULT_METHODS[cells["operation"].iloc[0]]
    by_method = (
        behind.groupby(cells["method"]).agg(["min", "median"]).drop(default, errors="ignore")
    )
    return {default, *by_method.sort_values(["min", "median"]).index[:_BEST]}


def _part_options(cells: pd.DataFrame) -> list[tuple[str, str]]:
    """Return the parts that have times; stores of others may lack those of products."""
    if "whole_s" not in cells:
        return [(WHOLE, f"whole {cells['operation'].iloc[0]}")]
    known = [(part, text) for part, (text, name) in _PARTS.items() if cells[name].notna().any()]
    return [(WHOLE, "whole product"), *known]


def _take_part(
    contents: list[Cell], cells: pd.DataFrame, measured: pd.DataFrame, part: str
) -> tuple[list[Cell], pd.DataFrame]:
    """Return contents and cells of products with the times of one part instead of the whole.

    What is known only from samples, which the parts have none of, is missing.
    """
    contents = list(products.of_part(contents, measured, _PARTS[part][1]))
    cells = cells.drop(columns=["median_s", "low_s", "high_s"])
    cells = cells.merge(products.summaries(contents))
    return contents, cells.assign(**dict.fromkeys(_OF_SAMPLES, np.nan))


def _draw(store: Store, choice: ExploreChoice) -> dict[str, Any]:
    cells, default = choice.cells, DEFAULT_METHODS[choice.query.operation]
    cell = cells[cells["size_bytes"] == int(choice.query.size)]
    case = cells.iloc[0]
    if case["operation"] == "spmv":  # it has no rules: its plan is an exchange
        case = pd.Series({**case, "operation": "exchange"})
    part = choice.query.part
    time_title = "time" if part == WHOLE else f"time, {_PARTS[part][0]}"
    table = rules.of_table(store, choice.query.system)
    selected = rules.selected_intervals(table, case)
    return {
        "curves": curves(
            cells[cells["method"].isin(choice.drawn)],
            default,
            selected,
            int(cell["bytes"].iloc[0]),
            time_title,
            size_title(choice.query.operation),
        ),
        "ecdf": _distributions(choice)
        if part == WHOLE
        else message("Samples are stored only for whole products.", ECDF_HEIGHT_PX),
        "cell": _cell_table(cell, default),
        "verdict": _verdict(store, cell),
        "notes": _notes(choice, case, selected),
    }


def _distributions(choice: ExploreChoice) -> Figure:
    drawn = [cell for cell in choice.sampled if cell.key.method in choice.drawn]
    if choice.query.launches == TOGETHER:
        return ecdf({cell.key.method: cell.samples_s for cell in drawn})
    by_launch: dict[int, Samples] = defaultdict(dict)
    for cell in drawn:
        ends = np.cumsum(cell.parts["samples"])[:-1]
        numbers = cell.parts["number"].tolist()
        for number, samples_s in zip(numbers, np.split(cell.samples_s, ends), strict=True):
            if len(samples_s):
                before = by_launch[number].get(cell.key.method, samples_s[:0])
                both = np.concatenate([before, samples_s])  # of launches by hand, of one number
                by_launch[number] = {**by_launch[number], cell.key.method: both}
    return ecdf_by_launch(dict(sorted(by_launch.items())))


def _samples(choice: ExploreChoice) -> pd.DataFrame:
    """Return one row for each sample, in the order of launches; none for a part of products."""
    frames = [
        pd.DataFrame(
            {
                "method": cell.key.method,
                "launch": np.repeat(cell.parts["number"], cell.parts["samples"]),
                "round": cell.rounds,
                "seconds": cell.samples_s,
            }
        )
        for cell in sorted(choice.sampled, key=lambda cell: cell.key.method)
    ]
    samples = pd.concat(frames, ignore_index=True)
    return samples if choice.query.part == WHOLE else samples[:0]


def size_title(operation: str) -> str:
    """Return the meaning of an operation's sizes."""
    if operation in ("bcast", "reduce", "allreduce"):
        return "bytes of the vector"
    return "bytes of a block" if operation in COLLECTIVES else "bytes per message"


def _cell_table(cell: pd.DataFrame, default: str) -> Component:
    rows = []
    of_products = "whole_s" in cell
    for row in rows_of(cell):
        is_default = row["method"] == default
        # With one launch there is no interval, so no difference is significant.
        even = not is_default and not (row["speedup_low"] > 1 or row["speedup_high"] < 1)
        # One sample has no interval, as on a simulated machine, and a part of one launch has none.
        has_interval = row["n"] > 1 and row["low_s"] < row["high_s"]
        interval = interval_text(row["low_s"], row["high_s"], time_text) if has_interval else ""
        shown = row["n"] > 1 and not is_default
        around = interval_text(row["speedup_low"], row["speedup_high"], ratio_text) if shown else ""
        texts = (
            time_text(row["median_s"]),
            interval,
            "default" if is_default else ratio_text(row["speedup"]),
            around and f"{around} at {level_text(row['level'])} %",
            *(time_text(row[column]) for column in _PRODUCT_COLUMNS if of_products),
            f"{row['n']} in {row['launches']}",
            share_text(row["above_2_medians"]),
            time_text(row["plan_median_s"] or math.nan),  # 0: not measured, as by PICO
        )
        cells = [row_head(method_name(row["method"])), *map(data_cell, texts)]
        rows.append(table_row(cells, className="even" if even else None))
    header = [*_COLUMNS[:5], *(_PRODUCT_COLUMNS.values() if of_products else ()), *_COLUMNS[5:]]
    return data_table("Methods at this size, the fastest first", header, rows)


def _verdict(store: Store, cell: pd.DataFrame) -> list[Component]:
    """Return what is decided at the size."""
    points = decided.points_of(store, cell.iloc[:1])
    if not points or points[0] is None:
        return []
    lines = decided.verdicts(store, str(cell["system"].iloc[0]), points[0])
    return [html.P(f"{line}.") for line in lines]


def _notes(choice: ExploreChoice, case: pd.Series, selected: pd.DataFrame) -> list[Component]:
    """Return limitations of the case, and its facts."""
    kind = unreal(choice.system["name"], choice.system["cpu_model"])
    marks: list[Component] = [badge(kind)] if kind else []
    if case["oversubscribed"]:
        cores = choice.system["cores"]
        # Virtual nodes share their cores.
        ranks = case["ppn"] if case["ppn"] > cores else case["procs"]
        marks.append(badge(f"oversubscribed: {ranks} ranks on {cores} cores"))
    if selected.empty:
        marks.append(badge("no rule of the table matches this case", "secondary"))
    marks += map(badge, choice.steadiness.doubts())
    facts = [
        choice.system["mpi_library"],
        choice.system["cpu_model"],
        layout_text(case["nodes"], case["ppn"], oversubscribed=False),
    ]
    if case["operation"] not in COLLECTIVES:
        facts.append(
            f"messages sent by a rank: {case['mavg']:.3g} on average, {case['mmax']} at most"
        )
    for canary_s in choice.steadiness.canaries_s.values():
        facts.append(f"median canary (8-byte ping-pong) {time_text(canary_s)}")
    return [*marks, html.Span([html.Span(fact) for fact in facts], className="facts")]


def _body(parts: Mapping[str, Component]) -> Sequence[Component]:
    return [
        parts["notes"],
        html.Div(
            [
                card(
                    "Speed-up and time",
                    html.P(
                        "The strip on top shows the method that the table selects; pale: the "
                        "measurements do not decide.",
                        className="hint",
                    ),
                    parts["curves"],
                ),
                card(
                    "Samples of one size",
                    html.Div([parts["size"], parts["launches"]], className="filters"),
                    html.P(
                        "Click a point on the curves to select its size.",
                        className="hint interactive",
                    ),
                    parts["ecdf"],
                ),
            ],
            className="explore-panels",
        ),
        card(
            "Methods at this size",
            parts["verdict"],
            html.P("Grey: no significant difference from the default.", className="hint"),
            parts["cell"],
        ),
    ]


class _ExplorePage(FilteredPage[ExploreChoice]):
    """A page that also handles the click on a point."""

    def register(self, app: Dash, open_store: OpenStore) -> None:
        super().register(app, open_store)
        app.clientside_callback(
            ClientsideFunction("switchpoint", "sizeOfPoint"),
            Output(ids.of(PATH, "size"), "value", allow_duplicate=True),
            Output(ids.of(PATH, "curves"), "clickData"),
            Input(ids.of(PATH, "curves"), "clickData"),
            prevent_initial_call=True,
        )


PAGE = _ExplorePage(
    path=PATH,
    title="Explore",
    query=ExploreQuery,
    parts={
        "curves": Plot(
            "Speed-up over the default and time of each method against message size; "
            "above them, the method that the table selects."
        ),
        "ecdf": Plot("Distribution of the samples of each method at the chosen size."),
        "cell": Block(),
        "verdict": Block(),
        "notes": Block("notes"),
    },
    choose=_choose,
    draw=_draw,
    body=_body,
    data={
        "curves": lambda store, choice: choice.cells,
        "ecdf": lambda store, choice: _samples(choice),
    },
    moved=("size", "launches"),
    reported=partial(newest_queries, ExploreQuery),
)
