"""Standings: what is known of the cases of a race before its next launches are planned.

The module does no input or output.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field

from tuner.campaign.measured import LogTimes, Measured, Times, log_times
from tuner.campaign.plans import PlannedBatch, RacePlan
from tuner.domain.operations import DEFAULT_METHODS
from tuner.domain.records import Cell
from tuner.domain.tables import FASTER_HERE
from tuner.selection import off
from tuner.selection.decisions import MIN_LAUNCHES, SizeMeasurements, measurements
from tuner.selection.intervals import degree_class_of
from tuner.selection.trust import Trust


@dataclass(slots=True)
class CaseStanding:
    """The standing of a case: the race and the measurements of each size, predicted times.

    Newcomers are methods that earlier campaigns, though they measured the case, measured too seldom
    at every size to be judged, as newer ones and those that were screened last.
    """

    default: str
    times: Times
    raced: dict[int, LogTimes]
    absent: dict[int, set[str]]  # by size, methods that were asked for, but are not applicable
    newcomers: set[str]
    measured: dict[int, SizeMeasurements] = field(default_factory=dict)
    oversubscribed: bool = False

    def at(self, size: int) -> dict[str, float]:
        """Return the logarithm of the seconds of each method that may be applicable at a size."""
        return {
            method: log
            for method, log in self.times.at(size).items()
            if method not in self.absent.get(size, ())
        }


def settled_before(plan: RacePlan, measured: Measured) -> PlannedBatch:
    """Return how much is settled before a campaign, as a batch without launches."""
    return PlannedBatch("known", [], *settled(standings_of(plan, measured)))


def settled(standings: Mapping[int, CaseStanding]) -> tuple[int, int, int]:
    """Return the numbers of all sizes, of settled ones, and of those by one allocation alone."""
    found = [at_size for its in standings.values() for at_size in its.measured.values()]
    statuses = [(at_size, at_size.status()) for at_size in found]
    here = sum(at_size.shown(status) == FASTER_HERE for at_size, status in statuses)
    return len(found), sum(status.settled for _, status in statuses), here


def known_methods(plan: RacePlan, measured: Measured) -> dict[int, set[str]]:
    """Return the methods that other campaigns measured, or tried to, in each case they measured."""
    found: dict[int, set[str]] = defaultdict(set)
    for cell, numbers in measured.of_cases(plan):
        if cell.key.campaign != plan.campaign:
            for number in numbers:
                found[number].add(cell.key.method)
    return {
        number: methods.union(measured.considered.get(plan.cases[number].key, ()))
        for number, methods in found.items()
        if DEFAULT_METHODS[plan.cases[number].operation] in methods
    }


def unscreened_before(plan: RacePlan, measured: Measured) -> dict[int, set[str]]:
    """Return the methods that other campaigns have not screened, of each case they measured."""
    return {
        number: {*measured.unscreened.get(plan.cases[number].key, ())} - methods
        for number, methods in known_methods(plan, measured).items()
    }


def standings_of(plan: RacePlan, measured: Measured) -> dict[int, CaseStanding]:
    """Return what is known of the cases whose default was measured."""
    of_cases = measured.of_cases(plan)
    systems: dict[str, list[Cell]] = defaultdict(list)
    for cell in _candidates(plan, measured):
        systems[cell.key.system].append(cell)
    tried = {
        its: measurements(cells, Trust(cells, measured.headers)) for its, cells in systems.items()
    }
    known = known_methods(plan, measured)
    standings: dict[int, CaseStanding] = {}
    for number, raced in log_times(plan, of_cases).items():
        case = plan.cases[number]
        default = DEFAULT_METHODS[case.operation]
        if any(default in race for race in raced.values()):
            times = Times(case, raced, measured.baseline)
            absent = _absent(plan, number, raced, times.methods)
            newcomers = {*times.methods} - _judged(plan, raced) if number in known else set()
            standings[number] = CaseStanding(default, times, raced, absent, newcomers)
    for cell, numbers in of_cases:
        its = cell.key.case
        degree_class = degree_class_of(its, cell.features.mmax, cell.features.mavg)
        at_size = tried[cell.key.system].get((degree_class, its.bytes))
        for number in numbers & standings.keys():
            if at_size is not None:
                of_sizes = standings[number].measured
                before = of_sizes.setdefault(its.size_bytes, at_size)
                if before is not at_size and before.status().settled:  # on another system
                    of_sizes[its.size_bytes] = at_size
                standings[number].oversubscribed = its.layout.oversubscribed
    return standings


def _candidates(plan: RacePlan, measured: Measured) -> Iterator[Cell]:
    """Yield the cells by which a table of their system would be made."""
    failed = {(case.place, case.operation, method) for case in plan.cases for method in case.failed}
    for cell in measured.cells:
        key = cell.key
        has_failed = (measured.places.get(key.system), key.case.operation, key.method) in failed
        if not has_failed and not off.is_off_here(key.method):
            yield cell


def _judged(plan: RacePlan, raced: Mapping[int, LogTimes]) -> set[str]:
    """Return the methods that other campaigns measured often enough at some size."""
    return {
        method
        for race in raced.values()
        for method, launches in race.items()
        if sum(campaign != plan.campaign for campaign, _ in launches) >= MIN_LAUNCHES
    }


def _absent(
    plan: RacePlan, number: int, raced: Mapping[int, LogTimes], methods: Collection[str]
) -> dict[int, set[str]]:
    """Return the methods that finished launches of a case left out, by size."""
    absent: dict[int, set[str]] = {size: set() for size in raced}
    default = DEFAULT_METHODS[plan.cases[number].operation]
    for task in plan.tasks:
        for race in task.races if task.case == number else []:
            for size in race.sizes:
                its = raced.get(size, {})
                if (plan.campaign, task.number) in its.get(default, {}):
                    absent[size] |= {*(race.methods or methods)} - its.keys()
    return absent


def _launches(at_size: SizeMeasurements) -> int:
    return max((contrast.launches for contrast in at_size.contrasts.values()), default=0)


def is_fresh(at_size: SizeMeasurements | None) -> bool:
    """Return whether a size was measured at most once: then no method is out of the race."""
    return at_size is None or _launches(at_size) < MIN_LAUNCHES


def is_new(method: str, at_size: SizeMeasurements) -> bool:
    """Return whether a method was measured too seldom at a size to be judged."""
    return method not in at_size.contrasts or at_size.contrasts[method].launches < MIN_LAUNCHES
