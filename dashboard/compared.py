"""Comparisons of campaigns: any two, or each with the campaigns before it."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dashboard import decided
from dashboard.choice import campaigns_of, systems_of, upgrades
from dashboard.snapshot import Snapshot, kept, snapshot
from tuner.selection import changes, comparison, tuning
from tuner.selection.changes import Medians, Shift, Where
from tuner.selection.comparison import ComparedTimes, Comparison, MeasuredSide, Subject
from tuner.store.store import Store

Side = tuple[str, str]
"""A system and a campaign."""

_NOTABLE = 0.01  # change of an operation's mean time that is called slower or faster


@kept(16)
def compare(store: Store, a: Side, b: Side, operation: str = "") -> Comparison:
    """Return the differences of an operation, or of all; each campaign is decided alone."""
    return comparison.compare(_side(store, *a), _side(store, *b), operation)


def document(store: Store, a: Side, b: Side, operation: str = "") -> dict[str, Any]:
    """Return `compare` as JSON; `measured` and `deployable` are null until both are decided."""
    libraries = store.systems().set_index("system")["mpi_library"]
    first, second = (
        Subject.of("/".join(side), libraries[side[0]], _side(store, *side), operation)
        for side in (a, b)
    )
    found = comparison.document(first, second, compare(store, a, b, operation))
    waits = undecided(store, a, b)
    return found | {"undecided": waits} | ({"measured": None, "deployable": None} if waits else {})


def undecided(store: Store, *sides: Side) -> str:
    """Return the first campaign whose decisions the store lacks, or ""."""
    return next((campaign for system, campaign in sides if campaign in store.undecided(system)), "")


@kept(32)
def _side(store: Store, system: str, campaign: str) -> MeasuredSide:
    waits = undecided(store, (system, campaign))
    points = [] if waits else decided.of_campaign(store, system, campaign)
    return tuning.side_of(store, system, _times(store, system, campaign), points)


@kept(32)
def _times(store: Store, system: str, campaign: str) -> ComparedTimes:
    """Return the times of a campaign; cached, as steps and comparisons share them."""
    return ComparedTimes.of_cells(store.contents(system, campaign=campaign, samples=False))


@dataclass(frozen=True)
class MachineCampaign:
    """A campaign on a machine, with any version of its MPI."""

    system: str
    name: str
    mpi_library: str


@dataclass(frozen=True)
class Step:
    """The differences of a campaign from the last earlier measurement of each cell.

    before: by operation, the earlier campaign of the largest change, or else the last with any of
    the cells.
    """

    campaign: MachineCampaign
    shifts: list[Shift]  # the largest effect first
    before: dict[str, MachineCampaign]

    @property
    def changed(self) -> list[Shift]:
        """Return the operations whose cells changed."""
        return [shift for shift in self.shifts if shift.changes]

    @property
    def slower(self) -> list[Shift]:
        """Return the changed operations whose mean time rose notably, the largest effect first."""
        return [shift for shift in self.changed if shift.ratio >= 1 + _NOTABLE]

    @property
    def faster(self) -> list[Shift]:
        """Return the changed operations whose mean time fell notably, the largest effect first."""
        return [shift for shift in self.changed if shift.ratio <= 1 / (1 + _NOTABLE)]


@dataclass(frozen=True)
class _CampaignTimes:
    """A campaign and what it measured: an argument for a function with a cache.

    Objects with the same launches are equal, so an ingest invalidates only the results it changes.
    """

    campaign: MachineCampaign
    launches: str  # their digest
    now: Snapshot = field(compare=False)

    @property
    def times(self) -> ComparedTimes:
        """Return its times."""
        return _times(self.now.store, self.campaign.system, self.campaign.name)


@dataclass(frozen=True)
class _CampaignsSoFar:
    """The campaigns of a machine up to one: an argument like a single one."""

    digest: str
    campaigns: list[_CampaignTimes] = field(compare=False)


def newest_step(store: Store, system: str) -> Step | None:
    """Return how the newest campaign of a system differs; None if no cell was measured before."""
    so_far = _so_far(store, system)
    own = [each for each in so_far if each.campaigns[-1].campaign.system == system]
    return _step(own[-1]) if own else None


@kept(64)
def steps(store: Store, system: str) -> list[Step]:
    """Return how each campaign of a machine differs from those before it, the newest first."""
    found = [*map(_step, _so_far(store, system))]  # in this order the newest are kept
    return [step for step in reversed(found) if step is not None]


@kept(64)
def campaigns(store: Store, system: str) -> list[MachineCampaign]:
    """Return the campaigns of a machine that measured methods, in order of date."""
    alike = upgrades(systems_of(store), system)
    libraries = dict(zip(alike["system"], alike["mpi_library"], strict=True))
    having = {name: set(campaigns_of(store, name)) for name in libraries}
    measured = store.campaigns()
    measured = measured[measured["system"].isin(libraries)].sort_values(["last_date", "campaign"])
    return [
        MachineCampaign(of, name, libraries[of])
        for of, name in zip(measured["system"], measured["campaign"], strict=True)
        if name in having[of]
    ]


@kept(4)
def _launches(store: Store) -> dict[Side, list[str]]:
    """Return the contents of the launches of each campaign, of all systems."""
    launches: dict[Side, list[str]] = defaultdict(list)
    for launch in store.launches().values():
        launches[launch.system, launch.campaign].append(launch.content)
    return launches


def _so_far(store: Store, system: str) -> list[_CampaignsSoFar]:
    """Return the campaigns of a machine up to each of them."""
    launches = _launches(store)
    now, digest = snapshot(store), sha256()
    found: list[_CampaignsSoFar] = []
    measured: list[_CampaignTimes] = []
    for each in campaigns(store, system):
        its = repr(sorted(launches[each.system, each.name])).encode()
        measured.append(_CampaignTimes(each, sha256(its).hexdigest(), now))
        digest.update(repr((each, its)).encode())
        found.append(_CampaignsSoFar(digest.hexdigest(), [*measured]))
    return found


@lru_cache(maxsize=1024)
def _hashes(measured: _CampaignTimes) -> NDArray[np.int64]:
    """Return the hashes of a campaign's cells, which take little memory."""
    return _hashes_of(measured.times.medians)


def _hashes_of(cells: Iterable[Where]) -> NDArray[np.int64]:
    return np.array([*map(hash, cells)], np.int64)


@lru_cache(maxsize=1024)
def _step(measured: _CampaignsSoFar) -> Step | None:
    *before, newest = measured.campaigns
    times = newest.times
    medians = times.medians
    last: Medians = {}
    measured_in: dict[Where, MachineCampaign] = {}
    wanted = _hashes(newest)
    for each in reversed(before):
        if not len(wanted):
            break
        # Looking for cells that are new, each step would read all campaigns, and few are kept.
        if not np.isin(_hashes(each), wanted).any():
            continue
        for where, launches in each.times.medians.items():
            if where in medians and where not in last:
                last[where], measured_in[where] = launches, each.campaign
        wanted = _hashes_of(medians.keys() - last.keys())
    if not last:
        return None
    shifts = changes.shifts(last, medians, exact=times.exact)
    held_against = {where.case.operation: measured_in[where] for where in reversed(measured_in)}
    for shift in shifts:
        if shift.changes:
            held_against[shift.operation] = measured_in[shift.changes[0].where]
    return Step(newest.campaign, shifts, held_against)
