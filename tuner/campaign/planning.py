"""Plans a campaign within a budget: what to measure next, from what has been measured.

Every method once at a few sizes, which predicts it at all others; then races of those that are
predicted to be near the best, which losers leave; then sizes between those at which the best
differs (docs/explanation/planning.md). What to do next follows from the plan and the cells alone,
so that an interrupted campaign goes on where it ended. No input or output.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tuner import stats
from tuner.operations import DEFAULT_METHODS
from tuner.records import Cell
from tuner.selection.decisions import ERROR_LEVEL
from tuner.selection.intervals import NEARLY

ANCHORS = 6
"""Sizes at which every method is measured."""

ANCHOR_SAMPLES = 8
RACE_SAMPLES = 40
FIRST_SAMPLES = 20
"""Of the first race, from which most are dropped."""


class Stage(NamedTuple):
    """A step of the campaign: launches of each case, and a share of the budget.

    A method that is known to take longer than `reach` times the best does not take part.
    """

    launches: int
    samples: int
    share: float
    reach: float


STAGES = {
    "anchors": Stage(1, ANCHOR_SAMPLES, 1, math.inf),
    "race 1": Stage(1, FIRST_SAMPLES, 1, 1.5),
    "race 2": Stage(3, RACE_SAMPLES, 3, 1.25),
    "race 3": Stage(3, RACE_SAMPLES, 3, 1.25),
}
"""What is done one after the other. What a stage spares of its share, the next ones have.

The last two put sizes between those at which the best method differs, and give these six launches:
five choose, the last confirms.
"""

REFINING = "race 2"
LOOKS = 2
"""At races, to drop losers."""

REFINED_ABOVE = 1.25
"""Between two sizes whose ratio is smaller, none is put."""

START_S = 0.5
SESSION_S = 6.0
"""ReFrame's own work for a stage."""

SOAKS_S = 15.0
"""For what won, to be executed very often, and ReFrame's work for that."""

LEAST_BUDGET_S = 0.3
ANCHOR_BUDGET_S = 3.0
"""Of a launch that is to have all methods, where no budget in seconds is given."""

OVERHEAD = 4.0
"""Seconds that a sample takes, with start and buffers, over those that it counts."""

Baseline = Callable[["PlannedCase", str, int], float | None]
"""What a model predicts of a case, method and size, in seconds; None where there is none."""


class Budget(NamedTuple):
    """Seconds, or a share of what it would take to measure everything."""

    seconds: float
    share: float = 0.0


@dataclass(frozen=True, slots=True)
class PlannedCase:
    """What is tuned: an operation with a pattern on a layout, over sizes.

    Methods that failed their soak are not measured.
    """

    system: str  # ReFrame's, as local:cpu
    environment: str
    operation: str
    pattern: str
    scale: str
    procs: int
    ppn: int
    sizes: list[int]
    failed: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Task:
    """One launch. `methods` is empty for all; `number` tells the launches of a campaign apart."""

    number: int
    case: int
    sizes: list[int]
    methods: list[str]
    samples: int
    budget_s: float


@dataclass(frozen=True, slots=True)
class Batch:
    """Launches that are planned together, from what was measured before them."""

    stage: str
    tasks: list[Task]


@dataclass(slots=True)
class Plan:
    """A campaign as planned so far. `spent_s` is of the clock, with ReFrame's own work.

    With a share, `budget_s` is that of what the measurements so far let everything cost. `slow` is
    how many times as long starts and sessions took as foreseen, in the last stage.
    """

    campaign: str
    config: str
    budget_s: float
    cases: list[PlannedCase]
    variables: dict[str, str] = field(default_factory=dict)  # of the checks
    options: list[str] = field(default_factory=list)  # ReFrame's
    stage: str = ""  # where its jobs run
    batches: list[Batch] = field(default_factory=list)
    spent_s: float = 0.0
    share: float = 0.0
    slow: float = 1.0

    @property
    def start_s(self) -> float:
        """What starting a launch is foreseen to take."""
        return START_S * self.slow

    @property
    def config_file(self) -> Path:
        """ReFrame's."""
        return Path(self.config)

    @property
    def tasks(self) -> list[Task]:
        """Of all batches."""
        return [task for batch in self.batches for task in batch.tasks]


class Samples(NamedTuple):
    """Of one launch."""

    rounds: np.ndarray
    seconds: np.ndarray


Race = dict[str, dict[int, Samples]]
"""What is known at one size: by method and launch."""


def octaves(operation: str, pattern: str) -> list[int]:
    """The sizes of a case: bytes of a message or block, or of an item; messages have many items."""
    last = 2048 if pattern.startswith("matrix:") else 131072
    return [8 << power for power in range(int(math.log2(last // 8)) + 1)]


def launches_of_case() -> int:
    """How often a case is launched where each of its stages is one launch's worth of sizes."""
    return sum(stage.launches for stage in STAGES.values())


def least_s(cases: int) -> float:
    """The budget below which not every case can be raced."""
    launches_s = cases * launches_of_case() * (START_S + LEAST_BUDGET_S)
    return len(STAGES) * SESSION_S + launches_s + SOAKS_S


def anchors_s(cases: int) -> float:
    """A budget whose first stage has enough to measure all methods, of which nothing is known."""
    shares = sum(stage.share for stage in STAGES.values()) / STAGES["anchors"].share
    return len(STAGES) * SESSION_S + shares * cases * (START_S + ANCHOR_BUDGET_S) + SOAKS_S


def next_batch(plan: Plan, cells: Iterable[Cell], baseline: Baseline) -> Batch | None:
    """What to measure now that every launch of the plan is in the cells; None when it is done.

    A budget that is a share is brought up to date.
    """
    if plan.share and plan.batches:
        plan.budget_s = plan.share * exhaustive_s(plan, cells, baseline)
    left = list(STAGES)[len(plan.batches) :]
    entrants = _entrants(plan, left[0], races(plan, cells), baseline) if left else []
    if not entrants:
        return None
    rest_s = plan.budget_s - plan.spent_s - (len(left) * SESSION_S + SOAKS_S) * plan.slow
    share_s = max(rest_s, 0) * STAGES[left[0]].share / sum(STAGES[name].share for name in left)
    if len(entrants) * STAGES[left[0]].launches * (plan.start_s + LEAST_BUDGET_S) > share_s:
        entrants = _together(entrants)
    return Batch(left[0], _tasks(plan, entrants, left[0], share_s))


def races(plan: Plan, cells: Iterable[Cell]) -> dict[int, dict[int, Race]]:
    """What was measured of every case, by size."""
    case_of = {task.number: task.case for task in plan.tasks}
    found: dict[int, dict[int, Race]] = defaultdict(lambda: defaultdict(lambda: defaultdict(dict)))
    for cell in cells:
        for part in cell.parts:
            number = int(part["number"])
            if number in case_of and cell.key.method not in plan.cases[case_of[number]].failed:
                samples = Samples(*cell.of_launch(int(part["launch"])))
                race = found[case_of[number]][cell.key.size_bytes]
                race[cell.key.method][number] = samples
    return found


@dataclass(frozen=True, slots=True)
class _Entrant:
    """Sizes and methods that share the launches of a case; `cost_s` is of one, but its start."""

    case: int
    sizes: list[int]
    methods: list[str]
    cost_s: float


def _entrants(
    plan: Plan, stage: str, known: dict[int, dict[int, Race]], baseline: Baseline
) -> list[_Entrant]:
    if stage == "anchors":
        return [
            _Entrant(number, _anchors(case.sizes), [], 0.0)
            for number, case in enumerate(plan.cases)
        ]
    entrants = []
    for number, case in enumerate(plan.cases):
        if number not in known:
            continue
        times = Times(case, known[number], baseline)
        if DEFAULT_METHODS[case.operation] not in times.methods:
            continue
        wanted = _racing(plan, number, stage, known[number], times)
        for sizes, methods in _groups(wanted, times):
            entrants.append(_Entrant(number, sizes, methods, _cost_s(sizes, methods, times)))
    return entrants


def _anchors(sizes: Sequence[int]) -> list[int]:
    places = np.linspace(0, len(sizes) - 1, min(ANCHORS, len(sizes)))
    return [sizes[round(place)] for place in places]


class Times:
    """Predicts the methods of a case between and at the sizes at which they were measured.

    Interpolated is the logarithm of measured over modelled: a model knows the shape, the samples
    its height. Without a model that is a straight line between logarithms.
    """

    def __init__(self, case: PlannedCase, known: dict[int, Race], baseline: Baseline) -> None:
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
        """Those that were measured."""
        return sorted(self._corrections)

    def log_s(self, method: str, size: int) -> float:
        """The logarithm of the seconds; beyond the outermost sizes their correction holds."""
        sizes, corrections = zip(*self._corrections[method].items(), strict=True)
        correction = np.interp(math.log(size), np.log(sizes), corrections)
        return float(correction) + self._modelled(method, size)

    def _modelled(self, method: str, size: int) -> float:
        predicted_s = self._baseline(self._case, method, size)
        return math.log(predicted_s) if predicted_s else 0.0


def _racing(
    plan: Plan, number: int, stage: str, known: dict[int, Race], times: Times
) -> dict[int, frozenset[str]]:
    """By size, the methods that race on: not those that are predicted to lose, or have lost."""
    case = plan.cases[number]
    default = DEFAULT_METHODS[case.operation]
    raced = {size for task in plan.batches[-1].tasks if task.case == number for size in task.sizes}
    sizes = raced if stage != "race 1" else set(case.sizes)
    if stage == REFINING:
        sizes |= set(_between(case.sizes, times, default))
    wanted = {}
    for size in sorted(sizes):
        logs = {method: times.log_s(method, size) for method in times.methods}
        reach = min(logs.values()) + math.log(STAGES[stage].reach)
        staying = {method for method, log in logs.items() if log <= reach} | {default}
        staying -= losers(known.get(size, {}), default)
        if stage == "race 1" and len(logs) > 1:
            # The default is never alone: without a rival, nothing is known here.
            staying.add(min(logs.keys() - {default}, key=lambda method: logs[method]))
        if len(staying) > 1:
            wanted[size] = frozenset(staying)
    return wanted


def _between(sizes: Sequence[int], times: Times, default: str) -> Iterator[int]:
    """Sizes in the middle between neighbours that differ in their best method."""
    best = {}
    for size in sizes:
        logs = {method: times.log_s(method, size) for method in times.methods}
        fastest = min(logs, key=lambda method: logs[method])
        best[size] = fastest if logs[fastest] < logs[default] - NEARLY else default
    for (low, before), (high, after) in pairwise(best.items()):
        middle = round(math.sqrt(low * high) / 8) * 8
        if before != after and high / low > REFINED_ABOVE and low < middle < high:
            yield middle


def losers(race: Race, default: str) -> set[str]:
    """The methods that are slower than the best in each of at least two launches.

    The error level of one launch is shared by methods and looks; the default never loses.
    """
    if default not in race:
        return set()
    ratios = {
        method: _mean_log_ratio(launches, race[default])
        for method, launches in race.items()
        if launches.keys() & race[default].keys()
    }
    best = min(ratios, key=lambda method: ratios[method])
    level = 1 - ERROR_LEVEL / (len(race) * LOOKS)
    return {
        method
        for method in race.keys() - {best, default}
        if _is_slower(race[method], race[best], level)
    }


def _mean_log_ratio(launches: dict[int, Samples], others: dict[int, Samples]) -> float:
    both = sorted(launches.keys() & others.keys())
    logs = [np.log(np.median(launches[n].seconds) / np.median(others[n].seconds)) for n in both]
    return float(np.mean(logs))


def _is_slower(launches: dict[int, Samples], best: dict[int, Samples], level: float) -> bool:
    both = sorted(launches.keys() & best.keys())
    return len(both) > 1 and all(
        stats.median_upper_bound(stats.paired_log_ratios(*best[n], *launches[n]), level) < 0
        for n in both[-2:]
    )


def _cost_s(sizes: Iterable[int], methods: Iterable[str], times: Times) -> float:
    known = [method for method in methods if method in times.methods]
    samples_s = sum(math.exp(times.log_s(method, size)) for size in sizes for method in known)
    return OVERHEAD * RACE_SAMPLES * samples_s


def _groups(
    wanted: dict[int, frozenset[str]], times: Times
) -> Iterator[tuple[list[int], list[str]]]:
    """Sizes that share a launch: where it costs less than a start, also with methods too many."""
    groups: list[tuple[list[int], frozenset[str]]] = []
    for size, methods in sorted(wanted.items()):
        if groups:
            sizes, others = groups[-1]
            union = methods | others
            apart_s = _cost_s(sizes, others, times) + _cost_s([size], methods, times)
            if _cost_s([*sizes, size], union, times) - apart_s < START_S:
                groups[-1] = ([*sizes, size], union)
                continue
        groups.append(([size], methods))
    for sizes, methods in groups:
        yield sizes, sorted(methods)


def _together(entrants: list[_Entrant]) -> list[_Entrant]:
    """One for each case, where time is too short for more: starts would take it all."""
    of_case: dict[int, list[_Entrant]] = defaultdict(list)
    for entrant in entrants:
        of_case[entrant.case].append(entrant)
    return [
        _Entrant(
            case,
            sorted({size for each in parts for size in each.sizes}),
            sorted({method for each in parts for method in each.methods}),
            sum(each.cost_s for each in parts),
        )
        for case, parts in of_case.items()
    ]


def _tasks(plan: Plan, entrants: list[_Entrant], stage: str, share_s: float) -> list[Task]:
    """The launches of a batch, which share its time by what they are expected to need."""
    launches = STAGES[stage].launches
    spare_s = max(share_s / launches - len(entrants) * plan.start_s, 0)
    whole_s = sum(entrant.cost_s for entrant in entrants)
    tasks: list[Task] = []
    for _ in range(launches):
        for entrant in entrants:
            part = entrant.cost_s / whole_s if whole_s else 1 / len(entrants)
            budget_s = round(max(spare_s * part, LEAST_BUDGET_S), 2)
            number = len(plan.tasks) + len(tasks)
            what = entrant.case, entrant.sizes, entrant.methods
            tasks.append(Task(number, *what, STAGES[stage].samples, budget_s))
    return tasks


def exhaustive_s(plan: Plan, cells: Iterable[Cell], baseline: Baseline) -> float:
    """What it would take to race all methods at all sizes, as far as they were measured."""
    total_s = 0.0
    for number, known in races(plan, cells).items():
        case = plan.cases[number]
        times = Times(case, known, baseline)
        total_s += launches_of_case() * (START_S + _cost_s(case.sizes, times.methods, times))
    return total_s
