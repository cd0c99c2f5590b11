"""The cells whose times differ between two campaigns, by operation. No input or output.

docs/explanation/statistics.md explains the test.
"""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from tuner import stats
from tuner.domain.cases import Case
from tuner.domain.records import Cell
from tuner.machine.simulation import machines
from tuner.selection.ratios import Log, logs_of, mean
from tuner.selection.trust import Trust

FALSE_DISCOVERIES = 0.05
"""The expected share of false changes among the reported ones."""

ROUNDING = 1e-6
"""The relative rounding of exact times, which are kept in single precision."""


class Where(NamedTuple):
    """The key that two compared cells share: all but system and campaign."""

    case: Case
    method: str


@dataclass(frozen=True, slots=True)
class Change:
    """The time of a cell in B / its time in A, with the 95 % interval, and the p of the test."""

    where: Where
    ratio: float
    low: float
    high: float
    p: float


@dataclass(frozen=True, slots=True)
class Shift:
    """The change of an operation.

    `ratio` is time in B / time in A, the geometric mean over the compared cells. `effect` is the
    geometric mean of the factors by which they changed, up or down; unchanged cells count as 1.
    `unchanged` are the cells with launches enough for a test that did not find a difference.
    """

    operation: str
    compared: int
    ratio: float
    effect: float
    changes: list[Change]  # the largest first
    unchanged: list[Change]


Medians = dict[Where, dict[tuple[str, int], Log]]
"""Logarithms of the median seconds of every launch that counts."""


def exact_in(cells: Sequence[Cell]) -> bool:
    """Return whether a system's cells are of a simulated machine, where launches do not differ."""
    return bool(cells) and machines.is_simulated(cells[0].key.system)


def medians_of(cells: Sequence[Cell]) -> Medians:
    """Return the medians that are compared, of ranks that arrived together.

    Samples are not needed, so that drift within launches does not count.
    """
    found: Medians = {}
    trust = Trust(cells, drifts=False)
    for cell, logs in logs_of((cell for cell in cells if not cell.key.case.staggered), trust):
        medians = {(cell.key.campaign, launch): log for launch, log in logs.items()}
        if medians:
            found.setdefault(Where(cell.key.case, cell.key.method), {}).update(medians)
    return found


def shifts(a: Medians, b: Medians, *, exact: bool) -> list[Shift]:
    """Return the shifts of the operations, the one with the largest effect first.

    A cell changed when it differs by more than its launches do. A small share of all changes is
    expected to be false, and none where times are exact.
    """
    logs: dict[str, list[float]] = defaultdict(list)
    alike: dict[tuple[int, int], list[_Pair]] = defaultdict(list)  # by their numbers of launches
    for where, mine in a.items():
        if theirs := b.get(where):
            logs[where.case.operation].append(mean(theirs.values()) - mean(mine.values()))
            alike[len(mine), len(theirs)].append((where, [*mine.values()], [*theirs.values()]))
    changed: dict[str, list[Change]] = {operation: [] for operation in logs}
    unchanged: dict[str, list[Change]] = {operation: [] for operation in logs}
    for change, is_found in _changes(alike, exact=exact):
        (changed if is_found else unchanged)[change.where.case.operation].append(change)
    found = [
        Shift(
            operation,
            compared=len(of),
            ratio=math.exp(sum(of) / len(of)),
            effect=math.exp(sum(map(_log, changed[operation])) / len(of)),
            changes=sorted(changed[operation], key=largest_first),
            unchanged=unchanged[operation],
        )
        for operation, of in logs.items()
    ]
    return sorted(found, key=lambda shift: (-shift.effect, shift.operation))


_Pair = tuple[Where, list[Log], list[Log]]
"""A cell, with the logarithms of its launches in A and in B."""


def _changes(
    alike: Mapping[tuple[int, int], list[_Pair]], *, exact: bool
) -> Iterator[tuple[Change, bool]]:
    """Yield the cells that can be tested, and whether a difference was found."""
    tested: list[Where] = []
    differences: list[np.ndarray[Any, np.dtype[np.float64]]] = []
    p: list[float] = []
    for launches, pairs in alike.items():
        (mine, weights), (theirs, others_weights) = (
            np.moveaxis(np.array([pair[side] for pair in pairs]), -1, 0) for side in (1, 2)
        )
        if exact:
            shift = theirs.mean(axis=1) - mine.mean(axis=1)
            differences.append(np.array([shift] * 3))
            p += (np.abs(shift) <= ROUNDING).astype(float).tolist()
        elif min(launches) > 1:
            test = stats.welch(mine, theirs, weights, others_weights)
            differences.append(np.array([test.difference, test.low, test.high]))
            p += test.p.tolist()
        else:
            continue
        tested += [where for where, *_ in pairs]
    if tested:
        ratios = np.exp(np.concatenate(differences, axis=1)).T.tolist()
        found = stats.discoveries(np.array(p), FALSE_DISCOVERIES).tolist()
        for where, (ratio, low, high), its_p, is_found in zip(
            tested, ratios, p, found, strict=True
        ):
            yield Change(where, ratio, low, high, its_p), is_found


def _log(change: Change) -> float:
    """Return the size of a change, up or down, as a logarithm."""
    return abs(math.log(change.ratio))


def largest_first(change: Change) -> float:
    """Return a key that sorts the largest first."""
    return -_log(change)
