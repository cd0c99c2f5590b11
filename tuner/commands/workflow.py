"""The whole workflow of `switchpoint run`: measure a campaign, tune, export, try the result."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from tuner.campaign import reframe, soaking
from tuner.campaign.orders import Order
from tuner.campaign.reframe import Call, DispatchError, Session
from tuner.campaign.soaking import Site
from tuner.campaign.times import (
    BUILD_S,
    JOB_S,
    LEAST_BUDGET_S,
    LINE_S,
    MOST_SOAKS_S,
    SOAKS_S,
    START_S,
)
from tuner.commands.printing.results import show_products, show_table
from tuner.domain import tables
from tuner.domain.operations import COLLECTIVES
from tuner.export import forms
from tuner.machine.mpi import find_mpis, installation_directory, launch, shim, why_first
from tuner.machine.nodes.launch import SYSTEM
from tuner.machine.systems import THIS_MACHINE, launch_on
from tuner.models.fitting import last_fitted
from tuner.paths import database_path, new_campaign, results_directory
from tuner.rawfile import keeping, reading
from tuner.selection import tuning
from tuner.store.store import Store
from tuner.studies.products import last_measured

DEFAULT_CHECKS = "--tag=tuning"
EXPORTS = {"table": "switchpoint.table", "header": "switchpoint_table.h", "json": "table.json"}
EXAMPLE_SIZES = ["8", "1024", "65536"]
TIME_BUDGET = "time budget"  # swpbench's reason
NO_METHODS = (
    "what was measured is in the store; `switchpoint fit` fits models to probes, "
    "`switchpoint show overlap` shows overlap, and tables heed soaks"
)
EXAMPLE_TIMEOUT_S = 120


@dataclass(frozen=True)
class PlannedCampaign:
    """A campaign as planned: its jobs, and the time that each launch may take."""

    name: str
    request: Call
    planned: Session
    budget_s: float
    there: int = 0  # launches that are done already

    @property
    def launches(self) -> int:
        """Return the number of missing launches."""
        return sum(job.launches for job in self.planned.wanted)

    @property
    def all_launches(self) -> int:
        """Return the number of launches of all jobs."""
        return self.there + self.launches

    def order(self) -> Order:
        """Return the order, which is kept to resume the campaign."""
        return Order(self.name, self.request, self.budget_s, self.all_launches, self.planned.stage)

    @property
    def expected_s(self) -> float:
        """Return the campaign's seconds if every launch uses its whole budget, with soaks."""
        jobs = self.planned.wanted
        builds = len({(job.system, job.environment) for job in jobs})
        launches_s = self.launches * (self.budget_s + START_S)
        return builds * BUILD_S + len(jobs) * JOB_S + launches_s + SOAKS_S


class Ran(Protocol):
    """A Job or a PlannedCase, with all that is needed to start a program as it was started."""

    @property
    def system(self) -> str: ...  # noqa: D102
    @property
    def environment(self) -> str: ...  # noqa: D102
    @property
    def procs(self) -> int: ...  # noqa: D102
    @property
    def ppn(self) -> int: ...  # noqa: D102


class Tuned(NamedTuple):
    """A system's new table, and the file that applications read."""

    table: tables.Table
    path: Path

    def is_of(self, job: Ran) -> bool:
        """Return whether a job ran in this system's environment; the system may be renamed."""
        return job.environment == self.table.provenance.environment


def run(campaign: PlannedCampaign, console: Console, required: int) -> dict[str, Any]:
    """Measure a planned campaign, soak, tune and export, and try the tables in a program.

    The places of all results are printed and returned as a document.

    Raises:
        DispatchError, TuningError, ExportError, StoreError: a step failed; earlier ones stay done.
        KeyboardInterrupt: after a Ctrl-C, with the finished launches kept.
    """
    raw_files = measure(campaign, console) if campaign.launches else _keep_finished(campaign)
    jobs = campaign.planned.wanted
    site = Site.of(campaign.request, campaign.planned.jobs, required)
    return finish(campaign.name, raw_files, jobs, site, console)


def finish(
    campaign: str,
    raw_files: list[Path],
    jobs: Sequence[Ran],
    site: Site,
    console: Console,
    soaks_s: float = MOST_SOAKS_S,
) -> dict[str, Any]:
    """Soak the winners, tune, export, print where results are, and try them as the jobs ran.

    Raises:
        DispatchError, TuningError, ExportError, StoreError: a step failed; earlier ones stay done.
    """
    systems = systems_of(raw_files)
    with Store.open(database_path()) as store:
        tunable = [name for name in systems if store.campaigns_with_cells(name)]
    soaking.soak(tunable, site, console, soaks_s)
    tables = tune_systems(systems, console, site.required)
    raw_directories = sorted({path.parent for path in raw_files})
    exported = [tuned.path.parent / name for tuned in tables for name in EXPORTS.values()]
    places = {"raw files": raw_directories, "tables": exported, "database": [database_path()]}
    for what, paths in places.items():
        for path in paths:
            console.print(f"{what:10} {path}", highlight=False, soft_wrap=True)
    for tuned in tables:
        of_system = [job for job in jobs if tuned.is_of(job)]
        if of_system:  # none when the results go under another system's name
            largest = max(of_system, key=lambda job: (job.procs, -job.ppn))
            operations = {rule.operation for rule in tuned.table.rules}
            if operations & {"exchange", "discovery"}:
                try_example(tuned.path, largest, console)
            if operations & set(COLLECTIVES):
                _tell_preload(tuned.path, largest, console)
    return {
        "campaign": campaign,
        "launches": len(raw_files),
        **{what.replace(" ", "_"): [str(path) for path in paths] for what, paths in places.items()},
    }


def default_environment(console: Console, options: Sequence[str]) -> str | None:
    """Return the first MPI's name, and print why it is measured and how another is chosen.

    Each further MPI would take as much time again. The name is None where ReFrame's options name
    an environment, and where no MPI is found: then the site configuration says what to do.
    """
    mpis = find_mpis()
    if not mpis or any(option.startswith(reframe.ENVIRONMENTS) for option in options):
        return None
    say = partial(console.print, highlight=False, soft_wrap=True)
    say(f"measuring {mpis[0]}: {why_first(mpis[0])}")
    for other in mpis[1:]:
        say(f"to measure {other}: `switchpoint run --environment {other.name}`")
    if mpis[1:]:
        say("to measure every one: `switchpoint run --environment all`")
    else:
        say("no other MPI is on PATH: once its mpicc and mpiexec are, this says how to choose it")
    return mpis[0].name


def selecting(options: Sequence[str]) -> list[str]:
    """Return ReFrame's options, with those that select a campaign's checks if none select any."""
    if any(option.startswith(reframe.SELECTING) for option in options):
        return list(options)
    return [*options, DEFAULT_CHECKS]


def plan(
    config: Path,
    selection: list[str],
    launches: int,
    minutes: float,
    variables: dict[str, str] | None = None,
) -> PlannedCampaign:
    """Return the plan that ReFrame makes, with the time shared out among the launches.

    `variables` of the checks are set besides those that make a campaign.

    Raises:
        DispatchError: nothing would run, or not everything that was asked for.
    """
    name = new_campaign()
    variables = {"campaign": name, "launches": str(launches), **(variables or {})}
    request = Call(config.absolute(), selection, variables)
    unlimited = PlannedCampaign(name, request, _planned(request), 0.0)
    spare_s = minutes * 60 - unlimited.expected_s
    budget_s = round(max(spare_s / unlimited.launches, LEAST_BUDGET_S), 2)
    request = replace(request, variables=variables | {"budget_s": str(budget_s)})
    return replace(unlimited, request=request, budget_s=budget_s)


def resume(order: Order) -> PlannedCampaign:
    """Plan the missing launches of a campaign, if any, after keeping what its jobs have finished.

    Raises:
        DispatchError: ReFrame cannot plan it.
    """
    if order.stage.is_dir():
        keeping.keep(keeping.complete_of_campaign(order.stage, order.campaign))
    nothing = Session([], [], order.stage, order.stage)
    planned = _planned(order.request) if order.done < order.launches else nothing
    return PlannedCampaign(order.campaign, order.request, planned, order.budget_s, order.done)


def _planned(request: Call) -> Session:
    """Return what ReFrame would run; the campaign's own directories are cleared."""
    session = reframe.dry_run(request)
    session.clear()
    return session


def plan_document(campaign: PlannedCampaign) -> dict[str, Any]:
    """Return what a campaign would run as a document for programs."""
    return {
        "launches": campaign.launches,
        "budget_s": campaign.budget_s,
        "expected_s": campaign.expected_s,
        "jobs": [asdict(job) for job in campaign.planned.jobs],
    }


def show_plan(campaign: PlannedCampaign, console: Console) -> None:
    """Print the jobs of a campaign, what is skipped and why, and the expected time."""
    table = Table("operation", "pattern", "scale", "processes", "environment", "launches", box=None)
    for column in table.columns:
        column.overflow = "fold"
    for job in campaign.planned.wanted:
        table.add_row(
            job.operation,
            job.pattern,
            job.scale,
            str(job.procs),
            f"{job.system} {job.environment}",
            str(job.launches),
        )
    console.print(table)
    skipped = Counter(
        (job.scale, job.skipped_because) for job in campaign.planned.jobs if job.skipped_because
    )
    for (scale, reason), count in skipped.items():
        console.print(f"skipped: {scale} ({count} jobs): {reason}")
    console.print(
        f"{len(campaign.planned.wanted)} jobs, {campaign.launches} launches of at most "
        f"{campaign.budget_s:g} s; expected time: {campaign.expected_s / 60:.1f} min"
    )


def measure(campaign: PlannedCampaign, console: Console) -> list[Path]:
    """Run a campaign and return its raw files, which are then in the store.

    Whatever happens, the finished launches are kept.

    Raises:
        DispatchError: a job failed, or did not run.
        KeyboardInterrupt, SystemExit: interrupted, or terminated.
    """
    log = results_directory() / "logs" / f"{campaign.name}.log"
    order = campaign.order()
    order.write()
    try:
        with _progress(campaign, console) as tick:
            session = reframe.run(campaign.request, campaign.planned, log, tick)
    except BaseException as error:
        _keep_finished(campaign)
        if not isinstance(error, Exception):
            console.print(f"interrupted: {order}", highlight=False, soft_wrap=True)
        raise
    raw_files = _keep_finished(campaign)
    _show_left_out(raw_files, console)
    if session.failures:
        failures = "\n  ".join(session.failures)
        raise DispatchError(
            f"failed:\n  {failures}\n{order}; `switchpoint tune` makes tables of what there is\n"
            f"ReFrame's output is in {log}"
        )
    if len(raw_files) != campaign.all_launches:
        raise DispatchError(f"{order}; see {log}")
    session.clear()
    return raw_files


def _keep_finished(campaign: PlannedCampaign) -> list[Path]:
    """Keep what jobs that did not pass have finished, and return all raw files there are.

    A job that passed has copied its launches to the results itself.
    """
    keeping.keep(keeping.complete_of_campaign(campaign.planned.stage, campaign.name))
    return keeping.of_campaign(campaign.name)


@contextmanager
def _progress(campaign: PlannedCampaign, console: Console) -> Iterator[Callable[[], None]]:
    """Show launches done and time: a bar on a terminal, else lines."""
    started_s = time.monotonic()

    def launches() -> int:
        """Count launches by their headers: a file that is being copied is in both places."""
        files = [*keeping.of_campaign(campaign.name), *reading.below(campaign.planned.stage)]
        headers = {keeping.header_line(path) for path in files}
        return sum(f'"{campaign.name}"'.encode() in header for header in headers)

    def stage(done: int) -> str:
        return f"launch {done} of {campaign.all_launches}" if done else "building the kernels"

    if not console.is_terminal:
        next_s = 0.0

        def tick() -> None:
            nonlocal next_s
            elapsed_s = time.monotonic() - started_s
            if elapsed_s >= next_s:
                next_s = elapsed_s + LINE_S
                done = launches()
                whole = f" of about {campaign.expected_s:.0f} s" if done else ""
                console.print(f"{stage(done)}, {elapsed_s:.0f} s{whole}", highlight=False)

        yield tick
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console) as bar:
        task = bar.add_task(stage(0), total=campaign.all_launches)

        def tick() -> None:
            done = launches()
            bar.update(task, completed=done, description=stage(done))

        yield tick


def systems_of(raw_files: list[Path]) -> list[str]:
    """Return the systems of raw files that are among the results."""
    return sorted({path.parent.parent.name for path in raw_files})


def tune(raw_files: list[Path], console: Console) -> list[Tuned]:
    """Tune and export every system that raw files belong to, as `tune_systems` does."""
    return tune_systems(systems_of(raw_files), console)


def tune_systems(
    systems: Sequence[str], console: Console, required: int | None = None
) -> list[Tuned]:
    """Tune and export systems by all their campaigns.

    Where only probes were measured, there is nothing to choose from.

    Raises:
        TuningError, ExportError, StoreError: a table cannot be made or written.
    """
    tuned = []
    for system in systems:
        with Store.open(database_path()) as store:
            if not store.campaigns_with_cells(system):
                console.print(f"{system}: {NO_METHODS}", highlight=False, soft_wrap=True)
                continue
            table = tuning.tune(store, system, required_executions=required)
            products = last_measured(store, system)
            model = last_fitted(store, system)
        if not table.rules and not products.empty:
            console.print(f"{system}: no table, as sparse products make no rules")
            show_products(system, products, console)
            continue
        directory = results_directory() / system
        exported = {form: directory / name for form, name in EXPORTS.items()}
        for form, path in exported.items():
            forms.write(table, form, path, model)
        show_table(table, 0, console)
        show_products(system, products, console)
        tuned.append(Tuned(table, exported["table"]))
    return tuned


def try_example(table: Path, job: Ran, console: Console) -> None:
    """Run the example program with an exported table, as the job's ranks were run.

    This is done only on this machine: elsewhere the ranks would start on a login node.

    Raises:
        DispatchError: the program fails, or does not end.
    """
    if job.system.partition(":")[0] not in THIS_MACHINE:
        return
    mpi = next((mpi for mpi in find_mpis() if mpi.name == job.environment), None)
    installed = installation_directory(job.system, job.environment)
    example = installed / "bin" / "swp_example_halo"
    if mpi is None or not example.is_file():
        return
    start = launch_on(job.system, mpi, job.procs, job.ppn, installed)
    program = [str(example), *EXAMPLE_SIZES]
    command = [*start.argv_prefix, *program]
    settings = {"SWITCHPOINT_TABLE": str(table), **start.env}
    console.print(_again(job, settings, command, program), highlight=False, soft_wrap=True)
    try:
        answer = subprocess.run(
            command,
            env=os.environ | settings,
            capture_output=True,
            text=True,
            timeout=EXAMPLE_TIMEOUT_S,
        )
    except subprocess.TimeoutExpired as error:
        raise DispatchError(f"the example did not end within {EXAMPLE_TIMEOUT_S} s") from error
    console.print(answer.stdout, end="", highlight=False, soft_wrap=True)
    if answer.returncode != 0:
        raise DispatchError(f"the example failed with the new table: {answer.stderr.strip()}")


def _tell_preload(table: Path, job: Ran, console: Console) -> None:
    """Print the shell command that makes the collectives of any program use the table."""
    mpi = next((mpi for mpi in find_mpis() if mpi.name == job.environment), None)
    installed = installation_directory(job.system, job.environment)
    library = shim(installed)
    if mpi is None or library is None or job.system.partition(":")[0] != "local":
        return
    start = launch(mpi, job.procs, build=installed, preload=[library])
    settings = {"SWITCHPOINT_TABLE": str(table), "SWITCHPOINT_REPORT": "1", **start.env}
    if mpi.family == "openmpi":  # version 4 lets its algorithms be set only then
        settings["OMPI_MCA_coll_tuned_use_dynamic_rules"] = "1"
    command = _shell(settings, [*start.argv_prefix, "./app"])
    console.print(f"collectives of any program ./app: {command}", highlight=False, soft_wrap=True)


def _again(job: Ran, settings: dict[str, str], command: list[str], program: list[str]) -> str:
    """Return the shell command that repeats the example, for virtual nodes also on later ones."""
    if job.system.partition(":")[0] == SYSTEM:
        ranks = ["-n", str(job.procs), "--ppn", str(job.ppn), "--environment", job.environment]
        command = ["switchpoint", "nodes", "exec", *ranks, "--", *program]
        settings = {"SWITCHPOINT_TABLE": settings["SWITCHPOINT_TABLE"]}
    return _shell(settings, command)


def _shell(settings: dict[str, str], command: list[str]) -> str:
    words = [f"{name}={shlex.quote(value)}" for name, value in settings.items()]
    return " ".join([*words, shlex.join(command)])


def _show_left_out(raw_files: list[Path], console: Console) -> None:
    """Print what launches did not measure, and why, most frequent first."""
    reasons: Counter[str] = Counter()
    for path in raw_files:
        *_, last = path.read_bytes().splitlines()
        reasons.update(skipped["reason"] for skipped in json.loads(last)["skipped"])
    for reason, count in reasons.most_common():
        advice = "; `--minutes` gives more, an idle machine too" if reason == TIME_BUDGET else ""
        console.print(f"left out: {count} cases: {reason}{advice}", highlight=False)
