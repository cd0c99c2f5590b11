"""The checks as ReFrame sees them, and one short campaign that is really run."""

import csv
import json
import os
import re
import shutil
import sqlite3
import subprocess
import sys
from dataclasses import replace
from itertools import product
from pathlib import Path
from types import MethodType, SimpleNamespace

import numpy as np
import pytest
from reframe.core.environments import snapshot
from rich.console import Console

from checks import kernels, performance
from checks.scales import SCALES, WORTHIEST
from tests import synthetic
from tests.decisions import on
from tests.processes import TIMEOUT_S
from tests.test_unmeasured import raced
from tuner.campaign import reframe, soaking, studied
from tuner.campaign.campaigns import make
from tuner.campaign.order import SoakJob, SoakLaunch, StudyJob, StudyOrder
from tuner.campaign.plans import Budget, Entrants
from tuner.campaign.reframe import Call, DispatchError
from tuner.domain.operations import COLLECTIVES, DEFAULT_METHODS
from tuner.machine.mpi import available_cores, find_mpis
from tuner.machine.systems import processor
from tuner.paths import database_path
from tuner.rawfile import keeping
from tuner.rawfile.ingest import ingest
from tuner.rawfile.kinds import soak
from tuner.selection.tuning import tune
from tuner.store.store import Store

CHECKOUT = Path(__file__).resolve().parent.parent
CONFIG = CHECKOUT / "checks" / "config" / "local.py"
PATTERNS = {
    "exchange": ["random:degree=6,seed=1", "hub:hubs=2,seed=1", "matrix:bar"],
    "discovery": ["random:degree=6,seed=1", "hub:hubs=2,seed=1"],
    "spmv": ["matrix:bar"],
}
OVERLAPS = ["ft:rows=32,elements=512", "ft:rows=1,elements=16384", "spmv:rows=4096,nonzeros=64"]
SOAKED = ("exchange", "discovery", *COLLECTIVES)
SMOKE = {*PATTERNS, "bcast", "allreduce"}


@pytest.fixture(autouse=True)
def own_places(tmp_path, monkeypatch):
    monkeypatch.setenv("SWITCHPOINT_RESULTS", str(tmp_path / "results"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def run_reframe(
    *options: str, checkout: Path = CHECKOUT, config: str = "local.py", code: int = 0
) -> str:
    config = checkout / "checks" / "config" / config
    command = [Path(sys.executable).with_name("reframe"), "-C", config, "-c", checkout / "checks"]
    answer = subprocess.run(
        [*command, "--nocolor", *options],
        env=os.environ | {"PYTHONPATH": str(checkout)},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
    )
    assert answer.returncode == code, answer.stdout + answer.stderr
    return answer.stdout


def documented(option: str) -> str:
    """Return the option with its value, as a document gives it."""
    text = (CHECKOUT / "docs" / "how-to" / "write-a-site-config.md").read_text()
    (found,) = re.findall(rf"^reframe .* ({option}\S+)$", text, re.MULTILINE)
    return found


def call_for(*selection: str, **variables: str) -> Call:
    return Call(CONFIG, selection, variables)


def test_reframe_lists_exactly_the_checks_that_there_are():
    listed = {
        line[2:].rsplit(" /", 1)[0]
        for line in run_reframe("-l").splitlines()
        if line.startswith("- ")
    }
    assert listed == {
        f"{operation} %scale={scale} %pattern={pattern}"
        for operation, patterns in PATTERNS.items()
        for pattern, scale in product(patterns, [*SCALES, WORTHIEST])
    } | {
        *(
            f"collective %scale={scale} %kind={kind}"
            for kind, scale in product(COLLECTIVES, [*SCALES, WORTHIEST])
        ),
        *(f"parameters %scale={scale} %pattern=pairs" for scale in ("1_node", "2_nodes")),
        *(
            f"overlap %scale={scale} %pattern={pattern}"
            for pattern, scale in product(OVERLAPS, ("1_node", "2_nodes"))
        ),
        *(
            f"soak %scale={scale} %kind={kind}"
            for kind, scale in product(SOAKED, ("1_node", "2_nodes"))
        ),
    }


def test_a_campaign_has_four_collectives_and_others_by_name():
    listed = re.findall(r"^- (collective .*?) /", run_reframe("-l", "--tag=tuning"), re.MULTILINE)
    kinds = {name.split("%kind=")[1] for name in listed}
    assert kinds == {"bcast", "allreduce", "allgather", "alltoall"}
    planned = reframe.dry_run(call_for("--name=collective.*kind=gather"))
    assert {(job.operation, job.pattern) for job in planned.jobs} == {("gather", "blocks")}
    assert all(job.races for job in planned.wanted)
    apart = reframe.dry_run(call_for("--name=collective.*kind=gather", apart="2,3"))
    assert not any(job.races for job in apart.wanted)
    assert {job.launches for job in apart.wanted} == {3 * job.launches for job in planned.wanted}


def test_the_plan_has_every_environment_and_leaves_out_what_does_not_fit():
    planned = reframe.dry_run(call_for("--name=discovery"))
    assert {job.environment for job in planned.wanted} == {mpi.name for mpi in find_mpis()}
    assert {job.procs for job in planned.wanted} >= {available_cores()}
    for job in planned.jobs:
        assert (job.result == "skip") == bool(job.skipped_because)
        assert job.scale not in ("2_nodes", "4_nodes") or "has 1" in job.skipped_because
        assert job.scale != WORTHIEST or "was not measured" in job.skipped_because


def test_the_layout_of_which_most_is_expected_is_measured_too(tmp_path):
    """Between 4 and 64 ranks a method's gain goes from half of the time to a tenth."""
    mpi = find_mpis()[0].name
    here = {"cpu_model": processor(), "cores": available_cores()}
    synthetic.write(tmp_path, synthetic.Campaign(environment=mpi, launches=1, sizes=(8,), **here))
    ingest(database_path(), [tmp_path])
    points = [
        on(raced(1, ppn, 8, **ratios), 1, ppn, over=True)
        for ppn, ratios in ((4, {"nap": 0.5, "neighbor": 0.9}), (64, {"nap": 0.9, "neighbor": 0.5}))
    ]
    with Store.open(database_path()) as store:
        table = tune(store, str(store.systems()["system"][0]))
        store.put_table(replace(table, points=points))
    planned = reframe.dry_run(call_for("--name=exchange.*worthiest.*random"))
    (job,) = (job for job in planned.wanted if job.environment == mpi)
    assert 4 < job.procs <= 32
    assert job.oversubscribed
    assert job.races


def test_a_check_file_that_cannot_be_imported_is_noticed(tmp_path, monkeypatch):
    shutil.copytree(CHECKOUT / "checks", tmp_path / "checks")
    broken = tmp_path / "checks" / "broken.py"
    broken.write_text("import reframe\nimport no_such_module\n")
    monkeypatch.setattr(reframe, "CHECKS", tmp_path / "checks")
    with pytest.raises(DispatchError, match=r"broken\.py.*no_such_module"):
        reframe.dry_run(call_for("--name=exchange"))


def test_a_selection_without_a_check_is_an_error():
    with pytest.raises(DispatchError, match="nothing to run"):
        reframe.dry_run(call_for("--name=no_such_check"))


def test_a_variable_that_no_check_has_is_an_error():
    with pytest.raises(DispatchError, match="no variable lunches"):
        reframe.dry_run(call_for("--name=discovery", lunches="6"))


def test_what_fails_in_a_dry_run_is_one_line(tmp_path):
    """ReFrame prints it among all else that it does."""
    config = tmp_path / "site.py"
    config.write_text(CONFIG.read_text().replace('"max_nodes": 1', '"max_nodes": None'))
    call = Call(config, ["--name=discovery.*random"], {})
    failed = r"^ReFrame's dry run failed: discovery .*: setup: type error: .* \(and \d+ more\)$"
    with pytest.raises(DispatchError, match=failed):
        reframe.dry_run(call)


UNSET = """
WARNING: test 'build_kernels': the following variables were not set: 'metods', 'methods'
WARNING: test 'discovery': the following variables were not set: 'metods'
"""


@pytest.mark.parametrize(
    ("assignment", "untaken"),
    [
        ("discovery.metods=pex", ["discovery.metods"]),
        ("metods=pex", ["metods"]),
        ("colective.methods=vendor", ["colective.methods"]),
        ("discovery.methods=pex", []),
        ("methods=pex", []),  # building has none
        ("build_kernels.build_time_limit=1h", []),
    ],
)
def test_a_variable_that_an_option_sets_must_be_of_a_check(assignment, untaken):
    for option in (["-S", assignment], [f"--setvar={assignment}", "--name=x"]):
        assert [*reframe._untaken(option, UNSET, {"discovery", "build_kernels"})] == untaken


def test_a_mistyped_variable_is_an_error_where_that_is_wanted():
    call = call_for("--name=discovery.*random", "--setvar=discovery.metods=pex")
    with pytest.raises(DispatchError, match=r"--setvar=discovery.metods: no check that runs has"):
        reframe.dry_run(call, strict=True)


@pytest.mark.parametrize("assignment", ["launches=2", "budget_s=20"])
def test_a_variable_that_campaigns_set_is_refused_before_anything_runs(assignment):
    call = call_for("--name=overlap", "-S", assignment)
    with pytest.raises(DispatchError, match=r"with an option of this command, not with -S"):
        make(call, Budget(600), None, only_shown=True)


def test_a_variable_without_a_value_is_an_error():
    with pytest.raises(DispatchError, match="invalid test variable assignment: 'methods'"):
        reframe.dry_run(call_for("--name=discovery", "--setvar=methods"))


def medians_us(raw_files: list[Path]) -> dict[tuple[str, str], float]:
    """Return medians of the default and the fastest method at each size, by operation and name.

    Those of canaries too: of the medians of each case.
    """
    times_s: dict[tuple[str, int], dict[str, list[float]]] = {}
    canaries_s: dict[str, list[float]] = {}
    for path in raw_files:
        header, *lines = map(json.loads, path.read_text().splitlines())
        for case in lines[:-1]:
            canaries_s.setdefault(header["operation"], []).append(np.median(case["canary_s"]))
            methods = times_s.setdefault((header["operation"], case["size_bytes"]), {})
            methods.setdefault(case["method"], []).extend(case["samples_s"])
    found = {(name, "canary"): 1e6 * float(np.median(its)) for name, its in canaries_s.items()}
    for (operation, size), methods in times_s.items():
        # With the precision in which raw files are read, or ties are decided otherwise.
        medians_s = {method: np.median(np.float32(its)) for method, its in methods.items()}
        for method in (DEFAULT_METHODS[operation], min(medians_s, key=lambda m: medians_s[m])):
            name = re.sub("[:=]", "_", method)
            found[operation, f"{name}_{size}B"] = 1e6 * medians_s[method]
    return found


def test_reframe_finds_results_that_are_named_relatively(tmp_path, monkeypatch):
    """It loads check files from their own directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SWITCHPOINT_RESULTS", "results")
    assert reframe._environment()["SWITCHPOINT_RESULTS"] == str(tmp_path / "results")
    planned = []
    monkeypatch.setattr(reframe, "run", lambda call, found, *_: planned.append(found) or found)
    place = "local:cpu", find_mpis()[0].name
    launch = SoakLaunch(5.0, [Entrants([8], ["direct"], 10)], "exchange")
    request = soaking.SoakRequest(CONFIG, 10, 60)
    soaking._run([SoakJob(*place, 1, 2, [launch])], request, Console())
    job = StudyJob("exchange", "random:degree=1", 1, 2, {"SWITCHPOINT_OFF": "nap lent"}, [{}])
    wanted = StudyOrder(*place, str(tmp_path), 1.0, [job])
    studied.run(wanted, CONFIG, [], "", Console())
    assert [len(found.wanted) for found in planned] == [1, 1]


def test_output_of_an_earlier_batch_is_not_appended_to(tmp_path):
    options = ["--dry-run", "--name=discovery.*1_node%.*hub", f"--prefix={tmp_path}"]
    options += [f"--prgenv=^{find_mpis()[0].name}$", "--keep-stage-files", "--dont-restage"]
    run_reframe(*options)
    (script,) = tmp_path.rglob("discovery*/rfm_job.sh")
    written = [script.with_suffix(suffix) for suffix in (".out", ".err")]
    for path in written:
        path.write_text("swpbench: payload ok\n")
    run_reframe(*options)
    assert not any(path.exists() for path in written)


def test_reframe_reports_the_smallest_the_middle_and_the_largest_size(tmp_path):
    spec = synthetic.Campaign(launches=2, sizes=(8, 64, 512, 4096, 32768))
    raw_files = synthetic.write(tmp_path, spec)
    reported = performance.medians_us(raw_files)
    sizes = {name.rpartition("_")[2] for name in reported}
    assert sizes == {"canary", "8B", "512B", "32768B"}
    expected = {name: us for (_, name), us in medians_us(raw_files).items()}
    assert {name.rpartition("_")[2] for name in expected} == sizes | {"64B", "4096B"}
    assert reported == pytest.approx({name: expected[name] for name in reported}, rel=1e-5)


def test_of_launches_of_several_operations_reframe_reports_the_canary_alone(tmp_path):
    specs = synthetic.Campaign(launches=1), synthetic.of_bcast(synthetic.Campaign(launches=1))
    raw_files = [path for spec in specs for path in synthetic.write(tmp_path, spec)]
    assert {*performance.medians_us(raw_files)} == {"canary"}


def test_a_swpbench_on_the_path_is_used_for_its_own_mpi_alone(tmp_path, monkeypatch, require):
    """ReFrame loads the modules of an environment, whose mpicc it is, in job scripts alone."""
    mpis = {mpi.family: mpi for mpi in find_mpis()}
    for family in ("mpich", "openmpi"):
        require(family, family in mpis, "no mpicc and mpiexec of this family found")
    path = tmp_path / "opt" / "bin" / "swpbench"
    path.parent.mkdir(parents=True)
    source = tmp_path / "empty.c"
    source.write_text("#include <mpi.h>\nint main(void) { return MPI_Init(0, 0); }\n")
    subprocess.run([mpis["openmpi"].mpicc, source, "-o", path], check=True)
    monkeypatch.setenv("PATH", f"{path.parent}{os.pathsep}{os.environ['PATH']}")
    place = SimpleNamespace(features=[], local_env=None)
    check = SimpleNamespace(current_partition=place, installation=tmp_path / "install" / "x")

    def loadenv(_, environ):
        before = snapshot()
        os.environ["PATH"] = f"{environ.module}{os.pathsep}{os.environ['PATH']}"
        return before, []

    monkeypatch.setattr(kernels, "loadenv", loadenv)
    for family, found in (("mpich", None), ("openmpi", tmp_path / "opt")):
        module = tmp_path / family
        module.mkdir()
        (module / "mpicc").symlink_to(mpis[family].mpicc)
        (module / "mpiexec").symlink_to(mpis[family].mpiexec)
        check.current_environ = SimpleNamespace(cc="mpicc", module=module)
        with kernels.loaded(None, check.current_environ):
            assert kernels.build_kernels.find_installed(check) == found


def test_what_a_module_brings_for_the_build_is_not_lacking(tmp_path, monkeypatch):
    for place, programs in (("bin", ("mpicc", "cc", "make")), ("module", ("cmake",))):
        (tmp_path / place).mkdir()
        for program in programs:
            (tmp_path / place / program).touch(0o755)
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.delenv("CC", raising=False)
    brought = f"{tmp_path}/bin{os.pathsep}{tmp_path}/module"
    monkeypatch.setattr(kernels, "loadenv", lambda *_: os.environ.update(PATH=brought))
    monkeypatch.setattr(kernels, "is_checkout", lambda: False)
    check = SimpleNamespace(
        current_partition=SimpleNamespace(local_env=None, features=["simulated"]),
        current_environ=SimpleNamespace(cc="mpicc"),
        skip=pytest.fail,
    )
    for name in ("choose_installation", "find_installed", "find_lacking", "find_standard_mpi"):
        setattr(check, name, MethodType(getattr(kernels.build_kernels, name), check))
    kernels.build_kernels.take_what_is_built(check)
    assert os.environ["PATH"] == str(tmp_path / "bin")


def test_reframe_alone_measures_wherever_the_checkout_lies(tmp_path, monkeypatch):
    """Without `switchpoint run`, where every path needs quotes, and by an installed swpbench."""
    place = tmp_path / "a (strange) place"
    for part in ("checks", "kernels", "results", "templates", "tuner"):
        shutil.copytree(CHECKOUT / part, place / part, ignore=shutil.ignore_patterns("results/*"))
    environment = find_mpis()[0].name
    settings = [f"--setvar={each}" for each in ("launches=2", "budget_s=0.2", "sizes=8,1K")]
    options = ["-r", "--tag=smoke", f"--prgenv=^{environment}$", *settings]
    monkeypatch.setenv("CCACHE_BASEDIR", str(place))
    monkeypatch.setenv("CMAKE_GENERATOR", "of the user")
    monkeypatch.setenv("RFM_ENABLE_RESULTS_STORAGE", "1")
    monkeypatch.setenv("RFM_SQLITE_DB_FILE", str(tmp_path / "reframe.db"))
    said = run_reframe(*options, "--setvar=campaign=smoke", "--performance-report", checkout=place)
    assert "PASSED" in said
    with sqlite3.connect(tmp_path / "reframe.db") as database:  # the same of two days ago
        database.execute(
            "INSERT INTO testcases SELECT name, system, partition, environ, "
            "job_completion_time_unix - 2 * 86400, session_uuid, uuid FROM testcases"
        )
    compared = run_reframe(documented("--performance-compare="), checkout=place)
    same = re.findall(r"│ us +│ +([\d.]+) +│ +([\d.]+) +│ +0 │", compared)
    monkeypatch.delenv("RFM_ENABLE_RESULTS_STORAGE")
    raw_files = keeping.of_campaign("smoke")
    assert len(raw_files) == 2 * len(SMOKE)
    row = r"^│ (?:collective .*%kind=)?(\w+) .*│ (\w+) +│ us +│ +([\d.]+) │"
    found = re.findall(row, said, re.MULTILINE)
    reported = {(operation, name): float(us) for operation, name, us in found}
    expected = medians_us(raw_files)
    assert set(reported) == set(expected)
    assert {operation for operation, name in reported if name == "canary"} == SMOKE
    assert all(reported[key] == pytest.approx(us, rel=1e-4) for key, us in expected.items())
    assert len(same) == len(expected), compared
    assert all(now == before for now, before in same)
    logged = [
        (row["operation"], row["methods"], row["campaign"])
        for path in (tmp_path / "cache").rglob("perflogs/local/cpu/*.log")
        for row in csv.DictReader(path.open(), delimiter="|")
        if path.name != "build_kernels.log"
    ]
    assert sorted(logged) == sorted((operation, "all", "smoke") for operation in SMOKE)
    installed = place / "build" / "install" / f"local-cpu-{environment}"
    assert (installed / "bin" / "swpbench").is_file()
    with Store.open(database_path(), readonly=True) as store:
        assert set(store.cells().operation) == SMOKE
        (system,) = store.systems()["system"]
        assert store.launcher(system) == Path(find_mpis()[0].mpiexec).name
    # The launcher of this machine starts all ranks on one node, whatever the layout.
    two = place / "checks" / "config" / "two.py"
    two.write_text(
        (two.with_name("local.py").read_text()).replace('"max_nodes": 1', '"max_nodes": 2')
    )
    crowd = ["-r", "--name=^discovery.*=2_nodes.*random", *options[2:], "--setvar=campaign=crowd"]
    said = run_reframe(*crowd, checkout=place, config=two.name, code=1)
    wrong = f"launches had (ranks, nodes) [({2 * available_cores()}, 1), "
    assert wrong in said, said
    assert keeping.of_campaign("crowd") == []
    assert list(tmp_path.rglob("discovery-*-2-nodes-*.jsonl"))
    assert keeping.complete_of_campaign(tmp_path, "crowd") == []
    soaking = ["-r", "--name=soak.*kind=discovery", f"--prgenv=^{environment}$"]
    soaking += ["--setvar=executions=200", "--setvar=sizes=8", "--setvar=campaign=soak"]
    assert "PASSED" in run_reframe(*soaking, checkout=place)
    with Store.open(database_path(), readonly=True) as store:
        (system,) = store.systems()["system"]
        assert set(soak.stored(store, system)["executions"]) == {200}
    # Outside a checkout, a swpbench on the path comes before the sources of a wheel.
    shutil.rmtree(place / "results")
    installed.rename(tmp_path / "opt")
    monkeypatch.setenv("PATH", f"{tmp_path / 'opt' / 'bin'}{os.pathsep}{os.environ['PATH']}")
    run_reframe(*options, "--name=discovery", "--setvar=campaign=wheel", checkout=place)
    assert len(keeping.of_campaign("wheel")) == 2
    linked = tmp_path / "cache" / "switchpoint" / "install" / installed.name
    assert linked.resolve() == tmp_path / "opt"
