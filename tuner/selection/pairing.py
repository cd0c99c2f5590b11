"""Launches that have both a method and the default, and the logarithms of their ratios.

Rounds are paired within launches (docs/explanation/statistics.md). The module does no input or
output.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tuner import stats
from tuner.domain.cases import Case, DegreeClass
from tuner.domain.operations import BY_ENVIRONMENT, DEFAULT_METHODS
from tuner.domain.records import Cell
from tuner.machine.simulation import machines
from tuner.selection.intervals import degree_class_of
from tuner.selection.trust import Trust
from tuner.stats import Floats, Integers

DISTURBED_WEIGHT = 1 / 9
"""The weight of a launch that load on its own nodes disturbed, relative to another's."""

LEAST_ROUNDS = 3
"""Rounds of a launch that counts: a single stall may move the median of fewer anywhere."""

_NORMAL_IQR = 1.349  # of the standard normal distribution


class Key(NamedTuple):
    """The method of a contrast, and the size of the degree class."""

    degree_class: DegreeClass
    bytes: int
    method: str


@dataclass(slots=True)
class MethodPair:
    """The launches that have both a method and the default, for one case of one campaign.

    Each launch has the logarithm of the median ratio, its rounds, their spread as a standard
    deviation (NaN where they are too few), and a weight.
    """

    key: Key
    case: Case
    launches: list[int]
    values: Floats
    rounds: Integers
    spreads: Floats
    weights: Floats


def pairs_of(cells: Iterable[Cell], trust: Trust) -> Iterator[MethodPair]:
    """Yield the launches of every method with those of its default."""
    cases: dict[tuple[str, Case], dict[str, Cell]] = defaultdict(dict)
    for cell in cells:
        cases[cell.key.campaign, cell.key.case][cell.key.method] = cell
    for (_, case), methods in cases.items():
        default = methods.get(DEFAULT_METHODS[case.operation])
        if default is None:
            continue
        doubted = trust.disturbed(default)
        for method, cell in methods.items():
            if cell is default:
                continue
            key = Key(
                degree_class_of(case, cell.features.mmax, cell.features.mavg), case.bytes, method
            )
            pair = _by_launch if method.startswith(BY_ENVIRONMENT) else _by_round
            found = pair(cell, default)
            if not machines.is_simulated(cell.key.system):
                found = _counting(found)
            disturbed = doubted | trust.disturbed(cell)
            weights = [
                1.0 if disturbed.isdisjoint(both) else DISTURBED_WEIGHT
                for both in zip(found.launches, found.beside, strict=True)
            ]
            if found.launches:
                ratios = found.values, found.rounds, found.spreads
                yield MethodPair(key, case, found.launches, *ratios, np.array(weights))


class _Ratios(NamedTuple):
    """The ratios of launches, and the launches of the default beside them."""

    launches: list[int]
    beside: list[int]
    values: Floats
    rounds: Integers
    spreads: Floats


def _counting(found: _Ratios) -> _Ratios:
    """Return the launches with enough rounds."""
    (kept,) = np.nonzero(found.rounds >= LEAST_ROUNDS)
    launches, beside = ([of[index] for index in kept] for of in (found.launches, found.beside))
    return _Ratios(launches, beside, found.values[kept], found.rounds[kept], found.spreads[kept])


def _by_round(mine: Cell, other: Cell) -> _Ratios:
    """Return the ratios of methods that stand in the same rounds."""
    launches, rounds = mine.parts["launch"], mine.parts["samples"].astype(np.int64)
    same = np.array_equal(mine.parts["samples"], other.parts["samples"])
    if (
        same
        and np.array_equal(launches, other.parts["launch"])
        and np.array_equal(mine.rounds, other.rounds)
    ):
        ratios = mine.samples_s / other.samples_s
    else:
        numbers = {launch: number for number, launch in enumerate(launches.tolist())}
        theirs = [numbers.get(launch, -1) for launch in other.parts["launch"].tolist()]
        keys = [
            (np.repeat(of, cell.parts["samples"]).astype(np.int64) << 16) + cell.rounds
            for cell, of in ((mine, np.arange(len(launches))), (other, np.array(theirs)))
        ]
        common, here, there = np.intersect1d(keys[0], keys[1], return_indices=True)
        ratios = mine.samples_s[here] / other.samples_s[there]
        rounds = np.bincount(common >> 16, minlength=len(launches))
    some = rounds > 0
    values, spreads = _centres(ratios, rounds[some])
    kept = launches[some].tolist()
    return _Ratios(kept, kept, values, rounds[some], spreads)


def _by_launch(mine: Cell, other: Cell) -> _Ratios:
    """Return the ratios of methods that hold for whole launches, paired by the launches' numbers.

    They have no common rounds, so the spreads of both are added.
    """
    numbers = {number: index for index, number in enumerate(other.parts["number"].tolist())}
    beside = np.array([numbers.get(of, -1) for of in mine.parts["number"].tolist()], np.int64)
    (here,) = np.nonzero(beside >= 0)
    there = beside[here]
    rounds = [cell.parts["samples"].astype(np.int64) for cell in (mine, other)]
    own, theirs = _centres(mine.samples_s, rounds[0]), _centres(other.samples_s, rounds[1])
    return _Ratios(
        mine.parts["launch"][here].tolist(),
        other.parts["launch"][there].tolist(),
        own[0][here] - theirs[0][there],
        np.minimum(rounds[0][here], rounds[1][there]),
        np.hypot(own[1][here], theirs[1][there]),
    )


def _centres(values: np.ndarray, lengths: Integers) -> tuple[Floats, Floats]:
    """Return the logarithms of segments' medians, and robust standard deviations of logarithms.

    A deviation is that of a normal distribution with these quartiles, those of few samples being
    too close; it is NaN for one sample.
    """
    if not len(lengths):
        return np.empty(0), np.empty(0)
    ordered = stats.sort_segments(values, lengths)
    low, middle, high = np.log(stats.segment_quantiles(ordered, lengths, (0.25, 0.5, 0.75)))
    with np.errstate(invalid="ignore", divide="ignore"):
        spreads = (high - low) / _NORMAL_IQR / (1 - 1.25 / lengths)
    return middle, np.where(lengths > 1, spreads, np.nan)
