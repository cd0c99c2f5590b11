"""Planning of a race: what to measure next, from what has been measured.

One launch of each case that is not known screens its methods at a few sizes. Batches of launches
follow, in which the default races the methods that may still gain more than matters, at the sizes
that are open. When none is, sizes are added between those whose methods differ, and those that
earlier campaigns settled are checked (docs/explanation/planning.md). The next batch follows from
the plan and the cells alone, so that an interrupted campaign goes on where it ended. The module
does no input or output.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from tuner.campaign.durations import BEYOND_S, LEAST_LAUNCH_S, SESSION_S, SOAKS_S
from tuner.campaign.measured import Measured, Times, log_times
from tuner.campaign.plans import (
    ALL,
    MOST_JOB_S,
    RACE_SHARE,
    SCREENING,
    Entrants,
    PlannedBatch,
    PlannedCase,
    RacePlan,
    Task,
    Turn,
)
from tuner.campaign.standings import (
    CaseStanding,
    is_fresh,
    is_new,
    known_methods,
    settled,
    standings_of,
)
from tuner.domain.effort import OVERHEAD, SAMPLE_S, SOAKS_SHARE, START_S, wall_of_sample_s
from tuner.domain.operations import ALGORITHM, DEFAULT_METHODS, is_named
from tuner.domain.tables import FASTER_HERE, WON
from tuner.selection.decisions import MIN_LAUNCHES, MIN_ROUNDS, RIVALS, ROUNDS, decide_class
from tuner.selection.intervals import NEARLY

SCREENING_SIZES, SCREENING_ROUNDS = 4, 8
"""Sizes and rounds of a screening."""

SCREENING_S = 3.0
"""Seconds of a launch that measures all methods, where no budget in seconds is given."""

FRUITLESS = 4
"""Launches of a size that may fail to give two with rounds enough."""

ROOM_S = 1.0
"""Seconds that a launch may take beyond what is foreseen."""

PROOF_S = 0.05
"""Seconds of the proof that the MPI library runs one of its algorithms at a size by name."""

REACH = math.log(1.5)
"""The logarithm of how much slower than the best a rival may seem."""

LEAST_ROUNDS = math.ceil(MIN_ROUNDS / MIN_LAUNCHES)
"""The least rounds of a launch: as few launches as may settle a size then have rounds enough."""

MOST_ROUNDS, MOST_OVERSUBSCRIBED = 30, 40
"""The most rounds of a launch; more are of use where ranks have no cores of their own."""

SHORT_ROUNDS = 60
"""Rounds of executions that are shorter than what a sample takes beside them."""

ERROR_WITHIN = 2.0
"""Ratio of the variance within a launch, that of a mean of its rounds, to that between launches."""

BATCH_LAUNCHES = 3
"""Most launches of a case between two decisions, where a decision costs a batch of jobs."""

STEP, STEP_OVERSUBSCRIBED = 2, 4
"""Octaves between the first sizes; fewer are settled sooner where ranks have no own cores."""

REFINED_ABOVE, REFINED_OVERSUBSCRIBED = 1.25, 2.0
"""Ratio of two sizes up to which no size is added between them."""

EXHAUSTIVE_LAUNCHES, EXHAUSTIVE_ROUNDS = 6, 40
"""Launches of each case, and their rounds, where everything is measured."""


@dataclass(frozen=True, slots=True)
class _Wanted:
    """The races of a case's next launches; `cost_s` is that of one launch without its start."""

    case: int
    races: list[Entrants]
    launches: int
    cost_s: float
    may_gain: float = 0.0  # by a launch: the sum over sizes, as logarithms
    proved: bool = False
    staggered: bool = False


def least_s(cases: int) -> float:
    """Return the least budget with which every case can be screened and raced."""
    race_s = (2 * SESSION_S + 2 * cases * (START_S + LEAST_LAUNCH_S)) / RACE_SHARE
    return max(race_s + SOAKS_S, race_s / (1 - SOAKS_SHARE))


def screening_budget_s(cases: int) -> float:
    """Return a budget whose screenings can measure all methods if nothing is known of them."""
    return least_s(cases) + 2 * cases * SCREENING_S


def next_batch(plan: RacePlan, turn: Turn, measured: Measured) -> PlannedBatch | None:
    """Return the turn's next launches, once all before are in the cells; None when it is over.

    A budget that is a share is updated.
    """
    known = known_methods(plan, measured)
    unknown = {number: _unknown(plan, number, measured, known.get(number)) for number in turn.cases}
    missing = {number: its for number, its in unknown.items() if its is not None}
    if missing and (plan.in_job or len(plan.batches) < plan.most_batches):
        is_time = not plan.tasks or plan.left_s(turn) > 0
        return _screening(plan, missing) if is_time else None
    if turn.screens_only:
        return None
    if plan.share:
        least = least_s(len(plan.cases)) * plan.slow
        plan.budget_s = max(plan.share * exhaustive_s(plan, measured), least)
    if not plan.in_job and len(plan.batches) >= plan.most_batches:
        return None
    standings = standings_of(plan, measured)
    racing = [(case, standings[case]) for case in turn.cases if case in standings]
    wanted = []
    for case, standing in racing:
        its = None if turn.staggered else _wanted(plan, case, standing)
        # On a queue they cost no batch beside those of others.
        if its is None and (turn.staggered or not plan.in_job):
            its = _wanted_staggered(plan, case, standing)
            its = its or (None if turn.staggered else _wanted_check(plan, case, standing))
        wanted += [its] if its else []
    if turn.spare and not wanted:
        wanted = [its for case, of in racing if (its := _wanted_check(plan, case, of))]
    chosen = _affordable(plan, wanted, plan.left_s(turn) - plan.session_s)
    if not chosen:
        return None
    title = "staggered" if turn.staggered else f"race {len(plan.batches)}"
    return PlannedBatch(title, _tasks(plan, chosen), *settled(standings))


def _whole(case: PlannedCase) -> list[str]:
    """Return the methods of a case that nothing is known of; none stands for all."""
    return case.methods and sorted({DEFAULT_METHODS[case.operation], *case.methods})


def _is_whole(plan: RacePlan, task: Task) -> bool:
    return any(race.methods == _whole(plan.cases[task.case]) for race in task.races)


def _unknown(
    plan: RacePlan, number: int, measured: Measured, known: Collection[str] | None
) -> list[str] | None:
    """Return the methods of a case to screen; none stands for all, and None for no screening.

    known: those that other campaigns tried; None if they did not measure the case.
    """
    case, own = plan.cases[number], [task for task in plan.tasks if task.case == number]
    default = DEFAULT_METHODS[case.operation]
    if any(_is_whole(plan, task) for task in own):
        return None
    if known is None:  # though there are launches, as of a system that turned out to be another
        return _whole(case)
    known = {*known, *(method for task in own for method in task.methods)}
    wanted = case.methods or case.offered
    if not wanted and not plan.in_job:
        if ALL not in known:
            return []
        wanted = measured.offered(case)
    if missing := [name for name in wanted if not any(is_named(spec, {name}) for spec in known)]:
        return sorted({default, *missing})
    return None


def _screening(plan: RacePlan, methods: Mapping[int, list[str]]) -> PlannedBatch:
    """Return a launch of each of these cases with its methods; all share half of the time.

    On a queue each has at most the time of a job.
    """
    cases = len(plan.cases)
    share_s = SCREENING_S if plan.share else (plan.budget_s - least_s(cases)) / (2 * cases)
    if not plan.in_job:  # queues may refuse longer jobs
        share_s = min(share_s, MOST_JOB_S - BEYOND_S - LEAST_LAUNCH_S)
    wanted = [
        _Wanted(
            number,
            [
                Entrants(
                    _spread(_coarse(case)),
                    methods[number],
                    SCREENING_ROUNDS,
                    families=[] if plan.in_job else case.methods or _new(case, methods[number]),
                )
            ],
            1,
            max(share_s, 0.0),
        )
        for number, case in enumerate(plan.cases)
        if number in methods
    ]
    return PlannedBatch(SCREENING, _tasks(plan, wanted))


def _new(case: PlannedCase, methods: Sequence[str]) -> list[str]:
    """Return what is screened beside the default: on a queue, names that kernels brought."""
    return [name for name in methods if name != DEFAULT_METHODS[case.operation]]


def _coarse(case: PlannedCase) -> list[int]:
    """Return a few of octaves, with both ends; others are added where methods differ."""
    if any(high != 2 * low for low, high in pairwise(case.sizes)):
        return case.sizes
    step = STEP_OVERSUBSCRIBED if case.oversubscribed else STEP
    return sorted({*case.sizes[::step], case.sizes[-1]})


def _spread(sizes: Sequence[int]) -> list[int]:
    places = np.linspace(0, len(sizes) - 1, min(SCREENING_SIZES, len(sizes)))
    return [sizes[round(place)] for place in places]


def _wanted(plan: RacePlan, number: int, standing: CaseStanding) -> _Wanted | None:
    """Return the next launches of a case, None when it is settled."""
    tried = _tried(plan, number, staggered=False)

    def left(size: int) -> int:
        fresh = is_fresh(standing.measured.get(size))
        return min(plan.launches, FRUITLESS if fresh else plan.launches) - tried[size]

    def entrants(sizes: Iterable[int]) -> dict[int, list[str]]:
        rivals = {size: _rivals(size, standing, plan) for size in sizes if left(size) > 0}
        return {size: names for size, names in rivals.items() if names}

    sizes = {*_coarse(plan.cases[number]), *standing.raced}
    racing = entrants(sorted(sizes)) or entrants(_between(standing))
    if not racing:
        return None
    default = standing.default
    together: dict[tuple[tuple[str, ...], int], list[int]] = defaultdict(list)
    cost_s, may_gain = 0.0, 0.0
    launches = [1 if plan.in_job else BATCH_LAUNCHES, *map(left, racing)]
    proofs, proved = 0, bool(plan.tasks)  # before, the library may be another than it was
    for size, rivals in racing.items():
        logs, methods = standing.at(size), (default, *sorted(rivals))
        seconds = [math.exp(logs[method]) for method in methods]
        rounds = _rounds(size, rivals, standing, max(seconds))
        together[methods, rounds].append(size)
        proofs += len(algorithms := {name for name in methods if name.startswith(ALGORITHM)})
        proved = proved and standing.raced.get(size, {}).keys() >= algorithms
        cost_s += rounds * sum(map(wall_of_sample_s, seconds))
        at_size = standing.measured.get(size)
        needed = max(at_size.more_launches(), 1) if at_size else BATCH_LAUNCHES
        may_gain += _may_gain(size, rivals, standing) / needed
        launches.append(1 if plan.in_job and is_fresh(at_size) else max(needed, 2))
    return _Wanted(
        number,
        [Entrants(of, list(methods), rounds) for (methods, rounds), of in together.items()],
        min(launches),
        cost_s + (0.0 if proved else PROOF_S * proofs),
        may_gain,
        proved,
    )


def _may_gain(size: int, rivals: Sequence[str], standing: CaseStanding) -> float:
    """Return the logarithm of what a rival may gain over the method that is chosen so far.

    It is predicted for those that were not measured at the size, and from NEARLY to REACH.
    """
    logs, at_size = standing.at(size), standing.measured.get(size)
    leasts, chosen_log = {}, 0.0
    if at_size:
        leasts, winner = at_size.lows, at_size.contrasts.get(at_size.status().method)
        chosen_log = winner.mean if winner else 0.0
    least = min(leasts.get(name, logs[name] - logs[standing.default] - NEARLY) for name in rivals)
    return min(max(chosen_log - least, NEARLY), REACH)


def _tried(plan: RacePlan, number: int, *, staggered: bool) -> Counter[int]:
    """Return how many launches of a case each size was planned in."""
    tasks = [task for task in plan.tasks if (task.case, task.staggered) == (number, staggered)]
    return Counter(size for task in tasks for size in task.sizes)


def _wanted_staggered(plan: RacePlan, number: int, standing: CaseStanding) -> _Wanted | None:
    """Return the launches in which a case's winners meet the default by ranks that arrive apart.

    Ranks without cores of their own arrive apart anyway.
    """
    if standing.oversubscribed:
        return None
    tried = _tried(plan, number, staggered=True)
    arrival_s = plan.cases[number].arrival_s
    together: dict[str, list[int]] = defaultdict(list)
    cost_s = 0.0
    sizes, points = sorted(standing.measured), decide_class(standing.measured)
    for size, point in zip(sizes, points, strict=True):
        logs, staggered = standing.at(size), standing.measured[size].staggered.get(point.method)
        if tried[size] >= MIN_LAUNCHES or (staggered and staggered.launches >= MIN_LAUNCHES):
            continue
        # One that was chosen for another pattern of the degree class may not be known here.
        if point.status in WON and point.method in logs:
            together[point.method].append(size)
            both_s = math.exp(logs[standing.default]) + math.exp(logs[point.method])
            cost_s += ROUNDS * wall_of_sample_s(both_s + (2 * arrival_s or both_s))
    if not together:
        return None
    racing = [
        Entrants(sizes, [standing.default, winner], ROUNDS) for winner, sizes in together.items()
    ]
    return _Wanted(number, racing, MIN_LAUNCHES, cost_s, 1.0, bool(plan.tasks), staggered=True)


def _wanted_check(plan: RacePlan, number: int, standing: CaseStanding) -> _Wanted | None:
    """Return the launches in which sizes that other campaigns settled are measured again.

    The default meets the method on which the status rests.
    """
    tried = _tried(plan, number, staggered=False)
    together: dict[tuple[str, int], list[int]] = defaultdict(list)
    cost_s, may_gain = 0.0, 0.0
    for size, at_size in sorted(standing.measured.items()):
        status, logs = at_size.status(), standing.at(size)
        rival = status.challenger
        if tried[size] or not status.settled or rival is None or rival not in logs:
            continue
        pair_s = math.exp(logs[standing.default]), math.exp(logs[rival])
        rounds = _rounds(size, [rival], standing, max(pair_s))
        together[rival, rounds].append(size)
        cost_s += rounds * sum(map(wall_of_sample_s, pair_s))
        may_gain += NEARLY * (2 if at_size.shown(status) == FASTER_HERE else 1)
    if not together:
        return None
    racing = [
        Entrants(sizes, [standing.default, rival], rounds)
        for (rival, rounds), sizes in together.items()
    ]
    return _Wanted(number, racing, MIN_LAUNCHES, cost_s, may_gain, proved=bool(plan.tasks))


def _rivals(size: int, standing: CaseStanding, plan: RacePlan) -> list[str]:
    """Return the methods that race the default at a size.

    There are none where it is settled, or where it would take too many launches of this campaign.
    """
    at_size, default = standing.measured.get(size), standing.default
    logs = standing.at(size)
    best = min(logs.values())
    if at_size is None or is_fresh(at_size):
        others = sorted(logs.keys() - {default}, key=logs.__getitem__)
        # The default never races alone: without a rival, nothing is known here.
        return [name for name in others if logs[name] <= best + REACH] or others[:1]
    new = sorted(name for name in standing.newcomers & logs.keys() if is_new(name, at_size))
    new = [name for name in new if logs[name] <= best + REACH]
    if at_size.status().settled:
        return new
    rivals = [name for name in at_size.rivals() if name in logs and name not in new]
    near = [name for name in rivals if logs[name] <= best + REACH] or rivals
    racing = near if _is_short(math.exp(logs[default])) else near[:RIVALS]
    own = Counter[str]()
    for cell in at_size.cells:
        own[cell.key.method] += len(cell.parts) * (cell.key.campaign == plan.campaign)
    done = min((own[name] for name in racing), default=0)
    hopeless = done >= plan.launches / 2 and at_size.more_launches() > plan.launches
    return new if hopeless else [*racing, *new]


def _is_short(seconds: float) -> bool:
    """Return whether an execution is shorter than what a sample takes beside it."""
    return OVERHEAD * seconds < SAMPLE_S


def _rounds(size: int, rivals: Sequence[str], standing: CaseStanding, longest_s: float) -> int:
    """Return the rounds that leave ERROR_WITHIN: samples are best spent on further launches.

    Those of the shortest executions cost next to nothing.
    """
    at_size = standing.measured.get(size)
    least = SHORT_ROUNDS if _is_short(longest_s) else LEAST_ROUNDS
    known = (
        [at_size.contrasts[name] for name in rivals if name in at_size.contrasts] if at_size else []
    )
    known = [its for its in known if its.launches > 1] or [
        its
        for each in standing.measured.values()
        for its in each.contrasts.values()
        if its.launches > 1
    ]
    if not known:
        return least
    most = max(MOST_OVERSUBSCRIBED if standing.oversubscribed else MOST_ROUNDS, least)
    ratios = [its.noise / its.between if its.between else 0.0 for its in known]
    return math.ceil(min(max(float(np.median(ratios)) / ERROR_WITHIN, least), most))


def _between(standing: CaseStanding) -> Iterator[int]:
    """Yield sizes in the middle between neighbours that lose by each other's method."""
    sizes = sorted(standing.measured)
    logs = {size: standing.at(size) for size in sizes}
    statuses = {size: standing.measured[size].status() for size in sizes}
    least = REFINED_OVERSUBSCRIBED if standing.oversubscribed else REFINED_ABOVE
    for low, high in pairwise(sizes):
        before, after = statuses[low].method, statuses[high].method
        middle = round(math.sqrt(low * high) / 8) * 8
        if not {before, after} <= logs[low].keys() & logs[high].keys():
            continue  # chosen for another pattern of the degree class, or not applicable at one
        lost = logs[low][after] - logs[low][before] + logs[high][before] - logs[high][after]
        if lost > 2 * NEARLY and high / low > least and low < middle < high:
            yield middle


def _affordable(plan: RacePlan, wanted: list[_Wanted], left_s: float) -> list[_Wanted]:
    """Return what the time is enough for, of the cases that may gain most per second first.

    Where time is short, a launch gets what is left, and measures fewer sizes.
    """
    starts_s = {its.case: plan.start_s(its.case) + LEAST_LAUNCH_S for its in wanted}

    def worth(its: _Wanted) -> float:
        return plan.cases[its.case].weight * its.may_gain / (starts_s[its.case] + its.cost_s)

    chosen = {}
    for its in sorted(wanted, key=worth, reverse=True):
        start_s = starts_s[its.case]
        launches = min(its.launches, max(int(left_s / (start_s + its.cost_s)), 0))
        if launches:
            left_s -= launches * (start_s + its.cost_s)
            chosen[its.case] = replace(its, launches=launches, cost_s=its.cost_s + ROOM_S)
        elif left_s > start_s - 1e-9:
            chosen[its.case] = replace(its, launches=1, cost_s=left_s - start_s)
            left_s = 0.0
    return [chosen[its.case] for its in wanted if its.case in chosen]


def _tasks(plan: RacePlan, wanted: Sequence[_Wanted]) -> list[Task]:
    """Return launches, those of different cases in turn."""
    tasks: list[Task] = []
    first = max((task.number for task in [*plan.tasks, *plan.left_out]), default=-1) + 1
    for launch in range(BATCH_LAUNCHES):
        for its in wanted:
            if launch < its.launches:
                number = first + len(tasks)
                budget_s = math.floor(100 * (LEAST_LAUNCH_S + its.cost_s)) / 100
                how = its.proved, its.staggered, plan.cases[its.case].arrival_s
                tasks.append(Task(number, its.case, its.races, budget_s, *how))
    return tasks


def exhaustive_s(plan: RacePlan, measured: Measured) -> float:
    """Return the time of racing all methods at all sizes, as far as they were measured."""
    return sum(exhaustive_of_cases_s(plan, measured))


def exhaustive_of_cases_s(plan: RacePlan, measured: Measured) -> list[float]:
    """Return the time of racing all methods at all sizes of each case, 0 if it was not measured.

    Methods that were not screened count as the mean of those that were, and cases of a system and
    environment of which none was measured as the others.
    """
    found = {}
    for number, known in log_times(plan, measured.of_cases(plan)).items():
        case = plan.cases[number]
        times = Times(case, known, measured.baseline)
        rounds_s = sum(math.exp(log) for size in case.sizes for log in times.at(size).values())
        unscreened = max(len(case.offered) / max(len(times.methods), 1), 1.0)
        launch_s = OVERHEAD * EXHAUSTIVE_ROUNDS * rounds_s * unscreened
        found[number] = EXHAUSTIVE_LAUNCHES * (START_S + launch_s)
    places = {plan.cases[number].place for number in found}
    mean_s = sum(found.values()) / max(len(found), 1)
    return [
        found.get(number, 0.0 if case.place in places else mean_s)
        for number, case in enumerate(plan.cases)
    ]
