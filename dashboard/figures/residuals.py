"""Predicted and measured times, and below them the errors of the model."""

import math
from typing import Any

import pandas as pd

from dashboard.figures.axes import (
    GRID,
    Figure,
    axis_title,
    base_layout,
    byte_axis,
    interval_bars,
    legend_below,
    level,
    message,
    plain_axis,
    time_axis,
)
from dashboard.figures.traces import line, points
from dashboard.units import time_text
from tuner.units import change_text

_HEIGHT_PX = 620
_TIMES, _RESIDUALS = (0.42, 1.0), (0.0, 0.32)
_LEAST_REACH = 0.3  # of the axis of residuals
_MOST_REACH = 2.0


def residuals(errors: pd.DataFrame, close: float, size_title: str) -> Figure:
    """Return measured points with their intervals, predicted lines, and residuals.

    errors: method, bytes, median_s, low_s, high_s, predicted_s, residual (share of the measured
    time). close: the residual up to which a prediction counts as close, shown as a band.
    """
    if errors.empty:
        return message("The model predicts no method of this case.", 120)
    errors = errors.assign(x=errors["bytes"].clip(lower=1)).sort_values(["method", "x"])
    times = pd.concat([errors["median_s"], errors["predicted_s"]])
    times = times[times > 0]  # a model may predict that nothing takes no time
    data: list[dict[str, Any]] = []
    for method, rows in errors.groupby("method"):
        data += _method(str(method), rows)
    reach = min(max(1.15 * errors["residual"].abs().max(), _LEAST_REACH), _MOST_REACH)
    x_axis = byte_axis(float(errors["x"].min()), float(errors["x"].max()), size_title)
    return {
        "data": data,
        "layout": base_layout(
            **legend_below(_HEIGHT_PX, errors["method"].nunique()),
            margin={"l": 72, "r": 16, "t": 8, "b": 48},
            xaxis=x_axis | {"anchor": "y2"},
            yaxis=time_axis(float(times.min()), float(times.max()), "time")
            | {"domain": list(_TIMES)},
            yaxis2=_share_axis(reach),
            shapes=[_band(close), level(0, "y2")],
        ),
    }


def _method(method: str, rows: pd.DataFrame) -> list[dict[str, Any]]:
    """Return a method's line, points and residuals, with one entry of the legend for the three."""
    x = rows["x"].tolist()
    texts = [
        f"<b>{method}</b><br>measured {time_text(measured)}<br>predicted {time_text(predicted)}"
        f"<br>error {change_text(residual, 0)}"
        for measured, predicted, residual in zip(
            rows["median_s"], rows["predicted_s"], rows["residual"], strict=True
        )
    ]
    measured, predicted = rows["median_s"].tolist(), rows["predicted_s"].tolist()
    off = [round(value, 4) for value in rows["residual"]]
    interval = interval_bars(rows["median_s"], rows["low_s"], rows["high_s"])
    lines = {"mode": "lines", "line": line(method)}
    residual_lines = {"mode": "lines+markers", "line": line(method, width=1), "yaxis": "y2"}
    group = {"legendgroup": method}
    quiet = group | {"showlegend": False}
    return [
        points(method, x, predicted, texts, **lines, **group),
        points(method, x, measured, texts, error_y=interval, **quiet),
        points(method, x, off, texts, **residual_lines, **quiet),
    ]


def _share_axis(reach: float) -> dict[str, Any]:
    step = next(step for step in (0.1, 0.2, 0.5, 1.0) if reach / step <= 4)
    count = math.floor(reach / step)
    ticks = [round(step * mark, 2) for mark in range(-count, count + 1) if step * mark >= -1]
    return plain_axis(
        domain=list(_RESIDUALS),
        title=axis_title("prediction error"),
        range=[max(-reach, -1.15), reach],  # no prediction is too short by more than 100 %
        tickvals=ticks,
        ticktext=[change_text(mark, 0) for mark in ticks],
    )


def _band(close: float) -> dict[str, Any]:
    place = {"xref": "x domain", "x0": 0, "x1": 1, "yref": "y2", "y0": -close, "y1": close}
    return place | {"type": "rect", "line": {"width": 0}, "fillcolor": GRID, "layer": "below"}
