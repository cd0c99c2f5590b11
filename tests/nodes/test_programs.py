"""MPI programs on virtual nodes: traffic goes where it should, and the kernels work."""

import json
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from pyamg.gallery import poisson
from scipy.io import mmwrite

from tests.conftest import by_day
from tests.kernels.conftest import MPIS, Kernels
from tests.processes import TIMEOUT_S
from tuner.cli import main
from tuner.machine.mpi import Mpi, available_cores, find_mpis
from tuner.machine.nodes import namespaces
from tuner.machine.nodes.launch import VIRTUAL_NODES, launch
from tuner.machine.nodes.namespaces import SET_VARIABLE, UNLIMITED, Nodes, NodesError
from tuner.machine.nodes.traffic import traffic
from tuner.machine.systems import launch_on
from tuner.paths import CHECKOUT

PAYLOAD_BYTES = 16 << 20
# Start and end of a program: launcher, addresses, output. Far below the payload.
CONTROL_BYTES = 1 << 20
FRAMES_BYTES = 1 << 10  # of asking for addresses and answering

# Every rank sends to the rank whose number differs by the argument: on two nodes with two ranks
# each the partner is on the same node for 1, on the other for 2. Small and large messages, because
# libraries send them in different ways.
PARTNERS = """
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
enum { LARGE = 1 << 20, SMALL = 1 << 10 };
static char out[LARGE], in[LARGE];
static void swap(int bytes, int count, int partner) {
  for (int i = 0; i < count; i++)
    MPI_Sendrecv(out, bytes, MPI_BYTE, partner, 0, in, bytes, MPI_BYTE, partner, 0, MPI_COMM_WORLD,
                 MPI_STATUS_IGNORE);
}
int main(int argc, char **argv) {
  int rank, on_node;
  MPI_Comm node;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
  MPI_Comm_size(node, &on_node);
  swap(SMALL, 8 << 10, rank ^ atoi(argv[1]));
  swap(LARGE, 8, rank ^ atoi(argv[1]));
  printf("ranks on the node of rank %d: %d\\n", rank, on_node);
  MPI_Comm_free(&node);
  MPI_Finalize();
  return 0;
}
"""


def run(
    nodes: Nodes, kernels: Kernels, procs: int, program: Path, *arguments: str, ppn: int = 2
) -> str:
    start = launch(nodes, kernels.mpi, procs, ppn, kernels.build)
    done = subprocess.run(
        [*start.argv_prefix, str(program), *arguments],
        env=os.environ | start.env,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout


@pytest.fixture
def partners(kernels: Kernels, tmp_path) -> Path:
    source = tmp_path / "partners.c"
    source.write_text(PARTNERS)
    program = tmp_path / "partners"
    subprocess.run([kernels.mpi.mpicc, str(source), "-o", str(program)], check=True)
    return program


def sent_bytes(nodes: Nodes, device: str) -> list[int]:
    return [count.sent_bytes for count in traffic(nodes, device)]


def tcp_segments(nodes: Nodes, host: str) -> int:
    """Return how many TCP segments a node has sent, retransmissions excluded."""
    command = [*nodes.on_node(host), "grep ^Tcp: /proc/net/snmp"]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    names, values = (line.split() for line in lines)
    return int(values[names.index("OutSegs")])


@pytest.mark.parametrize("kernels", by_day(MPIS, ["intelmpi"]), indirect=True)
@pytest.mark.parametrize(("distance", "crosses"), [(1, False), (2, True)])
def test_messages_between_nodes_cross_tcp_and_those_on_a_node_do_not(
    nodes, kernels, partners, distance, crosses
):
    """Two ranks on each of the first two nodes; each sends PAYLOAD_BYTES, so a node twice that."""
    before = {device: sent_bytes(nodes, device) for device in ("eth0", "lo")}
    segments = [tcp_segments(nodes, host) for host in nodes.hosts]
    printed = run(nodes, kernels, 4, partners, str(distance))
    sent = {
        device: [now - then for now, then in zip(sent_bytes(nodes, device), counts, strict=True)]
        for device, counts in before.items()
    }
    segments = [
        tcp_segments(nodes, host) - then for host, then in zip(nodes.hosts, segments, strict=True)
    ]

    assert printed.count(": 2\n") == 4
    assert segments[2:] == [0, 0]  # a late answer of ARP may be there
    assert max(sent["eth0"][2:]) < FRAMES_BYTES
    assert max(sent["lo"]) < CONTROL_BYTES
    if crosses:
        assert min(sent["eth0"][:2]) > 2 * PAYLOAD_BYTES
        assert segments[0] * (1 << 16) > 2 * PAYLOAD_BYTES  # a segment has at most 64 KiB
    else:
        assert max(sent["eth0"][:2]) < CONTROL_BYTES


@pytest.mark.parametrize(
    ("kernels", "procs"),
    by_day([pytest.param("openmpi", 4, marks=pytest.mark.check)], product(MPIS, [4, 8])),
    indirect=["kernels"],
)
def test_every_method_delivers_on_nodes_with_two_ranks(nodes, kernels, procs):
    for oracle in ("swp_oracle", "swp_collectives"):
        program = kernels.build / "tests" / oracle
        passed = rf": [1-9]\d* cases passed on {procs} ranks"
        assert re.search(passed, run(nodes, kernels, procs, program, "--brief"))


def measure(nodes: Nodes, kernels: Kernels, raw_file: Path) -> list[dict[str, Any]]:
    """Return the header and the one case of a launch with two ranks on each of four nodes."""
    options = [
        "--op",
        "exchange",
        "--pattern",
        "random:degree=3",
        "--methods",
        "direct",
        "--sizes",
        "8",
    ]
    options += ["--max-samples", "4", "--out", str(raw_file)]
    run(nodes, kernels, 8, kernels.build / "bench" / "swpbench", "run", *options)
    header, case, _ = map(json.loads, raw_file.read_text().splitlines())
    return [header, case]


def test_a_launch_reports_that_its_nodes_share_a_machine(nodes, kernels, tmp_path):
    header, _ = measure(nodes, kernels, tmp_path / "raw.jsonl")
    assert (header["procs"], header["nodes"], header["ppn"]) == (8, 4, 2)
    assert header["machines"] == 1
    assert header["sync"] == "window"
    assert header["hostnames"] == nodes.hosts
    assert header["oversubscribed"] == (available_cores() < 8)


def test_probes_between_nodes_take_each_number_of_pairs_once(nodes, any_kernels, tmp_path):
    """Five a node: a number of pairs that neither doubling nor half as many again ends at."""
    raw_file = tmp_path / "raw.jsonl"
    options = ["--sizes", "8", "--max-samples", "2", "--out", str(raw_file)]
    program = any_kernels.build / "bench" / "swpbench"
    run(nodes, any_kernels, 10, program, "probe", *options, ppn=5)
    records = [json.loads(line) for line in raw_file.read_text().splitlines()]
    pairs = [each["pairs"] for each in records if each.get("quantity") == "prtt"]
    assert sorted(each for each in pairs if each > 1) == [2, 3, 4, 5]


def test_a_study_of_partitions_runs_on_the_nodes(nodes, kernels, tmp_path, monkeypatch, require):
    require("pymetis", find_spec("pymetis") is not None, "this partitioner is not installed")
    monkeypatch.setenv(SET_VARIABLE, nodes.name)
    monkeypatch.setenv("SWITCHPOINT_KERNELS", str(kernels.build))
    monkeypatch.setenv("SWITCHPOINT_RESULTS", str(tmp_path / "results"))
    matrix = tmp_path / "mesh.mtx"
    mmwrite(matrix, poisson((20, 20)))
    options = ["--system", "nodes", "--procs", "6", "--launches", "2", "--budget", "0.5"]
    options += ["--methods", "direct", "--environment", kernels.mpi.name, "--json"]
    answer = CliRunner().invoke(main, ["study", "crossover", str(matrix), *options])
    assert answer.exit_code == 0, answer.output
    study = json.loads(answer.stdout)
    assert study["system"] == f"{VIRTUAL_NODES}:tcp-unlimited"
    assert (study["procs"], study["nodes"]) == (6, 3)


def test_several_machines_start_by_synchronised_clocks_or_barriers(set_name, kernels, tmp_path):
    """Each node takes itself for a machine of its own when it sees another boot id."""
    nodes = namespaces.up(set_name, 4, UNLIMITED)
    for host in nodes.hosts:
        (tmp_path / host).write_text(f"{host}\n")
        bind = f"mount --bind {tmp_path / host} /proc/sys/kernel/random/boot_id"
        subprocess.run([*nodes.on_node(host), bind], check=True)
    header, case = measure(nodes, kernels, tmp_path / "raw.jsonl")
    assert (header["nodes"], header["machines"]) == (4, 4)
    assert header["sync"] == ("barrier" if header.get("sync_fallback") else "hca")
    assert 0 < header["clock_error_s"] < 1
    assert 0 < header["crossing_s"] < 1
    assert 0 < case["clock_error_s"] < 1
    assert header["oversubscribed"] == (available_cores() < 2)
    assert all(skew >= 0 for skew in case["skew_s"])


def test_the_last_node_gets_the_ranks_that_are_left(nodes):
    mpi = Mpi("mpich", "mpich", "5.0", "mpicc", "mpiexec")
    assert "vnode0:2,vnode1:1" in launch(nodes, mpi, 3, 2).argv_prefix


def test_more_ranks_than_the_nodes_take_are_refused(nodes):
    mpi = Mpi("mpich", "mpich", "4.0", "mpicc", "mpiexec")
    with pytest.raises(NodesError, match="9 ranks, 2 on each node, need 5 nodes; 4 are up"):
        launch(nodes, mpi, 9, 2)
    with pytest.raises(NodesError, match=r"1 \+ 1 \+ 1 \+ 1 \+ 1 on the nodes, need 5 nodes"):
        launch(nodes, mpi, 5, [1] * 5)
    with pytest.raises(NodesError, match="at least 1"):
        launch(nodes, mpi, 1, 0)


def test_each_node_can_have_a_number_of_ranks_of_its_own(nodes, monkeypatch):
    mpi = Mpi("mpich", "mpich", "5.0", "mpicc", "mpiexec")
    assert "vnode0:3,vnode1:5" in launch(nodes, mpi, 8, (3, 5)).argv_prefix
    with pytest.raises(NodesError, match=r"7 ranks, but 3 \+ 5 on the nodes"):
        launch(nodes, mpi, 7, (3, 5))
    monkeypatch.setenv(SET_VARIABLE, nodes.name)
    monkeypatch.setattr("tuner.commands.nodes.mpis_named", lambda name: [mpi])
    started = []
    monkeypatch.setattr(os, "execvp", lambda file, command: started.extend(command))
    words = ["hostname", "-nox", "--ppn", "2"]  # the program's own options
    answer = CliRunner().invoke(main, ["nodes", "exec", "-n8", "--ppn=3,5", *words])
    assert answer.exit_code == 0, answer.output
    assert "vnode0:3,vnode1:5" in started
    assert started[-4:] == words


def test_other_systems_are_launched_as_ever():
    mpi = Mpi("mpich", "mpich", "5.0", "mpicc", "mpiexec")
    assert launch_on("local:cpu", mpi, 2, 1).argv_prefix == ["mpiexec", "-n", "2"]


def test_reframe_sees_the_nodes_as_a_system_of_their_own(nodes, tmp_path, require):
    require("mpi", bool(find_mpis()), "no MPI is installed")
    command = [sys.executable, "-m", "tuner.cli", "run", "--system", "nodes", "--dry-run", "--json"]
    command += ["--environment", find_mpis()[0].name]
    said = subprocess.run(
        command,
        cwd=CHECKOUT,
        env=os.environ | {SET_VARIABLE: nodes.name, "SWITCHPOINT_RESULTS": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    plan = json.loads(said)
    assert {case["system"] for case in plan["cases"]} == {f"{VIRTUAL_NODES}:tcp-unlimited"}
    wanted = {(case["operation"], case["scale"]) for case in plan["cases"]}
    for operation in ("exchange", "discovery", "bcast"):
        assert {(operation, "2_nodes"), (operation, "4_nodes")} <= wanted
    place = f"{VIRTUAL_NODES}:tcp-unlimited"
    assert plan["skipped"][f"8_nodes on {place}"] == "needs 8 nodes; the partition has 4"
    assert "oversubscribed" in plan["skipped"][f"1_node_oversubscribed on {place}"]


@pytest.mark.parametrize(
    ("launches", "checks"),
    by_day(
        [pytest.param("3", "discovery.*=2_nodes.*random", marks=pytest.mark.check)],
        [("12", "discovery")],
    ),
)
def test_a_campaign_runs_on_nodes_of_its_own_and_ends_them(
    nodes, tmp_path, monkeypatch, launches, checks
):
    monkeypatch.setenv(SET_VARIABLE, f"campaign-{os.getpid()}")
    monkeypatch.setenv("SWITCHPOINT_RESULTS", str(tmp_path))
    command = [sys.executable, "-m", "tuner.cli", "run", "--system", "nodes", "--minutes", "2"]
    command += [
        "--launches",
        launches,
        "--",
        f"--name={checks}",
        f"--prefix={tmp_path / 'reframe'}",
    ]
    said = subprocess.run(
        command, cwd=CHECKOUT, check=True, stdout=subprocess.PIPE, text=True
    ).stdout
    (table,) = tmp_path.glob(f"{VIRTUAL_NODES}-tcp-1gbit-*/switchpoint.table")
    assert "rule op=discovery" in table.read_text()

    # What it printed to try the table serves nodes made later as well.
    assert "`switchpoint nodes up` starts others" in said
    (again,) = re.findall(r"^SWITCHPOINT_TABLE=.* nodes exec .*", said, re.MULTILINE)
    monkeypatch.setenv(SET_VARIABLE, nodes.name)
    subprocess.run(again, shell=True, check=True)
