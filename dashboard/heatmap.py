"""The decisions of a table as small tables of coloured cells, bytes × processes by operation.

They are tables and not figures: a page has many, and they need no script.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import partial

from dash import html

from dashboard.choice import sync_text
from dashboard.elements import Element, data_cell, element, row_head, table_row
from dashboard.figures.methods import method_style, transparent
from dashboard.markup import Component, Static
from dashboard.review import speed_of
from dashboard.widgets import key
from tuner.domain.operations import COLLECTIVES, DEFAULT_METHODS
from tuner.domain.tables import OPEN, UNSOAKED, WON, Point
from tuner.selection.evidence import sure_verdict
from tuner.selection.intervals import degree_class_of
from tuner.units import multiple_text, size_text

_LEAST, _MOST = 0.2, 0.6
_FULL = 2.0  # the speed-up with the strongest colour

_Row = tuple[int, int, int, int, float, str]  # processes, nodes, ppn, degrees, scheme


def heat_maps(points: Sequence[Point], of: str) -> Static:
    """Return a map for each operation, and the key to their methods. of: the system's name."""
    by_operation: dict[str, list[Point]] = defaultdict(list)
    for point in points:
        by_operation[point.case.operation].append(point)
    maps = [_map(operation, its, of) for operation, its in sorted(by_operation.items())]
    methods = sorted({_method(point) for point in points} - set(DEFAULT_METHODS.values()))
    return Static([html.Div(maps, className="heat-maps"), key(methods)], className="heat")


def _map(operation: str, points: Iterable[Point], of: str) -> Component:
    """Return the decisions on an operation: a row for each layout and degree."""
    rows: dict[_Row, dict[int, Point]] = defaultdict(dict)
    for point in points:
        rows[_row(point)][point.case.bytes] = point
    sizes = sorted({size for row in rows.values() for size in row})
    layouts, degrees, means = (len({row[:end] for row in rows}) for end in (3, 4, 5))
    text = partial(
        _row_text, degree=layouts < means, mean=degrees < means, scheme=means < len(rows)
    )
    body = [
        table_row(
            [
                row_head(text(row)),
                *(_tile(its[size]) if size in its else data_cell() for size in sizes),
            ]
        )
        for row, its in sorted(rows.items())
    ]
    heads = [html.Th(html.Span(size_text(size)), scope="col") for size in sizes]
    ranks = html.Th("ranks", scope="col")
    caption = [html.Strong(operation), f", default {DEFAULT_METHODS[operation]}"]
    table = html.Table(
        [html.Caption(caption), html.Thead(html.Tr([ranks, *heads])), html.Tbody(body)],
        className="heat-map",
    )
    label = f"Decisions of {of} on {operation}, by processes and bytes"
    scrolling = {"tabIndex": 0, "role": "region", "aria-label": label}
    return html.Div(table, className="table-responsive", **scrolling)


def _row(point: Point) -> _Row:
    layout = point.case.layout
    its = degree_class_of(point.case, point.mmax, point.mavg)
    degrees = (0, 0.0) if point.case.operation in COLLECTIVES else (its.mmax, its.mavg)
    return layout.procs, layout.nodes, layout.ppn, *degrees, point.case.sync


def _row_text(row: _Row, *, degree: bool, mean: bool, scheme: bool) -> str:
    """Return the layout, with degrees and scheme as far as rows differ in them."""
    procs, nodes, ppn, mmax, mavg, sync = row
    layout = f"{procs}" if nodes == 1 else f"{procs} = {nodes} × {ppn}"
    layout += f", degree {mmax}" * degree + f", mean {mavg:.3g}" * mean
    return layout + sync_text(sync) * scheme


def _method(point: Point) -> str:
    """Return the method that a point shows: the one that waits for its soak, or the selected."""
    waits = point.status == UNSOAKED and not point.filled and point.challenger
    return point.challenger if waits and point.challenger else point.method


def _tile(point: Point) -> Element:
    """Return the cell of a decision: marker and colour of its method, stronger for more gain."""
    method = _method(point)
    style = method_style(method)
    status = UNSOAKED if method != point.method else point.status
    speed = speed_of(point, (*WON, UNSOAKED))
    alpha = _LEAST
    if status in WON and speed:
        share = min(math.log(speed) / math.log(_FULL), 1.0)
        alpha = _LEAST + (_MOST - _LEAST) * max(share, 0.0)
    is_default = method == DEFAULT_METHODS[point.case.operation]
    mark = "?" if status == OPEN and not point.filled else "" if is_default else style.glyph
    said = f"{size_text(point.case.bytes)}: {sure_verdict(point)}"
    return data_cell(
        [mark, *([element("Small", multiple_text(speed))] if speed else [])],
        className=f"tile {status}",
        style={"--tile": transparent(style.color, alpha), "--method": style.color},
        title=said,
        **{"aria-label": said},
    )
