"""Times of the methods in a plan's cases: measured in launches, and predicted at other sizes."""

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from tuner.campaign.plans import CaseKey, PlannedCase, RacePlan
from tuner.domain.operations import DEFAULT_METHODS, is_named
from tuner.domain.records import Cell, Header
from tuner.selection import off

Baseline = Callable[[PlannedCase, str, int], float | None]
"""Function from a case, method and size to the seconds a model predicts, or None without one."""


LogTimes = dict[str, dict[tuple[str, int], float]]
"""Logarithms of median seconds at one size, by method, and by campaign and number of a launch."""


def no_model(case: PlannedCase, method: str, size: int) -> float | None:
    """Return None: no model predicts times."""
    return None


@dataclass(frozen=True, slots=True)
class Measured:
    """All measurements that count for a plan, of its own campaign and of others, and predictions.

    `places` are those of the plan by the ids of the systems that the cells are of. Cells of other
    campaigns are of a case whose system, operation, pattern and layout are the same. `considered`
    are methods that launches of those campaigns measured, also where they could not, and
    `unscreened` those that the models ranked behind them.
    """

    cells: Sequence[Cell] = ()
    headers: Mapping[int, Header] = field(default_factory=dict)  # by launch
    places: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    considered: Mapping[CaseKey, Collection[str]] = field(default_factory=dict)
    unscreened: Mapping[CaseKey, Collection[str]] = field(default_factory=dict)
    baseline: Baseline = no_model

    def of_cases(self, plan: RacePlan) -> list[tuple[Cell, set[int]]]:
        """Return the cells in which ranks start together, with the cases of the plan they are of.

        Those of methods that may not race any more are left out.
        """
        own = {task.number: task.case for task in plan.tasks if not task.staggered}
        same: dict[CaseKey, set[int]] = defaultdict(set)
        for number, case in enumerate(plan.cases):
            same[case.key].add(number)
        found = []
        for cell in self.cells:
            key, its = cell.key, cell.key.case
            if key.campaign == plan.campaign:
                launched = set(cell.parts["number"].tolist())
                numbers = {own[number] for number in launched & own.keys()}
            elif not its.staggered and (place := self.places.get(key.system)):
                layout = its.layout.procs, its.layout.ppn
                numbers = {
                    number
                    for number in same.get((place, its.operation, its.pattern, *layout), ())
                    if plan.cases[number].sizes[0] <= its.size_bytes <= plan.cases[number].sizes[-1]
                    and _may_race(plan.cases[number], key.method)
                }
            else:
                continue
            numbers = {each for each in numbers if key.method not in plan.cases[each].failed}
            if numbers:
                found.append((cell, numbers))
        return found

    def offered(self, case: PlannedCase) -> list[str]:
        """Return the names of the methods that the kernels had in a case's last launch, if any."""
        its = case.environment, case.operation
        every = self.headers.values()
        found = [header for header in every if (header.environment, header.operation) == its]
        return max(found, key=lambda header: header.date).methods.split() if found else []


def _may_race(case: PlannedCase, method: str) -> bool:
    """Return whether a method that another campaign measured is among those of a case."""
    if method == DEFAULT_METHODS[case.operation]:
        return True
    if off.is_off_here(method):
        return False
    if case.offered:
        return method in case.offered
    return not case.methods or is_named(method, case.methods)


def log_times(
    plan: RacePlan, of_cases: Iterable[tuple[Cell, set[int]]]
) -> dict[int, dict[int, LogTimes]]:
    """Return the measured times of every case, by size."""
    own = {task.number: task.case for task in plan.tasks}
    found: dict[int, dict[int, LogTimes]] = defaultdict(
        lambda: defaultdict(lambda: defaultdict(dict))
    )
    for cell, numbers in of_cases:
        key, is_own = cell.key, cell.key.campaign == plan.campaign
        for launch, median_s in cell.parts[["number", "median_s"]].tolist():
            for number in numbers & {own.get(launch)} if is_own else numbers:
                race = found[number][key.case.size_bytes]
                race[key.method][key.campaign, launch] = math.log(median_s)
    return found


class Times:
    """Predicted times of a case's methods, at and between the sizes at which they were measured.

    The logarithm of measured over modelled time is interpolated: the model gives the shape, the
    samples the height. Where the model lacks a size at which the method was measured, or there is
    none, this is a straight line between logarithms. At other sizes that the model lacks, the
    method is not applicable.
    """

    def __init__(
        self, case: PlannedCase, known: Mapping[int, LogTimes], baseline: Baseline
    ) -> None:
        self._case = case
        logs: dict[str, dict[int, float]] = defaultdict(dict)
        for size in sorted(known):
            for method, launches in known[size].items():
                logs[method][size] = sum(launches.values()) / len(launches)
        self._baselines = {
            method: baseline if all(baseline(case, method, size) for size in of) else _one_second
            for method, of in logs.items()
        }
        self._corrections = {
            method: {size: log - self._modelled(method, size) for size, log in of.items()}
            for method, of in logs.items()
        }

    @property
    def methods(self) -> list[str]:
        """Return the methods that were measured."""
        return sorted(self._corrections)

    def at(self, size: int) -> dict[str, float]:
        """Return the logarithm of the seconds of each method that may be applicable at a size."""
        logs = {method: self._log_s(method, size) for method in self.methods}
        return {method: log for method, log in logs.items() if math.isfinite(log)}

    def _log_s(self, method: str, size: int) -> float:
        """Return the log of the seconds; beyond the outermost sizes the correction is constant."""
        sizes, corrections = zip(*self._corrections[method].items(), strict=True)
        correction = np.interp(math.log(size), np.log(sizes), corrections)
        return float(correction) + self._modelled(method, size)

    def _modelled(self, method: str, size: int) -> float:
        predicted_s = self._baselines[method](self._case, method, size)
        return math.log(predicted_s) if predicted_s else math.inf


def _one_second(case: PlannedCase, method: str, size: int) -> float:
    """Return the same time for all: a straight line needs no model."""
    return 1.0
