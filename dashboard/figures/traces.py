"""Points and lines in the style of their method."""

from collections.abc import Iterable
from typing import Any

from dashboard.figures.methods import method_style, short_name


def points(
    method: str, x: list[Any], y: list[float], texts: list[str], **more: Any
) -> dict[str, Any]:
    """Return markers of a method, each with its hover text; `more` is added to the trace."""
    style = method_style(method)
    return {
        "type": "scatter",
        "mode": "markers",
        "name": short_name(method),
        "x": x,
        "y": y,
        "marker": {"color": style.color, "symbol": style.symbol, "size": 9},
        "text": texts,
        "hovertemplate": "%{text}<extra></extra>",
    } | more


def rounded(values: Iterable[float]) -> list[float]:
    """Round to four significant digits: enough for a screen, at half the bytes on the wire."""
    return [float(f"{value:.4g}") for value in values]


def line(method: str, width: float = 2) -> dict[str, Any]:
    """Return the style of a method's line."""
    style = method_style(method)
    return {"color": style.color, "dash": style.dash, "width": width}
