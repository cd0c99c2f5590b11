"""Planning of a campaign within a budget: what to measure next, from what has been measured.

First every method is measured at a few sizes, which predict it at all others. Races follow between
the methods that are predicted to be near the best, and losers drop out. Then sizes are added
between those at which the best method differs (docs/explanation/planning.md). The next step follows
from the plan and the cells alone, so that an interrupted campaign goes on where it ended. The
module does no input or output.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from tuner.campaign.plans import REFINING, STAGES, Plan, PlannedBatch, PlanStage, Racing, Task
from tuner.campaign.races import MOST_SAMPLES, Baseline, Race, Times, losers, races, samples_needed
from tuner.campaign.times import LEAST_BUDGET_S, SESSION_S, SOAKS_S
from tuner.domain.operations import DEFAULT_METHODS
from tuner.domain.records import Cell
from tuner.selection.decisions import OVERHEAD, START_S
from tuner.selection.intervals import NEARLY

ANCHORS = 6
"""Number of sizes at which every method is measured."""

ANCHOR_SAMPLES = 8
FIRST_SAMPLES = 20
"""Samples in the first race, which drops most methods."""

ANCHOR_BUDGET_S = 3.0
"""Seconds of a launch that measures all methods, where no budget in seconds is given."""

EXHAUSTIVE_LAUNCHES = 6
"""Launches of each case where everything is measured."""

FIRST_RACE = "race 1"
FIRST_HALVING = "race 2"

REFINED_ABOVE = 1.25
"""Ratio of two sizes up to which no size is added between them."""


class _Entrants(NamedTuple):
    """The methods that race at a size."""

    methods: frozenset[str]
    samples: int


class _CaseLaunches(NamedTuple):
    """The races of a case's launches; `cost_s` is the cost of one launch without its start."""

    case: int
    races: list[Racing]
    cost_s: float
    gain: float  # the largest known gain over the default, as a logarithm


def least_s(cases: int) -> float:
    """Return the least budget with which every case can be raced."""
    return len(STAGES) * SESSION_S + SOAKS_S + cases * _least_case_s(list(STAGES.values()), START_S)


def _least_case_s(stages: Sequence[PlanStage], start_s: float) -> float:
    return sum(stage.launches for stage in stages) * (start_s + LEAST_BUDGET_S)


def anchors_s(cases: int) -> float:
    """Return a budget whose first stage can measure all methods when nothing is known of them."""
    shares = sum(stage.share for stage in STAGES.values()) / STAGES["anchors"].share
    return len(STAGES) * SESSION_S + shares * cases * (START_S + ANCHOR_BUDGET_S) + SOAKS_S


def next_batch(plan: Plan, cells: Iterable[Cell], baseline: Baseline) -> PlannedBatch | None:
    """Return the next launches, once all of the plan are in the cells; None when it is done.

    A budget that is a share is updated, and cases without time are left out.
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
    return PlannedBatch(name, _tasks(plan, launches, left[0].launches, share_s))


def _stages_left(plan: Plan) -> tuple[str, list[PlanStage]]:
    """Return the name of the next stage, and all stages that are certain, beginning with it."""
    done = len(plan.batches)
    if done < len(STAGES):
        return list(STAGES)[done], list(STAGES.values())[done:]
    return f"refinement {done - len(STAGES) + 1}", [REFINING]


def _affordable(
    plan: Plan, launches: list[_CaseLaunches], left: Sequence[PlanStage], rest_s: float
) -> list[_CaseLaunches]:
    """Return the cases that the remaining time can finish, chosen by their possible gain.

    At least one is raced, except in refinements: otherwise the campaign would yield nothing.
    """
    count = int(rest_s / _least_case_s(left, plan.start_s) + 1e-9)
    if left[0] is not REFINING:
        count = max(count, 1)
    chosen = sorted(launches, key=lambda launch: -launch.gain)[: max(count, 0)]
    return [launch for launch in launches if launch in chosen]


def _launches(
    plan: Plan, name: str, stage: PlanStage, known: dict[int, dict[int, Race]], baseline: Baseline
) -> list[_CaseLaunches]:
    launches = []
    for number, case in enumerate(plan.cases):
        if number in plan.left_out:
            continue
        if not plan.batches:
            launches.append(
                _CaseLaunches(number, [Racing(_anchors(case.sizes), [], ANCHOR_SAMPLES)], 0.0, 0.0)
            )
            continue
        times = Times(case, known.get(number, {}), baseline)
        if DEFAULT_METHODS[case.operation] not in times.methods:
            continue
        wanted = _wanted(plan, number, name, stage, known[number], times)
        if wanted:
            cost_s = sum(_cost_s(size, *its, times) for size, its in wanted.items())
            gain = max(_gain(times.at(size), DEFAULT_METHODS[case.operation]) for size in wanted)
            launches.append(_CaseLaunches(number, _together(wanted), cost_s, gain))
    return launches


def _gain(logs: dict[str, float], default: str) -> float:
    return logs[default] - min(logs.values())


def _anchors(sizes: Sequence[int]) -> list[int]:
    places = np.linspace(0, len(sizes) - 1, min(ANCHORS, len(sizes)))
    return [sizes[round(place)] for place in places]


def _wanted(
    plan: Plan, number: int, name: str, stage: PlanStage, known: dict[int, Race], times: Times
) -> dict[int, _Entrants]:
    """Return by size the methods that race on, without those that lost or are predicted to lose."""
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
            # The default never races alone: without a rival, nothing is known here.
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
    """Return a stage's sizes: those of the stage before, and from the second race on new ones."""
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
    """Yield sizes in the middle between neighbours that lose by each other's best method."""
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
    """Return the races, one for all sizes with the same entrants."""
    sizes: dict[_Entrants, list[int]] = defaultdict(list)
    for size, its in wanted.items():
        sizes[its].append(size)
    return [Racing(of, sorted(its.methods), its.samples) for its, of in sizes.items()]


def _cost_s(size: int, methods: Iterable[str], samples: int, times: Times) -> float:
    return OVERHEAD * samples * sum(math.exp(times.log_s(method, size)) for method in methods)


def _tasks(plan: Plan, launches: list[_CaseLaunches], count: int, share_s: float) -> list[Task]:
    """Return the launches of a batch, which share its time in proportion to their expected cost."""
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
    """Return the time of racing all methods at all sizes, as far as they were measured."""
    total_s = 0.0
    for number, known in races(plan, cells).items():
        case = plan.cases[number]
        times = Times(case, known, baseline)
        launch_s = sum(_cost_s(size, times.methods, MOST_SAMPLES, times) for size in case.sizes)
        total_s += EXHAUSTIVE_LAUNCHES * (START_S + launch_s)
    return total_s
