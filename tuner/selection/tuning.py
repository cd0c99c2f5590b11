"""The making of tables, and of the decisions on single campaigns; the store keeps both."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import fields
from typing import TYPE_CHECKING, Any, NamedTuple

from tuner import __version__
from tuner.domain.records import Header, System
from tuner.domain.tables import Point, Provenance, Soaked, Table
from tuner.errors import SwitchpointError
from tuner.machine.systems import node_cores
from tuner.rawfile import reading
from tuner.rawfile.kinds import soak
from tuner.selection import off, soaks
from tuner.selection.comparison import ComparedTimes, MeasuredSide
from tuner.selection.decisions import decide
from tuner.selection.rules import compile_rules
from tuner.selection.trust import Shares, Trust, shares
from tuner.store.store import Store
from tuner.units import counted

if TYPE_CHECKING:
    import pandas as pd

REQUIRED = "SWITCHPOINT_REQUIRE_SOAK"
"""Environment variable with the executions to pass before a method is chosen; 0 for none."""


_ATTEMPTS = 3  # while launches are added


class TuningError(SwitchpointError):
    """Error raised when no table can be made; the message says why and what to do."""


def tune(
    store: Store,
    system: str,
    campaigns: list[str] | None = None,
    required_executions: int | None = None,
) -> Table:
    """Choose the methods of one system and store its table, replacing the earlier one.

    All campaigns count, or only the named ones, and all soaks. Where the winner passed fewer
    executions in soaks than required, by default the number in the environment, the default stays;
    on some systems no soak is possible. Methods that are off at this site do not take part. The
    same cells and soaks always give the same table. The decisions of single campaigns are stored
    with it where they are missing. What is added meanwhile counts too, unless more comes at every
    attempt. Raise TuningError when there is nothing to choose from, OffError, and StoreError.
    """
    off.check()
    for left in reversed(range(_ATTEMPTS)):
        made = _make(store, system, campaigns, required_executions)
        with store.transaction():
            now = _campaigns(store, system)
            if now == made.before or not left:
                store.put_table(made.table)
                for name, points in made.of_campaigns.items():
                    if now.get(name) == made.before[name]:  # else they are not its decisions
                        store.put_decisions(system, name, points)
                break
    return made.table


class _Made(NamedTuple):
    """A table, the decisions that campaigns lacked, and the campaigns as they were before."""

    table: Table
    of_campaigns: dict[str, list[Point]]
    before: dict[Any, Any]


def _campaigns(store: Store, system: str) -> dict[Any, Any]:
    """Return the facts of a system's campaigns by their names."""
    return store.campaigns(system).set_index("campaign").to_dict("index")


def _make(
    store: Store, system: str, campaigns: list[str] | None, required_executions: int | None
) -> _Made:
    described = store.systems().set_index("system")
    if system not in described.index:
        raise TuningError(f"no system {system} in {store.path}; `switchpoint show` lists them")
    measured = store.campaigns(system).set_index("campaign")
    missing = sorted(set(campaigns or ()) - set(measured.index))
    if missing:
        raise TuningError(
            f"{system} has no campaign {missing[0]}; available: {', '.join(measured.index)}"
        )
    names = sorted(set(campaigns or measured.index))
    measurements = {name: store.contents(system, campaign=name) for name in names}
    cells = [cell for its in measurements.values() for cell in its]
    description = described.loc[system].to_dict()
    required_executions = required_on(description["name"], required_executions)
    soaked = outcomes(store, system, required_executions)
    of_launches = headers(store, system)
    trust = Trust(cells, of_launches)
    candidates = soaks.candidates(cells, soaked)
    decided = decide(candidates, trust)
    points = soaks.withhold(decided, soaked, required_executions)
    used = measured.loc[names]
    provenance = _provenance(description, used, shares(cells, trust), soaked, required_executions)
    cores = node_cores(provenance.name, provenance.cpu_model, provenance.cores)
    rules = compile_rules(points, cores)
    table = Table(provenance, rules, points)
    undecided = store.undecided(system)
    # Those of the only campaign, if nothing of it is left out, are made already.
    are_made = len(names) == 1 and len(candidates) == len(cells)
    of_campaigns = {
        name: decided if are_made else decide(its, Trust(its, of_launches))
        for name, its in measurements.items()
        if name in undecided
    }
    return _Made(table, of_campaigns, measured.to_dict("index"))


def _provenance(
    description: dict[Any, Any],
    used: pd.DataFrame,
    doubts: Shares,
    soaked: list[Soaked],
    required_executions: int,
) -> Provenance:
    """Return the origin of a table that is made of the campaigns `used`, rows of the store's."""
    newest = used.sort_values("last_date").iloc[-1]
    return Provenance(
        **{field.name: description[field.name] for field in fields(System)},
        system=str(newest["system"]),
        campaigns=used.index.tolist(),
        launches=int(used["launches"].sum()),
        samples=int(used["samples"].sum()),
        commit=str(newest["commit"]),
        date=str(newest["last_date"]),
        version=__version__,
        disturbed=sum(doubts.disturbed.values()),
        refused=doubts.disturbed,
        noisy=doubts.noisy,
        soaks=soaked,
        required_executions=required_executions,
    )


def decide_again(store: Store, system: str, campaign: str | None) -> list[Point]:
    """Return the decisions on one campaign alone, or on all of a system, as a table has them."""
    cells = store.contents(system, campaign=campaign)
    candidates = soaks.candidates(cells, outcomes(store, system))
    return decide(candidates, Trust(cells, headers(store, system)))


def decisions_of(
    store: Store,
    system: str,
    campaign: str | None = None,
    operation: str | None = None,
    anew: Callable[[Store, str, str | None], list[Point]] = decide_again,
) -> list[Point]:
    """Return what `decide_again` does, of an operation or of all; stored decisions are read.

    anew: makes them where none are stored, or where they have a method that is no candidate now.
    """
    if campaign and _holds(store, system, campaign):
        return store.decisions(system, campaign, operation)
    points = anew(store, system, campaign)
    return [point for point in points if operation in (None, point.case.operation)]


def _holds(store: Store, system: str, campaign: str) -> bool:
    """Return whether the stored decisions of a campaign are what `decide_again` returns.

    They are of all methods, and lack launches that were added since.
    """
    if campaign in store.undecided(system):
        return False
    return not soaks.left_out(store.methods(system, campaign), outcomes(store, system))


def compared_side(store: Store, system: str, campaign: str | None = None) -> MeasuredSide:
    """Return a campaign, or all of a system, for a comparison. Raise TuningError, StoreError."""
    times = ComparedTimes.of_cells(store.contents(system, campaign=campaign, samples=False))
    return side_of(store, system, times, decisions_of(store, system, campaign))


def side_of(store: Store, system: str, times: ComparedTimes, points: list[Point]) -> MeasuredSide:
    """Return the compared side of times and decisions. Raise TuningError, StoreError."""
    its = store.description(system)
    cores = node_cores(its["name"], its["cpu_model"], int(its["cores"]))
    soaked, needed = outcomes(store, system), required_by(store, system)
    return MeasuredSide.of(times, points, soaked, needed, cores)


def outcomes(store: Store, system: str, required: int | None = None) -> list[Soaked]:
    """Return the outcomes for a system's soaked methods. Raise TuningError, StoreError.

    required: the executions that a method has to pass, by default those of the system's table.
    Where none are, so that no soak would try it again, what failed once has failed for good.
    """
    needed = required_by(store, system) if required is None else required
    sources = store.sources(system) if needed else None
    return soaks.outcomes(soak.stored(store, system), sources)


def headers(store: Store, system: str) -> dict[int, Header]:
    """Return the headers by launch, as far as they can be read."""
    found = {
        launch.id: reading.read_header(launch.header.encode())
        for launch in store.launches(system).values()
    }
    return {launch: header for launch, header in found.items() if header is not None}


def required(executions: int | None = None) -> int:
    """Return the executions that a method has to pass: the given number, or the environment's.

    Raise TuningError when that is not a number.
    """
    if executions is not None:
        return executions
    value = os.environ.get(REQUIRED) or str(soaks.ENOUGH)
    if not re.fullmatch("[0-9]{1,18}", value):
        raise TuningError(f"{REQUIRED}={value}: not a number of executions; give one, or unset it")
    return int(value)


def required_on(name: str, executions: int | None = None) -> int:
    """Return the executions required on a system by ReFrame's name: 0 where no soak is possible.

    Raise TuningError.
    """
    return required(executions) if soaks.are_possible(name) else 0


def required_by(store: Store, system: str) -> int:
    """Return the executions that methods have to pass for the system's table, as it was made.

    Without a table it is the number for the next one. Raise TuningError, StoreError.
    """
    provenance = store.provenance(system)
    if provenance is not None:
        return provenance.required_executions
    return required_on(store.description(system)["name"])


def omission(store: Store, table: Table, launches: int) -> str:
    """Return in words what a table lacks of its system's launches in the store; "" if nothing."""
    if (unused := launches - table.provenance.launches) > 0:
        return f"omits {counted(unused, 'launch', 'launches')}"
    if {*store.undecided(table.provenance.system)} & {*table.provenance.campaigns}:
        return "is older than some of its measurements, or than this version's decisions"
    return ""


def tune_missing(store: Store) -> None:
    """Make the tables that a rebuilt store lacks. Raise StoreError."""
    for system in store.untuned():
        tune(store, system)
