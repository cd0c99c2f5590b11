"""The regret of a table on problems that were not used to make it.

Random sizes, process counts and patterns are measured anew. Two launches of all methods name the
few that may be the best of a problem; further launches measure them, the library's choice by the
table, and the choices of other rules and of a rival table, until they would show a difference of
5 %. Each choice is compared with the fastest of them. Noise makes regret larger, never smaller;
what an oracle loses that chooses by half of the launches says by how much. Measurements are used as
they are.
"""

import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np

from tuner import stats
from tuner.campaign.launches import measure
from tuner.domain.cases import Place
from tuner.domain.operations import (
    AUTO,
    COLLECTIVES,
    DEFAULT_METHODS,
    NO_DATA,
    NO_DATA_BYTES,
    alone,
)
from tuner.domain.tables import Table
from tuner.errors import SwitchpointError
from tuner.machine.simulation import machines
from tuner.machine.systems import kernels, launch_on
from tuner.rawfile.reading import BenchFile
from tuner.selection import match
from tuner.stats import Floats

WORSE = 0.02
"""The excess over the default's time above which a choice counts as slower."""

CHOOSING_LAUNCHES = 2
"""Launches of all methods, which name the contenders."""

CONTENDERS, CONTENDING = 4, 1.5
"""Most contenders at a size, and the most time of one over that of the fastest."""

RESOLVED = 0.05
"""The difference to be found before the launches of a problem end."""

ERROR_LEVEL, POWER = 0.05, 0.8
"""Probabilities that a difference is found where there is none, and where there is one."""

LEAST_LAUNCHES = 4
"""Launches of a problem that count, two for each half; exact times need one for each."""

SMALLEST_BYTES, LARGEST_BYTES = 8, 131072
RULES: dict[str, Callable[[int], str]] = {
    "PETSc": lambda procs: "pcx" if procs <= 1024 else "nbx",
    "deal.II": lambda procs: "pex" if procs <= 99 else "nbx",
}
"""The methods that other libraries choose for a discovery, by our names."""


Logs = dict[tuple[str, int], list[float]]
"""Logarithms of the medians of launches in seconds, by method and size."""


class RegretError(SwitchpointError):
    """Error raised when the regret cannot be measured; the message says why."""


@dataclass(frozen=True, slots=True)
class RegretProblem:
    """A problem to measure anew. `seen` says whether such processes were tuned."""

    operation: str
    pattern: str
    nodes: int
    ppn: int
    sizes: tuple[int, ...]
    seen: bool

    @property
    def procs(self) -> int:
        """Return the processes on all nodes."""
        return self.nodes * self.ppn


@dataclass(frozen=True, slots=True)
class RegretOutcome:
    """One problem at one size: the chosen, best and other methods, and their seconds.

    `times_s` are geometric means over the launches that count, by the name of the chooser: "table",
    "best", "default", and those of RULES. `chosen_by` is the basis of the table's choice.
    `variance` is that of the logarithms of contenders' times over the table's between launches, and
    `oracle` the regret of the best of one half of the launches in the other.
    """

    problem: RegretProblem
    size_bytes: int
    chosen_by: str
    methods: dict[str, str]
    times_s: dict[str, float]
    launches: int
    variance: float
    oracle: float

    def regret(self, chooser: str = "table") -> float:
        """Return time / least time of all that were measured again - 1."""
        return self.times_s[chooser] / min(self.times_s.values()) - 1

    @property
    def over_default(self) -> float:
        """Return the table's time / time of the default."""
        return self.times_s["table"] / self.times_s["default"]


@dataclass(frozen=True, slots=True)
class Judgement:
    """Regret of one chooser over all its problems."""

    cases: int
    mean: float
    p95: float


@dataclass(frozen=True, slots=True)
class Resolution:
    """What the launches of one operation could show at one size of one problem.

    `finds` is the smallest regret that they would have found with the probability POWER, and
    `oracle` the mean regret of an oracle: what noise alone costs.
    """

    cases: int
    launches: float
    table: float
    finds: float
    oracle: float


@dataclass(frozen=True, slots=True)
class RegretVerdict:
    """The summary of the outcomes; `gain` is the geometric mean of default / table.

    `causes` are the table's regret by the basis of its choices, the largest part first.
    """

    choosers: dict[str, Judgement]
    operations: dict[str, Resolution]
    causes: dict[str, Judgement]
    worse: float
    gain: float
    unseen: Judgement | None


def judge(outcomes: Sequence[RegretOutcome]) -> RegretVerdict:
    """Summarise outcomes; there is at least one."""
    names = dict.fromkeys(name for outcome in outcomes for name in outcome.times_s)
    del names["best"]
    unseen = [outcome for outcome in outcomes if not outcome.problem.seen]
    ratios = np.array([outcome.over_default for outcome in outcomes])
    causes: dict[str, list[RegretOutcome]] = defaultdict(list)
    for outcome in outcomes:
        causes[outcome.chosen_by].append(outcome)
    judged = {cause: _judgement(of_cause, "table") for cause, of_cause in causes.items()}
    operations = sorted({outcome.problem.operation for outcome in outcomes})
    return RegretVerdict(
        choosers={name: _judgement(outcomes, name) for name in names},
        operations={
            name: _resolution([each for each in outcomes if each.problem.operation == name])
            for name in operations
        },
        causes=dict(sorted(judged.items(), key=lambda of: -of[1].mean * of[1].cases)),
        worse=float(np.mean(ratios > 1 + WORSE)),
        gain=float(np.exp(-np.log(ratios).mean())),
        unseen=_judgement(unseen, "table") if unseen else None,
    )


@dataclass(frozen=True, slots=True)
class LimitedFigure:
    """A figure, and its upper limit; None where the figure is unknown."""

    what: str
    achieved: float | None
    target: float

    @property
    def met(self) -> bool:
        """Return whether the figure is known and not above the target."""
        return self.achieved is not None and self.achieved <= self.target


def lines(verdict: RegretVerdict, cost: float | None) -> list[LimitedFigure]:
    """Return every target with the figure achieved; `cost` is a share of measuring everything."""
    table = verdict.choosers["table"]
    found = [
        LimitedFigure("mean regret", table.mean, 0.02),
        LimitedFigure("regret, 95th percentile", table.p95, 0.08),
        LimitedFigure("share more than 2 % slower than the default", verdict.worse, 0.01),
        LimitedFigure("cost as a share of measuring everything", cost, 0.15),
    ]
    if verdict.unseen:
        found.insert(
            2, LimitedFigure("mean regret, processes never measured", verdict.unseen.mean, 0.05)
        )
    return found


def _judgement(outcomes: Sequence[RegretOutcome], chooser: str) -> Judgement:
    regrets = [outcome.regret(chooser) for outcome in outcomes if chooser in outcome.times_s]
    return Judgement(len(regrets), float(np.mean(regrets)), float(np.quantile(regrets, 0.95)))


def _resolution(outcomes: Sequence[RegretOutcome]) -> Resolution:
    launches = np.array([outcome.launches for outcome in outcomes])
    variances = np.array([outcome.variance for outcome in outcomes])
    # The sizes of a problem share launches, and so their effects.
    freedom = sum({outcome.problem: outcome.launches - 1 for outcome in outcomes}.values())
    variance = float(np.average(variances, weights=launches - 1) * np.mean(1 / launches))
    return Resolution(
        cases=len(outcomes),
        launches=float(launches.mean()),
        table=float(np.mean([outcome.regret() for outcome in outcomes])),
        finds=_found(math.sqrt(variance), freedom),
        oracle=float(np.mean([outcome.oracle for outcome in outcomes])),
    )


def _found(error: float, freedom: int) -> float:
    """Return the least difference that is found with the probability POWER."""
    quantiles = (stats.student(freedom, level) for level in (1 - ERROR_LEVEL, POWER))
    return math.expm1(sum(quantiles) * error)


def problems(
    table: Table, count: int, seed: int, procs: Sequence[int] = (), patterns: Sequence[str] = ()
) -> Iterator[RegretProblem]:
    """Yield random problems of a table's operations, on layouts that were tuned or lie between.

    Those between have as many processes per node as two tuned ones, or as many nodes. With `procs`
    only layouts of so many processes count, and with `patterns` exchanges have these; both in turn.
    Raises RegretError where no layout has so many processes.
    """
    random = np.random.default_rng(seed)
    layouts: dict[str, set[tuple[int, int]]] = defaultdict(set)
    for point in table.points:
        layout = point.case.layout
        if layout.procs > 1:  # a process alone has nothing to choose
            layouts[point.case.operation].add((layout.nodes, layout.ppn))
    asked = {name: _asked(_neighbours(tuned), procs) for name, tuned in sorted(layouts.items())}
    operations = [name for name, places in asked.items() if places or not procs]
    if not operations:
        raise RegretError(
            f"no tuned layout has {', '.join(map(str, procs))} processes, nor any between two"
        )
    for number in range(count):
        operation, turn = operations[number % len(operations)], number // len(operations)
        if procs:
            nodes, ppn = asked[operation][turn % len(asked[operation])]
        else:
            pairs = _neighbours(layouts[operation])
            first, last = pairs[int(random.integers(len(pairs)))]
            nodes, ppn = (
                round(math.exp(random.uniform(math.log(low), math.log(high))))
                for low, high in zip(first, last, strict=True)
            )
        logs = random.uniform(math.log(SMALLEST_BYTES), math.log(LARGEST_BYTES), 3)
        sizes = sorted({max(8, round(math.exp(log) / 8) * 8) for log in logs})
        if operation in NO_DATA:
            sizes = [NO_DATA_BYTES]
        pattern = _pattern(operation, nodes * ppn, random)
        if patterns and operation not in COLLECTIVES:
            pattern = patterns[turn % len(patterns)]
        seen = (nodes, ppn) in layouts[operation]
        yield RegretProblem(operation, pattern, nodes, ppn, tuple(sizes), seen)


def _asked(
    pairs: Sequence[tuple[tuple[int, int], tuple[int, int]]], procs: Sequence[int]
) -> list[tuple[int, int]]:
    """Return the layouts of or between pairs that have one of the numbers of processes."""
    found = {
        (nodes, number // nodes)
        for (low, high) in pairs
        for number in procs
        for nodes in range(low[0], min(high[0], number) + 1)
        if number % nodes == 0 and low[1] <= number // nodes <= high[1]
    }
    return sorted(found, key=lambda layout: (layout[0] * layout[1], layout))


def _neighbours(layouts: set[tuple[int, int]]) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Return pairs next to each other in nodes or processes per node.

    Without any, each layout is paired with itself.
    """
    by_nodes, by_ppn = sorted(layouts), sorted(layouts, key=lambda layout: layout[::-1])
    pairs = [(a, b) for a, b in pairwise(by_nodes) if a[0] == b[0]]
    pairs += [(a, b) for a, b in pairwise(by_ppn) if a[1] == b[1]]
    return pairs or [(layout, layout) for layout in by_nodes]


def _pattern(operation: str, procs: int, random: np.random.Generator) -> str:
    """Return a pattern that no campaign has: seeds start at a thousand."""
    if operation in COLLECTIVES:
        return "blocks"
    seed = int(random.integers(1000, 1_000_000))
    if random.random() < 0.3:
        return f"hub:hubs={int(random.integers(1, procs))},seed={seed}"
    return f"random:degree={int(random.integers(1, min(procs, 12)))},seed={seed}"


@dataclass(frozen=True, slots=True)
class RegretRequest:
    """The settings of measurements. `path` has the table as the library reads it.

    `rival` is another table, whose choices for collectives are measured as well.
    """

    table: Table
    path: Path
    system: str  # ReFrame's name, such as local:cpu
    environment: str
    launches: int
    budget_s: float
    rival: Table | None = None


def outcomes(problem: RegretProblem, request: RegretRequest) -> Iterator[RegretOutcome]:
    """Measure a problem: first launches to name the contenders, then those that count.

    Raises LaunchError, NodesError, KernelsError, RegretError.
    """
    built = kernels(request.system, request.environment)
    start = launch_on(
        request.system, built.mpi, problem.procs, problem.ppn, built.root, problem.operation
    )
    tables = {"SWITCHPOINT_TABLE": str(request.path), "SWITCHPOINT_USER_TABLE": ""}
    start = replace(start, env=start.env | tables)

    def launch(number: int, methods: Sequence[str]) -> BenchFile:
        return measure(start, built.swpbench, _options(problem, request, methods, number))

    exact = machines.is_simulated(request.system)
    choosing, least = (1, 2) if exact else (CHOOSING_LAUNCHES, LEAST_LAUNCHES)
    first = [launch(number, ["all", AUTO]) for number in range(choosing)]
    logs = _logs(first)
    chosen = {
        size: _choices(problem, first[0], logs, size, request.rival) for size in problem.sizes
    }
    chosen = {size: choices for size, choices in chosen.items() if choices.methods}
    if not chosen:
        raise RegretError(
            f"{problem.operation} {problem.pattern} on {problem.procs} processes: nothing could be "
            "measured in the launch's time; give a larger --budget"
        )
    racing = sorted({name for choices in chosen.values() for name in choices.racing})
    files: list[BenchFile] = []
    while len(files) < request.launches:
        files += [launch(choosing + len(files), [*map(alone, racing)])]
        if len(files) >= least and _resolved(chosen, _logs(files), len(files)):
            break
    logs = _logs(files)
    for size, choices in chosen.items():
        times = choices.times(logs, size, len(files))
        if times is not None:
            described = first[0].selected[size].described
            yield _outcome(problem, size, known(described, request), choices, times)


@dataclass(frozen=True, slots=True)
class _Choices:
    """The methods at one size: by chooser, and all that race there."""

    methods: dict[str, str]
    racing: list[str]

    def times(self, logs: Logs, size: int, launches: int) -> Floats | None:
        """Return the logarithms of seconds by method and launch, None if any is missing."""
        its = [logs.get((name, size), []) for name in self.racing]
        return np.array(its) if all(len(each) == launches for each in its) else None

    def variance(self, times: Floats) -> float:
        """Return the mean variance between launches of the others' logarithms over the table's."""
        over = np.delete(times, own := self.racing.index(self.methods["table"]), 0) - times[own]
        return float(over.var(axis=1, ddof=1).mean()) if len(over) else 0.0


def _resolved(chosen: Mapping[int, _Choices], logs: Logs, launches: int) -> bool:
    """Return whether the launches would show a difference of RESOLVED, in the mean over sizes."""
    variances = [
        choices.variance(times)
        for size, choices in chosen.items()
        if (times := choices.times(logs, size, launches)) is not None
    ]
    if not variances:
        return False
    return _found(math.sqrt(float(np.mean(variances)) / launches), launches - 1) <= RESOLVED


def _outcome(
    problem: RegretProblem, size: int, chosen_by: str, choices: _Choices, times: Floats
) -> RegretOutcome:
    means = dict(zip(choices.racing, times.mean(axis=1).tolist(), strict=True))
    methods = choices.methods | {"best": min(means, key=lambda name: means[name])}
    halves = times[:, 0::2].mean(axis=1), times[:, 1::2].mean(axis=1)
    lost = [
        math.expm1(judge[int(np.argmin(mine))] - judge.min())
        for mine, judge in (halves, halves[::-1])
    ]
    return RegretOutcome(
        *(problem, size, chosen_by, methods),
        {chooser: math.exp(means[method]) for chooser, method in methods.items()},
        launches=times.shape[1],
        variance=choices.variance(times),
        oracle=float(np.mean(lost)),
    )


def known(described: str, request: RegretRequest) -> str:
    """Return the basis of the table's choice, from the library's description of the choice.

    It is the status of the rule that was used, "inferred", or why none was.
    """
    if not described:  # built by an earlier version of the kernels
        return "not stated"
    used = re.search(rf", chosen by rule {re.escape(str(request.path))}:(\d+)", described)
    if used is None:
        if ", chosen by the model " in described:
            return "no rule, estimated"
        return "not applicable" if " is passed over: " in described else "no rule"
    above = request.path.read_text().splitlines()[: int(used[1])]
    rule = request.table.rules[sum(line.startswith("rule ") for line in above) - 1]
    return "inferred" if rule.inferred else rule.evidence.status


def _options(
    problem: RegretProblem, request: RegretRequest, methods: Sequence[str], number: int
) -> list[str]:
    return [
        *("--op", problem.operation, "--pattern", problem.pattern, "--quiet"),
        *("--sizes", ",".join(map(str, problem.sizes)), "--methods", ";".join(methods)),
        *("--budget", str(request.budget_s), "--launch", str(number), "--seed", str(number + 1)),
        *("--system", request.system, "--environment", request.environment),
    ]


def rivals(rival: Table, problem: RegretProblem, size_bytes: int) -> dict[str, str]:
    """Return what a rival table chooses for a collective: by its rules, and by its means alone.

    These are at the nearest size that it measured on this layout; nothing where it has none.
    """
    place = Place(problem.operation, problem.nodes, problem.ppn)
    default = DEFAULT_METHODS[problem.operation]
    rule = match.first(rival.rules, place, size_bytes)
    found = {"rival": rule.method if rule else default}
    here = [point for point in rival.points if point.case.place == place]
    if here:
        nearest = min(here, key=lambda point: abs(math.log(max(point.case.bytes, 1) / size_bytes)))
        least = min(nearest.ratios, key=lambda its: its.ratio, default=None)
        fastest = least.method if least and least.ratio < 1 else default
        found["rival's least mean"] = fastest
    return found


def _choices(
    problem: RegretProblem, file: BenchFile, logs: Logs, size: int, rival: Table | None
) -> _Choices:
    """Return the methods at a size; none where not all of them were measured."""
    measured = {method: float(np.mean(its)) for (method, of), its in logs.items() if of == size}
    measured.pop(AUTO, None)
    default = DEFAULT_METHODS[problem.operation]
    selected = file.selected.get(size)
    if default not in measured or selected is None or selected.method not in measured:
        return _Choices({}, [])
    methods = {"table": selected.method, "default": default}
    if problem.operation == "discovery":
        methods |= {name: rule(problem.procs) for name, rule in RULES.items()}
    if rival and problem.operation in COLLECTIVES:
        asked = rivals(rival, problem, size).items()
        methods |= {name: method if method in measured else default for name, method in asked}
    fastest = sorted(measured, key=lambda method: measured[method])[:CONTENDERS]
    near = measured[fastest[0]] + math.log(CONTENDING)
    contenders = {method for method in fastest if measured[method] <= near}
    return _Choices(methods, sorted(contenders.union(methods.values())))


def _logs(files: Iterable[BenchFile]) -> Logs:
    found: Logs = defaultdict(list)
    for file in files:
        for case, median_s in medians(file).items():
            found[case].append(math.log(median_s))
    return found


def medians(file: BenchFile) -> dict[tuple[str, int], float]:
    """Return the median seconds of each case, by method and size."""
    ends = np.cumsum([case.samples for case in file.cases])[:-1]
    samples = np.split(file.samples_s, ends)
    return {
        (case.method, case.size_bytes): float(np.median(each))
        for case, each in zip(file.cases, samples, strict=True)
    }
