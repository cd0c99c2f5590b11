"""The choice of methods: from the cells of one system to a decision at every measured size.

A method takes the default's place only when it is shown to be faster, in launches that choose it
and again in one that does not (docs/explanation/statistics.md). A tie keeps the default. No input
or output.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from tuner import stats
from tuner.domain.cases import Place
from tuner.domain.operations import APART, AUTO, DEFAULT_METHODS, RULED_OPERATIONS
from tuner.domain.records import Cell
from tuner.domain.tables import Point, Rule
from tuner.machine.simulation import machines
from tuner.selection.intervals import MAVG_DIGITS, NEARLY, place_of
from tuner.selection.ratios import least_samples, mean, paired
from tuner.selection.rules import compile_rules
from tuner.selection.trust import NOISY_CLEAN, Trust

ERROR_LEVEL = 0.05
"""Probability of leaving the default at a size though nothing is faster; candidates share it."""

NOISY_ERROR_LEVEL = 0.01
"""The same where load, drift or the clock makes the measurements uncertain."""

MIN_LAUNCHES = 5
"""Launches needed to leave the default: all but the last choose, the last confirms."""

Ratios = dict["_InTrial", float]
"""Logarithms of time / time by launch, in the order of the launches."""


class _InTrial(NamedTuple):
    campaign: str
    number: int
    id: int
    case: tuple[str, int, int]  # pattern, processes, size: each has launches of its own


@dataclass(slots=True)
class _Trial:
    """All measurements at one size of one degree class.

    Methods stand side by side in launches; those that hold for a whole launch stand beside the
    others in the launch of the same number.
    """

    default: str
    medians: dict[str, dict[_InTrial, float]] = field(default_factory=lambda: defaultdict(dict))
    cells: dict[tuple[str, _InTrial], Cell] = field(default_factory=dict)
    counted: int = 0
    noisy: int = 0
    exact: bool = False

    def add(self, cell: Cell, trust: Trust) -> None:
        """Add a cell; the parts that nothing disturbed count."""
        key = cell.key
        case = (key.case.pattern, key.case.layout.procs, key.case.size_bytes)
        medians = self.medians[key.method]
        self.exact = machines.is_simulated(key.system)
        for part, refusal, noisy in trust.judged(cell):
            launch = _InTrial(key.campaign, part.number, part.launch, case)
            self.cells[key.method, launch] = cell
            if part.samples >= least_samples(cell) and not refusal:
                medians[launch] = math.log(part.median_s)
                self.counted += 1
                self.noisy += noisy

    @property
    def error_level(self) -> float:
        """Return the error level of leaving the default and of intervals."""
        return ERROR_LEVEL if self.noisy <= NOISY_CLEAN * self.counted else NOISY_ERROR_LEVEL

    @property
    def least(self) -> int:
        """Return how many launches have to choose a method."""
        return 1 if self.exact else MIN_LAUNCHES - 1

    def upper_bound(self, logs: Sequence[float], level: float) -> float:
        """Return an upper bound of launches' ratios, at least two where times are not exact."""
        return max(logs) if self.exact else stats.upper_bound(logs, level)

    def launches(self, method: str) -> list[_InTrial]:
        """Return the launches that have a method, also those that do not count."""
        return [launch for name, launch in self.cells if name == method]

    def ratios(self, method: str, other: str) -> Ratios:
        """Return the time of one method over another's in every launch that has both."""
        mine, others = self.medians[method], self.medians[other]
        pairs = ((launch, self.beside(launch, method, other)) for launch in mine)
        return paired(mine, {launch: others[its] for launch, its in pairs if its in others})

    def beside(self, launch: _InTrial, method: str, other: str) -> _InTrial | None:
        """Return the launch of another method that a method's own is compared with."""
        if (other, launch) in self.cells or not (method + other).count(APART):
            return launch
        numbered = (its for its in self.launches(other) if its._replace(id=launch.id) == launch)
        return max(numbered, default=None)

    def confirms(self, method: str, launch: _InTrial) -> bool:
        """Return whether one launch shows by itself that a method is faster than the default."""
        its = self.beside(launch, method, self.default) or launch
        mine = self.cells[method, launch].of_launch(launch.id)
        default = self.cells[self.default, its].of_launch(its.id)
        if self.exact:
            return float(np.median(mine[1])) < float(np.median(default[1]))
        if its == launch:
            ratios = stats.paired_log_ratios(*mine, *default)
            return stats.median_upper_bound(ratios, 1 - self.error_level) < 0
        # There are no common rounds, so the ends of both intervals are added.
        own = stats.median_upper_bound(np.log(mine[1].astype(float)))
        return own + stats.median_upper_bound(-np.log(default[1].astype(float))) < 0


class _Verdict:
    """The verdict of a trial on the methods that were in enough launches."""

    def __init__(self, trial: _Trial) -> None:
        self.trial = trial
        # Dropped methods count too: the winner was chosen among all of them.
        others = sorted({method for method, _ in trial.cells} - {trial.default})
        self.ratios = {method: trial.ratios(method, trial.default) for method in others}
        """Ratios of all methods to the default, empty for some."""
        self._choosing: dict[str, list[float]] = {}
        self._confirming: dict[str, list[_InTrial]] = {}
        for method, ratios in self.ratios.items():
            confirming = set({launch.case: launch for launch in ratios}.values())
            choosing = [
                ratio for launch, ratio in ratios.items() if trial.exact or launch not in confirming
            ]
            if len(choosing) >= trial.least:
                self._choosing[method] = choosing
                self._confirming[method] = sorted(confirming)
        self._level = 1 - trial.error_level / max(len(others), 1)
        self.method, self.status = self._decide()

    def _decide(self) -> tuple[str, str]:
        if self.ratios and all(map(self._seems_slower, self.ratios)):
            return self.trial.default, "default"
        if not self._choosing:
            return self.trial.default, "undecided"
        seeming = [method for method in self._choosing if self._seems_faster(method)]
        if seeming:
            winner = min(seeming, key=lambda method: mean(self._choosing[method]))
            return (winner, "faster") if self.is_faster(winner) else (self.trial.default, "tie")
        return self.trial.default, "tie"

    def _seems_faster(self, method: str) -> bool:
        return self.trial.upper_bound(self._choosing[method], self._level) < 0

    def _seems_slower(self, method: str) -> bool:
        """Return whether a method seems slower, even by the few launches of a dropped one."""
        ratios = [-ratio for ratio in self.ratios[method].values()]
        enough = len(ratios) > 1 or (self.trial.exact and bool(ratios))
        return enough and self.trial.upper_bound(ratios, self._level) < 0

    def is_faster(self, method: str) -> bool:
        """Return whether a method may take the default's place."""
        return (
            method in self._choosing
            and self._seems_faster(method)
            and all(self.trial.confirms(method, launch) for launch in self._confirming[method])
        )

    def prefer(self, method: str) -> None:
        """Take a neighbour's method where it is as good as the winner, to spare a switch point."""
        if self.status != "faster" or method == self.method or not self.is_faster(method):
            return
        ratios = np.array(list(self.trial.ratios(method, self.method).values()))
        if len(ratios) >= 2 and ratios.mean() < NEARLY and stats.mean_interval(ratios)[0] <= 0:
            self.method = method


def select(cells: Iterable[Cell], trust: Trust | None = None) -> tuple[list[Rule], list[Point]]:
    """Return the rules of one system's cells, in order of priority, and the points behind them."""
    points = decide(cells, trust)
    return compile_rules(points), points


def decide(cells: Iterable[Cell], trust: Trust | None = None) -> list[Point]:
    """Return decisions at every size of every degree class at which the default was measured.

    Without `trust`, the cells alone decide which parts count.
    """
    cells = list(cells)
    trust = trust or Trust(cells)
    layouts: dict[Place, list[Cell]] = defaultdict(list)
    for cell in cells:
        if cell.key.method != AUTO and cell.key.case.operation in RULED_OPERATIONS:
            layouts[cell.key.case.place].append(cell)
    points = []
    for layout, of_layout in sorted(layouts.items(), key=lambda item: item[0]):
        classes: dict[Place, dict[int, _Trial]] = defaultdict(dict)
        for cell in _one_scheme(of_layout):
            case = cell.key.case
            trials = classes[place_of(case, cell.features.mmax, cell.features.mavg)]
            trial = trials.setdefault(case.bytes, _Trial(DEFAULT_METHODS[layout.operation]))
            trial.add(cell, trust)
        for _, trials in sorted(classes.items()):
            points += _decide_class(trials)
    return points


def _one_scheme(cells: list[Cell]) -> list[Cell]:
    """Return the cells of the best scheme, as samples of different schemes are not comparable.

    Schemes with enough cores come first, then those with common starts.
    """
    preferred = ["window", "hca"]

    def scheme(cell: Cell) -> tuple[bool, int, str]:
        sync = cell.key.case.sync
        rank = preferred.index(sync) if sync in preferred else len(preferred)
        return cell.key.case.layout.oversubscribed, rank, sync

    best = min(map(scheme, cells))
    return [cell for cell in cells if scheme(cell) == best]


def _decide_class(trials: dict[int, _Trial]) -> list[Point]:
    points = []
    before: _Verdict | None = None
    for size in sorted(trials):
        if not trials[size].launches(trials[size].default):
            continue
        verdict = _Verdict(trials[size])
        if before is not None:
            verdict.prefer(before.method)
        points.append(_point(verdict))
        before = verdict
    return points


def _point(verdict: _Verdict) -> Point:
    """Return the decision with its evidence: the ratio of the chosen or the best other method."""
    trial = verdict.trial
    others = {method: ratios for method, ratios in verdict.ratios.items() if ratios}
    challenger: str | None = verdict.method
    if verdict.status != "faster":
        challenger = min(others, key=lambda name: mean(others[name].values()), default=None)
    ratios = others[challenger] if challenger else {}
    logs = np.array(list(ratios.values()))
    ratio = math.exp(logs.mean()) if len(logs) else None
    interval = stats.mean_interval(logs, 1 - trial.error_level) if len(logs) > 1 else None
    low, high = (_exp(float(end)) for end in interval) if interval else (None, None)
    launch = max(ratios or trial.launches(trial.default))
    its = trial.beside(launch, challenger or trial.default, verdict.method)
    cell = trial.cells[verdict.method, its or launch]
    return Point(
        campaign=cell.key.campaign,
        case=cell.key.case,
        mmax=cell.features.mmax,
        mavg=round(cell.features.mavg, MAVG_DIGITS),
        method=verdict.method,
        status=verdict.status,
        challenger=challenger,
        ratio=ratio,
        ratio_low=low,
        ratio_high=high,
        launches=len(logs) or len(trial.medians[trial.default]),
        ratios=tuple((name, _exp(mean(of.values()))) for name, of in sorted(others.items())),
    )


def _exp(log: float) -> float:
    """Return a finite exponential even of an infinite logarithm, as JSON has no infinity."""
    return math.exp(max(min(log, 700.0), -700.0))
