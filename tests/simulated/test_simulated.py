"""Simulated machines: the same numbers at every run, and no success where nothing ended."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import by_day
from tests.processes import TIMEOUT_S
from tuner.campaign import reframe
from tuner.campaign.reframe import Call, DispatchError
from tuner.domain.operations import COLLECTIVES, sizes_for
from tuner.inputs.structure.patterns import pattern
from tuner.machine.mpi import Mpi
from tuner.machine.simulation import launch as simulated
from tuner.machine.simulation import networks
from tuner.machine.simulation.machines import (
    CORES,
    DEFAULT,
    SIMULATED_MACHINES,
    VARIABLE,
    Machine,
    machine,
)
from tuner.machine.simulation.networks import NetworkError
from tuner.machine.systems import launch_on
from tuner.models import predict
from tuner.models.costs import costs
from tuner.models.networks import as_model
from tuner.paths import CHECKOUT
from tuner.rawfile.reading import read

TORUS = machine("torus-4x4x2")
CONFIG = CHECKOUT / "checks" / "config" / "simulated.py"
SENDER_ONLY = """
#include <mpi.h>
int main(int argc, char **argv) {
  MPI_Init(&argc, &argv);
  MPI_Recv(NULL, 0, MPI_BYTE, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Finalize();
  return 0;
}
"""
ABORTING = SENDER_ONLY.replace(
    "MPI_Recv(NULL, 0, MPI_BYTE, MPI_ANY_SOURCE, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE)",
    "MPI_Abort(MPI_COMM_WORLD, 1)",
)


def measure(
    simgrid: Mpi,
    swpbench: Path,
    procs: int,
    out: Path,
    *options: str,
    on: Machine = TORUS,
    timeout_s: float = TIMEOUT_S,
    ppn: int = CORES,
    operation: str = "",
) -> str:
    start = simulated.launch(on, simgrid, procs, ppn, operation)
    command = [*start.argv_prefix, str(swpbench), "run", *options, "--out", str(out)]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=timeout_s, cwd=out.parent
    )
    assert "swpbench: payload ok" in done.stdout, done.stdout + done.stderr
    return out.read_text()


@pytest.mark.parametrize(
    ("name", "operation"),
    list(zip(DEFAULT.split(), ["exchange", "discovery", "exchange"], strict=True)),
)
def test_two_simulations_agree_to_the_digit(simgrid, swpbench, tmp_path, name, operation):
    options = ["--op", operation, "--pattern", "random:degree=6,seed=1", "--sizes", "4K"]
    first, second = (
        measure(simgrid, swpbench, 64, tmp_path / file, *options, on=machine(name)).splitlines()
        for file in "ab"
    )
    assert len(first) > 5
    assert first[1:] == second[1:]  # all but the header, which has date and identity
    assert {rank for line in first for rank in json.loads(line).get("late", [])} == {0}
    header = read(tmp_path / "a").header
    assert header is not None
    assert (header.nodes, header.ppn, header.cpu_model) == (4, 16, "simulated")
    assert header.hostnames == ["node0", "node1", "node2", "node3"]


def test_every_discovery_ends_on_one_node(simgrid, swpbench, tmp_path):
    options = ["--op", "discovery", "--pattern", "random:degree=3,seed=1", "--sizes", "8,64K"]
    text = measure(simgrid, swpbench, 8, tmp_path / "a", *options)
    assert {"pex", "pcx", "rsx"} <= {json.loads(line).get("method") for line in text.splitlines()}
    header = read(tmp_path / "a").header
    assert header is not None
    assert (header.ppn, header.cores) == (8, CORES)


@pytest.mark.parametrize("ppn", [1, 2])
def test_a_message_takes_what_its_protocol_says(simgrid, swpbench, tmp_path, ppn):
    """Between the two nodes of a machine, and on one, of the first and the last size of each."""
    its = machine("torus-2-bluewaters")
    sizes = [8, 512, 513, 8192, 8193, 1 << 20]
    options = ["--op", "exchange", "--pattern", "hub:hubs=1", "--methods", "direct"]
    options += ["--sizes", ",".join(map(str, sizes))]
    text = measure(simgrid, swpbench, 2, tmp_path / "a", *options, on=its, ppn=ppn)
    given = costs(as_model(its), on_node=ppn == 2)
    assert len(given.messages) == len(networks.network("bluewaters").protocols) == 3
    cases = [each for each in map(json.loads, text.splitlines()) if each["record"] == "case"]
    assert [case["size_bytes"] for case in cases] == sizes
    for size, case in zip(sizes, cases, strict=True):
        assert case["samples_s"][0] == pytest.approx(given.of(size).alone_s(size), rel=0.05)


@pytest.mark.parametrize("operation", COLLECTIVES)
def test_every_method_of_a_collective_is_right_on_several_nodes(
    simgrid, swpbench, tmp_path, operation
):
    size = sizes_for(operation, "8")
    options = ["--op", operation, "--pattern", "blocks", "--methods", "all", "--sizes", size]
    text = measure(simgrid, swpbench, 12, tmp_path / "a", *options, ppn=4, operation=operation)
    records = map(json.loads, text.splitlines())
    assert {its["method"] for its in records if its["record"] == "case"} > {"vendor"}


@pytest.mark.parametrize("procs", by_day([64], [4096]))
def test_thousands_of_ranks(simgrid, swpbench, tmp_path, procs):
    """SimGrid 3.32 computes for three minutes, 4.1 for half of that."""
    options = ["--op", "exchange", "--pattern", "random:degree=6,seed=1", "--sizes", "8"]
    machine_of_4096 = machine("torus-8x8x4-bluegenep")
    text = measure(
        *(simgrid, swpbench, procs, tmp_path / "a", *options, "--methods", "direct"),
        on=machine_of_4096,
        timeout_s=3600,
    )
    (case,) = (each for each in map(json.loads, text.splitlines()) if each["record"] == "case")
    model = as_model(machine_of_4096)
    times = predict.of_exchange(model, pattern(options[3], procs), CORES, ["direct"]).times(8)
    assert case["samples_s"] == pytest.approx([times["direct"]], rel=0.3)


def test_what_does_not_fit_is_refused(simgrid):
    with pytest.raises(NetworkError, match="torus-4x4x2 has no room for 513 processes"):
        simulated.launch(TORUS, simgrid, 513, 16)


def test_probes_are_not_simulated(simgrid):
    """They would not end: their clock stands still."""
    with pytest.raises(DispatchError, match="no check matches --tag=parameters"):
        reframe.dry_run(Call(CONFIG, ["--tag=parameters"], {}))


@pytest.mark.usefixtures("simgrid")
def test_machines_are_configured_by_a_variable(monkeypatch):
    monkeypatch.setenv(VARIABLE, "dragonfly-8x1x8x1-aries")
    planned = reframe.dry_run(Call(CONFIG, ["--name=exchange.*=32_nodes.*=random"], {}))
    assert {job.system for job in planned.jobs} == {"simulated:dragonfly-8x1x8x1-aries"}
    assert {(job.procs, job.ppn) for job in planned.wanted} == {(512, 16)}


def test_a_machine_is_known_by_its_name(tmp_path, monkeypatch):
    monkeypatch.setattr(simulated, "build_root", lambda: tmp_path)
    mpi = Mpi("simgrid", "simgrid", "3", "smpicc", "smpirun")
    launch_on(TORUS.system, mpi, 32, 16)
    for path in (tmp_path / "simulated").iterdir():
        path.write_bytes(b"\xff")
    launch_on(TORUS.system, mpi, 32, 16)
    written = sorted(path.name for path in (tmp_path / "simulated").iterdir())
    assert written == ["torus-4x4x2-16.hosts", "torus-4x4x2.xml"]
    assert b"\xff" not in (tmp_path / "simulated" / written[1]).read_bytes()
    for other in ("cube-9x9x9", "torus-4x4x\u0662"):
        with pytest.raises(NetworkError, match=f"no simulated machine '{other}'; write torus"):
            launch_on(f"{SIMULATED_MACHINES}:{other}", mpi, 32, 16)


@pytest.mark.parametrize(
    "sources",
    by_day([pytest.param([SENDER_ONLY], marks=pytest.mark.check)], [[SENDER_ONLY, ABORTING]]),
    ids=["one", "both"],
)
def test_a_deadlock_or_an_abort_is_a_failure_and_a_campaign_is_kept(
    simgrid, tmp_path, monkeypatch, sources
):
    """The simulator ends with success in all three cases."""
    monkeypatch.setenv("SWITCHPOINT_RESULTS", str(tmp_path / "results"))
    monkeypatch.setenv(VARIABLE, TORUS.name)
    selection = ["--name=exchange.*=4_nodes.*=random"]
    selection.append(f"--prefix={tmp_path / 'reframe'}")

    def run(**variables: str) -> list[str]:
        call = Call(CONFIG, selection, {"launches": "1", **variables})
        planned = reframe.dry_run(call)
        return reframe.run(call, planned, tmp_path / "log", lambda: None).failures

    assert run(sizes="8,1K") == []
    (kept,) = (tmp_path / "results").glob("simulated-torus-4x4x2-*/*/*.jsonl")
    header = read(kept).header
    assert header is not None and header.procs == 64
    for source in sources:
        (tmp_path / "wrong.c").write_text(source)
        program = tmp_path / "wrong"
        subprocess.run(["smpicc", str(tmp_path / "wrong.c"), "-o", str(program)], check=True)
        (failure,) = run(swpbench=str(program))
        assert "payload verified in 0 of 1 launches" in failure


def test_without_simgrid_the_system_says_what_is_missing():
    command = [sys.executable, "-c", f"import runpy; runpy.run_path({str(CONFIG)!r})"]
    done = subprocess.run(
        command,
        env={"PATH": "/nowhere", "PYTHONPATH": str(CHECKOUT)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert "install SimGrid" in done.stderr
