"""A method table as ribbons: the method at each message size."""

import math

import pandas as pd

from dashboard.figures.axes import Figure, base_layout, byte_axis, message
from dashboard.figures.methods import method_style, transparent
from tuner.domain.tables import OPEN, UNSOAKED
from tuner.units import bytes_text

_ROW_PX = 52
_BAR = 0.5  # of a row
# Bars shrink their text to fit; text below this size is hidden.
UNIFORM_TEXT = {"mode": "hide", "minsize": 10}


def ribbon(selected: pd.DataFrame, x_range: tuple[float, float], **axes: str) -> Figure:
    """Return one bar trace of segments, cut at `x_range` (bytes).

    selected: row (place on the y axis), bytes_low, bytes_high (both included, infinite:
    open), method, status, verdict, challenger (the waiting method if the status is unsoaked).
    Those that nothing settles are drawn hollow.
    """
    low = selected["bytes_low"].clip(lower=x_range[0], upper=x_range[1])
    # The segment ends where the next size would begin, so that neighbours touch.
    high = (selected["bytes_high"] + 1).clip(lower=x_range[0], upper=x_range[1])
    decided = ~selected["status"].isin([OPEN, UNSOAKED])
    styles = [method_style(method) for method in selected["method"]]
    return {
        "type": "bar",
        "orientation": "h",
        "base": low.tolist(),
        "x": (high - low).tolist(),
        "y": selected["row"].tolist(),
        "width": _BAR,
        "text": [
            f"{method} ({challenger} pending)" if status == UNSOAKED else method
            for method, status, challenger in zip(
                *(selected[name] for name in ("method", "status", "challenger")), strict=True
            )
        ],
        "textposition": "inside",
        "insidetextanchor": "middle",
        "textangle": 0,
        "textfont": {"size": 12},
        "marker": {
            "color": [
                transparent(style.color, 0.36 if sure else 0.08)
                for style, sure in zip(styles, decided, strict=True)
            ],
            "line": {"color": [style.color for style in styles], "width": 1.5},
        },
        "customdata": [
            _hover(*rule)
            for rule in zip(*(selected[name].tolist() for name in _HOVERED), strict=True)
        ],
        "hovertemplate": "%{customdata}<extra></extra>",
    } | axes


_HOVERED = ("method", "bytes_low", "bytes_high", "verdict")


def _hover(method: str, low: float, high: float, verdict: str) -> str:
    return "<br>".join((f"<b>{method}</b>", bytes_text(low, high), verdict))


def ribbons(rules: pd.DataFrame, x_range: tuple[float, float]) -> Figure:
    """Return all rules of a system, a ribbon for each case, the first case on top.

    rules: the columns of `ribbon`, where row is the text of the case.
    """
    if rules.empty:
        return message("No rule of the table matches this case.")
    cases = list(dict.fromkeys(rules["row"]))
    places = {case: len(cases) - 1 - index for index, case in enumerate(cases)}
    names = [
        {
            "text": case,
            "x": 0,
            "xref": "paper",
            "xanchor": "left",
            "y": place + _BAR / 2,
            "yanchor": "bottom",
            "showarrow": False,
            "font": {"size": 12},
        }
        for case, place in places.items()
    ]
    return {
        "data": [ribbon(rules.assign(row=rules["row"].map(places)), x_range)],
        "layout": base_layout(
            60 + _ROW_PX * len(cases),
            margin={"l": 12, "r": 12, "t": 12, "b": 44},
            barmode="overlay",
            uniformtext=UNIFORM_TEXT,
            xaxis=byte_axis(*x_range, "bytes") | {"range": [math.log10(end) for end in x_range]},
            yaxis={"visible": False, "range": [-0.5, len(cases) - 0.3], "fixedrange": True},
            annotations=names,
        ),
    }
