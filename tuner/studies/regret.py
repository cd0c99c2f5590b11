"""The regret of a table on problems that were not used to make it.

Random sizes, process counts and patterns are measured anew. One launch of all methods names the
best of a problem; further launches measure it, the library's choice by the table, and the choices
of other rules, and each choice is compared with the fastest of them. Noise makes regret larger,
never smaller. Measurements are used as they are.
"""

import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np

from tuner.campaign.launches import measure
from tuner.domain.operations import AUTO, COLLECTIVES, DEFAULT_METHODS
from tuner.domain.tables import Table
from tuner.errors import SwitchpointError
from tuner.machine.mpi import LaunchCommand
from tuner.machine.systems import kernels, launch_on
from tuner.rawfile.reading import BenchFile

WORSE = 0.02
"""The excess over the default's time above which a choice counts as slower."""

SMALLEST_BYTES, LARGEST_BYTES = 8, 131072
RULES: dict[str, Callable[[int], str]] = {
    "PETSc": lambda procs: "pcx" if procs <= 1024 else "nbx",
    "deal.II": lambda procs: "pex" if procs <= 99 else "nbx",
}
"""The methods that other libraries choose for a discovery, by our names."""


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
    """

    problem: RegretProblem
    size_bytes: int
    chosen_by: str
    methods: dict[str, str]
    times_s: dict[str, float]

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
class RegretVerdict:
    """The summary of the outcomes; `gain` is the geometric mean of default / table.

    `causes` are the table's regret by the basis of its choices, the largest part first.
    """

    choosers: dict[str, Judgement]
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
    return RegretVerdict(
        choosers={name: _judgement(outcomes, name) for name in names},
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


def problems(table: Table, count: int, seed: int) -> Iterator[RegretProblem]:
    """Yield random problems of a table's operations, on layouts that were tuned or lie between.

    Those between have as many processes per node as two tuned ones, or as many nodes.
    """
    random = np.random.default_rng(seed)
    layouts: dict[str, set[tuple[int, int]]] = defaultdict(set)
    for point in table.points:
        layout = point.case.layout
        if layout.procs > 1:  # a process alone has nothing to choose
            layouts[point.case.operation].add((layout.nodes, layout.ppn))
    operations = sorted(layouts)
    for number in range(count):
        operation = operations[number % len(operations)]
        pairs = _neighbours(layouts[operation])
        first, last = pairs[int(random.integers(len(pairs)))]
        nodes, ppn = (
            round(math.exp(random.uniform(math.log(low), math.log(high))))
            for low, high in zip(first, last, strict=True)
        )
        logs = random.uniform(math.log(SMALLEST_BYTES), math.log(LARGEST_BYTES), 3)
        sizes = sorted({max(8, round(math.exp(log) / 8) * 8) for log in logs})
        yield RegretProblem(
            operation,
            _pattern(operation, nodes * ppn, random),
            *(nodes, ppn, tuple(sizes)),
            (nodes, ppn) in layouts[operation],
        )


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
    """The settings of measurements. `path` has the table as the library reads it."""

    table: Table
    path: Path
    system: str  # ReFrame's name, such as local:cpu
    environment: str
    launches: int
    budget_s: float


def outcomes(problem: RegretProblem, request: RegretRequest) -> Iterator[RegretOutcome]:
    """Measure a problem: first a launch to name the best at each size, then those that count.

    Raises LaunchError, NodesError, KernelsError, RegretError.
    """
    built = kernels(request.system, request.environment)
    swpbench = built.swpbench
    start = launch_on(
        request.system, built.mpi, problem.procs, problem.ppn, built.root, problem.operation
    )
    tables = {"SWITCHPOINT_TABLE": str(request.path), "SWITCHPOINT_USER_TABLE": ""}
    start = replace(start, env=start.env | tables)
    first = measure(start, swpbench, _options(problem, request, ["all", AUTO], 0))
    chosen = {size: _choices(problem, first, size) for size in problem.sizes}
    chosen = {size: methods for size, methods in chosen.items() if methods}
    knowledge = {
        size: known(selected.described, request) for size, selected in first.selected.items()
    }
    if not chosen:
        raise RegretError(
            f"{problem.operation} {problem.pattern} on {problem.procs} processes: nothing could be "
            "measured in the launch's time; give a larger --budget"
        )
    for size, methods, times_s in _counted(problem, request, start, swpbench, chosen):
        yield RegretOutcome(problem, size, knowledge[size], methods, times_s)


def known(described: str, request: RegretRequest) -> str:
    """Return the basis of the table's choice, from the library's description of the choice.

    It is the status of the rule that was used, "interpolated", or why none was.
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
    return "interpolated" if rule.interpolated else rule.evidence.status


def _counted(
    problem: RegretProblem,
    request: RegretRequest,
    start: LaunchCommand,
    swpbench: Path,
    chosen: dict[int, dict[str, str]],
) -> Iterator[tuple[int, dict[str, str], dict[str, float]]]:
    racing = sorted({method for methods in chosen.values() for method in methods.values()})
    logs: dict[int, dict[str, list[float]]] = {size: {} for size in chosen}
    for number in range(1, request.launches + 1):
        file = measure(start, swpbench, _options(problem, request, racing, number))
        for (method, size), median_s in medians(file).items():
            if size in logs:
                logs[size].setdefault(method, []).append(math.log(median_s))
    for size, methods in chosen.items():
        if all(len(logs[size].get(method, ())) == request.launches for method in methods.values()):
            times_s = {
                name: math.exp(float(np.mean(logs[size][method])))
                for name, method in methods.items()
            }
            yield size, methods, times_s


def _options(
    problem: RegretProblem, request: RegretRequest, methods: list[str], number: int
) -> list[str]:
    return [
        *("--op", problem.operation, "--pattern", problem.pattern, "--quiet"),
        *("--sizes", ",".join(map(str, problem.sizes)), "--methods", ";".join(methods)),
        *("--budget", str(request.budget_s), "--launch", str(number), "--seed", str(number + 1)),
        *("--system", request.system, "--environment", request.environment),
    ]


def _choices(problem: RegretProblem, file: BenchFile, size: int) -> dict[str, str]:
    """Return methods by chooser at a size; empty where not all of them were measured."""
    measured = {
        method: median_s
        for (method, of_size), median_s in medians(file).items()
        if of_size == size and method != AUTO
    }
    default = DEFAULT_METHODS[problem.operation]
    selected = file.selected.get(size)
    if default not in measured or selected is None or selected.method not in measured:
        return {}
    best = min(measured, key=lambda method: measured[method])
    methods = {"table": selected.method, "best": best, "default": default}
    if problem.operation == "discovery":
        methods |= {name: rule(problem.procs) for name, rule in RULES.items()}
    return methods


def medians(file: BenchFile) -> dict[tuple[str, int], float]:
    """Return the median seconds of each case, by method and size."""
    ends = np.cumsum([case.samples for case in file.cases])[:-1]
    samples = np.split(file.samples_s, ends)
    return {
        (case.method, case.size_bytes): float(np.median(each))
        for case, each in zip(file.cases, samples, strict=True)
    }
