"""The steps of `switchpoint advise` on an application that can be run."""

from __future__ import annotations

import dataclasses
import os
import tempfile
import time
from pathlib import Path
from subprocess import DEVNULL
from typing import Any

from msgspec.structs import replace
from rich.console import Console

from tuner.advice import measuring, recorded, saved
from tuner.advice.document import Advice, proved
from tuner.advice.mix import Mix, State, measuring_command, mix
from tuner.advice.paired_runs import BudgetError, PairedRuns, TableError
from tuner.advice.profile import ProfileError
from tuner.advice.proof import LEAST_PAIRS, Proof
from tuner.advice.running import UNFINALIZED, ExitError, LimitError, RunError, last_text, run
from tuner.advice.site import Site
from tuner.campaign import soaking
from tuner.commands.advise import described, print_advice, system_of, table_if_any
from tuner.commands.finish import tune_systems
from tuner.commands.printing.advice import show_outcome
from tuner.domain.tables import Table
from tuner.errors import SwitchpointError
from tuner.export import forms
from tuner.files import one_line
from tuner.machine.systems import measured_as
from tuner.models.fitting import last_fitted
from tuner.paths import campaign_name, database_path, results_directory
from tuner.selection import soaks, tuning
from tuner.store.store import Store

MEASURED_SHARE = 0.6
"""Share of the time for measurements: the rest is for the runs that prove a gain."""


class AdviceSteps:
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
        self._begun_ns = time.time_ns()
        path, run_s = self._profile(stdout)
        its = recorded.read(path)
        self._say(f"profile    {path}")
        system, table, unused = self._known()
        found = mix(its, table, self._site.system, self._site.kernels.mpi.name)
        document = self._show(found, table)
        saved.save(path, document)
        if measured := self._measure(found, run_s, system, unused):
            table = measured
            found = mix(its, table)
            self._say("with what was measured:")
            document = self._show(found, table)
            saved.save(path, document)
        document = self._prove(found, document, table, run_s, path)
        saved.save(path, document)
        show_outcome(document, self._out)
        return document

    def _known(self) -> tuple[str | None, Table | None, list[str]]:
        """Return the system whose table is asked, the table, and the systems of unused results.

        Those are of an earlier start that was interrupted; the table is made anew with them.
        """
        unused = measuring.interrupted(self._site)
        system = system_of(self._asked, self._site.kernels.mpi.name, self._site.system)
        if system not in unused:
            return system, table_if_any(system), []
        self._say("continuing with what an interrupted start has measured")
        tables = tune_systems([system], self._out, tuning.required(self._required))
        return system, tables[0].table if tables else None, [system]

    def _show(self, found: Mix, table: Table | None) -> Advice:
        """Print what the table says of the profile, and return it as a document."""
        here = self._site.system, self._site.kernels.mpi.name
        place = measured_as(table.provenance.name if table else here[0])
        return print_advice(found, measuring_command(table, *here, place), self._out)

    def _say(self, text: str) -> None:
        self._out.print(text, soft_wrap=True)

    def _profile(self, stdout: Any) -> tuple[Path, float]:
        """Run the application once, with its output as it is; return its profile and seconds.

        One that is ended with the budget may have written a profile.
        """
        name = f"{campaign_name()}-{os.getpid()}"  # runs may start in one second
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
        end_s = self._end_s - time.monotonic()
        app = dataclasses.replace(self._app, code=profiled.code)
        with tempfile.TemporaryFile() as errors:
            try:
                run(app.untabled(), DEVNULL, errors, limit_s=end_s, code=app.code)
            except LimitError as error:
                self._say(f"{error}, all that the budget has left: give a larger --budget")
                return
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
        cases = measuring.cases_of(mix.to_measure, self._site)
        if mix.to_measure and not cases:
            self._say("not measured, as the launcher cannot start processes on these layouts")
        if not cases and not unused:
            return None
        its = self._site.system, self._site.kernels.mpi.name
        if self._asked and described(self._asked) != its:
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
        most_s = max(end_s - time.monotonic(), 1.0)
        request = measuring.soak_request(self._site, required, most_s)
        try:
            soaking.soak(systems, request, self._out)
        except SwitchpointError as error:
            self._say(f"not soaked: {one_line(str(error))}")
        tables = tune_systems(systems, self._out, required)
        if not any(soaks.waiting(its.table) for its in tables):  # else later advice soaks them
            measuring.end(self._site)
        return tables[0].table if tables else None

    def _prove(
        self, mix: Mix, its: Advice, table: Table | None, run_s: float, profile: Path
    ) -> Advice:
        """Run the application with and without the table if it may gain; add what that shows.

        It is kept beside the profile after each pair.
        """
        used = [each for each in mix.assessments if each.method not in ("", "vendor")]
        if table is None or not used:
            return replace(its, outcome="open" if its.to_measure else "none")
        system = table.provenance.system
        path = (results_directory() / system / "switchpoint.table").absolute()
        with Store.open(database_path(), readonly=True) as store:
            forms.write(table, "table", path, last_fitted(store, system))
        srun = "" if self._app.launcher else self._app.by_srun()
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
