"""Time against the messages and bytes that a plan sends."""

from collections.abc import Callable
from typing import Any, NamedTuple

import pandas as pd

from dashboard.figures.axes import (
    Figure,
    base_layout,
    byte_axis,
    count_axis,
    interval_bars,
    legend_below,
    message,
    reach,
    time_axis,
)
from dashboard.figures.traces import points
from dashboard.units import time_text
from tuner.units import size_text


class Metric(NamedTuple):
    """A count of a plan: the axis's title, the axis, the format of its values."""

    title: str
    axis: Callable[[float, float, str], Figure]
    text: Callable[[float], str]


METRICS = {
    "mmax": Metric("most messages sent by a rank", count_axis, "{:g}".format),
    "mavg": Metric("mean messages sent by a rank", count_axis, "{:.3g}".format),
    "vavg_bytes": Metric("mean bytes sent by a rank", byte_axis, size_text),
}
_HEIGHT_PX = 400


def against_time(cells: pd.DataFrame, name: str) -> Figure:
    """Return a point for each method and pattern: its time, and the metric of its plan.

    cells: pattern, method, median_s, low_s, high_s, and a column for each of METRICS.
    """
    if cells.empty:
        return message("No method measured here counts its messages.", 120)
    metric = METRICS[name]
    return {
        "data": [_points(str(method), rows, name) for method, rows in cells.groupby("method")],
        "layout": base_layout(
            **legend_below(_HEIGHT_PX, cells["method"].nunique()),
            margin={"l": 64, "r": 16, "t": 8, "b": 48},
            xaxis=metric.axis(float(cells[name].min()), float(cells[name].max()), metric.title),
            yaxis=time_axis(*reach(cells["median_s"], cells["low_s"], cells["high_s"]), "time"),
        ),
    }


def _points(method: str, rows: pd.DataFrame, name: str) -> dict[str, Any]:
    metric = METRICS[name]
    texts = [
        f"<b>{method}</b><br>{pattern}<br>{metric.title}: {metric.text(value)}<br>{time_text(time)}"
        for pattern, value, time in zip(rows["pattern"], rows[name], rows["median_s"], strict=True)
    ]
    interval = interval_bars(rows["median_s"], rows["low_s"], rows["high_s"])
    return points(method, rows[name].tolist(), rows["median_s"].tolist(), texts, error_y=interval)
