"""The time of a rank that communicates while it computes, by parts."""

from typing import Any

import pandas as pd

from dashboard.figures.axes import (
    Figure,
    axis_title,
    base_layout,
    legend_above,
    message,
    plain_axis,
    span_ticks,
    tick_text,
)
from dashboard.units import time_text

# Colours of parts, not of methods: computing is the useful part, the others are its cost.
PARTS = {
    "computation_s": ("computation", "#7d8288", ""),
    "initiation_s": ("initiation", "#d55e00", "/"),
    "wait_s": ("wait", "#0b7bc1", "\\"),
    "barrier_s": ("barrier", "#a67c00", "x"),
}
_ROW_PX = 34
_LEAST_S = 1e-9  # an axis of files without any time has this length


def breakdown(rows: pd.DataFrame) -> Figure:
    """Return a bar for each method, the fastest on top, stacked from its parts.

    rows: method, total_s, the parts, alone_s (the computation without communication), predicted_s
    (of the whole; missing where there is no equation or parameter).
    """
    if rows.empty:
        return message("No overlap was measured on this system.", 120)
    rows = rows.sort_values("total_s")
    sums = rows[list(PARTS)].sum(axis=1)
    longest_s = float(pd.concat([sums, rows["alone_s"], rows["predicted_s"]]).max())
    ticks = span_ticks(max(longest_s, _LEAST_S))
    bars = [_bar(rows, column, *part) for column, part in PARTS.items()]
    marks = [
        _marks(rows, "alone_s", "computation alone", "line-ns-open"),
        _marks(rows[rows["predicted_s"].notna()], "predicted_s", "predicted", "diamond-open"),
    ]
    return {
        "data": bars + marks,
        "layout": base_layout(
            190 + _ROW_PX * len(rows),  # with room for the legend, which is a column on a phone
            margin={"l": 16, "r": 16, "t": 8, "b": 44},
            barmode="stack",
            bargap=0.35,
            showlegend=True,
            legend=legend_above(maxheight=1, traceorder="normal"),  # the order of the parts
            xaxis=plain_axis(
                title=axis_title("time of a rank"),
                rangemode="tozero",
                tickvals=ticks,
                ticktext=[tick_text(tick) if tick else "0" for tick in ticks],
                automargin=False,
            ),
            yaxis=plain_axis(
                type="category", autorange="reversed", fixedrange=True, showgrid=False
            ),
        ),
    }


def _bar(rows: pd.DataFrame, column: str, name: str, color: str, shape: str) -> dict[str, Any]:
    return {
        "type": "bar",
        "orientation": "h",
        "name": name,
        "y": rows["method"].tolist(),
        "x": rows[column].tolist(),
        "marker": {
            "color": color,
            "pattern": {"shape": shape, "fillmode": "overlay", "fgcolor": "#ffffff", "size": 6},
        },
        "text": [f"{name} {time_text(value)}" for value in rows[column]],
        "textposition": "none",
        "hovertemplate": "<b>%{y}</b><br>%{text}<extra></extra>",
    }


def _marks(rows: pd.DataFrame, column: str, name: str, symbol: str) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "markers",
        "name": name,
        "y": rows["method"].tolist(),
        "x": rows[column].tolist(),
        "marker": {"symbol": symbol, "size": 14, "color": "#d4455a", "line": {"width": 2.5}},
        "text": [f"{name} {time_text(value)}" for value in rows[column]],
        "hovertemplate": "<b>%{y}</b><br>%{text}<extra></extra>",
    }
