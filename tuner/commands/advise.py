"""`switchpoint advise`: from an unmodified program to a proven gain."""

from __future__ import annotations

import os
import shlex
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from subprocess import DEVNULL
from typing import TYPE_CHECKING, Any

import click

from tuner.commands.options import (
    NAMED_FILE_OR_DIRECTORY,
    environment_option,
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

if TYPE_CHECKING:
    from rich.console import Console

    from tuner.advice.document import Advice
    from tuner.advice.mix import Mix
    from tuner.advice.running import Application, ExitError
    from tuner.advice.site import Site
    from tuner.campaign.plans import Budget
    from tuner.domain.tables import Table
    from tuner.machine.systems import BuiltKernels

MEASURED_SHARE = 0.6
"""Share of the time for measurements: the rest is for the runs that prove a gain."""


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
@environment_option
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

    from tuner.advice import recorded
    from tuner.advice.mix import mix
    from tuner.advice.site import Site, system_at
    from tuner.commands.printing.results import console
    from tuner.machine.systems import LOCAL

    if (profile_file is None) == (not command):
        raise click.UsageError("give either a command after --, or --profile")
    if command and procs is None:
        raise click.UsageError("give the number of processes: -n")
    if budget.share:
        raise click.UsageError("a budget of advise is a time, not a share")
    out = console(stderr=as_json)
    end_s = time.monotonic() + budget.seconds
    if profile_file is not None:
        its = recorded.read(profile_file)
        document = _say(mix(its, table_if_any(system_of(system, environment))), out)
    else:
        words, name = _words(launcher), _described(system)[0]
        systems = [system_at(words, name), LOCAL]
        app, kernels = _application(command, procs or 1, words, environment, systems, system)
        site = Site.of(app, kernels, name)
        advice = _Advice(site, system, required_executions, end_s, out)
        document = advice.give(sys.stderr if as_json else sys.stdout)
    if as_json:
        say_json(msgspec.to_builtins(document))
    if document.outcome == "failed":
        raise SwitchpointError("the application failed with the table, not without it")


def system_of(part: str | None, environment: str = "", name: str = "") -> str | None:
    """Return the system that `part` identifies; without it, the only one of the environment.

    Of several, that with ReFrame's name, or else this machine's. None where nothing is measured.
    """
    from tuner.machine.systems import LOCAL
    from tuner.paths import database_path
    from tuner.store.store import Store

    if part is None and not database_path().is_file():
        return None
    with Store.open(database_path(), readonly=True) as store:
        rows = store.systems().sort_values("last_date")
        here = rows[rows["environment"] == environment] if environment else rows
        here = here.drop_duplicates(["name", "environment"], keep="last")  # of several versions
        if (here["name"] == name).any():
            here = here[here["name"] == name]
        if len(here) > 1:
            here = here[here["name"] == LOCAL]
        if part is None and (environment or not len(rows)) and len(here) < 2:
            return str(here["system"].iloc[0]) if len(here) else None
        return one_system(store, part)


def _described(part: str | None) -> tuple[str, str]:
    """Return ReFrame's name and the environment of a system that was chosen, else ""."""
    from tuner.paths import database_path
    from tuner.store.store import Store

    if part is None:
        return "", ""
    with Store.open(database_path(), readonly=True) as store:
        row = store.description(one_system(store, part))
    return str(row["name"]), str(row["environment"])


def _of_site(part: str | None, environment: str) -> list[tuple[str, str]]:
    """Return ReFrame's name and the environment of the chosen or only system, if it is a site's."""
    from tuner.machine.systems import is_here
    from tuner.paths import database_path
    from tuner.store.store import Store

    found = [_described(part)]
    if part is None and database_path().is_file():
        with Store.open(database_path(), readonly=True) as store:
            rows = store.systems()
        found = list(zip(rows["name"].astype(str), rows["environment"].astype(str), strict=True))
    found = [its for its in found if environment in ("", its[1])]
    return found if len(found) == 1 and not is_here(found[0][0]) else []


def table_if_any(system: str | None) -> Table | None:
    """Return the table of a system; None where there is none."""
    from tuner.paths import database_path

    if system is None:
        return None
    with tuned(database_path()) as store:
        return store.table(system)


def _say(mix: Mix, out: Console) -> Advice:
    """Print what a table says of a profile, and return it as a document."""
    from tuner.advice.document import advice
    from tuner.commands.printing.advice import show_calls

    its = advice(mix)
    show_calls(its, out)
    return its


def _words(launcher: str) -> list[str]:
    """Return the words of a launcher. Raise UsageError for a quote that is not closed."""
    try:
        return shlex.split(launcher)
    except ValueError as error:
        raise click.UsageError(f"--launcher {launcher}: {error}") from error


def _application(
    command: Sequence[str],
    procs: int,
    launcher: Sequence[str],
    environment: str,
    systems: Sequence[str],
    asked: str | None,
) -> tuple[Application, BuiltKernels]:
    """Return the application, and the kernels of its MPI.

    These are of the site whose results are asked or are all, or of the first system that has them.
    """
    from tuner.advice.running import Application
    from tuner.machine.mpi import find_mpis, mpi_of
    from tuner.machine.systems import kernels

    linked = None if environment else mpi_of(command[0], find_mpis())
    name, family = (linked.name, linked.family) if linked else (environment, "")
    places = [*_of_site(asked, environment), *((system, name) for system in systems)]
    built = kernels(*places, family=family)
    root, variables = built.root.absolute(), built.mpi.unlocking
    return Application(built.mpi, root, procs, command, launcher, variables), built


class _Advice:
    """The steps of advice on an application that can be run."""

    def __init__(
        self, site: Site, asked: str | None, required: int | None, end_s: float, out: Console
    ) -> None:
        self._site = site
        self._app = site.app
        self._asked = asked  # for that system, which no other may replace
        self._required = required
        self._end_s = end_s
        self._begun_ns = 0  # of the clock of files
        self._out = out
        self._recorded_s: float | None = None  # of the whole run that was recorded

    def give(self, stdout: Any) -> Advice:
        """Carry out all steps, and return the results as a document; each step's are kept."""
        from tuner.advice import recorded, saved
        from tuner.advice.mix import mix
        from tuner.commands.printing.advice import show_outcome

        self._begun_ns = time.time_ns()
        path, run_s = self._profile(stdout)
        its = recorded.read(path)
        self._say(f"profile    {path}")
        system, table, unused = self._known()
        found = mix(its, table, self._site.system, self._site.kernels.mpi.name)
        document = _say(found, self._out)
        saved.save(path, document)
        if measured := self._measure(found, run_s, system, unused):
            table = measured
            found = mix(its, table)
            self._say("with what was measured:")
            document = _say(found, self._out)
            saved.save(path, document)
        document = self._prove(found, document, table, run_s, path)
        saved.save(path, document)
        show_outcome(document, self._out)
        return document

    def _known(self) -> tuple[str | None, Table | None, list[str]]:
        """Return the system whose table is asked, the table, and the systems of unused results.

        Those are of an earlier start that was interrupted; the table is made anew with them.
        """
        from tuner.advice import measuring
        from tuner.commands.finish import tune_systems
        from tuner.selection import tuning

        unused = measuring.interrupted(self._site)
        system = system_of(self._asked, self._site.kernels.mpi.name, self._site.system)
        if system not in unused:
            return system, table_if_any(system), []
        self._say("continuing with what an interrupted start has measured")
        tables = tune_systems([system], self._out, tuning.required(self._required))
        return system, tables[0].table if tables else None, [system]

    def _say(self, text: str) -> None:
        from tuner.commands.printing.advice import show_line

        show_line(text, self._out)

    def _profile(self, stdout: Any) -> tuple[Path, float]:
        """Run the application once, with its output as it is; return its profile and seconds.

        One that is ended with the budget may have written a profile.
        """
        from tuner.advice import recorded, saved
        from tuner.advice.profile import ProfileError
        from tuner.advice.running import ExitError, LimitError, RunError, run
        from tuner.paths import planned_campaign, results_directory

        name = f"{planned_campaign()}-{os.getpid()}"  # runs may start in one second
        path = saved.profile_path(results_directory(), name)
        path.mkdir(parents=True)
        begun_s = time.monotonic()
        try:
            run(self._app.profiled(path), stdout, limit_s=self._end_s - begun_s)
        except LimitError as error:
            self._say(f"{error}, all that the budget has left: give a larger --budget")
            try:
                recorded.read(path)
            except (ProfileError, OSError):
                raise RunError("the program has written no profile within the budget") from error
            return path, time.monotonic() - begun_s
        except ExitError as error:
            try:
                its = recorded.read(path)
            except (ProfileError, OSError):
                raise error from None
            if its.finalized or its.aborted or (self._app.mpi.family, error.code) != ("openmpi", 1):
                raise
            self._expect(error)
            self._recorded_s = error.seconds
        else:
            self._recorded_s = time.monotonic() - begun_s
        return path, self._recorded_s

    def _expect(self, profiled: ExitError) -> None:
        """Expect the launcher's exit code for a program without MPI_Finalize, if every run has it.

        Raises:
            RunError: without the profile, the program ended in another way.
            ExitError: the code is that of the program, which failed.
        """
        from dataclasses import replace

        from tuner.advice.running import UNFINALIZED, RunError, last_text, run

        end_s = self._end_s - time.monotonic()
        app = replace(self._app, code=profiled.code)
        with tempfile.TemporaryFile() as errors:
            try:
                run(app.preloading(None), DEVNULL, errors, limit_s=end_s, code=app.code)
            except RunError as error:
                raise RunError(f"{profiled}, but without a profile {error}") from error
            if UNFINALIZED not in " ".join(last_text(errors).split()):
                raise profiled
        self._app = app
        self._say(f"the program does not call MPI_Finalize: all its runs end with {app.code}")

    def _measure(
        self, mix: Mix, run_s: float, system: str | None, unused: list[str]
    ) -> Table | None:
        """Measure what matters; return the new table, None where nothing is to be measured.

        Winners among unused results are soaked too.
        """
        from tuner.advice import measuring
        from tuner.advice.proof import LEAST_PAIRS
        from tuner.campaign import soaking
        from tuner.commands.finish import tune_systems
        from tuner.files import one_line
        from tuner.selection import tuning

        cases = measuring.cases_of(mix.to_measure, self._site)
        if mix.to_measure and not cases:
            self._say("not measured, as the launcher cannot start processes on these layouts")
        if not cases and not unused:
            return None
        its = self._site.system, self._site.kernels.mpi.name
        if self._asked and _described(self._asked) != its:
            self._say(f"not measured, as --system {system} is not where the program runs")
            return None
        left_s = self._end_s - time.monotonic()
        seconds = min(MEASURED_SHARE * left_s, left_s - 2 * LEAST_PAIRS * run_s)
        what = ", ".join(f"{case.operation} on {case.procs} processes" for case in cases)
        what = what or "soaks of winners"
        if seconds < measuring.LEAST_S:
            self._say(f"not measured, as the budget is too small: {what}; give a larger --budget")
            return None
        self._say(f"measuring for {seconds:.0f} s: {what}")
        end_s, systems = time.monotonic() + seconds, unused
        if cases:
            systems, failure = measuring.measure(cases, self._site, seconds)
            if failure:
                self._say(f"measured only in part; continuing with what was kept: {failure}")
        if not systems:
            return None
        if self._asked and system not in systems:
            self._say(f"measured {systems[0]}, not --system {system}, whose table stays")
            return None
        required = tuning.required(self._required)
        site = measuring.soak_site(self._site, required, max(end_s - time.monotonic(), 1.0))
        try:
            soaking.soak(systems, site, self._out)
        except SwitchpointError as error:
            self._say(f"not soaked: {one_line(str(error))}")
        tables = tune_systems(systems, self._out, required)
        measuring.end(self._site)
        return tables[0].table if tables else None

    def _prove(
        self, mix: Mix, its: Advice, table: Table | None, run_s: float, profile: Path
    ) -> Advice:
        """Run the application with and without the table if it may gain; add what that shows.

        It is kept beside the profile after each pair.
        """
        from msgspec.structs import replace

        from tuner.advice import saved
        from tuner.advice.document import proved
        from tuner.advice.mix import State
        from tuner.advice.paired_runs import BudgetError, PairedRuns, TableError
        from tuner.advice.proof import Proof
        from tuner.advice.running import RunError
        from tuner.export import forms
        from tuner.models.fitting import last_fitted
        from tuner.paths import database_path, results_directory
        from tuner.store.store import Store

        used = [each for each in mix.assessments if each.method not in ("", "vendor")]
        if table is None or not used:
            return replace(its, outcome="open" if its.to_measure else "none")
        system = table.provenance.system
        path = (results_directory() / system / "switchpoint.table").absolute()
        with Store.open(database_path(), readonly=True) as store:
            forms.write(table, "table", path, last_fitted(store, system))
        srun = "" if self._app.launcher else self._app.by_srun(path)
        its = replace(its, outcome="open", lines=self._app.lines(path), srun=srun)
        its = replace(its, recorded_s=self._recorded_s)
        # Programs that do not finalize report nothing.
        promises = its.finalized and all(each.state is State.PROMISED for each in used)
        runs = PairedRuns(self._app, path, run_s, self._end_s, self._begun_ns)
        shapes = [each.calls.shape for each in used]
        identity = runs.identity({shape.operation or shape.promised for shape in shapes})
        earlier, failed = saved.before(results_directory(), identity)
        if earlier:
            self._say(f"going on with {len(earlier)} pairs of runs of an earlier start")
            its = proved(its, Proof.of(earlier))
        its = replace(its, identity=identity, earlier=len(earlier), failed_before=failed)
        try:
            for proof in runs.proofs(earlier):
                if promises and runs.unchanged:
                    why = "the program makes no promise, so the table changed no call"
                    return replace(its, outcome="none", ended=why, dispatched=runs.dispatched)
                its = proved(its, proof)
                saved.save(profile, replace(its, ended="interrupted"))
        except BudgetError as error:
            its = replace(its, ended=str(error))
        except TableError as error:
            its = replace(its, outcome="failed", ended=str(error))
        except RunError as error:
            saved.save(profile, replace(its, ended=str(error)))
            raise
        if not its.pairs and not its.ended:
            why = f"the budget has no room for a pair of runs, about {2 * run_s:.1f} s"
            its = replace(its, ended=why)
        return replace(its, dispatched=runs.dispatched)
