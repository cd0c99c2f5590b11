"""What a plan measures and what comes of it, on machines whose truth is known."""

import math
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from tests.synthetic_plan import SyntheticMachine, cells_of, measure
from tuner.campaign.order import PLANS, OrderError
from tuner.campaign.planning import anchors_s, exhaustive_s, least_s, next_batch
from tuner.campaign.plans import STAGES, Plan
from tuner.campaign.races import losers, races
from tuner.campaign.times import SESSION_S, SOAKS_S
from tuner.domain.cases import Place
from tuner.domain.records import Cell
from tuner.domain.tables import Rule
from tuner.rawfile.ingest import ingest
from tuner.selection import match
from tuner.selection.decisions import START_S, select

CURVES = {
    "direct": (4e-5, 1e-8),
    "stfw:dims=2": (2e-5, 2e-8),
    "stfw:dims=3": (1.6e-5, 4e-8),
    "neighbor": (4.4e-5, 1e-8),
    "nap": (6e-5, 0.8e-8),
    **{f"slow:number={number}": (1e-4 * (number + 1), 2e-8) for number in range(10)},
}


def truth(method: str, size: int, procs: int) -> float:
    latency_s, per_byte_s = CURVES[method]
    return math.log2(procs) / 2 * latency_s + per_byte_s * size * procs / 4


MACHINE = SyntheticMachine(tuple(CURVES), truth)


def no_model(*case: object) -> None:
    return None


def regrets(rules: list[Rule], procs: int) -> tuple[list[float], list[float]]:
    """At sizes that were not measured: over the best method's time, and over the default's."""
    random = np.random.default_rng(7)
    over_best, over_default = [], []
    for size in np.exp(random.uniform(math.log(8), math.log(131072), 300)).astype(int).tolist():
        rule = match.first(rules, Place("exchange", 1, procs, 6, 6.0), size)
        time_s = truth(rule.method if rule else "direct", size, procs)
        over_best.append(time_s / min(truth(method, size, procs) for method in CURVES) - 1)
        over_default.append(time_s / truth("direct", size, procs) - 1)
    return over_best, over_default


def stages(plan: Plan) -> list[str]:
    """But for refinements."""
    return [batch.stage for batch in plan.batches if not batch.stage.startswith("refinement")]


@pytest.fixture(scope="module")
def tuned(tmp_path_factory: pytest.TempPathFactory) -> tuple[Plan, list[Cell]]:
    """A plan that was carried out on a machine of fifteen methods with drift and noise."""
    plan = MACHINE.plan(procs=(2, 8))
    return plan, measure(MACHINE, plan, tmp_path_factory.mktemp("machine"))


def test_the_regret_of_a_planned_campaign_is_small(tuned: tuple[Plan, list[Cell]]) -> None:
    rules, _ = select(tuned[1])
    for procs in (2, 8):
        over_best, over_default = regrets(rules, procs)
        assert np.mean(over_best) <= 0.02
        assert np.quantile(over_best, 0.95) <= 0.08
        assert np.mean(np.array(over_default) > 0.02) <= 0.01


def test_a_planned_campaign_is_cheap(tuned: tuple[Plan, list[Cell]]) -> None:
    """In the time of its samples, beside six launches of every method at every octave."""
    plan, cells = tuned
    spent_s = sum(float(cell.samples_s.sum()) for cell in cells)
    exhaustive = sum(
        6 * 40 * truth(method, size, case.procs)
        for case in plan.cases
        for size in case.sizes
        for method in CURVES
    )
    assert spent_s <= 0.15 * exhaustive
    assert exhaustive_s(plan, cells, no_model) > exhaustive
    assert plan.spent_s <= plan.budget_s


def test_what_is_far_off_is_measured_once_and_the_default_always(
    tuned: tuple[Plan, list[Cell]],
) -> None:
    plan, _ = tuned
    assert stages(plan) == list(STAGES)
    assert all(task.methods == [] for task in plan.batches[0].tasks)
    for batch in plan.batches[1:]:
        for task in batch.tasks:
            assert "direct" in task.methods
            assert not any(method.startswith("slow") for method in task.methods)


def best(size: int, procs: int) -> str:
    return min(CURVES, key=lambda method: truth(method, size, procs))


def around_switches(plan: Plan, number: int) -> list[float]:
    """The ratios of the measured sizes next to each other between which the best method changes."""
    procs = plan.cases[number].procs
    sizes = {size for task in plan.tasks if task.case == number for size in task.sizes}
    return [
        high / low for low, high in pairwise(sorted(sizes)) if best(low, procs) != best(high, procs)
    ]


def test_boundaries_are_halved_until_less_is_lost_than_matters(
    tuned: tuple[Plan, list[Cell]],
) -> None:
    plan, _ = tuned
    refinements = [batch for batch in plan.batches if batch.stage.startswith("refinement")]
    assert refinements
    assert next_batch(plan, tuned[1], no_model) is None
    for number in range(2):
        ratios = around_switches(plan, number)
        assert len(ratios) == 3
        assert max(ratios) < 1.5
        assert min(ratios) < 1.25
    for batch in refinements:
        for task in batch.tasks:
            assert not {*task.sizes} & {*plan.cases[0].sizes}


def test_what_has_no_budget_left_is_not_refined(tmp_path: Path) -> None:
    plan = MACHINE.plan(procs=(2,), budget_s=least_s(1))
    measure(MACHINE, plan, tmp_path)
    assert [batch.stage for batch in plan.batches] == list(STAGES)


@pytest.mark.parametrize("patterns", [6, pytest.param(40, marks=pytest.mark.nightly)])
def test_equal_methods_seldom_win_under_drift(patterns: int, tmp_path: Path) -> None:
    """At 15 sizes of each pattern, though losers are dropped and the luckiest race on."""
    machine = SyntheticMachine(
        ("direct", *(f"m:number={number}" for number in range(7))),
        lambda method, size, procs: 1e-5,
        launch_noise=0.02,
        drift=0.2,
    )
    plan = machine.plan(patterns=patterns, budget_s=6000)
    cells = measure(machine, plan, tmp_path, batches=9)
    _, points = select(cells)
    assert len(points) >= 15 * patterns
    assert sum(point.method != "direct" for point in points) <= 0.02 * len(points)


@pytest.mark.parametrize(
    "seed", [3, *(pytest.param(n, marks=pytest.mark.nightly) for n in range(20))]
)
def test_an_interrupted_campaign_goes_on_as_it_would_have(seed: int, tmp_path: Path) -> None:
    """Killed anywhere, it measures no launch again, and ends with the same table."""
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    whole.mkdir()
    cut.mkdir()
    expected = MACHINE.plan(procs=(4,))
    cells = measure(MACHINE, expected, whole)
    path = tmp_path / "plan.json"
    PLANS.save(MACHINE.plan(procs=(4,)), path)
    made: list[int] = []
    random = np.random.default_rng(seed)
    while True:
        plan = PLANS.load(path)  # as a new process would
        todo = [task for task in plan.tasks if task.number not in made]
        if not todo:
            batch = next_batch(plan, cells_of(cut / "switchpoint.db"), no_model)
            if batch is None:
                break
            plan.spent_s += SESSION_S
            plan.spent_s += sum(START_S + MACHINE.takes_s(plan, task) for task in batch.tasks)
            plan.batches.append(batch)
            PLANS.save(plan, path)
            continue
        for task in todo[: int(random.integers(0, len(todo) + 1))]:
            ingest(cut / "switchpoint.db", [MACHINE.run(cut, plan, task)])
            made.append(task.number)
    assert len(made) == len(set(made))
    assert plan.batches == expected.batches
    assert select(cells_of(cut / "switchpoint.db")) == select(cells)


@pytest.mark.parametrize("share", [0.3, 0.6])
def test_a_budget_may_be_a_share_of_measuring_everything(tmp_path: Path, share: float) -> None:
    plan = MACHINE.plan(procs=(2, 8), budget_s=anchors_s(2))
    plan.share = share
    cells = measure(MACHINE, plan, tmp_path)
    assert stages(plan) == list(STAGES)
    assert all(task.budget_s == pytest.approx(3, abs=0.1) for task in plan.batches[0].tasks)
    whole_s = exhaustive_s(plan, cells, no_model)
    assert plan.budget_s == pytest.approx(share * whole_s, rel=0.05)
    assert plan.spent_s <= plan.budget_s
    assert np.mean(regrets(select(cells)[0], 8)[0]) <= 0.02


def test_what_failed_its_soak_does_not_race(tmp_path: Path) -> None:
    plan = MACHINE.plan()
    plan.cases = [replace(case, failed=["stfw:dims=3"]) for case in plan.cases]
    measure(MACHINE, plan, tmp_path)
    racing = {method for task in plan.tasks for method in task.methods}
    assert "stfw:dims=2" in racing
    assert "stfw:dims=3" not in racing


def test_losers_have_to_lose_twice_and_the_default_never_does(tmp_path: Path) -> None:
    plan = MACHINE.plan()
    race = races(plan, measure(MACHINE, plan, tmp_path, batches=1))[0][8]
    assert losers(race, "direct") == set()
    race = races(plan, measure(MACHINE, plan, tmp_path, batches=2))[0][8]
    often = {method for method in race if len(race[method]) > 2}
    assert "stfw:dims=2" in often
    assert losers(race, "direct") == often - {"direct", "stfw:dims=3"}


def test_the_smallest_budget_is_not_exceeded(tmp_path: Path) -> None:
    plan = MACHINE.plan(procs=(2, 4), budget_s=least_s(2))
    measure(MACHINE, plan, tmp_path)
    assert stages(plan) == list(STAGES)
    assert plan.left_out == []
    assert plan.spent_s + SOAKS_S <= plan.budget_s + 1e-6


def test_what_starts_take_longer_is_saved_in_the_stages_that_follow(tmp_path: Path) -> None:
    """Of a budget that is enough; the first stage does not know of it yet."""
    plan = MACHINE.plan(procs=(2, 4), budget_s=4 * least_s(2))
    measure(replace(MACHINE, slow=3), plan, tmp_path)
    assert stages(plan) == list(STAGES)
    assert plan.left_out == []
    assert plan.spent_s + 3 * SOAKS_S <= 1.05 * plan.budget_s


def test_cases_without_time_are_left_out_when_starts_take_longer(tmp_path: Path) -> None:
    """Those with most to gain are raced to their end, within the budget."""
    plan = MACHINE.plan(procs=(2, 4, 8), patterns=4, budget_s=least_s(12))
    measure(replace(MACHINE, slow=1.5), plan, tmp_path)
    assert 0 < len(plan.left_out) < 12
    assert stages(plan) == list(STAGES)
    assert {task.case for task in plan.batches[3].tasks} == {*range(12)} - {*plan.left_out}
    assert plan.spent_s + 1.5 * SOAKS_S <= plan.budget_s


def test_a_file_that_is_no_plan_is_told(tmp_path: Path) -> None:
    path = tmp_path / "plan.json"
    for text in ("", "{}", '{"campaign": 3}'):
        path.write_text(text)
        with pytest.raises(OrderError, match="not a plan"):
            PLANS.load(path)
