"""Speed-up over the default and time against message size, with what the table selects."""

import math
from typing import Any

import pandas as pd

from dashboard.figures.axes import (
    GRID,
    LINE,
    Figure,
    base_layout,
    byte_axis,
    message,
    ratio_axis,
    spread,
    time_axis,
)
from dashboard.figures.methods import method_style, short_name, transparent
from dashboard.figures.ribbons import UNIFORM_TEXT, ribbon
from dashboard.units import ratio_text, size_text, time_text

HEIGHT = 660
_MARGIN = {"l": 72, "t": 38, "b": 48}
_STRIP_DOMAIN = (0.945, 1.0)
_SPEEDUP_DOMAIN = (0.5, 0.915)
_TIME_DOMAIN = (0.0, 0.45)
_LABEL_GAP_PX = 16
_CLOSE_FACTOR = 12.0
_MOST_BAND = 1.6
_EVEN = {
    "type": "line",
    "xref": "x domain",
    "x0": 0,
    "x1": 1,
    "yref": "y",
    "y0": 1,
    "y1": 1,
    "line": {"color": LINE, "width": 1.5},
    "layer": "below",
}


def curves(cells: pd.DataFrame, default: str, selected: pd.DataFrame, marked_bytes: int) -> Figure:
    """Speed-up above, time below, on one axis of bytes.

    cells: the cells of one operation, pattern and layout, with their `paired_speedups`.
    default: the method that speed-up is held against.
    selected: what the table selects there: bytes_low, bytes_high, method, status, speedup.
    marked_bytes: the size that the rest of the page is about.
    """
    if cells.empty:
        return message("No cell is stored for this choice.", HEIGHT)
    # A logarithmic axis has no zero: patterns without messages are drawn at one byte.
    cells = cells.assign(x=cells["bytes"].clip(lower=1)).sort_values(["method", "bytes"])
    x_low, x_high = float(cells["x"].min()), float(cells["x"].max())
    speedup_range = _range(cells, "speedup", "speedup_low", "speedup_high")
    speedup_axis = ratio_axis(*speedup_range, title=f"speed-up over {default}")
    seconds_axis = time_axis(*_range(cells, "median_s", "low_s", "high_s"), title="time")
    data: list[dict[str, Any]] = []
    annotations: list[dict[str, Any]] = []
    for y, low, high, axis, name in (
        ("speedup", "speedup_low", "speedup_high", speedup_axis, "y"),
        ("median_s", "low_s", "high_s", seconds_axis, "y2"),
    ):
        ends: dict[str, float] = {}
        for method, group in cells.dropna(subset=[y]).groupby("method", sort=True):
            data += _traces(str(method), group, y, low, high, name)
            ends[str(method)] = float(group[y].iloc[-1])
        annotations += _labels(ends, axis["range"], name)
    layout = base_layout(
        HEIGHT,
        margin=_MARGIN | {"r": 26 + 7 * max(len(short_name(name)) for name in cells["method"])},
        xaxis=byte_axis(x_low, x_high) | {"anchor": "y2"},
        yaxis=speedup_axis | {"domain": list(_SPEEDUP_DOMAIN)},
        yaxis2=seconds_axis | {"domain": list(_TIME_DOMAIN)},
        clickmode="event",
        uniformtext=UNIFORM_TEXT,
        shapes=[_EVEN, _mark(max(marked_bytes, 1))],
        annotations=annotations,
    )
    figure = {"data": data, "layout": layout}
    _strip(selected, layout["xaxis"]["range"], figure)
    return figure


def _range(cells: pd.DataFrame, middle: str, low: str, high: str) -> tuple[float, float]:
    """What an axis has to show: all lines, and the bands as far as they are of use.

    Launches that disagree have intervals of many decades, which would flatten the lines.
    """
    lines = cells[middle].dropna()
    if lines.empty:
        return 1.0, 1.0
    first, last = float(lines.min()), float(lines.max())
    least = max(float(cells[low].min()), first / _MOST_BAND)
    most = min(float(cells[high].max()), last * _MOST_BAND)
    return min(first, least), max(last, most)


def _rounded(values: pd.Series) -> list[float]:
    """Four significant digits: what a screen can show, at half the bytes on the wire."""
    return [float(f"{value:.4g}") for value in values]


def _traces(
    method: str, group: pd.DataFrame, y: str, low: str, high: str, axis: str
) -> list[dict[str, Any]]:
    style = method_style(method)
    line: dict[str, Any] = {
        "type": "scatter",
        "name": method,
        "x": group["x"].tolist(),
        "y": _rounded(group[y]),
        "yaxis": axis,
        "mode": "lines+markers",
        "line": {"color": style.color, "dash": style.dash, "width": 2},
        "marker": {"color": style.color, "symbol": style.symbol, "size": 7},
        "customdata": group["size_bytes"].tolist(),
        "text": [_hover(row, y, low, high) for row in group.to_dict("records")],
        "hovertemplate": f"<b>{method}</b><br>%{{text}}<extra></extra>",
    }
    band = group.dropna(subset=[low, high])
    if len(band) < 2:
        return [line]
    outline = {
        "type": "scatter",
        "x": band["x"].tolist() + band["x"].tolist()[::-1],
        "y": _rounded(band[high]) + _rounded(band[low])[::-1],
        "yaxis": axis,
        "mode": "lines",
        "line": {"width": 0},
        "fill": "toself",
        "fillcolor": transparent(style.color, 0.18),
        "hoverinfo": "skip",
    }
    return [outline, line]


def _hover(row: dict[str, Any], y: str, low: str, high: str) -> str:
    text = ratio_text if y == "speedup" else time_text
    lines = [f"{size_text(row['bytes'])}: {text(row[y])}"]
    if row[high] > row[low]:
        lines.append(f"95 % {text(row[low])} – {text(row[high])}")
    lines.append(f"{row['n']} samples, {row['launches']} launches")
    return "<br>".join(lines)


def _labels(ends: dict[str, float], axis_range: list[float], axis: str) -> list[dict[str, Any]]:
    """A label beside the last point of each line, moved apart where they would overlap."""
    domain = _SPEEDUP_DOMAIN if axis == "y" else _TIME_DOMAIN
    pixels = (HEIGHT - _MARGIN["t"] - _MARGIN["b"]) * (domain[1] - domain[0])
    bottom, top = axis_range
    wanted = [(math.log10(end) - bottom) / (top - bottom) for end in ends.values()]
    gap = min(_LABEL_GAP_PX / pixels, 1 / max(len(ends), 1))
    return [
        {
            "text": f'<span style="color:{method_style(method).color}">■</span> '
            f"{short_name(method)}",
            "xref": "paper",
            "x": 1,
            "xanchor": "left",
            "xshift": 4,
            "yref": f"{axis} domain",
            "y": place,
            "yanchor": "middle",
            "showarrow": False,
            "font": {"size": 12},
        }
        for method, place in zip(ends, spread(wanted, gap, 0.0, 1.0), strict=True)
    ]


def _mark(size_bytes: float) -> dict[str, Any]:
    """A soft band at the size whose samples are shown beside the curves."""
    return {
        "type": "rect",
        "xref": "x",
        "x0": size_bytes / 1.12,
        "x1": size_bytes * 1.12,
        "yref": "paper",
        "y0": 0,
        "y1": _SPEEDUP_DOMAIN[1],
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
    lifted = False
    for before, switch in zip([0.0, *switches], switches, strict=False):
        # Close to the mark before it, a mark is lifted above it.
        lifted = not lifted and before * _CLOSE_FACTOR > switch
        place = {"xref": "x", "yref": "paper"}
        figure["layout"]["shapes"].append(
            place
            | {"type": "line", "x0": switch, "x1": switch, "y0": 0, "y1": 1, "layer": "below"}
            | {"line": {"color": LINE, "width": 1, "dash": "dot"}}
        )
        figure["layout"]["annotations"].append(
            place
            | {"x": math.log10(switch), "y": 1, "yanchor": "bottom", "showarrow": False}
            | {"text": f"▾ {size_text(switch - 1)}", "font": {"size": 12}, "yshift": 14 * lifted}
        )
