"""Choose: the method that a table selects for a case, and how to use it in an application."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pandas as pd
from dash import html
from dash.development.base_component import Component

from dashboard import ids, rules, soaked
from dashboard.choice import (
    Filters,
    named,
    newest_first,
    operations_of,
    options_of,
    system_options,
    unreal,
)
from dashboard.figures.ribbons import ribbons
from dashboard.pages import explore, table
from dashboard.pages.page import FilteredPage
from dashboard.pages.parts import Block, Plot
from dashboard.query import INTEGER, WORD, Query, parameter
from dashboard.units import interval_text, ratio_text
from dashboard.widgets import Option, badge, card, commands, href, key, method_name, prose
from tuner.domain.operations import COLLECTIVES, DEFAULT_METHODS
from tuner.domain.records import NAME
from tuner.domain.tables import UNSOAKED
from tuner.store.store import Store
from tuner.units import size_text

PATH = "/choose"
_SIZES = [2**exponent for exponent in range(27)]
_DEFAULT_SIZE = "1024"
_DEGREES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)
_STATUSES = {
    "faster": "It was shown to be faster than the default; an independent launch confirmed this.",
    "default": "The default was shown to be the fastest.",
    "tie": "No other method was shown to be faster, so the default is used.",
    "undecided": "The launches are too few or too unsteady, so the default is used.",
    UNSOAKED: "Another method was shown to be faster, but still has to pass its soak "
    "(`switchpoint soak`): until then the default is used.",
}


@dataclass(frozen=True)
class ChooseQuery(Query):
    """The operation, layout and messages of an application, on a system."""

    system: str = parameter("s", NAME, "System")
    operation: str = parameter("o", WORD, "Operation")
    layout: str = parameter("r", r"[0-9]{1,10}x[0-9]{1,10}", "Processes")
    size: str = parameter("b", INTEGER, "Message size")
    degree: str = parameter("d", INTEGER, "Messages sent by a rank")


@dataclass(frozen=True)
class ChooseChoice:
    """A complete query, the options of its selects, and the table's answer.

    selected: the rules by size, for the operation, layout and degree. rule: that of the size, or
    None. point: the nearest decision for the rule's method, or None. soak: the soak of that method.
    """

    query: ChooseQuery
    options: dict[str, list[Option]]
    system: dict[str, Any]
    selected: pd.DataFrame
    rule: dict[str, Any] | None
    point: dict[str, Any] | None
    soak: str


def _choose(store: Store, query: ChooseQuery, *, strict: bool) -> ChooseChoice:
    """Complete a query: see `FilteredPage`.

    The defaults are the largest layout that fits, and its degree.
    """
    systems = newest_first(store.systems())
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
    degree = filters.choose("degree", _degrees(operation, points))
    sizes = ((str(size), size_text(size)) for size in _SIZES)
    size = filters.choose("size", sizes, _DEFAULT_SIZE)
    case = {"operation": operation, "nodes": nodes, "ppn": ppn}
    case |= {"mmax": int(degree), "mavg": int(degree)}
    selected = rules.selected_intervals(
        rules.with_speedup(store.rules(system)), pd.Series(case, dtype=object)
    )
    here = selected[
        (selected["bytes_low"] <= int(size)) & (int(size) <= selected["bytes_high"])
    ].to_dict("records")
    rule = here[0] if here else None
    return ChooseChoice(
        query=filters.query,
        options=filters.options,
        system=systems.set_index("system").loc[system].to_dict(),
        selected=selected,
        rule=rule,
        point=_nearest(points, rule, int(size), int(degree)) if rule else None,
        soak=soaked.of_table(store, system).text(operation, rule["method"]) if rule else "",
    )


def _degrees(operation: str, points: pd.DataFrame) -> list[Option]:
    """Return the degrees to select from, a measured one first; collectives have none."""
    if operation in COLLECTIVES:
        return [("0", "none (collective)")]
    measured = sorted(points["mmax"].unique().tolist()) or list(_DEGREES)
    others = sorted({*_DEGREES, *measured} - {measured[-1]})
    return [(str(degree), str(degree)) for degree in (measured[-1], *others)]


def _nearest(
    points: pd.DataFrame, rule: dict[str, Any], size: int, degree: int
) -> dict[str, Any] | None:
    """Return the decision for the rule's method that is nearest in degree, then in size."""
    points = points[points["method"] == rule["method"]]
    if points.empty:
        return None
    off = [
        (abs(math.log((mmax + 1) / (degree + 1))), abs(math.log((bytes_ + 1) / (size + 1))))
        for mmax, bytes_ in zip(points["mmax"], points["bytes"], strict=True)
    ]
    return dict(points.iloc[min(range(len(off)), key=off.__getitem__)])


def _draw(store: Store, choice: ChooseChoice) -> dict[str, Any]:
    rows = choice.selected.assign(row=f"{choice.query.operation}, all sizes")
    figure = ribbons(rows, rules.size_range(rows))
    figure["layout"].setdefault("shapes", []).append(_here(int(choice.query.size)))
    return {
        "answer": _answer(choice),
        "ribbon": figure,
        "key": key(choice.selected["method"]),
        "switch": _switch_on(choice),
    }


def _here(size_bytes: int) -> dict[str, Any]:
    """Return a line at the selected size, over the ribbon but behind its names."""
    place = {"xref": "x", "x0": size_bytes, "x1": size_bytes, "yref": "y", "y0": -0.5, "y1": 0.25}
    style = {"layer": "below", "line": {"color": "#d55e00", "width": 2, "dash": "dot"}}
    return place | style | {"type": "line"}


def _answer(choice: ChooseChoice) -> list[Component]:
    """Return the method, its certainty, its gain, the default's loss, and the evidence."""
    query, rule = choice.query, choice.rule
    default = DEFAULT_METHODS[query.operation]
    if rule is None:
        return [html.P(f"No rule of the table matches this case: {default} is used.")]
    lines: list[Any] = [
        html.P(method_name(rule["method"]), className="answer"),
        html.P(prose(_STATUSES[rule["status"]])),
    ]
    if choice.soak:
        lines.append(html.P(f"{choice.soak.capitalize()}."))
    if choice.point is not None:
        lines += _evidence(choice, choice.point, default)
    return lines


def _evidence(choice: ChooseChoice, point: dict[str, Any], default: str) -> list[Component]:
    """Return the measurements nearest to the case."""
    size, degree = int(choice.query.size), int(choice.query.degree)
    where = [f"at {size_text(point['bytes'])}"]
    if degree:
        where.append(f"degree {point['mmax']}")
    where.append(f"in {point['launches']} launches")
    lines: list[Component] = []
    ratio = pd.to_numeric(point["ratio"])
    if math.isfinite(ratio):
        ends = interval_text(
            1 / (point["ratio_high"] or math.nan), 1 / (point["ratio_low"] or math.nan), ratio_text
        )
        speed = f"{ratio_text(1 / ratio)} the speed of {default}"
        lines.append(
            html.P(
                f"Measured {', '.join(where)}: {point['challenger']} has {speed}"
                + (f" ({ends})." if ends else ".")
            )
        )
    if point["status"] == "faster":
        lines.append(html.P(f"{default} takes {100 * (1 / ratio - 1):.0f} % longer."))
    far = size != point["bytes"] or degree != point["mmax"]
    marks: list[Component] = []
    if far:
        marks.append(badge("interpolated between measured sizes", "secondary"))
    if kind := unreal(choice.system["name"], choice.system["cpu_model"]):
        marks.append(badge(kind))
    if point["oversubscribed"]:
        marks.append(badge(f"oversubscribed: {choice.system['cores']} cores"))
    samples = html.A("Show the samples", href=explore.evidence_link(point))
    return [*lines, html.Div([*marks, samples], className="notes")]


def _switch_on(choice: ChooseChoice) -> list[Component]:
    """Return the link to the table, and the lines that make an application use it."""
    query = choice.query
    file = href(table.DOWNLOAD_PATH, table.TableQuery(query.system).search())
    procs = math.prod(map(int, query.layout.split("x")))
    if query.operation in COLLECTIVES:
        text = [
            "The application needs no change: a preloaded library selects its collective methods."
        ]
        library = "$HOME/switchpoint/lib/libswitchpoint_pmpi.so"
        open_mpi = "open mpi" in choice.system["mpi_library"].lower()
        preload = f"-x LD_PRELOAD={library}" if open_mpi else f"-genv LD_PRELOAD {library}"
        start = f"mpiexec {preload} -n {procs} ./app"
    else:
        plan = html.Code(f"swp_{query.operation}_plan")
        text = ["In the application, call ", plan, " with the method ", html.Code("auto"), "."]
        start = f"mpiexec -n {procs} ./app"
    return [
        html.P([html.A("Download switchpoint.table", href=file), ". ", *text]),
        commands(
            ids.of(PATH, "commands"), ["export SWITCHPOINT_TABLE=$PWD/switchpoint.table", start]
        ),
        html.P(
            [
                html.A(
                    "The whole table",
                    href=href(table.PATH, table.TableQuery(query.system).search()),
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
)
