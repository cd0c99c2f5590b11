"""`switchpoint run`: what it would do, and that it does it."""

import io
import json
import math
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from random import Random

import pytest
from click.testing import CliRunner
from rich.console import Console

from tests import probes, synthetic
from tests.conftest import by_day
from tests.kernels.conftest import build_kernels
from tests.processes import TIMEOUT_S, processes_below
from tuner.campaign import launches
from tuner.campaign.campaigns import make
from tuner.campaign.order import PLANS
from tuner.campaign.planning import least_s
from tuner.campaign.plans import Budget
from tuner.campaign.reframe import CONFIGS, Call, DispatchError, Job
from tuner.cli import main
from tuner.commands import example as trying
from tuner.commands.finish import Tuned, carry_out, tune_systems
from tuner.commands.run import default_environment, selecting
from tuner.machine.mpi import Mpi, available_cores, find_mpis, launch
from tuner.paths import database_path
from tuner.rawfile import keeping
from tuner.rawfile.kinds import soak
from tuner.selection import trust
from tuner.store.store import Store


def tuned(raw_files: list[Path]) -> list[Tuned]:
    """Return the new tables of the systems of raw files that are among the results."""
    return tune_systems(sorted({path.parent.parent.name for path in raw_files}), Console())


def switchpoint(*arguments: str) -> str:
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_a_dry_run_prints_the_jobs_and_the_time_and_runs_nothing(results):
    said = switchpoint("run", "--dry-run", "--minutes", "3", "--", "--name=exchange.*1_node")
    assert "matrix:bar" in said
    assert "discovery" not in said
    assert "cases in at most 180 s" in said
    assert list(results.iterdir()) == []


def test_a_run_measures_the_first_mpi_and_prints_how_another_is_chosen(
    results, tmp_path, monkeypatch
):
    first = find_mpis()[0]
    for program, answer in (("mpicc", "Open MPI 9.0.0"), ("mpiexec", "mpiexec (Open MPI) 9.0.0")):
        script = tmp_path / "bin" / program
        script.parent.mkdir(exist_ok=True)
        script.write_text(f"#!/bin/sh\necho '{answer}'\n")
        script.chmod(0o700)
    monkeypatch.setenv("PATH", f"{os.environ['PATH']}{os.pathsep}{script.parent}")
    *_, other = find_mpis()
    assert other.version == "9.0.0"
    selection = "--name=exchange.*1_node.*random"
    said = switchpoint("run", "--dry-run", "--", selection)
    assert f"measuring {first}: it" in said
    assert f"to measure {other}: `switchpoint run --environment {other.name}`" in said
    options = ["run", "--dry-run", "--json"]
    named = ["--", selection, f"--prgenv=^{other.name}$"]
    for chosen in ([*options, "--environment", other.name, *named[:2]], [*options, *named]):
        cases = json.loads(switchpoint(*chosen))["cases"]
        assert {case["environment"] for case in cases} == {other.name}


def test_an_mpi_that_is_passed_over_is_named(tmp_path, monkeypatch):
    for version in ("9.0.0", "9.1.0"):
        for program, said in (("mpicc", ""), ("mpiexec", "mpiexec (Open MPI)")):
            script = tmp_path / version / program
            script.parent.mkdir(exist_ok=True)
            script.write_text(f"#!/bin/sh\necho '{said or 'Open MPI'} {version}'\n")
            script.chmod(0o700)
            script.with_name(f"{program}.openmpi").symlink_to(script)
    places = [str(tmp_path / version) for version in ("9.1.0", "9.0.0")]
    monkeypatch.setattr("tuner.machine.mpi.search_path", lambda: os.pathsep.join(places))
    out = Console(file=io.StringIO())
    assert default_environment(out, []) == "openmpi"
    said = out.file.getvalue()
    assert said.count("passed over: ") == 1
    assert f"passed over: Open MPI 9.0.0 ({tmp_path}/9.0.0/mpicc, " in said
    assert f"of the same major version as {tmp_path}/9.1.0/mpicc; to measure it, put it" in said
    assert "no other MPI" not in said


def test_another_mpi_is_measured_on_the_same_system(monkeypatch):
    mpis = [Mpi(name, name, "5.0", "mpicc", "mpiexec") for name in ("mpich", "openmpi")]
    monkeypatch.setattr("tuner.machine.mpi.find_all_mpis", lambda: [[mpi] for mpi in mpis])
    out = Console(file=io.StringIO())
    default_environment(out, [], "nodes")
    commands = re.findall("`(.*)`", out.file.getvalue())
    assert commands == [
        f"switchpoint run --system nodes --environment {name}" for name in ("openmpi", "all")
    ]


def test_a_misspelt_option_is_not_left_to_reframe(results):
    wrong = CliRunner().invoke(main, ["run", "--minuts", "3", "--dry-run"])
    assert wrong.exit_code == 2
    assert "--minuts" in wrong.stderr
    wrong = CliRunner().invoke(main, ["run", "--dry-run", "--", "--nmae", "exchange"])
    assert wrong.exit_code == 1
    assert wrong.stderr.splitlines()[-1].startswith("Error: ReFrame's dry run failed: ")


def test_a_campaign_is_what_is_tagged_tuning_unless_checks_are_selected():
    assert selecting([]) == ["--tag=tuning"]
    assert selecting(["--nocolor"]) == ["--nocolor", "--tag=tuning"]
    for selection in (["-nexchange"], ["--name=exchange"], ["-t", "smoke"]):
        assert selecting(selection) == selection


def test_launches_share_the_time(results):
    def plan(minutes: str) -> dict:
        options = ["--dry-run", "--json", "--minutes", minutes, "--", "--name=spmv.*1_node"]
        return json.loads(switchpoint("run", *options))

    short, long = plan("3"), plan("30")
    assert short["launches"] == long["launches"]
    assert long["budget_s"] > 5 * short["budget_s"]
    assert long["expected_s"] == pytest.approx(1800, rel=0.02)


def test_a_run_measures_tunes_exports_and_prints_where(results):
    selection = ["--tag=smoke", "--name=exchange"]
    options = ["--minutes", "0.6", "--json", "--anonymous-as", "published"]
    said = switchpoint("run", *options, "--", *selection, f"--prefix={results / 'reframe'}")
    printed = json.loads(said)
    (system,) = results.glob("published-*")
    raw_files = list(system.glob(f"{printed['campaign']}/*.jsonl"))
    assert len(raw_files) == printed["launches"] > 0
    for path in raw_files:
        header = json.loads(path.read_text().splitlines()[0])
        assert (header["system"], header["hostnames"]) == ("published", ["node0"])
    assert "rule op=exchange" in (system / "switchpoint.table").read_text()
    assert json.loads((system / "table.json").read_text())["rules"]
    assert all(path in said for path in map(str, system.glob("*table*")))


def test_a_second_campaign_adds_to_the_first(results):
    names = ["20261121T034500Z", "20261122T034500Z"]
    tables = []
    for seed, name in enumerate(names):
        spec = synthetic.Campaign(name=name, launches=2, samples=20, seed=seed)
        kept = keeping.keep(synthetic.write(results / "scratch" / name, spec))
        ((table, path),) = tuned(kept)
        tables.append(table)
    assert [table.provenance.campaigns for table in tables] == [names[:1], names]
    assert [{rule.method for rule in table.rules} for table in tables] == [
        {"direct"},  # two launches of one case decide nothing
        {"direct", "stfw:dims=2"},
    ]
    assert all(name in path.read_text() for name in names)
    assert len(list(path.parent.glob("*/*.jsonl"))) == 4


def test_a_campaign_of_products_ends_without_a_table(results, capsys):
    spec = synthetic.Campaign(operation="spmv", patterns=(("matrix:bar", 3, 2.5),), sizes=(8,))
    kept = keeping.keep(synthetic.write(results / "scratch", spec))
    assert tuned(kept) == []
    assert "no table" in capsys.readouterr().out
    exchanges = keeping.keep(synthetic.write(results / "scratch", synthetic.Campaign()))
    ((table, path),) = tuned(exchanges)
    assert "op=spmv" not in path.read_text()
    assert table.rules
    assert "sparse products, medians" in capsys.readouterr().out


def test_a_campaign_of_probes_ends_without_a_table(results, capsys):
    (results / "scratch").mkdir()
    kept = keeping.keep(probes.write(results / "scratch", probes.ProbeCampaign()))
    assert tuned(kept) == []
    assert "no table; `switchpoint fit` fits models to probes" in " ".join(
        capsys.readouterr().out.split()
    )


def corrupting(
    mpi: Mpi, directory: Path, launches: str, way: str = "byte", method: str = ""
) -> dict[str, str]:
    """Return the variable that has checks run a benchmark that goes wrong, in such launches.

    Of exchanges, only those by a method if it is given.
    """
    bench = directory / "bench.sh"
    program = build_kernels(mpi) / "bench" / "swpbench_corrupt"
    only = f"SWP_CORRUPT_METHOD={method}; export SWP_CORRUPT_METHOD" if method else ":"
    bench.write_text(
        f"""#!/bin/sh
{only}
case "$*" in *"{launches}"*) SWP_CORRUPT={way}; export SWP_CORRUPT ;; esac
exec '{program}' "$@"
"""
    )
    bench.chmod(0o700)
    return {"swpbench": str(bench)}


@pytest.mark.check
@pytest.mark.parametrize(
    ("batches", "failure"),
    [
        (0, r"allreduce .*\(launch 0\): .*wrong payload"),
        (2, r"(?s)payload verified in 1 of 2.*\nleft out of this run: allreduce "),
    ],
)
def test_a_case_with_a_wrong_payload_leaves_the_race_and_the_other_goes_on(
    results, tmp_path, batches, failure
):
    mpi = find_mpis()[0]
    selection = [f"--prgenv=^{mpi.name}$", "--tag=smoke", "--name=exchange|allreduce"]
    selection.append(f"--prefix={tmp_path / 'reframe'}")
    # What fails is launched first: the other one is launched even by a machine that is too slow.
    variables = corrupting(mpi, tmp_path, "--op allreduce") | {"sizes": "8"}
    variables |= {"batches": str(batches)} if batches else {}  # as on a queue
    budget = Budget(math.ceil(least_s(2)) * (1 + batches))
    campaign = make(Call(CONFIGS["local"], selection, variables), budget, 3)
    with pytest.raises(DispatchError, match=failure):
        carry_out(campaign, 0, Console())
    order = PLANS.load(PLANS.path_of(campaign.order.campaign))
    assert (len(order.batches) >= batches, order.ended) == (True, False)
    with Store.open(database_path(), readonly=True) as store:
        (system,) = store.systems()["system"]
        assert len(store.launches()) == len(keeping.of_campaign(campaign.order.campaign)) > 0
        assert {cell.key.case.operation for cell in store.contents(system)} == {"exchange"}
    assert (results / system / "switchpoint.table").is_file()


def second_launch_began(stage: Path) -> bool:
    return any(name.endswith("-1.jsonl") for _, _, names in os.walk(stage) for name in names)


@pytest.mark.check
def test_a_terminated_run_ends_reframe_and_keeps_its_finished_launches(results, tmp_path):
    stage = tmp_path / "reframe"
    options = ["--minutes", "5", "--environment", find_mpis()[0].name]
    selection = ["--tag=smoke", "--name=exchange|discovery|allreduce", f"--prefix={stage}"]
    selection += ["--setvar=sizes=8,64,512,4K"]
    command = [sys.executable, "-m", "tuner.cli", "run", *options, "--", *selection]
    # As in the background of a shell, where Ctrl-C is ignored: it must stop ReFrame nevertheless.
    in_background = partial(signal.signal, signal.SIGINT, signal.SIG_IGN)
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, preexec_fn=in_background
    ) as run:
        while run.poll() is None and not second_launch_began(stage):
            time.sleep(0.1)
        (plan,) = results.glob("plans/*.json")
        beside = subprocess.run(
            [sys.executable, "-m", "tuner.cli", "run", "--resume", plan.stem],
            capture_output=True,
            text=True,
        )
        assert f"another process measures campaign {plan.stem}" in beside.stderr
        run.terminate()
        said, _ = run.communicate(timeout=TIMEOUT_S)
    assert run.returncode == 128 + signal.SIGTERM
    kept = len(list(results.glob("*/*/*.jsonl")))
    assert kept
    (campaign,) = (path.name for path in results.glob("*-*/*"))
    message = (
        f"campaign {campaign} is partial: {kept} launches; `switchpoint run --resume {campaign}`"
    )
    assert f"interrupted: {message} measures the rest" in said
    assert processes_below(stage) == []
    assert message in switchpoint("show")


@pytest.mark.check
@pytest.mark.parametrize(
    ("options", "kills"),
    by_day(
        [("--budget 35s --launches 2", 1)], [("--budget 60s", 4), ("--minutes 1 --launches 30", 4)]
    ),
)
def test_a_campaign_killed_at_random_goes_on_where_it_was(results, tmp_path, options, kills):
    """Nothing that was finished is lost, changed, or measured again."""
    random = Random(1)
    stage = tmp_path / "reframe"
    selection = ["--tag=smoke", "--name=exchange|discovery|allreduce", f"--prefix={stage}"]
    selection += ["--setvar=sizes=8,1K"]
    options = [*options.split(), "--environment", find_mpis()[0].name, "--", *selection]
    command = [sys.executable, "-m", "tuner.cli", "run"]
    made: dict[Path, bytes] = {}
    finished: set[bytes] = set()
    for _ in range(kills):
        with subprocess.Popen([*command, *options], start_new_session=True) as run:
            while run.poll() is None and not second_launch_began(stage):
                time.sleep(0.1)
            with suppress(subprocess.TimeoutExpired):
                run.wait(random.uniform(0, 10))
            if run.poll() is None:
                os.killpg(run.pid, signal.SIGKILL)
        there = {path: path.read_bytes() for path in results.glob("*-*/*/*.jsonl")}
        assert made.items() <= there.items()
        made = there
        begun = {*results.glob("logs/*.order.json"), *results.glob("plans/*.json")}
        (name,) = {path.name.partition(".")[0] for path in begun}
        complete = (path for path in stage.rglob("*.jsonl") if keeping.is_complete(path, name))
        finished |= {path.read_bytes() for path in complete}
        options = ["--resume", name]
    said = subprocess.run([*command, *options], capture_output=True, text=True)
    assert said.returncode == 0 or "launches are already among the results" in said.stderr, (
        said.stdout + said.stderr
    )
    there = {path: path.read_bytes() for path in results.glob("*-*/*/*.jsonl")}
    assert made.items() <= there.items()
    assert finished and finished <= {*there.values()}
    headers = [content.splitlines()[0] for content in there.values()]
    assert len({json.loads(header)["launch"] for header in headers}) == len(headers) > 1


@pytest.mark.check
@pytest.mark.parametrize("seconds", by_day(["0.1"], ["2"]))
def test_a_busy_loop_begun_in_the_middle_is_reported_and_moves_nothing(results, tmp_path, seconds):
    mpi = find_mpis()[0]
    root = build_kernels(mpi)
    start = launch(mpi, 2, build=root)
    options = [
        "--op",
        "exchange",
        "--pattern",
        "random:degree=1",
        "--sizes",
        "8",
        "--budget",
        seconds,
    ]
    options += ["--methods", "direct neighbor alltoallv", "--campaign", "busy", "--quiet"]
    raw_files = [tmp_path / f"busy-{number}.jsonl" for number in range(8)]
    with ExitStack() as busy:
        for number, path in enumerate(raw_files):
            if number == len(raw_files) // 2:
                for _ in range(available_cores()):
                    loop = subprocess.Popen([sys.executable, "-c", "while True: pass"])
                    busy.callback(loop.wait)
                    busy.callback(loop.kill)
            words = [*options, "--launch", str(number)]
            launches.run(start, root / "bench" / "swpbench", words, path, timeout_s=TIMEOUT_S)
    ((table, _),) = tuned(keeping.keep(raw_files))
    note, *_ = trust.notes(table.provenance)
    assert note in " ".join(switchpoint("show").split())
    assert {point.method for point in table.points} == {"direct"}


@pytest.mark.check
def test_a_method_that_fails_its_soak_is_known_as_such(results, tmp_path):
    mpi = find_mpis()[0]
    selection = [f"--prgenv=^{mpi.name}$", "--name=soak.*kind=exchange"]
    selection.append(f"--prefix={tmp_path / 'reframe'}")
    variables = corrupting(mpi, tmp_path, "soak")
    variables |= {"sizes": "8", "executions": "100", "methods": "direct"}
    campaign = make(Call(CONFIGS["local"], selection, variables), Budget(6), 1)
    with pytest.raises(DispatchError, match=r"failed, and excluded from tables: .*direct"):
        campaign.run(Console())
    with Store.open(database_path(), readonly=True) as store:
        (failed,) = soak.stored(store, store.systems()["system"][0]).to_dict("records")
    assert "wrong payload" in failed["reason"]
    assert not failed["passed"]


@pytest.fixture
def example(tmp_path, monkeypatch) -> Path:
    """Write a program that the workflow takes for the installed example."""
    monkeypatch.setattr(trying, "installation_directory", lambda system, environment: tmp_path)
    program = tmp_path / "bin" / "swp_example_halo"
    program.parent.mkdir()
    program.touch(mode=0o700)
    return program


def job_on(system: str) -> Job:
    name = find_mpis()[0].name
    return Job("exchange", system, name, "exchange", "random", "1_node", 2, 2, 6, "pass", "")


def test_the_example_is_started_on_this_machine_only(tmp_path, example):
    example.write_text(f"#!/bin/sh\ntouch '{tmp_path}/started'\n")
    trying.try_example(tmp_path / "x.table", job_on("cluster:cpu"), Console())
    assert not (tmp_path / "started").exists()
    trying.try_example(tmp_path / "x.table", job_on("local:cpu"), Console())
    assert (tmp_path / "started").exists()


def test_an_example_that_hangs_is_reported(tmp_path, example, monkeypatch):
    example.write_text("#!/bin/sh\nexec sleep 60\n")
    monkeypatch.setattr(trying, "EXAMPLE_TIMEOUT_S", 0.5)
    with pytest.raises(DispatchError, match=r"did not end within 0\.5 s"):
        trying.try_example(tmp_path / "x.table", job_on("local:cpu"), Console())
