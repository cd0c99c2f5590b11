"""Launches of ranks on a simulated machine."""

from pathlib import Path

import templates
from tuner import atomic
from tuner.domain.operations import COLLECTIVES
from tuner.machine.directories import build_root
from tuner.machine.mpi import LaunchCommand, Mpi, identify
from tuner.machine.simulation.machines import CORES, Machine

TOOLCHAIN = "simgrid.cmake"  # of the kernels, for CMake

# Settings for what SMPI leaves out by default, or does in ways that take long to compute. Where
# no collective is measured, collectives only keep books: a reduction and a broadcast have the
# fewest messages.
_SETTINGS = {
    "network/model": "SMPI",
    "network/crosstraffic": "no",
    "smpi/simulate-computation": "no",
    "smpi/wtime": "0",
    "smpi/test": "0",
    "smpi/iprobe": "2e-7",
    "smpi/grow-injected-times": "no",
    "smpi/coll-selector": "ompi",
    "smpi/allreduce": "redbcast",
    "smpi/reduce": "binomial",
    "smpi/bcast": "binomial_tree",
    "contexts/stack-size": "256",
}

_HEADER_BYTES = 16  # that SMPI adds to each message on the network

NO_SIMGRID = "no smpicc with its smpirun on PATH: install SimGrid (Debian: libsimgrid-dev)"


def find_simgrid() -> Mpi | None:
    """Return the MPI that simulates, None if SimGrid is not installed."""
    return identify("smpicc", "smpirun")


def launch(machine: Machine, mpi: Mpi, procs: int, ppn: int, operation: str = "") -> LaunchCommand:
    """Return how to simulate `procs` ranks, `ppn` on each node beginning with the first.

    `operation` is the measured operation, which determines SMPI's algorithms for collectives. The
    launcher exits with success even where all ranks wait for ever or one aborts: only the closing
    record of a raw file counts.

    Raises:
        NetworkError: the machine has no room for the ranks.
    """
    machine.require_room(procs, ppn)
    platform, hosts = _write(machine, ppn)
    options = [f"--cfg={name}:{value}" for name, value in settings(machine, mpi, operation).items()]
    files = ["-platform", str(platform), "-hostfile", str(hosts)]
    return LaunchCommand(
        [mpi.mpiexec, *files, *options, "--log=root.thresh:warning", "-np", str(procs)]
    )


def settings(machine: Machine, mpi: Mpi, operation: str = "") -> dict[str, str]:
    """Return SMPI's settings, where factors by size turn the link's values into a protocol's."""
    network = machine.network

    def by_size(values: list[str], header_bytes: int = 0) -> str:
        """Return a list of values; each holds for messages larger than the number before it."""
        ends = [max(each.from_bytes + header_bytes - 1, 0) for each in network.protocols]
        return ";".join(f"{end}:{value}" for end, value in zip(ends, values, strict=True))

    overhead = by_size([f"{each.overhead_s:g}:0" for each in network.protocols])
    if mpi.major > 3 and len(network.protocols) == 1:
        # From a list, empty messages would have none. SimGrid 3 reads only lists.
        overhead = f"{network.protocols[0].overhead_s:g}"
    factors = {
        "smpi/lat-factor": by_size(
            [f"{each:g}" for each in network.latency_factors], _HEADER_BYTES
        ),
        "smpi/bw-factor": by_size([f"{each:g}" for each in network.rate_factors], _HEADER_BYTES),
    }
    measured = {"smpi/allreduce": "rdb"} if operation in COLLECTIVES else {}
    if operation == "allreduce":  # a step of it has blocks of 0 items, which SMPI's halving spoils
        measured["smpi/reduce_scatter"] = "ompi_butterfly"
    return (
        _SETTINGS | measured | factors | {f"smpi/{what}": overhead for what in ("os", "ois", "or")}
    )


def _write(machine: Machine, ppn: int) -> tuple[Path, Path]:
    """Write the platform and host files of a machine below `build_root`, and return them."""
    directory = build_root() / "simulated"
    platform = directory / f"{machine.name}.xml"
    hosts = directory / f"{machine.name}-{ppn}.hosts"
    for path, text in (
        (platform, _platform(machine)),
        (hosts, "".join(f"node{number}:{ppn}\n" for number in range(machine.nodes))),
    ):
        if not path.is_file() or path.read_bytes() != text.encode():
            atomic.write(path, text)  # concurrent launches read whole files only
    return platform, hosts


def _platform(machine: Machine) -> str:
    kind, parameters = machine.topology.simgrid
    network = machine.network
    return templates.render(
        "platform.xml.j2",
        name=machine.name,
        nodes=machine.nodes,
        cores=CORES,
        kind=kind,
        parameters=parameters,
        link_bytes_per_s=f"{network.link_bytes_per_s:g}",
        link_latency_s=f"{machine.link_latency_s:.6g}",
        loopback_bytes_per_s=f"{network.on_node_bytes_per_s / max(network.rate_factors):g}",
        loopback_latency_s=f"{network.on_node_latency_s:g}",
    )
