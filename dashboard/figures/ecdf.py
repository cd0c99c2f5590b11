"""The distribution of the raw samples of one size."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from dashboard.figures import traces
from dashboard.figures.axes import GRID, LINE, Figure, base_layout, legend_below, message, time_axis
from dashboard.figures.methods import short_name

HEIGHT = 500
_MOST_POINTS = 400


def ecdf(samples_s: Mapping[str, npt.NDArray[np.float32]]) -> Figure:
    """Return empirical distribution functions, a step line for each method.

    Up to 400 samples per method are all drawn; of more, evenly spaced order statistics, always
    including the smallest and largest. If the slowest method has a long tail, the axis ends at its
    99th percentile, and a note gives the number of samples beyond.
    """
    samples_s = {method: np.sort(values) for method, values in samples_s.items() if len(values)}
    if not samples_s:
        return message("No samples are stored for this cell.", HEIGHT)
    low = min(float(values[0]) for values in samples_s.values())
    high = max(float(values[-1]) for values in samples_s.values())
    shown = min(high, 1.5 * max(float(np.quantile(values, 0.99)) for values in samples_s.values()))
    beyond = sum(int((values > shown).sum()) for values in samples_s.values())
    data: list[dict[str, Any]] = []
    for method in sorted(samples_s):
        values = samples_s[method]
        ranks = np.arange(len(values))
        if len(values) > _MOST_POINTS:
            ranks = np.unique(np.linspace(0, len(values) - 1, _MOST_POINTS).round().astype(int))
        data.append(
            {
                "type": "scatter",
                "name": short_name(method),
                "mode": "lines",
                # From zero up: a single sample is a step as well.
                "x": [float(f"{value:.4g}") for value in (values[0], *values[ranks])],
                "y": [0.0, *(round(share, 4) for share in (ranks + 1) / len(values))],
                "line": traces.line(method) | {"shape": "hv"},
                "hovertemplate": f"<b>{method}</b><br>%{{y:.0%}} of {len(values)} samples "
                "within %{x:.3s}s<extra></extra>",
            }
        )
    note = f"{beyond} sample{'s' if beyond > 1 else ''} beyond the axis" if beyond else ""
    return {
        "data": data,
        "layout": base_layout(
            **legend_below(HEIGHT, len(samples_s), font={"size": 12}),
            margin={"l": 56, "r": 12, "t": 8, "b": 44},
            xaxis=time_axis(low, shown, "time of one execution", most=6),
            yaxis={
                "title": {"text": "share of samples", "font": {"size": 13}},
                "range": [0, 1.02],
                "tickformat": ".0%",
                "gridcolor": GRID,
                "linecolor": LINE,
                "showline": True,
                "zeroline": False,
            },
            annotations=[_corner(note)] if note else [],
        ),
    }


def _corner(text: str) -> dict[str, Any]:
    return {
        "text": text,
        "showarrow": False,
        "xref": "paper",
        "yref": "paper",
        "x": 1,
        "y": 0.02,
        "xanchor": "right",
        "yanchor": "bottom",
        "font": {"size": 12},
    }
