"""Executes very often what won, before it is chosen: jobs of the check `winners` (checks/soak.py).

What lacks follows from the store alone, so that an interrupted soak goes on where it ended.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from rich.console import Console

from tuner import dispatch, rawfiles, soaks, tuning
from tuner.dispatch import DispatchError, Job, Request
from tuner.places import database_path, results_directory
from tuner.planning import PlannedCase
from tuner.records import APART, Table
from tuner.soaks import Method
from tuner.store import Store

MOST_S = 30.0
"""For all launches together, unless a campaign has less left; they seldom take a third of it."""

LINE_S = 10.0  # between lines of progress


@dataclass(frozen=True, slots=True)
class Wanted:
    """What one job soaks: an operation on a layout, each launch with methods of its own."""

    system: str  # ReFrame's, as local:cpu
    environment: str
    operation: str
    nodes: int
    ppn: int
    sizes: list[int]
    launches: list[list[str]]
    executions: int  # of each method at each size
    budget_s: float  # of a launch


@dataclass(frozen=True)
class Site:
    """How many executions a site requires, and where and how ReFrame runs the jobs.

    `partitions` are by environment, where they are not as the results say.
    """

    config: Path
    required: int
    options: Sequence[str] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    partitions: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, request: Request, jobs: Iterable[Job | PlannedCase], required: int) -> Site:
        """As the jobs of a campaign ran."""
        told = ("anonymous", "system_name", "swpbench")
        return cls(
            request.config,
            required,
            dispatch.without_selection(request.selection),
            {name: value for name, value in request.variables.items() if name in told},
            {job.environment: job.system for job in jobs},
        )


def load(path: Path) -> list[Wanted]:
    """What `soak` wrote for the check. Raises OSError, msgspec.DecodeError."""
    return msgspec.json.decode(path.read_bytes(), type=list[Wanted])


def soak(systems: Sequence[str], site: Site, console: Console, most_s: float = MOST_S) -> None:
    """Soaks what the systems' tables would choose, until nothing is left that can be.

    A method that fails makes room for another one, which is soaked then. What cannot be soaked is
    told, and waits.

    Raises:
        TuningError, StoreError: there is no table to be made.
        KeyboardInterrupt, SystemExit: interrupted; the finished launches are kept.
    """
    before: set[tuple[str, Method]] = set()
    while site.required:
        with Store.open(database_path()) as store:
            tables = [
                tuning.tune(store, name, required_executions=site.required) for name in systems
            ]
        lacking = {(its.provenance.system, what) for its in tables for what in soaks.waiting(its)}
        if not lacking or lacking == before:
            return
        before = lacking
        names = sorted({" ".join(method) for _, method in lacking})
        console.print(
            f"soaking what won, {site.required} executions each: {', '.join(names)}",
            highlight=False,
            soft_wrap=True,
        )
        try:
            _run([job for table in tables for job in wanted(table, site, most_s)], site, console)
        except DispatchError as error:
            console.print(f"not soaked: {error}", highlight=False, soft_wrap=True)
            return


def wanted(table: Table, site: Site, most_s: float) -> list[Wanted]:
    """The jobs for what a table waits for: each method on the largest layout on which it won.

    Its size is the smallest at which it won, of those on that layout.
    """
    layouts: dict[tuple[str, int, int], dict[str, int]] = defaultdict(dict)
    for (operation, method), points in soaks.waiting(table).items():
        largest = max((point.procs, point.nodes, point.ppn) for point in points)
        sizes = [its.size_bytes for its in points if (its.procs, its.nodes, its.ppn) == largest]
        layouts[operation, *largest[1:]][method] = min(sizes)
    count = sum(map(len, layouts.values()))
    jobs = []
    for (operation, nodes, ppn), methods in layouts.items():
        together = [method for method in methods if not method.startswith(APART)]
        apart = [[method] for method in methods if method.startswith(APART)]
        launches = [together] * bool(together) + apart
        jobs.append(
            Wanted(
                site.partitions.get(table.provenance.environment, table.provenance.name),
                *(table.provenance.environment, operation, nodes, ppn),
                sorted(set(methods.values())),
                launches,
                table.provenance.required_executions,
                round(most_s * len(methods) / count / len(launches), 2),
            )
        )
    return jobs


def _run(jobs: list[Wanted], site: Site, console: Console) -> None:
    """One session of ReFrame. Raises DispatchError when it cannot run them."""
    name = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    logs = results_directory() / "logs"
    path = logs / f"{name}.soaks.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(msgspec.json.format(msgspec.json.encode(jobs), indent=1) + b"\n")
    variables = {**site.variables, "campaign": name}
    options = ["--name=^winners", *site.options]
    request = Request(site.config, options, variables, {dispatch.SOAKS: str(path)})
    planned = dispatch.plan(request)
    planned.clear()
    started_s = time.monotonic()
    tick = _progress(planned.stage, name, sum(len(job.launches) for job in jobs), console)
    try:
        session = dispatch.run(request, planned, logs / f"{name}.log", tick)
    except (KeyboardInterrupt, SystemExit):
        console.print("interrupted: `switchpoint soak` does the rest", highlight=False)
        raise
    finally:
        rawfiles.keep(rawfiles.complete_of_campaign(planned.stage, name))
    for failure in session.failures:
        console.print(f"soak failed: {failure}", highlight=False, soft_wrap=True)
    console.print(f"soaked in {time.monotonic() - started_s:.0f} s", highlight=False)
    session.clear()


def _progress(stage: Path, campaign: str, launches: int, console: Console) -> Callable[[], None]:
    """Prints a line now and then."""
    started_s = time.monotonic()
    next_s = started_s + LINE_S

    def tick() -> None:
        nonlocal next_s
        now_s = time.monotonic()
        if now_s >= next_s:
            next_s = now_s + LINE_S
            finished = rawfiles.complete_of_campaign(stage, campaign)
            names = {path.name for path in [*finished, *rawfiles.of_campaign(campaign)]}
            console.print(
                f"soak: {len(names)} of {launches} launches, {now_s - started_s:.0f} s",
                highlight=False,
            )

    return tick
