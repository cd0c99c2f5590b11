"""Judge an application's calls by a table: the gain, what is open, what to measure.

The module does no input or output.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache

from tuner.advice.profile import Calls, Profile, Shape
from tuner.domain.cases import DegreeClass
from tuner.domain.operations import COLLECTIVES, DEFAULT_METHODS, DISPATCHED, EXCHANGED
from tuner.domain.tables import WON, Point, Ratio, Table
from tuner.machine.systems import LOCAL, Place
from tuner.selection import match
from tuner.selection.evidence import stand_in, verdict
from tuner.selection.next_step import measuring_lines, measuring_more
from tuner.units import size_text

NEAR = 4.0
"""Ratio of sizes up to which a measured one stands for another."""

ITEM_BYTES = 8
"""Bytes of an element of measured reductions: smaller sizes are measured as this one."""

LEAST_SHARE = 0.01
"""The least share of the run time that is worth measuring."""


class State(StrEnum):
    """The answer of a table for a shape of calls."""

    SETTLED = "settled"
    OPEN = "open"
    UNMEASURED = "not measured"
    ALONE = "one process"
    PROMISED = "needs a promise"
    UNDISPATCHED = "not dispatched"


@dataclass(frozen=True, slots=True)
class Assessment:
    """The answer of a table for calls, and the seconds that it gains, with their interval.

    Nothing is expected of calls that need a promise: profiles do not know of it.
    `more_s` are the seconds that measurements may still add at most; without measurements: all
    seconds of the calls, waiting included.
    """

    calls: Calls
    state: State
    method: str = ""
    words: str = ""
    gain_s: float = 0.0
    low_s: float = 0.0
    high_s: float = 0.0
    more_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Mix:
    """The calls of a profile, those with the most time first, and what a table says of them."""

    profile: Profile
    assessments: tuple[Assessment, ...]
    run: str  # the command that measures its system

    @property
    def gain_s(self) -> tuple[float, float, float]:
        """Return the expected gain with the sums of the ends of its intervals, within the bound."""
        most_s = self.profile.bound_s
        sums = (
            sum(each.gain_s for each in self.assessments),
            sum(each.low_s for each in self.assessments),
            sum(each.high_s for each in self.assessments),
        )
        gain_s, low_s, high_s = (min(value, most_s) for value in sums)
        return gain_s, low_s, high_s

    @property
    def to_measure(self) -> list[Assessment]:
        """Return what measurements may add more than a negligible gain to, the most first."""
        least_s = LEAST_SHARE * self.profile.seconds
        found = [
            each for each in self.assessments if min(each.more_s, self.profile.bound_s) > least_s
        ]
        return sorted(found, key=lambda each: -each.more_s)


def measuring_command(
    table: Table | None, name: str = LOCAL, environment: str = "", place: Place | None = None
) -> str:
    """Return the command that measures more for a table, or where there is none.

    place: where it was measured, for a command that is only printed here. Others: as for `mix`.
    """
    if table:
        return measuring_more(table, place=place)[-1]
    return measuring_lines(name, environment, place=place)[-1]


def mix(profile: Profile, table: Table | None, name: str = LOCAL, environment: str = "") -> Mix:
    """Return what a table says of a profile; None: nothing is measured.

    name, environment: ReFrame's of the system, if there is no table.
    """

    @cache
    def of_class(degree_class: DegreeClass) -> Table | None:
        return table and _of_class(table, degree_class)

    shapes = [calls.shape for calls in profile.calls]
    classes = [DegreeClass(its.promised or its.operation, its.nodes, its.ppn) for its in shapes]
    assessments = map(_assess, profile.calls, map(of_class, classes))
    return Mix(profile, tuple(assessments), measuring_command(table, name, environment))


def _of_class(table: Table, degree_class: DegreeClass) -> Table:
    """Return the rules and points of a table that are about an operation on a layout."""
    return replace(
        table,
        rules=[rule for _, rule in match.on_layout(table.rules, degree_class)],
        points=[point for point in table.points if point.case.of_any_degree == degree_class],
    )


def _assess(calls: Calls, table: Table | None) -> Assessment:
    """Judge calls by the table of their operation and layout."""
    shape = calls.shape
    if not shape.procs and shape.call.lower() in (*COLLECTIVES, *EXCHANGED):
        return Assessment(calls, State.UNMEASURED, words="not judged: communicator or size unknown")
    if not shape.operation and not shape.promised:
        return Assessment(calls, State.UNDISPATCHED, words=f"not dispatched: {_why_not(shape)}")
    if shape.procs == 1:
        return Assessment(calls, State.ALONE)
    if shape.promised:
        return Assessment(calls, State.PROMISED, _promised_method(shape, table), _promise(shape))
    point = _nearest(table.points, shape) if table else None
    if table is None or point is None:
        return Assessment(calls, State.UNMEASURED, more_s=calls.seconds)
    default = DEFAULT_METHODS[shape.operation]
    rule = match.first(
        table.rules, DegreeClass(shape.operation, shape.nodes, shape.ppn), shape.bytes
    )
    method = rule.method if rule else default
    if rule is None and point.method != default:  # larger than its rule holds for
        return Assessment(calls, State.UNMEASURED, more_s=calls.seconds)
    ends = _ends(point, method) if method != default else (1.0, 1.0, 1.0)
    gain_s, low_s, high_s = (calls.own_s * (1 - ratio) for ratio in ends)
    words = verdict(point)
    if point.case.bytes != shape.bytes:
        words += f" ({stand_in(size_text(point.case.bytes))})"
    may_save = 1.0 if point.may_lose is None else point.may_lose / (1 + point.may_lose)
    return Assessment(
        *(calls, State.SETTLED if point.settled else State.OPEN, method, words),
        *(gain_s, low_s, high_s, 0.0 if point.settled else calls.seconds * may_save),
    )


def _promise(shape: Shape) -> str:
    """Return what the preload must know of irregular or persistent calls to dispatch them."""
    name = shape.call.lower()
    if name.removeprefix("i").startswith("neighbor_"):
        return "only with fixed counts, promised or by persistent requests"
    if name.endswith("_init"):
        return "persistent; only where ranks promise to start it together"
    return "only with counts that are promised to stay fixed"


def _promised_method(shape: Shape, table: Table | None) -> str:
    """Return the first method other than the default that a promise may lead to; "" if none."""
    operation = shape.promised
    default = DEFAULT_METHODS[operation]
    here = table.rules if table else []
    if operation in COLLECTIVES:
        rule = match.first(here, DegreeClass(operation, shape.nodes, shape.ppn), shape.bytes)
        here = [rule] if rule else []
    return next((rule.method for rule in here if rule.method != default), "")


def _why_not(shape: Shape) -> str:
    """Return why the preload leaves a call to the MPI library."""
    name = shape.call.lower()
    if name in DISPATCHED and shape.nodes:
        return "blocks over 2 GiB - 1" if shape.bytes else "without data"
    if name.removesuffix("_init") in (*COLLECTIVES, *EXCHANGED):
        return "the communicator has ranks of another job, or is between two groups"
    if name.removeprefix("i").startswith("neighbor_"):
        return _promise(shape)
    if name.removeprefix("i") in COLLECTIVES:
        return "nonblocking; methods wait for other ranks"
    if name.removeprefix("i") in EXCHANGED:
        return "nonblocking; only plain and persistent calls are dispatched"
    if not shape.procs or name.endswith(
        ("send", "recv", "probe", "send_init", "recv_init", "_replace")
    ):
        return "messages and waiting are the program's own"
    return "no table is about this function"


def _nearest(points: Iterable[Point], shape: Shape) -> Point | None:
    """Return the decision of a degree class at the nearest size; None where none is near."""
    nearest = min(points, key=lambda point: _distance(point, shape), default=None)
    if nearest is None:
        return None
    is_smallest = max(nearest.case.bytes, shape.bytes) <= ITEM_BYTES
    return nearest if is_smallest or _distance(nearest, shape) <= math.log(NEAR) else None


def _distance(point: Point, shape: Shape) -> float:
    return abs(math.log(max(point.case.bytes, 1) / max(shape.bytes, 1)))


def _ends(point: Point, method: str) -> tuple[float, float, float]:
    """Return the ratio of a method's time to the default's, and its upper and lower end.

    1 where no ratio was measured at this size: nothing is promised.
    """
    if point.status in WON and point.challenger == method and point.ratio is not None:
        its = Ratio(method, point.ratio, point.ratio_low, point.ratio_high)
    else:
        its = next((each for each in point.ratios if each.method == method), Ratio(method, 1.0))
    high = its.ratio if its.high is None else its.high
    low = its.ratio if its.low is None else its.low
    return its.ratio, high, low
