"""Results of races so far: the time of each method, the losers, and the samples still needed.

The module does no input or output.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import numpy as np

from tuner import stats
from tuner.campaign.plans import Plan, PlannedCase
from tuner.domain.records import Cell
from tuner.selection.decisions import ERROR_LEVEL
from tuner.selection.intervals import NEARLY
from tuner.selection.ratios import mean, paired

LOOKS = 2
"""Number of times that a race is examined to drop losers."""

MOST_SAMPLES = 40
FEWEST_SAMPLES = 17
"""Least number of samples: four may be disturbed, and the others still confirm a winner."""

SHARPNESS = 6.0
"""Gap between two methods, in errors of a launch, at which five launches distinguish them."""

Baseline = Callable[[PlannedCase, str, int], float | None]
"""Function from a case, method and size to the seconds a model predicts, or None without one."""


class Samples(NamedTuple):
    """The samples of one launch."""

    rounds: np.ndarray
    seconds: np.ndarray


Race = dict[str, dict[int, Samples]]
"""The samples at one size, by method and launch."""


def races(plan: Plan, cells: Iterable[Cell]) -> dict[int, dict[int, Race]]:
    """Return the measured samples of every case, by size."""
    case_of = {task.number: task.case for task in plan.tasks}
    found: dict[int, dict[int, Race]] = defaultdict(lambda: defaultdict(lambda: defaultdict(dict)))
    for cell in cells:
        for part in cell.parts:
            number = int(part["number"])
            if number in case_of and cell.key.method not in plan.cases[case_of[number]].failed:
                samples = Samples(*cell.of_launch(int(part["launch"])))
                race = found[case_of[number]][cell.key.case.size_bytes]
                race[cell.key.method][number] = samples
    return found


class Times:
    """Predicted times of a case's methods, at and between the sizes at which they were measured.

    The logarithm of measured over modelled time is interpolated: the model gives the shape, the
    samples the height. Without a model this is a straight line between logarithms.
    """

    def __init__(self, case: PlannedCase, known: Mapping[int, Race], baseline: Baseline) -> None:
        self._case = case
        self._baseline = baseline
        self._corrections: dict[str, dict[int, float]] = defaultdict(dict)
        for size in sorted(known):
            for method, launches in known[size].items():
                logs = [math.log(float(np.median(each.seconds))) for each in launches.values()]
                self._corrections[method][size] = sum(logs) / len(logs) - self._modelled(
                    method, size
                )

    @property
    def methods(self) -> list[str]:
        """Return the methods that were measured."""
        return sorted(self._corrections)

    def at(self, size: int) -> dict[str, float]:
        """Return the logarithm of the seconds of each method."""
        return {method: self.log_s(method, size) for method in self.methods}

    def log_s(self, method: str, size: int) -> float:
        """Return the log of the seconds; beyond the outermost sizes the correction is constant."""
        sizes, corrections = zip(*self._corrections[method].items(), strict=True)
        correction = np.interp(math.log(size), np.log(sizes), corrections)
        return float(correction) + self._modelled(method, size)

    def _modelled(self, method: str, size: int) -> float:
        predicted_s = self._baseline(self._case, method, size)
        return math.log(predicted_s) if predicted_s else 0.0


def losers(race: Race, default: str) -> set[str]:
    """Return the methods that are slower than the best in each of at least two launches.

    The error level of one launch is divided among methods and looks; the default never loses.
    """
    if default not in race:
        return set()
    logs = {
        method: {number: math.log(float(np.median(each.seconds))) for number, each in its.items()}
        for method, its in race.items()
    }
    ratios = {method: paired(its, logs[default]) for method, its in logs.items()}
    best = min(filter(ratios.get, ratios), key=lambda method: mean(ratios[method].values()))
    level = 1 - ERROR_LEVEL / (len(race) * LOOKS)
    return {
        method
        for method in race.keys() - {best, default}
        if _is_slower(race[method], race[best], level)
    }


def _is_slower(launches: dict[int, Samples], best: dict[int, Samples], level: float) -> bool:
    both = sorted(launches.keys() & best.keys())
    return len(both) > 1 and all(
        stats.median_upper_bound(stats.paired_log_ratios(*best[n], *launches[n]), level) < 0
        for n in both[-2:]
    )


def samples_needed(race: Race, logs: Mapping[str, float], default: str) -> int:
    """Return how many samples make chance within a launch small against the gap to the best rival.

    The gap is that between the default and the best rival. Nothing is lost by choosing either of
    two that hardly differ, so a gap counts as at least NEARLY. `logs` are the logarithms of the
    seconds of the methods that race.
    """
    rival = min(logs.keys() - {default}, key=lambda method: logs[method])
    both = race.get(rival, {}).keys() & race.get(default, {}).keys()
    if not both:
        return MOST_SAMPLES
    of_launches = [stats.paired_log_ratios(*race[rival][n], *race[default][n]) for n in both]
    ratios = np.concatenate([ratios - np.median(ratios) for ratios in of_launches])
    gap = max(abs(logs[rival] - logs[default]), NEARLY)
    needed = (SHARPNESS * _error_of_one(ratios) / gap) ** 2
    return math.ceil(min(max(needed, FEWEST_SAMPLES), MOST_SAMPLES))


def _error_of_one(values: np.ndarray) -> float:
    """Return a median's error times the root of its count, for normal values with outliers."""
    low, high = np.quantile(values, [0.25, 0.75])
    return math.sqrt(math.pi / 2) * float(high - low) / 1.349
