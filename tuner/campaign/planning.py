"""Plans a campaign within a budget: what to measure next, from what has been measured.

Every method once at a few sizes, which predicts it at all others; then races of those that are
predicted to be near the best, which losers leave; then sizes between those at which the best
differs (docs/explanation/planning.md). What to do next follows from the plan and the cells alone,
so that an interrupted campaign goes on where it ended. No input or output.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from tuner.campaign.plans import (
    LEAST_BUDGET_S,
    REFINING,
    SESSION_S,
    SOAKS_S,
    STAGES,
    START_S,
    Batch,
    Plan,
    Racing,
    Stage,
    Task,
)
from tuner.campaign.races import MOST_SAMPLES, Baseline, Race, Times, losers, races, samples_needed
from tuner.domain.operations import DEFAULT_METHODS
from tuner.domain.records import Cell
from tuner.selection.decisions import MIN_LAUNCHES
from tuner.selection.intervals import NEARLY

ANCHORS = 6
"""Sizes at which every method is measured."""

ANCHOR_SAMPLES = 8
FIRST_SAMPLES = 20
"""Of the first race, from which most are dropped."""

ANCHOR_BUDGET_S = 3.0
"""Of a launch that is to have all methods, where no budget in seconds is given."""

FIRST_RACE = "race 1"
FIRST_HALVING = "race 2"

REFINED_ABOVE = 1.25
"""Between two sizes whose ratio is smaller, none is put."""

OVERHEAD = 4.0
"""Seconds that a sample takes, with start and buffers, over those that it counts."""


class _Entrants(NamedTuple):
    """The methods that race at a size."""

    methods: frozenset[str]
    samples: int


class _Launch(NamedTuple):
    """What the launches of a case measure; `cost_s` is of one, but its start."""

    case: int
    races: list[Racing]
    cost_s: float
    gain: float  # the most that is known to be gained over the default: a logarithm


def least_s(cases: int) -> float:
    """The budget below which not every case can be raced."""
    return len(STAGES) * SESSION_S + SOAKS_S + cases * _least_case_s(list(STAGES.values()), START_S)


def _least_case_s(stages: Sequence[Stage], start_s: float) -> float:
    return sum(stage.launches for stage in stages) * (start_s + LEAST_BUDGET_S)


def anchors_s(cases: int) -> float:
    """A budget whose first stage has enough to measure all methods, of which nothing is known."""
    shares = sum(stage.share for stage in STAGES.values()) / STAGES["anchors"].share
    return len(STAGES) * SESSION_S + shares * cases * (START_S + ANCHOR_BUDGET_S) + SOAKS_S


def next_batch(plan: Plan, cells: Iterable[Cell], baseline: Baseline) -> Batch | None:
    """What to measure now that every launch of the plan is in the cells; None when it is done.

    A budget that is a share is brought up to date, and cases without time are left out.
    """
    if plan.share and plan.batches:
        least = least_s(len(plan.cases)) * plan.slow
        plan.budget_s = max(plan.share * exhaustive_s(plan, cells, baseline), least)
    name, left = _stages_left(plan)
    rest_s = plan.budget_s - plan.spent_s - (len(left) * SESSION_S + SOAKS_S) * plan.slow
    wanted = _launches(plan, name, left[0], races(plan, cells), baseline)
    launches = _affordable(plan, wanted, left, rest_s)
    if left[0] is not REFINING:
        plan.left_out += [each.case for each in wanted if each not in launches]
    if not launches:
        return None
    share_s = max(rest_s, 0) * left[0].share / sum(stage.share for stage in left)
    return Batch(name, _tasks(plan, launches, left[0].launches, share_s))


def _stages_left(plan: Plan) -> tuple[str, list[Stage]]:
    """The name of the next stage, and all that are certain to follow, itself first."""
    done = len(plan.batches)
    if done < len(STAGES):
        return list(STAGES)[done], list(STAGES.values())[done:]
    return f"refinement {done - len(STAGES) + 1}", [REFINING]


def _affordable(
    plan: Plan, launches: list[_Launch], left: Sequence[Stage], rest_s: float
) -> list[_Launch]:
    """The cases that the rest has time for, to the end; those with most to gain come first.

    One is raced in any case: of less, nothing would come.
    """
    count = int(rest_s / _least_case_s(left, plan.start_s) + 1e-9)
    if left[0] is not REFINING:
        count = max(count, 1)
    chosen = sorted(launches, key=lambda launch: -launch.gain)[: max(count, 0)]
    return [launch for launch in launches if launch in chosen]


def _launches(
    plan: Plan, name: str, stage: Stage, known: dict[int, dict[int, Race]], baseline: Baseline
) -> list[_Launch]:
    launches = []
    for number, case in enumerate(plan.cases):
        if number in plan.left_out:
            continue
        if not plan.batches:
            launches.append(
                _Launch(number, [Racing(_anchors(case.sizes), [], ANCHOR_SAMPLES)], 0.0, 0.0)
            )
            continue
        times = Times(case, known.get(number, {}), baseline)
        if DEFAULT_METHODS[case.operation] not in times.methods:
            continue
        wanted = _wanted(plan, number, name, stage, known[number], times)
        if wanted:
            cost_s = sum(_cost_s(size, *its, times) for size, its in wanted.items())
            gain = max(_gain(times.at(size), DEFAULT_METHODS[case.operation]) for size in wanted)
            launches.append(_Launch(number, _together(wanted), cost_s, gain))
    return launches


def _gain(logs: dict[str, float], default: str) -> float:
    return logs[default] - min(logs.values())


def _anchors(sizes: Sequence[int]) -> list[int]:
    places = np.linspace(0, len(sizes) - 1, min(ANCHORS, len(sizes)))
    return [sizes[round(place)] for place in places]


def _wanted(
    plan: Plan, number: int, name: str, stage: Stage, known: dict[int, Race], times: Times
) -> dict[int, _Entrants]:
    """By size, the methods that race on: not those that are predicted to lose, or have lost."""
    case = plan.cases[number]
    default = DEFAULT_METHODS[case.operation]
    wanted = {}
    for size in sorted(_sizes(plan, number, name, times)):
        logs = times.at(size)
        reach = min(logs.values()) + math.log(stage.reach)
        lost = losers(known.get(size, {}), default)
        rivals = sorted(logs.keys() - {default}, key=lambda method: logs[method])
        near = [method for method in rivals if logs[method] <= reach and method not in lost]
        if name == FIRST_RACE:
            # The default is never alone: without a rival, nothing is known here.
            near = near or rivals[:1]
        if not near:
            continue
        methods = {default, *near[: stage.rivals]}
        samples = FIRST_SAMPLES
        if name != FIRST_RACE:
            its = {method: logs[method] for method in methods}
            samples = samples_needed(known.get(size, {}), its, default)
        wanted[size] = _Entrants(frozenset(methods), samples)
    return wanted


def _sizes(plan: Plan, number: int, name: str, times: Times) -> set[int]:
    """The sizes of a stage: those of the stage before, and from the second race on new ones."""
    case = plan.cases[number]
    if name == FIRST_RACE:
        return {*case.sizes}
    tasks = [task for batch in plan.batches[1:] for task in batch.tasks if task.case == number]
    raced = {*case.sizes}.union(*(task.sizes for task in tasks))
    between = set(_between(sorted(raced), times, DEFAULT_METHODS[case.operation]))
    if name not in STAGES:
        return between
    last = {size for task in plan.batches[-1].tasks if task.case == number for size in task.sizes}
    return last | between if name == FIRST_HALVING else last


def _between(sizes: Sequence[int], times: Times, default: str) -> Iterator[int]:
    """Sizes in the middle between neighbours that lose by each other's best method."""
    logs = {size: times.at(size) for size in sizes}
    best = {}
    for size, its in logs.items():
        fastest = min(its, key=lambda method: its[method])
        best[size] = fastest if its[fastest] < its[default] - NEARLY else default
    for (low, before), (high, after) in pairwise(best.items()):
        middle = round(math.sqrt(low * high) / 8) * 8
        lost = logs[low][after] - logs[low][before] + logs[high][before] - logs[high][after]
        if lost > 2 * NEARLY and high / low > REFINED_ABOVE and low < middle < high:
            yield middle


def _together(wanted: dict[int, _Entrants]) -> list[Racing]:
    """Sizes with the same entrants are one race."""
    sizes: dict[_Entrants, list[int]] = defaultdict(list)
    for size, its in wanted.items():
        sizes[its].append(size)
    return [Racing(of, sorted(its.methods), its.samples) for its, of in sizes.items()]


def _cost_s(size: int, methods: Iterable[str], samples: int, times: Times) -> float:
    return OVERHEAD * samples * sum(math.exp(times.log_s(method, size)) for method in methods)


def _tasks(plan: Plan, launches: list[_Launch], count: int, share_s: float) -> list[Task]:
    """The launches of a batch, which share its time by what they are expected to need."""
    spare_s = max(share_s / count - len(launches) * (plan.start_s + LEAST_BUDGET_S), 0)
    whole_s = sum(launch.cost_s for launch in launches)
    tasks: list[Task] = []
    for _ in range(count):
        for launch in launches:
            part = launch.cost_s / whole_s if whole_s else 1 / len(launches)
            budget_s = round(LEAST_BUDGET_S + spare_s * part, 2)
            number = len(plan.tasks) + len(tasks)
            tasks.append(Task(number, launch.case, launch.races, budget_s))
    return tasks


def exhaustive_s(plan: Plan, cells: Iterable[Cell], baseline: Baseline) -> float:
    """What it would take to race all methods at all sizes, as far as they were measured."""
    total_s = 0.0
    for number, known in races(plan, cells).items():
        case = plan.cases[number]
        times = Times(case, known, baseline)
        launch_s = sum(_cost_s(size, times.methods, MOST_SAMPLES, times) for size in case.sizes)
        total_s += (MIN_LAUNCHES + 1) * (START_S + launch_s)
    return total_s
