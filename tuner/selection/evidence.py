"""Decisions in words: the verdict on a point, and what a table leaves open. No input or output.

Everything that shows a decision takes its words and figures from here, so that the same point says
the same everywhere.
"""

import math
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from tuner.domain.cases import DegreeClass
from tuner.domain.effort import START_S
from tuner.domain.operations import DEFAULT_METHODS
from tuner.domain.tables import (
    DEFAULT,
    EQUAL,
    FASTER_HERE,
    FASTER_TOGETHER,
    OPEN,
    UNSOAKED,
    WON,
    Point,
    Table,
)
from tuner.selection.decisions import ALLOCATIONS, NEGLIGIBLE_LOG
from tuner.selection.intervals import degree_class_of
from tuner.selection.match import covers
from tuner.units import multiple_text, share_text, significant, size_text

_LIMITED = {
    FASTER_HERE: f"; {ALLOCATIONS} allocations an hour apart would confirm it",
    FASTER_TOGETHER: "; slower where ranks arrive apart",
}

SOME_FILLED = "some sizes are open, and filled"
"""The mark in words of a rule whose evidence is not that of all its sizes."""

_FILLED = "as at other sizes or layouts"


def verdict(point: Point, times: str = "x") -> str:
    """Return the verdict on a point in words, with its numbers; times: the sign of multiples."""
    default = DEFAULT_METHODS[point.case.operation]
    if point.status == UNSOAKED:
        if point.filled:
            return f"{default}; {point.challenger}, {_FILLED}, waits for its soak"
        return f"{default}; {_is_faster(point, times)} but waits for its soak"
    if point.status in WON:
        said = f"{_is_faster(point, times)} than {default}{_by_size(point)}"
        also = "; also where ranks arrive apart" * point.staggered
        return said + _LIMITED.get(point.status, "") + also
    if point.status == DEFAULT:
        slower = _multiples(point.ratio, point.ratio_low, point.ratio_high)
        next_best = f"; next {point.challenger}, {slower} {times} slower" if slower else ""
        next_best += _by_size(point) if slower else ""
        return f"{default} is best{next_best}"
    if point.status == EQUAL:
        return f"{default} is within {share_text(math.expm1(NEGLIGIBLE_LOG), 0)} of the best"
    if point.filled:
        here = f"here {speedup(point, times)} the speed of {default}"
        own = _open(point) if point.method == default else here
        return f"{point.method}, {_FILLED}; {own}"
    return f"{default}; {_open(point)}"


def certainty(points: Iterable[Point]) -> str:
    """Return how sure the intervals in the verdicts on points are; "" where these have none."""
    shown = [point for point in points if _has_interval(point)]
    levels = sorted({point.level for point in shown if point.level is not None})
    has_ranges = any(map(_by_size, shown))
    if not levels:
        return "intervals by size are ranges, which have no level" if has_ranges else ""
    ends = dict.fromkeys(map(level_text, (levels[0], levels[-1])))
    which = "intervals hold" if len(shown) > 1 else "the interval holds"
    hold = f"{which} with {' to '.join(ends)} %"
    return f"{hold}; those by size are ranges, which have no level" if has_ranges else hold


def sure_verdict(point: Point) -> str:
    """Return the verdict on a point as pages have it, with the level of its interval."""
    return "; ".join(filter(None, [verdict(point, "×"), certainty([point])]))


def level_text(level: float) -> str:
    """Return the probability of an interval in per cent, rounded down."""
    return f"{math.floor(1e4 * level + 1e-6) / 100:g}"


def _has_interval(point: Point) -> bool:
    """Return whether the verdict on a point shows the ends of an interval or a range."""
    if point.ratio_low is None or point.ratio_low == point.ratio_high:
        return False
    if point.filled:
        return point.status == OPEN and point.method != DEFAULT_METHODS[point.case.operation]
    return point.status in (*WON, DEFAULT, UNSOAKED)


def _by_size(point: Point) -> str:
    """Return the mark of a range over several sizes."""
    return ", by size" if point.level is None and _has_interval(point) else ""


def stand_in(measured: str) -> str:
    """Return the mark of an answer about a case that was not measured, from one that was."""
    return f"not measured: {measured} stands for it"


def have_filled(table: Table) -> list[bool]:
    """Return for each rule whether some of its sizes are open, and filled from others."""
    filled: dict[DegreeClass, list[Point]] = defaultdict(list)
    for point in table.points:
        if point.filled and point.status != UNSOAKED:
            filled[point.case.of_any_degree].append(point)
    # Rules for several layouts are of those that were not measured.
    return [
        any(
            covers(rule, point)
            for point in filled.get(DegreeClass(rule.operation, rule.nodes_low, rule.ppn_low), ())
        )
        for rule in table.rules
    ]


def speedup(point: Point, times: str = "x") -> str:
    """Return the challenger's speed / the default's as an interval; "" if it is unknown."""
    low, high = (1 / end if end else None for end in (point.ratio_high, point.ratio_low))
    speed = _multiples(1 / point.ratio if point.ratio else None, low, high)
    return f"{speed} {times}" if speed else ""


def _is_faster(point: Point, times: str) -> str:
    return f"{point.challenger} is {speedup(point, times)} faster"


def _open(point: Point) -> str:
    """Return what may be gained where nothing is shown, and the time that would show it."""
    if point.challenger is None:
        return "nothing was measured beside it"
    said = f"{point.challenger} may gain {gain_text(point.may_lose)}"
    return f"{said}; about {seconds_text(point.more_s)} more would decide" if point.more_s else said


def gain_text(may_lose: float | None) -> str:
    """Return the most that may be gained: `up to 60 %`, or as a multiple of the speed."""
    if may_lose is None:
        return "an unknown factor"
    if may_lose >= 1:
        return f"up to {significant(1 + may_lose)} x"
    return f"up to {share_text(may_lose, 0)}"


def seconds_text(seconds: float) -> str:
    """Return a rough duration."""
    if seconds < 100:
        return f"{max(float(f'{seconds:.1g}'), 1):.0f} s"
    return f"{math.ceil(seconds / 60)} min"


def _multiples(ratio: float | None, low: float | None, high: float | None) -> str:
    if ratio is None:
        return ""
    if low is None or high is None:
        return multiple_text(ratio)
    ends = multiple_text(low), multiple_text(high)
    return ends[0] if ends[0] == ends[1] else f"{ends[0]} to {ends[1]}"


@dataclass(frozen=True, slots=True)
class Settlement:
    """The number of a table's points that are settled, and what open ones may cost.

    `filled` points are open ones that take a method of other sizes or layouts. `may_lose` is the
    most that one of the others may lose, at `worst`; None where nothing bounds it.
    """

    points: int
    settled: int
    filled: int
    may_lose: float | None
    worst: Point | None
    more_s: float

    @property
    def open(self) -> int:
        """Return the number of points that are neither settled nor filled."""
        return self.points - self.settled - self.filled

    @property
    def counts(self) -> str:
        """Return how many sizes are settled, and how many are filled."""
        more = f", {self.filled} more filled" if self.filled else ""
        return f"{self.settled} of {self.points} sizes{more}"

    def __str__(self) -> str:
        said = f"settled: {self.counts}"
        if self.worst is None:
            return said
        case = self.worst.case
        where = f"{case.operation} of {size_text(case.bytes)} on {case.layout.procs} processes"
        return f"{said}; an open one may lose {gain_text(self.may_lose)} ({where})"


def settlement(points: Iterable[Point]) -> Settlement:
    """Return what is settled of a table's points, whose launches have several sizes each."""
    points = list(points)
    classes: dict[DegreeClass, list[Point]] = defaultdict(list)
    unsettled = [point for point in points if not point.settled]
    for point in unsettled:
        classes[degree_class_of(point.case, point.mmax, point.mavg)].append(point)
    more_s = 0.0
    for of_class in classes.values():
        more_s += sum(point.more_s - point.more_launches * START_S for point in of_class)
        more_s += max(point.more_launches for point in of_class) * START_S
    waiting = [point for point in unsettled if not point.filled]
    worst = max(waiting, key=lambda point: point.worst_loss, default=None)
    return Settlement(
        points=len(points),
        settled=len(points) - len(unsettled),
        filled=len(unsettled) - len(waiting),
        may_lose=worst.may_lose if worst else None,
        worst=worst,
        more_s=more_s,
    )
