"""Axes and the frame that all figures share."""

import math
import textwrap
from collections.abc import Iterable
from typing import Any

import pandas as pd

from dashboard.units import time_text
from tuner.units import size_text

Figure = dict[str, Any]

INK = "#24292f"
FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, sans-serif"
GRID = "rgba(127,127,127,0.22)"
LINE = "rgba(127,127,127,0.65)"
_MESSAGE_LETTERS = 36  # per line, to fit on a phone
_MOST_COUNTS = 8  # up to so many whole numbers, each has a mark
_MOST_BAND = 1.6
_ROW_PX, _ROWS = 19, 4  # height of a legend row, and rows that fit in every figure

CONFIG: dict[str, Any] = {
    "displaylogo": False,
    "responsive": True,
    "modeBarButtonsToRemove": ["select2d", "lasso2d", "autoScale2d", "toImage"],
}


def base_layout(height: int, **more: Any) -> dict[str, Any]:
    """Return the layout that all figures start from; `height` is in pixels.

    The width follows the page.
    """
    return {
        "height": height,
        "autosize": True,
        "margin": {"l": 64, "r": 16, "t": 28, "b": 44},
        "font": {"family": FONT, "size": 13, "color": INK},
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "showlegend": False,
        "hovermode": "closest",
        "hoverlabel": {"font": {"family": FONT, "size": 13}, "align": "left"},
        "dragmode": False,
    } | more


def axis_title(text: str) -> Figure:
    """Return the title of an axis."""
    return {"text": text, "standoff": 8, "font": {"size": 13}}


def legend_above(**more: Any) -> Figure:
    """Return a legend in a row above the figure."""
    return {"orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0} | more


def plain_axis(**more: Any) -> Figure:
    """Return what the axes of all figures share, with more of its own."""
    return {
        "gridcolor": GRID,
        "linecolor": LINE,
        "showline": True,
        "zeroline": False,
        "automargin": True,
    } | more


def _axis(title: str, ticks: list[float], texts: list[str], low: float, high: float) -> Figure:
    return plain_axis(
        type="log",
        title=axis_title(title),
        range=[math.log10(low), math.log10(high)],
        tickmode="array",
        tickvals=ticks,
        ticktext=texts,
        ticks="outside",
        ticklen=4,
        tickcolor=LINE,
    )


def byte_ticks(low: float, high: float) -> list[float]:
    """Return powers of two from `low` to `high` bytes, at most 12, 1 KiB among the marks."""
    first, last = math.ceil(math.log2(low) - 1e-9), math.floor(math.log2(high) + 1e-9)
    step = next(step for step in (1, 2, 5, 10, 20, 60) if (last - first) // step < 12)
    return [float(2**power) for power in range(first, last + 1) if power % step == 0]


def time_ticks(low: float, high: float, most: int = 9) -> list[float]:
    """Return marks at 1, 2 and 5 times powers of ten; fewer for a wide range, more if narrow."""
    digits: Iterable[float]
    for digits in ((1, 2, 5), (1, 3), (1,)):
        ticks = _marks(low, high, digits)
        if len(ticks) <= most:
            break
    narrow = ((1, 1.5, 2, 3, 5, 7), range(1, 10), *(_tenths(step) for step in (5, 2, 1)))
    for digits in narrow:
        if len(ticks) >= 3:
            break
        ticks = _marks(low, high, digits)
    return ticks


def _tenths(step: int) -> list[float]:
    """Return the numbers from 1 to below 10 in steps of `step` tenths."""
    return [tenth / 10 for tenth in range(10, 100, step)]


def _marks(low: float, high: float, digits: Iterable[float]) -> list[float]:
    """Return all digit × 10^n from low to high."""
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    marks = [float(f"{digit:.3f}e{decade}") for decade in decades for digit in digits]
    return [mark for mark in marks if low * (1 - 1e-9) <= mark <= high * (1 + 1e-9)]


def ratio_ticks(low: float, high: float) -> list[float]:
    """Return the marks of a speed-up axis, which are finer for a narrower range."""
    span = high / low
    if span <= 1.6:
        marks = [0.5 + 0.05 * step for step in range(40)]
    elif span <= 3:
        marks = [0.1 * step for step in range(1, 40)]
    else:
        fine, coarse = (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8), (1, 1.5, 2, 3, 5, 7)
        digits = fine if span <= 5 else coarse if span <= 12 else (1, 2, 5) if span <= 300 else (1,)
        marks = _marks(low, high, digits)
    return [round(mark, 6) for mark in marks if low <= mark <= high]


def tick_text(seconds: float) -> str:
    """Return the label of a mark on a time axis: `50 µs`, without trailing zeros."""
    number, unit = time_text(seconds).split()
    return f"{float(number):g} {unit}"


def span_ticks(high: float, most: int = 8) -> list[float]:
    """Return about `most` marks from 0 to `high` in steps of 1, 2 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(high / most))
    step = next(times * power for times in (1, 2, 5, 10) if times * power * most >= high)
    return [float(f"{step * number:.6g}") for number in range(math.floor(high / step) + 1)]


def byte_axis(low: float, high: float, title: str) -> Figure:
    """Return a logarithmic axis of message sizes that leaves room for the outermost markers."""
    low, high = max(low, 1.0), max(high, 1.0)
    if not byte_ticks(low, high):  # all sizes lie between two powers of two: these are the marks
        low, high = 2.0 ** math.floor(math.log2(low)), 2.0 ** math.ceil(math.log2(high))
    ticks = byte_ticks(low, high)
    # Every other mark has a label, 1 KiB among them: on a phone, all labels would overlap.
    step = math.log2(ticks[1] / ticks[0]) if len(ticks) > 5 else 0.5
    named = [(math.log2(tick) - 10) % (2 * step) == 0 for tick in ticks]
    texts = [size_text(tick) if name else "" for tick, name in zip(ticks, named, strict=True)]
    return _axis(title, ticks, texts, low / 1.25, high * 1.25)


def count_axis(low: float, high: float, title: str) -> Figure:
    """Return a logarithmic axis of counts; each whole number has a mark if they are few."""
    first, last = math.ceil(low), math.floor(high)
    low, high = low / 1.25, high * 1.25
    if 0 <= last - first < _MOST_COUNTS:
        ticks = [float(count) for count in range(first, last + 1)]
    else:
        ticks = time_ticks(low, high)
    return _axis(title, ticks, [f"{tick:g}" for tick in ticks], low, high)


def time_axis(low: float, high: float, title: str, most: int = 9) -> Figure:
    """Return a logarithmic axis of seconds, with at most `most` marks over a wide range."""
    low, high = low / 1.15, high * 1.15
    ticks = time_ticks(low, high, most)
    return _axis(title, ticks, [tick_text(tick) for tick in ticks], low, high)


def ratio_axis(low: float, high: float, title: str) -> Figure:
    """Return a logarithmic axis of ratios; 1 is always on it."""
    low, high = min(low, 0.95) / 1.05, max(high, 1.05) * 1.05
    ticks = ratio_ticks(low, high)
    return _axis(title, ticks, [f"{tick:g}×" for tick in ticks], low, high)


def probability_axis(least: float, title: str) -> Figure:
    """Return a logarithmic axis of probabilities from 1 up to `least`, so that the rare is high."""
    least = min(least, 0.01)
    decades = range(0, math.floor(math.log10(least)) - 1, -1)
    ticks = [10.0**decade for decade in decades[:: -(-len(decades) // _MOST_COUNTS)]]
    axis = _axis(title, ticks, [f"{tick:g}" for tick in ticks], least / 2, 1.0)
    return axis | {"range": [0.15, math.log10(least / 2)]}


def reach(middle: pd.Series, low: pd.Series, high: pd.Series) -> tuple[float, float]:
    """Return the range of an axis: all points, and their intervals up to a limit.

    Intervals of launches that disagree span decades, and would flatten the lines.
    """
    if middle.isna().all():
        return 1.0, 1.0
    least = max(float(low.fillna(middle).min()), float(middle.min()) / _MOST_BAND)
    most = min(float(high.fillna(middle).max()), float(middle.max()) * _MOST_BAND)
    return min(float(middle.min()), least), max(float(middle.max()), most)


def interval_bars(middle: pd.Series, low: pd.Series, high: pd.Series) -> dict[str, Any]:
    """Return error bars from `low` to `high` about points at `middle`."""
    ends = {"array": (high - middle).tolist(), "arrayminus": (middle - low).tolist()}
    return {"type": "data", "symmetric": False, "thickness": 1, "width": 3} | ends


def legend_below(height: int, entries: int, **more: Any) -> dict[str, Any]:
    """Return a legend in rows below the plot, and the height that leaves the plot its room.

    On a phone, each entry may take a row.
    """
    height += _ROW_PX * max(0, entries - _ROWS)
    legend = {"orientation": "h", "yref": "container", "y": 0, "yanchor": "bottom", "x": 0} | more
    return {"height": height, "showlegend": True, "legend": legend}


def level(value: float, axis: str = "y") -> dict[str, Any]:
    """Return a line across the plot at a value of an axis, such as the line of equal times."""
    its, across = ("x", "y") if axis == "x" else ("y", "x")
    place = {f"{its}ref": axis, f"{its}0": value, f"{its}1": value}
    place |= {f"{across}ref": f"{across} domain", f"{across}0": 0, f"{across}1": 1}
    return place | {"type": "line", "line": {"color": LINE, "width": 1.5}, "layer": "below"}


def message(text: str, height: int = 240) -> Figure:
    """Return an empty figure that says why it is empty."""
    hidden = {"visible": False, "fixedrange": True}
    lines = "<br>".join(textwrap.wrap(text, _MESSAGE_LETTERS))
    note = {"text": lines, "showarrow": False, "xref": "paper", "yref": "paper", "x": 0.5, "y": 0.5}
    return {
        "data": [],
        "layout": base_layout(
            height, margin=dict.fromkeys("lrtb", 16), xaxis=hidden, yaxis=hidden, annotations=[note]
        ),
    }


def spread(positions: list[float], gap: float, low: float, high: float) -> list[float]:
    """Return label positions in low…high at least `gap` apart, in order, moved as little as needed.

    Labels that touch form a block that is centred on the mean of the wanted positions.
    """
    order = sorted(range(len(positions)), key=lambda index: positions[index])
    blocks: list[list[int]] = []

    def bottom(block: list[int]) -> float:
        wanted = sum(positions[index] - rank * gap for rank, index in enumerate(block)) / len(block)
        return max(low, min(wanted, high - (len(block) - 1) * gap))

    for index in order:
        blocks.append([index])
        while len(blocks) > 1:
            before, last = blocks[-2], blocks[-1]
            if bottom(before) + len(before) * gap <= bottom(last):
                break
            blocks[-2:] = [before + last]
    moved = list(positions)
    for block in blocks:
        start = bottom(block)
        for rank, index in enumerate(block):
            moved[index] = start + rank * gap
    return moved
