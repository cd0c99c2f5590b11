"""Choose: the method that a table selects for a case, and how to use it in an application."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
from dash import html

from dashboard import ids, rules, soaked, starting
from dashboard.choice import Filters, named, operations_of, options_of, system_options, systems_of
from dashboard.figures.ribbons import ribbons
from dashboard.frames import described, rows_of
from dashboard.markup import Component
from dashboard.pages import explore, table
from dashboard.pages.page import FilteredPage
from dashboard.pages.parts import Block, Plot
from dashboard.query import INTEGER, LAYOUT, WORD, PageQuery, parameter
from dashboard.snapshot import cached_table
from dashboard.widgets import Option, badge, card, commands, href, key, method_name, prose
from tuner.domain.cases import DegreeClass
from tuner.domain.operations import COLLECTIVES, DEFAULT_METHODS, DISPATCHED, NO_DATA, NO_DATA_BYTES
from tuner.domain.records import NAME
from tuner.domain.tables import Point
from tuner.machine.systems import unreal
from tuner.selection.evidence import certainty, stand_in, verdict
from tuner.selection.intervals import degree_class_of
from tuner.store.store import Store
from tuner.units import counted, size_text

PATH = "/choose"
_SIZES = [2**exponent for exponent in range(27)]
_DEFAULT_SIZE = "1024"
_DEGREES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)


@dataclass(frozen=True)
class ChooseQuery(PageQuery):
    """The operation, layout and messages of an application, on a system."""

    system: str = parameter("s", NAME, "System")
    operation: str = parameter("o", WORD, "Operation")
    layout: str = parameter("r", LAYOUT, "Processes")
    size: str = parameter("b", INTEGER, "Message size")
    degree: str = parameter("d", INTEGER, "Messages sent by a rank")


@dataclass(frozen=True)
class ChooseChoice:
    """A complete query, the options of its selects, and the table's answer.

    selected: the rules by size, for the operation, layout and degree. rule: that of the size, or
    None. point: the nearest decision for the rule's method, or None. soak: the soak of that method.
    launcher, is_last: see `starting`.
    """

    query: ChooseQuery
    options: dict[str, list[Option]]
    system: dict[str, Any]
    selected: pd.DataFrame
    rule: dict[str, Any] | None
    point: Point | None
    soak: str
    procs: int  # of the layout
    missing: str  # what to run, if there are no rules
    omission: str  # what the table lacks of its launches, in a sentence
    launcher: str
    is_last: bool


def _choose(store: Store, query: ChooseQuery, *, strict: bool) -> ChooseChoice:
    """Complete a query: see `FilteredPage`.

    The defaults are the largest layout that fits, and its degree.
    """
    systems = systems_of(store)
    filters = Filters(query, strict=strict)
    system = filters.choose("system", system_options(systems))
    points = store.points(system)
    operations = operations_of(points) or ["exchange"]  # if there are no rules, the page says so
    operation = filters.choose("operation", named(operations))
    points = points[points["operation"] == operation]
    keys = [f"{nodes}x{ppn}" for nodes, ppn in zip(points["nodes"], points["ppn"], strict=True)]
    layouts = options_of(points, keys) or [("1x1", "none measured")]
    nodes, ppn = map(int, filters.choose("layout", layouts).split("x"))
    points = points[(points["nodes"] == nodes) & (points["ppn"] == ppn)]
    procs = int(points["procs"].max()) if len(points) else nodes * ppn  # an uneven layout has fewer
    degree = filters.choose("degree", _degrees(operation, points))
    if operation in NO_DATA:
        size = filters.choose("size", [(str(NO_DATA_BYTES), "no data")])
    else:
        sizes = ((str(size), size_text(size)) for size in _SIZES)
        size = filters.choose("size", sizes, _DEFAULT_SIZE)
    case = {"operation": operation, "nodes": nodes, "ppn": ppn}
    case |= {"mmax": int(degree), "mavg": int(degree)}
    selected = rules.selected_intervals(
        rules.of_table(store, system), pd.Series(case, dtype=object)
    )
    here = rows_of(
        selected[(selected["bytes_low"] <= int(size)) & (int(size) <= selected["bytes_high"])]
    )
    rule = here[0] if here else None
    its = described(systems, system)
    name = its["name"].partition("+")[0]
    stored, soaks = cached_table(store, system), soaked.of_table(store, system)
    return ChooseChoice(
        query=filters.query,
        options=filters.options,
        system=its,
        selected=selected,
        rule=rule,
        point=_nearest(stored.points, case, rule["method"], int(size)) if rule and stored else None,
        soak=soaks.text(operation, rule["method"], rule["nodes"], rule["ppn"]) if rule else "",
        procs=procs,
        missing=rules.missing(store, system),
        omission=rules.omission_text(store, system),
        launcher=store.launcher(system),
        # Placements on virtual nodes share the installation of their machine.
        is_last=store.named(name, its["environment"], with_virtual=True)[-1] == system,
    )


def _degrees(operation: str, points: pd.DataFrame) -> list[Option]:
    """Return the degrees to select from, a measured one first; collectives have none."""
    if operation in COLLECTIVES:
        return [("0", "none (collective)")]
    measured = sorted(points["mmax"].unique().tolist()) or list(_DEGREES)
    others = sorted({*_DEGREES, *measured} - {measured[-1]})
    return [(str(degree), str(degree)) for degree in (measured[-1], *others)]


def _nearest(
    points: Iterable[Point], case: Mapping[str, Any], method: str, size: int
) -> Point | None:
    """Return the decision for a method that is nearest to a case in degrees, then in size."""

    def off(point: Point) -> tuple[float, ...]:
        its = degree_class_of(point.case, point.mmax, point.mavg)
        mean = case["mavg"] if its.mavg else 0.0
        pairs = [(its.mmax, case["mmax"]), (its.mavg, mean), (point.case.bytes, size)]
        return tuple(abs(math.log((a + 1) / (b + 1))) for a, b in pairs)

    here = DegreeClass(case["operation"], case["nodes"], case["ppn"])
    chosen = (
        point for point in points if point.case.of_any_degree == here and point.method == method
    )
    return min(chosen, key=off, default=None)


def _draw(store: Store, choice: ChooseChoice) -> dict[str, Any]:
    rows = choice.selected.assign(row=choice.query.operation)
    size = int(choice.query.size)
    low, high = rules.size_range(rows)
    figure = ribbons(rows, (min(low, size / 2), max(high, size * 2)))
    figure["layout"].setdefault("shapes", []).append(_here(size))
    return {
        "answer": [*_answer(choice), *_omission(choice)],
        "ribbon": figure,
        "key": key(choice.selected["method"]),
        "switch": _switch_on(choice),
    }


def _omission(choice: ChooseChoice) -> list[Component]:
    return [html.P(prose(choice.omission))] if choice.omission else []


def _here(size_bytes: int) -> dict[str, Any]:
    """Return a line at the selected size, over the ribbon but behind its names."""
    place = {"xref": "x", "x0": size_bytes, "x1": size_bytes, "yref": "y", "y0": -0.5, "y1": 0.25}
    style = {"layer": "below", "line": {"color": "#d55e00", "width": 2, "dash": "dot"}}
    return place | style | {"type": "line"}


def _answer(choice: ChooseChoice) -> list[Component]:
    """Return the method, its certainty, its gain, the default's loss, and the evidence."""
    query, rule = choice.query, choice.rule
    if rule is None:
        used = f"{DEFAULT_METHODS[query.operation]} is used"
        most_bytes = choice.selected["bytes_high"].max()  # NaN where there is no rule
        if int(query.size) > most_bytes:
            if query.operation not in COLLECTIVES:
                used += ", or what a fitted model estimates"
            end = size_text(int(most_bytes))
            return [html.P(f"No rule applies to messages above {end}. So {used}.")]
        return [html.P(f"No rule of the table matches this case: {used}.")]
    lines: list[Any] = [html.P(method_name(rule["method"]), className="answer")]
    if choice.point is not None:
        lines += _evidence(choice, choice.point)
    if choice.soak:
        lines.append(html.P(f"{choice.soak.capitalize()}."))
    return lines


def _evidence(choice: ChooseChoice, point: Point) -> list[Component]:
    """Return the measurements nearest to the case."""
    size, degree = int(choice.query.size), int(choice.query.degree)
    mean = degree_class_of(point.case, point.mmax, point.mavg).mavg
    is_uneven = mean not in (0, point.mmax)
    where = [f"at {size_text(point.case.bytes)}"]
    if degree:
        where.append(f"degree {point.mmax}" + f", mean degree {mean:.4g}" * is_uneven)
    where.append(f"in {counted(point.launches, 'launch', 'launches')}")
    lines: list[Component] = [html.P(f"Verdict: {verdict(point, '×')}.")]
    measured = f"Measured {', '.join(where)}."
    if sure := certainty([point]):
        measured += f" {sure.capitalize()}."
    lines.append(html.P(measured, className="hint"))
    far = size != point.case.bytes or degree != point.mmax or is_uneven
    marks: list[Component] = []
    if far:
        measured = ", ".join(where[:-1]).removeprefix("at ")
        marks.append(badge(stand_in(measured), "secondary"))
    if kind := unreal(choice.system["name"], choice.system["cpu_model"]):
        marks.append(badge(kind))
    if point.case.layout.oversubscribed:
        marks.append(badge(f"oversubscribed: {choice.system['cores']} cores"))
    link = explore.cell_link(choice.query.system, point.campaign, point.case)
    samples = html.A("Show the samples", href=link)
    return [*lines, html.Div([*marks, samples], className="notes")]


def _switch_on(choice: ChooseChoice) -> list[Component]:
    """Return the link to the table, and the lines that make an application use it."""
    query = choice.query
    file = href(table.DOWNLOAD_PATH, table.TableQuery(query.system).search())
    ppn = int(query.layout.split("x")[1])
    preload = None
    if query.operation in COLLECTIVES:
        preload = starting.preload(choice.system, choice.is_last)
        text = [
            "The application needs no change: a preloaded library selects its collective methods."
        ]
        if query.operation not in DISPATCHED:
            promise = html.Code("swp_fixed_counts=true")
            text = ["A preloaded library selects the method on communicators with ", promise, "."]
        if preload.prefix:
            text.append(f" PREFIX is {preload.prefix}.")
    else:
        plan = html.Code(f"swp_{query.operation}_plan")
        text = ["In the application, call ", plan, " with the method ", html.Code("auto"), "."]
    library = preload.library if preload else None
    start = starting.command(choice.system, choice.procs, ppn, library, choice.launcher)
    return [
        html.P([html.A("Download switchpoint.table", href=file), ". ", *text]),
        commands(
            ids.of(PATH, "commands"), ["export SWITCHPOINT_TABLE=$PWD/switchpoint.table", start]
        ),
        html.P(
            [
                html.A(
                    "The whole table",
                    href=href(table.PATH, table.TableQuery(query.system, query.operation).search()),
                ),
                " shows the evidence, exports other forms, and compares with a table of yours.",
            ]
        ),
    ]


def _body(parts: Mapping[str, Component]) -> Sequence[Component]:
    return [
        card("Selected method", parts["answer"]),
        card(
            "At other sizes",
            html.P("Dotted line: selected size.", className="hint"),
            parts["ribbon"],
            parts["key"],
        ),
        card("How to use it", parts["switch"]),
    ]


PAGE = FilteredPage(
    path=PATH,
    title="Choose",
    query=ChooseQuery,
    parts={
        "answer": Block(),
        "ribbon": Plot("Method that the table selects for this case, by message size."),
        "key": Block(),
        "switch": Block(),
    },
    choose=_choose,
    draw=_draw,
    body=_body,
    data={"ribbon": lambda store, choice: choice.selected},
    missing=lambda choice: choice.missing,
)
