"""What changed between two campaigns, and a case through all of them."""

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
    ratio_axis,
    time_axis,
)
from dashboard.figures.traces import line, points
from dashboard.units import interval_text, ratio_text, time_text
from tuner.units import size_text

_HEIGHT = 420
_LEGEND_AT = -0.2
_MARGIN = {"l": 72, "r": 16, "t": 8, "b": 48}
_MOST_BAND = 1.6


def changes(changed: pd.DataFrame) -> Figure:
    """Time in B as a multiple of that in A, of every cell that changed.

    changed: where (text of the case), bytes, method, ratio, low, high.
    """
    if changed.empty:
        return message("No cell changed by more than its launches differ.", 120)
    changed = changed.assign(x=changed["bytes"].clip(lower=1)).sort_values(["method", "x"])
    data = []
    for method, rows in changed.groupby("method"):
        texts = [
            f"<b>{row.method}</b><br>{row.where}, {size_text(row.bytes)}<br>"
            f"{ratio_text(row.ratio)} the time ({interval_text(row.low, row.high, ratio_text)})"
            for row in rows.itertuples()
        ]
        interval = interval_bars(rows["ratio"], rows["low"], rows["high"])
        x, y = rows["x"].tolist(), rows["ratio"].tolist()
        data.append(points(str(method), x, y, texts, error_y=interval))
    low, high = float(changed["ratio"].min()), float(changed["ratio"].max())
    x_axis = byte_axis(float(changed["x"].min()), float(changed["x"].max()), "bytes")
    return {
        "data": data,
        "layout": base_layout(
            _HEIGHT,
            **legend_below(_LEGEND_AT),
            margin=_MARGIN,
            xaxis=x_axis,
            yaxis=ratio_axis(low / 1.1, high * 1.1, "time in B / time in A"),
            shapes=[level(1)],
        ),
    }


def history(cells: pd.DataFrame, size_bytes: int) -> Figure:
    """The time of each method in one campaign after the other, with marks where the MPI changes.

    cells: campaign (text), mpi_library, method, median_s, low_s, high_s, in order of date.
    """
    if cells.empty:
        return message("No campaign measured this case.", _HEIGHT)
    campaigns = list(dict.fromkeys(cells["campaign"]))
    place = {campaign: index for index, campaign in enumerate(campaigns)}
    library = dict(zip(cells["campaign"], cells["mpi_library"], strict=True))
    data = []
    for method, rows in cells.groupby("method"):
        texts = [
            f"<b>{row.method}</b><br>{row.campaign}<br>{row.mpi_library}<br>{time_text(row.median_s)}"
            for row in rows.itertuples()
        ]
        interval = interval_bars(rows["median_s"], rows["low_s"], rows["high_s"])
        x, y = [place[campaign] for campaign in rows["campaign"]], rows["median_s"].tolist()
        lines = {"mode": "lines+markers", "line": line(str(method))}
        data.append(points(str(method), x, y, texts, error_y=interval, **lines))
    starts = [
        index
        for index, campaign in enumerate(campaigns)
        if index == 0 or library[campaign] != library[campaigns[index - 1]]
    ]
    low = max(float(cells["low_s"].min()), float(cells["median_s"].min()) / _MOST_BAND)
    high = min(float(cells["high_s"].max()), float(cells["median_s"].max()) * _MOST_BAND)
    step = -(-len(campaigns) // 8)
    return {
        "data": data,
        "layout": base_layout(
            _HEIGHT,
            **legend_below(_LEGEND_AT),
            margin=_MARGIN | {"t": 28},
            xaxis={
                "tickvals": list(range(0, len(campaigns), step)),
                "ticktext": [campaign[:8] for campaign in campaigns[::step]],
                "range": [-0.5, len(campaigns) - 0.5],
                "linecolor": LINE,
                "showline": True,
                "showgrid": False,
                "zeroline": False,
                "fixedrange": True,
            },
            yaxis=time_axis(low, high, f"time at {size_text(size_bytes)}"),
            shapes=[_upgrade(index) for index in starts[1:]],
            annotations=[_name(index, library[campaigns[index]]) for index in starts],
        ),
    }


def _upgrade(index: int) -> dict[str, Any]:
    place = {"xref": "x", "x0": index - 0.5, "x1": index - 0.5}
    place |= {"yref": "paper", "y0": 0, "y1": 1, "layer": "below"}
    return place | {"type": "line", "line": {"color": GRID, "width": 2}}


def _name(index: int, library: str) -> dict[str, Any]:
    """The MPI library above its first campaign."""
    text = library if len(library) <= 24 else f"{library[:23]}…"
    place = {"x": index - 0.5, "xref": "x", "xanchor": "left", "y": 1, "yref": "paper"}
    return place | {"yanchor": "bottom", "text": text, "showarrow": False, "font": {"size": 12}}
