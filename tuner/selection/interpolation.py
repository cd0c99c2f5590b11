"""Choices between measured process counts and layouts.

The logarithm of every method's time over the default's is assumed to lie on the straight line
between the neighbours' values. The fastest of the methods that the neighbours choose is chosen. No
input or output.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import TypeVar

import numpy as np

from tuner.domain.operations import DEFAULT_METHODS
from tuner.domain.tables import OPEN, Point
from tuner.selection.intervals import NEARLY, At, Classes, Interval, N, weaker

T = TypeVar("T")

Span = tuple[int, int]
"""An interval that includes both ends."""

Layouts = dict[tuple[Span, Span], Classes]
"""Decisions by nodes and processes per node."""

BANDS_PER_OCTAVE = 2
"""Parts per octave of the gap between neighbours; one choice holds in each."""


def with_layouts_between(measured: Layouts) -> Layouts:
    """Add layouts between measured ones: first of processes per node, then of nodes."""
    return _along(_along(measured, 1), 0)


def _along(layouts: Layouts, axis: int) -> Layouts:
    lines: dict[Span, dict[Span, Classes]] = defaultdict(dict)
    for layout, classes in layouts.items():
        lines[layout[1 - axis]][layout[axis]] = classes
    found = dict(layouts)
    for other, line in lines.items():
        for a, b in pairwise(sorted(line)):
            # One node has no network, and one process a node no neighbours: no layout is like them.
            if a[0] > 1:
                for span, place in _bands(a[1], b[0]):
                    if classes := _classes_between(line[a], line[b], place):
                        found[(other, span) if axis else (span, other)] = classes
    return found


def _bands(a: int, b: int) -> Iterator[tuple[Span, float]]:
    """Yield the numbers between two as bands of about equal ratio, with the place of the middle.

    Places run from 0, a, to 1, b, in logarithms.
    """
    count = math.ceil(BANDS_PER_OCTAVE * math.log2(b / a))
    ends = [a, *(round(a * (b / a) ** (part / count)) for part in range(1, count)), b - 1]
    for low, high in pairwise(ends):
        if low < high:
            place = math.log(math.sqrt((low + 1) * high) / a) / math.log(b / a)
            yield (low + 1, high), place


def _classes_between(a: Classes, b: Classes, place: float) -> Classes:
    found: Classes = []
    for mmax, of_a, of_b in _overlaps(a, b):
        means = [
            (mavg, here)
            for mavg, at_a, at_b in _overlaps(of_a, of_b)
            if (here := _between(at_a, at_b, place))
        ]
        if means:
            found.append((mmax, means))
    return found


def _between(a: list[At], b: list[At], place: float) -> list[At]:
    """Return choices at the sizes of either; none if no method that one chose was measured on both.

    Where only one of the two is oversubscribed, their ratios do not compare, and only methods that
    both choose hold.
    """
    default = DEFAULT_METHODS[a[0].point.case.operation]
    chosen = {at.point.method for at in (*a, *b)} - {default}
    alike = len({at.point.case.layout.oversubscribed for at in (*a, *b)}) == 1
    curves = [
        (method, of_a, of_b)
        for method in sorted(chosen)
        if alike and (of_a := _curve(a, method)) and (of_b := _curve(b, method))
    ]
    if alike and chosen and not curves:
        return []
    found = []
    for size in sorted({at.bytes for at in (*a, *b)}):
        logs = {
            method: (1 - place) * _at(of_a, size) + place * _at(of_b, size)
            for method, of_a, of_b in curves
        }
        both = {_nearest(a, size).method, _nearest(b, size).method}
        method = min(logs, key=lambda name: logs[name], default=default)
        if len(both) == 1:
            (method,) = both
        elif not logs or logs[method] > -NEARLY:
            method = default
        ratios = {name: math.exp(log) for name, log in logs.items()}
        found.append(At(size, _evidence(a, b, method, size), ratios))
    return found


def _nearest(here: Iterable[At], size: int) -> Point:
    return min(here, key=lambda at: abs(math.log((at.bytes + 1) / (size + 1)))).point


Curve = dict[float, float]
"""Logarithms of ratios by the logarithm of the bytes."""


def _curve(here: list[At], method: str) -> Curve:
    return {
        math.log(max(at.bytes, 1)): math.log(at.ratios[method])
        for at in here
        if method in at.ratios
    }


def _at(curve: Curve, size: int) -> float:
    """Return the value between two measured sizes, or beyond them that of the last."""
    return float(np.interp(math.log(max(size, 1)), list(curve), list(curve.values())))


def _evidence(a: list[At], b: list[At], method: str, size: int) -> Point:
    """Return the weaker of the points nearest in size at which a neighbour chooses the method.

    The default stays also where neither chooses it; it has no evidence then.
    """
    found = [
        _nearest(choosing, size)
        for here in (a, b)
        if (choosing := [at for at in here if at.point.method == method])
    ]
    if found:
        measured = [point for point in found if not point.filled] or found
        return weaker(measured[0], measured[-1])
    return a[0].point._replace(
        method=method,
        status=OPEN,
        challenger=None,
        ratio=None,
        ratio_low=None,
        ratio_high=None,
        level=None,
        may_lose=None,
        more_launches=0,
        more_s=0.0,
        filled=False,
        ratios=(),
    )


def _overlaps(
    a: list[tuple[Interval[N], T]], b: list[tuple[Interval[N], T]]
) -> Iterator[tuple[Interval[N], T, T]]:
    """Yield the common intervals of two divisions of the same numbers, with both contents."""
    for at_a, of_a in a:
        for at_b, of_b in b:
            low = max((end for end in (at_a.low, at_b.low) if end is not None), default=None)
            high = min((end for end in (at_a.high, at_b.high) if end is not None), default=None)
            # Neighbouring intervals of real numbers share ends; those alone are no interval.
            if low is None or high is None or low < high or (low == high and isinstance(low, int)):
                yield Interval(low, high), of_a, of_b
