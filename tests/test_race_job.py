"""Races by real launches."""

import os
from collections.abc import Sequence
from dataclasses import replace
from itertools import chain

import pytest

from tests.kernels.conftest import build_kernels
from tests.processes import TIMEOUT_S
from tuner.campaign import launches, race_job
from tuner.campaign.launches import words_of
from tuner.campaign.order import PLANS, OrderError
from tuner.campaign.plans import PlannedCase, RacePlan
from tuner.campaign.race_job import Start, Starts, race
from tuner.campaign.screening import PROBE
from tuner.machine.mpi import LaunchCommand, Mpi, find_mpis, launch
from tuner.rawfile import keeping, reading

CAMPAIGN = "20261121T034500Z"
LEAST_S = 20.0


def starts_of(plan: RacePlan, mpi: Mpi, program: str = "swpbench") -> Starts:
    """Save a plan, and return how its launches start."""
    path = PLANS.path_of(plan.campaign)
    PLANS.save(plan, path)
    root = build_kernels(mpi)
    place = ["--campaign", plan.campaign, "--system", "local:cpu", "--environment", mpi.name]
    cases = {
        number: Start(
            launch(mpi, case.procs, build=root),
            ["--op", case.operation, "--pattern", case.pattern, *place],
            TIMEOUT_S,
        )
        for number, case in enumerate(plan.cases)
    }
    probe = Start(cases[0].launcher, ["--sizes", "8", "--max-samples", "3", *place], TIMEOUT_S)
    return Starts(path, "local:cpu", mpi.name, root / "bench" / program, cases, probe)


def bcast(mpi: Mpi, methods: Sequence[str] = (), procs: int = 2) -> PlannedCase:
    place = ("local:cpu", mpi.name, "bcast", "blocks:root=0", "1_node", procs, procs)
    return PlannedCase(*place, [8], methods=list(methods))


@pytest.fixture
def mpi(tmp_path, monkeypatch) -> Mpi:
    monkeypatch.setenv("SWITCHPOINT_RESULTS", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return find_mpis()[0]


def test_a_race_whose_time_is_over_makes_one_start_and_ends(mpi):
    cases = [bcast(mpi), bcast(mpi), bcast(mpi, procs=3)]
    plan = RacePlan(CAMPAIGN, "", 1, cases, spent_s=1000, in_job=True)
    assert race(starts_of(plan, mpi)) == []
    headers = [reading.read(path).header for path in keeping.of_campaign(CAMPAIGN)]
    assert [header.procs for header in headers] == [2, 2]  # those of one layout share a start
    assert {header.launch for header in headers} == {0, 1}


def test_a_launch_that_fails_leaves_the_others_of_its_start(mpi):
    cases = [bcast(mpi, ["binomial"]), bcast(mpi, ["nosuch"]), bcast(mpi, ["knomial:radix=3"])]
    plan = RacePlan(CAMPAIGN, "", 3 * LEAST_S, cases, in_job=True)
    (failure,) = race(starts_of(plan, mpi))
    assert str(failure).startswith("bcast blocks:root=0 on 2 processes (launch ")
    assert "nosuch" in str(failure)
    measured = {
        case.method for path in keeping.of_campaign(CAMPAIGN) for case in reading.read(path).cases
    }
    assert measured == {"vendor", "binomial", "knomial:radix=3"}


def test_a_resumed_race_makes_what_failed_though_its_time_is_over(mpi):
    cases = [bcast(mpi, ["binomial"]), bcast(mpi, ["binomial"], procs=3)]
    starts = starts_of(RacePlan(CAMPAIGN, "", 1, cases, in_job=True), mpi)
    launcher = replace(starts.of_case[0].launcher, argv_prefix=["false"])
    failing = {**starts.of_case, 0: replace(starts.of_case[0], launcher=launcher)}
    assert len(race(replace(starts, of_case=failing))) == 1
    plan = PLANS.load(starts.plan)
    assert [task.case for task in plan.left_out] == [0]
    plan.spent_s = 1000
    plan.resume()
    PLANS.save(plan, starts.plan)
    assert race(starts) == []
    headers = [reading.read(path).header for path in keeping.of_campaign(CAMPAIGN)]
    assert {header.procs for header in headers} == {2, 3}


def test_a_resumed_race_keeps_its_methods(mpi):
    plan = RacePlan(CAMPAIGN, "", LEAST_S, [bcast(mpi, ["binomial"])], in_job=True)
    starts = starts_of(plan, mpi)
    for _ in range(2):  # interrupted before a launch ended
        race_job._choose_methods(plan, starts)
        assert plan.cases[0].methods == ["binomial", "vendor"]


def test_a_failed_launch_leaves_no_file_that_stands_for_a_later_one(mpi, tmp_path):
    plan = RacePlan(CAMPAIGN, "", LEAST_S, [bcast(mpi, ["binomial"])], in_job=True)
    starts = starts_of(plan, mpi)
    start = starts.of_case[0]
    words = ["sh", "-c", '"$@"; exit 1', "sh", *start.launcher.argv_prefix]  # fails at its end
    failing = replace(start, launcher=replace(start.launcher, argv_prefix=words))
    assert len(race(replace(starts, of_case={0: failing}))) == 1
    assert list(tmp_path.glob("*.jsonl")) == []


def test_launches_on_another_layout_fail_at_once_and_are_not_kept(mpi, monkeypatch):
    plan = RacePlan(
        CAMPAIGN, "", LEAST_S, [bcast(mpi, [each]) for each in ("binomial", "chain")], in_job=True
    )
    starts, made = starts_of(plan, mpi), []
    wrong = replace(starts.of_case[0], launcher=launch(mpi, 3, build=build_kernels(mpi)))
    run_each = launches.run_each
    monkeypatch.setattr(launches, "run_each", lambda *of: made.append(of) or run_each(*of))
    failures = race(replace(starts, of_case={0: wrong, 1: wrong}))
    said = ": the launch had (ranks, nodes) (3, 1), expected (2, 1)"
    assert [str(each).endswith(said) for each in failures] == [True, True]
    assert len(made) == 1
    assert keeping.of_campaign(CAMPAIGN) == []


def test_a_race_measures_the_methods_that_it_names_and_not_their_families(mpi):
    plan = RacePlan(CAMPAIGN, "", 3 * LEAST_S, [bcast(mpi, ["binomial", "chain"])], in_job=True)
    assert race(starts_of(plan, mpi)) == []
    measured = [
        {case.method for case in reading.read(path).cases} for path in keeping.of_campaign(CAMPAIGN)
    ]
    chains = {name for name in measured[0] if name.startswith("chain:")}
    assert len(chains) > 1  # the user's words name families
    assert len(measured) > 1
    assert set().union(*measured) == {"vendor", "binomial", *chains}


def test_the_probe_starts_as_the_widest_case_whose_ranks_have_cores_of_their_own(tmp_path):
    place = "local:cpu", "mpich"
    cases = [
        PlannedCase(*place, "bcast", "blocks", "", procs, procs, [8], oversubscribed=crowded)
        for procs, crowded in ((2, False), (8, True), (4, False))
    ]
    plan = RacePlan(CAMPAIGN, "", 1, [*cases, replace(cases[2], procs=5, environment="other")])

    def start(case, options):
        return Start(LaunchCommand([f"{case.procs}"]), words_of(options, "name", place, "mpiexec"))

    starts = Starts.of(tmp_path, plan, place, tmp_path, start)
    assert [its.launcher.argv_prefix for its in starts.of_case.values()] == [["2"], ["8"], ["4"]]
    assert starts.probe.launcher.argv_prefix == ["4"]
    common = "--campaign name --system local:cpu --environment mpich --launcher mpiexec"
    assert starts.of_case[0].options == f"--op bcast --pattern blocks {common}".split()
    assert starts.probe.options == [*chain(*PROBE.items()), *common.split()]


def test_a_start_with_a_variable_that_is_no_text_is_refused(tmp_path):
    launcher = LaunchCommand([], {"SWITCHPOINT_OFF": os.fsdecode(b"\xff")})
    start = Start(launcher, [])
    with pytest.raises(OrderError, match="variable is not UTF-8"):
        Starts(tmp_path, "local:cpu", "mpich", tmp_path, {}, start).save(tmp_path / "starts.json")
