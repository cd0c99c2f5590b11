"""`switchpoint site`: the configuration with which ReFrame reaches a site's nodes."""

import os
import shlex
import sys
from contextlib import redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import click

from tuner.atomic import is_stdout
from tuner.campaign.reframe import CHECKS
from tuner.commands.naming import Commands
from tuner.commands.options import FILE, whole_number
from tuner.commands.printing.lines import say
from tuner.files import printable
from tuner.machine.sites import environments, schedulers
from tuner.machine.sites.configuration import SiteConfiguration, SiteError, host_pattern, host_stem
from tuner.machine.sites.environments import Environment, reframe_name
from tuner.machine.sites.schedulers import SCHEDULERS, Partition, Scheduler
from tuner.paths import is_checkout

Answer = TypeVar("Answer", str, int)

_MODULES = "name modules with --modules 'MODULE ...'"


@click.group(cls=Commands)
def site() -> None:
    """Configure a site."""


@site.command()
@click.option(
    "--name", metavar="NAME", help="System name. [default: (this host's name without its number)]"
)
@click.option(
    "--scheduler",
    "scheduler_name",
    type=click.Choice(list(SCHEDULERS)),
    help="Scheduler. [default: (the one whose commands are on PATH)]",
)
@click.option(
    "--launcher",
    type=click.Choice(["srun", "mpirun", "mpiexec"]),
    help="Launcher of ranks within a job. [default: (the usual one for the scheduler)]",
)
@click.option(
    "--partition",
    "wanted",
    multiple=True,
    metavar="NAME",
    help="Measure this partition or queue; can be repeated.",
)
@click.option("--account", metavar="NAME", help="Account that jobs are charged to; '' for none.")
@click.option("--max-nodes", type=whole_number(1), help="Maximum number of nodes of a job.")
@click.option(
    "--modules",
    "module_sets",
    multiple=True,
    metavar="'MODULE ...'",
    help="Modules that provide one MPI, loaded together; can be repeated. [default: (modules "
    "named after MPI libraries, else the MPIs on PATH)]",
)
@click.option(
    "--output",
    type=FILE,
    help="Output file. [default: (checks/config/NAME.py, or NAME.py if that is read-only)]",
)
@click.option("--force", is_flag=True, help="Overwrite the file.")
def init(
    name: str | None,
    scheduler_name: str | None,
    launcher: str | None,
    wanted: tuple[str, ...],
    account: str | None,
    max_nodes: int | None,
    module_sets: tuple[str, ...],
    output: Path | None,
    force: bool,
) -> None:
    """Write a site's configuration from what its scheduler and modules report.

    At a terminal it asks for what the options leave open: the partitions, the number of nodes and
    the account. Elsewhere it takes all partitions and nodes, and no account.
    """
    scheduler = SCHEDULERS[scheduler_name] if scheduler_name else schedulers.detect()
    scheduler = replace(scheduler, launcher=launcher or scheduler.launcher)
    partitions = _partitions(scheduler, wanted)
    is_local = scheduler.name == "local"
    if account is None:
        account = "" if is_local else _asked("Account to charge, if any", "")
    most = max(partition.nodes for partition in partitions)
    if max_nodes is None and not is_local:
        kind = whole_number(1, most)
        max_nodes = _asked("Maximum number of nodes of a job", most, kind)
    if max_nodes is not None and max_nodes > most:
        raise SiteError(f"--max-nodes {max_nodes}: {scheduler.name} gives a job {most} at most")
    found = _environments(module_sets, "" if is_local else scheduler.launcher)
    made = SiteConfiguration(
        reframe_name(name or host_stem()),
        host_pattern(),
        scheduler,
        partitions,
        environments.modules_system(),
        found,
        account,
        max_nodes,
    )
    path = output or _place() / f"{made.name}.py"
    made.write(path, replace=force)
    _show(made, path)


def _environments(module_sets: tuple[str, ...], launcher: str) -> list[Environment]:
    wanted = module_sets or environments.mpi_modules()
    if found := environments.of_modules(wanted, launcher):
        return found
    if environments.modules_system() != "nomod":
        say(f"warning: no module here is named after an MPI library; {_MODULES}", err=True)
    found, others = environments.of_path(launcher)
    for mpi in others:
        say(
            f"warning: {launcher} is of another MPI, so it is left out: {mpi}; {_MODULES}", err=True
        )
    if not found:
        raise SiteError("no MPI among the modules or on PATH; name modules with --modules")
    return found


def _partitions(scheduler: Scheduler, wanted: tuple[str, ...]) -> list[Partition]:
    there = {partition.name: partition for partition in scheduler.partitions()}
    if not there:
        raise SiteError(f"{scheduler.name}: no partition accepts jobs")
    if not wanted and len(there) > 1:
        wanted = tuple(_asked("Partitions to measure", " ".join(there)).split())
    if unknown := [name for name in wanted if name not in there]:
        known = ", ".join(there)
        raise SiteError(f"no partition {unknown[0]} that accepts jobs; available: {known}")
    chosen: dict[str, Partition] = {}
    for name in wanted or there:
        other = chosen.setdefault(reframe_name(name), there[name])
        if other.name != name:
            raise SiteError(
                f"partitions {other.name} and {name} would both be {reframe_name(name)}; choose "
                "one with --partition"
            )
    return list(chosen.values())


def _asked(question: str, otherwise: Answer, kind: Any = None) -> Answer:
    """Return the user's answer at the terminal; without a terminal, return `otherwise`.

    kind: click's type of the answers, by default that of `otherwise`.
    """
    if sys.stdin is None or not sys.stdin.isatty():  # None: closed
        return otherwise
    with redirect_stdout(sys.stderr):  # the output file may be the standard output
        answer: Answer = click.prompt(printable(question), default=otherwise, type=kind)
    return answer


def _place() -> Path:
    configurations = CHECKS / "config"
    return configurations if is_checkout() and os.access(configurations, os.W_OK) else Path()


def _show(made: SiteConfiguration, path: Path) -> None:
    err = is_stdout(path)
    say(f"{path}: {made.name}, with {made.scheduler.name} and {made.scheduler.launcher}", err=err)
    for partition in made.partitions:
        shape = partition.shape
        cores = f"{shape.cpus // shape.cpus_per_core} cores"
        kinds = f", the most frequent of {partition.kinds} kinds" if partition.kinds > 1 else ""
        say(f"  partition {partition.name}: {partition.nodes} nodes of {cores}{kinds}", err=err)
        if partition.kinds > 1:
            say(
                f"warning: jobs of {partition.name} may run on any kind, each a system of its own: "
                "let `access` ask for one, as by --constraint",
                err=True,
            )
    for environment in made.environments:
        origin = " ".join(environment.modules) or "on PATH"
        say(f"  environment {environment.name}: {environment.cc}, {origin}", err=err)
    if made.scheduler.caution:
        say(f"warning: {made.scheduler.caution}", err=True)
    say(f"to check it: switchpoint doctor --config {shlex.quote(str(path))}", err=err)
