"""Races by real launches."""

from collections.abc import Sequence

import pytest

from tests.conftest import TIMEOUT_S
from tests.kernels.conftest import build_kernels
from tuner.campaign.order import PLANS
from tuner.campaign.plans import Plan, PlannedCase
from tuner.campaign.racing import Start, Starts, race
from tuner.machine.mpi import Mpi, find_mpis, launch
from tuner.rawfile import keeping, reading

CAMPAIGN = "20261121T034500Z"


def starts_of(plan: Plan, mpi: Mpi) -> Starts:
    """Save a plan of bcast on two processes, and return how its launches start."""
    path = PLANS.path_of(plan.campaign)
    PLANS.save(plan, path)
    starting, root = launch(mpi, 2, build=build_kernels(mpi)), build_kernels(mpi)
    place = ["--campaign", plan.campaign, "--system", "local:cpu", "--environment", mpi.name]
    start = Start(starting, ["--op", "bcast", "--pattern", "blocks:root=0", *place], TIMEOUT_S)
    probe = Start(starting, ["--sizes", "8", "--max-samples", "3", *place], TIMEOUT_S)
    cases = dict.fromkeys(range(len(plan.cases)), start)
    return Starts(path, "local:cpu", mpi.name, root / "bench" / "swpbench", cases, probe)


def bcast(mpi: Mpi, methods: Sequence[str] = ()) -> PlannedCase:
    place = ("local:cpu", mpi.name, "bcast", "blocks:root=0", "1_node", 2, 2)
    return PlannedCase(*place, [8], methods=list(methods))


@pytest.fixture
def mpi(tmp_path, monkeypatch) -> Mpi:
    monkeypatch.setenv("SWITCHPOINT_RESULTS", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    return find_mpis()[0]


def test_a_race_whose_time_is_over_makes_one_launch_and_ends(mpi):
    plan = Plan(CAMPAIGN, "", 1, [bcast(mpi), bcast(mpi)], spent_s=1000, in_job=True)
    assert race(starts_of(plan, mpi)) == []
    assert len(keeping.of_campaign(CAMPAIGN)) == 1


def test_a_race_measures_the_methods_that_it_names_and_not_their_families(mpi):
    plan = Plan(CAMPAIGN, "", 60, [bcast(mpi, ["binomial", "chain"])], in_job=True)
    assert race(starts_of(plan, mpi)) == []
    measured = [
        {case.method for case in reading.read(path).cases} for path in keeping.of_campaign(CAMPAIGN)
    ]
    chains = {name for name in measured[0] if name.startswith("chain:")}
    assert len(chains) > 1  # the user's words name families
    assert len(measured) > 1
    assert set().union(*measured) == {"vendor", "binomial", *chains}
