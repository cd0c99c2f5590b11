"""A site's configuration: what it names, and its checks for `switchpoint doctor --config`."""

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from tuner.campaign import reframe
from tuner.campaign.reframe import Call, DispatchError
from tuner.errors import SwitchpointError
from tuner.machine.directories import python_path
from tuner.machine.doctor import Prerequisite
from tuner.machine.mpi import identify, is_of
from tuner.machine.processes import answer
from tuner.machine.sites.environments import OF_MPIS
from tuner.machine.sites.schedulers import SCHEDULERS


class ConfigurationError(SwitchpointError):
    """Error raised when a configuration cannot be read; the message says why."""


_OURS = ".py"  # ReFrame alone reads others
_READ_S = 60.0  # of the configuration, a program that may ask anything
_PLAN_S = 120.0  # of ReFrame's dry run, which takes a few seconds

# What a site's file prints goes to neither of our streams.
_READ = """\
import json, runpy, sys
content = runpy.run_path(sys.argv[1])["site_configuration"]
json.dump(content, open(sys.argv[2], "w"), default=str)
"""


class _Processor(msgspec.Struct):
    num_cpus: int = 0
    num_cpus_per_core: int = 1


class _Partition(msgspec.Struct):
    name: str = ""
    scheduler: str = ""
    launcher: str = ""
    processor: _Processor = msgspec.field(default_factory=_Processor)
    environs: list[str] = []
    features: list[str] = []


class _System(msgspec.Struct):
    name: str
    partitions: list[_Partition] = []


class _Extras(msgspec.Struct):
    mpiexec: str = ""


class _Environment(msgspec.Struct):
    name: str
    cc: str = "cc"
    modules: list[Any] = []
    features: list[str] = []
    extras: _Extras = msgspec.field(default_factory=_Extras)


class _Configuration(msgspec.Struct):
    """What is examined of a configuration."""

    systems: list[_System]
    environments: list[_Environment]
    general: list[dict[str, Any]] = []


def examine_site(
    config: Path, say: Callable[[str], None] = lambda text: None
) -> list[Prerequisite]:
    """Return the parts of a configuration, and how many checks ReFrame would run with it.

    Of a configuration that ReFrame alone reads, return the checks alone. `say` is called with what
    is being done.

    Raises:
        ConfigurationError: the file is not a configuration.
    """
    if config.suffix == _OURS:
        say(f"reading {config}, for {_READ_S:g} s at most")
    content = _read(config)
    parts = _parts(content) if content else []
    say(f"ReFrame plans with {config}, for {_PLAN_S:g} s at most")
    return [*parts, _plan(config)]


def _parts(content: _Configuration) -> list[Prerequisite]:
    detects = any(general.get("remote_detect") for general in content.general)
    parts = [
        part
        for system in content.systems
        for partition in system.partitions
        for part in _partition(system.name, partition, detects)
    ]
    for each in content.environments:
        parts += [
            _environment(each, _launchers(content, each)),
            _selection(each.name, each.features),
        ]
    return parts


def environments(config: Path) -> list[str] | None:
    """Return the names of the environments, None if ReFrame alone reads the configuration.

    Raise ConfigurationError.
    """
    content = _read(config)
    return [each.name for each in content.environments] if content else None


def systems(config: Path) -> list[str] | None:
    """Return the systems, as "name:partition", None if ReFrame alone reads the configuration.

    Raise ConfigurationError.
    """
    content = _read(config)
    if content is None:
        return None
    return [
        f"{system.name}:{partition.name}"
        for system in content.systems
        for partition in system.partitions
    ]


def _read(config: Path) -> _Configuration | None:
    """Return the configuration that the file defines; ReFrame itself reads it when it plans.

    Return None if it is not in Python, but in JSON or YAML: ReFrame alone reads that.
    """
    if config.suffix != _OURS:
        return None
    try:
        content = msgspec.convert(_site_configuration(config), _Configuration)
    except msgspec.ValidationError as error:
        raise ConfigurationError(f"{config}: not a ReFrame configuration: {error}") from error
    if not content.systems or not content.environments:
        raise ConfigurationError(f"{config}: names no systems or no environments")
    return content


def _site_configuration(config: Path) -> Any:
    """Return what another Python makes of the file. Raise ConfigurationError."""
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "configuration.json"
        its = answer(
            [sys.executable, "-c", _READ, config, path],
            _READ_S,
            ConfigurationError,
            what=f"reading {config}",
            env=os.environ | {"PYTHONPATH": python_path()},
        )
        if its.returncode != 0:
            said = its.stderr.strip().splitlines() or [f"exits with {its.returncode}"]
            raise ConfigurationError(f"{config}: {said[-1]}")
        return json.loads(path.read_text())


def _partition(system: str, partition: _Partition, detects: bool) -> list[Prerequisite]:
    name, scheduler = f"{system}:{partition.name}", partition.scheduler
    commands = SCHEDULERS[scheduler].commands if scheduler in SCHEDULERS else ()
    lacking = [command for command in commands if shutil.which(command) is None]
    said = "" if lacking else f"{scheduler} {' '.join(commands)}".strip()
    cpus, threads = partition.processor.num_cpus, partition.processor.num_cpus_per_core
    cores = ""
    if cpus:
        cores = f"{cpus // threads} cores per node" if threads else ""
    elif detects or scheduler == partition.launcher == "local":
        cores = "ReFrame detects the cores"
    return [
        Prerequisite(
            name,
            "scheduler",
            said,
            True,
            f"not on PATH: {' '.join(lacking)}; run this on a login node",
        ),
        Prerequisite(
            name,
            "scales",
            cores,
            True,
            "processor must have num_cpus, and num_cpus_per_core of 1 or more",
        ),
        _selection(name, partition.features),
    ]


def _selection(name: str, features: list[str]) -> Prerequisite:
    """Return whether checks run on a partition, or in an environment."""
    found = "mpi" if "mpi" in features else ""
    return Prerequisite(name, "selection", found, True, 'features must have "mpi"')


def _launchers(content: _Configuration, environment: _Environment) -> list[str]:
    """Return the launchers of an environment that must be of its MPI."""
    if mpiexec := environment.extras.mpiexec:
        return [mpiexec]
    partitions = [its for system in content.systems for its in system.partitions]
    used = {its.launcher for its in partitions if environment.name in its.environs}
    return sorted(used.intersection(OF_MPIS))


def _environment(environment: _Environment, launchers: list[str]) -> Prerequisite:
    """Return the part of the compiler wrapper; modules provide it only once they are loaded."""
    name, cc = environment.name, environment.cc
    if modules := environment.modules:
        return Prerequisite(name, "building", f"{cc} of {' '.join(map(str, modules))}", True, "")
    path = shutil.which(cc) or ""
    found = path
    for launcher in launchers if path else []:
        mpi = identify(path, launcher)
        if mpi is None or not is_of(mpi, launcher):
            advice = f"{cc} and {launcher} do not belong to one known MPI"
            return Prerequisite(name, "building", "", True, advice)
        found = str(mpi)
    return Prerequisite(name, "building", found, True, f"no {cc} on PATH")


def _plan(config: Path) -> Prerequisite:
    # A dry run empties its stage: jobs may wait in the usual one.
    with tempfile.TemporaryDirectory() as scratch:
        env = {"RFM_STAGE_DIR": f"{scratch}/stage", "RFM_OUTPUT_DIR": f"{scratch}/output"}
        try:
            session = reframe.dry_run(Call(config, [], {}, env), _PLAN_S)
        except DispatchError as error:
            return Prerequisite("checks", "measuring", "", True, str(error))
    wanted = len(session.wanted)
    found = f"{wanted} would run, {len(session.jobs) - wanted} do not fit"
    return Prerequisite("checks", "measuring", found, True, "")
