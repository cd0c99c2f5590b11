"""What holds between measured process counts and layouts.

A method that both neighbours choose for a size holds between them; where they differ, nothing is
said, and the library estimates or takes its default. No input or output.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from typing import TypeVar

from tuner.selection.intervals import (
    Degrees,
    Interval,
    MeanDegrees,
    N,
    Sizes,
    merge_degrees,
    merge_means,
    points_of,
    weaker,
)

T = TypeVar("T")

Span = tuple[int, int]
"""Both ends included."""

Layouts = dict[tuple[Span, Span], Degrees]
"""What was decided, by nodes and processes per node."""

BANDS_PER_OCTAVE = 2
"""Parts of the gap between neighbours, in each of which switch points stay where they are."""


def with_layouts_between(measured: Layouts) -> Layouts:
    """Adds what lies between measured layouts: first of processes per node, then of nodes."""
    return _along(_along(measured, 1), 0)


def _along(layouts: Layouts, axis: int) -> Layouts:
    lines: dict[Span, dict[Span, Degrees]] = defaultdict(dict)
    for layout, degrees in layouts.items():
        lines[layout[1 - axis]][layout[axis]] = degrees
    found = dict(layouts)
    for other, line in lines.items():
        for a, b in pairwise(sorted(line)):
            if _comparable(a, line[a], line[b]):
                for span, degrees in _between(a[1], b[0], line[a], line[b]):
                    found[(other, span) if axis else (span, other)] = degrees
    return found


def _comparable(a: Span, at_a: Degrees, at_b: Degrees) -> bool:
    """One node has no network, one process a node no neighbours: nothing is like them.

    Neither are more processes than cores like as many.
    """
    crowded = [{point.oversubscribed for point in points_of(degrees)} for degrees in (at_a, at_b)]
    return a[0] > 1 and crowded[0] == crowded[1]


def _between(a: int, b: int, at_a: Degrees, at_b: Degrees) -> Iterator[tuple[Span, Degrees]]:
    """The bands between two neighbours of which something can be said."""
    found: list[tuple[Span, Degrees]] = []
    for low, high in _bands(a, b):
        place = math.log(math.sqrt(low * high) / a) / math.log(b / a)
        degrees = _degrees_between(at_a, at_b, place)
        if found and found[-1][1] == degrees:
            low = found.pop()[0][0]
        found.append(((low, high), degrees))
    return ((span, degrees) for span, degrees in found if any(points_of(degrees)))


def _bands(a: int, b: int) -> list[Span]:
    """The numbers between two, in parts of about the same ratio."""
    count = math.ceil(BANDS_PER_OCTAVE * math.log2(b / a))
    ends = [a, *(round(a * (b / a) ** (part / count)) for part in range(1, count)), b - 1]
    return [(low + 1, high) for low, high in pairwise(ends) if low < high]


def _degrees_between(a: Degrees, b: Degrees, place: float) -> Degrees:
    return merge_degrees(
        [(mmax, _means_between(one, other, place)) for mmax, one, other in _overlaps(a, b)]
    )


def _means_between(a: MeanDegrees, b: MeanDegrees, place: float) -> MeanDegrees:
    return merge_means(
        [(mavg, _sizes_between(one, other, place)) for mavg, one, other in _overlaps(a, b)]
    )


def _sizes_between(a: Sizes, b: Sizes, place: float) -> Sizes:
    """At a place from 0, a, to 1, b, in logarithms.

    Where both go through the same methods, the switch points lie between theirs.
    """
    if [point.method for _, point in a] != [point.method for _, point in b]:
        return [
            (size, weaker(one, other))
            for size, one, other in _overlaps(a, b)
            if one.method == other.method
        ]
    pieces: Sizes = []
    low = None
    for (at_a, one), (at_b, other) in zip(a, b, strict=True):
        high = None
        if at_a.high is not None and at_b.high is not None:
            high = round(at_a.high ** (1 - place) * at_b.high**place)
        pieces.append((Interval(low, high), weaker(one, other)))
        low = None if high is None else high + 1
    return pieces


def _overlaps(
    a: list[tuple[Interval[N], T]], b: list[tuple[Interval[N], T]]
) -> Iterator[tuple[Interval[N], T, T]]:
    """What two divisions of the same numbers share, piece by piece."""
    for at_a, of_a in a:
        for at_b, of_b in b:
            low = max((end for end in (at_a.low, at_b.low) if end is not None), default=None)
            high = min((end for end in (at_a.high, at_b.high) if end is not None), default=None)
            # Neighbouring intervals of real numbers share ends, which are no interval.
            if low is None or high is None or low < high or (low == high and isinstance(low, int)):
                yield Interval(low, high), of_a, of_b
