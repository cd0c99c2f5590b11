"""Launches of MPI programs on virtual nodes: the launcher beside the switch, the ranks on nodes."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from tuner.machine import mpi as this_machine
from tuner.machine.mpi import LaunchCommand, Mpi
from tuner.machine.nodes.namespaces import Nodes, NodesError, find, name_meant

# The name that ReFrame gives systems of virtual nodes.
VIRTUAL_NODES = "virtual-nodes"

# Inter-node messages go by TCP over the nodes' cables, others by shared memory; windows use
# messages, which Debian switches off.
_OPEN_MPI = {"pml": "ob1", "btl_tcp_if_include": "eth0"}
_OPEN_MPI_4 = _OPEN_MPI | {
    "btl": "tcp,self,vader",
    "oob_tcp_if_include": "switch0,eth0",
    "osc": "sm,pt2pt",
}
_OPEN_MPI_5 = _OPEN_MPI | {"btl": "tcp,self,sm"}
_INTEL_MPI = {"I_MPI_FABRICS": "shm:ofi", "FI_PROVIDER": "tcp"}


def count(systems: Iterable[str]) -> int:
    """Return how many virtual nodes are up, 0 if none or none of ReFrame's systems is of them."""
    is_virtual = any(system.startswith(f"{VIRTUAL_NODES}:") for system in systems)
    nodes = find(name_meant()) if is_virtual else None
    return nodes.count if nodes else 0


def launch(
    nodes: Nodes, mpi: Mpi, procs: int, ppn: int | Sequence[int], build: Path | None = None
) -> LaunchCommand:
    """Return how to start `procs` ranks on nodes, beginning with the first.

    `ppn` are the ranks on each node, where the last gets what is left, or those of each in turn.

    The rest is as on this machine, whose cores all nodes share: see tuner.machine.mpi.launch.

    Raises:
        NodesError: the nodes do not suffice, or this MPI cannot be started on them.
        ValueError: `procs` is less than 1.
    """
    start = this_machine.launch(mpi, procs, build=build, over_tcp=True)
    launcher, *options = start.argv_prefix
    agent, hosts = str(nodes.directory / "rsh"), _hosts(nodes, procs, ppn)
    if mpi.family in ("mpich", "intelmpi"):
        remote = ["-launcher", "rsh", "-launcher-exec", agent, "-iface", "switch0", "-hosts", hosts]
    elif mpi.family == "openmpi":
        remote = ["--host", hosts, *_parameters(mpi.major, nodes)]
        if "--allow-run-as-root" not in options:  # who is not root outside is root inside
            remote.append("--allow-run-as-root")
    else:
        raise NodesError(f"{mpi}: virtual nodes need MPICH, Open MPI or Intel MPI")
    if mpi.family == "intelmpi":
        start = replace(start, env=start.env | _INTEL_MPI)
    return replace(start, argv_prefix=[*nodes.beside_switch(), launcher, *remote, *options])


def _parameters(major: int, nodes: Nodes) -> Iterator[str]:
    """Yield the options of Open MPI 4's launcher, or of 5's, that set the library's parameters."""
    agent = str(nodes.directory / "rsh")
    if major == 4:
        of_runtime, of_library = {}, _OPEN_MPI_4 | {"plm_rsh_agent": agent}
    else:
        # They name files by their process number, which is the same on several nodes.
        of_runtime = {
            "plm_ssh_agent": agent,
            "prte_local_tmpdir_base": str(nodes.directory),
            "prte_remote_tmpdir_base": "/dev/shm",  # noqa: S108 (each node has its own)
        }
        of_library = _OPEN_MPI_5
    for option, parameters in (("--prtemca", of_runtime), ("--mca", of_library)):
        for name, value in parameters.items():
            yield from (option, name, value)


def _hosts(nodes: Nodes, procs: int, ppn: int | Sequence[int]) -> str:
    """Return the nodes and how many ranks each gets, in the form that launchers take."""
    if isinstance(ppn, int):
        ranks: Sequence[int] = [min(ppn, procs - first) for first in range(0, procs, max(ppn, 1))]
        shape = f"{ppn} on each node"
    else:
        ranks, shape = ppn, f"{' + '.join(map(str, ppn))} on the nodes"
    if min(ranks, default=0) < 1:
        raise NodesError(f"{procs} ranks, {shape}: at least 1 is needed on each")
    if sum(ranks) != procs:
        raise NodesError(f"{procs} ranks, but {shape}")
    if len(ranks) > nodes.count:
        raise NodesError(f"{procs} ranks, {shape}, need {len(ranks)} nodes; {nodes.count} are up")
    return ",".join(f"{host}:{count}" for host, count in zip(nodes.hosts, ranks, strict=False))
