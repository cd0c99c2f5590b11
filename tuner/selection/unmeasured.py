"""Choices on layouts that nobody measured, estimated from measured ones, and guarded.

The logarithm of a method's time over the default's is taken as a Gaussian process over the layouts
(ordinary kriging), of one node and of several apart. It differs more the farther they are apart,
and from one regime to another: from enough cores to too few, from one process on each node to more.
Where one layout was measured, its choices hold as far as the guard allows. No input or output.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache, partial
from itertools import chain, groupby, pairwise, product
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from tuner.domain.operations import DEFAULT_METHODS
from tuner.domain.tables import OPEN, UNSOAKED, Point
from tuner.selection.intervals import NEARLY, Classes, DegreeIntervals, classes_of, degrees_of
from tuner.selection.match import within
from tuner.stats import Floats

Span = tuple[int, int]
"""An interval that includes both ends."""

Spans = tuple[Span, Span]
"""Nodes and processes on each."""

NodesPpn = tuple[int, int]
"""Nodes and processes on each of a layout."""

Middle = tuple[float, float]
"""The geometric middle of spans of layouts; whole for a single one."""

Layouts = dict[Spans, Classes]
"""Decisions by nodes and processes per node."""

RISK = 0.2
"""The most probability that a choice is slower than the default by over NEARLY: the guard."""

_PRIOR_PAIRS = 16.0
"""The pairs of layouts that the usual spread counts for, beside a system's own."""

_TAIL = 3.0
"""Degrees of freedom of the differences: a few methods differ far more than the others."""

_SLOWEST = math.log(1.2)
"""Methods that are slower than the default by more matter to no choice."""


class Regime(NamedTuple):
    """What layouts share that compare well; those with and without a network do not compare."""

    several_nodes: bool
    crowded: bool
    shared_nodes: bool


Regimes = Callable[[float, float], Regime]
"""Function from nodes and processes on each to their regime."""


class Variances(NamedTuple):
    """The variance of the difference of a log-ratio between layouts, by what they differ in.

    For each octave between their nodes and processes per node, and where only one has a power of
    two processes, for which some algorithms are made, enough cores, or several processes on each
    node.
    """

    octave: float
    power_of_two: float
    crowded: float
    shared_nodes: float


USUAL = Variances(octave=0.025, power_of_two=0.02, crowded=0.02, shared_nodes=0.02)
"""What systems have in common; with it the guard keeps its promise."""


class Spread(NamedTuple):
    """The variance of the difference of a log-ratio between two layouts of one node or of several.

    A system's is the usual one times `scale`.
    """

    regime: Regimes
    usual: Variances = USUAL
    scale: float = 1.0

    def between(self, a: Middle, b: Middle) -> float:
        """Return the variance between two layouts."""
        differences = zip(self.usual, self.differences(a, b), strict=True)
        return self.scale * sum(variance * often for variance, often in differences)

    def differences(self, a: Middle, b: Middle) -> tuple[float, ...]:
        """Return how often each of the variances counts; only whole numbers are powers of two."""
        here, there = self.regime(*a), self.regime(*b)
        return (
            math.hypot(*(math.log2(y / x) for x, y in zip(a, b, strict=True))),
            _has_power_of_two(*a) != _has_power_of_two(*b),
            here.crowded != there.crowded,
            here.shared_nodes != there.shared_nodes,
        )


def regimes(points: Iterable[Point], cores: int | None) -> Regimes:
    """Return a function that returns the regime of a layout, measured or not.

    `cores` are those of a node, by default as many as were measured to suffice. Where nodes share
    them, as virtual ones do, all processes count.
    """
    layouts = {point.case.layout for point in points}
    enough = (its.ppn for its in layouts if not its.oversubscribed)
    cores = cores or max(enough, default=0)
    shared = any(its.oversubscribed and its.ppn <= cores for its in layouts)

    def regime(nodes: float, ppn: float) -> Regime:
        return Regime(nodes > 1, (nodes * ppn if shared else ppn) > cores, ppn > 1)

    return regime


def spread_of(points: Iterable[Point], regime: Regimes, usual: Variances = USUAL) -> Spread:
    """Return the spread of a system: the usual one, scaled by what its own layouts show."""
    spread = Spread(regime, usual)
    scales = [variance / spread.between(a, b) for a, b, variance in compared(points)]
    return spread._replace(scale=(_PRIOR_PAIRS + sum(scales)) / (_PRIOR_PAIRS + len(scales)))


def compared(points: Iterable[Point]) -> Iterator[tuple[NodesPpn, NodesPpn, float]]:
    """Yield pairs of neighbouring layouts, with the variance of what differs between them."""
    layouts: dict[tuple[str, bool], dict[NodesPpn, list[Point]]]
    layouts = defaultdict(lambda: defaultdict(list))
    for point in points:
        operation, nodes, ppn, *_ = point.case.place
        layouts[operation, nodes > 1][nodes, ppn].append(point)
    for of_kind in layouts.values():
        for a, b in pairwise(sorted(of_kind)):
            if squares := _squares(of_kind[a], of_kind[b]):
                yield a, b, _variance(np.array(squares))


def _variance(squares: Floats) -> float:
    """Return the most likely squared scale of Student's t by squares of its draws.

    By expectation maximisation. Squares below 0, whose errors exceed them, count as 0.
    """
    shown = np.maximum(squares, 0.0)
    variance = float(shown.mean())
    for _ in range(50):
        if variance > 0:
            weights = (_TAIL + 1) / (_TAIL + shown / variance)
            variance = float((weights * shown).mean())
    return variance


def _squares(a: Sequence[Point], b: Sequence[Point]) -> list[float]:
    """Return the squared differences of log-ratios on two layouts beyond their errors."""

    def known(points: Sequence[Point]) -> dict[tuple[object, ...], Value]:
        return {
            (point.mmax, point.mavg, point.case.bytes, ratio.method): value
            for point in points
            for ratio in point.ratios
            if (value := value_of(point, ratio.method)) is not None
        }

    here, there = known(a), known(b)
    pairs = [(here[key], there[key]) for key in here.keys() & there.keys()]
    return [
        (one.log - other.log) ** 2 - one.error**2 - other.error**2
        for one, other in pairs
        if min(one.log, other.log) < _SLOWEST
    ]


class MeasuredLayouts(NamedTuple):
    """The measured layouts of a system by operation, and how its layouts compare."""

    of_operations: dict[str, Layouts]
    spread: Spread

    @classmethod
    def of(
        cls, points: Iterable[Point], cores: int | None, usual: Variances = USUAL
    ) -> MeasuredLayouts:
        """Return those of a system's points; `cores` as for `regimes`."""
        ordered = sorted(points, key=lambda point: point.case.place)
        regime = regimes(ordered, cores)
        of_operations: dict[str, Layouts] = defaultdict(dict)
        for place, of_layout in groupby(ordered, lambda point: point.case.place):
            alone = _alone((place.nodes, place.ppn))
            of_operations[place.operation][alone] = classes_of(of_layout)
        return cls(of_operations, spread_of(ordered, regime, usual))


def unmeasured(measured: Layouts, spread: Spread) -> Iterator[tuple[Spans, DegreeIntervals]]:
    """Yield the layouts between the least and the most nodes and processes that were measured.

    One node and several are apart. Layouts in whose regime nothing was measured are left out.
    """
    for spans, here, near in asked(measured, spread):
        choices = partial(_choices_at, here, near, spread)
        yield spans, degrees_of(near[next(iter(near))], choices)


def asked(
    measured: Layouts, spread: Spread
) -> Iterator[tuple[Spans, Middle, dict[NodesPpn, Classes]]]:
    """Yield unmeasured layouts, their middle, and measured ones of as many nodes, one or several.

    Those of its regime are first, the nearest before the others.
    """
    regime = spread.regime
    places = [(nodes, ppn) for (nodes, _), (ppn, _) in measured]
    for several in (False, True):
        kind = [place for place in places if (place[0] > 1) == several]
        nodes, ppns = (_bands({place[axis] for place in kind}) for axis in (0, 1))
        bands = (_of_one_regime(*band, regime) for band in product(nodes, ppns))
        for spans in chain.from_iterable(bands):
            (node_span, ppn_span) = spans
            here = math.sqrt(math.prod(node_span)), math.sqrt(math.prod(ppn_span))
            own = {place for place in kind if regime(*place) == regime(*here)}
            if not own or spans in measured:
                continue
            yield spans, here, _near(here, kind, measured, spread)


def _near(
    here: Middle, kind: Iterable[NodesPpn], measured: Layouts, spread: Spread
) -> dict[NodesPpn, Classes]:
    """Return measured layouts, those of the same regime first, the nearest before the others."""
    regime = spread.regime(*here)
    near = sorted(
        kind,
        key=lambda place: (spread.regime(*place) != regime, spread.between(here, place), place),
    )
    return {place: measured[_alone(place)] for place in near}


def open_choices(points: Iterable[Point]) -> Iterator[tuple[Point, str]]:
    """Yield the open points of a system at which all layouts together choose a method, and it."""
    of_operations, spread = MeasuredLayouts.of(points, None)
    for measured in of_operations.values():
        for ((nodes, _), (ppn, _)), classes in measured.items():
            kind = [(n, p) for (n, _), (p, _) in measured if (n > 1) == (nodes > 1)]
            near = _near((nodes, ppn), kind, measured, spread)
            for of_class in chain.from_iterable(means for _, means in classes):
                for point, estimates in estimated((nodes, ppn), alike(near, of_class[1]), spread):
                    method = choice(point, estimates)
                    if point.status == OPEN and not point.filled and method != point.method:
                        yield point, method


def _alone(place: NodesPpn) -> Spans:
    return (place[0], place[0]), (place[1], place[1])


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

    same = [nodes]
    if edge(low) != edge(high):
        alike = (list(numbers) for _, numbers in groupby(range(low, high + 1), edge))
        same = [(numbers[0], numbers[-1]) for numbers in alike]
    for span in same:
        cut = edge(span[0])
        if first < cut:
            yield span, (first, cut - 1)
        if cut <= last:
            yield span, (cut, last)


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


def _has_power_of_two(nodes: float, ppn: float) -> bool:
    return math.frexp(nodes)[0] == math.frexp(ppn)[0] == 0.5


def alike(near: Mapping[NodesPpn, Classes], points: Sequence[Point]) -> dict[NodesPpn, list[Point]]:
    """Return the points of the degree class on all layouts of which the first has these points."""
    first, *others = near
    mmax, mavg = points[0].mmax, points[0].mavg
    return {first: list(points)} | {place: _class_of(near[place], mmax, mavg) for place in others}


def _class_of(classes: Classes, mmax: int, mavg: float) -> list[Point]:
    """Return the points of the class that holds a degree."""
    means = next(
        content for interval, content in classes if within(interval.low, mmax, interval.high)
    )
    return next(content for interval, content in means if within(interval.low, mavg, interval.high))


def _choices_at(
    here: Middle, near: Mapping[NodesPpn, Classes], spread: Spread, points: list[Point]
) -> list[Point]:
    """Return the choices at the points of a degree class of the nearest layout."""
    of_class = alike(near, points)
    return [
        _evidence(of_class, choice(point, estimates), point)
        for point, estimates in estimated(here, of_class, spread)
    ]


def choice(point: Point, estimates: Mapping[str, Inference]) -> str:
    """Return the method of the least estimate that passes the guard, or else the default.

    The method of the nearest layout's point stays where nothing gains over it.
    """
    gains = {
        method: its.mean
        for method, its in estimates.items()
        if its.mean < -NEARLY and risk(its) <= RISK
    }
    best = min(gains.values(), default=0.0)
    if point.method in gains and gains[point.method] < best + NEARLY:
        return point.method  # a switch point that gains nothing is not worth having
    return min(gains, key=lambda name: gains[name], default=DEFAULT_METHODS[point.case.operation])


def estimated(
    here: Middle, near: Mapping[NodesPpn, list[Point]], spread: Spread
) -> Iterator[tuple[Point, dict[str, Inference]]]:
    """Yield the points of the nearest layout, with the estimates of the candidates.

    These are the methods that some layout chose at the size, as no other was confirmed and soaked,
    and that wait for no soak in the regime.
    """
    points = next(iter(near.values()))
    regime = spread.regime
    own = [place for place in near if regime(*place) == regime(*here)]
    beside = _beside(here, own) if own else set()
    waiting = {
        point.challenger
        for place in own
        for point in near[place]
        if point.status == UNSOAKED and not point.filled
    }
    unfit = {DEFAULT_METHODS[points[0].case.operation], *waiting}
    chosen = {point.method for its in near.values() for point in its} - unfit
    curves = {
        method: {place: curve for place in near if (curve := _curve(near[place], method))}
        for method in sorted(chosen)
        if "grid=" not in method  # which fits one number of processes
    }
    for point in points:
        size = point.case.bytes
        chosen_here = {_nearest(of_place, size).method for of_place in near.values()}
        yield (
            point,
            {
                method: estimate(
                    here, {place: _at(curve, size) for place, curve in of_places.items()}, spread
                )
                for method, of_places in curves.items()
                if method in chosen_here and beside <= of_places.keys()
            },
        )


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
    fewer = [place for place in near if math.prod(place) < math.prod(here)]
    more = [place for place in near if math.prod(place) > math.prod(here)]
    ends = max(fewer, key=math.prod, default=near[0]), min(more, key=math.prod, default=near[0])
    return {near[0], *ends}


class Value(NamedTuple):
    """The logarithm of a method's time over the default's, and its standard error."""

    log: float
    error: float


def value_of(point: Point, method: str) -> Value | None:
    """Return the value of a method at a point, None without an error or an interval.

    Of exact times, and of a table without errors, the error is that of a normal distribution with
    this interval: never too small, as Student's t of few degrees of freedom reaches farther.
    """
    its = next((ratio for ratio in point.ratios if ratio.method == method), None)
    if its is None:
        return None
    if its.error is not None:
        return Value(math.log(its.ratio), its.error)
    if its.low is None or its.high is None or point.level is None:
        return None
    reach = math.log(its.high / its.low) / 2
    return Value(math.log(its.ratio), reach / NormalDist().inv_cdf((1 + point.level) / 2))


Curve = dict[float, Value]
"""Values by the logarithm of the bytes."""


def _curve(points: Iterable[Point], method: str) -> Curve:
    """Return the values of a method on one layout by increasing size."""
    values = ((point.case.bytes, value_of(point, method)) for point in points)
    return {math.log(max(size, 1)): value for size, value in values if value is not None}


def _at(curve: Curve, size: int) -> Value:
    """Return the value between two measured sizes, or beyond them that of the last."""
    at, sizes = math.log(max(size, 1)), list(curve)
    columns = zip(*curve.values(), strict=True)
    return Value(*(float(np.interp(at, sizes, column)) for column in columns))


class Inference(NamedTuple):
    """The mean and the variance of a method's value on another layout."""

    mean: float
    variance: float


def estimate(here: Middle, known: Mapping[NodesPpn, Value], spread: Spread) -> Inference:
    """Return the estimate of a method's value on a layout by those on others."""
    count = len(known)
    exact, target = _equations(here, tuple(known), spread)
    matrix = exact + np.diag([*(value.error**2 for value in known.values()), 0.0])
    weights = np.linalg.solve(matrix, target)[:count]
    variance = weights @ matrix[:count, :count] @ weights - 2 * weights @ target[:count]
    mean = weights @ np.array([value.log for value in known.values()])
    return Inference(float(mean), max(float(variance), 1e-12))


@lru_cache(1024)
def _equations(here: Middle, places: Sequence[NodesPpn], spread: Spread) -> tuple[Floats, Floats]:
    """Return both sides of the equations of the weights for exact values; methods share them."""
    count = len(places)
    matrix = np.ones((count + 1, count + 1))
    matrix[count, count] = 0.0  # the weights add up to 1
    matrix[:count, :count] = [[-spread.between(a, b) / 2 for b in places] for a in places]
    return matrix, np.array([*(-spread.between(here, place) / 2 for place in places), 1.0])


def risk(its: Inference) -> float:
    """Return the probability that a method is slower than the default by over NEARLY."""
    return 1 - NormalDist(its.mean, math.sqrt(its.variance)).cdf(NEARLY)


def _evidence(near: Mapping[NodesPpn, list[Point]], method: str, point: Point) -> Point:
    """Return the point of the nearest layout that chooses a method, at the nearest size.

    Where none chooses the default, it stays because the nearest layout's method is not sure enough.
    """
    if point.method == method:
        return point
    for points in near.values():
        if (its := _nearest(points, point.case.bytes)).method == method:
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
