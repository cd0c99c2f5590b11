"""From decided points to rules: intervals around them, and neighbours that agree merged.

Boundaries lie at the geometric midpoints; the outermost intervals are open, so that every size and
degree is covered. No input or output.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby, pairwise
from typing import Generic, NamedTuple, TypeVar

from tuner.records import Point, Rule

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


def compile_rules(points: Iterable[Point]) -> list[Rule]:
    """The rules of one system's points, by operation, layout, degree and size."""

    def layout(point: Point) -> tuple[str, int, int]:
        return point.operation, point.nodes, point.ppn

    rules = []
    for (operation, nodes, ppn), here in groupby(sorted(points, key=layout), layout):
        for mmax, means in _degrees(here):
            for mavg, sizes in means:
                for size, point in sizes:
                    bounds = (*mmax, *mavg, *size)
                    rules.append(Rule(operation, nodes, ppn, *bounds, point.method, point))
    return rules


def matching(
    rules: Iterable[Rule], operation: str, nodes: int, ppn: int, mmax: int, mavg: float, bytes_: int
) -> Rule | None:
    """The first rule that holds for a case, as the library would find it; None without any."""
    for rule in rules:
        if (
            (rule.operation, rule.nodes, rule.ppn) == (operation, nodes, ppn)
            and _holds(rule.mmax_low, mmax, rule.mmax_high)
            and _holds(rule.mavg_low, mavg, rule.mavg_high)
            and _holds(rule.bytes_low, bytes_, rule.bytes_high)
        ):
            return rule
    return None


def _holds(low: float | None, value: float, high: float | None) -> bool:
    return (low is None or low <= value) and (high is None or value <= high)


def _degrees(points: Iterable[Point]) -> Degrees:
    classes: dict[int, dict[float, list[Point]]] = defaultdict(lambda: defaultdict(list))
    for point in points:
        mmax, mavg = degree_class(point.operation, point.mmax, point.mavg)
        classes[mmax][mavg].append(point)
    maxima = sorted(classes)
    pieces = [
        (interval, _mean_degrees(classes[mmax]))
        for interval, mmax in zip(whole_intervals(maxima), maxima, strict=True)
    ]
    return _merge(pieces, _same_means, _join_means)


def _mean_degrees(classes: dict[float, list[Point]]) -> MeanDegrees:
    means = sorted(classes)
    pieces = [
        (interval, _sizes(classes[mavg]))
        for interval, mavg in zip(real_intervals(means), means, strict=True)
    ]
    return _merge(pieces, _same_sizes, _join_sizes)


def _sizes(points: list[Point]) -> Sizes:
    ordered = sorted(points, key=lambda point: point.bytes)
    intervals = whole_intervals([point.bytes for point in ordered])
    pieces = list(zip(intervals, ordered, strict=True))
    return _merge(pieces, lambda a, b: a.method == b.method, weaker)


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

    Where the default stays, an undecided point is weaker than a tie, and that than a shown one;
    else the one with the larger ratio, or with the default, the smaller.
    """
    sure = ("undecided", "tie", "default", "faster")
    if a.status != b.status:
        return min(a, b, key=lambda point: sure.index(point.status))
    if a.ratio is None or b.ratio is None:
        return a if a.ratio is None else b
    if a.status == "faster":
        return a if a.ratio >= b.ratio else b
    return a if a.ratio <= b.ratio else b
