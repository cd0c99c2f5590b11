"""Campaigns by their orders: what is read, shown while they run, and found to be resumed."""

import io
import json
import os
import re
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from tests import synthetic
from tests.cli import fail, succeed
from tests.synthetic_plan import SyntheticMachine
from tuner.campaign import progress as showing
from tuner.campaign import reframe
from tuner.campaign.batch import Batch, Queue
from tuner.campaign.campaigns import find, make
from tuner.campaign.fixed import FixedCampaign
from tuner.campaign.order import FIXED, PLANS, SOAKINGS, FixedOrder, OrderError, SoakJob, SoakLaunch
from tuner.campaign.plan_state import done, spent_s
from tuner.campaign.planned import PlannedCampaign
from tuner.campaign.plans import Budget, RacePlan
from tuner.campaign.progress import progress
from tuner.campaign.reframe import Call, DispatchError, Job, Session
from tuner.commands.printing.campaign import show_campaign
from tuner.rawfile import keeping
from tuner.rawfile.keeping import RawFileError

NAME = "20261121T034500Z"
ORDER = {
    "campaign": NAME,
    "request": {
        "config": "/a/local.py",
        "selection": ["--prgenv=^mpich$", "--tag=smoke"],
        "variables": {"campaign": NAME, "launches": "6", "budget_s": "1.75"},
        "env": {},
        "check_file": "",
    },
    "budget_s": 1.75,
    "launches": 6,
    "stage": "/a/stage",
}
SOAKING = {
    "jobs": [
        {
            "system": "local:cpu",
            "environment": "mpich",
            "operation": "exchange",
            "nodes": 1,
            "ppn": 2,
            "launches": [{"methods": ["nap"], "sizes": [8], "executions": 200, "budget_s": 3.0}],
        }
    ],
    "stage": "/a/stage",
}

CASE = {
    "system": "local:cpu",
    "environment": "mpich",
    "operation": "bcast",
    "pattern": "blocks",
    "scale": "1_node",
    "procs": 2,
    "ppn": 2,
    "sizes": [8],
}
TASK = {"number": 0, "case": 0, "races": [], "budget_s": 5.0}
PLAN = {"campaign": NAME, "config": "local.py", "budget_s": 60.0, "cases": [CASE], "ended": False}


def test_orders_of_any_version_are_read(results: Path) -> None:
    path = results / "logs" / f"{NAME}.order.json"
    path.parent.mkdir()
    path.write_text(json.dumps(ORDER | {"of_later": 1}))
    assert FIXED.campaigns() == [NAME]
    order = FIXED.load(FIXED.path_of(NAME))
    request = ORDER["request"]
    assert order.call == Call(
        Path("/a/local.py"), request["selection"], request["variables"], {}, ""
    )
    FIXED.save(order, path)
    assert json.loads(path.read_text()) == ORDER | {"systems": [], "nodes": 0}
    path.with_name(f"{NAME}.soaking.json").write_text(json.dumps(SOAKING))
    soaks = SOAKINGS.load(SOAKINGS.path_of(NAME))
    assert soaks.jobs == [SoakJob("local:cpu", "mpich", 1, 2, [SoakLaunch(3.0)])]
    assert soaks.stage == "/a/stage"


def test_a_campaign_of_either_kind_is_found_by_its_name(results: Path) -> None:
    with pytest.raises(OrderError, match=f"no campaign {NAME} to resume; partial campaigns: none"):
        find(NAME)
    path = FIXED.path_of(NAME)
    path.parent.mkdir()
    path.write_text(json.dumps(ORDER))
    assert isinstance(find(NAME), FixedCampaign)
    plan = SyntheticMachine(("direct",), lambda method, size, procs: 1e-6).plan()
    PLANS.save(plan, PLANS.path_of(NAME))
    assert find(NAME) == PlannedCampaign(plan, PLANS.path_of(NAME))
    path.with_name("other.order.json").write_text("{}")
    assert "other.order.json: not an order of a campaign" in fail("run", "--resume", "other")


def test_of_a_job_that_is_retried_the_last_run_counts() -> None:
    """ReFrame reports its first run, and then the retries of what failed."""
    place = {"system": "local", "partition": "cpu", "environ": "mpich"}
    first, second = ({"display_name": name, "result": "fail"} | place for name in "ab")
    again = first | {"result": "pass"}
    report = {"runs": [{"testcases": [first, second]}, {"testcases": [again]}]}
    assert reframe._cases(report) == [again, second]


@pytest.mark.parametrize(
    "report", ['{"runs":[{"testca', '{"runs":[]}', "{}", "[]", "7", "[" * 9999]
)
def test_a_damaged_report_of_reframe_is_one_line(
    report: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A full disk leaves such a report."""
    script = """printf %s "$0" > "$1"; echo 'ERROR: no space'"""
    monkeypatch.setattr(
        Call, "command", lambda call, action, path: ["sh", "-c", script, report, str(path)]
    )
    call, log = Call(Path("/a/local.py"), [], {}), tmp_path / "log"
    with pytest.raises(DispatchError, match=r"report\.json: not a report .*; it said: no space"):
        reframe.dry_run(call)
    planned = Session([], [], tmp_path, tmp_path)
    refused = rf"log\.json: not a report of ReFrame .*; its output is in {log}"
    with pytest.raises(DispatchError, match=refused):
        reframe.run(call, planned, log, lambda: None)


HOLDING = """
import sys
from tuner.paths import only_here
with only_here(sys.argv[1]):
    print(flush=True)
    input()
"""


def test_what_a_campaign_is_named_cannot_be_the_path_of_another_order(results: Path) -> None:
    """Whoever writes an order says what is executed; a name is of these results."""
    path = results / "foreign" / f"{NAME}.order.json"
    path.parent.mkdir()
    path.write_text(json.dumps(ORDER))
    (results / "logs").mkdir()
    (results / "plans").mkdir()
    for name in (f"../foreign/{NAME}", f"{path.parent}/{NAME}", ""):
        with pytest.raises(OrderError, match=r"no campaign .* to resume"):
            find(name)
    path.rename(FIXED.path_of("mine"))
    with pytest.raises(OrderError, match=f"mine.order.json: the order of campaign {NAME}"):
        find("mine")


def test_a_campaign_that_another_process_measures_is_not_planned_anew(results: Path) -> None:
    """As the dry run of a resumption, which deletes its stage."""
    path = FIXED.path_of(NAME)
    path.parent.mkdir()
    path.write_text(json.dumps(ORDER))
    command = [sys.executable, "-c", HOLDING, NAME]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes) as other:
        assert other.stdout is not None
        other.stdout.readline()
        said = fail("run", "--resume", NAME, "--dry-run")
        other.communicate("\n")
    assert f"another process measures campaign {NAME}" in said


def test_a_plan_is_read_when_no_other_process_can_change_it(
    results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    PLANS.save(msgspec.convert(PLAN, RacePlan), PLANS.path_of(NAME))
    changed = msgspec.convert(PLAN | {"spent_s": 7.0}, RacePlan)
    monkeypatch.setattr(
        "tuner.commands.run._hold", lambda *_: PLANS.save(changed, PLANS.path_of(NAME))
    )
    planned = json.loads(succeed("run", "--resume", NAME, "--dry-run", "--json"))
    assert planned["spent_s"] == 7.0


def test_campaigns_of_one_name_have_a_stage_for_each_results(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stages = set()
    for place in ("a", "b", os.fsdecode(b"caf\xe9")):
        monkeypatch.setenv("SWITCHPOINT_RESULTS", str(tmp_path / place))
        words = Call(Path("local.py"), [], {"campaign": NAME}).command([], tmp_path / "report")
        stages |= {word for word in words if word.startswith(f"--timestamp={NAME}-")}
    assert len(stages) == 3


@pytest.mark.parametrize(
    "content",
    [
        *("", "[]", "\0", json.dumps(SOAKING)[:-20], json.dumps(SOAKING)[20:]),
        '{"jobs":[{"x":' + '{"x":' * 100_000,
        '{"jobs":[],"x":' + "[" * 100_000,
    ],
    ids=range(7),
)
@pytest.mark.usefixtures("synthetic_machine")
def test_a_damaged_order_is_one_line(results: Path, content: str) -> None:
    synthetic.write(results, synthetic.Campaign(samples=5))
    succeed("ingest")
    path = results / "logs" / f"{NAME}.soaking.json"
    path.parent.mkdir()
    path.write_text(content)
    said = fail("soak", "--config", str(reframe.CONFIGS["local"]))
    assert said.startswith(f"Error: {path}: not an order of soaks: ")
    assert said.endswith("; delete it, or restore it from a copy")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"cases": [{**CASE, "sizes": []}]}, "a case has no sizes"),
        ({"batches": [{"stage": "s", "tasks": [{**TASK, "case": 1}]}]}, "a launch has no case"),
        ({"cases": [], "unraced": ["spmv"]}, "no cases"),
    ],
)
def test_a_plan_that_none_can_be_is_one_line(
    results: Path, change: dict[str, object], message: str
) -> None:
    path = PLANS.path_of(NAME)
    path.parent.mkdir()
    path.write_text(json.dumps(PLAN | change))
    for words in (["show", "plan", str(path)], ["run", "--resume", NAME]):
        assert fail(*words).startswith(f"Error: {path}: not a plan: {message}")


@pytest.mark.parametrize("cut", [0, 500, -20])
def test_a_cut_raw_file_of_a_campaign_is_one_line(results: Path, cut: int) -> None:
    directory = results / "local-cpu-mpich" / NAME
    directory.mkdir(parents=True)
    (whole,) = synthetic.write(results / "raw", synthetic.Campaign(launches=1, samples=5))
    path = directory / "planned-0.jsonl"
    path.write_bytes(whole.read_bytes()[:cut])
    for other in ("planned-3 (copy).jsonl", "planned-\u0663.jsonl"):
        (directory / other).write_bytes(whole.read_bytes())
    PLANS.path_of(NAME).parent.mkdir()
    PLANS.path_of(NAME).write_text(json.dumps(PLAN))
    assert done(PLANS.load(PLANS.path_of(NAME))) == {0}
    with pytest.raises(RawFileError, match="does not end with an end record; delete it, and"):
        spent_s(PLANS.load(PLANS.path_of(NAME)))


@pytest.mark.parametrize("built", [False, True])
def test_progress_is_a_line_now_and_then(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], built: bool
) -> None:
    monkeypatch.setattr(showing, "LINE_S", 0.0)
    monkeypatch.setattr(time, "monotonic", lambda: 0.0)
    counts = iter([0, 2])
    shown = "race 1", 3, 20.4, built, lambda: next(counts), lambda: "", lambda: "", Console()
    with progress(*shown) as tick:
        tick()
        tick()
    monkeypatch.setattr(showing, "LINE_S", 10.0)
    with progress(*shown[:4], lambda: 1, lambda: "", lambda: "", Console()) as tick:
        tick()
        tick()
    begun = (
        "0 of 3 launches, 0 s of about 20 s"
        if built
        else "building the kernels or in the first launch, 0 s"
    )
    assert capsys.readouterr().out.splitlines() == [
        f"race 1: {begun}",
        "race 1: 2 of 3 launches, 0 s of about 20 s",
        "race 1: 1 of 3 launches, 0 s of about 20 s",
    ]


def test_the_time_of_jobs_in_a_queue_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    why = "job 7 is pending: Priority"
    clock = iter([10.0, 20.0, 30.0, 40.0, 50.0, 55.0])
    monkeypatch.setattr(time, "monotonic", lambda: next(clock))
    said = [why, why, "", "", why, ""]
    answers = iter(said)
    queue = Queue(lambda: next(answers))
    assert [queue() for _ in said] == said
    assert queue.waited_s == 10 + 10 + 5


def test_a_batch_that_ends_early_keeps_its_finished_launches(
    results: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without those of other campaigns, and the one that was cut off."""
    planned = Session([], ["exchange @mpich: sanity: wrong"], results / "stage", results / "output")
    call = Call(Path("local.py"), [], {})
    batch = Batch(NAME, "race 1", call, planned, 3, 10.0, resumed_by="switchpoint soak")

    def run_and_interrupt(*arguments: object) -> Session:
        tick = arguments[-1]
        assert callable(tick)
        *_, last = synthetic.write(planned.stage, synthetic.Campaign(name=NAME, launches=2))
        last.write_bytes(last.read_bytes()[:-9])
        synthetic.write(planned.stage, synthetic.Campaign(name="another", launches=1))
        tick()
        raise KeyboardInterrupt

    monkeypatch.setattr(reframe, "run", run_and_interrupt)
    with pytest.raises(KeyboardInterrupt):
        batch.run(Console(width=200))
    partial = f"campaign {NAME} is partial: 1 of 3 launches; `switchpoint soak`"
    said = capsys.readouterr().out
    assert re.sub(r"\d+ s of", "0 s of", said).splitlines() == [
        "race 1: 1 of 3 launches, 0 s of about 10 s",
        f"interrupted: {partial} measures the rest",
    ]
    assert len(keeping.of_campaign(NAME)) == 1
    with pytest.raises(DispatchError, match=r"(?s)^exchange @mpich: .* 1 of 3 .*/logs/"):
        batch.require_all(planned)


@pytest.mark.parametrize("missing", [0, 1, 3])
def test_a_resumed_campaign_measures_what_reframe_finds_then(
    results: Path, monkeypatch: pytest.MonkeyPatch, missing: int
) -> None:
    """There may be other jobs than when it was ordered: nodes come and go."""
    stage = results / "stage"
    order = FixedOrder(NAME, Call(Path("local.py"), [], {}), 1.0, 4, str(stage))
    raw_files = synthetic.write(stage, synthetic.Campaign(name=NAME, launches=2 + missing))
    keeping.keep(raw_files[:2])
    job = Job("exchange", "local:cpu", "mpich", "exchange", "random", "1_node", 2, 2, 1, "pass", "")
    planned = Session([replace(job, launches=missing)], [], stage, results / "output")
    shown = replace(planned, stage=results / "shown")
    monkeypatch.setattr(reframe, "dry_run", lambda call: shown)
    monkeypatch.setattr(reframe, "run", lambda *arguments: planned)
    assert FixedCampaign(order, planned).resume().order.launches == 2 + missing
    assert len(FixedCampaign(order, planned).run(Console())) == 2 + missing


def test_an_order_with_a_name_that_is_no_text_is_refused(results: Path) -> None:
    stage = os.fsdecode(b"caf\xe9")
    order = FixedOrder(NAME, Call(Path("local.py"), [], {}), 1.0, 4, stage)
    with pytest.raises(OrderError, match="an option, a path or a variable is not UTF-8"):
        FIXED.save(order, FIXED.path_of(NAME))
    assert not FIXED.path_of(NAME).exists()


def test_a_path_that_reframe_cannot_name_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = tmp_path / os.fsdecode(b"caf\xe9.py")
    config.write_text("site_configuration = {}\n")
    answer = fail("run", "--dry-run", "--config", str(config))
    assert r"caf\xe9.py: ReFrame reads only paths that are UTF-8" in answer
    monkeypatch.setenv("SWITCHPOINT_RESULTS", str(config.with_suffix("")))
    assert r"caf\xe9: ReFrame reads only paths that are UTF-8" in fail("run", "--dry-run")


def test_a_host_that_a_configuration_does_not_name_is_reported(tmp_path: Path) -> None:
    """ReFrame takes a system of its own there, with which no check runs."""
    partition = {"name": "cpu", "scheduler": "local", "launcher": "local", "environs": ["gnu"]}
    system = {"name": "far", "hostnames": ["far[0-9]+$"], "partitions": [partition]}
    config = tmp_path / "far.py"
    environments = [{"name": "gnu", "cc": "gcc"}]
    config.write_text(
        f"site_configuration = { ({'systems': [system], 'environments': environments}) }\n"
    )
    answer = fail("run", "--dry-run", "--config", str(config))
    assert f"nothing to run: no hostnames in {config} match this host" in answer
    answer = fail("run", "--dry-run", "--config", str(config), "--", "--system=far")
    assert "no check matches" in answer
    assert "or no partition and environment both have the feature mpi" in answer


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (["-J", "account=m42", "-n", "exchange"], ["-J", "account=m42"]),
        (["-S", "sizes=8", "--job-option", "x", "-xhub"], ["-S", "sizes=8", "--job-option", "x"]),
        (["--nam=a", "-v", "--cpu-only", "-J", "#SBATCH -t 5"], ["-v", "-J", "#SBATCH -t 5"]),
        (["-p", "^mpich$", "-Jmem=4", "--maintainer", "a", "-T", "b"], ["-Jmem=4"]),
        (["--exec-order", "uid", "-E", "scale", "--failed"], ["--exec-order", "uid"]),
    ],
)
def test_options_for_jobs_are_those_of_later_sessions_too(
    results: Path, given: list[str], kept: list[str]
) -> None:
    job = Job("exchange", "site:cpu", "mpich", "exchange", "random", "1_node", 2, 2, 1, "pass", "")
    session = Session([replace(job, races=True, batches=2)], [], results, results)
    call = Call(Path("/a/site.py"), given, {"campaign": NAME})
    planned = PlannedCampaign.make(call, session, Budget(600), 6)
    assert planned.order.options == kept
    planned.order.options = given
    assert planned.soak_request(200).options == kept


def test_several_partitions_get_no_common_name(
    results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each would find the other's raw files, and leave its own launches out."""
    job = Job("exchange", "site:cpu", "mpich", "exchange", "random", "1_node", 2, 2, 1, "pass", "")
    jobs = [job, replace(job, system="site:gpu")]
    session = Session(jobs, [], results / "stage", results / "output")
    monkeypatch.setattr(reframe, "dry_run", lambda call, **_: session)
    call = Call(Path("/a/site.py"), [], {"system_name": "published"})
    with pytest.raises(OrderError, match=r"one partition, not site:cpu, site:gpu; select one"):
        make(call, Budget(600), 6, only_shown=True)


def test_simulated_machines_keep_their_names(
    results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By another one, what reads their results would take them for real."""
    system = "simulated:torus-4x4x2"
    job = Job("exchange", system, "simgrid", "exchange", "random", "1_node", 2, 2, 1, "pass", "")
    session = Session([job], [], results / "stage", results / "output")
    monkeypatch.setattr(reframe, "dry_run", lambda call, **_: session)
    call = Call(Path("/a/simulated.py"), [], {"system_name": "sim"})
    with pytest.raises(OrderError, match="simulated machines have no host names to leave out"):
        make(call, Budget(600), 6, only_shown=True)


COLD = ["--setvar", "cache=cold"]


@pytest.mark.parametrize(
    ("config", "systems", "options", "name", "command"),
    [
        ("local", ["local:cpu"], [], "", "--environment mpich -- --name=overlap"),
        (
            *("local", ["local:cpu"], COLD, "published"),
            "--environment mpich --anonymous-as published -- --setvar cache=cold --name=overlap",
        ),
        (
            *("nodes", ["virtual-nodes:tcp-1gbit"], [], ""),
            "--system nodes --environment mpich -- --name=overlap",
        ),
        (
            *("/a b/site.py", ["site:cpu"], ["-J", "account=m42"], ""),
            "--config '/a b/site.py' --environment mpich -- -J account=m42 --name=overlap",
        ),
        ("local", ["local:cpu"] * 2, [], "", "--environment all -- --name=overlap"),
    ],
)
def test_what_does_not_race_is_measured_where_and_how_the_race_was(
    results: Path, config: str, systems: list[str], options: list[str], name: str, command: str
) -> None:
    job = Job("exchange", "", "", "exchange", "random", "1_node", 2, 2, 1, "pass", "", races=True)
    jobs = [
        replace(job, system=system, environment=environment)
        for system, environment in zip(systems, ("mpich", "openmpi"), strict=False)
    ]
    apart = [replace(job, operation=each, races=False) for each in ("overlap", "probe")]
    session = Session([*jobs, *apart], [], results, results)
    variables = {"campaign": NAME} | ({"system_name": name} if name else {})
    call = Call(reframe.CONFIGS.get(config, Path(config)), [*options, "--tag=tuning"], variables)
    planned = PlannedCampaign.make(call, session, Budget(600), 6)
    out = Console(file=io.StringIO())
    show_campaign(planned, out)
    said = out.file.getvalue()
    assert f"overlap, which does not race; `switchpoint run {command}` measures it\n" in said
    assert "--name=parameters` measures it\n" in said


def test_a_scale_is_skipped_on_a_partition_for_each_of_its_reasons(results: Path) -> None:
    job = Job("exchange", "site:cpu", "mpich", "exchange", "random", "4_nodes", 2, 2, 1, "pass", "")
    reasons = ("needs 4 nodes; the partition has 2", "its methods do not race")
    skipped = [
        replace(job, system="site:gpu", result="skip", skipped_because=reason) for reason in reasons
    ]
    session = Session([replace(job, races=True), *skipped], [], results, results)
    call = Call(Path("/a/site.py"), [], {"campaign": NAME})
    planned = PlannedCampaign.make(call, session, Budget(600), 6)
    out = Console(file=io.StringIO(), width=200)
    show_campaign(planned, out)
    assert f"skipped: 4_nodes on site:gpu: {reasons[1]}; {reasons[0]}\n" in out.file.getvalue()


def test_an_option_without_its_value_is_one_line() -> None:
    with pytest.raises(DispatchError, match="option of ReFrame: argument -n/--name: expected one"):
        reframe.without_selection(["-J", "account=m42", "-n"])


@pytest.mark.parametrize(
    ("options", "checks", "environment"),
    [
        (["-J", "name=exchange", "-S", "methods=all"], False, False),
        (["-J", "P=-n 4", "--exclude=hub"], False, False),
        (["-nexchange"], True, False),
        (["--ta", "smoke", "-p", "mpich"], True, True),
        (["-E", "scale == '1_node'"], True, False),
        (["--prgenv=mpich"], False, True),
    ],
)
def test_what_options_select(options: list[str], checks: bool, environment: bool) -> None:
    assert reframe.selects(options) == checks
    assert reframe.selects_environment(options) == environment
