"""What was decided on one layout: intervals around degrees and sizes, neighbours that agree merged.

Boundaries lie at the geometric midpoints; the outermost intervals are open, so that every size and
degree is covered. No input or output.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Generic, NamedTuple, TypeVar

from tuner.tables import UNSOAKED, Point

N = TypeVar("N", int, float)
T = TypeVar("T")

MAVG_DIGITS = 6
"""Mean degrees that agree so far are the same."""


class Interval(NamedTuple, Generic[N]):
    """Both ends included; None is unbounded."""

    low: N | None
    high: N | None


Sizes = list[tuple[Interval[int], Point]]
MeanDegrees = list[tuple[Interval[float], Sizes]]
Degrees = list[tuple[Interval[int], MeanDegrees]]


def whole_intervals(values: Sequence[int]) -> list[Interval[int]]:
    """Disjoint intervals around increasing whole numbers that together hold every one."""
    cuts = [math.isqrt(a * b) for a, b in pairwise(values)]
    lows, highs = [None, *(cut + 1 for cut in cuts)], [*cuts, None]
    return [Interval(low, high) for low, high in zip(lows, highs, strict=True)]


def real_intervals(values: Sequence[float]) -> list[Interval[float]]:
    """Intervals around increasing numbers that together hold every one; neighbours share ends."""
    cuts = [math.sqrt(a * b) for a, b in pairwise(values)]
    return [Interval(low, high) for low, high in zip([None, *cuts], [*cuts, None], strict=True)]


def degree_class(operation: str, mmax: int, mavg: float) -> tuple[int, float]:
    """Which degrees are decided together: callers of a discovery know one degree only."""
    return mmax, 0.0 if operation == "discovery" else round(mavg, MAVG_DIGITS)


def degrees_of(points: Iterable[Point]) -> Degrees:
    """What the points of one operation and layout say of every degree and size."""
    classes: dict[int, dict[float, list[Point]]] = defaultdict(lambda: defaultdict(list))
    for point in points:
        mmax, mavg = degree_class(point.operation, point.mmax, point.mavg)
        classes[mmax][mavg].append(point)
    maxima = sorted(classes)
    pieces = [
        (interval, _mean_degrees(classes[mmax]))
        for interval, mmax in zip(whole_intervals(maxima), maxima, strict=True)
    ]
    return merge_degrees(pieces)


def _mean_degrees(classes: dict[float, list[Point]]) -> MeanDegrees:
    means = sorted(classes)
    pieces = [
        (interval, _sizes(classes[mavg]))
        for interval, mavg in zip(real_intervals(means), means, strict=True)
    ]
    return merge_means(pieces)


def _sizes(points: list[Point]) -> Sizes:
    ordered = sorted(points, key=lambda point: point.bytes)
    intervals = whole_intervals([point.bytes for point in ordered])
    pieces = list(zip(intervals, ordered, strict=True))
    return _merge(pieces, lambda a, b: _kept_apart(a) == _kept_apart(b), weaker)


def _kept_apart(point: Point) -> tuple[str, str | None]:
    """The method, and which one waits where the default stays for that: a reader sees the sizes."""
    return point.method, point.challenger if point.status == UNSOAKED else None


def points_of(degrees: Degrees) -> Iterator[Point]:
    """All points."""
    return (point for _, means in degrees for _, sizes in means for _, point in sizes)


def merge_means(pieces: MeanDegrees) -> MeanDegrees:
    """Unites neighbouring mean degrees that choose alike."""
    return _merge(pieces, _same_sizes, _join_sizes)


def merge_degrees(pieces: Degrees) -> Degrees:
    """Unites neighbouring largest degrees that choose alike."""
    return _merge(pieces, _same_means, _join_means)


def _same_sizes(a: Sizes, b: Sizes) -> bool:
    return [(size, point.method) for size, point in a] == [
        (size, point.method) for size, point in b
    ]


def _join_sizes(a: Sizes, b: Sizes) -> Sizes:
    return [(size, weaker(one, other)) for (size, one), (_, other) in zip(a, b, strict=True)]


def _same_means(a: MeanDegrees, b: MeanDegrees) -> bool:
    return [mavg for mavg, _ in a] == [mavg for mavg, _ in b] and all(
        _same_sizes(one, other) for (_, one), (_, other) in zip(a, b, strict=True)
    )


def _join_means(a: MeanDegrees, b: MeanDegrees) -> MeanDegrees:
    return [(mavg, _join_sizes(one, other)) for (mavg, one), (_, other) in zip(a, b, strict=True)]


def _merge(
    pieces: list[tuple[Interval[N], T]], same: Callable[[T, T], bool], join: Callable[[T, T], T]
) -> list[tuple[Interval[N], T]]:
    """Unites neighbouring intervals with the same content."""
    merged = pieces[:1]
    for interval, content in pieces[1:]:
        before, last = merged[-1]
        if same(last, content):
            merged[-1] = Interval(before.low, interval.high), join(last, content)
        else:
            merged.append((interval, content))
    return merged


def weaker(a: Point, b: Point) -> Point:
    """Of two points of one method, that which tells less for it: a rule is as good as its worst.

    Where the default stays, one that waits for a soak is weaker than an undecided one, that than
    a tie, and that than a shown one; else the one with the larger ratio, or with the default, the
    smaller.
    """
    sure = (UNSOAKED, "undecided", "tie", "default", "faster")
    if a.status != b.status:
        return min(a, b, key=lambda point: sure.index(point.status))
    if a.ratio is None or b.ratio is None:
        return a if a.ratio is None else b
    if a.status == "faster":
        return a if a.ratio >= b.ratio else b
    return a if a.ratio <= b.ratio else b
