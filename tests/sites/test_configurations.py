"""Configurations of sites: made, replaced, examined, and used from a checkout that is read-only."""

import errno
import json
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from tests.conftest import by_day
from tests.processes import TIMEOUT_S
from tests.sites.conftest import init
from tuner import atomic
from tuner.campaign.reframe import Call, DispatchError, Session
from tuner.campaign.site_file import ConfigurationError, examine_site
from tuner.cli import main
from tuner.machine.mpi import Mpi, available_cores, find_mpis
from tuner.machine.sites import environments, schedulers
from tuner.machine.sites.configuration import reframe_name
from tuner.machine.sites.schedulers import SCHEDULERS, Partition, Processors
from tuner.paths import CHECKOUT
from tuner.store.store import Store


def contents(config: Path) -> dict[str, Any]:
    made: dict[str, Any] = {}
    exec(config.read_text(), made)
    return made["site_configuration"]


def one_partition() -> list[Partition]:
    return [Partition("cpu", 2, Processors(4))]


PARTS = {"systems": [{"name": "a"}], "environments": [{"name": "e"}]}


def of_partition(**wrong: Any) -> dict[str, Any]:
    return {"systems": [{"name": "a", "partitions": [wrong]}]}


def test_a_terminal_is_asked_for_what_nothing_reports(answering, tmp_path):
    """On standard error, as the standard output may be the file."""
    answering("slurm")
    config = tmp_path / "site.py"
    ours, theirs = os.openpty()
    os.write(ours, b"smt\nm42\nmany\n0\n9\n2\n")
    with config.open("w") as output:
        answer = subprocess.run(
            [sys.executable, "-m", "tuner.cli", "site", "init", "--output", "/dev/stdout"],
            env=os.environ | {"PYTHONPATH": str(CHECKOUT)},
            stdin=theirs,
            stdout=output,
            stderr=subprocess.PIPE,
            text=True,
            timeout=TIMEOUT_S,
        )
    os.close(ours)
    os.close(theirs)
    assert answer.returncode == 0, answer.stderr
    assert "'many' is not a number" in answer.stderr
    for number in (0, 9):
        assert f"{number} is not in the range 1<=x<=8" in answer.stderr
    (partition,) = contents(config)["systems"][0]["partitions"]
    assert partition["name"] == "smt"
    assert "--account=m42" in partition["access"]
    assert partition["extras"]["max_nodes"] == 2


def test_nothing_is_asked_where_the_standard_input_is_closed(answering, tmp_path):
    answering("slurm")
    config = tmp_path / "site.py"
    answer = subprocess.run(
        ["sh", "-c", '"$0" -m tuner.cli site init --output "$1" <&-', sys.executable, config],
        env=os.environ | {"PYTHONPATH": str(CHECKOUT)},
        capture_output=True,
        text=True,
    )
    assert answer.returncode == 0, answer.stderr
    assert len(contents(config)["systems"][0]["partitions"]) == 2


def test_without_a_scheduler_it_is_this_machine(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    config = tmp_path / "here.py"
    said = init("--scheduler", "local", "--output", str(config))
    assert f"1 nodes of {available_cores()} cores" in said
    answer = CliRunner().invoke(main, ["doctor", "--config", str(config), "--json"])
    assert answer.exit_code == 0, answer.output
    parts = json.loads(answer.stdout)
    assert {mpi.name for mpi in find_mpis()} <= {part["name"] for part in parts}
    assert "would run" in parts[-1]["found"]


def test_a_place_where_no_job_runs_is_one_line(tmp_path, monkeypatch):
    config = tmp_path / "here.py"
    init("--scheduler", "local", "--output", str(config))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "sp ace"))
    monkeypatch.setattr("tuner.machine.directories.build_root", lambda: tmp_path / "sp ace")
    with pytest.raises(SystemExit, match="cannot run jobs in a path with spaces"):
        contents(config)


def test_a_configuration_is_not_replaced_unasked(tmp_path):
    config = tmp_path / "here.py"
    config.write_text("mine")
    assert "--force" in init("--scheduler", "local", "--output", str(config), code=1)
    assert config.read_text() == "mine"
    init("--scheduler", "local", "--output", str(config), "--force")
    assert "site_configuration" in config.read_text()


def test_a_configuration_that_cannot_be_written_whole_stays_as_it_is(tmp_path, monkeypatch):
    config = tmp_path / "here.py"
    config.write_text("mine")

    def full(path):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(atomic, "_sync", full)
    said = init("--scheduler", "local", "--output", str(config), "--force", code=1)
    assert f"{config}: No space left on device" in said
    assert config.read_text() == "mine"
    assert list(tmp_path.iterdir()) == [config]


def test_partitions_that_are_not_there_are_an_error(answering, tmp_path):
    answering("slurm")
    said = init("--partition", "gpu", "--output", str(tmp_path / "site.py"), code=1)
    assert "no partition gpu" in said
    assert "cpu, smt" in said


@pytest.mark.parametrize(("scheduler", "most"), [("local", 1), ("slurm", 60)])
def test_a_job_cannot_have_more_nodes_than_there_are(scheduler, most, answering, tmp_path):
    answering("slurm")
    options = ["--scheduler", scheduler, "--output", str(tmp_path / "site.py"), "--max-nodes"]
    said = init(*options, f"{most + 1}", code=1)
    assert f"--max-nodes {most + 1}: {scheduler} gives a job {most} at most" in said
    init(*options, f"{most}")


@pytest.mark.parametrize("scheduler", schedulers.SLURM)
def test_a_job_of_slurm_may_wait_for_reserved_nodes(scheduler, answering, tmp_path):
    """ReFrame cancels jobs whose reason is ReqNodeNotAvail, whatever follows in it."""
    answering("slurm")
    config = tmp_path / "site.py"
    init("--scheduler", scheduler, "--output", str(config))
    options = [its["sched_options"] for its in contents(config)["systems"][0]["partitions"]]
    assert all(its["ignore_reqnodenotavail"] for its in options)


def test_each_partition_is_written_once(answering, tmp_path, monkeypatch):
    answering("slurm")
    config = tmp_path / "site.py"
    init("--partition", "smt", "--partition", "smt", "--output", str(config))
    assert config.read_text().count('"name": "smt"') == 1
    alike = [Partition(name, 1, Processors(4)) for name in ("gpu.a", "gpu-a")]
    monkeypatch.setitem(SCHEDULERS, "local", replace(SCHEDULERS["local"], ask=lambda: alike))
    said = init("--scheduler", "local", "--output", str(tmp_path / "alike.py"), code=1)
    assert "partitions gpu.a and gpu-a would both be gpu-a; choose one with --partition" in said


def test_whatever_a_site_is_called_is_python_and_a_name_of_reframe(answering, tmp_path):
    answering("pbs")
    config = tmp_path / "site.py"
    init("--name", 'a "b"\n{{ c }}', "--account", "x'; \\", "--output", str(config))
    made = {}
    exec(config.read_text(), made)
    system = made["site_configuration"]["systems"][0]
    assert system["name"] == "a-b-c"
    assert system["partitions"][0]["access"][-1] == "-A x'; \\"
    assert reframe_name("4.2") == "_4-2"


def test_flux_comes_with_a_caution(answering, tmp_path):
    answering("flux")
    assert "inside `flux alloc`" in init("--output", str(tmp_path / "site.py"))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("x = 1", "site_configuration"),
        ("site_configuration = {'systems': [], 'environments': []}", "no systems"),
        ("import no_such_module", "no_such_module"),
        ("raise SystemExit('no MPI')", "no MPI"),
        ("import os\nos._exit(3)", "exits with 3"),
        ("print('[')\nsite_configuration = 4", "not a ReFrame configuration"),
        (
            "site_configuration = {'systems': [{'name': 'a', 'partitions': ['cpu']}],"
            " 'environments': [{'name': 'e'}]}",
            r"Expected `object`, got `str` - at `\$.systems\[0\].partitions\[0\]`",
        ),
        *(
            (
                f"site_configuration = {PARTS | change}",
                rf"site.py: not a ReFrame configuration: Expected .* - at `\$\.{where}",
            )
            for change, where in (
                ({"general": {"remote_detect": True}}, "general"),
                (of_partition(processor={"num_cpus": "128"}), "systems"),
                (of_partition(features=None), "systems"),
                ({"environments": [{"name": "e", "extras": None}]}, "environments"),
            )
        ),
    ],
)
def test_a_file_that_is_no_configuration_is_reported(tmp_path, text, reason):
    config = tmp_path / "site.py"
    config.write_text(text)
    with pytest.raises(ConfigurationError, match=reason):
        examine_site(config)


def test_a_configuration_in_json_is_read_by_reframe_alone(tmp_path, monkeypatch):
    config = tmp_path / "site.json"
    config.write_text(json.dumps(PARTS | {"general": [{"remote_detect": True}]}))

    def dry_run(*_, **__) -> Session:
        raise DispatchError("nothing to run")

    monkeypatch.setattr("tuner.campaign.reframe.dry_run", dry_run)
    assert [part.advice for part in examine_site(config)] == ["nothing to run"]
    options = ["run", "--dry-run", "--config", str(config), "--environment", "e"]
    assert CliRunner().invoke(main, options).output == "Error: nothing to run\n"


def test_a_configuration_that_does_not_end_is_reported(tmp_path, monkeypatch):
    config = tmp_path / "site.py"
    config.write_text("import time\ntime.sleep(600)\n")
    monkeypatch.setattr("tuner.campaign.site_file._READ_S", 0.5)
    answer = CliRunner().invoke(main, ["doctor", "--config", str(config), "--json"])
    assert answer.exit_code == 1
    assert answer.stdout == ""
    assert answer.stderr.splitlines() == [
        f"reading {config}, for 0.5 s at most",
        f"Error: reading {config} did not end within 0.5 s",
    ]


def test_the_doctor_reports_what_a_configuration_lacks(answering, tmp_path, monkeypatch):
    config = tmp_path / "site.py"
    answering("lsf-span")
    init("--name", "site", "--output", str(config))
    text = config.read_text().replace('"features": ["mpi"]', '"features": []')
    text = re.sub(r'"num_cpus_per_core": \d+', '"num_cpus_per_core": 0', text, count=1)
    text = text.replace('"num_cpus": 48,', "")
    config.write_text(re.sub(r'"cc": ".*"', '"cc": "no-such-mpicc"', text))
    (tmp_path / "lsf-span-bin" / "bsub").unlink()
    monkeypatch.setattr("tuner.campaign.site_file._PLAN_S", 0.1)
    done: list[str] = []
    parts = [part for part in examine_site(config, done.append) if part.required and not part.found]
    lacking = {(part.name, part.used_for): part.advice for part in parts}
    assert done == [
        f"reading {config}, for 60 s at most",
        f"ReFrame plans with {config}, for 0.1 s at most",
    ]
    assert "bsub" in lacking["site:normal", "scheduler"]
    for name in ("site:normal", find_mpis()[0].name):
        assert "mpi" in lacking[name, "selection"]
    assert "num_cpus_per_core" in lacking["site:normal", "scales"]
    assert "num_cpus" in lacking["site:fat", "scales"]
    assert "did not end within 0.1 s" in lacking["checks", "measuring"]
    assert "no-such-mpicc" in lacking[find_mpis()[0].name, "building"]


def test_modules_of_mpi_libraries_are_found_the_last_version_of_each(
    require, tmp_path, monkeypatch
):
    command = Path("/usr/lib/x86_64-linux-gnu/modulecmd.tcl")
    require("modules", command.is_file(), "no Environment Modules here")
    for module in ("mpich/4.9", "mpich/4.10", "gcc/12/openmpi/5.0", "hdf5/1.14-mpich", "gcc/12.2"):
        path = tmp_path / "modules" / module
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("#%Module1.0\n")
    monkeypatch.setenv("MODULES_CMD", str(command))
    monkeypatch.setenv("MODULEPATH", str(tmp_path / "modules"))
    assert environments.modules_system() == "tmod4"
    assert sorted(environments.mpi_modules()) == ["gcc/12/openmpi/5.0", "mpich/4.10"]
    made = environments.of_modules(["gcc/12.2 mpich/4.10", "cray-mpich/9"], "srun")
    assert [(each.name, each.cc) for each in made] == [
        ("gcc-12-2-mpich-4-10", "mpicc"),
        ("cray-mpich-9", "cc"),
    ]


@pytest.fixture
def lmod(tmp_path, monkeypatch):
    """Put modules where Lmod lists them."""

    def put(*modules: str) -> None:
        command = tmp_path / "lmod"
        listed = "\n".join(["/opt/modules/Core:", *modules])
        redirected = '[ "$LMOD_REDIRECT" = yes ] || exec >&2'
        command.write_text(f"#!/bin/sh\n{redirected}\ncat <<'END'\n{listed}\nEND\n")
        command.chmod(0o755)
        monkeypatch.setenv("LMOD_CMD", str(command))

    return put


FAMILIES = {
    "OpenMPI/4.1.5-GCC-12.3.0": "pmix",  # by EasyBuild
    "MPICH/4.2.1-GCC-13.2.0": "pmi2",
    "MVAPICH2/2.3.7-GCC-12.3.0": "pmi2",
    "impi/2021.9.0-intel-compilers-2023.1.0": "pmi2",
    "mpi/openmpi-x86_64": "pmix",  # by Red Hat
    "mpi/mpich-aarch64": "pmi2",
    "mpi/2021.11": "pmi2",  # by Intel
    "mpi/latest": "pmi2",
    "intel-oneapi-mpi/2021.11.0": "pmi2",  # by Spack
    "openmpi4/4.1.6": "pmix",  # by OpenHPC
    "gcc/12/openmpi/5.0": "pmix",
    "hpcx-mt/2.17": "pmix",
    "cray-mpich/8.1.28": "",  # whose own protocol is the site's default
}


@pytest.mark.parametrize("module", FAMILIES)
def test_modules_of_mpi_libraries_have_the_usual_names(module, lmod, tmp_path, monkeypatch):
    lmod("OpenBLAS/", module, "hdf5/1.14-mpich", "mpi4py/4.0", "MPICH-tools/1", "mpi/", "mpi/tools")
    assert environments.mpi_modules() == [module]
    monkeypatch.setattr(schedulers, "ask", lambda *_: "MpiDefault = none\npmi2 pmix")
    config = tmp_path / "site.py"
    monkeypatch.setitem(SCHEDULERS, "slurm", replace(SCHEDULERS["slurm"], ask=one_partition))
    init("--scheduler", "slurm", "--output", str(config))
    kind = FAMILIES[module]
    (found,) = contents(config)["environments"]
    assert found.get("env_vars") == ([["SLURM_MPI_TYPE", kind]] if kind else None)
    assert found["modules"] == [module]


def test_modules_are_found_where_users_have_lmod_list_them_on_standard_output(lmod, monkeypatch):
    lmod("mpich/4.10")
    monkeypatch.setenv("LMOD_REDIRECT", "yes")
    assert environments.mpi_modules() == ["mpich/4.10"]


def test_modules_of_other_names_are_asked_for(lmod, tmp_path):
    lmod("hdf5/1.14-mpich", "wi4mpi/3")
    said = init("--scheduler", "local", "--output", str(tmp_path / "site.py"))
    expected = "warning: no module here is named after an MPI library; name modules with --modules"
    assert expected in said


@pytest.mark.parametrize(("scheduler", "launcher"), [("pbs", "mpiexec"), ("lsf-span", "mpirun")])
def test_an_mpi_that_the_launcher_does_not_start_is_left_out(
    scheduler, launcher, answering, tmp_path, monkeypatch
):
    answering(scheduler)
    own, other = (
        Mpi(name, "openmpi", version, mpicc, f"{mpicc}.exec")
        for name, version, mpicc in (("openmpi", "4.1.4", "true"), ("openmpi5", "5.0.1", "false"))
    )
    program = tmp_path / f"{scheduler}-bin" / launcher
    program.write_text(f"#!/bin/sh\necho '{launcher} (Open MPI) 4.1.4'\n")
    program.chmod(0o755)
    monkeypatch.setattr(environments, "find_mpis", lambda: [own, other])
    config = tmp_path / "site.py"
    said = init("--output", str(config))
    assert f"warning: {launcher} is of another MPI, so it is left out: Open MPI 5.0.1 " in said
    assert [each["name"] for each in contents(config)["environments"]] == ["openmpi"]
    monkeypatch.setattr(environments, "find_mpis", lambda: [other])
    assert "no MPI among" in init("--output", str(config), "--force", code=1)


def test_the_doctor_leaves_no_stage_and_those_of_others_alone(tmp_path, monkeypatch):
    config = tmp_path / "here.py"
    config.write_text(f"site_configuration = {PARTS}")
    others = tmp_path / "stage"
    others.mkdir()
    monkeypatch.setenv("RFM_STAGE_DIR", str(others))
    stages = []

    def dry_run(call: Call, limit_s: float) -> Session:
        stages.append(Path(call.env["RFM_STAGE_DIR"]))
        stages[0].mkdir()
        raise DispatchError("nothing to run")

    monkeypatch.setattr("tuner.campaign.reframe.dry_run", dry_run)
    assert examine_site(config)[-1].advice == "nothing to run"
    assert not stages[0].exists()
    assert others not in stages


def test_the_doctor_examines_the_launcher_of_an_environment(answering, tmp_path, monkeypatch):
    answering("pbs")
    config = tmp_path / "site.py"
    init("--name", "site", "--output", str(config))
    monkeypatch.setattr("tuner.campaign.site_file._PLAN_S", 0.1)

    def lacking() -> list[str]:
        parts = [part for part in examine_site(config) if part.used_for == "building"]
        return [part.advice for part in parts if not part.found]

    assert lacking() == []
    program = tmp_path / "pbs-bin" / "mpiexec"
    program.write_text("#!/bin/sh\necho 'mpiexec (Open MPI) 1.0'\n")
    program.chmod(0o755)
    (said,) = lacking()
    assert said.endswith(" and mpiexec do not belong to one known MPI")


def test_modules_without_a_module_command_are_an_error(monkeypatch):
    monkeypatch.delenv("MODULES_CMD", raising=False)
    monkeypatch.delenv("LMOD_CMD", raising=False)
    with pytest.raises(environments.ModulesError, match="login shell"):
        environments.of_modules(["gcc/13"], "srun")
    assert environments.mpi_modules() == []


# In a mount namespace of its own, of a user namespace where that needs one.
UNSHARE = ["unshare", "--mount", *(["--map-root-user"] if os.geteuid() else [])]
READ_ONLY = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"'


@pytest.fixture
def from_read_only(require, tmp_path, monkeypatch):
    """Return the start of commands for which the checkout is read-only; HOME is a new one."""
    prefix = [*UNSHARE, "sh", "-c", READ_ONLY, str(CHECKOUT)]
    tried = subprocess.run([*prefix, "true"], capture_output=True, text=True)
    require("namespaces", tried.returncode == 0, f"no read-only mount: {tried.stderr.strip()}")
    assert subprocess.run([*prefix, "touch", CHECKOUT / "new"], capture_output=True).returncode == 1
    for name in ("SWITCHPOINT_RESULTS", "XDG_CACHE_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PYTHONPATH", str(CHECKOUT))
    monkeypatch.setenv("CCACHE_DISABLE", "1")  # the tests' is in the checkout
    return [*prefix, sys.executable, "-m", "tuner.cli"]


def test_a_read_only_checkout_has_its_files_elsewhere(from_read_only, tmp_path):
    words = ["run", "--dry-run", "--json", "--", "--name=^discovery.*=1_node.*random"]
    answer = subprocess.run(
        [*from_read_only, *words], capture_output=True, text=True, cwd=tmp_path, timeout=TIMEOUT_S
    )
    assert answer.returncode == 0, answer.stderr
    plan = json.loads(answer.stdout)
    home = tmp_path / "home"
    assert Path(plan["file"]).is_relative_to(home / ".local" / "state" / "switchpoint" / "results")
    assert Path(plan["stage"]).is_relative_to(home / ".cache" / "switchpoint" / "reframe")


@pytest.mark.parametrize(
    "sites", by_day([pytest.param(("north",), marks=pytest.mark.check)], [(("north", "south"),)])
)
def test_two_sites_share_a_read_only_checkout(from_read_only, tmp_path, sites):
    """At the same time, and each builds kernels of its own."""
    name, running = find_mpis()[0].name, {}
    for site in sites:
        config = tmp_path / f"{site}.py"
        init("--name", site, "--scheduler", "local", "--output", str(config))
        words = ["run", f"--config={config}", f"--environment={name}", "--minutes=0.7"]
        words += ["--require-soak=0", "--", "--name=^discovery.*=1_node.*random"]
        words += ["--setvar=methods=pex;nbx", "--setvar=sizes=8"]
        running[site] = subprocess.Popen(
            [*from_read_only, *words],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=tmp_path,
        )
    said = {site: process.communicate(timeout=TIMEOUT_S)[0] for site, process in running.items()}
    assert {process.returncode for process in running.values()} == {0}, said
    state, cache = tmp_path / "home/.local/state/switchpoint", tmp_path / "home/.cache/switchpoint"
    with Store.open(state / "results" / "switchpoint.db", readonly=True) as store:
        assert {*store.systems()["name"]} == {f"{site}:cpu" for site in sites}
    for site in running:
        assert (cache / "install" / f"{site}-cpu-{name}" / "bin" / "swpbench").is_file()
        assert list((state / "results").glob(f"{site}-cpu-{name}-*/switchpoint.table")), said
