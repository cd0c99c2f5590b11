"""What a plan measures and what comes of it, on machines whose truth is known."""

import math
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from tests.decisions import select
from tests.synthetic_plan import (
    FAR,
    SyntheticMachine,
    cells_of,
    measure,
    measured,
    next_of_all,
    regrets,
)
from tuner.campaign.durations import LEAST_LAUNCH_S, SESSION_S, SOAKS_S
from tuner.campaign.measured import Measured
from tuner.campaign.order import PLANS, OrderError
from tuner.campaign.planning import (
    REFINED_ABOVE,
    exhaustive_s,
    least_s,
    next_batch,
    screening_budget_s,
)
from tuner.campaign.plans import (
    FIRST_SHARE,
    LAST_SHARE,
    MOST_JOB_S,
    MOST_LAUNCHES,
    RACE_SHARE,
    SCREENING,
    RacePlan,
    Task,
    dealt,
)
from tuner.domain.effort import START_S
from tuner.domain.records import Cell
from tuner.domain.tables import FASTER, FASTER_TOGETHER, WON, Point
from tuner.rawfile.ingest import ingest
from tuner.selection import evidence
from tuner.selection.decisions import decide_each_layout
from tuner.selection.intervals import NEARLY


@pytest.fixture(scope="module")
def tuned(tmp_path_factory: pytest.TempPathFactory) -> tuple[RacePlan, list[Cell]]:
    """Return a plan carried out on a machine of fifteen methods with drift and noise."""
    plan = FAR.plan(procs=(2, 8))
    return plan, measure(FAR, plan, tmp_path_factory.mktemp("machine"))


def test_the_regret_of_a_planned_campaign_is_small(tuned: tuple[RacePlan, list[Cell]]) -> None:
    rules, _ = select(tuned[1])
    for procs in (2, 8):
        over_best, over_default = regrets(FAR, rules, procs)
        assert np.mean(over_best) <= 0.01
        assert np.quantile(over_best, 0.95) <= 0.05
        assert np.mean(np.array(over_default) > 0.02) <= 0.01


def test_a_planned_campaign_is_cheap(tuned: tuple[RacePlan, list[Cell]]) -> None:
    """In the time of its samples, beside six launches of every method at every octave."""
    plan, cells = tuned
    spent_s = sum(float(cell.samples_s.sum()) for cell in cells)
    exhaustive = sum(
        6 * 40 * FAR.truth(method, size, case.procs)
        for case in plan.cases
        for size in case.sizes
        for method in FAR.methods
    )
    assert spent_s <= 0.1 * exhaustive
    assert exhaustive_s(plan, measured(cells)) > exhaustive
    assert plan.spent_s <= plan.budget_s


def test_what_is_far_off_is_measured_once_and_the_default_always(
    tuned: tuple[RacePlan, list[Cell]],
) -> None:
    plan, _ = tuned
    assert plan.batches[0].stage == SCREENING
    assert all(task.methods == [] for task in plan.batches[0].tasks)
    for batch in plan.batches[1:]:
        for task in batch.tasks:
            assert all("direct" in race.methods for race in task.races)
    slow = [
        method
        for task in plan.tasks
        for method in task.methods
        if method.startswith("slow") and int(method.rpartition("=")[2]) > 1
    ]
    assert not slow


def test_a_size_is_no_longer_raced_once_it_is_settled_or_was_launched_often(
    tuned: tuple[RacePlan, list[Cell]],
) -> None:
    plan, cells = tuned
    assert next_batch(plan, plan.turns[0], measured(cells)) is None
    for point in select(cells)[1]:
        hopeless = point.more_launches > MOST_LAUNCHES
        assert point.settled or point.launches >= MOST_LAUNCHES or hopeless


def switches(cells: list[Cell], procs: int) -> list[tuple[Point, Point]]:
    """Return neighbouring sizes that choose different methods; the truth has three of them.

    Decided by the layout's own launches, as a race decides.
    """
    of_layout = [point for point in decide_each_layout(cells) if point.case.layout.procs == procs]
    found = [pair for pair in pairwise(of_layout) if pair[0].method != pair[1].method]
    assert len(found) == 3
    return found


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_boundaries_are_halved_until_less_is_lost_than_matters(seed: int, tmp_path: Path) -> None:
    """Without noise, which makes some losses seem too small to matter."""
    machine = replace(FAR, seed=seed, sample_noise=0.002, launch_noise=0.0004)
    cells = measure(machine, machine.plan(procs=(2, 8)), tmp_path)
    for procs in (2, 8):
        sizes = [(low.case.bytes, high.case.bytes) for low, high in switches(cells, procs)]
        assert max(high / low for low, high in sizes) < REFINED_ABOVE


def test_neighbours_lose_little_by_each_others_method(tuned: tuple[RacePlan, list[Cell]]) -> None:
    for procs in (2, 8):
        for low, high in switches(tuned[1], procs):
            lost = sum(
                math.log(FAR.truth(other.method, size, procs) / FAR.truth(own.method, size, procs))
                for own, other in ((low, high), (high, low))
                for size in [own.case.size_bytes]
            )
            assert lost / 2 <= 2 * NEARLY


@pytest.mark.parametrize(("oversubscribed", "step"), [(False, 2), (True, 4)])
def test_sizes_between_two_that_choose_alike_are_not_measured(
    oversubscribed: bool, step: int, tmp_path: Path
) -> None:
    machine = replace(FAR, truth=lambda method, size, procs: 1e-5)
    plan = machine.plan()
    plan.cases = [replace(case, oversubscribed=oversubscribed) for case in plan.cases]
    measure(machine, plan, tmp_path)
    raced = {size for task in plan.tasks for size in task.sizes}
    assert raced == {*plan.cases[0].sizes[::step], plan.cases[0].sizes[-1]}


def test_what_has_no_budget_left_is_not_raced_on(tmp_path: Path) -> None:
    plan = FAR.plan(procs=(2,), budget_s=least_s(1))
    measure(FAR, plan, tmp_path)
    assert [batch.stage for batch in plan.batches[:2]] == [SCREENING, "race 1"]
    assert plan.spent_s + SOAKS_S <= plan.budget_s + 1e-6


@pytest.mark.parametrize("patterns", [6, pytest.param(40, marks=pytest.mark.nightly)])
def test_equal_methods_seldom_win_under_drift(patterns: int, tmp_path: Path) -> None:
    """At the sizes of each pattern, though losers are dropped and the luckiest race on."""
    machine = SyntheticMachine(
        ("direct", *(f"m:number={number}" for number in range(7))),
        lambda method, size, procs: 1e-5,
        launch_noise=0.02,
        drift=0.2,
    )
    plan = machine.plan(patterns=patterns, budget_s=6000)
    cells = measure(machine, plan, tmp_path)
    _, points = select(cells)
    assert len(points) >= 8 * patterns
    assert sum(point.method != "direct" for point in points) <= math.ceil(0.02 * len(points))


@pytest.mark.parametrize(
    "seed", [3, *(pytest.param(n, marks=pytest.mark.nightly) for n in range(20))]
)
def test_an_interrupted_campaign_goes_on_as_it_would_have(seed: int, tmp_path: Path) -> None:
    """Killed anywhere, it measures no launch again, and ends with the same table."""
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    whole.mkdir()
    cut.mkdir()
    expected = FAR.plan(procs=(4,))
    cells = measure(FAR, expected, whole)
    path = tmp_path / "plan.json"
    PLANS.save(FAR.plan(procs=(4,)), path)
    made: list[int] = []
    random = np.random.default_rng(seed)
    while True:
        plan = PLANS.load(path)  # as a new process would
        todo = [task for task in plan.tasks if task.number not in made]
        if not todo:
            batch = next_of_all(plan, cells_of(cut / "switchpoint.db"))
            if batch is None:
                break
            plan.spent_s += SESSION_S
            plan.spent_s += sum(START_S + FAR.takes_s(plan, task) for task in batch.tasks)
            plan.batches.append(batch)
            PLANS.save(plan, path)
            continue
        for task in todo[: int(random.integers(0, len(todo) + 1))]:
            ingest(cut / "switchpoint.db", [FAR.run(cut, plan, task)])
            made.append(task.number)
    assert len(made) == len(set(made))
    assert plan.batches == expected.batches
    assert select(cells_of(cut / "switchpoint.db")) == select(cells)


@pytest.mark.parametrize("cases", [1, 10, 1000])
def test_the_least_budget_has_time_to_screen_and_to_race_each_case(cases: int) -> None:
    plan = FAR.plan(budget_s=least_s(cases))
    race = next(turn for turn in plan.turns_of(plan.places[0]) if turn.spare)
    assert plan.left_s(race) >= 2 * cases * (START_S + LEAST_LAUNCH_S)


@pytest.mark.parametrize("share", [0.3, 0.6])
def test_a_budget_may_be_a_share_of_measuring_everything(tmp_path: Path, share: float) -> None:
    plan = FAR.plan(procs=(2, 8), budget_s=screening_budget_s(2))
    plan.share = share
    cells = measure(FAR, plan, tmp_path)
    assert all(task.budget_s == pytest.approx(3.3, abs=0.1) for task in plan.batches[0].tasks)
    whole_s = exhaustive_s(plan, measured(cells))
    assert plan.budget_s == pytest.approx(share * whole_s, rel=0.05)
    assert plan.spent_s <= plan.budget_s
    assert np.mean(regrets(FAR, select(cells)[0], 8)[0]) <= 0.02


def test_a_share_is_of_the_time_of_all_cases_from_the_first_decision_on(tmp_path: Path) -> None:
    """Though one environment races after the other, and the cases without cores come last."""
    together = FAR.plan(procs=(2, 8), patterns=2, budget_s=screening_budget_s(4))
    together.share = 0.3
    apart = replace(together, batches=[])
    apart.cases = [
        replace(case, oversubscribed=case.procs == 8, environment=f"mpi{number % 2}")
        for number, case in enumerate(together.cases)
    ]
    for plan, name in ((together, "together"), (apart, "apart")):
        (tmp_path / name).mkdir()
        measure(FAR, plan, tmp_path / name, batches=2)
        assert plan.batches[1].stage == "race 1"
    assert {apart.cases[task.case].environment for task in apart.tasks} == {"mpi0"}
    assert apart.budget_s == pytest.approx(together.budget_s, rel=0.1)


def test_what_failed_its_soak_does_not_race(tmp_path: Path) -> None:
    plan = FAR.plan()
    plan.cases = [replace(case, failed=["stfw:dims=3"]) for case in plan.cases]
    measure(FAR, plan, tmp_path)
    racing = {method for task in plan.tasks for method in task.methods}
    assert "stfw:dims=2" in racing
    assert "stfw:dims=3" not in racing


def test_what_starts_take_longer_is_saved_in_later_batches(tmp_path: Path) -> None:
    """The screening does not know of it yet."""
    plan = FAR.plan(procs=(2, 4), budget_s=4 * least_s(2))
    measure(replace(FAR, slow=3), plan, tmp_path)
    assert len(plan.batches) > 1
    assert plan.spent_s + 3 * SOAKS_S <= 1.05 * plan.budget_s


def test_cases_with_most_to_gain_race_where_time_is_short(tmp_path: Path) -> None:
    """All but one have nothing to gain: the default is far ahead there."""

    def uneven(method: str, size: int, procs: int) -> float:
        return FAR.truth(method, size, procs) if procs == 4 or method == "direct" else 1.0

    machine = replace(FAR, truth=uneven)
    plan = machine.plan(procs=(2, 4, 8), budget_s=SOAKS_S + 4.5 * (START_S + LEAST_LAUNCH_S))
    measure(machine, plan, tmp_path)
    first = plan.batches[1].tasks
    assert {plan.cases[task.case].procs for task in first} == {4}


def crowded(plan: RacePlan) -> RacePlan:
    """Return the plan with its second case oversubscribed."""
    plan.cases = [
        replace(case, oversubscribed=number == 1) for number, case in enumerate(plan.cases)
    ]
    return plan


def test_cases_with_cores_come_first_and_spare_time_goes_to_all() -> None:
    plan = crowded(FAR.plan(procs=(2, 8)))
    assert [list(turn.cases) for turn in plan.turns] == [[0], [1], [0, 1], [0, 1]]
    shares = [RACE_SHARE * share for share in (FIRST_SHARE, LAST_SHARE, 1)]
    assert [turn.share for turn in plan.turns] == [*shares, 1.0]
    assert [turn.staggered for turn in plan.turns] == [False, False, False, True]
    plan.advises = "app"  # whose cases have weights
    assert [list(turn.cases) for turn in plan.turns] == [[0, 1], [0, 1]]
    plan.in_job = False
    assert [list(turn.cases) for turn in plan.turns] == [[0, 1]]


def test_a_turn_without_time_is_over_though_it_never_began() -> None:
    plan = crowded(FAR.plan(procs=(2, 8), budget_s=100))
    first, second, *_ = plan.turns
    batch = next_batch(plan, first, Measured())
    assert batch is not None
    assert {task.case for task in batch.tasks} == {0}
    plan.batches.append(batch)
    plan.spent_s = 99
    assert next_batch(plan, second, Measured()) is None


def test_dropped_launches_are_screened_again_under_new_numbers() -> None:
    plan = FAR.plan(procs=(2, 4, 8))
    turn = plan.turns[0]
    batch = next_batch(plan, turn, Measured())
    assert batch is not None
    plan.batches.append(batch)
    plan.drop(batch.tasks[1:2])
    again = next_batch(plan, turn, Measured())
    assert again is not None
    assert [(task.number, task.case) for task in again.tasks] == [(3, 1)]


def test_launches_that_were_left_out_keep_their_numbers_for_a_resumed_race() -> None:
    plan = FAR.plan(procs=(2, 4, 8))
    plan.in_job = False
    batch = next_of_all(plan, [])
    assert batch is not None
    plan.batches.append(batch)
    plan.leave_out(batch.tasks[1:])
    again = next_of_all(plan, [])
    assert again is not None
    assert [(task.number, task.case) for task in again.tasks] == [(3, 1), (4, 2)]
    budget_s, most_batches = plan.budget_s, plan.most_batches
    plan.resume()
    assert [task.number for task in plan.tasks] == [0, 1, 2]
    assert (plan.most_batches, plan.left_out) == (most_batches + 1, [])
    assert plan.budget_s >= budget_s + sum(task.budget_s for task in plan.batches[-1].tasks)


def test_a_queue_has_so_many_batches_and_no_more(tmp_path: Path) -> None:
    plan = FAR.plan(procs=(2,))
    plan.in_job, plan.most_batches = False, 2
    measure(FAR, plan, tmp_path)
    assert [len(batch.tasks) for batch in plan.batches] == [1, 3]


def test_what_was_asked_for_is_measured_beside_the_default() -> None:
    plan = FAR.plan(procs=(2,))
    asked = replace(plan.cases[0], sizes=[8, 1024, 8192, 65536], methods=["neighbor"])
    plan.cases = [asked]
    batch = next_batch(plan, plan.turns[0], Measured())
    assert batch is not None
    assert batch.tasks[0].sizes == [8, 1024, 8192, 65536]
    assert batch.tasks[0].methods == ["direct", "neighbor"]


def test_a_file_that_is_no_plan_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    for text in ("", "{}", '{"campaign": 3}'):
        path.write_text(text)
        with pytest.raises(OrderError, match="not a plan"):
            PLANS.load(path)


def test_winners_meet_the_default_by_ranks_that_arrive_apart(
    tuned: tuple[RacePlan, list[Cell]],
) -> None:
    plan, cells = tuned
    rules, points = select(cells)
    launches = Counter(
        (plan.cases[task.case].procs, size, method)
        for task in plan.tasks
        if task.staggered
        for race in task.races
        for size in race.sizes
        for method in race.methods
    )
    won = {
        (its.case.layout.procs, its.case.size_bytes, its.method)
        for its in points
        if its.status in WON
    }
    assert won
    assert {launches[each] for each in won} == {2}
    large = [its for its in points if its.status in WON and its.ratio and its.ratio < 0.8]
    assert large
    assert all(evidence.verdict(its).endswith("; also where ranks arrive apart") for its in large)
    assert {rule.evidence.case.staggered for rule in rules} == {False}


def test_a_winner_that_loses_by_ranks_that_arrive_apart_is_marked(tmp_path: Path) -> None:
    """It is still chosen, as it wins where they arrive together."""
    plan = FAR.plan(procs=(4,))
    plan.cases = [replace(case, arrival_s=2e-5) for case in plan.cases]

    def otherwise(task: Task) -> SyntheticMachine:
        def swapped(method: str, size: int, procs: int) -> float:
            return FAR.truth(method, size, procs) * (1.0 if method == "direct" else 9.0)

        return replace(FAR, truth=swapped) if task.staggered else FAR

    cells = measure(FAR, plan, tmp_path, machine_of=otherwise)
    _, points = select(cells)
    assert FASTER_TOGETHER in {point.status for point in points}
    assert FASTER not in {point.status for point in points}
    said = {evidence.verdict(point) for point in points if point.status == FASTER_TOGETHER}
    assert all(text.endswith("; slower where ranks arrive apart") for text in said)
    assert not any(point.staggered for point in points)
    arrivals = {task.options["--arrival"] for task in plan.tasks}
    assert arrivals == {"together", "2e-05"}


def test_a_method_that_is_not_applicable_at_a_size_races_at_others_only(tmp_path: Path) -> None:
    """Others race in its place, and nothing is added between the sizes on both sides."""

    def small_only(method: str, size: int, procs: int) -> float:
        if method == "nap":
            return math.inf if size > 8192 else 0.3 * FAR.truth("direct", size, procs)
        return FAR.truth(method, size, procs)

    plan = FAR.plan(procs=(4,))
    _, points = select(measure(replace(FAR, truth=small_only), plan, tmp_path))
    chosen = {point.case.size_bytes: point.method for point in points}
    assert {chosen[size] for size in chosen if size <= 8192} == {"nap"}
    assert min(size for size in chosen if size > 8192) == 32768
    assert all(point.settled for point in points)


def test_a_winner_of_another_pattern_is_not_raced_where_it_is_not_known(tmp_path: Path) -> None:
    """Cases of one degree class may have methods of their own."""
    plan = FAR.plan(procs=(4,))
    plan.cases = [
        replace(plan.cases[0], methods=["direct", *others], sizes=[8, 1024])
        for others in (["stfw:dims=3"], ["nap"])
    ]
    _, points = select(measure(FAR, plan, tmp_path))
    assert "stfw:dims=3" in {point.method for point in points}
    raced = {(task.case, name) for task in plan.tasks if task.staggered for name in task.methods}
    assert raced == {(0, "direct"), (0, "stfw:dims=3")}


def test_jobs_of_a_queue_have_all_cases_and_a_case_meets_several(tmp_path: Path) -> None:
    plan = FAR.plan(procs=(2, 4), patterns=3, sizes=(8, 512, 8192, 131072))
    plan.in_job = False
    long = replace(plan, budget_s=36_000.0)
    screening = next_batch(long, long.turns[0], Measured())
    assert screening is not None
    assert max(task.limit_s for task in screening.tasks) <= MOST_JOB_S
    measure(FAR, plan, tmp_path, batches=2)
    screening, race = (dealt(plan, batch.tasks) for batch in plan.batches)
    assert [[task.case for task in job] for job in screening] == [[0, 1, 2], [3, 4, 5]]
    for job in race:
        cases = [task.case for task in job]
        assert len(cases) == len(set(cases))
        assert len({plan.cases[case].procs for case in cases}) == 1
        assert len(cases) == 3
    met = Counter(task.case for job in race for task in job)
    assert set(met.values()) == {3}
    assert sorted(task.number for job in race for task in job) == [
        task.number for task in plan.batches[1].tasks
    ]
    long = [replace(task, budget_s=MOST_JOB_S / 2) for task in plan.batches[0].tasks]
    assert [len(job) for job in dealt(plan, long)] == [1] * 6
    plan.cases[1] = replace(plan.cases[1], failed=["nap"])
    assert [[task.case for task in job] for job in dealt(plan, plan.batches[0].tasks)] == [
        *([0, 2], [1], [3, 4, 5])
    ]
