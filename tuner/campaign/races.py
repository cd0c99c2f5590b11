"""Results of races so far: the samples of each method, and its time at other sizes.

The module does no input or output.
"""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import numpy as np

from tuner.campaign.plans import PlannedCase, RacePlan
from tuner.domain.records import Cell

Baseline = Callable[[PlannedCase, str, int], float | None]
"""Function from a case, method and size to the seconds a model predicts, or None without one."""


class Samples(NamedTuple):
    """The samples of one launch."""

    rounds: np.ndarray
    seconds: np.ndarray


Race = dict[str, dict[int, Samples]]
"""The samples at one size, by method and launch."""


def races(plan: RacePlan, cells: Iterable[Cell]) -> dict[int, dict[int, Race]]:
    """Return the measured samples of every case, by size."""
    case_of = {task.number: task.case for task in plan.tasks if not task.staggered}
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
