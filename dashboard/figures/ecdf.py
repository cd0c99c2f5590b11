"""The distribution of the raw samples of one size."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from dashboard.figures import traces
from dashboard.figures.axes import Figure, base_layout, legend_below, message, plain_axis, time_axis
from dashboard.figures.methods import short_name
from tuner.units import counted

HEIGHT_PX = 500
_MOST_POINTS = 400
_LEAST_POINTS = 20  # of many facets, which share the others
_FACETS_A_ROW = 2
_FACET_PX = 170
_NONE = "No samples are stored for this cell."
_GAP = 0.08  # between facets, as a share of the figure's width
_MARGIN = {"l": 56, "r": 12, "t": 8, "b": 44}

Samples = Mapping[str, npt.NDArray[np.float32]]
"""The samples of a cell in seconds, by method."""


def _some(samples_s: Samples) -> Samples:
    """Return the methods that have samples."""
    return {method: values for method, values in samples_s.items() if len(values)}


def ecdf(samples_s: Samples) -> Figure:
    """Return empirical distribution functions, a step line for each method.

    Up to 400 samples per method are all drawn; of more, evenly spaced order statistics, always
    including the smallest and largest. If the slowest method has a long tail, the axis ends at its
    99th percentile, and a note gives the number of samples beyond.
    """
    samples_s = _some(samples_s)
    if not samples_s:
        return message(_NONE, HEIGHT_PX)
    low, shown, beyond = _reach([samples_s])
    note = f"{counted(beyond, 'sample')} beyond the axis" if beyond else ""
    return {
        "data": [_steps(method, samples_s[method]) for method in sorted(samples_s)],
        "layout": base_layout(
            **legend_below(HEIGHT_PX, len(samples_s), font={"size": 12}),
            margin=_MARGIN,
            xaxis=time_axis(low, shown, "time of one execution", most=6),
            yaxis=_SHARES,
            annotations=[_corner(note)] if note else [],
        ),
    }


def ecdf_by_launch(launches: Mapping[int, Samples]) -> Figure:
    """Return the curves of each launch, as facets on the same axes of time."""
    launches = {launch: its for launch, of in launches.items() if (its := _some(of))}
    if not launches:
        return message(_NONE, HEIGHT_PX)
    low, shown, _ = _reach(launches.values())
    most = max(_MOST_POINTS // len(launches), _LEAST_POINTS)
    methods = sorted({method for samples_s in launches.values() for method in samples_s})
    rows = -(-len(launches) // _FACETS_A_ROW)
    height = HEIGHT_PX - 2 * _FACET_PX + rows * _FACET_PX
    layout = base_layout(**legend_below(height, len(methods), font={"size": 12}), margin=_MARGIN)
    data, named = [], set()
    for place, (launch, samples_s) in enumerate(launches.items()):
        row, column = divmod(place, _FACETS_A_ROW)
        number = str(place + 1) if place else ""
        for method in sorted(samples_s):
            steps = _steps(method, samples_s[method], most)
            axes = {"xaxis": f"x{number}", "yaxis": f"y{number}"}
            data.append(steps | axes | {"legendgroup": method, "showlegend": method not in named})
            named.add(method)
        is_lowest = place + _FACETS_A_ROW >= len(launches)
        width = (1 - _GAP * (_FACETS_A_ROW - 1)) / _FACETS_A_ROW
        left, top = column * (width + _GAP), 1 - row / rows
        time = time_axis(low, shown, "time of one execution" if is_lowest else "", most=3)
        layout[f"xaxis{number}"] = time | {
            "domain": [left, left + width],
            "anchor": f"y{number}",
            "showticklabels": is_lowest,
        }
        layout[f"yaxis{number}"] = _SHARES | {
            "domain": [top - 0.8 / rows, top],
            "anchor": f"x{number}",
            "showticklabels": column == 0,
            "title": {"text": ""},
        }
        name = _corner(f"launch {launch}") | {"xref": f"x{number} domain"}
        layout.setdefault("annotations", []).append(name | {"yref": f"y{number} domain"})
    return {"data": data, "layout": layout}


_SHARES = plain_axis(
    title={"text": "share of samples", "font": {"size": 13}},
    range=[0, 102],
    ticksuffix=" %",
    automargin=False,
)


def _reach(facets: Iterable[Samples]) -> tuple[float, float, int]:
    """Return the ends of the axis of times, and the number of samples beyond it."""
    every = [values for samples_s in facets for values in samples_s.values()]
    low, high = min(float(each.min()) for each in every), max(float(each.max()) for each in every)
    shown = min(high, 1.5 * max(float(np.quantile(values, 0.99)) for values in every))
    return low, shown, sum(int((values > shown).sum()) for values in every)


def _steps(
    method: str, samples_s: npt.NDArray[np.float32], most: int = _MOST_POINTS
) -> dict[str, Any]:
    values = np.sort(samples_s)
    ranks = np.arange(len(values))
    if len(values) > most:
        ranks = np.unique(np.linspace(0, len(values) - 1, most).round().astype(int))
    return {
        "type": "scatter",
        "name": short_name(method),
        "mode": "lines",
        # From zero up: a single sample is a step as well.
        "x": [float(f"{value:.4g}") for value in (values[0], *values[ranks])],
        "y": [0.0, *(round(share, 2) for share in 100 * (ranks + 1) / len(values))],
        "line": traces.line(method) | {"shape": "hv"},
        "hovertemplate": f"<b>{method}</b><br>%{{y:.0f}} % of {len(values)} samples "
        "within %{x:.3s}s<extra></extra>",
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
