"""Loss of choices on unmeasured layouts, each left out in turn.

On times of two MPIs on one machine of two cores and on virtual nodes, and of two simulated machines
(tests/data/held-out-layouts.json.xz: medians of launches): tables are made from some layouts, and
asked for others, beside the default, what both neighbours choose or a straight line between them,
the nearest layout of the same regime, and an oracle, which knows half of the layout's own launches
and is judged by the others; beside these, tables in which each measured size takes its fastest
method, as if the launches had settled it, and tables whose usual variances are those of the other
systems alone. Means have intervals, by a bootstrap over the layouts left out. Choices are also
compared with the oracle's, in the launches that it did not see: the least of noisy times is below
that of the best method. It prints the usual variances that fit all systems best, and how often
choices with some risk of being slower were so; it exits with 1 when a bar is missed.
Run from the checkout: python -m tests.bench.unmeasured
"""

from __future__ import annotations

import argparse
import json
import lzma
import math
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from tests.bench.report import Figure, conclude, options_of
from tuner.domain.cases import Case, CellKey, Layout, NodeCores
from tuner.domain.operations import COLLECTIVES, DEFAULT_METHODS
from tuner.domain.records import PART, Cell, Features
from tuner.domain.tables import EQUAL, FASTER, Point, Rule
from tuner.paths import CHECKOUT
from tuner.selection import kriging, match, unmeasured
from tuner.selection.decisions import decide
from tuner.selection.intervals import NEARLY, degree_class_of
from tuner.selection.kriging import USUAL, NodesPpn, Variances
from tuner.selection.rules import compile_rules
from tuner.units import share_text

DATA = CHECKOUT / "tests" / "data" / "held-out-layouts.json.xz"
FIVE = [(nodes, 4) for nodes in (1, 2, 4, 8, 16)]
"""The layouts of a simulated machine that was measured on few."""

CORES = {"local:cpu": 2, "virtual-nodes:tcp-1gbit": 2}
ROUNDS = 4  # of a launch; all are its median, so that errors are those between launches

CHOOSERS = ("default", "line", "nearest", "table", "settled", "of others", "oracle")
OF_FIVE = "one of five left out"
OF_BEST, OF_ORACLE, OF_CASES = "over the best", "over the oracle", "of the cases"

MOST_MEAN = 0.03  # but on two cores, where the oracle itself loses more
MOST_SLOWER = 0.02


class MeasuredSize(NamedTuple):
    """One operation of one system at one size of one layout: medians of launches in seconds.

    `first` is the number of the first launch, which sizes share.
    """

    system: str
    case: Case
    mmax: int
    mavg: float
    medians_s: dict[str, np.ndarray]
    first: int

    @property
    def layout(self) -> NodesPpn:
        """Return nodes and processes on each."""
        return _layout_of(self.case)

    def logs(self, launches: slice) -> dict[str, float]:
        """Return the means of logarithms over the default's."""
        default = np.log(self.medians_s[DEFAULT_METHODS[self.case.operation]][launches])
        return {
            name: float(np.mean(np.log(each[launches]) - default))
            for name, each in self.medians_s.items()
        }

    def cells(self) -> Iterator[Cell]:
        """Yield the cells of all methods."""
        for name, medians_s in self.medians_s.items():
            key = CellKey(self.system, "A", self.case, name)
            features = Features(self.mmax, self.mavg, self.case.bytes, self.case.bytes, "{}")
            parts = [
                (self.first + n, n, ROUNDS, 0, each_s, 1e-5, 1e-6)
                for n, each_s in enumerate(medians_s)
            ]
            numbers = np.tile(np.arange(ROUNDS, dtype=np.uint16), len(medians_s))
            samples_s = np.repeat(medians_s, ROUNDS).astype(np.float32)
            yield Cell(key, features, np.array(parts, PART), numbers, samples_s)


def load() -> list[MeasuredSize]:
    """Return all that was measured; methods that a launch lacks are left out."""
    found = []
    firsts: dict[tuple[Any, ...], int] = {}
    for row in json.loads(lzma.decompress(DATA.read_bytes())):
        system, environment, operation, pattern, nodes, ppn, over, mmax, mavg, size, times = row
        layout = Layout(nodes * ppn, nodes, ppn, over)
        case = Case(operation, pattern, layout, "window", size, size)
        medians_s = {
            name: 1e-6 * np.array(each, float) for name, each in times.items() if None not in each
        }
        if DEFAULT_METHODS[operation] in medians_s:
            first = firsts.setdefault(tuple(row[:7]), 100 * len(firsts))
            its = MeasuredSize(f"{system} {environment}", case, mmax, mavg, medians_s, first)
            found.append(its)
    return found


class RegretTally(NamedTuple):
    """Regrets, and whether a choice was over NEARLY slower than the default, by chooser.

    `over_oracle` has the times over those of the oracle's choice, less 1; `rules` how many rules
    the tables have for an operation. `layouts` has a system's layout for each of the table's
    regrets.
    """

    regrets: dict[str, list[float]]
    slower: dict[str, list[bool]]
    over_oracle: dict[str, list[float]]
    rules: list[int]
    layouts: list[tuple[str, NodesPpn]]

    @classmethod
    def empty(cls) -> RegretTally:
        """Return a tally of nothing."""
        return cls(defaultdict(list), defaultdict(list), defaultdict(list), [], [])

    def add(self, chooser: str, method: str, logs: dict[str, float]) -> None:
        """Add a choice; one that cannot be used leaves the default."""
        log = logs.get(method, 0.0)
        self.regrets[chooser].append(math.expm1(log - min(logs.values())))
        self.slower[chooser].append(log > NEARLY)

    def interval(self) -> tuple[float, float]:
        """Return the 95 % interval of the table's mean regret, by a bootstrap over layouts."""
        of_layouts: dict[tuple[str, NodesPpn], list[float]] = defaultdict(list)
        for layout, regret in zip(self.layouts, self.regrets["table"], strict=True):
            of_layouts[layout].append(regret)
        sums = np.array([(sum(each), len(each)) for each in of_layouts.values()])
        draws = np.random.default_rng(1).integers(len(sums), size=(4000, len(sums)))
        totals, counts = sums[draws].sum(axis=1).T
        low, high = np.quantile(totals / counts, (0.025, 0.975))
        return float(low), float(high)

    def figures(self, name: str, judged: bool) -> list[Figure]:
        """Return and print the figures of all choosers."""
        found = [Figure(f"{name}: rules of an operation", float(np.mean(self.rules)), "")]
        means = {}
        for chooser in CHOOSERS:
            regrets, slower = self.regrets[chooser], float(np.mean(self.slower[chooser]))
            mean, p95 = float(np.mean(regrets)), float(np.quantile(regrets, 0.95))
            means[chooser] = mean
            shares = f"{share_text(mean)}, p95 {share_text(p95)}, slower {share_text(slower)}"
            print(f"{name}: {chooser}: {shares}")
            barred = judged and chooser == "table"
            most = MOST_MEAN if barred and not name.startswith("local") else None
            found += [
                Figure(f"{name}: {chooser}: mean", mean, OF_BEST, most),
                Figure(f"{name}: {chooser}: p95", p95, OF_BEST),
                Figure(
                    f"{name}: {chooser}: slower", slower, OF_CASES, MOST_SLOWER if barred else None
                ),
            ]
            if over := self.over_oracle[chooser]:
                mean, p95 = float(np.mean(over)), float(np.quantile(over, 0.95))
                shares = f"{share_text(mean)}, p95 {share_text(p95)}"
                print(f"{name}: {chooser}: {shares} over the oracle")
                found += [
                    Figure(f"{name}: {chooser}: mean over the oracle", mean, OF_ORACLE),
                    Figure(f"{name}: {chooser}: p95 over the oracle", p95, OF_ORACLE),
                ]
        low, high = self.interval()
        print(f"{name}: table: the mean is between {share_text(low)} and {share_text(high)}")
        found += [
            Figure(f"{name}: table: mean, {end} end", value, OF_BEST)
            for end, value in (("low", low), ("high", high))
        ]
        for other in ("line", "nearest"):
            ratio = means["table"] / means[other]
            found.append(
                Figure(f"{name}: mean of table / {other}", ratio, "", 1.0 if judged else None)
            )
        return found


def settled(point: Point) -> Point:
    """Return the point as if its launches had settled it."""
    default = DEFAULT_METHODS[point.case.operation]
    best = min(point.ratios, key=lambda its: its.ratio, default=None)
    if best is None or best.ratio > 1 - NEARLY:
        return point._replace(method=default, status=EQUAL, filled=False)
    return point._replace(method=best.method, status=FASTER, filled=False)


def line(points: dict[NodesPpn, Point], here: NodesPpn, default: str) -> str:
    """Return the choice by both neighbours along one axis, as tables had it before."""
    for axis in (1, 0):
        beside = [its for its in points if its[1 - axis] == here[1 - axis]]
        below = max((its for its in beside if its[axis] < here[axis]), default=None)
        above = min((its for its in beside if its[axis] > here[axis]), default=None)
        if below is None or above is None or below[axis] == 1:
            continue
        a, b = points[below], points[above]
        if a.method == b.method:
            return a.method
        if a.case.layout.oversubscribed != b.case.layout.oversubscribed:
            return default
        share = math.log(here[axis] / below[axis]) / math.log(above[axis] / below[axis])
        ratios = [{its.method: math.log(its.ratio) for its in each.ratios} for each in (a, b)]
        gains = {
            name: (1 - share) * ratios[0][name] + share * ratios[1][name]
            for name in {a.method, b.method} - {default}
            if all(name in each for each in ratios)
        }
        best = min(gains, key=lambda name: gains[name], default=default)
        return best if gains.get(best, 0.0) < -NEARLY else default
    return default


def nearest(
    points: dict[NodesPpn, Point], here: NodesPpn, default: str, regime: kriging.Regimes
) -> str:
    """Return the choice of the nearest layout of the same regime, within the risk limit."""
    near = [layout for layout in points if regime(*layout) == regime(*here)]
    spread = kriging.Spread(regime)
    layout = min(near, key=lambda its: (spread.between(its, here), its), default=None)
    if layout is None:
        return default
    point = points[layout]
    value = kriging.value_of(point, point.method)
    if value is None:
        return default
    risk = kriging.risk(kriging.estimate(here, {layout: value}, spread))
    return point.method if risk <= unmeasured.MOST_RISK else default


MeasuredPlace = tuple[NodesPpn, str]
"""A layout and a pattern that were measured together."""

Split = Callable[[set[MeasuredPlace]], Iterator[set[MeasuredPlace]]]
"""Function that yields what to learn from, of all that was measured of an operation."""


def each_left_out(measured: set[MeasuredPlace]) -> Iterator[set[MeasuredPlace]]:
    """Yield all layouts but one, which lies between others, of one node or of several."""
    for left_out in sorted({layout for layout, _ in measured}):
        kept = {(layout, pattern) for layout, pattern in measured if layout != left_out}
        kind = [layout for layout, _ in kept if (layout[0] > 1) == (left_out[0] > 1)]
        if kind and all(
            min(axis) <= number <= max(axis)
            for number, axis in zip(left_out, zip(*kind, strict=True), strict=True)
        ):
            yield kept


def patterns_left_out(measured: set[MeasuredPlace]) -> Iterator[set[MeasuredPlace]]:
    """Yield all patterns but one of each layout that has several: the least, then the largest."""
    of_layouts: dict[NodesPpn, list[str]] = defaultdict(list)
    for layout, pattern in sorted(measured):
        of_layouts[layout].append(pattern)
    if any(len(patterns) > 1 for patterns in of_layouts.values()):
        for end in (0, -1):
            yield {
                (layout, pattern)
                for layout, patterns in of_layouts.items()
                for pattern in patterns
                if len(patterns) == 1 or pattern != patterns[end]
            }


def nothing_left_out(measured: set[MeasuredPlace]) -> Iterator[set[MeasuredPlace]]:
    """Yield all that was measured, which is asked again."""
    yield measured


def only(*ppns: int) -> Split:
    """Return a split with these numbers of processes on one node."""

    def split(measured: set[MeasuredPlace]) -> Iterator[set[MeasuredPlace]]:
        yield {
            (layout, pattern)
            for layout, pattern in measured
            if layout[0] == 1 and layout[1] in ppns
        }

    return split


Judged = dict[str, RegretTally]
"""Tallies by what they are of: all operations, or collectives."""


def judge(system: list[MeasuredSize], split: Split, usual: Variances, judged: Judged) -> None:
    """Add the choices of all choosers on what is left out, or all; `usual` is that of others."""
    cores = _cores(system)
    learned: dict[tuple[int, ...], tuple[list[Point], list[list[Rule]]]] = {}
    operations: dict[str, list[MeasuredSize]] = defaultdict(list)
    for its in system:
        operations[its.case.operation].append(its)
    for operation, measured in operations.items():
        tallies = [judged["all"], judged["collectives"]][: 1 + (operation in COLLECTIVES)]
        for kept in split({_measured(its.case) for its in measured}):
            layouts = {layout for layout, _ in kept}
            known = [  # of other operations the same layouts
                its
                for its in system
                if _measured(its.case) in kept
                or (its.case.operation != operation and its.layout in layouts)
            ]
            if (key := tuple(map(id, known))) not in learned:
                points = decide([cell for its in known for cell in its.cells()])
                learned[key] = (
                    points,
                    [
                        compile_rules(points, cores),
                        compile_rules(map(settled, points), cores),
                        compile_rules(points, cores, usual),
                    ],
                )
            points, tables = learned[key]
            own = [point for point in points if point.case.operation == operation]
            regime = kriging.regimes(points, cores)
            for tally in tallies:
                tally.rules.append(sum(rule.operation == operation for rule in tables[0]))
            left_out = [its for its in measured if _measured(its.case) not in kept]
            for its in left_out or measured:
                _judge_one(its, own, tables, regime, tallies)


def _judge_one(
    its: MeasuredSize,
    learned: list[Point],
    tables: Sequence[list[Rule]],
    regime: kriging.Regimes,
    tallies: list[RegretTally],
) -> None:
    """Add the choices for a size of a layout that was left out."""
    default = DEFAULT_METHODS[its.case.operation]
    degree_class, size = degree_class_of(its.case, its.mmax, its.mavg), its.case.bytes
    chosen = {"default": default}
    for name, rules in zip(("table", "settled", "of others"), tables, strict=True):
        rule = match.first(rules, degree_class, size)
        chosen[name] = rule.method if rule else default
    near = {_layout_of(point.case): point for point in learned if point.case.bytes == size}
    beside = {
        "line": line(near, its.layout, default),
        "nearest": nearest(near, its.layout, default, regime),
    }
    exact = its.system.startswith("simulated")
    slices = [slice(None)] * 2 if exact else [slice(0, None, 2), slice(1, None, 2)]
    logs, halves = its.logs(slice(None)), [its.logs(half) for half in slices]
    for tally in tallies:
        tally.layouts.append((its.system, its.layout))
        for chooser, method in (chosen | beside).items():
            tally.add(chooser, method, logs)
        for mine, other in (halves, halves[::-1]):
            best = min(mine, key=lambda name: mine[name])
            tally.add("oracle", best, other)
            for chooser, method in chosen.items():
                over = math.expm1(other.get(method, 0.0) - other[best])
                tally.over_oracle[chooser].append(over)


def _layout_of(case: Case) -> NodesPpn:
    return case.layout.nodes, case.layout.ppn


def _measured(case: Case) -> MeasuredPlace:
    return _layout_of(case), case.pattern


def usual_of(systems: Iterable[list[MeasuredSize]]) -> Variances:
    """Return the usual variances that are likeliest by the neighbouring layouts of systems.

    By multiplicative updates. One pair for each keeps what no system shows.
    """
    differences, variances = [*np.eye(len(USUAL))], [*USUAL]
    for system in systems:
        points = decide([cell for its in system for cell in its.cells()])
        spread = kriging.Spread(kriging.regimes(points, _cores(system)))
        for a, b, variance in kriging.compared(points):
            differences.append(np.array(spread.differences(a, b)))
            variances.append(variance)
    shares, found, usual = np.array(differences), np.array(variances), np.array(USUAL)
    for _ in range(200):
        expected = shares @ usual
        usual *= shares.T @ (found / expected**2) / (shares.T @ (1 / expected))
    return Variances(*usual.tolist())


def in_words(usual: Variances) -> str:
    """Return variances as text."""
    return ", ".join(f"{name} {value:.3f}" for name, value in usual._asdict().items())


def _cores(system: list[MeasuredSize]) -> NodeCores:
    return NodeCores(CORES.get(system[0].system.split()[0], 16))


def calibration(kind: str, systems: Sequence[list[MeasuredSize]]) -> list[Figure]:
    """Return how often methods within the risk limit were slower, by one other layout."""
    shown: dict[bool, list[tuple[float, bool]]] = {True: [], False: []}
    for system in systems:
        for risk, slower in _risks(system):
            shown[risk > unmeasured.MOST_RISK / 2].append((risk, slower))
    figures = []
    for near, cases in shown.items():
        if not cases:
            continue
        expected, found = (float(np.mean(column)) for column in zip(*cases, strict=True))
        name = f"{kind}, risk {'above' if near else 'below'} half of the limit"
        shares = f"{share_text(expected)} expected, {share_text(found)} slower"
        print(f"{name}: {len(cases)} cases, {shares}")
        figures.append(Figure(f"{name}: slower", found, OF_CASES, most=unmeasured.MOST_RISK))
    return figures


def _risks(system: list[MeasuredSize]) -> Iterator[tuple[float, bool]]:
    """Yield the risk of each gain within the limit elsewhere, and whether it was slower."""
    cores = _cores(system)
    points = decide([cell for its in system for cell in its.cells()])
    regime = kriging.regimes(points, cores)
    spread = kriging.spread_of(points, regime)
    for point in points:
        for other in system:
            same = other.case.operation == point.case.operation
            same &= other.case.bytes == point.case.bytes and other.layout != _layout_of(point.case)
            if not same or regime(*other.layout) != regime(*_layout_of(point.case)):
                continue
            logs = other.logs(slice(None))
            for ratio in point.ratios:
                value = kriging.value_of(point, ratio.method)
                if value is None or ratio.method not in logs or value.log > -NEARLY:
                    continue
                known = {_layout_of(point.case): value}
                risk = kriging.risk(kriging.estimate(other.layout, known, spread))
                if risk <= unmeasured.MOST_RISK:
                    yield risk, logs[ratio.method] > NEARLY


def main() -> int:
    """Print the figures beside their bars."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--systems", nargs="*", default=["local", "virtual-nodes", "simulated"])
    options = options_of(parser, "unmeasured", {"systems": ["local"]})
    by_system: dict[str, list[MeasuredSize]] = defaultdict(list)
    for its in load():
        by_system[its.system].append(its)
    of_local: dict[str, Split] = {"2, 8": only(2, 8), "2, 3, 6, 8": only(2, 3, 6, 8)}
    left_out: dict[str, Split] = {"one left out": each_left_out}
    pattern_left_out: dict[str, Split] = {
        "a pattern left out": patterns_left_out,
        "nothing left out": nothing_left_out,
    }
    splits_of = {
        "local": of_local if options.least else of_local | left_out | pattern_left_out,
        "virtual-nodes": left_out | pattern_left_out,
        "simulated": left_out | {OF_FIVE: each_left_out},
    }
    of_kinds = {
        kind: [its for name, its in by_system.items() if name.startswith(kind)]
        for kind in options.systems
    }
    print(f"usual variances of all: {in_words(usual_of(chain(*of_kinds.values())))}")
    figures: list[Figure] = []
    for kind, systems in of_kinds.items():
        usual = usual_of(chain(*(its for other, its in of_kinds.items() if other != kind)))
        print(f"{kind}: usual variances of the others: {in_words(usual)}")
        for name, split in splits_of[kind].items():
            judged = {what: RegretTally.empty() for what in ("all", "collectives")}
            for system in systems:
                few = [its for its in system if its.layout in FIVE]
                judge(few if name == OF_FIVE else system, split, usual, judged)
            for what, tally in judged.items():
                if tally.regrets:
                    figures += tally.figures(f"{kind}, {name}, {what}", judged=what == "all")
        if not options.least:
            figures += calibration(kind, systems)
    return conclude("unmeasured", figures, options)


if __name__ == "__main__":
    sys.exit(main())
