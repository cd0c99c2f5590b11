"""The decisions on one layout as intervals of degrees and sizes; equal neighbours are merged.

Boundaries lie at the geometric midpoints. The outermost intervals are open, but for the largest
sizes: methods other than the default have no rule beyond twice the largest one that was measured.
No input or output.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any, Generic, NamedTuple, TypeVar

from tuner.domain.cases import Case, DegreeClass
from tuner.domain.operations import DEFAULT_METHODS, NO_DATA
from tuner.domain.tables import (
    DEFAULT,
    EQUAL,
    FASTER,
    FASTER_HERE,
    FASTER_TOGETHER,
    OPEN,
    UNSOAKED,
    WON,
    Point,
)

N = TypeVar("N", int, float)
T = TypeVar("T")

NEARLY = math.log(1.02)
"""The least gain for a switch point, or for leaving the default on a layout not measured."""

_BEYOND = 2
"""How many times the largest measured size a choice of another method than the default holds.

Up to eight times that size one in five would be slower than the default.
"""

MAVG_DIGITS = 6
"""The digits to which mean degrees are compared."""


class Interval(NamedTuple, Generic[N]):
    """An interval that includes both ends; None is unbounded."""

    low: N | None
    high: N | None


Sizes = list[tuple[Interval[int], Point]]
MeanDegrees = list[tuple[Interval[float], Sizes]]
DegreeIntervals = list[tuple[Interval[int], MeanDegrees]]


MeanClasses = list[tuple[Interval[float], list[Point]]]
Classes = list[tuple[Interval[int], MeanClasses]]
"""All degree classes of one layout, each by increasing sizes."""

MergeKey = Callable[[Point], object]
"""Function of what points have in common that may merge."""

Chooser = Callable[[list[Point]], list[tuple[int, Point]]]
"""Function from the points of a degree class to sizes, and those chosen there elsewhere."""


def whole_intervals(values: Sequence[int]) -> list[Interval[int]]:
    """Return disjoint intervals around increasing whole numbers that together hold every one."""
    cuts = [math.isqrt(a * b) for a, b in pairwise(values)]
    lows, highs = [None, *(cut + 1 for cut in cuts)], [*cuts, None]
    return [Interval(low, high) for low, high in zip(lows, highs, strict=True)]


def real_intervals(values: Sequence[float]) -> list[Interval[float]]:
    """Return intervals around increasing numbers that hold every one; neighbours share ends."""
    cuts = [math.sqrt(a * b) for a, b in pairwise(values)]
    return [Interval(low, high) for low, high in zip([None, *cuts], [*cuts, None], strict=True)]


def degree_class_of(case: Case, mmax: int, mavg: float) -> DegreeClass:
    """Return the key of one decision; callers of a discovery know one degree only."""
    mean = 0.0 if case.operation == "discovery" else round(mavg, MAVG_DIGITS)
    return case.of_any_degree._replace(mmax=mmax, mavg=mean)


def classes_of(points: Iterable[Point]) -> Classes:
    """Return the points of one operation and layout by their degrees."""
    classes: dict[int, dict[float, list[Point]]] = defaultdict(lambda: defaultdict(list))
    for point in sorted(points, key=lambda point: point.case.bytes):
        degree_class = degree_class_of(point.case, point.mmax, point.mavg)
        classes[degree_class.mmax][degree_class.mavg].append(point)
    maxima = sorted(classes)
    return [
        (interval, _mean_classes(classes[mmax]))
        for interval, mmax in zip(whole_intervals(maxima), maxima, strict=True)
    ]


def _mean_classes(classes: dict[float, list[Point]]) -> MeanClasses:
    means = sorted(classes)
    return [
        (interval, classes[mavg])
        for interval, mavg in zip(real_intervals(means), means, strict=True)
    ]


def its_method(point: Point) -> object:
    """Return the merge key of the points of a system's own rules."""
    return point.method


def degrees_of(
    classes: Classes, choices: Chooser | None = None, key: MergeKey = its_method
) -> DegreeIntervals:
    """Return the choices for every degree and size of a layout.

    They are the points, or else what `choices` returns for those of a degree class.
    """

    def sizes(points: list[Point]) -> Sizes:
        chosen = choices(points) if choices else [(point.case.bytes, point) for point in points]
        intervals = whole_intervals([size for size, _ in chosen])
        pieces = [(interval, point) for interval, (_, point) in zip(intervals, chosen, strict=True)]
        merged = merge(pieces, lambda point: (key(point), _waiting(point)))
        interval, point = merged[-1]
        if not _holds_at_any(point, alone=len(merged) == 1):
            merged[-1] = interval._replace(high=_BEYOND * chosen[-1][0]), point
        return merged

    by_mean = [
        (mmax, merge([(mavg, sizes(here)) for mavg, here in means], key)) for mmax, means in classes
    ]
    return merge(by_mean, key)


def _holds_at_any(point: Point, alone: bool) -> bool:
    """Return whether the choice at the largest measured size, or at all of them, holds at any.

    The default does, and so do algorithms of the MPI library, whose files cannot leave sizes open,
    a discovery's only choice, as callers need not know a size, and a barrier's, which has none.
    """
    operation = point.case.operation
    its_own = point.method.partition(":")[0] == DEFAULT_METHODS[operation]
    return its_own or operation in NO_DATA or (operation == "discovery" and alone)


def _waiting(point: Point) -> str | None:
    """Return any method that waits for a soak, so that readers see its sizes."""
    return point.challenger if point.status == UNSOAKED else None


def same(a: Any, b: Any, key: MergeKey) -> bool:
    """Return whether two points, or all points of two lists of intervals, may merge."""
    if isinstance(a, Point):
        return bool(key(a) == key(b))
    return [interval for interval, _ in a] == [interval for interval, _ in b] and all(
        same(one, other, key) for (_, one), (_, other) in zip(a, b, strict=True)
    )


def join(a: Any, b: Any) -> Any:
    """Return the weaker points of two that choose alike.

    Those of a method that takes the default's place get the range of the ratios of both, which
    holds with no probability. Open points that are filled say nothing of their own.
    """
    if isinstance(a, Point):
        if a == b:
            return a
        if a.filled != b.filled:
            return b if a.filled else a
        found = weaker(a, b)._replace(staggered=a.staggered and b.staggered)
        ends = [end for point in (a, b) for end in _ends(point)]
        if a.challenger == b.challenger and ends:
            found = found._replace(ratio_low=min(ends), ratio_high=max(ends), level=None)
        return found
    return [(interval, join(one, other)) for (interval, one), (_, other) in zip(a, b, strict=True)]


def _ends(point: Point) -> tuple[float, ...]:
    """Return the ratio of a point, or the ends of the range of several."""
    if point.level is None and point.ratio_low is not None and point.ratio_high is not None:
        return point.ratio_low, point.ratio_high
    return (point.ratio,) if point.ratio is not None else ()


def merge(pieces: list[tuple[Interval[N], T]], key: MergeKey) -> list[tuple[Interval[N], T]]:
    """Merge neighbouring intervals with the same content."""
    merged = pieces[:1]
    for interval, content in pieces[1:]:
        before, last = merged[-1]
        if same(last, content, key):
            merged[-1] = Interval(before.low, interval.high), join(last, content)
        else:
            merged.append((interval, content))
    return merged


def weaker(a: Point, b: Point) -> Point:
    """Return the weaker of two points of one method, as a rule is as good as its worst.

    Where the statuses differ, the order from the weakest is: unsoaked, open, equal, default, faster
    together, faster in this allocation, faster. Else the weaker point of a faster method, also one
    that waits, has the larger ratio, and that of a default the smaller; of open ones, it is where
    more may be lost.
    """
    sure = (UNSOAKED, OPEN, EQUAL, DEFAULT, FASTER_TOGETHER, FASTER_HERE, FASTER)
    if a.status != b.status:
        return min(a, b, key=lambda point: sure.index(point.status))
    if a.status == OPEN and a.may_lose != b.may_lose:
        return max(a, b, key=lambda point: point.worst_loss)
    if a.ratio is None or b.ratio is None:
        return a if a.ratio is None else b
    if a.status in (*WON, UNSOAKED):
        return a if a.ratio >= b.ratio else b
    return a if a.ratio <= b.ratio else b
