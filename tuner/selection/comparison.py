"""The comparison of two campaigns or systems: changed times, and their effect on tables.

No input or output; docs/explanation/statistics.md explains the tests.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np

from tuner.domain.cases import Place
from tuner.domain.flat import flat
from tuner.domain.operations import DEFAULT_METHODS, RULED_OPERATIONS
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
from tuner.selection.decisions import decide
from tuner.selection.intervals import place_of, whole_intervals
from tuner.selection.ratios import mean, paired
from tuner.selection.rules import compile_rules


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


@dataclass(frozen=True)
class MeasuredSide:
    """The compared side of a campaign or system: a small part of its cells, and its own decisions.

    The times of a simulated machine are `exact`. `deployable` methods passed the required
    executions.
    """

    cells: int
    medians: Medians
    exact: bool
    features: dict[Where, Features]  # of the default's cells
    points: list[Point]
    required_executions: int
    deployable: list[Point]


def measured(
    cells: Sequence[Cell],
    points: list[Point] | None = None,
    soaked: Sequence[Soaked] = (),
    required_executions: int = 0,
) -> MeasuredSide:
    """Return the compared side of these cells.

    points: the decisions without the methods that failed a soak, where known; samples are then not
    needed.
    """
    points = decide(soaks.candidates(cells, soaked)) if points is None else points
    features = {
        Where(cell.key.case, cell.key.method): cell.features
        for cell in cells
        if cell.key.case.operation in RULED_OPERATIONS
        and cell.key.method == DEFAULT_METHODS[cell.key.case.operation]
    }
    return MeasuredSide(
        cells=len(cells),
        medians=medians_of(cells),
        exact=exact_in(cells),
        features=features,
        points=points,
        required_executions=required_executions,
        deployable=soaks.withhold(points, soaked, required_executions),
    )


@dataclass(frozen=True, slots=True)
class Subject:
    """One of the two compared sides, by name, with its condition for deploying methods."""

    name: str
    mpi_library: str
    cells: int
    required_executions: int

    @classmethod
    def of(cls, name: str, mpi_library: str, side: MeasuredSide) -> Self:
        """Return the subject that is shown for a side."""
        return cls(name, mpi_library, side.cells, side.required_executions)


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


def compare(a: MeasuredSide, b: MeasuredSide) -> Comparison:
    """Compare two campaigns or systems."""
    operations = shifts(a.medians, b.medians, exact=a.exact and b.exact)
    compared = sum(shift.compared for shift in operations)
    logs = sum(shift.compared * math.log(shift.ratio) for shift in operations)
    of_measured = _replaced(a, a.points, b.points)
    alike = (a.deployable, b.deployable) == (a.points, b.points)
    return Comparison(
        compared=compared,
        common_ratio=math.exp(logs / compared) if compared else None,
        operations=operations,
        measured=of_measured,
        deployable=of_measured if alike else _replaced(a, a.deployable, b.deployable),
    )


def _replaced(a: MeasuredSide, own: list[Point], others: list[Point]) -> Replaced:
    return Replaced(list(_moved(own, others)), _loss(a, own, others))


def _classes(points: Iterable[Point]) -> dict[Place, dict[int, Point]]:
    found: dict[Place, dict[int, Point]] = defaultdict(dict)
    for point in points:
        found[place_of(point.case, point.mmax, point.mavg)][point.case.bytes] = point
    return found


def _moved(a: Iterable[Point], b: Iterable[Point]) -> Iterator[Moved]:
    of_a, of_b = _classes(a), _classes(b)
    for place in sorted(of_a.keys() & of_b.keys()):
        sizes = sorted(of_a[place].keys() & of_b[place].keys())
        pairs = [(of_a[place][size], of_b[place][size]) for size in sizes]
        differing = [pair for pair in pairs if pair[0].method != pair[1].method]
        if differing:
            yield Moved(
                *place,
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


def _loss(a: MeasuredSide, own_points: list[Point], points: list[Point]) -> Loss:
    layouts = {where.case.place for where in a.features}
    own_rules, other_rules = _rules(own_points, layouts), _rules(points, layouts)
    logs: list[tuple[float, Where]] = []
    without_rule = not_measured = 0
    for where, features in a.features.items():
        own, other = (_of_rules(each, where, features) for each in (own_rules, other_rules))
        without_rule += other is None
        mine = a.medians.get(where._replace(method=own or where.method), {})
        theirs = a.medians.get(where._replace(method=other or where.method), {})
        ratios = paired(theirs, mine)
        if not ratios:
            not_measured += 1
            continue
        logs.append((mean(ratios.values()), where._replace(method=other or where.method)))
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


def _rules(points: Iterable[Point], layouts: set[Place]) -> dict[Place, list[Rule]]:
    """Return the rules by layout; those between measured ones, which take long, only if needed."""
    measured: dict[Place, list[Point]] = defaultdict(list)
    for point in points:
        measured[point.case.place].append(point)
    found = {layout: compile_rules(measured[layout]) for layout in layouts & measured.keys()}
    for layout in layouts - found.keys():
        of_operation = [of for where, of in measured.items() if where.operation == layout.operation]
        found[layout] = compile_rules(point for of in of_operation for point in of)
    return found


def _of_rules(rules: dict[Place, list[Rule]], where: Where, features: Features) -> str | None:
    layout = where.case.place
    place = layout._replace(mmax=features.mmax, mavg=features.mavg)
    rule = match.first(rules[layout], place, where.case.bytes)
    return rule.method if rule else None
