"""A campaign on a system that earlier ones have measured: what it takes as known."""

import math
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests import raw
from tests.cells import CONSTANT, make_cells, scaled
from tests.decisions import select
from tests.synthetic_plan import FAR, SyntheticMachine, cells_of, measure, measured, next_of_all
from tuner.campaign import plan_state
from tuner.campaign.durations import LEAST_LAUNCH_S
from tuner.campaign.order import PLANS
from tuner.campaign.planning import exhaustive_s, next_batch
from tuner.campaign.plans import ALL, SCREENING, PlannedBatch, PlannedCase, RacePlan
from tuner.campaign.standings import known_methods, settled_before, standings_of, unscreened_before
from tuner.domain.effort import OVERHEAD, START_S
from tuner.rawfile.ingest import ingest
from tuner.selection import tuning
from tuner.selection.decisions import measurements
from tuner.store.store import Store

FEW_SIZES = (8, 512, 8192, 131072)


def test_a_method_that_was_only_screened_races_in_the_next_campaign(tmp_path: Path) -> None:
    """Also where another method is settled already."""
    older = replace(FAR, methods=tuple(name for name in FAR.methods if name != "stfw:dims=3"))
    first = older.plan(sizes=FEW_SIZES)
    measure(older, first, tmp_path)
    second = further(first, offered=sorted(FAR.methods))
    measure(FAR, second, tmp_path, batches=1)
    assert second.tasks[0].methods == ["direct", "stfw:dims=3"]
    third = replace(further(second), campaign="20261123T034500Z")
    cells = measure(FAR, third, tmp_path)
    assert third.batches[0].stage != SCREENING
    assert select(cells)[1][0].method == "stfw:dims=3"


def further(plan: RacePlan, **changes: Any) -> RacePlan:
    """Return the plan of a further campaign, whose cases differ by so much."""
    cases = [replace(case, **changes) for case in plan.cases]
    return replace(plan, campaign="20261122T034500Z", cases=cases, batches=[], spent_s=0.0)


def test_a_further_campaign_goes_first_to_what_is_open_and_then_checks_what_is_settled(
    tmp_path: Path,
) -> None:
    first = FAR.plan(procs=(2, 8), sizes=FEW_SIZES)
    before = settled_before(first, measured(measure(FAR, first, tmp_path, batches=3)))
    assert 0 < before.settled < before.sizes
    then = further(first)
    batch = next_of_all(then, cells_of(tmp_path / "switchpoint.db"))
    assert batch is not None
    points = select(cells_of(tmp_path / "switchpoint.db"))[1]
    settled = {(its.case.layout.procs, its.case.size_bytes) for its in points if its.settled}
    raced = {(then.cases[task.case].procs, size) for task in batch.tasks for size in task.sizes}
    assert raced
    assert raced.isdisjoint(settled)
    cells = measure(FAR, then, tmp_path)
    after = settled_before(then, measured(cells))
    assert after.settled == after.sizes
    assert SCREENING not in {its.stage for its in then.batches}
    launched = Counter(
        (then.cases[task.case].procs, size)
        for task in then.tasks
        if not task.staggered
        for size in task.sizes
    )
    assert {launched[its] for its in settled} == {2}  # each is checked, and holds
    assert next_of_all(then, cells) is None


def test_an_open_size_has_a_rival_though_none_may_gain_much() -> None:
    """Too few rounds settle nothing, and only more of them can."""
    cells = make_cells(CONSTANT | {"neighbor": scaled(1.5)}, launches=2, samples=5)
    cells += make_cells(CONSTANT | {"neighbor": scaled(1.5)}, sizes=(16, 32, 128), seed=2)
    open_ones = {
        at_size.cells[0].key.case.size_bytes: at_size
        for at_size in measurements(cells).values()
        if not at_size.status().settled
    }
    assert {*open_ones} == {8, 64, 512, 4096}
    for at_size in open_ones.values():
        assert at_size.least_log > 0
        assert at_size.rivals() == [at_size.status().challenger] == ["neighbor"]


def test_two_launches_of_the_least_rounds_settle_a_size(tmp_path: Path) -> None:
    """Where samples scatter little; the first batch screens a few sizes."""
    times_s = {"direct": 1e-5, "neighbor": 2e-5}
    machine = SyntheticMachine(
        (*times_s,), lambda method, size, procs: times_s[method], sample_noise=0.01
    )
    points = select(measure(machine, machine.plan(), tmp_path, batches=3))[1]
    assert {(point.method, point.status) for point in points} == {("direct", "default")}


def test_a_method_has_no_time_where_the_model_says_that_it_is_not_applicable(
    tmp_path: Path,
) -> None:
    """Only where it was measured none the less, its measured times say more than the model."""
    plan = FAR.plan(sizes=FEW_SIZES)
    cells = measure(FAR, plan, tmp_path, batches=1)
    small = [it for it in cells if it.key.method != "nap" or it.key.case.size_bytes <= 512]

    def baseline(case: PlannedCase, method: str, size: int) -> float | None:
        return None if method == "nap" and size > 8192 else FAR.truth(method, size, case.procs)

    whole = replace(measured(cells), baseline=baseline)
    part = replace(measured(small), baseline=baseline)
    for known, larger in ((whole, FAR.methods), (part, {*FAR.methods} - {"nap"})):
        times = standings_of(plan, known)[0].at(131072)
        assert times.keys() == {*larger}
        for method, log in times.items():
            assert math.exp(log) == pytest.approx(FAR.truth(method, 131072, 4), rel=0.2)
    lost_s = exhaustive_s(plan, whole) - exhaustive_s(plan, part)
    assert lost_s == pytest.approx(6 * 40 * OVERHEAD * FAR.truth("nap", 131072, 4), rel=0.5)


def test_a_store_without_a_launch_knows_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a run leaves it that is killed in its first launch."""
    monkeypatch.setenv("SWITCHPOINT_RESULTS", str(tmp_path))
    Store.open(tmp_path / "switchpoint.db").close()
    assert plan_state.known(FAR.plan(procs=(4,))).cells == []


def test_a_further_campaign_screens_methods_that_are_new_and_no_others(tmp_path: Path) -> None:
    """Also where another method is settled already."""
    older = replace(FAR, methods=tuple(name for name in FAR.methods if name != "stfw:dims=3"))
    first = older.plan(sizes=FEW_SIZES)
    points = select(measure(older, first, tmp_path))[1]
    assert (points[0].method, points[0].status) == ("stfw:dims=2", "faster")
    then = further(first, offered=sorted(FAR.methods))
    cells = measure(FAR, then, tmp_path)
    assert then.batches[0].stage == SCREENING
    assert [task.methods for task in then.batches[0].tasks] == [["direct", "stfw:dims=3"]]
    assert select(cells)[1][0].method == "stfw:dims=3"


def test_all_methods_are_screened_once_the_system_turns_out_to_be_another(tmp_path: Path) -> None:
    """As after an upgrade of the MPI library, which only a launch shows."""
    first = FAR.plan(sizes=FEW_SIZES)
    then = further(first, offered=sorted(FAR.methods))
    known = measure(FAR, first, tmp_path, batches=3)
    (tmp_path / "upgraded").mkdir()
    stages = []
    for cells in (known, None, None):
        batch = next_of_all(then, cells or cells_of(tmp_path / "upgraded.db"))
        assert batch is not None
        assert any(task.proved for task in batch.tasks) == (len(stages) == 2)
        then.batches.append(batch)
        stages.append((batch.stage == SCREENING, batch.tasks[0].methods == []))
        files = [FAR.run(tmp_path / "upgraded", then, task) for task in batch.tasks]
        ingest(tmp_path / "upgraded.db", files)
    assert stages == [(False, False), (True, True), (False, False)]


def test_a_queue_screens_all_methods_where_campaigns_measured_some_alone(tmp_path: Path) -> None:
    first = replace(FAR.plan(sizes=FEW_SIZES), in_job=False)
    first.cases = [replace(case, methods=["neighbor"]) for case in first.cases]
    cells = measure(FAR, first, tmp_path, batches=1)
    then = further(first, methods=[])
    batch = next_of_all(then, cells)
    assert batch is not None
    assert (batch.stage, batch.tasks[0].methods) == (SCREENING, [])
    known = replace(measured(cells), considered={then.cases[0].key: {ALL}})
    again = next_batch(then, then.turns[0], known)
    assert again is not None and again.stage != SCREENING


def test_a_queue_screens_methods_that_newer_kernels_bring(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which only their launches name; all that there were before were screened."""
    monkeypatch.setenv("SWITCHPOINT_RESULTS", str(tmp_path))
    monkeypatch.setattr(plan_state, "of_this_machine", lambda systems, **_: systems)
    first = replace(FAR.plan(sizes=FEW_SIZES), in_job=False)
    then = further(first)
    had = "direct nap neighbor slow stfw"
    for day, plan, names in ((21, first, had), (22, then, f"{had} lent")):
        batch = next_batch(plan, plan.turns[0], plan_state.known(plan))
        assert batch is not None and "lent" not in batch.tasks[0].methods
        plan.batches.append(batch)
        PLANS.save(plan, PLANS.path_of(plan.campaign))
        path = FAR.run(tmp_path, plan, batch.tasks[0])
        its = {"methods": names, "date": f"2026-11-{day}T00:00:00Z"}
        raw.change(path, lambda record, its=its: record.update(its))
        ingest(tmp_path / "switchpoint.db", [path])
    known = plan_state.known(then)
    assert next_batch(replace(then, most_batches=1), then.turns[0], known) is None
    batch = next_batch(then, then.turns[0], known)
    assert batch is not None and batch.stage == SCREENING
    assert str(batch.tasks[0].races[0]).endswith(" direct: lent")
    then.batches.append(batch)
    again = next_batch(then, then.turns[0], known)
    assert again is None or again.stage != SCREENING


def test_a_method_is_known_in_the_cases_in_which_a_launch_measured_or_tried_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also if the launch failed; not if it was not made, or was of another pattern."""
    monkeypatch.setenv("SWITCHPOINT_RESULTS", str(tmp_path))
    monkeypatch.setattr(plan_state, "of_this_machine", lambda systems, **_: systems)
    first = FAR.plan(patterns=2, sizes=FEW_SIZES)
    screened = [["direct", "nap"], ["direct", "neighbor"]]
    first.cases = [
        replace(case, methods=methods, offered=["direct", "lent", "nap", "neighbor", "shared"])
        for case, methods in zip(first.cases, screened, strict=True)
    ]
    measure(FAR, first, tmp_path, batches=1)
    (race,) = first.tasks[0].races
    failed = replace(first.tasks[0], number=9, races=[replace(race, methods=["direct", "lent"])])
    after = replace(failed, number=10, races=[replace(race, methods=["direct", "shared"])])
    first.left_out = [failed, after]
    first.batches.append(PlannedBatch("interrupted", [replace(after, number=11, case=1)]))
    PLANS.save(first, PLANS.path_of(first.campaign))
    then = further(first, methods=[])
    known = plan_state.known(then)
    assert known_methods(then, known) == {0: {*screened[0], "lent"}, 1: {*screened[1]}}
    assert unscreened_before(then, known) == {
        0: {"neighbor", "shared"},
        1: {"lent", "nap", "shared"},
    }


def test_a_pattern_in_other_words_has_the_same_unscreened_methods(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SWITCHPOINT_RESULTS", str(tmp_path))
    monkeypatch.setattr(plan_state, "of_this_machine", lambda systems, **_: systems)
    first = FAR.plan(sizes=FEW_SIZES)
    its = {"methods": ["direct", "nap"], "offered": ["direct", "lent", "nap"]}
    first.cases = [replace(case, pattern="blocks:root=0", **its) for case in first.cases]
    measure(FAR, first, tmp_path, batches=1)
    PLANS.save(first, PLANS.path_of(first.campaign))
    then = further(first, pattern="blocks", methods=[])
    assert unscreened_before(then, plan_state.known(then)) == {0: {"lent"}}


def test_of_two_systems_at_a_place_the_one_where_a_size_is_open_counts(tmp_path: Path) -> None:
    """As on a partition with two kinds of processors."""
    plan = FAR.plan(sizes=FEW_SIZES)
    cells = measure(FAR, plan, tmp_path)
    (tmp_path / "other").mkdir()
    few = measure(FAR, FAR.plan(sizes=FEW_SIZES), tmp_path / "other", batches=1)
    others = [replace(cell, key=cell.key._replace(system="other")) for cell in few]
    for both in (cells + others, others + cells):
        (standing,) = standings_of(plan, measured(both)).values()
        raced = {cell.key.case.size_bytes for cell in others}
        assert not any(standing.measured[size].status().settled for size in raced)
    (alone,) = standings_of(plan, measured(cells)).values()
    assert all(alone.measured[size].status().settled for size in raced)


def test_a_queue_screens_families_that_a_user_named() -> None:
    """In a job they are expanded before, as there the methods of the kernels are known."""
    plan = replace(FAR.plan(procs=(2,)), in_job=False)
    plan.cases = [replace(plan.cases[0], methods=["stfw", "nap:node=shared"])]
    batch = next_of_all(plan, [])
    assert batch is not None
    assert str(batch.tasks[0].races[0]).endswith(" 8 direct: nap:node=shared stfw")


def test_a_new_method_that_may_gain_much_races_first_where_time_is_short(tmp_path: Path) -> None:
    """Though the default is far ahead of the methods that were known there."""

    def truth(method: str, size: int, procs: int) -> float:
        slower = {"direct": (1.0, 1.0), "neighbor": (2.0, 8.0), "nap": (1.3, 0.6)}
        return 1e-5 * slower[method][procs == 4]

    older = SyntheticMachine(("direct", "neighbor"), truth)
    first = older.plan(procs=(2, 4))
    assert {point.status for point in select(measure(older, first, tmp_path))[1]} == {"default"}
    then = further(first, offered=["direct", "nap", "neighbor"])
    newer = replace(older, methods=("direct", "nap", "neighbor"))
    known = measured(measure(newer, then, tmp_path, batches=1))
    race = next(turn for turn in then.turns if turn.spare)
    then.spent_s += then.left_s(race) - then.session_s - START_S - 2 * LEAST_LAUNCH_S
    batch = next_batch(then, race, known)
    assert batch is not None
    assert [then.cases[task.case].procs for task in batch.tasks] == [4]


def test_what_a_table_does_not_pool_is_screened_anew(tmp_path: Path) -> None:
    first = FAR.plan(sizes=FEW_SIZES)
    cells = measure(FAR, first, tmp_path, batches=1)
    for changes in ({"environment": "openmpi"}, {"procs": 8}, {"pattern": "hub:hubs=2,seed=1"}):
        batch = next_of_all(further(first, **changes), cells)
        assert batch is not None
        assert batch.stage == SCREENING
    asked = next_of_all(further(first, methods=["neighbor", "direct", "other"]), cells)
    assert asked is not None
    assert [task.methods for task in asked.tasks] == [["direct", "other"]]


def test_campaigns_of_the_same_cases_cost_what_they_took_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SWITCHPOINT_RESULTS", str(tmp_path))
    monkeypatch.setattr(plan_state, "spent_s", lambda plan: plan.spent_s)
    first = FAR.plan(procs=(2, 4), sizes=FEW_SIZES)
    again = further(first)
    other = replace(FAR.plan(procs=(8,), sizes=FEW_SIZES), campaign="20261123T034500Z")
    plans = first, again, other
    for plan in plans:
        measure(FAR, plan, tmp_path, batches=2)
        PLANS.save(plan, PLANS.path_of(plan.campaign))
    cells = measured(cells_of(tmp_path / "switchpoint.db"))
    both_s, other_s = exhaustive_s(first, cells), exhaustive_s(other, cells)
    spent_s = sum(plan.spent_s for plan in plans)
    share = plan_state.cost_share({plan.campaign for plan in plans})
    assert share == pytest.approx(spent_s / (both_s + other_s))
    assert plan_state.cost_share({"another"}) is None


@pytest.mark.usefixtures("synthetic_machine")
def test_cold_caches_are_raced_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWITCHPOINT_RESULTS", str(tmp_path))
    monkeypatch.setattr("tuner.machine.systems.available_cores", lambda: 64)  # of the results
    first = FAR.plan(sizes=FEW_SIZES)
    measure(FAR, first, tmp_path, batches=1)
    assert plan_state.known(further(first)).cells
    cold = further(first, cache="cold")
    assert not plan_state.known(cold).cells
    measure(FAR, cold, tmp_path, batches=1)
    assert {cell.key.case.sync for cell in plan_state.known(cold).cells} == {"window-cold"}


def test_methods_that_may_not_race_any_more_do_not(tmp_path: Path) -> None:
    first = FAR.plan(sizes=FEW_SIZES)
    measure(FAR, first, tmp_path, batches=1)
    then = further(first, offered=["direct", "stfw:dims=2"])
    measure(FAR, then, tmp_path)
    assert {name for task in then.tasks for name in task.methods} == {"direct", "stfw:dims=2"}


def test_variances_between_allocations_count_in_races(tmp_path: Path) -> None:
    """What one allocation settles is settled for a campaign, which says so."""
    plan = FAR.plan(sizes=FEW_SIZES)
    cells = measure(FAR, plan, tmp_path, batches=6)
    with Store.open(tmp_path / "switchpoint.db", readonly=True) as store:
        headers = tuning.headers(store, cells[0].key.system)
    assert settled_before(plan, replace(measured(cells), headers=headers)).settled_here == 0
    one_job = {launch: replace(its, allocation="1") for launch, its in headers.items()}
    batch = settled_before(plan, replace(measured(cells), headers=one_job))
    assert 0 < batch.settled_here <= batch.settled
    here = f"{batch.settled_here} of them in this allocation"
    assert batch.progress == f"{batch.settled} of {batch.sizes} sizes settled, {here}"
    jobs = {launch: replace(its, allocation=str(its.launch)) for launch, its in headers.items()}
    assert 0 < settled_before(plan, replace(measured(cells), headers=jobs)).settled <= batch.settled
