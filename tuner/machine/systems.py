"""Systems by ReFrame's names: those of this machine, and where others were measured."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from tuner.domain.cases import NodeCores
from tuner.domain.operations import known_cores
from tuner.errors import SwitchpointError
from tuner.files import read_json
from tuner.machine import mpi as this_machine
from tuner.machine.directories import installation_directory
from tuner.machine.mpi import LaunchCommand, Mpi, available_cores, find_mpis, mpi_of
from tuner.machine.nodes import launch as virtual
from tuner.machine.nodes.namespaces import meant
from tuner.machine.simulation import launch as simulated
from tuner.machine.simulation import machines
from tuner.paths import CHECKOUT, results_directory

if TYPE_CHECKING:
    import pandas as pd

LOCAL = "local:cpu"
"""This machine itself."""

THIS_MACHINE = {"local", virtual.VIRTUAL_NODES}  # of checks/config/local.py and nodes.py

SIMULATED, VIRTUAL = "simulated", "virtual nodes"


def unreal(name: str, cpu_model: str) -> str:
    """Return SIMULATED or VIRTUAL for a system that is not a real machine, else ""."""
    if cpu_model == "simulated":
        return SIMULATED
    return VIRTUAL if "+" in name or name.startswith(f"{virtual.VIRTUAL_NODES}:") else ""


def is_here(system: str) -> bool:
    """Return whether ranks of one of ReFrame's systems start on this machine.

    So do those of results that have a name of their own, which has no partition.
    """
    name, of_reframe, _ = system.partition(":")
    return not of_reframe or name in {*THIS_MACHINE, machines.SIMULATED_MACHINES}


def is_one_machine(system: str, nodes: Iterable[int]) -> bool:
    """Return whether a system, by ReFrame's name, has one node; `nodes` are those of its layouts.

    A name of its own may also stand for a partition of a site, whose layouts then show it.
    """
    return system == LOCAL or (":" not in system and all(number == 1 for number in nodes))


def processor() -> str:
    """Return the model of this machine's processor, as raw files name it."""
    model = ""
    with suppress(OSError):
        found = re.search(r"^model name\s*:(.*)", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
        model = " ".join(found[1].split()) if found else ""
    return model or os.uname().machine


def other_machine(name: str, cpu_model: str, cores: int, *, or_whole: bool = False) -> str:
    """Return which machine a system of "this machine" was recorded on, "" where it is this one.

    Homes and results are shared between machines. Launches of a job that has a part of a machine's
    cores record these; with `or_whole`, results of all cores are this machine's too.
    """
    here = {available_cores(), os.cpu_count() if or_whole else None}
    if (cpu_model == processor() and cores in here) or name.partition(":")[0] not in THIS_MACHINE:
        return ""
    return f"{cpu_model}, {cores} cores"


def of_this_machine(
    systems: pd.DataFrame, *, or_whole: bool = False, partition: str = ""
) -> pd.DataFrame:
    """Return the systems of a store that are not of another machine: see `other_machine`.

    partition: ReFrame's name of those that have a name of their own, where it is known.
    """
    its = zip(systems["name"], systems["cpu_model"], systems["cores"], strict=True)
    here = [not other_machine(partition or name, *each, or_whole=or_whole) for name, *each in its]
    return systems.loc[here]  # [[]] would name columns


PLAN_FILES, FIXED_FILES = ("plans", ".json"), ("logs", ".order.json")
"""Directory among the results, and end of the name, of the orders of both kinds of campaigns."""


class _Case(msgspec.Struct):
    system: str


class _Call(msgspec.Struct):
    config: str = ""
    variables: dict[str, str] = {}


class _Order(_Call):
    """What a plan has itself and other orders have in their call."""

    cases: list[_Case] = []
    request: _Call | None = None
    systems: list[str] = []


class Place(NamedTuple):
    """ReFrame's name of a system, and the configuration with which it was measured last, if known.

    Neither may be in what others see of a system with a name of its own.
    """

    name: str
    config: Path | None = None


def measured_as(name: str) -> Place:
    """Return where a system was measured; its name as it is where no order has that."""
    if ":" in name:
        return Place(name)
    own, _, _ = name.partition("+")  # virtual nodes add how ranks lie
    paths = [
        path
        for directory, suffix in (PLAN_FILES, FIXED_FILES)
        for path in (results_directory() / directory).glob(f"*{suffix}")
    ]
    for path in sorted(paths, key=lambda path: path.name, reverse=True):
        with suppress(OSError, ValueError):
            order = read_json(path, _Order)
            call = order.request or order
            systems = order.systems or [case.system for case in order.cases]
            if call.variables.get("system_name") == own and systems:
                return Place(systems[0], Path(call.config))
    return Place(name)


def node_cores(name: str, cpu_model: str, cores: int) -> NodeCores:
    """Return the `cores` that are stored for a system, and whether its nodes share them.

    Virtual nodes do. A name of their own says so itself, where ranks were placed, or by where they
    were measured.
    """
    shared = VIRTUAL in (unreal(name, cpu_model), unreal(measured_as(name).name, cpu_model))
    return NodeCores(known_cores(name, cores), shared)


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


def configuration(site: str) -> Path:
    """Return where `switchpoint site init` writes the configuration of a site, if it is there."""
    path = CHECKOUT / "checks" / "config" / f"{site}.py"
    return path if path.is_file() else Path(f"{site}.py")


def site_option(system: str) -> str:
    """Return the option that names the configuration of a site's system, "" for this machine's."""
    if is_here(system):
        return ""
    return f" --config {quote(str(configuration(system.partition(':')[0])))}"


def kernels(*places: tuple[str, str], family: str = "") -> BuiltKernels:
    """Return the kernels that campaigns use in the first place that has them.

    A place is a system with an environment, "" for any; where SWITCHPOINT_KERNELS is set, all have
    what it names. The kernels are those of an MPI that is found here, of that family if it is not
    "". The environment of a site may have a name of its own: its MPI is then the one that its
    kernels are linked with.

    Raises:
        KernelsError: no place has any.
    """
    named, searched = named_kernels(), dict[Path, None]()
    mpis: dict[str, Mpi] = {}
    of_other: Path | None = None
    for system, environment in places:
        is_simulated = system.partition(":")[0] == machines.SIMULATED_MACHINES
        found = filter(None, [simulated.find_simgrid()]) if is_simulated else find_mpis()
        mpis = {mpi.name: mpi for mpi in found}
        names = [environment] if environment in mpis or not is_here(system) else []
        for name in names if environment else mpis:
            for root in [named] if named else _installations(system, name):
                searched[root] = None
                program = program_in(root)
                mpi = program and (mpis.get(name) or mpi_of(str(program), [*mpis.values()]))
                if program and mpi and family in ("", mpi.family):
                    return BuiltKernels(replace(mpi, name=name), root, program)
                of_other = of_other or (None if mpi else program)
    system, environment = places[0]
    there = ", ".join(mpis) or "none"
    if environment and not searched:
        raise KernelsError(f"no environment {environment} here; there are: {there}")
    if of_other:
        raise KernelsError(
            f"{of_other} is of an MPI that is not found here; there are: {there}; load its "
            "modules, so that its mpicc and mpiexec are on PATH"
        )
    raise KernelsError(
        f"no built swpbench{' for ' * bool(environment)}{environment}"
        f"{' in ' * bool(searched)}{', '.join(map(str, searched))}; run `switchpoint run"
        f"{site_option(system)}` to build the kernels, or set SWITCHPOINT_KERNELS to a build or "
        "installation"
    )


def _installations(system: str, environment: str) -> list[Path]:
    """Return where campaigns of a system install the kernels for an environment.

    Those of this machine serve its virtual nodes too.
    """
    kind = system.partition(":")[0]
    known = {machines.SIMULATED_MACHINES: [system], virtual.VIRTUAL_NODES: [system, LOCAL]}
    systems = known.get(kind, [LOCAL] if is_here(system) else [system])
    return [installation_directory(each, environment) for each in systems]


def launch_on(
    system: str,
    mpi: Mpi,
    procs: int,
    ppn: int,
    build: Path | None = None,
    operation: str = "",
    cores: int | None = None,
) -> LaunchCommand:
    """Return how to start ranks on one of ReFrame's systems, to measure an operation.

    `cores` are those of all nodes of a job together; this machine's need not be given.

    Raises:
        NodesError: the virtual nodes are not up, or cannot hold the ranks.
        ValueError: `procs` is less than 1.
        NetworkError: no such simulated machine, or it has no room for the ranks.
    """
    name, _, partition = system.partition(":")
    if name == virtual.VIRTUAL_NODES:
        return virtual.launch(meant(), mpi, procs, ppn, build)
    if name == machines.SIMULATED_MACHINES:
        return simulated.launch(machines.machine(partition), mpi, procs, ppn, operation)
    return this_machine.launch(mpi, procs, cores, build)
