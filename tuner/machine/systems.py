"""The systems of this machine by ReFrame's names: itself, virtual nodes, simulations."""

import os
from dataclasses import dataclass
from pathlib import Path

from tuner.errors import SwitchpointError
from tuner.machine import mpi as this_machine
from tuner.machine.mpi import LaunchCommand, Mpi, find_mpis, identify, installation_directory
from tuner.machine.nodes import launch as virtual
from tuner.machine.nodes.namespaces import meant
from tuner.machine.simulation import launch as simulated
from tuner.machine.simulation import machines

LOCAL = "local:cpu"
"""This machine itself."""

THIS_MACHINE = {"local", virtual.SYSTEM}  # of checks/config/local.py and nodes.py

SIMULATED, VIRTUAL = "simulated", "virtual nodes"


def unreal(name: str, cpu_model: str) -> str:
    """Return SIMULATED or VIRTUAL for a system that is not a real machine, else ""."""
    if cpu_model == "simulated":
        return SIMULATED
    return VIRTUAL if "+" in name or name.startswith(f"{virtual.SYSTEM}:") else ""


def is_here(system: str) -> bool:
    """Return whether ranks of one of ReFrame's systems start on this machine.

    So do those of results that have a name of their own, which has no partition.
    """
    name, of_reframe, _ = system.partition(":")
    return not of_reframe or name in {*THIS_MACHINE, machines.SYSTEM}


class KernelsError(SwitchpointError):
    """Error raised when there are no built kernels; the message names the MPI."""


@dataclass(frozen=True, slots=True)
class BuiltKernels:
    """The kernels as built for an MPI: their directory, and their benchmark program."""

    mpi: Mpi
    root: Path
    swpbench: Path


def named_kernels() -> Path | None:
    """Return the build or installation that SWITCHPOINT_KERNELS names."""
    named = os.environ.get("SWITCHPOINT_KERNELS")
    return Path(named).absolute() if named else None


def program_in(root: Path, name: str = "swpbench") -> Path | None:
    """Return a program of a build or an installation."""
    paths = [root / place / name for place in ("bench", "examples", "bin")]
    return next((path for path in paths if path.is_file() and os.access(path, os.X_OK)), None)


def kernels(system: str, environment: str) -> BuiltKernels:
    """Return the kernels that campaigns of a system use, or that SWITCHPOINT_KERNELS names.

    Those of this machine serve its virtual nodes too. An empty `environment` stands for any. Raise
    KernelsError.
    """
    kind = system.partition(":")[0]
    known = {machines.SYSTEM: [system], virtual.SYSTEM: [system, LOCAL]}
    systems = known.get(kind, [LOCAL])  # also where results have another name
    named = named_kernels()
    for mpi in [identify("smpicc", "smpirun")] if kind == machines.SYSTEM else find_mpis():
        if mpi is None or environment not in ("", mpi.name):
            continue
        built = [installation_directory(each, mpi.name) for each in systems]
        for root in [named] if named else built:
            if program := program_in(root):
                return BuiltKernels(mpi, root, program)
    raise KernelsError(
        f"no built swpbench{' for ' if environment else ''}{environment}; run `switchpoint run` "
        "to build the kernels, or set SWITCHPOINT_KERNELS to a build or installation"
    )


def launch_on(
    system: str, mpi: Mpi, procs: int, ppn: int, build: Path | None = None, operation: str = ""
) -> LaunchCommand:
    """Return how to start ranks on one of ReFrame's systems, to measure an operation.

    Raises:
        NodesError: the virtual nodes are not up, or cannot hold the ranks.
        ValueError: `procs` is less than 1.
        NetworkError: no such simulated machine, or it has no room for the ranks.
    """
    name, _, partition = system.partition(":")
    if name == virtual.SYSTEM:
        return virtual.launch(meant(), mpi, procs, ppn, build)
    if name == machines.SYSTEM:
        return simulated.launch(machines.machine(partition), mpi, procs, ppn, operation)
    return this_machine.launch(mpi, procs, build=build)
