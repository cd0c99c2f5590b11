"""The choice of methods: from the cells of one system to a decision at every measured size.

Each method is compared with the default by all launches that have both, which gives each size its
status (docs/explanation/statistics.md). No input or output.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from tuner.domain.cases import COLD, STAGGERED, Case, DegreeClass
from tuner.domain.effort import OVERHEAD, START_S
from tuner.domain.operations import AUTO, DEFAULT_METHODS, FOREIGN, RULED_OPERATIONS
from tuner.domain.records import Cell
from tuner.domain.tables import (
    DEFAULT,
    EQUAL,
    FASTER,
    FASTER_HERE,
    FASTER_TOGETHER,
    OPEN,
    Point,
    Ratio,
)
from tuner.selection.contrasts import Contrast, contrasts_of
from tuner.selection.intervals import MAVG_DIGITS, NEARLY, degree_class_of
from tuner.selection.trust import Trust
from tuner.selection.unmeasured import open_choices

ERROR_LEVEL = 0.02
"""Probability of leaving the default at a size though nothing is faster; candidates share it."""

LOOKS = 12.0
"""Divides the error level of leaving the default, as races look after each of 2 to 24 launches.

In simulations (tests/bench/decisions.py) with heavy-tailed launches that are alike over sizes,
those looks make less than 2 % of the cells of equal methods faster.
"""

NEGLIGIBLE_LOG = math.log(1.05)
"""The gain that is not worth more measurements."""

ALLOCATIONS = 3
"""Allocations of nodes, an hour apart, in which a method must be faster where there are any."""

MIN_LAUNCHES, MIN_ROUNDS = 2, 12
"""What a method needs to take the default's place, and a size to be settled."""

ROUNDS = 20
"""Rounds of a launch by which the time of further ones is estimated."""

RIVALS = 4
"""Most rivals of the default in a further launch."""

FORESEEN_LAUNCHES = 100
"""Most further launches that are estimated."""

_Size = tuple[DegreeClass, int]  # and bytes
_Scheme = tuple[bool, bool, int, str]  # in the order of preference


class SizeStatus(NamedTuple):
    """A method, why, and the contrast that matters most, with the error level of its bounds."""

    method: str
    word: str
    challenger: str | None
    error_level: float

    @property
    def settled(self) -> bool:
        """Return whether the measurements decide."""
        return self.word != OPEN


@dataclass(slots=True)
class SizeMeasurements:
    """All measurements at one size of one degree class, with the default among them."""

    default: str
    cells: list[Cell]  # those of the default first
    contrasts: Mapping[str, Contrast]  # of the others
    staggered: Mapping[str, Contrast] = field(default_factory=dict)  # where ranks arrived apart

    @property
    def faster_level(self) -> float:
        """Return the error level of leaving the default for one method.

        Dropped methods count too: the winner is chosen among all of them.
        """
        return ERROR_LEVEL / LOOKS / max(len(self.contrasts), 1)

    @property
    def lows(self) -> dict[str, float]:
        """Return the logarithm of the least ratio that each method may have."""
        return {name: of.bounds(ERROR_LEVEL)[0] for name, of in self.contrasts.items()}

    @property
    def least_log(self) -> float:
        """Return the logarithm of the least ratio that any method may have."""
        return min(self.lows.values(), default=-math.inf)

    def status(self) -> SizeStatus:
        """Return the status by the measurements of this size alone."""
        if any(self.is_faster(method, self.faster_level) for method in self.contrasts):
            shown = [method for method in self.contrasts if self.is_faster(method, ERROR_LEVEL)]
            return self.won_by(min(shown, key=lambda name: _cautious(self.contrasts[name])))
        lows = self.lows
        riskiest = min(lows, key=lambda name: (lows[name], self.contrasts[name].mean), default=None)
        if riskiest is None or not any(map(_counts, self.contrasts.values())):
            return SizeStatus(self.default, OPEN, riskiest, self.faster_level)
        if lows[riskiest] > 0:
            return SizeStatus(self.default, DEFAULT, self.next_best(), ERROR_LEVEL)
        if lows[riskiest] > -NEGLIGIBLE_LOG:
            return SizeStatus(self.default, EQUAL, riskiest, ERROR_LEVEL)
        return SizeStatus(self.default, OPEN, riskiest, self.faster_level)

    def won_by(self, method: str) -> SizeStatus:
        """Return the status that a method is faster, at the strictest level at which it is."""
        strict = self.is_faster(method, self.faster_level)
        return SizeStatus(method, FASTER, method, self.faster_level if strict else ERROR_LEVEL)

    def is_faster(self, method: str, error_level: float) -> bool:
        """Return whether a method may take the default's place.

        Once one may at the level that all share, the default is left, and others may win by their
        own: else a method that hardly gains would win over one that gains much, less steadily.
        """
        contrast = self.contrasts.get(method)
        return contrast is not None and _counts(contrast) and contrast.bounds(error_level)[1] < 0

    def staggered_bounds(self, method: str) -> tuple[float, float]:
        """Return the bounds of a method where ranks arrive apart, infinite where too few did."""
        contrast = self.staggered.get(method)
        if contrast is None or not _counts(contrast):
            return -math.inf, math.inf
        return contrast.bounds(ERROR_LEVEL)

    def shown(self, status: SizeStatus) -> str:
        """Return the word of a status with what limits it: the arrival, or the allocation."""
        contrast = self.contrasts.get(status.challenger or "")
        if status.word != FASTER or contrast is None:
            return status.word
        if self.staggered_bounds(status.method)[0] > 0:
            return FASTER_TOGETHER
        return FASTER_HERE if 0 < contrast.allocations < ALLOCATIONS else FASTER

    def next_best(self) -> str:
        """Return the method with the least mean time."""
        return min(self.contrasts, key=lambda name: self.contrasts[name].mean)

    def excludes(self, method: str) -> bool:
        """Return whether these measurements alone speak against a method."""
        if method == self.default:
            return False
        contrast = self.contrasts.get(method)
        return contrast is None or contrast.bounds(ERROR_LEVEL)[0] > 0

    def rivals(self) -> list[str]:
        """Return the methods that may gain more than matters, the most promising first.

        Where that is none, the first one stays, as an open size has too few rounds to dismiss it.
        """
        lows = self.lows
        ordered = sorted(lows, key=lambda name: (lows[name], self.contrasts[name].mean))
        return [name for name in ordered if lows[name] <= -NEGLIGIBLE_LOG] or ordered[:1]

    def more_launches(self) -> int:
        """Return about how many more launches would settle the size."""
        if not self.contrasts:
            return MIN_LAUNCHES
        if any(contrast.exact for contrast in self.contrasts.values()):
            return 0  # they would repeat the same times
        leader = self.contrasts[self.next_best()]
        shown = _more(leader, -leader.mean, self.faster_level)
        dismissed = max(map(self._dismissed, self.contrasts.values()))
        return max(math.ceil(min(shown, dismissed, FORESEEN_LAUNCHES)), 1)

    def _dismissed(self, contrast: Contrast) -> float:
        """Return after how many more launches a method is slower, or cannot gain."""
        return _more(contrast, contrast.mean + NEGLIGIBLE_LOG, ERROR_LEVEL)

    def round_s(self) -> float:
        """Return the seconds of the samples of a round with the default and its rivals."""
        medians_s: dict[str, float] = {}
        for cell in self.cells:
            medians_s.setdefault(cell.key.method, float(cell.parts["median_s"][-1]))
        racing = [self.default, *self.rivals()[:RIVALS]]
        return sum(medians_s[name] for name in racing)


def _counts(contrast: Contrast) -> bool:
    """Return whether there is enough of a contrast to settle on; exact times need no repetition."""
    enough = contrast.launches >= MIN_LAUNCHES and contrast.rounds >= MIN_ROUNDS
    return enough or contrast.exact is not None


def _cautious(contrast: Contrast) -> float:
    """Return a method's log-ratio with a standard error added: few launches are often lucky."""
    return contrast.mean + contrast.error


def _more(contrast: Contrast, gap: float, error_level: float) -> float:
    """Return after how many more launches a bound lies a gap from the mean; infinite for none."""
    if gap <= 0:
        return math.inf
    low, high = contrast.bounds(error_level)
    reach = (high - low) / 2
    return contrast.launches * ((reach / gap) ** 2 - 1)


def decide(cells: Iterable[Cell], trust: Trust | None = None) -> list[Point]:
    """Return decisions at every size of every degree class at which the default was measured.

    Open ones take what other sizes or layouts choose, where these are sure enough and the method
    was measured here, too. Without `trust`, the cells alone decide which launches are disturbed.
    """
    decided = decide_each_layout(cells, trust)
    chosen = {
        point: method
        for point, method in open_choices(decided)
        if not decided[point].excludes(method)
    }
    return [
        _followed(at_size, chosen[point]) if point in chosen else point
        for point, at_size in decided.items()
    ]


def decide_each_layout(
    cells: Iterable[Cell], trust: Trust | None = None
) -> dict[Point, SizeMeasurements]:
    """Return the decisions on each layout by itself, and of what each is made."""
    classes: dict[DegreeClass, dict[int, SizeMeasurements]] = defaultdict(dict)
    for (degree_class, size), at_size in measurements(list(cells), trust).items():
        classes[degree_class][size] = at_size
    return {
        point: of_class[point.case.bytes]
        for _, of_class in sorted(classes.items())
        for point in _filled(decide_class(of_class), of_class)
    }


def measurements(
    cells: Sequence[Cell], trust: Trust | None = None
) -> dict[_Size, SizeMeasurements]:
    """Return the measurements of one system that have the default, by degree class and bytes."""
    trust = trust or Trust(cells)
    comparable: dict[bool, list[Cell]] = defaultdict(list)
    for cell in cells:
        case = cell.key.case
        nameable = cell.key.method != AUTO and not cell.key.method.startswith(FOREIGN)
        if nameable and case.operation in RULED_OPERATIONS:
            comparable[case.staggered].append(cell)
    used, staggered = (_one_scheme(comparable[kind], trust) for kind in (False, True))
    contrasts, of_staggered = _by_size(used, trust), _by_size(staggered, trust)
    measured: dict[_Size, list[Cell]] = defaultdict(list)
    for cell in used:
        measured[_size_of(cell)].append(cell)
    found = {}
    for where, its in measured.items():
        default = DEFAULT_METHODS[where[0].operation]
        its.sort(key=lambda cell: (cell.key.method != default, cell.key))
        if its[0].key.method == default:
            found[where] = SizeMeasurements(default, its, contrasts[where], of_staggered[where])
    return found


def _by_size(cells: Sequence[Cell], trust: Trust) -> dict[_Size, dict[str, Contrast]]:
    """Return the contrasts of methods, by degree class and bytes."""
    found: dict[_Size, dict[str, Contrast]] = defaultdict(dict)
    for key, contrast in sorted(contrasts_of(cells, trust).items()):
        found[key.degree_class, key.bytes][key.method] = contrast
    return found


def _size_of(cell: Cell) -> _Size:
    """Return the degree class and the bytes of a cell."""
    case = cell.key.case
    return degree_class_of(case, cell.features.mmax, cell.features.mavg), case.bytes


def _one_scheme(cells: Iterable[Cell], trust: Trust) -> list[Cell]:
    """Return the cells of one scheme at each size, as samples of different ones do not compare.

    Schemes with enough cores come first, then those with warm caches, then with common starts. One
    in which no method was measured enough to count has no precedence.
    """
    schemes: dict[_Size, dict[_Scheme, list[Cell]]] = defaultdict(lambda: defaultdict(list))
    for cell in cells:
        schemes[_size_of(cell)][_scheme_of(cell.key.case)].append(cell)
    disputed: dict[_Scheme, list[Cell]] = defaultdict(list)
    for of_size in schemes.values():
        for scheme, its in of_size.items() if len(of_size) > 1 else ():
            disputed[scheme] += its
    counting = {
        (scheme, size)
        for scheme, its in disputed.items()
        for size, contrasts in _by_size(its, trust).items()
        if any(map(_counts, contrasts.values()))
    }
    found: list[Cell] = []
    for size, of_size in schemes.items():
        found += of_size[min(of_size, key=lambda its: ((its, size) not in counting, its))]
    return found


def _scheme_of(case: Case) -> _Scheme:
    """Return the rank of the scheme of a case: the least is the best."""
    preferred = ["window", "hca"]
    sync = case.sync.removesuffix(STAGGERED).removesuffix(COLD)
    rank = preferred.index(sync) if sync in preferred else len(preferred)
    return case.layout.oversubscribed, case.cold, rank, sync


def decide_class(measured: Mapping[int, SizeMeasurements]) -> list[Point]:
    """Return the points of a degree class; of methods that are as good, switches are spared."""
    sizes = sorted(measured)
    statuses = {size: measured[size].status() for size in sizes}
    settled = [size for size in sizes if statuses[size].settled]
    chosen = _fewest_switches([_as_good(measured[size], statuses[size]) for size in settled])
    for size, method in zip(settled, chosen, strict=True):
        if method != statuses[size].method:
            statuses[size] = measured[size].won_by(method)
    return [_point(measured[size], statuses[size]) for size in sizes]


def _as_good(at_size: SizeMeasurements, status: SizeStatus) -> dict[str, float]:
    """Return the methods that may be chosen by a status, and what they lose by the means."""
    if status.word != FASTER:
        return {status.method: 0.0}
    winner = at_size.contrasts[status.method]
    return {
        name: of.mean - winner.mean
        for name, of in at_size.contrasts.items()
        if name == status.method
        or (
            of.mean - winner.mean < max(NEARLY, math.hypot(of.error, winner.error))
            and at_size.is_faster(name, ERROR_LEVEL)
        )
    }


def _fewest_switches(options: Sequence[Mapping[str, float]]) -> list[str]:
    """Return an option of each size, with the fewest changes, then the least loss."""
    paths: list[tuple[int, float, list[str]]] = [(0, 0.0, [])]
    for losses in options:
        paths = [
            min(
                (switches + (path[-1:] not in ([], [name])), lost + loss, [*path, name])
                for switches, lost, path in paths
            )
            for name, loss in losses.items()
        ]
    return min(paths)[2]


def _filled(points: Sequence[Point], measured: Mapping[int, SizeMeasurements]) -> list[Point]:
    """Return the points; open ones take the method of both neighbours, where these agree."""
    found = list(points)
    settled = [index for index, point in enumerate(points) if point.settled]
    for before, after in pairwise(settled):
        method = points[before].method
        for index in range(before + 1, after):
            at_size = measured[points[index].case.bytes]
            if points[after].method == method and not at_size.excludes(method):
                found[index] = _followed(at_size, method)
    return found


def _followed(at_size: SizeMeasurements, method: str) -> Point:
    """Return the open point that takes the method of other sizes or layouts."""
    status = SizeStatus(method, OPEN, method, at_size.faster_level)
    if method == at_size.default:
        status = at_size.status()
    return _point(at_size, status)._replace(filled=True)


def _point(at_size: SizeMeasurements, status: SizeStatus) -> Point:
    """Return the decision with its evidence."""
    ratios = tuple(
        _ratio(name, contrast, status.error_level) for name, contrast in at_size.contrasts.items()
    )
    shown = next((ratio for ratio in ratios if ratio.method == status.challenger), None)
    cell = next(cell for cell in at_size.cells[::-1] if cell.key.method == status.method)
    more = at_size.more_launches() if status.word == OPEN else 0
    contrast = at_size.contrasts.get(status.challenger or "")
    least = at_size.least_log
    return Point(
        campaign=cell.key.campaign,
        case=cell.key.case,
        mmax=cell.features.mmax,
        mavg=round(cell.features.mavg, MAVG_DIGITS),
        method=status.method,
        status=at_size.shown(status),
        challenger=status.challenger,
        ratio=shown.ratio if shown else None,
        ratio_low=shown.low if shown else None,
        ratio_high=shown.high if shown else None,
        launches=contrast.launches if contrast else len(at_size.cells[0].parts),
        level=1 - 2 * status.error_level if any(its.low is not None for its in ratios) else None,
        may_lose=max(_exp(-least) - 1, 0.0) if math.isfinite(least) else None,
        more_launches=more,
        more_s=more * (START_S + ROUNDS * OVERHEAD * at_size.round_s()) if more else 0.0,
        staggered=at_size.staggered_bounds(status.method)[1] < 0,
        ratios=ratios,
    )


def _ratio(method: str, contrast: Contrast, error_level: float) -> Ratio:
    """Return the ratio of a method, alone where too little is known of its error."""
    low, high = contrast.bounds(error_level)
    ratio = Ratio(method, _exp(contrast.mean))
    if not math.isfinite(high - low):
        return ratio
    error = None if contrast.exact else contrast.error
    return ratio._replace(low=_exp(low), high=_exp(high), error=error)


def _exp(log: float) -> float:
    """Return a finite exponential even of an infinite logarithm, as JSON has no infinity."""
    return math.exp(max(min(log, 700.0), -700.0))
