"""Campaigns are resumed, and their systems measured again, where they began."""

from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from dashboard.exported import exported
from dashboard.query import UnknownError
from tests import synthetic
from tests.cli import fail, succeed
from tests.decisions import PROVENANCE, point
from tests.profiles import content, tally
from tests.vendor.tables import INTEL
from tuner.campaign import reframe
from tuner.campaign.fixed import FixedCampaign
from tuner.campaign.order import FIXED, PLANS
from tuner.campaign.planned import PlannedCampaign
from tuner.campaign.plans import Budget
from tuner.campaign.reframe import Call, Job, Session
from tuner.campaign.soaking import partition_of
from tuner.commands.printing.results import show_table
from tuner.domain.tables import Table
from tuner.export.forms import ExportError, export
from tuner.machine.nodes.namespaces import Nodes
from tuner.machine.systems import measured_as
from tuner.selection.next_step import measuring_lines
from tuner.selection.rules import compile_rules
from tuner.store.store import Store
from tuner.studies.regret import launching
from tuner.studies.regret.measuring import Measure, RegretRequest

NAME = "20261121T034500Z"


def test_a_resumed_campaign_measures_the_machines_with_which_it_began(
    results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Variables chose them, which may have changed since."""
    job = Job("spmv", "", "mpich", "spmv", "random", "1_node", 2, 2, 1, "pass", "")
    machines = ("simulated:fattree-8x4-aries", "simulated:torus-4x4x2")
    jobs = [replace(job, system=system) for system in machines]
    session = Session(jobs, [], results / "stage", results / "output")
    simulated = FixedCampaign.make(Call(Path("a.py"), [], {"campaign": "a"}), session, 60)
    assert simulated.order.call.env == {"SWITCHPOINT_SIMULATE": "fattree-8x4-aries torus-4x4x2"}

    session = replace(session, jobs=[replace(job, system="virtual-nodes:tcp-100mbit")])
    call = Call(reframe.CONFIGS["nodes"], [], {"campaign": NAME})
    up = Nodes("default", 3, "100mbit", 2, "7")
    monkeypatch.setattr("tuner.machine.nodes.launch.find", lambda name: up)
    order = FixedCampaign.make(call, session, 60).order
    FIXED.save(order, FIXED.path_of(NAME))
    assert FIXED.load(FIXED.path_of(NAME)) == order
    raced = replace(session, jobs=[replace(job, races=True) for job in session.jobs])
    assert PlannedCampaign.make(call, raced, Budget(600), 6).order.nodes == order.nodes == 3
    for others in (replace(up, rate="1gbit"), replace(up, count=4)):
        monkeypatch.setattr("tuner.machine.nodes.namespaces.find", lambda name, its=others: its)
        said = fail("run", "--resume", NAME, "--dry-run")
        wrong = f"{others.count} of {others.partition}"
        assert f"virtual nodes that are up are {wrong}, not 3 of tcp-100mbit; end them" in said


@pytest.mark.parametrize("races", [True, False])
@pytest.mark.parametrize("own_name", [{}, {"system_name": "sample"}])
@pytest.mark.usefixtures("synthetic_machine")
def test_a_campaign_is_resumed_on_the_machine_that_began_it(
    results: Path, monkeypatch: pytest.MonkeyPatch, races: bool, own_name: dict[str, str]
) -> None:
    """Homes and results are shared; here a killed run has not even kept its launches."""
    job = Job("bcast", "local:cpu", "mpich", "bcast", "blocks", "1_node", 2, 2, 9, "pass", "")
    session = Session([replace(job, races=races)], [], results / "stage", results / "output")
    call = Call(reframe.CONFIGS["local"], [], {"campaign": NAME, **own_name})
    if races:
        PLANS.save(PlannedCampaign.make(call, session, Budget(600), 6).order, PLANS.path_of(NAME))
    else:
        FIXED.save(FixedCampaign.make(call, session, 600).order, FIXED.path_of(NAME))
    its = synthetic.Campaign(own_name.get("system_name", "local:cpu"), name=NAME, cores=9999)
    synthetic.write(session.stage, replace(its, launches=2))
    other = "Synthetic CPU, 9999 cores"
    refused = f"Error: campaign {NAME} began on another machine, {other}; resume it there"
    assert fail("run", "--resume", NAME, "--dry-run") == refused
    assert f"` measures the rest on the machine where it began, {other}\n" in succeed("show")
    monkeypatch.setattr("tuner.machine.systems.available_cores", lambda: 9999)
    monkeypatch.setattr(reframe, "dry_run", lambda call: session)
    succeed("run", "--resume", NAME, "--dry-run")
    assert "`switchpoint run --resume" in (shown := succeed("show"))
    assert "machine where it began" not in shown


def test_a_complete_campaign_with_a_name_of_its_own_is_soaked_where_it_began(results: Path) -> None:
    job = Job("bcast", "site:cpu", "mpich", "bcast", "blocks", "1_node", 2, 2, 1, "pass", "")
    session = Session([job], [], results, results)
    call = Call(results / "site.py", [], {"campaign": NAME, "system_name": "sample"})
    made = FixedCampaign.make(call, session, 600)
    synthetic.write(results, synthetic.Campaign("sample", name=NAME, launches=1))
    resumed = FixedCampaign(made.order).resume()
    assert not resumed.jobs
    own = replace(PROVENANCE, name="sample")
    assert partition_of(own, resumed.soak_request(10).systems) == "site:cpu"


@pytest.mark.parametrize("races", [True, False])
def test_what_has_a_name_of_its_own_is_measured_where_it_was(results: Path, races: bool) -> None:
    job = Job("bcast", "site:cpu", "mpich", "bcast", "blocks", "1_node", 2, 2, 1, "pass", "")
    session = Session([replace(job, races=races)], [], results, results)
    config = results / "site.py"
    config.touch()
    call = Call(config, [], {"campaign": NAME, "system_name": "sample"})
    if races:
        PLANS.save(PlannedCampaign.make(call, session, Budget(600), 6).order, PLANS.path_of(NAME))
    else:
        FIXED.save(FixedCampaign.make(call, session, 600).order, FIXED.path_of(NAME))
    (results / "logs" / "later.order.json").parent.mkdir(exist_ok=True)
    (results / "logs" / "later.order.json").write_text("{")
    command = f"switchpoint run --config {config} --environment mpich --anonymous-as sample"
    points = [point("direct", status="unsoaked")._replace(challenger="neighbor")]
    table = Table(
        replace(PROVENANCE, name="sample", required_executions=10), compile_rules(points), points
    )
    said = StringIO()
    show_table(table, "", Console(file=said, width=500))
    assert said.getvalue().count(f"`{command} -- --system=site:cpu`") == 2
    for form in ("table", "header", "json"):
        exported = export(table, form)
        assert "switchpoint run --environment mpich --anonymous-as sample" in exported
        assert str(config) not in exported
        assert "site:cpu" not in exported
    lines = measuring_lines("other", "", place=measured_as("other"))
    assert lines == ["switchpoint run --anonymous-as other"]
    with pytest.raises(ExportError, match=r"-as sample`$") as error:  # as pages show it
        export(replace(table, rules=[]), "table")
    assert str(config) not in str(error.value)
    with pytest.raises(ExportError, match=rf"{command} -- --system=site:cpu`$"):
        export(replace(table, rules=[]), "table", place=measured_as("sample"))


@pytest.fixture
def sample(results: Path) -> Path:
    """Write and tune results of site:cpu with a name of their own; return the configuration."""
    job = Job("bcast", "site:cpu", "mpich", "bcast", "blocks", "1_node", 2, 2, 1, "pass", "")
    session = Session([job], [], results, results)
    config = results / "site.py"
    config.touch()
    call = Call(config, [], {"campaign": NAME, "system_name": "sample"})
    FIXED.save(FixedCampaign.make(call, session, 600).order, FIXED.path_of(NAME))
    its = synthetic.Campaign(system="sample", mpi_library=INTEL.format("2021.18"))
    synthetic.write(results, synthetic.of_bcast(its))
    succeed("ingest")
    succeed("tune", "--require-soak", "0")
    return config


def test_only_commands_say_where_a_name_of_its_own_was_measured(
    sample: Path, tmp_path: Path
) -> None:
    command = f"switchpoint run --config {sample} --environment mpich --anonymous-as sample"
    command += " -- --system=site:cpu --name"
    profile = tmp_path / "app.profile"
    profile.write_bytes(content(tally("Alltoall", 8, 0.2)))
    assert command in succeed("advise", "--profile", profile)
    assert command in fail("export", "--format", "intelmpi")
    with Store.open(sample.parent / "switchpoint.db", readonly=True) as store:
        (system,) = store.systems()["system"]
        with pytest.raises(UnknownError, match="--anonymous-as sample -- --name") as error:
            exported(store, system, "intelmpi")
    assert str(sample) not in str(error.value)


def test_what_has_a_name_of_its_own_is_judged_where_it_was_measured(
    sample: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "is not a system of this machine; give its configuration" in fail("check", "choices")
    asked: list[str] = []

    def in_jobs(request: RegretRequest, *_: object) -> Measure:
        asked.append(request.system)
        return lambda wanted: [[] for _ in wanted]

    monkeypatch.setattr(launching, "in_jobs", in_jobs)
    assert "no problem was measured" in fail("check", "choices", "--config", sample)
    assert asked == ["site:cpu"]
