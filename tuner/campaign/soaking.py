"""Soaks, which execute winners very often before they are chosen (`winners` in checks/soak.py).

The missing soaks follow from the store alone, so that an interrupted soak goes on where it ended.
"""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from shlex import join, quote
from typing import NamedTuple

from rich.console import Console

from tuner.campaign import reframe
from tuner.campaign.batch import Batch
from tuner.campaign.durations import SESSION_S
from tuner.campaign.order import SOAKINGS, SOAKS, SoakJob, SoakLaunch, SoakOrder, keep_finished
from tuner.campaign.plans import Entrants
from tuner.campaign.reframe import CONFIGS, Call, DispatchError
from tuner.domain.effort import START_S
from tuner.domain.operations import BY_ENVIRONMENT
from tuner.domain.records import Cell
from tuner.domain.tables import Provenance, Table
from tuner.machine.nodes import launch as virtual
from tuner.machine.nodes.namespaces import NETWORK
from tuner.paths import database_path, new_campaign
from tuner.selection import soaks, tuning
from tuner.selection.soaks import Lack
from tuner.store.store import Store

VERIFIED = 2.0
"""Ratio of the time of an execution with the verification of its bytes to that of its samples."""

LATE_S = 1e-5
"""Mean time, for each rank, by which soaks make ranks late for an execution."""

UNKNOWN_S = 1e-4
"""Time of an execution of which no sample is known."""

LEAST_SOAK_S, ROOM = 5.0, 3.0
"""Limit of a soak's launch: seconds, and a multiple of what is expected beside them."""


Expected = Callable[[Lack], float]
"""Function from executions that are lacking to the seconds that they take."""


@dataclass(frozen=True)
class SoakRequest:
    """The executions that a site requires, the time for them, and how ReFrame runs the jobs.

    `systems` are those of ReFrame on which the campaign began that is soaked, if there is one.
    Where there is `run`, that runs the jobs instead of ReFrame, and may raise DispatchError; the
    time is a limit then.
    """

    config: Path
    required: int
    most_s: float
    options: Sequence[str] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    systems: Sequence[str] = ()
    run: Callable[[list[SoakJob]], None] | None = None

    @classmethod
    def of(cls, call: Call, systems: Sequence[str], required: int, most_s: float) -> SoakRequest:
        """Return the request for soaks where a campaign began."""
        passed_on = ("anonymous", "system_name", "swpbench")
        return cls(
            call.config,
            required,
            most_s,
            reframe.without_selection(call.selection),
            {name: value for name, value in call.variables.items() if name in passed_on},
            systems,
        )


def partition_of(provenance: Provenance, systems: Sequence[str]) -> str:
    """Return the partition on which a campaign that began on ReFrame's systems measured a system.

    If the results are filed under another name, it is the last one; if none is known, it is the
    system's own name.
    """
    return provenance.name if provenance.name in systems or not systems else systems[-1]


class _Waiting(NamedTuple):
    """What waits for soaks on a system; `beyond` are on more virtual nodes than are up."""

    partition: str
    table: Table
    expected: Expected
    lacks: list[Lack]
    beyond: list[Lack]

    @classmethod
    def of(cls, store: Store, name: str, request: SoakRequest) -> _Waiting:
        """Return it by a new table of a system. Raise TuningError, OffError, StoreError."""
        table = tuning.tune(store, name, required_executions=request.required)
        partition = partition_of(table.provenance, request.systems)
        # What runs the jobs itself may have nodes of another name.
        up = (0 if request.run else virtual.count([partition])) or math.inf
        lacks = soaks.waiting(table)
        startable = [lack for lack in lacks if lack.nodes <= up]
        beyond = [lack for lack in lacks if lack.nodes > up]
        return cls(partition, table, _expected(store.contents(name)), startable, beyond)


def soak(systems: Sequence[str], request: SoakRequest, console: Console) -> bool:
    """Soak the methods that the systems' tables would choose, until all are done or time is up.

    When a method fails, the one that takes its place is soaked. Print why soaks cannot run; they
    are left for later. Return whether anything was soaked.

    Raises:
        TuningError, OffError, StoreError: no table can be made.
        KeyboardInterrupt, SystemExit: interrupted; the finished launches are kept.
    """
    end_s = time.monotonic() + request.most_s
    for name in SOAKINGS.campaigns():  # that were killed
        keep_finished(name, SOAKINGS.load(SOAKINGS.path_of(name)).stage)
    before: list[tuple[str, Lack]] = []
    has_soaked = False
    while request.required:
        with Store.open(database_path()) as store:
            waiting = {name: _Waiting.of(store, name, request) for name in systems}
        if not before and any(its.beyond for its in waiting.values()):
            _show_beyond(waiting, console)
        lacking = [(name, lack) for name, its in waiting.items() for lack in its.lacks]
        has_soaked |= bool(before) and lacking != before
        left_s = end_s - time.monotonic()
        if not lacking or lacking == before or (before and left_s < SESSION_S):
            break
        usable_s = left_s if request.run else max(left_s - SESSION_S, SESSION_S)
        most_s = usable_s / len(systems)
        at_least_one = not before and request.run is None
        chosen = {
            name: affordable(its.lacks, its.expected, most_s, at_least_one=at_least_one)
            for name, its in waiting.items()
        }
        if not any(chosen.values()):
            if not before:
                wanted = {name: its.lacks for name, its in waiting.items()}
                said = f"not soaked, as the time is too short: {_names(wanted)}"
                console.print(said, soft_wrap=True)
            break
        before = lacking
        console.print(
            f"soaking winners, {request.required} executions each: {_names(chosen)}; "
            f"layouts and sizes: {sum(map(len, chosen.values()))} of {len(lacking)}",
            soft_wrap=True,
        )
        jobs = [
            job
            for name, lacks in chosen.items()
            for job in jobs_of(waiting[name].table, lacks, waiting[name].expected, request)
        ]
        try:
            if request.run:
                request.run(jobs)
            else:
                end_s += _run(jobs, request, console)
        except DispatchError as error:
            console.print(f"not soaked: {error}", soft_wrap=True)
            break
    return has_soaked


def _show_beyond(waiting: Mapping[str, _Waiting], console: Console) -> None:
    """Print what needs more virtual nodes than are up, and what makes as many."""
    beyond = {name: its.beyond for name, its in waiting.items() if its.beyond}
    most = max(lack.nodes for lacks in beyond.values() for lack in lacks)
    rate = waiting[next(iter(beyond))].partition.rpartition(NETWORK)[2]  # all are on the same
    console.print(
        f"not soaked, as {most} virtual nodes are needed: {_names(beyond)}; once those that are up "
        f"have ended, `switchpoint nodes up --nodes {most} --rate {rate}` makes them",
        soft_wrap=True,
    )


def _names(lacks: Mapping[str, list[Lack]]) -> str:
    """Return the names of the methods that lack executions."""
    return ", ".join(
        sorted({f"{its.operation} {its.method}" for of in lacks.values() for its in of})
    )


def _expected(cells: Iterable[Cell]) -> Expected:
    """Return an estimate by the medians of the cells."""
    medians_s: dict[tuple[str, int, int, str, int], float] = {}
    for cell in cells:
        operation, nodes, ppn, *_ = cell.key.case.of_any_degree
        where = operation, nodes, ppn, cell.key.method, cell.key.case.bytes
        if not cell.key.case.staggered:
            medians_s[where] = float(cell.parts["median_s"][-1])

    def seconds(lack: Lack) -> float:
        where = lack.operation, lack.nodes, lack.ppn, lack.method, lack.size_bytes
        own_s = VERIFIED * medians_s.get(where, UNKNOWN_S)
        return lack.executions * (own_s + LATE_S * lack.nodes * lack.ppn)

    return seconds


def affordable(
    lacks: Iterable[Lack], expected: Expected, most_s: float, *, at_least_one: bool = True
) -> list[Lack]:
    """Return what can be soaked in a time: a method on a layout wholly, or not at all.

    What takes least comes first, so that most methods can be chosen, and what only filled sizes
    wait for comes last.
    """
    whole: dict[tuple[bool, int, str, int, str], list[Lack]] = defaultdict(list)
    for its in lacks:
        procs = its.nodes * its.ppn
        whole[its.for_filled, procs, its.operation, its.nodes, its.method].append(its)
    needed_s = {key: sum(START_S + expected(lack) for lack in of) for key, of in whole.items()}
    chosen: list[Lack] = []
    for key in sorted(whole, key=lambda key: (key[0], needed_s[key], key)):
        most_s -= needed_s[key]
        if most_s < 0 and (chosen or not at_least_one):
            break
        chosen += whole[key]
    return chosen


def jobs_of(
    table: Table, lacks: Iterable[Lack], expected: Expected, request: SoakRequest
) -> list[SoakJob]:
    """Return the jobs for soaks of a system."""
    jobs: dict[tuple[int, int], list[Lack]] = defaultdict(list)
    for lack in lacks:
        jobs[lack.nodes, lack.ppn].append(lack)
    provenance = table.provenance
    system = partition_of(provenance, request.systems)
    return [
        SoakJob(system, provenance.environment, nodes, ppn, list(_launches(of_job, expected)))
        for (nodes, ppn), of_job in jobs.items()
    ]


def _launches(lacks: Iterable[Lack], expected: Expected) -> Iterator[SoakLaunch]:
    """Yield a launch for each operation, and for each method that needs its own."""
    together: dict[tuple[str, str], dict[tuple[int, int], list[Lack]]]
    together = defaultdict(lambda: defaultdict(list))
    for lack in lacks:
        own = lack.method if lack.method.startswith(BY_ENVIRONMENT) else ""
        together[lack.operation, own][lack.size_bytes, lack.executions].append(lack)
    for (operation, _), alike in together.items():
        races = [
            Entrants([size], [lack.method for lack in its], executions)
            for (size, executions), its in sorted(alike.items())
        ]
        soaks_s = sum(expected(lack) for its in alike.values() for lack in its)
        yield SoakLaunch(round(LEAST_SOAK_S + ROOM * soaks_s, 2), races, operation)


def _run(jobs: list[SoakJob], request: SoakRequest, console: Console) -> float:
    """Run one session of ReFrame; return the seconds that its jobs waited in a queue.

    Raise DispatchError when it cannot run them.
    """
    name = new_campaign()
    path = SOAKINGS.path_of(name).absolute()
    SOAKINGS.save(SoakOrder(jobs), path)
    options = ["--name=^winners", *request.options]
    variables = {**request.variables, "campaign": name}
    call = Call(request.config, options, variables, {SOAKS: str(path)}, "soak.py")
    planned = reframe.dry_run(call).clear()
    SOAKINGS.save(SoakOrder(jobs, str(planned.stage)), path)
    launches = [launch for job in jobs for launch in job.launches]
    soaks_s = sum((launch.budget_s - LEAST_SOAK_S) / ROOM for launch in launches)
    expected_s = SESSION_S + START_S * len(launches) + soaks_s
    of_site = (
        "" if request.config in CONFIGS.values() else f" --config {quote(str(request.config))}"
    )
    its_options = f" -- {join(request.options)}" if request.options else ""
    batch = Batch(
        *(name, "soaking", call, planned, len(launches), expected_s),
        built=True,  # by the winners' campaign
        resumed_by=f"switchpoint soak{of_site}{its_options}",
    )
    started_s = time.monotonic()
    session = batch.run(console)
    for failure in session.failures:
        console.print(f"soak failed: {failure}", soft_wrap=True)
    console.print(f"soaked in {time.monotonic() - started_s:.0f} s")
    session.clear()
    return session.waited_s
