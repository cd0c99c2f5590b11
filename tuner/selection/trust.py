"""The disturbed parts of a campaign by canary, drift, clock and load. No input or output.

No check knows of methods, so that doubting disturbed parts favours none. A canary is a ping-pong
of 8 bytes in every round. After large exchanges it is slower: caches are cold, and other ranks are
still at work. So the usual value at their size is subtracted before canaries are compared. What
others do to a network is part of what is measured: launches that met it keep their weight.
"""

import math
import statistics
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from tuner import stats
from tuner.domain.cases import Case, CellKey, Layout
from tuner.domain.records import Cell, Header, Part
from tuner.domain.tables import Provenance
from tuner.units import share_text

SLOW = math.log(2)
"""Logarithm of the slowdown from which a canary shows a disturbance."""

DEVIATIONS = 5.0
"""The least slowdown in standard deviations of the fast canaries, for where those vary much."""

DRIFT_NOISY, DRIFT_MOST = math.log(1.25), math.log(2)
"""Limits of how much slower, or faster, all methods may be in the second half of the rounds."""

LATE_MOST = 0.5
"""The share of samples for which ranks may miss the common start, where all have a core."""

COARSE_TICK_S = 1e-6
"""Ticks of clocks above this are noted."""

OTHERS_MOST = 0.08
"""The share of their cores' time that other processes may take.

On an idle machine of two cores one in seventy launches on two ranks is above it, and nearly all are
beside a process that spins."""

LOAD_ABOVE_OWN = 0.5
"""Allowed load average above the most processes that the campaign itself ran at once."""

CLEAN, NOISY, CONTAMINATED = "clean", "noisy", "contaminated"
DISTURBED_CLEAN, DISTURBED_NOISY, NOISY_CLEAN = 0.02, 0.1, 0.1
"""The largest shares of disturbed and of noisy parts in campaigns of these states."""

CAUSES = {
    "canary": "other load detected",
    "drift": "the machine's speed changed within launches",
    "clock": "ranks missed the common start",
}
"""The reasons for which parts count less (tuner/selection/pairing.py)."""

_FAST = (0.05, 0.25)
"""Quantiles of launches that define the usual value: half of a campaign may be disturbed."""

_MIDDLE = (0.25, 0.5)
"""Quantiles of the time that a size adds within a launch; other work slows launches as a whole."""

_Series = tuple[str, Case]  # campaign and case, without its size
_Alike = tuple[str, Layout, str]  # campaign, layout and scheme of comparable canaries


class _Canary(NamedTuple):
    """The usual canary at a size, and the slowest with which a launch counts."""

    usual_s: float
    slowest_s: float


_UNKNOWN = _Canary(math.inf, math.inf)


class Allocation(NamedTuple):
    """A batch system's job, and when a launch in it began."""

    name: str
    began: datetime


class Trust:
    """The results of the checks on launches' parts of cells.

    headers: those of launches, by id; a launch without a header passes their checks. drifts:
    whether drift within launches counts, which only cells with samples show. `dates` are those of
    launches.
    """

    def __init__(
        self,
        cells: Sequence[Cell],
        headers: Mapping[int, Header] | None = None,
        *,
        drifts: bool = True,
    ) -> None:
        self._canaries = _canaries(cells)
        self._drifts = _drifts(cells) if drifts else {}
        self._unsure = _unsure(headers or {})
        self.dates = {launch: header.date for launch, header in (headers or {}).items()}
        self.allocations = {
            launch: Allocation(header.allocation, datetime.fromisoformat(header.date))
            for launch, header in (headers or {}).items()
            if header.allocation
        }

    def judged(self, cell: Cell) -> Iterator[tuple[Part, str, bool]]:
        """Yield each part, what disturbed it (one of CAUSES, or ""), and whether it is noisy."""
        key = cell.key
        slowest_s = self._canary(cell).slowest_s
        late_most = math.inf if key.case.layout.oversubscribed else LATE_MOST
        for part in map(Part._make, cell.parts.tolist()):
            drift = abs(self._drifts.get((part.launch, key.case.size_bytes), 0.0))
            cause = ""
            if part.canary_s > slowest_s:
                cause = "canary"
            elif drift > DRIFT_MOST:
                cause = "drift"
            elif part.late > late_most * part.samples:
                cause = "clock"
            yield part, cause, drift > DRIFT_NOISY or part.launch in self._unsure

    def slowdown(self, cell: Cell) -> float:
        """Return the median canary of launches as a multiple of the usual one; 0 if unknown."""
        return float(np.median(cell.parts["canary_s"])) / self._canary(cell).usual_s

    def _canary(self, cell: Cell) -> _Canary:
        return self._canaries.get((_series(cell.key), cell.key.case.size_bytes), _UNKNOWN)

    def disturbed(self, cell: Cell) -> set[int]:
        """Return the launches that something disturbed."""
        return {part.launch for part, cause, _ in self.judged(cell) if cause}


class Shares(NamedTuple):
    """Shares of all parts: disturbed ones, which count less, by cause, and noisy ones."""

    disturbed: dict[str, float]
    noisy: float


def shares(cells: Iterable[Cell], trust: Trust) -> Shares:
    """Return the shares of parts that the checks doubt."""
    counts: Counter[str] = Counter()
    parts = 0
    for cell in cells:
        for _, cause, noisy in trust.judged(cell):
            parts += 1
            counts[cause or NOISY] += bool(cause) or noisy
    of_noisy = counts.pop(NOISY, 0) / max(parts, 1)
    return Shares({cause: count / parts for cause, count in sorted(counts.items())}, of_noisy)


def state(disturbed: float, noisy: float) -> str:
    """Return a word for the state of a campaign with these shares of doubtful parts."""
    if disturbed > DISTURBED_NOISY:
        return CONTAMINATED
    return NOISY if disturbed > DISTURBED_CLEAN or noisy > NOISY_CLEAN else CLEAN


def notes(provenance: Provenance) -> list[str]:
    """Return what a reader must know before trusting the measurements, one line each."""
    disturbed, noisy = provenance.disturbed, provenance.noisy
    word = state(disturbed, noisy)
    if word == CLEAN:
        return []
    lines = [
        f"{word}: {_per_cent(share)} counts a ninth: {CAUSES[cause]}"
        for cause, share in provenance.refused.items()
        if cause in CAUSES  # a store from elsewhere may have any
    ]
    if noisy > NOISY_CLEAN:
        lines.append(
            f"{word}: {_per_cent(noisy)} with load on nodes or network, drift or a coarse clock"
        )
    return lines


def _per_cent(share: float) -> str:
    return "under 1 %" if 0 < share < 0.01 else share_text(share, 0)


def _alike(series: _Series) -> _Alike:
    campaign, case = series
    return campaign, case.layout, case.sync


def _series(key: CellKey) -> _Series:
    return key.campaign, key.case._replace(size_bytes=0, bytes=0)


def _canaries(cells: Iterable[Cell]) -> dict[tuple[_Series, int], _Canary]:
    """Return what canaries are usual, by size in bytes.

    It is the usual value at the least size of a case, and what the size usually adds; the limit has
    a margin above.
    """
    canaries: dict[_Series, dict[int, dict[int, list[float]]]]
    canaries = defaultdict(lambda: defaultdict(lambda: defaultdict(list)))
    for cell in cells:
        launches = canaries[_series(cell.key)]
        for launch, canary_s in cell.parts[["launch", "canary_s"]].tolist():
            launches[launch][cell.key.case.size_bytes].append(canary_s)
    least: dict[_Alike, list[float]] = defaultdict(list)
    added: dict[tuple[_Series, int], list[float]] = {}
    for series, of_launches in canaries.items():
        bases, its_added = _bases(list(of_launches.values()))
        least[_alike(series)] += bases
        added |= {(series, size): logs for size, logs in its_added.items()}
    usual = {alike: _usual(logs, _FAST) for alike, logs in least.items() if logs}
    found = {}
    for (series, size), logs in added.items():
        at_least, deviation = usual[_alike(series)]
        more, its_deviation = _usual(logs, _MIDDLE)
        margin = max(SLOW, DEVIATIONS * deviation, DEVIATIONS * its_deviation)
        log = at_least + max(more, 0.0)
        found[series, size] = _Canary(math.exp(log), math.exp(log + margin))
    return found


def _bases(
    launches: Iterable[dict[int, list[float]]],
) -> tuple[list[float], dict[int, list[float]]]:
    """Return the canaries at the least size of a case, and by size what it adds in each launch.

    All are logarithms. Launches that did not measure the least size, as races leave settled sizes
    out, are reduced by what their own least usually adds, if need be between measured ones, and say
    nothing of the least size. Beyond these nothing is usual.
    """
    medians = [{size: statistics.median(its) for size, its in of.items()} for of in launches]
    logs = [{size: math.log(s) for size, s in of.items()} for of in medians if min(of.values()) > 0]
    first = min((size for of in logs for size in of), default=0)
    added: dict[int, list[float]] = defaultdict(list)
    for of in logs:
        for size in of.keys() if first in of else ():
            added[size].append(of[size] - of[first])
    usual = {size: max(_usual(its, _MIDDLE)[0], 0.0) for size, its in sorted(added.items())}
    bases = []
    for of in logs:
        own = min(of)
        if first in of:
            bases.append(of[own])
            continue
        if own > max(usual):
            continue  # nothing says what is usual there
        more = np.interp(math.log1p(own), np.log1p([*usual]), [*usual.values()])
        base = of[own] - float(more)
        for size in of:
            if size != own or size not in usual:
                added[size].append(of[size] - base)
    return bases, added


def _usual(logs: list[float], quantiles: tuple[float, float]) -> tuple[float, float]:
    """Return the upper quantile, and the standard deviation that follows from both."""
    low, high = np.quantile(logs, quantiles)
    below, above = map(NormalDist().inv_cdf, quantiles)
    return float(high), float((high - low) / (above - below))


def _drifts(cells: Iterable[Cell]) -> dict[tuple[int, int], float]:
    """Return how much slower the second half of the rounds was by launch and size, as a logarithm.

    It is the mean over methods, which were all in the same rounds.
    """
    whole = [cell for cell in cells if len(cell.samples_s)]
    if not whole:
        return {}
    counts = np.concatenate([cell.parts["samples"] for cell in whole]).astype(np.int64)
    launches = np.concatenate([cell.parts["launch"] for cell in whole]).tolist()
    sizes = np.repeat([cell.key.case.size_bytes for cell in whole], [len(c.parts) for c in whole])
    enough = counts >= 2 * stats.MIN_SAMPLES
    halves = np.column_stack([counts // 2, counts - counts // 2])
    lengths = halves.ravel()
    ordered = stats.sort_segments(np.concatenate([cell.samples_s for cell in whole]), lengths)
    some = lengths > 0
    medians = np.ones(len(lengths))
    medians[some] = stats.segment_quantiles(ordered, lengths[some], 0.5)
    logs = np.log(medians[1::2] / medians[::2])
    found: dict[tuple[int, int], list[float]] = defaultdict(list)
    for launch, size, log, counted in zip(
        launches, sizes.tolist(), logs.tolist(), enough.tolist(), strict=True
    ):
        if counted:
            found[launch, size].append(log)
    return {where: sum(each) / len(each) for where, each in found.items()}


def _unsure(headers: Mapping[int, Header]) -> set[int]:
    """Return the launches beside other work, through a busy network, or with a coarse clock.

    Others at work on the node need not disturb: they may have cores that the ranks do not use.
    """
    own: dict[str, int] = defaultdict(int)
    crossings: dict[tuple[str, int, int], list[float]] = defaultdict(list)
    for header in headers.values():
        own[header.campaign] = max(own[header.campaign], header.procs)
        if header.crossing_s > 0:
            crossings[_spread(header)].append(math.log(header.crossing_s))
    usual = {where: _usual(logs, _FAST)[0] for where, logs in crossings.items()}
    return {
        launch
        for launch, header in headers.items()
        if _is_beside_others(header, own[header.campaign])
        or header.clock.tick_s > COARSE_TICK_S
        or (header.crossing_s > 0 and math.log(header.crossing_s) > usual[_spread(header)] + SLOW)
    }


def _is_beside_others(header: Header, own: int) -> bool:
    """Return whether others took much of the cores, or, where that is not known, load says so.

    own: the most processes that the campaign ran at once.
    """
    if header.others is not None:
        return header.others > OTHERS_MOST
    return header.load[0] > own + LOAD_ABOVE_OWN


def _spread(header: Header) -> tuple[str, int, int]:
    return header.campaign, header.procs, header.nodes
