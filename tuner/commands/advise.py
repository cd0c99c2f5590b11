"""`switchpoint advise`: from an unmodified program to a proven gain."""

from __future__ import annotations

import shlex
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tuner.commands.options import (
    NAMED_FILE_OR_DIRECTORY,
    json_option,
    one_system,
    require_soak_option,
    tuned,
    whole_number,
)
from tuner.commands.options import system_option as system_id_option
from tuner.commands.printing.lines import say_json
from tuner.commands.show_plan import BUDGET
from tuner.errors import SwitchpointError
from tuner.files import shown
from tuner.paths import database_path, results_directory

if TYPE_CHECKING:
    from rich.console import Console

    from tuner.advice.document import Advice
    from tuner.advice.mix import Mix
    from tuner.advice.running import Application
    from tuner.campaign.plans import Budget
    from tuner.domain.tables import Table
    from tuner.machine.systems import BuiltKernels


@click.command()
@click.option(
    "--profile",
    "profile_file",
    type=NAMED_FILE_OR_DIRECTORY,
    help="A profile, or a report of mpiP, instead of a run of the application.",
)
@click.option("-n", "procs", type=whole_number(1), help="Processes of the application.")
@click.option(
    "--budget",
    metavar="BUDGET",
    type=BUDGET,
    default="10m",
    help="Time for everything: 90s, 10m, 1.5h.",
)
@click.option(
    "--launcher",
    metavar="WORDS",
    default="",
    show_default="the MPI's mpiexec",
    help="What starts processes if -n N follows, as 'srun --mpi=pmi2'.",
)
@system_id_option("System whose table is asked.")
@click.option(
    "--environment",
    default="",
    show_default="that of the program, or the first found",
    help="MPI to use.",
)
@require_soak_option
@json_option
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
def advise(
    profile_file: Path | None,
    procs: int | None,
    budget: Budget,
    launcher: str,
    system: str | None,
    environment: str,
    required_executions: int | None,
    as_json: bool,
    command: tuple[str, ...],
) -> None:
    """Measure what an application gains by a table: `switchpoint advise -n 8 -- ./app`.

    The application runs once with its calls recorded. What a table says of them is printed, cases
    that may matter are measured, and runs with and without the table show the gain. With --profile
    alone, nothing runs.
    """
    import msgspec

    from tuner.advice.site import Site, system_at
    from tuner.commands.printing.console import console
    from tuner.machine.mpi import preloaded
    from tuner.machine.sites.jobs import nodes_of_job
    from tuner.machine.systems import LOCAL, is_here

    if (profile_file is None) == (not command):
        raise click.UsageError("give either a command after --, or --profile")
    if command and procs is None:
        raise click.UsageError("give the number of processes: -n")
    if budget.share:
        raise click.UsageError("a budget of advise is a time, not a share")
    out = console(stderr=as_json)
    end_s = time.monotonic() + budget.seconds
    if profile_file is not None:
        document = _print_profile(profile_file, system, environment, out)
    else:
        from tuner.commands.advise_steps import AdviceSteps

        words = _words(launcher)
        _require_utf8([*words, *command, *preloaded(), str(Path.cwd()), str(results_directory())])
        if not words and (nodes := nodes_of_job()) > 1:
            raise click.UsageError(
                f"this job has {nodes} nodes: name what starts processes there, as --launcher srun"
            )
        elsewhere = not is_here(system_at(words))
        of_site = _of_site(system, environment, elsewhere) if elsewhere or not words else []
        name = described(system)[0] or (of_site[0][0] if elsewhere and of_site else "")
        place = system_at(words, name)
        places = [*of_site, (place, ""), (LOCAL, "")]
        app, kernels = _application(command, procs or 1, words, environment, places)
        _require_utf8([str(kernels.root)])
        cores = _recorded_cores(place, kernels.mpi.name) if elsewhere else None
        site = Site.of(app, kernels, name, cores)
        steps = AdviceSteps(site, system, required_executions, end_s, out)
        document = steps.give(sys.stderr if as_json else sys.stdout)
    if as_json:
        say_json(msgspec.to_builtins(document))
    if document.outcome == "failed":
        raise SwitchpointError("the application failed with the table, not without it")


def _print_profile(path: Path, system: str | None, environment: str, out: Console) -> Advice:
    """Print what the table of a system says of a profile, and return it as a document."""
    from tuner.advice import recorded
    from tuner.advice.mix import measuring_command, mix
    from tuner.machine.systems import LOCAL, measured_as

    profile = recorded.read(path)
    chosen = system_of(system, environment)
    name, of_system = described(chosen)
    place = name or LOCAL, of_system or environment
    table = table_if_any(chosen)
    run = measuring_command(table, *place, measured_as(place[0]))
    return print_advice(mix(profile, table, *place), run, out)


def system_of(part: str | None, environment: str = "", name: str = "") -> str | None:
    """Return the system that `part` identifies; without it, the only one of the environment.

    Of several, that with ReFrame's name, or else this machine's. None where nothing is measured.
    Where it has ReFrame's name, it is not of another machine.
    """
    from tuner.machine.systems import LOCAL, of_this_machine
    from tuner.store.store import Store

    if part is None and not database_path().is_file():
        return None
    with Store.open(database_path(), readonly=True) as store:
        rows = store.systems().sort_values("last_date")
        here = rows[rows["environment"] == environment] if environment else rows
        if len(here) > 1 or name:
            here = of_this_machine(here, or_whole=True)
        here = here.drop_duplicates(["name", "environment"], keep="last")  # of several versions
        if (here["name"] == name).any():
            here = here[here["name"] == name]
        if len(here) > 1:
            here = here[here["name"] == LOCAL]
        if part is None and (environment or not len(rows)) and len(here) < 2:
            return str(here["system"].iloc[0]) if len(here) else None
        return one_system(store, part)


def described(part: str | None) -> tuple[str, str]:
    """Return ReFrame's name and the environment of a system that was chosen, else ""."""
    from tuner.store.store import Store

    if part is None:
        return "", ""
    with Store.open(database_path(), readonly=True) as store:
        row = store.description(one_system(store, part))
    return str(row["name"]), str(row["environment"])


def _recorded_cores(name: str, environment: str) -> int | None:
    """Return the cores of a node of a system, as last recorded; None if it was not measured."""
    from tuner.store.store import Store

    if not database_path().is_file():
        return None
    with Store.open(database_path(), readonly=True) as store:
        its = store.named(name, environment)
        return int(store.description(its[-1])["cores"]) if its else None


def _of_site(part: str | None, environment: str, elsewhere: bool) -> list[tuple[str, str]]:
    """Return ReFrame's name and the environment of the chosen system, if it is a site's.

    Without a choice it is the only system, or the only one with kernels. Where ranks run elsewhere,
    results of this machine do not count.
    """
    from tuner.machine.directories import installation_directory
    from tuner.machine.systems import is_here
    from tuner.store.store import Store

    found = [described(part)]
    if part is None and database_path().is_file():
        with Store.open(database_path(), readonly=True) as store:
            rows = store.systems()
        found = list(zip(rows["name"].astype(str), rows["environment"].astype(str), strict=True))
    found = list(dict.fromkeys(its for its in found if environment in ("", its[1])))
    if elsewhere:
        found = [its for its in found if not is_here(its[0])]
    if len(found) > 1:
        found = [its for its in found if installation_directory(*its).is_dir()]
    return found if len(found) == 1 and not is_here(found[0][0]) else []


def table_if_any(system: str | None) -> Table | None:
    """Return the table of a system; None where there is none."""
    if system is None:
        return None
    with tuned(database_path()) as store:
        return store.table(system)


def print_advice(mix: Mix, run: str, out: Console) -> Advice:
    """Print what a table says of a profile, and return it as a document.

    run: the command that measures more here; that of the document, which others see, may lack the
    place.
    """
    from msgspec.structs import replace

    from tuner.advice.document import advice
    from tuner.commands.printing.advice import show_calls

    its = advice(mix)
    show_calls(replace(its, run=run), out)
    return its


def _words(launcher: str) -> list[str]:
    """Return the words of a launcher. Raise UsageError for a quote that is not closed."""
    try:
        return shlex.split(launcher)
    except ValueError as error:
        raise click.UsageError(f"--launcher {launcher}: {error}") from error


def _require_utf8(texts: Sequence[str]) -> None:
    """Raise UsageError for a text that plans and kept advice cannot hold."""
    if other := next((text for text in texts if shown(text) != text), None):
        raise click.UsageError(
            f"{shown(other)} is not UTF-8: arguments, directories and preloaded libraries must be"
        )


def _application(
    command: Sequence[str],
    procs: int,
    launcher: Sequence[str],
    environment: str,
    places: Sequence[tuple[str, str]],
) -> tuple[Application, BuiltKernels]:
    """Return the application, and the kernels of its MPI in the first place that has them.

    A place is a system with an environment, "" for the application's.
    """
    from tuner.advice.running import Application
    from tuner.machine.mpi import find_mpis, mpi_of
    from tuner.machine.systems import kernels

    linked = None if environment else mpi_of(command[0], find_mpis())
    name, family = (linked.name, linked.family) if linked else (environment, "")
    built = kernels(*((system, its or name) for system, its in places), family=family)
    root, variables = built.root.absolute(), built.mpi.unlocking
    return Application(built.mpi, root, procs, command, launcher, variables), built
