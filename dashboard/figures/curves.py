"""Speed-up over the default and time against message size, with the table's selection."""

import math
from collections.abc import Callable
from itertools import chain
from typing import Any, NamedTuple

import pandas as pd

from dashboard.figures import traces
from dashboard.figures.axes import (
    GRID,
    LINE,
    Figure,
    base_layout,
    byte_axis,
    level,
    message,
    ratio_axis,
    reach,
    spread,
    time_axis,
)
from dashboard.figures.methods import label_lines, method_style, transparent
from dashboard.figures.ribbons import UNIFORM_TEXT, ribbon
from dashboard.units import ratio_text, time_text
from tuner.selection.evidence import level_text
from tuner.stats import LEVEL
from tuner.units import size_text

_LEAST_HEIGHT_PX = 660
_MARK_LEVELS = 3
_MARGIN = {"l": 72, "t": 76, "b": 48}  # the buttons are above the marks of switch points
_STRIP_DOMAIN = (0.945, 1.0)
_LABEL_LINE_PX = 16
_CLOSE_FACTOR = 36.0  # ratio of sizes below which their marks touch on a phone
_MARK_PX = 14


class _Panel(NamedTuple):
    """One of the two plots: its y axis, columns (middle, low, high), and number format."""

    axis: str
    domain: tuple[float, float]
    columns: tuple[str, str, str]
    text: Callable[[float], str]


class _CurvePoint(NamedTuple):
    """A point of a line, with its interval, the value of `--sizes`, and its hover text."""

    x: float
    y: float
    low: float
    high: float
    size: int
    text: str


_SPEEDUP = _Panel("y", (0.5, 0.915), ("speedup", "speedup_low", "speedup_high"), ratio_text)
_TIME = _Panel("y2", (0.0, 0.45), ("median_s", "low_s", "high_s"), time_text)


def curves(
    cells: pd.DataFrame,
    default: str,
    selected: pd.DataFrame,
    marked_bytes: int,
    time_title: str = "time",
    size_title: str = "bytes per message",
) -> Figure:
    """Return speed-up above and time below, on one axis of bytes.

    cells: the cells of one operation, pattern and layout, with their speed-ups, and the `level` of
    the intervals of these.
    default: the method that speed-up is relative to.
    selected: the selection of the table: bytes_low, bytes_high, method, status, verdict.
    marked_bytes: the size selected on the page.
    time_title, size_title: what the times and the sizes are.
    """
    if cells.empty:
        return message("No cells are stored for this selection.", _LEAST_HEIGHT_PX)
    # A logarithmic axis has no zero: patterns without messages are drawn at one byte.
    cells = cells.assign(x=cells["bytes"].clip(lower=1)).sort_values(["method", "bytes"])
    x_axis = byte_axis(float(cells["x"].min()), float(cells["x"].max()), size_title)
    axes = {
        _SPEEDUP: ratio_axis(*_shown(cells, _SPEEDUP), title=f"speed-up over {default}"),
        _TIME: time_axis(*_shown(cells, _TIME), title=time_title),
    }
    texts = {method: label_lines(method) for method in cells["method"].unique()}
    label_px = _LABEL_LINE_PX * max(map(len, texts.values()))
    height = _height(len(texts), label_px)
    bands: list[dict[str, Any]] = []
    lines: list[dict[str, Any]] = []
    annotations: list[dict[str, Any]] = []
    for panel, axis in axes.items():
        ends: dict[str, float] = {}
        for method, points in _points(cells, panel).items():
            bands += _band(method, points, panel)
            lines.append(_line(method, points, panel))
            ends[method] = points[-1].y
        gap = label_px / ((height - _MARGIN["t"] - _MARGIN["b"]) * _share(panel))
        annotations += _labels(ends, texts, gap, axis["range"], panel)
    layout = base_layout(
        height,
        margin=_MARGIN | {"r": 26 + 7 * max(map(len, chain(*texts.values())))},
        xaxis=x_axis | {"anchor": "y2"},
        yaxis=axes[_SPEEDUP] | {"domain": list(_SPEEDUP.domain)},
        yaxis2=axes[_TIME] | {"domain": list(_TIME.domain)},
        clickmode="event",
        uniformtext=UNIFORM_TEXT,
        shapes=[level(1), _mark(max(marked_bytes, 1))],
        annotations=annotations,
    )
    figure = {"data": bands + lines, "layout": layout}
    _strip(selected, x_axis["range"], figure)
    return figure


def _shown(cells: pd.DataFrame, panel: _Panel) -> tuple[float, float]:
    middle, low, high = (cells[column] for column in panel.columns)
    return reach(middle, low, high)


def _points(cells: pd.DataFrame, panel: _Panel) -> dict[str, list[_CurvePoint]]:
    """Return the points of each method that has any, in order of size."""
    points: dict[str, list[_CurvePoint]] = {}
    columns = ["method", "x", *panel.columns, "level", "size_bytes", "bytes", "n", "launches"]
    for method, x, y, low, high, sure, size, mean, n, launches in zip(
        *(cells[column].tolist() for column in columns), strict=True
    ):
        if math.isnan(y):
            continue
        text = f"{size_text(mean)}: {panel.text(y)}"
        if high > low:
            its_level = LEVEL if panel is _TIME else sure
            text += f"<br>{panel.text(low)} – {panel.text(high)} at {level_text(its_level)} %"
        text += f"<br>{n} samples, {launches} launches"
        points.setdefault(method, []).append(_CurvePoint(x, y, low, high, size, text))
    return points


def _line(method: str, points: list[_CurvePoint], panel: _Panel) -> dict[str, Any]:
    return traces.points(
        method,
        [point.x for point in points],
        traces.rounded(point.y for point in points),
        [point.text for point in points],
        name=method,
        yaxis=panel.axis,
        mode="lines+markers",
        line=traces.line(method),
        customdata=[point.size for point in points],
        hovertemplate=f"<b>{method}</b><br>%{{text}}<extra></extra>",
    )


def _band(method: str, points: list[_CurvePoint], panel: _Panel) -> list[dict[str, Any]]:
    """Return the interval around a line if two points or more have one."""
    points = [point for point in points if not math.isnan(point.low)]
    if len(points) < 2:
        return []
    outline = {
        "type": "scatter",
        "x": [point.x for point in [*points, *reversed(points)]],
        "y": traces.rounded([*(p.high for p in points), *(p.low for p in reversed(points))]),
        "yaxis": panel.axis,
        "mode": "lines",
        "line": {"width": 0},
        "fill": "toself",
        "fillcolor": transparent(method_style(method).color, 0.16),
        "hoverinfo": "skip",
    }
    return [outline]


def _share(panel: _Panel) -> float:
    return panel.domain[1] - panel.domain[0]


def _height(labels: int, label_px: int) -> int:
    """Return a height at which all labels fit beside the lower of the panels."""
    share = min(_share(panel) for panel in (_SPEEDUP, _TIME))
    return max(_LEAST_HEIGHT_PX, math.ceil(labels * label_px / share) + _MARGIN["t"] + _MARGIN["b"])


def _labels(
    ends: dict[str, float],
    texts: dict[str, list[str]],
    gap: float,
    axis_range: list[float],
    panel: _Panel,
) -> list[dict[str, Any]]:
    """Return a label beside the last point of each line, moved apart where they would overlap.

    ends: the last value of each method. texts: the lines of its label. gap: the least distance, as
    a share of the panel.
    """
    bottom, top = axis_range
    wanted = [(math.log10(end) - bottom) / (top - bottom) for end in ends.values()]
    return [
        {
            "text": f'<span style="color:{method_style(method).color}">■</span> '
            + "<br>".join(texts[method]),
            "xref": "paper",
            "x": 1,
            "xanchor": "left",
            "xshift": 4,
            "yref": f"{panel.axis} domain",
            "y": place,
            "yanchor": "middle",
            "align": "left",
            "showarrow": False,
            "font": {"size": 12},
        }
        for method, place in zip(ends, spread(wanted, gap, 0.0, 1.0), strict=True)
    ]


def _mark(size_bytes: float) -> dict[str, Any]:
    """Return a soft band at the size whose samples are shown beside the curves."""
    return {
        "type": "rect",
        "xref": "x",
        "x0": size_bytes / 1.12,
        "x1": size_bytes * 1.12,
        "yref": "paper",
        "y0": 0,
        "y1": _SPEEDUP.domain[1],
        "line": {"width": 0},
        "fillcolor": GRID,
        "layer": "below",
    }


def _strip(selected: pd.DataFrame, x_range: list[float], figure: Figure) -> None:
    """Add the selected method of each interval above the plot, and a mark at each switch point."""
    figure["layout"]["yaxis3"] = {
        "domain": list(_STRIP_DOMAIN),
        "visible": False,
        "fixedrange": True,
        "range": [-0.25, 0.25],
    }
    if selected.empty:
        return
    low, high = 10 ** x_range[0], 10 ** x_range[1]
    rows = selected.assign(row=0)
    figure["data"].append(ribbon(rows, (low, high), yaxis="y3"))
    switches = [
        below
        for below, before, after in zip(
            rows["bytes_low"].iloc[1:], rows["method"], rows["method"].iloc[1:], strict=False
        )
        if before != after and low < below < high
    ]
    last = [0.0] * _MARK_LEVELS  # the last mark at each level
    for switch in switches:
        # A mark close to an earlier one is raised above it, as long as there is room.
        free = [level for level, mark in enumerate(last) if mark * _CLOSE_FACTOR <= switch]
        lift = min(free, default=last.index(min(last)))
        last[lift] = switch
        place = {"xref": "x", "yref": "paper"}
        figure["layout"]["shapes"].append(
            place
            | {"type": "line", "x0": switch, "x1": switch, "y0": 0, "y1": 1, "layer": "below"}
            | {"line": {"color": LINE, "width": 1, "dash": "dot"}}
        )
        figure["layout"]["annotations"].append(
            place
            | {"x": math.log10(switch), "y": 1, "yanchor": "bottom", "showarrow": False}
            | {
                "text": f"▾ {size_text(switch - 1)}",
                "font": {"size": 12},
                "yshift": _MARK_PX * lift,
            }
        )
    unused = sum(mark == 0 for mark in last[1:])
    figure["layout"]["margin"]["t"] -= _MARK_PX * unused
