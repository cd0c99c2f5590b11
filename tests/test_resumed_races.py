"""Races that go on: what a failed or missing job has left is measured, and the race ends."""

from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from tests.test_campaigns import CASE, NAME, PLAN, TASK
from tuner.campaign import reframe
from tuner.campaign.order import PLANS
from tuner.campaign.plan_state import remaining
from tuner.campaign.planned import PlannedCampaign
from tuner.campaign.plans import RacePlan
from tuner.campaign.reframe import DispatchError, Job, Session


def test_a_race_ends_where_a_place_has_no_job_any_more(
    results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ReFrame leaves out an environment that is not there without a warning."""
    cases = [CASE, CASE | {"environment": "openmpi"}]
    batches = [{"stage": "screening", "tasks": [TASK | {"case": 1}]}]
    plan = msgspec.convert(PLAN | {"cases": cases, "batches": batches, "in_job": True}, RacePlan)
    job = Job("race", "local:cpu", "mpich", "race", "", "", 1, 1, 0, "pass", "")
    session = Session([job], [], results / "stage", results / "output")
    sessions = iter([session])
    monkeypatch.setattr(reframe, "dry_run", lambda call: session)
    monkeypatch.setattr(reframe, "run", lambda *_: next(sessions))
    with pytest.raises(DispatchError, match="no job ran for local:cpu openmpi: load its modules"):
        PlannedCampaign(plan, PLANS.path_of(NAME)).run(Console())
    assert not PLANS.load(PLANS.path_of(NAME)).ended


def test_a_resumed_race_makes_the_launches_of_a_failed_job(
    results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    batches = [{"stage": "race 1", "tasks": [TASK, TASK | {"number": 1}]}]
    plan = msgspec.convert(PLAN | {"batches": batches, "most_batches": 1}, RacePlan)
    path = PLANS.path_of(NAME)
    job = Job("planned", "local:cpu", "mpich", "bcast", "", "", 2, 2, 2, "fail", "")
    failed = Session([job], ["planned: lost a node"], results / "stage", results / "output")
    monkeypatch.setattr(reframe, "dry_run", lambda call: failed)
    monkeypatch.setattr(reframe, "run", lambda *_: failed)
    with pytest.raises(DispatchError, match="lost a node"):
        PlannedCampaign(plan, path).run(Console())
    assert remaining(PLANS.load(path)) == []
    resumed = PlannedCampaign.load(path).resume()
    assert [task.number for task in remaining(resumed.order)] == [0, 1]
    with pytest.raises(DispatchError, match="lost a node"):
        resumed.run(Console())
