"""Choices on layouts that nobody measured, estimated from measured ones, within a risk limit.

The logarithm of a method's time over the default's is taken as a Gaussian process over the layouts,
of one node and of several apart. Where one layout was measured, its choices hold as far as the
risk limit allows. No input or output.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, groupby, pairwise, product
from typing import NamedTuple

import numpy as np

from tuner.domain.cases import UNKNOWN_CORES, NodeCores
from tuner.domain.operations import DEFAULT_METHODS, fits_one_count
from tuner.domain.tables import OPEN, UNSOAKED, Point
from tuner.selection.intervals import (
    NEARLY,
    Classes,
    DegreeIntervals,
    MergeKey,
    classes_of,
    degrees_of,
)
from tuner.selection.kriging import (
    USUAL,
    Inference,
    Middle,
    NodesPpn,
    Regimes,
    Spread,
    Value,
    Variances,
    estimate,
    regimes,
    risk,
    spread_of,
    value_of,
)
from tuner.selection.match import within
from tuner.stats import Floats

Span = tuple[int, int]
"""An interval that includes both ends."""

Spans = tuple[Span, Span]
"""Nodes and processes on each."""

Layouts = dict[Spans, Classes]
"""Decisions by nodes and processes per node."""

_BESIDE = 16
"""Values that take as long as an estimate itself does."""

MOST_RISK = 0.2
"""The highest probability that a choice is slower than the default by over NEARLY."""


class MeasuredLayouts(NamedTuple):
    """The measured layouts of a system by operation, and how its layouts compare."""

    of_operations: dict[str, Layouts]
    spread: Spread

    @classmethod
    def of(
        cls, points: Iterable[Point], cores: NodeCores, usual: Variances = USUAL
    ) -> MeasuredLayouts:
        """Return the layouts of a system's points."""
        ordered = sorted(points, key=lambda point: point.case.of_any_degree)
        regime = regimes(ordered, cores)
        of_operations: dict[str, Layouts] = defaultdict(dict)
        for key, of_layout in groupby(ordered, lambda point: point.case.of_any_degree):
            alone = _alone((key.nodes, key.ppn))
            of_operations[key.operation][alone] = classes_of(of_layout)
        return cls(of_operations, spread_of(ordered, regime, usual))


def unmeasured(
    measured: Layouts, spread: Spread, key: MergeKey
) -> Iterator[tuple[Spans, DegreeIntervals]]:
    """Yield the layouts between the least and the most nodes and processes that were measured.

    One node and several are apart. Layouts in whose regime nothing was measured are left out.
    """
    for spans, here, near in asked(measured, spread):
        choices = partial(_choices_at, here, near, spread)
        yield spans, degrees_of(near[next(iter(near))], choices, key)


def asked(
    measured: Layouts, spread: Spread
) -> Iterator[tuple[Spans, Middle, dict[NodesPpn, Classes]]]:
    """Yield unmeasured layouts, their middle, and measured ones of as many nodes, one or several.

    Those of its regime are first, the nearest before the others.
    """
    layouts = [(nodes, ppn) for (nodes, _), (ppn, _) in measured]
    for spans, here, kind in _between(layouts, spread.regime):
        yield spans, here, _near(here, kind, measured, spread)


def _between(
    layouts: Collection[NodesPpn], regime: Regimes
) -> Iterator[tuple[Spans, Middle, list[NodesPpn]]]:
    """Yield unmeasured layouts, their middle, and the measured ones as in `asked`, unordered."""
    alone = set(map(_alone, layouts))
    for several in (False, True):
        kind = [layout for layout in layouts if (layout[0] > 1) == several]
        nodes, ppns = (_bands({layout[axis] for layout in kind}) for axis in (0, 1))
        bands = (_of_one_regime(*band, regime) for band in product(nodes, ppns))
        for spans in chain.from_iterable(bands):
            (node_span, ppn_span) = spans
            here = math.sqrt(math.prod(node_span)), math.sqrt(math.prod(ppn_span))
            own = {layout for layout in kind if regime(*layout) == regime(*here)}
            if own and spans not in alone:
                yield spans, here, kind


def work(points: Iterable[Point], cores: NodeCores) -> Iterator[int]:
    """Yield for each unmeasured layout a bound on the values from which its choices follow.

    These are the ratios of the measured layouts; for each size of a degree class and each method
    those on all layouts; and what it takes to find the class and the layouts nearby.
    """
    points = sorted(points, key=lambda point: point.case.of_any_degree)
    regime = regimes(points, cores)
    for _, of_operation in groupby(points, lambda point: point.case.operation):
        layouts: dict[NodesPpn, list[Point]] = defaultdict(list)
        for point in of_operation:
            layouts[point.case.layout.nodes, point.case.layout.ppn].append(point)
        its = list(chain.from_iterable(layouts.values()))
        ratios = {layout: sum(len(point.ratios) for point in layouts[layout]) for layout in layouts}
        classes = max(len({(its.mmax, its.mavg) for its in here}) for here in layouts.values())
        estimates = len({point.case.bytes for point in its}) * len({point.method for point in its})
        for _, _, kind in _between(layouts, regime):
            of_layouts = (len(kind) + _BESIDE) * (1 + classes * (classes + estimates))
            yield of_layouts + sum(ratios[layout] for layout in kind)


def _near(
    here: Middle, kind: Iterable[NodesPpn], measured: Layouts, spread: Spread
) -> dict[NodesPpn, Classes]:
    """Return measured layouts, those of the same regime first, the nearest before the others."""
    regime = spread.regime(*here)
    near = sorted(
        kind,
        key=lambda layout: (spread.regime(*layout) != regime, spread.between(here, layout), layout),
    )
    return {layout: measured[_alone(layout)] for layout in near}


def open_choices(points: Iterable[Point]) -> Iterator[tuple[Point, str]]:
    """Yield the open points of a system at which all layouts together choose a method, and it."""
    of_operations, spread = MeasuredLayouts.of(points, UNKNOWN_CORES)
    for measured in of_operations.values():
        for ((nodes, _), (ppn, _)), classes in measured.items():
            kind = [(n, p) for (n, _), (p, _) in measured if (n > 1) == (nodes > 1)]
            near = _near((nodes, ppn), kind, measured, spread)
            for of_class in chain.from_iterable(means for _, means in classes):
                here, beside = (nodes, ppn), alike(near, of_class[1])
                own = [point.case.bytes for point in of_class[1]]
                for _, point, estimates in estimated(here, beside, spread, own):
                    method = choice(point, estimates)
                    if point.status == OPEN and not point.filled and method != point.method:
                        yield point, method


def _alone(layout: NodesPpn) -> Spans:
    return (layout[0], layout[0]), (layout[1], layout[1])


def _of_one_regime(nodes: Span, ppns: Span, regime: Regimes) -> Iterator[Spans]:
    """Yield spans of layouts, cut where the regime changes.

    It changes at most once as either number grows; where nodes share cores, not at the same
    processes on each for all numbers of nodes.
    """
    (low, high), (first, last) = nodes, ppns
    least = regime(low, first)
    every = range(first, last + 1)

    def edge(number: int) -> int:
        """Return the fewest processes on each of so many nodes that are of another regime."""
        return first + bisect_left(every, True, key=lambda ppn: regime(number, ppn) != least)

    while low <= high:
        cut = edge(low)
        numbers = range(low, high + 1)  # up to a million; with more nodes the edge is no later
        span = low, low - 1 + bisect_right(numbers, -cut, key=lambda number: -edge(number))
        if first < cut:
            yield span, (first, cut - 1)
        if cut <= last:
            yield span, (cut, last)
        low = span[1] + 1


def _bands(measured: set[int]) -> list[Span]:
    """Return the numbers from the least to the largest that was measured, as intervals.

    Measured numbers and powers of two stand alone. The rest is cut where it spans half an octave.
    """
    if not measured:
        return []
    low, high = min(measured), max(measured)
    powers = {1 << power for power in range(low.bit_length() - 1, high.bit_length())}
    halves = {math.isqrt(2 * power * power) for power in powers}
    ends = set(halves)
    for number in measured | powers:
        ends |= {number - 1, number}
    cuts = sorted({end for end in ends if low <= end < high} | {low - 1, high})
    return [(before + 1, end) for before, end in pairwise(cuts)]


def alike(near: Mapping[NodesPpn, Classes], points: Sequence[Point]) -> dict[NodesPpn, list[Point]]:
    """Return the points of the degree class on all layouts of which the first has these points."""
    first, *others = near
    mmax, mavg = points[0].mmax, points[0].mavg
    return {first: list(points)} | {
        layout: _class_of(near[layout], mmax, mavg) for layout in others
    }


def _class_of(classes: Classes, mmax: int, mavg: float) -> list[Point]:
    """Return the points of the class that holds a degree."""
    means = next(
        content for interval, content in classes if within(interval.low, mmax, interval.high)
    )
    return next(content for interval, content in means if within(interval.low, mavg, interval.high))


def _choices_at(
    here: Middle, near: Mapping[NodesPpn, Classes], spread: Spread, points: list[Point]
) -> list[tuple[int, Point]]:
    """Return the choices at all sizes of a degree class of the nearest layout, and these sizes."""
    of_class = alike(near, points)
    sizes = sizes_of(here, of_class, spread)
    return [
        (size, _evidence(_reaching(of_class, size), choice(point, estimates), point, size))
        for size, point, estimates in estimated(here, of_class, spread, sizes)
    ]


def choice(point: Point, estimates: Mapping[str, Inference]) -> str:
    """Return the method of the least estimate within the risk limit, or else the default.

    The method of the nearest layout's point stays where nothing gains over it.
    """
    gains = {
        method: its.mean
        for method, its in estimates.items()
        if its.mean < -NEARLY and risk(its) <= MOST_RISK
    }
    best = min(gains.values(), default=0.0)
    if point.method in gains and gains[point.method] < best + NEARLY:
        return point.method  # a switch point that gains nothing is not worth having
    return min(gains, key=lambda name: gains[name], default=DEFAULT_METHODS[point.case.operation])


def sizes_of(here: Middle, near: Mapping[NodesPpn, list[Point]], spread: Spread) -> list[int]:
    """Return the sizes that some layout of the regime measured, or any where none is of it."""
    regime = spread.regime(*here)
    own = [points for layout, points in near.items() if spread.regime(*layout) == regime]
    return sorted({point.case.bytes for points in own or near.values() for point in points})


def estimated(
    here: Middle, near: Mapping[NodesPpn, list[Point]], spread: Spread, sizes: Iterable[int]
) -> Iterator[tuple[int, Point, dict[str, Inference]]]:
    """Yield the sizes with a point of the nearest layout, and the estimates of the candidates.

    These are the methods that some layout chose at the size, as no other was confirmed and soaked,
    and that wait for no soak in the regime. Beyond the sizes that it measured, a layout says
    nothing.
    """
    regime = spread.regime(*here)
    of_regime = [layout for layout in near if spread.regime(*layout) == regime]
    waiting = {
        point.challenger
        for layout in of_regime
        for point in near[layout]
        if point.status == UNSOAKED and not point.filled
    }
    unfit = {DEFAULT_METHODS[next(iter(near.values()))[0].case.operation], *waiting}
    chosen = {point.method for its in near.values() for point in its} - unfit
    curves = {
        method: {layout: curve for layout in near if (curve := _curve(near[layout], method))}
        for method in sorted(chosen)
        if not fits_one_count(method)
    }
    for size in sizes:
        reaching = {layout: _nearest(its, size) for layout, its in _reaching(near, size).items()}
        own = [layout for layout in of_regime if layout in reaching]
        beside = _beside(here, own) if own else set()
        chosen_here = {point.method for point in reaching.values()}
        estimates = {}
        for method in sorted(chosen_here & curves.keys()):
            values = {layout: _at(curve, size) for layout, curve in curves[method].items()}
            known = {layout: value for layout, value in values.items() if value is not None}
            if known and beside <= known.keys():
                estimates[method] = estimate(here, known, spread)
        yield size, next(iter(reaching.values())), estimates


def _reaching(near: Mapping[NodesPpn, list[Point]], size: int) -> dict[NodesPpn, list[Point]]:
    """Return the layouts that have a size between their least and their largest."""
    return {
        layout: points
        for layout, points in near.items()
        if points[0].case.bytes <= size <= points[-1].case.bytes
    }


def _nearest(points: Sequence[Point], size: int) -> Point:
    """Return the point at the nearest size; they are in the order of sizes."""
    above = bisect_left(points, size, key=lambda its: its.case.bytes)
    return min(
        points[max(above - 1, 0) : above + 1],
        key=lambda its: abs(math.log((its.case.bytes + 1) / (size + 1))),
    )


def _beside(here: Middle, near: Sequence[NodesPpn]) -> set[NodesPpn]:
    """Return the nearest layout, and those with the next fewer and the next more processes.

    `near` are those of the regime. A method that one of them lacks, such as one for powers of two,
    may not exist here either.
    """
    fewer = [layout for layout in near if math.prod(layout) < math.prod(here)]
    more = [layout for layout in near if math.prod(layout) > math.prod(here)]
    ends = max(fewer, key=math.prod, default=near[0]), min(more, key=math.prod, default=near[0])
    return {near[0], *ends}


class Curve(NamedTuple):
    """Logarithms of bytes in increasing order, and the values there."""

    sizes: Floats
    logs: Floats
    errors: Floats


def _curve(points: Iterable[Point], method: str) -> Curve | None:
    """Return the values of a method on one layout by increasing size; None without any."""
    values = ((point.case.bytes, value_of(point, method)) for point in points)
    known = {math.log(max(size, 1)): value for size, value in values if value is not None}
    if not known:
        return None
    columns = zip(*known.values(), strict=True)
    return Curve(np.array([*known]), *(np.array(column) for column in columns))


def _at(curve: Curve, size: int) -> Value | None:
    """Return the value at a size or between two; None beyond those that were measured."""
    at = math.log(max(size, 1))
    if not curve.sizes[0] <= at <= curve.sizes[-1]:
        return None
    return Value(*(float(np.interp(at, curve.sizes, column)) for column in curve[1:]))


def _evidence(near: Mapping[NodesPpn, list[Point]], method: str, point: Point, size: int) -> Point:
    """Return the point of the nearest layout that chooses a method, at the nearest size.

    Where none chooses the default, it stays because the nearest layout's method, at `point`, is not
    sure enough, or fits no other number of processes.
    """
    if point.method == method:
        return point
    for points in near.values():
        if (its := _nearest(points, size)).method == method:
            return its
    return point._replace(
        method=method,
        status=OPEN,
        challenger=point.method,
        may_lose=1 / point.ratio_low - 1 if point.ratio_low else None,
        more_launches=0,
        more_s=0.0,
        filled=False,
    )
