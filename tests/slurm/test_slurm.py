"""Campaigns through a real Slurm of four virtual nodes on this machine."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.slurm.cluster import Cluster, ClusterError, missing
from tuner import doctor, rawfiles
from tuner.cli import main
from tuner.mpi import CHECKOUT, find_mpis
from tuner.sites import schedulers
from tuner.sites.examine import examine
from tuner.sites.schedulers import Partition, Shape


@pytest.fixture(scope="module")
def cluster(require, tmp_path_factory):
    require("slurm", not missing(), f"no {', '.join(missing())}")
    mpich = [mpi for mpi in find_mpis() if mpi.family == "mpich" and mpi.major == 4]
    require("mpich4", bool(mpich), "no MPICH 4, which Slurm's PMI-2 starts")
    made = Cluster(tmp_path_factory.mktemp("slurm"))
    try:
        made.up()
    except ClusterError as error:  # as in a container that may not
        require("slurm", False, f"does not come up: {error}")
    yield made
    made.down()


@pytest.fixture
def config(cluster, tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("SLURM_CONF", str(cluster.configuration))
    monkeypatch.setenv("SWITCHPOINT_RESULTS", str(tmp_path / "results"))
    # Shared by the daemons, which were started without it.
    monkeypatch.setenv("PYTHONPATH", str(CHECKOUT))
    path = tmp_path / "box.py"
    command = ["site", "init", "--name", "box", "--output", str(path)]
    answer = CliRunner().invoke(main, command)
    assert answer.exit_code == 0, answer.output
    return path


def reframe(config: Path, *options: str, **variables: str) -> subprocess.Popen[str]:
    settings = {"launches": "2", "budget_s": "0.2", "sizes": "8,1K"} | variables
    return subprocess.Popen(
        [
            *(Path(sys.executable).with_name("reframe"), "-C", config, "-c", CHECKOUT / "checks"),
            *("-r", "--nocolor", "--prgenv=^mpich$", *options),
            *(f"--setvar={name}={value}" for name, value in settings.items()),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def test_site_init_finds_what_slurm_has(cluster, config):
    found = schedulers.detect()
    assert found.name == "squeue"  # it keeps no accounts
    (partition,) = found.partitions()
    assert partition == Partition("cpu", cluster.nodes, Shape(cluster.cpus, 1, 1))
    assert doctor.missing(examine(config)) == []


def test_reframe_measures_through_squeue(config):
    running = reframe(config, "--name=^discovery%scale=1_node%pattern=random", campaign="box")
    said, _ = running.communicate(timeout=300)
    assert running.returncode == 0, said
    assert "Ran 2/2 test case(s)" in said
    raw_files = rawfiles.of_campaign("box")
    assert len(raw_files) == 2
    assert '"box:cpu"' in raw_files[0].read_text()


def test_a_job_cancelled_in_its_first_launch_fails_and_keeps_nothing(config):
    long = {"launches": "6", "budget_s": "20", "sizes": "8:1M:x2"}
    name = "--name=^discovery%scale=1_node%pattern=random"
    running = reframe(config, name, campaign="cut", **long)
    deadline = time.monotonic() + 200
    while not jobs_running() and running.poll() is None and time.monotonic() < deadline:
        time.sleep(0.5)
    time.sleep(3)  # into the first launch
    subprocess.run(["scancel", "--user", str(os.getuid())], check=True)
    said, _ = running.communicate(timeout=100)
    assert running.returncode != 0, said
    assert "FAIL" in said
    assert rawfiles.of_campaign("cut") == []


def jobs_running() -> bool:
    command = ["squeue", "--noheader", "--states=running"]
    return bool(subprocess.run(command, capture_output=True, text=True).stdout.strip())
