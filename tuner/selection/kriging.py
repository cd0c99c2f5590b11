"""Estimate methods on a layout by measurements on others (ordinary kriging).

The logarithm of a method's time over the default's differs more the farther layouts are apart, and
from one regime to another: from enough cores to too few, from one process on each node to more. No
input or output.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from tuner.domain.cases import NodeCores
from tuner.domain.tables import Point, Ratio, Table
from tuner.selection.intervals import NEARLY
from tuner.stats import Floats

NodesPpn = tuple[int, int]
"""Nodes and processes on each of a layout."""


Middle = tuple[float, float]
"""The geometric middle of spans of layouts; whole for a single one."""


_PRIOR_PAIRS = 16.0
"""The pairs of layouts that the usual spread counts for, beside a system's own."""


_TAIL = 3.0
"""Degrees of freedom of the differences: a few methods differ far more than the others."""


_SLOWEST = math.log(1.2)
"""Methods that are slower than the default by more matter to no choice."""


class Regime(NamedTuple):
    """A class of layouts that compare well; those with and without a network do not compare."""

    several_nodes: bool
    oversubscribed: bool
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
    oversubscribed: float
    shared_nodes: float


USUAL = Variances(octave=0.025, power_of_two=0.02, oversubscribed=0.02, shared_nodes=0.02)
"""The variances that fit all systems; with them the risk limit holds."""


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
            has_power_of_two(*a) != has_power_of_two(*b),
            here.oversubscribed != there.oversubscribed,
            here.shared_nodes != there.shared_nodes,
        )


def regimes(points: Iterable[Point], cores: NodeCores) -> Regimes:
    """Return a function that returns the regime of a layout, measured or not.

    Where the cores of a node are not known, they are as many as were measured to suffice. Where
    nodes share them, all processes count; the layouts may show it too, or that ranks that were
    placed as on virtual nodes were on several machines.
    """
    layouts = {point.case.layout for point in points}
    enough = [its for its in layouts if not its.oversubscribed]
    number, shared = cores
    most = number or max((its.ppn for its in enough), default=0)
    if number and any(its.procs > number for its in enough):
        shared = False
    shared = shared or any(its.oversubscribed and its.ppn <= most for its in layouts)
    if shared and not number:
        most = max((its.procs for its in enough), default=0)

    def regime(nodes: float, ppn: float) -> Regime:
        return Regime(nodes > 1, (nodes * ppn if shared else ppn) > most, ppn > 1)

    return regime


def are_oversubscribed(table: Table, cores: NodeCores) -> list[bool]:
    """Return whether the layouts of each rule have more ranks than cores, measured or not."""
    regime = regimes(table.points, cores)
    return [
        regime(rule.nodes_low, rule.ppn_low).oversubscribed
        if rule.inferred
        else rule.evidence.case.layout.oversubscribed
        for rule in table.rules
    ]


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
        operation, nodes, ppn, *_ = point.case.of_any_degree
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
            if (value := _value(ratio, point.level)) is not None
        }

    here, there = known(a), known(b)
    pairs = [(here[key], there[key]) for key in here.keys() & there.keys()]
    return [
        (one.log - other.log) ** 2 - one.error**2 - other.error**2
        for one, other in pairs
        if min(one.log, other.log) < _SLOWEST
    ]


def has_power_of_two(nodes: float, ppn: float) -> bool:
    """Return whether a layout has a power of two processes."""
    return math.frexp(nodes)[0] == math.frexp(ppn)[0] == 0.5


class Value(NamedTuple):
    """The logarithm of a method's time over the default's, and its standard error."""

    log: float
    error: float


def value_of(point: Point, method: str) -> Value | None:
    """Return the value of a method at a point, None without an error or an interval."""
    its = next((ratio for ratio in point.ratios if ratio.method == method), None)
    return None if its is None else _value(its, point.level)


def _value(its: Ratio, level: float | None) -> Value | None:
    """Return the value of a ratio, whose interval holds with a level.

    Of exact times, and of a table without errors, the error is that of a normal distribution with
    this interval: never too small, as Student's t of few degrees of freedom reaches farther.
    """
    if its.error is not None:
        return Value(math.log(its.ratio), its.error)
    if its.low is None or its.high is None or level is None:
        return None
    reach = math.log(its.high / its.low) / 2
    return Value(math.log(its.ratio), reach / NormalDist().inv_cdf((1 + level) / 2))


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
def _equations(here: Middle, layouts: Sequence[NodesPpn], spread: Spread) -> tuple[Floats, Floats]:
    """Return both sides of the equations of the weights for exact values; methods share them."""
    count = len(layouts)
    matrix = np.ones((count + 1, count + 1))
    matrix[count, count] = 0.0  # the weights add up to 1
    matrix[:count, :count] = [[-spread.between(a, b) / 2 for b in layouts] for a in layouts]
    return matrix, np.array([*(-spread.between(here, layout) / 2 for layout in layouts), 1.0])


def risk(its: Inference) -> float:
    """Return the probability that a method is slower than the default by over NEARLY."""
    return 1 - NormalDist(its.mean, math.sqrt(its.variance)).cdf(NEARLY)
