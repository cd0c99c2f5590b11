"""Problems measured anew: first by all methods, then by the few that may be the best."""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tuner.domain.cases import DegreeClass
from tuner.domain.operations import AUTO, COLLECTIVES, DEFAULT_METHODS, method_word
from tuner.domain.tables import Table
from tuner.machine.simulation import machines
from tuner.rawfile.reading import BenchFile
from tuner.selection import match
from tuner.stats import Floats
from tuner.studies.regret.judging import RegretOutcome, least_found
from tuner.studies.regret.problems import RegretProblem

CHOOSING_LAUNCHES = 2
"""Launches of all methods, which name the contenders."""

CONTENDERS, CONTENDING = 4, 1.5
"""Most contenders at a size, and the most time of one over that of the fastest."""

RESOLVED = 0.05
"""The difference to be found before the launches of a problem end."""

LEAST_LAUNCHES = 4
"""Launches of a problem that count, two for each half; exact times need one for each."""

RULES: dict[str, Callable[[int], str]] = {
    "PETSc": lambda procs: "pcx" if procs <= 1024 else "nbx",
    "deal.II": lambda procs: "pex" if procs <= 99 else "nbx",
}
"""The methods that other libraries choose for a discovery, by our names."""

Logs = dict[tuple[str, int], Floats]
"""Logarithms of the medians of launches in seconds, by method and size; NaN without samples."""


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


class WantedLaunch(NamedTuple):
    """A launch of methods on a problem; `number` distinguishes it from the others."""

    problem: RegretProblem
    methods: tuple[str, ...]
    number: int


Measure = Callable[[Sequence[Sequence[WantedLaunch]]], list[list[BenchFile]]]
"""Function that measures launches, given by problem.

It returns their files by problem, none for a problem of which a launch or the job failed.
It raises NodesError, NetworkError, DispatchError.
"""


def outcomes(
    problems: Sequence[RegretProblem], request: RegretRequest, measure: Measure, at_once: bool
) -> Iterator[RegretOutcome]:
    """Measure problems: first launches to name the contenders, then those that count.

    After the least launches, the next one of each problem that is not resolved follows, or all that
    it may have `at_once`, as where each call of `measure` waits in a queue. Sizes for which the
    time of the launches did not suffice have no outcome.

    Raise what `measure` raises.
    """
    exact = machines.is_simulated(request.system)
    choosing, least = (1, 2) if exact else (CHOOSING_LAUNCHES, LEAST_LAUNCHES)
    wanted = [
        [WantedLaunch(problem, ("all", AUTO), number) for number in range(choosing)]
        for problem in problems
    ]
    races = [
        _Race.of(problem, files, request.rival)
        for problem, files in zip(problems, measure(wanted), strict=True)
        if files
    ]
    racing, made, count = [race for race in races if race.chosen], 0, least
    while racing:
        wanted = [
            [
                WantedLaunch(race.problem, race.methods, choosing + made + number)
                for number in range(count)
            ]
            for race in racing
        ]
        made, left = made + count, request.launches - made - count
        found = list(zip(racing, measure(wanted), strict=True))
        for race, files in found:
            race.files.extend(files)
        racing = [race for race, files in found if files and not race.is_resolved(least)]
        count = left if at_once else 1
        if left <= 0:
            break
    for race in races:
        yield from race.outcomes(request, least)


def whole_launches(logs: Logs, methods: Sequence[str], size: int) -> Floats:
    """Return the logarithms of seconds by method and launch, of launches that measured them all."""
    if not all((method, size) in logs for method in methods):
        return np.empty((len(methods), 0))
    its = np.array([logs[method, size] for method in methods])
    return its[:, ~np.isnan(its).any(axis=0)]


@dataclass(frozen=True, slots=True)
class _Choices:
    """The methods at one size: by chooser, and all that race there."""

    methods: dict[str, str]
    racing: list[str]

    def variance(self, times: Floats) -> float | None:
        """Return the mean variance between launches of the others' logarithms over the table's.

        It is None where there are no others.
        """
        over = np.delete(times, own := self.racing.index(self.methods["table"]), 0) - times[own]
        return float(over.var(axis=1, ddof=1).mean()) if len(over) else None


@dataclass(frozen=True, slots=True)
class _Race:
    """The contenders for a problem by size, what chose them, and the launches that count."""

    problem: RegretProblem
    chosen: dict[int, _Choices]
    described: dict[int, str]
    files: list[BenchFile]

    @classmethod
    def of(cls, problem: RegretProblem, first: Sequence[BenchFile], rival: Table | None) -> "_Race":
        """Return the race that follows from the first launches; its sizes are those measured."""
        logs = _logs(first)
        chosen = {size: _choices(problem, first[0], logs, size, rival) for size in problem.sizes}
        chosen = {size: choices for size, choices in chosen.items() if choices.methods}
        described = {size: first[0].selected[size].described for size in chosen}
        return cls(problem, chosen, described, [])

    @property
    def methods(self) -> tuple[str, ...]:
        """Return all contenders, by the names that stand for no family."""
        names = {name for choices in self.chosen.values() for name in choices.racing}
        return tuple(map(method_word, sorted(names)))

    def is_resolved(self, least: int) -> bool:
        """Return whether the launches would show a difference of RESOLVED, in the mean of sizes.

        Sizes at which one method races alone have none to show.
        """
        logs = _logs(self.files)
        found = [
            (times.shape[1], choices.variance(times))
            for size, choices in self.chosen.items()
            if (times := whole_launches(logs, choices.racing, size)).shape[1] > 1
        ]
        if not found or min(launches for launches, _ in found) < least:
            return False
        compared = [(launches, its) for launches, its in found if its is not None]
        if not compared:
            return True
        launches, variance = min(compared)[0], float(np.mean([its for _, its in compared]))
        return least_found(math.sqrt(variance / launches), launches - 1) <= RESOLVED

    def outcomes(self, request: RegretRequest, least: int) -> Iterator[RegretOutcome]:
        """Yield the outcomes of the sizes that enough launches measured whole."""
        logs = _logs(self.files)
        for size, choices in self.chosen.items():
            times = whole_launches(logs, choices.racing, size)
            if times.shape[1] >= least:
                chosen_by = known(self.described[size], request)
                yield _outcome(self.problem, size, chosen_by, choices, times)


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
    used = re.search(rf", chosen by rule {re.escape(str(request.path))}:([0-9]+)", described)
    if used is None:
        if ", chosen by the model " in described:
            return "no rule, estimated"
        return "not applicable" if " is passed over: " in described else "no rule"
    above = request.path.read_text().splitlines()[: int(used[1])]
    rule = request.table.rules[sum(line.startswith("rule ") for line in above) - 1]
    return "inferred" if rule.inferred else rule.evidence.status


def rivals(rival: Table, problem: RegretProblem, size_bytes: int) -> dict[str, str]:
    """Return what a rival table chooses for a collective: by its rules, and by its means alone.

    These are at the nearest size that it measured on this layout; nothing where it has none.
    """
    degree_class = DegreeClass(problem.operation, problem.nodes, problem.ppn)
    default = DEFAULT_METHODS[problem.operation]
    rule = match.first(rival.rules, degree_class, size_bytes)
    found = {"rival": rule.method if rule else default}
    here = [point for point in rival.points if point.case.of_any_degree == degree_class]
    if here:
        nearest = min(here, key=lambda point: abs(math.log(max(point.case.bytes, 1) / size_bytes)))
        least = min(nearest.ratios, key=lambda its: its.ratio, default=None)
        fastest = least.method if least and least.ratio < 1 else default
        found["rival's least mean"] = fastest
    return found


def _choices(
    problem: RegretProblem, file: BenchFile, logs: Logs, size: int, rival: Table | None
) -> _Choices:
    """Return the methods at a size; none where the table's or the default was not measured.

    Other libraries have no choice where theirs was not, as it may be off at the site.
    """
    measured = {method: float(np.nanmean(its)) for (method, of), its in logs.items() if of == size}
    measured.pop(AUTO, None)
    default = DEFAULT_METHODS[problem.operation]
    selected = file.selected.get(size)
    if default not in measured or selected is None or selected.method not in measured:
        return _Choices({}, [])
    methods = {"table": selected.method, "default": default}
    if problem.operation == "discovery":
        others = {name: rule(problem.procs) for name, rule in RULES.items()}
        methods |= {name: method for name, method in others.items() if method in measured}
    if rival and problem.operation in COLLECTIVES:
        asked = rivals(rival, problem, size).items()
        methods |= {name: method if method in measured else default for name, method in asked}
    fastest = sorted(measured, key=lambda method: measured[method])[:CONTENDERS]
    near = measured[fastest[0]] + math.log(CONTENDING)
    contenders = {method for method in fastest if measured[method] <= near}
    return _Choices(methods, sorted(contenders.union(methods.values())))


def _logs(files: Iterable[BenchFile]) -> Logs:
    launches = [file.medians_s() for file in files]
    return {
        case: np.log([medians_s.get(case, math.nan) for medians_s in launches])
        for case in sorted(set().union(*launches))
    }
