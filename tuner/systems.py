"""The systems that this machine serves, by ReFrame's names: itself, virtual nodes, simulations."""

from __future__ import annotations

from pathlib import Path

from tuner import mpi as this_machine
from tuner.mpi import Launch, Mpi
from tuner.nodes import launch as virtual
from tuner.nodes.namespaces import meant
from tuner.simulation import launch as simulated
from tuner.simulation import machines

THIS_MACHINE = {"local", virtual.SYSTEM}  # of checks/config/local.py and nodes.py


def launch_on(
    system: str, mpi: Mpi, procs: int, ppn: int, build: Path | None = None, operation: str = ""
) -> Launch:
    """How to start ranks on one of ReFrame's systems, to measure an operation.

    Raises:
        NodesError: the virtual nodes are not up, or cannot take the ranks.
        NetworkError: there is no such simulated machine.
        ValueError: `procs` is less than 1, or more than a simulated machine has room for.
    """
    name, _, partition = system.partition(":")
    if name == virtual.SYSTEM:
        return virtual.launch(meant(), mpi, procs, ppn, build)
    if name == machines.SYSTEM:
        return simulated.launch(machines.machine(partition), mpi, procs, ppn, operation)
    return this_machine.launch(mpi, procs, build=build)
