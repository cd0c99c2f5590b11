"""Programs that use a new table: the installed example, and any other by the preloaded library."""

import os
import shlex
from pathlib import Path

from rich.console import Console

from tuner.campaign.plans import PlannedCase
from tuner.campaign.reframe import DispatchError, Job
from tuner.machine.directories import installation_directory
from tuner.machine.mpi import launch, mpi_named, preload_library
from tuner.machine.nodes.launch import VIRTUAL_NODES
from tuner.machine.processes import answer
from tuner.machine.systems import THIS_MACHINE, launch_on

EXAMPLE_SIZES = ["8", "1024", "65536"]
EXAMPLE_TIMEOUT_S = 120

RanJob = Job | PlannedCase
"""A job, with all that is needed to start a program in the same way."""


def try_example(table: Path, job: RanJob, console: Console) -> None:
    """Run the example program with an exported table, started like the job's ranks.

    This is done only on this machine: elsewhere the ranks would start on a login node.

    Raises:
        DispatchError: the program fails, or does not end.
    """
    if job.system.partition(":")[0] not in THIS_MACHINE:
        return
    mpi = mpi_named(job.environment)
    installed = installation_directory(job.system, job.environment)
    example = installed / "bin" / "swp_example_halo"
    if mpi is None or not example.is_file():
        return
    start = launch_on(job.system, mpi, job.procs, job.ppn, installed)
    program = [str(example), *EXAMPLE_SIZES]
    command = [*start.argv_prefix, *program]
    settings = {"SWITCHPOINT_TABLE": str(table), **start.env}
    console.print(_again(job, settings, command, program), soft_wrap=True)
    environment = os.environ | settings
    its = answer(command, EXAMPLE_TIMEOUT_S, DispatchError, what="the example", env=environment)
    console.print(its.stdout, end="", soft_wrap=True)
    if its.returncode != 0:
        raise DispatchError(f"the example failed with the new table: {its.stderr.strip()}")


def print_preload_command(table: Path, job: RanJob, console: Console) -> None:
    """Print the shell command that makes the collectives of any program use the table."""
    mpi = mpi_named(job.environment)
    installed = installation_directory(job.system, job.environment)
    library = preload_library(installed)
    if mpi is None or library is None or job.system.partition(":")[0] != "local":
        return
    start = launch(mpi, job.procs, build=installed, preload=[library])
    settings = {"SWITCHPOINT_TABLE": str(table), "SWITCHPOINT_REPORT": "1"}
    settings |= start.env
    command = _shell(settings, [*start.argv_prefix, "./app"])
    console.print(
        f"to use the table for the collectives of any program ./app: {command}", soft_wrap=True
    )


def _again(job: RanJob, settings: dict[str, str], command: list[str], program: list[str]) -> str:
    """Return the shell command that repeats the example, even on virtual nodes made later."""
    if job.system.partition(":")[0] == VIRTUAL_NODES:
        ranks = ["-n", str(job.procs), "--ppn", str(job.ppn), "--environment", job.environment]
        command = ["switchpoint", "nodes", "exec", *ranks, "--", *program]
        settings = {"SWITCHPOINT_TABLE": settings["SWITCHPOINT_TABLE"]}
    return _shell(settings, command)


def _shell(settings: dict[str, str], command: list[str]) -> str:
    words = [f"{name}={shlex.quote(value)}" for name, value in settings.items()]
    return " ".join([*words, shlex.join(command)])
