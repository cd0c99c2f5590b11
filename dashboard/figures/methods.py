"""The style of a method: colour, dash and marker, the same on every page, permanently.

Colours keep a contrast of 3 : 1 on the light and on the dark background, so all have about the same
lightness, and readers with red-green colour blindness see only yellowish and bluish ones: markers
and dashes distinguish all methods.
"""

import re
import textwrap
import zlib
from dataclasses import dataclass

LABEL_LENGTH = 18
GREY = "#7d8288"
_GREEN = "#05936d"
_ORANGE = "#d55e00"
_PURPLE = "#b8619a"
_OCHRE = "#a67c00"
_TEAL = "#008c9e"
_RED = "#d4455a"
_BLUE = "#0b7bc1"
_INDIGO = "#6b7ce0"
_ALTERNATING = (_BLUE, _OCHRE, _INDIGO, _ORANGE)
"""Neighbours in this circle differ for every reader, even in the pale shades of tiles."""


_FAMILIES = {  # colour and marker
    # defaults: neutral, because the others are compared with them
    "direct": (GREY, "circle"),
    "pex": (GREY, "circle"),
    "vendor": (GREY, "circle"),
    # exchange
    "neighbor": (_GREEN, "triangle-up"),
    "alltoallv": (_PURPLE, "cross"),
    "nap": (_RED, "hexagon"),
    "lent": (_TEAL, "pentagon"),
    # discovery
    "pcx": (_GREEN, "triangle-up"),
    "rsx": (_PURPLE, "cross"),
    "put": (_INDIGO, "triangle-down"),
    "nbx": (_ORANGE, "diamond"),
    "dense": (_TEAL, "pentagon"),
    "shared": (_OCHRE, "star"),
    # collectives: methods for the same operation differ
    "orthogonal": (_ORANGE, "square"),
    "twolevel": (_RED, "hexagon"),
    "binomial": (_GREEN, "triangle-up"),
    "pairwise": (_GREEN, "triangle-up"),
    "ring": (_PURPLE, "cross"),
    "knomial": (_PURPLE, "cross"),
    "hypercube": (_TEAL, "diamond"),
    "scatter_allgather": (_TEAL, "diamond"),
    "star": (_OCHRE, "star"),
    "chain": (_OCHRE, "star"),
    "bruck": (_OCHRE, "star"),
    "rabenseifner": (_BLUE, "triangle-down"),
    "bine": (_INDIGO, "pentagon"),
    "multiplying": (_RED, "star"),
}
_LIBRARY_COLORS = (_BLUE, _OCHRE, _INDIGO, _RED)  # without the orange of grids: both are dashed
_OTHER_COLORS = (_TEAL, _OCHRE, _RED, _GREEN, _PURPLE, _ORANGE)
_DASHES = ("solid", "dash", "dot", "dashdot", "longdash", "longdashdot")
_GLYPHS = {
    "circle": "●",
    "square": "■",
    "diamond": "◆",
    "triangle-up": "▲",
    "triangle-down": "▼",
    "cross": "✚",
    "star": "★",
    "pentagon": "⬟",
    "hexagon": "⬢",
}
_DIMS = re.compile(r"dims=([0-9]{1,9})")
_GRID = re.compile(r"grid=([0-9]{1,9})x([0-9]{1,9})")
_SYMBOLS = ("square", "diamond", "triangle-up", "triangle-down", "pentagon", "hexagon", "star")


@dataclass(frozen=True)
class MethodStyle:
    """The properties with which Plotly draws a method."""

    color: str
    dash: str
    symbol: str

    @property
    def glyph(self) -> str:
        """Return the marker as a character, for text."""
        return _GLYPHS[self.symbol]


def method_style(spec: str) -> MethodStyle:
    """Return the style of a method, from its spec alone: it does not depend on the page."""
    family, _, parameters = spec.partition(":")
    code = zlib.crc32(parameters.encode())
    if family == "stfw" and (dims := _DIMS.fullmatch(parameters)):
        # Neighbouring dimensions are compared most: consecutive colours, dashes and markers.
        code = int(dims[1]) - 2
        color = _ALTERNATING[code % len(_ALTERNATING)]
        return MethodStyle(color, _DASHES[code % len(_DASHES)], _SYMBOLS[code % len(_SYMBOLS)])
    if family == "stfw":
        return MethodStyle(
            _TEAL, _DASHES[1 + code % (len(_DASHES) - 1)], _SYMBOLS[code % len(_SYMBOLS)]
        )
    unknown = _OTHER_COLORS[zlib.crc32(family.encode()) % len(_OTHER_COLORS)], "square"
    color, symbol = _FAMILIES.get(family, unknown)
    if family == "vendor" and parameters:  # the library has many algorithms
        color = _LIBRARY_COLORS[code % len(_LIBRARY_COLORS)]
    if not parameters:
        return MethodStyle(color, "solid", symbol)
    # The first two factors of a process count distinguish its grids: one by marker, one by dash.
    grid = _GRID.match(parameters)
    first, second = map(int, grid.groups()) if grid else (code >> 8, code)
    return MethodStyle(
        color, _DASHES[1 + second % (len(_DASHES) - 1)], _SYMBOLS[first % len(_SYMBOLS)]
    )


def transparent(color: str, alpha: float) -> str:
    """Return `#rrggbb` as an rgba() colour."""
    red, green, blue = (int(color[start : start + 2], 16) for start in (1, 3, 5))
    return f"rgba({red},{green},{blue},{alpha:g})"


def short_name(spec: str) -> str:
    """Return the spec as a label: a longer one loses its parameter's name (`nbx:ibarrier`).

    Only a name of a file that is longer than those of all methods loses its middle.
    """
    family, _, parameters = spec.partition(":")
    _, _, value = parameters.partition("=")
    name = spec if len(spec) <= LABEL_LENGTH or not value else f"{family}:{value}"
    half = LABEL_LENGTH - 2
    return name if len(name) <= 2 * LABEL_LENGTH else f"{name[:half]}…{name[-half:]}"


def label_lines(spec: str) -> list[str]:
    """Return the `short_name` in lines of `LABEL_LENGTH` letters, which fit on a telephone."""
    name = short_name(spec)
    if len(name) <= LABEL_LENGTH:
        return [name]
    return textwrap.wrap(name.replace(":", ": ", 1), LABEL_LENGTH)
