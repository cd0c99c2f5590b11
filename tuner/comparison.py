"""Compares two campaigns or systems: what became faster or slower, and what that does to tables.

No input or output; docs/explanation/statistics.md tells what is tested.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from tuner import stats
from tuner.operations import DEFAULT_METHODS, RULED_OPERATIONS
from tuner.records import PART, Cell, Features
from tuner.selection import soaks
from tuner.selection.decisions import decide, least_samples
from tuner.selection.intervals import degree_class, whole_intervals
from tuner.selection.rules import compile_rules, matching
from tuner.simulation import machines
from tuner.tables import Point, Rule, Soaked

FALSE_DISCOVERIES = 0.05
"""The share that is expected to be false of the changes that are told."""

ROUNDING = 1e-6
"""Exact times are kept in single precision."""

SHOWN = ("faster", "default")
"""The statuses of decisions that something was shown for."""


@dataclass(frozen=True, slots=True)
class Where:
    """What two cells have in common that are compared: a key but for system and campaign."""

    operation: str
    pattern: str
    procs: int
    nodes: int
    ppn: int
    oversubscribed: bool
    sync: str
    size_bytes: int
    bytes: int
    method: str


@dataclass(frozen=True, slots=True)
class Change:
    """A cell that takes another time in B: time in B / time in A, with its 95 % interval."""

    where: Where
    ratio: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Choice:
    """A method, and the least bytes that it is chosen for."""

    from_bytes: int
    method: str


@dataclass(frozen=True, slots=True)
class Moved:
    """The methods of a degree class at the sizes that both measured, where they differ.

    At `shown` of the `sizes` at which they differ, both choices were shown to be right.
    """

    operation: str
    nodes: int
    ppn: int
    mmax: int
    mavg: float
    a: list[Choice]
    b: list[Choice]
    sizes: int
    shown: int


@dataclass(frozen=True, slots=True)
class Loss:
    """What A's cases take longer with B's rules: time with B's / time with A's, logarithms apart.

    `without_rule` of the cases have no rule in B and take the default; of `not_measured` A does not
    know the time, and they are in no figure.
    """

    cases: int
    mean: float | None
    p95: float | None
    worst: float | None
    worst_where: Where | None  # with B's method
    without_rule: int
    not_measured: int


@dataclass(frozen=True, slots=True)
class Comparison:
    """All of it. `common_ratio` is the geometric mean over all cells that both have."""

    compared: int
    common_ratio: float | None
    changes: list[Change]  # the largest first
    moved: list[Moved]
    loss: Loss


Medians = dict[Where, dict[tuple[str, int], float]]
"""Logarithms of the median seconds of every launch that counts."""


@dataclass(frozen=True)
class Measured:
    """What is compared of a campaign or system: a small part of its cells, and its own table.

    Of a simulated machine times are `exact`.
    """

    medians: Medians
    exact: bool
    features: dict[Where, Features]  # of the default's cells
    rules: list[Rule]
    points: list[Point]


def measured(
    cells: Sequence[Cell],
    points: list[Point] | None = None,
    soaked: Sequence[Soaked] = (),
    required_executions: int = 0,
) -> Measured:
    """What is compared of these cells; what failed a soak, or waits for one, is in no rule.

    points: what they decide, where that is known; samples are then not needed, and the default
    stands where a method was decided for that failed.
    """
    points = decide(soaks.candidates(cells, soaked)) if points is None else points
    points = soaks.withhold(points, soaked, required_executions)
    features = {
        Where(*cell.key[2:]): cell.features
        for cell in cells
        if cell.key.operation in RULED_OPERATIONS
        and cell.key.method == DEFAULT_METHODS[cell.key.operation]
    }
    return Measured(medians_of(cells), exact_in(cells), features, compile_rules(points), points)


def compare(a: Measured, b: Measured) -> Comparison:
    """Compares two campaigns or systems."""
    both = [where for where in a.medians if where in b.medians]
    shifts = [_mean(b.medians[where]) - _mean(a.medians[where]) for where in both]
    return Comparison(
        compared=len(both),
        common_ratio=math.exp(sum(shifts) / len(shifts)) if shifts else None,
        changes=changes(a.medians, b.medians, exact=a.exact and b.exact),
        moved=list(_moved(a.points, b.points)),
        loss=_loss(a, b.rules),
    )


def exact_in(cells: Sequence[Cell]) -> bool:
    """Whether cells of one system are of a simulated one, where launches do not differ."""
    return bool(cells) and machines.is_simulated(cells[0].key.system)


def medians_of(cells: Iterable[Cell]) -> Medians:
    """The medians that are compared; samples are not needed."""
    cells = list(cells)
    # Joining bytes: of many small structured arrays numpy compares the fields one by one.
    parts = np.frombuffer(b"".join(cell.parts.tobytes() for cell in cells), PART)
    launches, logs = parts["launch"].tolist(), np.log(parts["median_s"]).tolist()
    least = np.repeat([least_samples(cell) for cell in cells], [len(cell.parts) for cell in cells])
    count = (parts["samples"] >= least).tolist()
    found: Medians = {}
    end = 0
    for cell in cells:
        here = range(end, end := end + len(cell.parts))
        medians = {(cell.key.campaign, launches[i]): logs[i] for i in here if count[i]}
        if medians:
            found.setdefault(Where(*cell.key[2:]), {}).update(medians)
    return found


def _mean(medians: dict[tuple[str, int], float]) -> float:
    return sum(medians.values()) / len(medians)


def changes(a: Medians, b: Medians, *, exact: bool) -> list[Change]:
    """The cells that differ by more than launches do, the largest change first.

    Of all that are told, few are expected to be false; of exact times none is.
    """
    alike: dict[tuple[int, int], list[Where]] = defaultdict(list)  # with as many launches
    for where in a:
        if where in b:
            alike[len(a[where]), len(b[where])].append(where)
    tested: list[tuple[Where, list[float]]] = []
    p: list[float] = []
    for launches, cells in alike.items():
        if exact:
            ratios = [math.exp(_mean(b[where]) - _mean(a[where])) for where in cells]
            tested += [(where, [ratio] * 3) for where, ratio in zip(cells, ratios, strict=True)]
            p += [float(math.isclose(ratio, 1, rel_tol=ROUNDING)) for ratio in ratios]
        elif min(launches) > 1:
            logs = [np.array([list(of[where].values()) for where in cells]) for of in (a, b)]
            test = stats.welch(logs[0], logs[1])
            ratios = np.exp([test.difference, test.low, test.high]).T.tolist()
            tested += zip(cells, ratios, strict=True)
            p += test.p.tolist()
    told = stats.discoveries(np.array(p), FALSE_DISCOVERIES)
    found = [Change(tested[index][0], *tested[index][1]) for index in told.nonzero()[0]]
    return sorted(found, key=lambda change: -abs(math.log(change.ratio)))


_Class = tuple[str, int, int, tuple[int, float]]


def _classes(points: Iterable[Point]) -> dict[_Class, dict[int, Point]]:
    found: dict[_Class, dict[int, Point]] = defaultdict(dict)
    for point in points:
        degree = degree_class(point.operation, point.mmax, point.mavg)
        found[point.operation, point.nodes, point.ppn, degree][point.bytes] = point
    return found


def _moved(a: Iterable[Point], b: Iterable[Point]) -> Iterator[Moved]:
    of_a, of_b = _classes(a), _classes(b)
    for name in sorted(of_a.keys() & of_b.keys()):
        sizes = sorted(of_a[name].keys() & of_b[name].keys())
        pairs = [(of_a[name][size], of_b[name][size]) for size in sizes]
        differing = [pair for pair in pairs if pair[0].method != pair[1].method]
        if differing:
            operation, nodes, ppn, (mmax, mavg) = name
            yield Moved(
                *(operation, nodes, ppn, mmax, mavg),
                a=_choices(sizes, [one.method for one, _ in pairs]),
                b=_choices(sizes, [other.method for _, other in pairs]),
                sizes=len(differing),
                shown=sum(
                    one.status in SHOWN and other.status in SHOWN for one, other in differing
                ),
            )


def _choices(sizes: list[int], methods: list[str]) -> list[Choice]:
    choices: list[Choice] = []
    for interval, method in zip(whole_intervals(sizes), methods, strict=True):
        if not choices or choices[-1].method != method:
            choices.append(Choice(interval.low or 0, method))
    return choices


def _loss(a: Measured, rules: list[Rule]) -> Loss:
    logs: list[tuple[float, Where]] = []
    without_rule = not_measured = 0
    for where, features in a.features.items():
        own, other = (_of_rules(each, where, features) for each in (a.rules, rules))
        without_rule += other is None
        mine = a.medians.get(replace(where, method=own or where.method), {})
        theirs = a.medians.get(replace(where, method=other or where.method), {})
        launches = mine.keys() & theirs.keys()
        if not launches:
            not_measured += 1
            continue
        log = sum(theirs[launch] - mine[launch] for launch in sorted(launches)) / len(launches)
        logs.append((log, replace(where, method=other or where.method)))
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


def _of_rules(rules: list[Rule], where: Where, features: Features) -> str | None:
    layout = where.operation, where.nodes, where.ppn
    rule = matching(rules, *layout, features.mmax, features.mavg, where.bytes)
    return rule.method if rule else None
