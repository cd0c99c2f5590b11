"""The review of a system: whether it can be trusted, what its table gains, and what to do next."""

import math
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from shlex import join, quote
from typing import Any

from dashboard.choice import campaigns_of, explorable, upgrades, version_of
from dashboard.compared import Step
from dashboard.frames import described, rows_of
from dashboard.measuring import measuring_lines
from dashboard.steadiness import Steadiness
from tuner.campaign.order import is_resumable
from tuner.domain.tables import UNSOAKED, WON, Point, Table
from tuner.machine.systems import SIMULATED, unreal
from tuner.selection import trust, tuning
from tuner.selection.evidence import settlement
from tuner.selection.next_step import NextStep, made_anew, next_step, without_rules
from tuner.store.store import Store
from tuner.units import counted

GOOD, CARE, BAD, NONE = "good", "care", "bad", "none"
"""Levels, which the pages show as colours; NONE: there is nothing to judge."""

_FEW = 0.5
"""The share of decided sizes below which a table is used with care."""


@dataclass(frozen=True)
class OperationGain:
    """What a table gains over the default for an operation, at its measured sizes.

    mean and most: multiples of the default's speed, the mean over all sizes. faster: sizes with a
    faster method. waiting: sizes whose faster method waits for a soak, with `awaited` at most.
    """

    operation: str
    sizes: int
    faster: int
    mean: float
    most: float
    waiting: int
    awaited: float


@dataclass(frozen=True)
class SystemReview:
    """The review of a system, as the store says it. doubts: what limits its worth, the worst first.

    advise: returns what to do next, which depends on files too, and so is not kept with the rest.
    gains: of layouts with a core for each rank. oversubscribed: of the others.
    """

    level: str
    words: str
    doubts: list[str]
    advise: Callable[[], NextStep]
    settled: str = ""
    gains: list[OperationGain] = field(default_factory=list)
    oversubscribed: list[OperationGain] = field(default_factory=list)


def judge(
    store: Store,
    system: dict[str, Any],
    table: Table | None,
    steadiness: Steadiness | None,
    step: Step | None,
) -> SystemReview:
    """Return the review of a system, a row of `Store.systems`, and of its table.

    steadiness: of its newest campaign, None if no methods were measured. step: its last changes.
    """
    name = system["system"]
    if steadiness is None:
        measure = partial(_measure, system, "Measure methods.")
        return SystemReview(NONE, "No methods measured", [], measure)
    if table is None:
        line = f"switchpoint tune --system {quote(name)}"
        tune = partial(NextStep, "Make a table.", [line])
        return SystemReview(NONE, "No table yet", steadiness.doubts(), tune)
    omission = tuning.omission(store, table, int(system["launches"]))
    if not table.rules:
        todo = partial(without_rules, table, omission)
        return SystemReview(NONE, "No rules", steadiness.doubts(), todo)
    settled = settlement(table.points)
    state = trust.state(table.provenance.disturbed, table.provenance.noisy)
    doubts = [*trust.notes(table.provenance), *steadiness.doubts()]
    alone = [point for point in table.points if not point.case.layout.oversubscribed]
    if settled.open > (1 - _FEW) * settled.points:
        doubts.append("most sizes are open: the default stays there")
    if not alone:
        doubts.append("all layouts have more ranks than cores")
    newer = _newer(store, name)
    if newer:
        doubts.append(f"replaced by {newer['mpi_library']}")
    level, words = _level(system, state, doubts)
    oversubscribed = [point for point in table.points if point.case.layout.oversubscribed]
    return SystemReview(
        level=level,
        words=words,
        doubts=doubts,
        advise=next(_advice(store, system, table, omission, step, newer)),
        settled=f"settled: {settled.counts}",
        gains=_gains(alone),
        oversubscribed=_gains(oversubscribed),
    )


def _level(system: dict[str, Any], state: str, doubts: list[str]) -> tuple[str, str]:
    if state == trust.CONTAMINATED:
        return BAD, "Do not rely on it"
    if doubts:
        return CARE, "Use with care"
    if unreal(system["name"], system["cpu_model"]) == SIMULATED:
        return GOOD, "Exact, of a simulated machine"
    return GOOD, "Can be trusted"


def _newer(store: Store, system: str) -> dict[str, Any] | None:
    """Return the system with the MPI that replaced this one on the machine.

    Several MPIs may be used side by side: their campaigns alternate, or an older version follows.
    """
    alike = upgrades(explorable(store), system).sort_values("first_date")
    here = described(alike, system)
    version = version_of(here["mpi_library"])
    following = [
        row
        for row in rows_of(alike)
        if here["last_date"] < row["first_date"]
        and (row["environment"] == here["environment"] or version_of(row["mpi_library"]) > version)
    ]
    return following[-1] if following else None


def _gains(points: Iterable[Point]) -> list[OperationGain]:
    """Return the gain of each operation, the largest mean first."""
    of_operations: dict[str, list[Point]] = defaultdict(list)
    for point in points:
        of_operations[point.case.operation].append(point)
    gains = []
    for operation, its in of_operations.items():
        faster = [speed for point in its if (speed := speed_of(point, WON))]
        waiting = [speed for point in its if (speed := speed_of(point, [UNSOAKED]))]
        mean = math.exp(sum(map(math.log, faster)) / len(its))
        most, awaited = max(faster, default=1.0), max(waiting, default=1.0)
        gains.append(
            OperationGain(operation, len(its), len(faster), mean, most, len(waiting), awaited)
        )
    return sorted(gains, key=lambda gain: (-gain.mean, -gain.awaited, gain.operation))


def speed_of(point: Point, statuses: Collection[str] = WON) -> float | None:
    """Return the challenger's speed / the default's at a settled point of a status, else None."""
    if point.status not in statuses or point.filled or not point.ratio:
        return None
    return 1 / point.ratio


def mean_gain(gains: Iterable[OperationGain]) -> float:
    """Return the mean speed over all sizes of the operations, as a multiple of the default's."""
    gains = list(gains)
    logs = sum(gain.sizes * math.log(gain.mean) for gain in gains)
    return math.exp(logs / max(sum(gain.sizes for gain in gains), 1))


def _measure(system: dict[str, Any], reason: str) -> NextStep:
    return NextStep(reason, measuring_lines(system))


def _complete(system: dict[str, Any], campaign: str, missing: int) -> NextStep:
    reason = f"Complete {counted(missing, 'launch', 'launches')}."
    if is_resumable(campaign):
        return NextStep(reason, [f"switchpoint run --resume {quote(campaign)}"])
    return _measure(system, reason)


def _advice(
    store: Store,
    system: dict[str, Any],
    table: Table,
    omission: str,
    step: Step | None,
    newer: dict[str, Any] | None,
) -> Iterator[Callable[[], NextStep]]:
    """Yield functions that return what can be done, the most useful first."""
    name = system["system"]
    if newer:
        sides = f"{quote(name)} {quote(newer['system'])}"
        compare = [f"switchpoint compare {sides}"]
        yield partial(NextStep, "See what the upgrade changed.", compare)
    campaigns = store.campaigns(name).set_index("campaign")
    newest = campaigns_of(store, name)[0]
    if missing := int((campaigns["launches"] - campaigns["complete"])[newest]):
        yield partial(_complete, system, newest, missing)
    if omission:
        yield partial(made_anew, table, omission)
    its = table.provenance
    if step and step.slower and trust.state(its.disturbed, its.noisy) != trust.CONTAMINATED:
        operation = step.slower[0].operation
        before = step.before[operation]
        sides = join([f"{before.system}/{before.name}", f"{name}/{step.campaign.name}"])
        compare = [f"switchpoint compare {sides}"]
        yield partial(NextStep, f"See why {operation} is slower.", compare)
    yield partial(next_step, table)
