"""The comparison of two campaigns or systems: changed times, and their effect on tables.

No input or output; docs/explanation/statistics.md explains the tests.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any, Self, TypeVar

import numpy as np

from tuner.domain.cases import UNKNOWN_CORES, DegreeClass, NodeCores
from tuner.domain.flat import flat
from tuner.domain.operations import BY_ENVIRONMENT, DEFAULT_METHODS, RULED_OPERATIONS
from tuner.domain.records import Cell, Features
from tuner.domain.tables import Point, Rule, Soaked
from tuner.selection import match, soaks
from tuner.selection.changes import (
    Change,
    Medians,
    Shift,
    Where,
    exact_in,
    largest_first,
    medians_of,
    shifts,
)
from tuner.selection.intervals import degree_class_of, whole_intervals
from tuner.selection.ratios import Log, mean, paired
from tuner.selection.rules import compile_rules
from tuner.selection.soaks import SoakedMethod

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Choice:
    """A method, and the smallest size in bytes that it is chosen for."""

    from_bytes: int
    method: str


@dataclass(frozen=True, slots=True)
class Moved:
    """The methods of a degree class at the sizes that both measured, where they differ.

    At `settled` of the `sizes` at which they differ, both choices are settled.
    """

    operation: str
    nodes: int
    ppn: int
    mmax: int
    mavg: float
    a: list[Choice]
    b: list[Choice]
    sizes: int
    settled: int


@dataclass(frozen=True, slots=True)
class Loss:
    """The loss of A's cases with B's rules: time with B's / time with A's - 1, mean of logarithms.

    `without_rule` of the cases have no rule in B and take the default. `not_measured` further ones
    have no time in A for one of the methods, and are in no figure.
    """

    cases: int
    mean: float | None
    p95: float | None
    worst: float | None
    worst_where: Where | None  # with B's method
    without_rule: int
    not_measured: int


@dataclass(frozen=True, slots=True)
class Replaced:
    """The effect of replacing A's table by B's: other methods, and what A loses by them."""

    moved: list[Moved]
    loss: Loss


@dataclass(frozen=True, slots=True)
class Comparison:
    """The whole comparison. `common_ratio` is the geometric mean over all cells that both have.

    `measured` compares tables by the times alone, `deployable` tables as they are exported: only
    with methods that passed the required executions in soaks.
    """

    compared: int
    common_ratio: float | None
    operations: list[Shift]  # the largest effect first
    measured: Replaced
    deployable: Replaced

    @property
    def changes(self) -> list[Change]:
        """Return all changes, the largest first."""
        return sorted(
            (each for shift in self.operations for each in shift.changes), key=largest_first
        )


class Chosen:
    """Decisions, and the methods that their rules choose, kept as compiling rules takes long."""

    def __init__(self, points: list[Point], cores: NodeCores = UNKNOWN_CORES) -> None:
        """Keep the decisions of a system."""
        self._points, self._cores = points, cores
        self._rules: dict[DegreeClass, list[Rule]] = {}
        self._methods: dict[tuple[DegreeClass, int], str | None] = {}

    @cached_property
    def classes(self) -> Mapping[DegreeClass, Mapping[int, Point]]:
        """Return the decisions of each degree class by size."""
        found: dict[DegreeClass, dict[int, Point]] = defaultdict(dict)
        for point in self._points:
            found[degree_class_of(point.case, point.mmax, point.mavg)][point.case.bytes] = point
        return found

    def method(self, degree_class: DegreeClass, bytes_: int) -> str | None:
        """Return the method for a case, None without a rule for it."""
        key = degree_class, bytes_
        if key not in self._methods:
            rule = match.first(self._rules_of(DegreeClass(*degree_class[:3])), *key)
            self._methods[key] = rule.method if rule else None
        return self._methods[key]

    @cached_property
    def _measured(self) -> Mapping[DegreeClass, list[Point]]:
        found: dict[DegreeClass, list[Point]] = defaultdict(list)
        for point in self._points:
            found[point.case.of_any_degree].append(point)
        return {**found}

    def _rules_of(self, layout: DegreeClass) -> list[Rule]:
        """Return the rules of a layout; those between measured ones take longest."""
        if layout not in self._rules:
            here = self._measured.get(layout)
            self._rules[layout] = compile_rules(here) if here else self._inferred[layout.operation]
        return self._rules[layout]

    @cached_property
    def _inferred(self) -> Mapping[str, list[Rule]]:
        found: dict[str, list[Rule]] = defaultdict(list)
        for rule in compile_rules(self._points, self._cores):
            found[rule.operation].append(rule)
        return found


@dataclass(frozen=True, slots=True)
class ComparedTimes:
    """A small part of some cells: what is compared of them. Samples are not needed.

    The times of a simulated machine are `exact`.
    """

    cells: Mapping[SoakedMethod, int]
    medians: Medians
    exact: bool
    features: dict[Where, Features]  # of the default's cells
    numbers: Mapping[tuple[str, int], int]  # of launches, where some methods have launches alone

    @classmethod
    def of_cells(cls, cells: Sequence[Cell]) -> Self:
        """Return the part of these cells."""
        features = {
            Where(cell.key.case, cell.key.method): cell.features
            for cell in cells
            if cell.key.case.operation in RULED_OPERATIONS
            and cell.key.method == DEFAULT_METHODS[cell.key.case.operation]
            and not cell.key.case.staggered
        }
        counted = Counter((cell.key.case.operation, cell.key.method) for cell in cells)
        numbers: dict[tuple[str, int], int] = {}
        if any(cell.key.method.startswith(BY_ENVIRONMENT) for cell in cells):
            for cell in cells:
                its = cell.parts[["launch", "number"]].tolist()
                numbers |= {(cell.key.campaign, launch): number for launch, number in its}
        return cls(counted, medians_of(cells), exact_in(cells), features, numbers)

    def ratios(self, mine: Where, other: Where) -> dict[tuple[str, int], Log]:
        """Return the logarithm of time / other time for every launch that has both.

        Methods that hold for whole launches have launches of their own, which are paired with those
        of the same number, as in decisions.
        """
        pair = [self.medians.get(where, {}) for where in (mine, other)]
        by_number = any(where.method.startswith(BY_ENVIRONMENT) for where in (mine, other))
        if by_number and all(pair):
            pair = [
                {(key[0], self.numbers[key]): log for key, log in medians.items()}
                for medians in pair
            ]
        return paired(*pair)

    def only(self, operation: str) -> ComparedTimes:
        """Return the part of an operation, or all if it is ""."""
        if not operation:
            return self
        return replace(
            self,
            cells={what: its for what, its in self.cells.items() if what[0] == operation},
            medians=_only(operation, self.medians),
            features=_only(operation, self.features),
        )


def _only(operation: str, cells: Mapping[Where, T]) -> dict[Where, T]:
    return {where: its for where, its in cells.items() if where.case.operation == operation}


@dataclass(frozen=True, slots=True)
class MeasuredSide:
    """The compared side of a campaign or system: its times, and its own decisions.

    `deployable` methods passed the required executions.
    """

    times: ComparedTimes
    chosen: Chosen
    required_executions: int
    deployable: Chosen

    @classmethod
    def of(
        cls,
        times: ComparedTimes,
        points: list[Point],
        soaked: Sequence[Soaked] = (),
        required_executions: int = 0,
        cores: NodeCores = UNKNOWN_CORES,
    ) -> Self:
        """Return the side of times and decisions."""
        chosen = Chosen(points, cores)
        deployable = soaks.withhold(points, soaked, required_executions)
        return cls(
            times=times,
            chosen=chosen,
            required_executions=required_executions,
            deployable=chosen if deployable == points else Chosen(deployable, cores),
        )


@dataclass(frozen=True, slots=True)
class Subject:
    """One of the two compared sides, by name, with its condition for deploying methods."""

    name: str
    mpi_library: str
    cells: int
    required_executions: int

    @classmethod
    def of(cls, name: str, mpi_library: str, side: MeasuredSide, operation: str = "") -> Self:
        """Return the subject that is shown for a side, or for an operation of it."""
        cells = sum(side.times.only(operation).cells.values())
        return cls(name, mpi_library, cells, side.required_executions)


def document(a: Subject, b: Subject, found: Comparison) -> dict[str, Any]:
    """Return a comparison as a document for JSON."""
    return {
        "a": asdict(a),
        "b": asdict(b),
        "compared": found.compared,
        "common_ratio": found.common_ratio,
        "operations": [
            {
                "operation": shift.operation,
                "compared": shift.compared,
                "changed": len(shift.changes),
                "ratio": shift.ratio,
                "effect": shift.effect,
            }
            for shift in found.operations
        ],
        "changes": [_flat_where(each) for each in found.changes],
        "measured": _flat_where(found.measured),
        "deployable": _flat_where(found.deployable),
    }


def _flat_where(of: Change | Replaced) -> dict[str, Any]:
    """Return a part of the document, in which the keys of cells are flat."""

    def fields(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        return {name: flat(value) if isinstance(value, Where) else value for name, value in pairs}

    return asdict(of, dict_factory=fields)


def compare(a: MeasuredSide, b: MeasuredSide, operation: str = "") -> Comparison:
    """Compare two campaigns or systems: an operation, or all, among which its cells are tested."""
    exact = a.times.exact and b.times.exact
    every = shifts(a.times.medians, b.times.medians, exact=exact)
    operations = [shift for shift in every if operation in ("", shift.operation)]
    times = a.times.only(operation)
    compared = sum(shift.compared for shift in operations)
    logs = sum(shift.compared * math.log(shift.ratio) for shift in operations)
    of_measured = _replaced(times, a.chosen, b.chosen)
    alike = (a.deployable, b.deployable) == (a.chosen, b.chosen)
    return Comparison(
        compared=compared,
        common_ratio=math.exp(logs / compared) if compared else None,
        operations=operations,
        measured=of_measured,
        deployable=of_measured if alike else _replaced(times, a.deployable, b.deployable),
    )


def _replaced(a: ComparedTimes, own: Chosen, others: Chosen) -> Replaced:
    operations = {where.case.operation for where in a.features}
    moved = (each for each in _moved(own, others) if each.operation in operations)
    return Replaced(list(moved), _loss(a, own, others))


def _moved(a: Chosen, b: Chosen) -> Iterator[Moved]:
    of_a, of_b = a.classes, b.classes
    for degree_class in sorted(of_a.keys() & of_b.keys()):
        sizes = sorted(of_a[degree_class].keys() & of_b[degree_class].keys())
        pairs = [(of_a[degree_class][size], of_b[degree_class][size]) for size in sizes]
        differing = [pair for pair in pairs if pair[0].method != pair[1].method]
        if differing:
            yield Moved(
                *degree_class,
                a=_choices(sizes, [one.method for one, _ in pairs]),
                b=_choices(sizes, [other.method for _, other in pairs]),
                sizes=len(differing),
                settled=sum(one.settled and other.settled for one, other in differing),
            )


def _choices(sizes: list[int], methods: list[str]) -> list[Choice]:
    choices: list[Choice] = []
    for interval, method in zip(whole_intervals(sizes), methods, strict=True):
        if not choices or choices[-1].method != method:
            choices.append(Choice(interval.low or 0, method))
    return choices


def _loss(a: ComparedTimes, own_chosen: Chosen, others: Chosen) -> Loss:
    logs: list[tuple[float, Where]] = []
    without_rule = not_measured = 0
    for where, features in a.features.items():
        degree_class = where.case.of_any_degree._replace(mmax=features.mmax, mavg=features.mavg)
        own, other = (
            chosen.method(degree_class, where.case.bytes) for chosen in (own_chosen, others)
        )
        without_rule += other is None
        with_own, with_other = (where._replace(method=its or where.method) for its in (own, other))
        ratios = a.ratios(with_other, with_own)
        if not ratios:
            not_measured += 1
            continue
        logs.append((mean(ratios.values()), with_other))
    if not logs:
        return Loss(0, None, None, None, None, without_rule, not_measured)
    losses = np.array([log for log, _ in logs])
    worst, worst_where = max(logs, key=lambda pair: pair[0])
    return Loss(
        cases=len(logs),
        mean=math.expm1(losses.mean()),
        p95=math.expm1(float(np.quantile(losses, 0.95))),
        worst=math.expm1(worst),
        worst_where=worst_where if worst > 0 else None,
        without_rule=without_rule,
        not_measured=not_measured,
    )
