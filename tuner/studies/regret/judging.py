"""Judge a table by outcomes, and find the smallest regret that their launches could show."""

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tuner import stats
from tuner.domain.operations import COLLECTIVES
from tuner.studies.regret.problems import RegretProblem

WORSE = 0.02
"""The excess over the default's time above which a choice counts as slower."""

ERROR_LEVEL, POWER = 0.05, 0.8
"""Probabilities that a difference is found where there is none, and where there is one."""


@dataclass(frozen=True, slots=True)
class RegretOutcome:
    """One problem at one size: the chosen, best and other methods, and their seconds.

    `times_s` are geometric means over the launches that count, by the name of the chooser: "table",
    "best", "default", and those of RULES. `chosen_by` is the basis of the table's choice.
    `variance` is that of the logarithms of contenders' times over the table's between launches,
    None where one method raced alone, and `oracle` the regret of the best of one half of the
    launches in the other.
    """

    problem: RegretProblem
    size_bytes: int
    chosen_by: str
    methods: dict[str, str]
    times_s: dict[str, float]
    launches: int
    variance: float | None
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
    """The resolution of one operation's launches at one size of one problem.

    `finds` is the smallest regret that they would have found with the probability POWER, and
    `oracle` the mean regret of an oracle: what noise alone costs. Both are of the cases in which
    several methods raced, and None without any.
    """

    cases: int
    launches: float
    table: float
    finds: float | None
    oracle: float | None


@dataclass(frozen=True, slots=True)
class RegretSummary:
    """The summary of the outcomes; `gain` is the geometric mean of default / table.

    `causes` are the table's regret by the basis of its choices, the largest part first.
    """

    choosers: dict[str, Judgement]
    operations: dict[str, Resolution]
    causes: dict[str, Judgement]
    worse: float
    gain: float
    unseen: Judgement | None
    collectives: Judgement | None


def judge(outcomes: Sequence[RegretOutcome]) -> RegretSummary:
    """Summarise outcomes; there is at least one."""
    names = dict.fromkeys(name for outcome in outcomes for name in outcome.times_s)
    del names["best"]
    unseen = [outcome for outcome in outcomes if not outcome.problem.seen]
    collectives = [each for each in outcomes if each.problem.operation in COLLECTIVES]
    ratios = np.array([outcome.over_default for outcome in outcomes])
    causes: dict[str, list[RegretOutcome]] = defaultdict(list)
    for outcome in outcomes:
        causes[outcome.chosen_by].append(outcome)
    judged = {cause: _judgement(of_cause, "table") for cause, of_cause in causes.items()}
    operations = sorted({outcome.problem.operation for outcome in outcomes})
    return RegretSummary(
        choosers={name: _judgement(outcomes, name) for name in names},
        operations={
            name: _resolution([each for each in outcomes if each.problem.operation == name])
            for name in operations
        },
        causes=dict(sorted(judged.items(), key=lambda of: -of[1].mean * of[1].cases)),
        worse=float(np.mean(ratios > 1 + WORSE)),
        gain=float(np.exp(-np.log(ratios).mean())),
        unseen=_judgement(unseen, "table") if unseen else None,
        collectives=_judgement(collectives, "table") if collectives else None,
    )


@dataclass(frozen=True, slots=True)
class LimitedFigure:
    """A figure, and its upper limit."""

    what: str
    achieved: float
    target: float

    @property
    def met(self) -> bool:
        """Return whether the figure is not above the target."""
        return self.achieved <= self.target


def lines(summary: RegretSummary) -> list[LimitedFigure]:
    """Return every target with the figure achieved."""
    table = summary.choosers["table"]
    found = [
        LimitedFigure("mean regret", table.mean, 0.02),
        LimitedFigure("regret, 95th percentile", table.p95, 0.08),
    ]
    if of := summary.collectives:
        found.append(LimitedFigure("regret, 95th percentile, collectives", of.p95, 0.12))
    if of := summary.unseen:
        found.append(LimitedFigure("mean regret, processes never measured", of.mean, 0.02))
    slower = LimitedFigure("share more than 2 % slower than the default", summary.worse, 0.02)
    return [*found, slower]


def _judgement(outcomes: Sequence[RegretOutcome], chooser: str) -> Judgement:
    regrets = [outcome.regret(chooser) for outcome in outcomes if chooser in outcome.times_s]
    return Judgement(len(regrets), float(np.mean(regrets)), float(np.quantile(regrets, 0.95)))


def _resolution(outcomes: Sequence[RegretOutcome]) -> Resolution:
    compared = [outcome for outcome in outcomes if outcome.variance is not None]
    return Resolution(
        cases=len(outcomes),
        launches=float(np.mean([outcome.launches for outcome in outcomes])),
        table=float(np.mean([outcome.regret() for outcome in outcomes])),
        finds=_finds(compared) if compared else None,
        oracle=float(np.mean([outcome.oracle for outcome in compared])) if compared else None,
    )


def _finds(outcomes: Sequence[RegretOutcome]) -> float:
    """Return the smallest regret that the launches of outcomes with a variance would find."""
    launches = np.array([outcome.launches for outcome in outcomes])
    variances = np.array([outcome.variance for outcome in outcomes])
    # The sizes of a problem share launches, and so their effects.
    freedom = sum({outcome.problem: outcome.launches - 1 for outcome in outcomes}.values())
    variance = float(np.average(variances, weights=launches - 1) * np.mean(1 / launches))
    return least_found(math.sqrt(variance), freedom)


def least_found(error: float, freedom: int) -> float:
    """Return the least difference that is found with the probability POWER."""
    quantiles = (stats.student(freedom, level) for level in (1 - ERROR_LEVEL, POWER))
    return math.expm1(sum(quantiles) * error)
