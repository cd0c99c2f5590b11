"""Races by real launches."""

from tests.conftest import TIMEOUT_S
from tests.kernels.conftest import build_kernels
from tuner.campaign.order import PLANS
from tuner.campaign.plans import Plan, PlannedCase
from tuner.campaign.racing import Start, Starts, race
from tuner.machine.mpi import find_mpis, launch
from tuner.rawfile import keeping


def test_a_race_whose_time_is_over_makes_one_launch_and_ends(tmp_path, monkeypatch):
    monkeypatch.setenv("SWITCHPOINT_RESULTS", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    mpi = find_mpis()[0]
    root = build_kernels(mpi)
    case = PlannedCase("local:cpu", mpi.name, "bcast", "blocks:root=0", "1_node", 2, 2, [8])
    plan = Plan("20261121T034500Z", "", 1, [case, case], spent_s=1000, in_job=True)
    path = PLANS.path_of(plan.campaign)
    PLANS.save(plan, path)
    starting = launch(mpi, 2, build=root)
    place = ["--campaign", plan.campaign, "--system", case.system, "--environment", mpi.name]
    start = Start(starting, ["--op", "bcast", "--pattern", "blocks:root=0", *place], TIMEOUT_S)
    swpbench = root / "bench" / "swpbench"
    probe = Start(starting, ["--sizes", "8", "--max-samples", "3", *place], TIMEOUT_S)
    starts = Starts(path, case.system, mpi.name, swpbench, {0: start, 1: start}, probe)
    assert race(starts) == []
    assert len(keeping.of_campaign(plan.campaign)) == 1
