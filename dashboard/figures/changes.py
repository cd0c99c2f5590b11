"""Changes between two campaigns, how sure they are, and one case over all campaigns."""

import math
import re
from typing import Any

import pandas as pd

from dashboard.figures.axes import (
    GRID,
    LINE,
    Figure,
    base_layout,
    byte_axis,
    interval_bars,
    legend_below,
    level,
    message,
    plain_axis,
    probability_axis,
    ratio_axis,
    reach,
    time_axis,
)
from dashboard.figures.traces import line, points, rounded
from dashboard.frames import rows_of
from dashboard.units import interval_text, ratio_text, time_text
from tuner.units import size_text

_HEIGHT_PX = 420
_MARGIN = {"l": 72, "r": 16, "t": 8, "b": 48}
_APART = 0.3  # share of the distance between campaigns over which the methods of one spread
_LIBRARY_LETTERS = 32
_HOVER = "%{text}<br>%{x:.3g}× the time, p %{y:.2g}<extra></extra>"
_LEAST_P = 1e-12  # less is drawn there, as are exact times, whose p is 0

_DATE = re.compile(r"^([0-9]{4})([0-9]{2})([0-9]{2})T.*$")  # of the campaigns of `switchpoint run`
_SENTENCE = re.compile(r",|\. ")


def significance(tested: pd.DataFrame) -> Figure:
    """Return effect against significance: the ratio of times and the p of every tested cell.

    tested: where (text of the case), bytes, method, ratio, low, high, p, changed. A line lies
    between cells that changed, in the colours of their methods, and the others.
    """
    if tested.empty:
        return message("No cell has launches enough for a test.", 120)
    tested = tested.assign(y=tested["p"].clip(lower=_LEAST_P))
    same, changed = tested[~tested["changed"]], tested[tested["changed"]]
    grey = {"marker": {"color": LINE, "symbol": "circle", "size": 5}, "name": "unchanged"}
    data = [_tested("", same, **grey)] if len(same) else []
    data += [_tested(str(method), rows) for method, rows in changed.groupby("method")]
    shapes = [level(1, "x")]
    if len(changed):
        most = float(changed["y"].max())
        shapes.append(
            level(math.sqrt(most * min(float(same["y"].min()), 1) if len(same) else most))
        )
    return {
        "data": data,
        "layout": base_layout(
            **legend_below(_HEIGHT_PX, len(data)),
            margin=_MARGIN,
            xaxis=ratio_axis(
                float(tested["ratio"].min()), float(tested["ratio"].max()), "time in B / time in A"
            ),
            yaxis=probability_axis(float(tested["y"].min()), "p, surer upwards"),
            shapes=shapes,
        ),
    }


def _tested(method: str, rows: pd.DataFrame, **more: Any) -> dict[str, Any]:
    texts = [
        f"<b>{each}</b><br>{where}, {size_text(size)}"
        for each, where, size in zip(rows["method"], rows["where"], rows["bytes"], strict=True)
    ]
    x, y = rounded(rows["ratio"]), rounded(rows["y"])
    return points(method, x, y, texts, hovertemplate=_HOVER) | more


def changes(tested: pd.DataFrame) -> Figure:
    """Return the time in B as a multiple of the time in A, for each changed cell.

    tested: as for `significance`.
    """
    changed = tested[tested["changed"]]
    if changed.empty:
        return message("No significant change.", 120)
    changed = changed.assign(x=changed["bytes"].clip(lower=1)).sort_values(["method", "x"])
    data = []
    for method, rows in changed.groupby("method"):
        texts = [
            f"<b>{row['method']}</b><br>{row['where']}, {size_text(row['bytes'])}<br>"
            f"{ratio_text(row['ratio'])} the time "
            f"({interval_text(row['low'], row['high'], ratio_text)})"
            for row in rows_of(rows)
        ]
        interval = interval_bars(rows["ratio"], rows["low"], rows["high"])
        x, y = rows["x"].tolist(), rows["ratio"].tolist()
        data.append(points(str(method), x, y, texts, error_y=interval))
    low, high = float(changed["ratio"].min()), float(changed["ratio"].max())
    x_axis = byte_axis(float(changed["x"].min()), float(changed["x"].max()), "bytes")
    return {
        "data": data,
        "layout": base_layout(
            **legend_below(_HEIGHT_PX, changed["method"].nunique()),
            margin=_MARGIN,
            xaxis=x_axis,
            yaxis=ratio_axis(low / 1.1, high * 1.1, "time in B / time in A"),
            shapes=[level(1)],
        ),
    }


def history(cells: pd.DataFrame, size: str) -> Figure:
    """Return the time of each method by campaign, with marks where the MPI changes.

    cells: campaign (text), mpi_library, method, median_s, low_s, high_s, in order of date.
    size: in words.
    """
    if cells.empty:
        return message("No campaign measured this case.", _HEIGHT_PX)
    columns = [cells[name].tolist() for name in ("campaign", "mpi_library")]
    campaigns = list(dict.fromkeys(zip(*columns, strict=True)))  # one may measure two libraries
    place = {campaign: index for index, campaign in enumerate(campaigns)}
    data = []
    methods = cells.groupby("method")
    for number, (method, rows) in enumerate(methods):
        aside = _APART * ((number + 0.5) / len(methods) - 0.5)
        texts = [
            f"<b>{row['method']}</b><br>{row['campaign']}<br>{row['mpi_library']}<br>"
            f"{time_text(row['median_s'])}"
            for row in rows_of(rows)
        ]
        interval = interval_bars(rows["median_s"], rows["low_s"], rows["high_s"])
        its = zip(rows["campaign"], rows["mpi_library"], strict=True)
        x = [round(place[campaign] + aside, 3) for campaign in its]
        y = rows["median_s"].tolist()
        lines = {"mode": "lines+markers", "line": line(str(method))}
        data.append(points(str(method), x, y, texts, error_y=interval, **lines))
    starts = [
        index
        for index, (_, library) in enumerate(campaigns)
        if index == 0 or library != campaigns[index - 1][1]
    ]
    low, high = reach(cells["median_s"], cells["low_s"], cells["high_s"])
    step = -(-len(campaigns) // 8)
    return {
        "data": data,
        "layout": base_layout(
            **legend_below(_HEIGHT_PX, len(methods)),
            margin=_MARGIN | {"t": 28},
            xaxis=plain_axis(
                tickvals=list(range(0, len(campaigns), step)),
                ticktext=[_DATE.sub(r"\1-\2-\3", name) for name, _ in campaigns[::step]],
                range=[-0.5, len(campaigns) - 0.5],
                showgrid=False,
                fixedrange=True,
            ),
            yaxis=time_axis(low, high, f"time at {size}"),
            shapes=[_upgrade(index) for index in starts[1:]],
            annotations=[_name(index, campaigns[index][1]) for index in starts],
        ),
    }


def _upgrade(index: int) -> dict[str, Any]:
    place = {"xref": "x", "x0": index - 0.5, "x1": index - 0.5}
    place |= {"yref": "paper", "y0": 0, "y1": 1, "layer": "below"}
    return place | {"type": "line", "line": {"color": GRID, "width": 2}}


def _name(index: int, library: str) -> dict[str, Any]:
    """Return the MPI library above its first campaign, shortened to name and version."""
    name = _SENTENCE.split(library)[0]
    text = name if len(name) <= _LIBRARY_LETTERS else f"{name[: _LIBRARY_LETTERS - 1]}…"
    place = {"x": index - 0.5, "xref": "x", "xanchor": "left", "y": 1, "yref": "paper"}
    return place | {"yanchor": "bottom", "text": text, "showarrow": False, "font": {"size": 12}}
