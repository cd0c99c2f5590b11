"""Soaks, which execute winners very often before they are chosen (`winners` in checks/soak.py).

The missing soaks follow from the store alone, so that an interrupted soak goes on where it ended.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
from rich.console import Console

from tuner.campaign import reframe
from tuner.campaign.plans import PlannedCase
from tuner.campaign.reframe import Call, DispatchError, Job
from tuner.campaign.times import LINE_S, MOST_SOAKS_S, SESSION_S
from tuner.domain.operations import APART
from tuner.domain.tables import Table
from tuner.paths import database_path, new_campaign, results_directory
from tuner.rawfile import keeping
from tuner.selection import soaks, tuning
from tuner.selection.soaks import Lack
from tuner.store.store import Store

SUFFIX = ".soaking.json"  # of the orders, beside the logs


@dataclass(frozen=True, slots=True)
class SoakLaunch:
    """The soaks of one launch: each method so many times at each size, within a time."""

    methods: list[str]
    sizes: list[int]
    executions: int
    budget_s: float


@dataclass(frozen=True, slots=True)
class Wanted:
    """The soaks of one job: an operation on a layout."""

    system: str  # ReFrame's, as local:cpu
    environment: str
    operation: str
    nodes: int
    ppn: int
    launches: list[SoakLaunch]


@dataclass(frozen=True, slots=True)
class Order:
    """The jobs of one session of ReFrame, and where they run."""

    jobs: list[Wanted]
    stage: str = ""


@dataclass(frozen=True)
class Site:
    """The executions that a site requires, and where and how ReFrame runs the jobs.

    `partitions` are by environment, where they differ from those in the results.
    """

    config: Path
    required: int
    options: Sequence[str] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    partitions: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, request: Call, jobs: Iterable[Job | PlannedCase], required: int) -> Site:
        """Return the site on which the jobs of a campaign ran."""
        told = ("anonymous", "system_name", "swpbench")
        return cls(
            request.config,
            required,
            reframe.without_selection(request.selection),
            {name: value for name, value in request.variables.items() if name in told},
            {job.environment: job.system for job in jobs},
        )


def load(path: Path) -> Order:
    """Read the order that `soak` wrote for the check. Raise OSError, msgspec.DecodeError."""
    return msgspec.json.decode(path.read_bytes(), type=Order)


def soak(
    systems: Sequence[str], site: Site, console: Console, most_s: float = MOST_SOAKS_S
) -> None:
    """Soak what the systems' tables would choose, until all that can be is done or time is up.

    A method that fails makes room for another one, which is soaked then. What cannot be soaked is
    printed, and waits.

    Raises:
        TuningError, StoreError: there is no table to be made.
        KeyboardInterrupt, SystemExit: interrupted; the finished launches are kept.
    """
    end_s = time.monotonic() + most_s
    _keep_interrupted()
    before: list[tuple[str, Lack]] = []
    while site.required:
        with Store.open(database_path()) as store:
            tables = [
                tuning.tune(store, name, required_executions=site.required) for name in systems
            ]
        lacking = [(its.provenance.system, lack) for its in tables for lack in soaks.waiting(its)]
        left_s = end_s - time.monotonic()
        if not lacking or lacking == before or (before and left_s < SESSION_S):
            return
        before = lacking
        names = sorted({f"{lack.operation} {lack.method}" for _, lack in lacking})
        console.print(
            f"soaking what won, {site.required} executions each: {', '.join(names)}; "
            f"layouts and sizes: {len(lacking)}",
            highlight=False,
            soft_wrap=True,
        )
        launches_s = max(left_s - SESSION_S, SESSION_S)
        try:
            _run([job for its in tables for job in wanted(its, site, launches_s)], site, console)
        except DispatchError as error:
            console.print(f"not soaked: {error}", highlight=False, soft_wrap=True)
            return


def wanted(table: Table, site: Site, most_s: float) -> list[Wanted]:
    """Return the jobs for the soaks that a table waits for; each soak gets an equal share of time.

    Methods with the same sizes share a launch, but for those that need one of their own.
    """
    jobs: dict[tuple[str, int, int], dict[str, list[Lack]]] = defaultdict(lambda: defaultdict(list))
    lacking = soaks.waiting(table)
    for lack in lacking:
        jobs[lack.operation, lack.nodes, lack.ppn][lack.method].append(lack)
    share_s = most_s / max(len(lacking), 1)
    provenance = table.provenance
    system = site.partitions.get(provenance.environment, provenance.name)
    return [
        Wanted(
            *(system, provenance.environment, operation, nodes, ppn),
            list(_launches(of_job, share_s)),
        )
        for (operation, nodes, ppn), of_job in jobs.items()
    ]


def _launches(methods: dict[str, list[Lack]], share_s: float) -> Iterator[SoakLaunch]:
    """Yield launches, each with the methods that need as many executions at the same sizes."""
    together: dict[tuple[str, int, tuple[int, ...]], list[str]] = defaultdict(list)
    for method, lacks in methods.items():
        apart = method if method.startswith(APART) else ""
        for executions in sorted({lack.executions for lack in lacks}):
            its = tuple(lack.size_bytes for lack in lacks if lack.executions == executions)
            together[apart, executions, its].append(method)
    for (_, executions, sizes), names in together.items():
        budget_s = round(share_s * len(names) * len(sizes), 2)
        yield SoakLaunch(names, list(sizes), executions, budget_s)


def _keep_interrupted() -> None:
    """Copy to the results what killed sessions had finished."""
    for path in _logs().glob(f"*{SUFFIX}"):
        stage = load(path).stage
        if stage and Path(stage).is_dir():
            campaign = path.name.removesuffix(SUFFIX)
            keeping.keep(keeping.complete_of_campaign(Path(stage), campaign))


def _logs() -> Path:
    return results_directory() / "logs"


def _run(jobs: list[Wanted], site: Site, console: Console) -> None:
    """Run one session of ReFrame. Raise DispatchError when it cannot run the jobs."""
    name = new_campaign()
    path = _logs() / f"{name}{SUFFIX}"
    path.parent.mkdir(parents=True, exist_ok=True)
    _write(Order(jobs), path)
    variables = {**site.variables, "campaign": name}
    options = ["--name=^winners", *site.options]
    request = Call(site.config, options, variables, {reframe.SOAKS: str(path)}, "soak.py")
    planned = reframe.dry_run(request)
    planned.clear()
    _write(Order(jobs, str(planned.stage)), path)
    started_s = time.monotonic()
    tick = _progress(planned.stage, name, sum(len(job.launches) for job in jobs), console)
    try:
        session = reframe.run(request, planned, _logs() / f"{name}.log", tick)
    except (KeyboardInterrupt, SystemExit):
        console.print("interrupted: `switchpoint soak` does the rest", highlight=False)
        raise
    finally:
        keeping.keep(keeping.complete_of_campaign(planned.stage, name))
    for failure in session.failures:
        console.print(f"soak failed: {failure}", highlight=False, soft_wrap=True)
    console.print(f"soaked in {time.monotonic() - started_s:.0f} s", highlight=False)
    session.clear()


def _write(order: Order, path: Path) -> None:
    """Write the order so that a killed run leaves all of it or nothing."""
    aside = path.with_suffix(".partial")
    aside.write_bytes(msgspec.json.format(msgspec.json.encode(order), indent=1) + b"\n")
    aside.replace(path)


def _progress(stage: Path, campaign: str, launches: int, console: Console) -> Callable[[], None]:
    """Return a function that prints a line now and then."""
    started_s = time.monotonic()
    next_s = started_s + LINE_S

    def tick() -> None:
        nonlocal next_s
        now_s = time.monotonic()
        if now_s >= next_s:
            next_s = now_s + LINE_S
            finished = keeping.complete_of_campaign(stage, campaign)
            names = {path.name for path in [*finished, *keeping.of_campaign(campaign)]}
            console.print(
                f"soak: {len(names)} of {launches} launches, {now_s - started_s:.0f} s",
                highlight=False,
            )

    return tick
