"""The best method for every layout and message size, as coloured tiles."""

from typing import Any

import pandas as pd

from dashboard.figures.axes import (
    Figure,
    axis_title,
    base_layout,
    legend_above,
    message,
    plain_axis,
)
from dashboard.figures.methods import method_style, short_name, transparent
from dashboard.frames import rows_of
from dashboard.units import ratio_text, time_text
from tuner.units import size_text

_ROW_PX = 52
_SURE, _UNSURE = 0.42, 0.1


def tiles(best: pd.DataFrame) -> Figure:
    """Return a row of tiles for each layout, a column for each size, in its method's style.

    best: row (text of the layout), layout (its key), size_bytes, bytes, method, default, speedup,
    median_s, settled, verdict_lines (of HTML). Tiles that are not settled are pale.
    """
    if best.empty:
        return message("The default was not measured here.")
    rows = list(dict.fromkeys(best["row"]))
    sizes = sorted(best["size_bytes"].unique().tolist())
    methods = sorted(best["method"].unique())
    columns = list(range(len(sizes)))  # by number, as sizes that differ may have one text
    best = best.assign(column=best["size_bytes"].map(dict(zip(sizes, columns, strict=True))))
    places = {(tile["row"], tile["size_bytes"]): tile for tile in rows_of(best)}
    grid = [[places.get((row, size)) for size in sizes] for row in rows]
    tile_map = {
        "type": "heatmap",
        "x": columns,
        "y": rows,
        "z": [[_code(tile, methods) for tile in line] for line in grid],
        "customdata": [[_link(tile) for tile in line] for line in grid],
        "hovertext": [[_hover(tile) for tile in line] for line in grid],
        "hovertemplate": "%{hovertext}<extra></extra>",
        "zmin": -0.5,
        "zmax": 2 * len(methods) - 0.5,
        "colorscale": _steps(methods),
        "showscale": False,
        "xgap": 2,
        "ygap": 2,
        "hoverongaps": False,
    }
    return {
        "data": [tile_map, *(_marks(best[best["method"] == method]) for method in methods)],
        "layout": base_layout(
            150 + _ROW_PX * len(rows),
            margin={"l": 16, "r": 12, "t": 8, "b": 44},
            clickmode="event",
            showlegend=True,
            legend=legend_above(),
            xaxis=plain_axis(
                tickvals=columns,
                ticktext=[size_text(size) for size in sizes],
                range=[-0.5, len(sizes) - 0.5],
                title=axis_title("bytes (as measured)"),
                fixedrange=True,
                showgrid=False,
            ),
            yaxis=plain_axis(
                type="category",
                tickvals=rows,
                # In several lines, to leave the width of a phone to the tiles.
                ticktext=[row.replace(", ", ",<br>") for row in rows],
                range=[len(rows) - 0.5, -0.5],
                fixedrange=True,
                showgrid=False,
            ),
        ),
    }


def _code(tile: dict[str, Any] | None, methods: list[str]) -> int | None:
    return None if tile is None else 2 * methods.index(tile["method"]) + tile["settled"]


def _steps(methods: list[str]) -> list[list[Any]]:
    """Return a colour scale of steps: for each method first the pale one, then the full one."""
    shades = [(method, alpha) for method in methods for alpha in (_UNSURE, _SURE)]
    scale: list[list[Any]] = []
    for index, (method, alpha) in enumerate(shades):
        color = transparent(method_style(method).color, alpha)
        scale += [[index / len(shades), color], [(index + 1) / len(shades), color]]
    return scale


def _text(tile: dict[str, Any]) -> str:
    """Return the method's speed as a multiple of the default's, short enough for many columns."""
    return "" if tile["method"] == tile["default"] else ratio_text(tile["speedup"]).rstrip("×")


def _link(tile: dict[str, Any] | None) -> str:
    """Return the layout and size that a click selects."""
    return "" if tile is None else f"{tile['layout']} {tile['size_bytes']}"


def _hover(tile: dict[str, Any] | None) -> str:
    if tile is None:
        return ""
    lines = [
        f"<b>{tile['method']}</b>",
        f"{tile['row']}, {size_text(tile['bytes'])}",
        f"median {time_text(tile['median_s'])}",
    ]
    return "<br>".join([*lines, tile["verdict_lines"]])


def _marks(tiles_of_method: pd.DataFrame) -> dict[str, Any]:
    """Return the method's marker in its tiles and the legend, with its speed-up below."""
    method = tiles_of_method["method"].iloc[0]
    style = method_style(method)
    shown = rows_of(tiles_of_method[["method", "default", "speedup"]])
    return {
        "type": "scatter",
        "mode": "markers+text",
        "x": tiles_of_method["column"].tolist(),
        "y": tiles_of_method["row"].tolist(),
        "text": [_text(tile) for tile in shown],
        "textposition": "bottom center",
        "textfont": {"size": 11},
        "name": short_name(method),
        "hoverinfo": "skip",
        "cliponaxis": False,
        "marker": {"symbol": style.symbol, "size": 11, "color": style.color},
    }
