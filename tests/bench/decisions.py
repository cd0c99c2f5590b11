"""Share of sizes that decisions settle, and their error rate.

On measurements: the sizes that are open on results/sample and on a first campaign, before variances
were pooled (tests/data/decisions-before.json) and now, each decision that changed with its reason,
and winners that decisions from half of the launches choose and the other half contradicts. On
simulated launches with heavy tails: winners among equal methods, looking after each of 2 to 24
launches and through a whole campaign that plans by its results, and in few jobs or with few
patterns between which methods differ, the coverage of bounds and of the intervals of verdicts, and
the share of gains that are found, beside that which the same test finds where it knows all
variances. It exits with 1 when a bar is missed.
Run from the checkout: python -m tests.bench.decisions
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import tarfile
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from tests import synthetic
from tests.bench.planning import MACHINES, PROCS
from tests.bench.report import Figure, conclude, options_of
from tests.synthetic_plan import cells_of, measure
from tuner import stats
from tuner.domain.cases import Case, CellKey, Layout
from tuner.domain.operations import DEFAULT_METHODS
from tuner.domain.records import PART, Cell, Features, Header
from tuner.domain.tables import FASTER, OPEN, WON, Point
from tuner.paths import CHECKOUT
from tuner.rawfile.ingest import ingest
from tuner.rawfile.reading import read_header
from tuner.selection.contrasts import contrasts_of
from tuner.selection.decisions import ERROR_LEVEL, LOOKS, decide
from tuner.selection.evidence import verdict
from tuner.selection.intervals import degree_class_of
from tuner.selection.pairing import Key
from tuner.selection.trust import Trust

DATA = CHECKOUT / "tests" / "data"
EARLIER = {"tie": OPEN, "undecided": OPEN}

WRONG, OFF = 0.02, 0.02
SETTLED_WITH_CORES, SETTLED_OVERSUBSCRIBED = 0.8, 0.6
GAINS = {1.1: 0.03, 1.25: 0.52, 2.7: 0.97}
"""Gains, and the least share of them that six launches are to find."""

SERIES, SERIES_LAUNCHES, SPREADS = (2, 3), 4, (0.0, 0.03, 0.1)
"""Jobs or patterns, the launches of each, and the spread between them, of logarithms."""
SERIES_GAIN = 1.25

LOOKED_AFTER = range(2, 25)
LAUNCHES, RIVALS = 6, 6
OF_SIZES = "of the sizes"


def take(cells: Iterable[Cell], kept: slice) -> list[Cell]:
    """Return the cells with some of their launches, by place in their order."""
    found = []
    for cell in cells:
        parts = cell.parts[kept]
        pieces = [cell.of_launch(int(launch)) for launch in parts["launch"]]
        if pieces:
            rounds, samples_s = (np.concatenate(each) for each in zip(*pieces, strict=True))
            found.append(replace(cell, parts=parts, rounds=rounds, samples_s=samples_s))
    return found


# ---- Measurements ----


def measured(name: str, cells: list[Cell], before: list[list[Any]]) -> list[Figure]:
    """Print what changed, and return the figures of one store."""
    points = decide(cells)
    earlier = {tuple(row[:-2]): row[-2:] for row in before}
    for point in points:
        its = point.case
        where = (*its.of_any_degree[:3], point.mmax, point.mavg, its.bytes)
        method, status = earlier.get(where, ("", ""))
        if (method, EARLIER.get(status, status)) != (point.method, point.status):
            place = f"{its.operation} of {its.bytes} B on {its.layout.nodes} x {its.layout.ppn}"
            print(f"{name}: {place}: {method} {status} -> {point.status}: {verdict(point)}")
    open_before = sum(status in EARLIER for *_, status in before)
    share_before = open_before / len(before)
    share = sum(not point.settled for point in points) / len(points)
    figures = [
        Figure(f"{name}: open before", share_before, OF_SIZES),
        Figure(f"{name}: open", share, OF_SIZES, most=share_before),
    ]
    for what, over, least in (
        ("with cores", False, SETTLED_WITH_CORES),
        ("oversubscribed", True, SETTLED_OVERSUBSCRIBED),
    ):
        here = [point.settled for point in points if point.case.layout.oversubscribed == over]
        if here:
            share = float(np.mean(here))
            figures.append(Figure(f"{name}: settled, {what}", share, OF_SIZES, least=least))
    return figures


def contradicted(cells: list[Cell]) -> Counter[str]:
    """Count winners by half of the launches, and those that the other half shows to be slower."""
    counts: Counter[str] = Counter()
    halves = take(cells, slice(0, None, 2)), take(cells, slice(1, None, 2))
    for mine, others in (halves, halves[::-1]):
        judges = contrasts_of(others, Trust(others))
        for point in decide(mine):
            degree_class = degree_class_of(point.case, point.mmax, point.mavg)
            judge = judges.get(Key(degree_class, point.case.bytes, point.method))
            if point.status == FASTER and judge:
                counts["winners"] += 1
                counts["contradicted"] += judge.bounds(ERROR_LEVEL)[0] > 0
    return counts


# ---- Simulations ----

OPERATIONS = ("exchange", "discovery", "bcast", "allreduce", "allgather", "alltoall")
SIZES = tuple(8 * 4**power for power in range(8))
LAUNCH_NOISE, SHARED = 0.1, 0.7  # of the logarithm; the share of its variance that sizes share
SERIES_NOISE = 0.02  # of launches of a job or pattern, small beside what differs between these
SAMPLE_NOISE, SLOW, SLOWER = 0.08, 0.08, 3.0  # some samples are so many times as slow


def simulated(random: np.random.Generator, methods: int, rounds: int, gain: float) -> list[Cell]:
    """Return the cells of a system, the first of whose methods is `gain` times as fast as others.

    Launches have t-distributed effects on each method, mostly the same at all sizes.
    """
    cells = []
    for number, (operation, procs) in enumerate((op, n) for op in OPERATIONS for n in PROCS):
        names = [DEFAULT_METHODS[operation], *(f"method{index}" for index in range(methods))]
        noise = SAMPLE_NOISE * (1 if procs == min(PROCS) else 3)
        scale = _scale(random)
        shared = random.standard_t(4, (LOOKED_AFTER[-1], len(names)))
        for size in SIZES:
            own = random.standard_t(4, shared.shape)
            effects = scale * (math.sqrt(SHARED) * shared + math.sqrt(1 - SHARED) * own)
            drift = random.normal(0, 0.02, (LOOKED_AFTER[-1], rounds)).cumsum(axis=1)
            for index, name in enumerate(names):
                logs = effects[:, index, None] + drift + random.normal(0, noise, drift.shape)
                slow = np.where(random.random(drift.shape) < SLOW, SLOWER, 1.0)
                samples_s = 1e-5 / (gain if index == 1 else 1) * np.exp(logs) * slow
                cells.append(_cell(operation, procs, size, name, number, samples_s))
    return cells


def _scale(random: np.random.Generator) -> float:
    """Return the scale of one layout's effects of launches, which are t-distributed."""
    return LAUNCH_NOISE * math.exp(random.normal(0, 0.3)) / math.sqrt(2)


def _cell(
    operation: str, procs: int, size: int, method: str, first: int, samples_s: np.ndarray
) -> Cell:
    layout = Layout(procs, 1, procs, False)
    key = CellKey("local", "A", Case(operation, "blocks", layout, "window", size, size), method)
    launches, rounds = samples_s.shape
    medians_s = np.median(samples_s, axis=1)
    parts = [(n, 1000 * first + n, rounds, 0, medians_s[n], 1e-5, 1e-6) for n in range(launches)]
    numbers = np.tile(np.arange(rounds, dtype=np.uint16), launches)
    samples = samples_s.astype(np.float32).ravel()
    return Cell(key, Features(0, 0.0, size, size, "{}"), np.array(parts, PART), numbers, samples)


def false_winners(random: np.random.Generator, methods: int = 8, rounds: int = 16) -> list[bool]:
    """Return for each size whether equal methods ever won, looking after each further launch."""
    cells = simulated(random, methods, rounds, 1.0)
    won: dict[Case, bool] = defaultdict(bool)
    for launches in LOOKED_AFTER:
        for point in decide(take(cells, slice(launches))):
            won[point.case] |= point.status == FASTER
    return list(won.values())


def covered(random: np.random.Generator) -> list[float]:
    """Return how often bounds at ERROR_LEVEL lie on the right side of the truth."""
    cells = take(simulated(random, RIVALS, 16, 1.0), slice(LAUNCHES))
    return right_sides(cells, Trust(cells))


def right_sides(cells: list[Cell], trust: Trust) -> list[float]:
    """Return for each bound of equal methods at ERROR_LEVEL whether it is on the right side."""
    ends = [its.bounds(ERROR_LEVEL) for its in contrasts_of(cells, trust).values()]
    return [float(side) for low, high in ends for side in (low <= 0, high >= 0)]


def of_series(seeds: int) -> Iterator[Figure]:
    """Yield the figures of few jobs and patterns, of equal methods and of one that gains."""
    for in_jobs, count, spread in product((True, False), SERIES, SPREADS):
        name = f"{count} {'jobs' if in_jobs else 'patterns'} that differ by {spread:.0%}"
        randoms = [np.random.default_rng((4, seed)) for seed in range(seeds)]
        equal = [in_series(random, count, spread, in_jobs) for random in randoms]
        wrong = [point.status in WON for of_seed in equal for point in decide(*of_seed)]
        yield Figure(f"{name}: winners", float(np.mean(wrong)), OF_SIZES, WRONG)
        sides = [side for of_seed in equal for side in right_sides(*of_seed)]
        missed = 1 - float(np.mean(sides))
        yield Figure(f"{name}: wrong bounds", missed, "of bounds", ERROR_LEVEL + OFF)
        gains = [in_series(random, count, spread, in_jobs, SERIES_GAIN) for random in randoms]
        shown = [point.status in WON for of_seed in gains for point in decide(*of_seed)]
        yield Figure(f"{name}, gain {SERIES_GAIN}: found", float(np.mean(shown)), OF_SIZES)


def in_series(
    random: np.random.Generator, count: int, spread: float, in_jobs: bool, gain: float = 1.0
) -> tuple[list[Cell], Trust]:
    """Return launches in so many jobs, an hour apart, or with so many patterns.

    What a method differs by in one of them is the same at all sizes. One method gains. Jobs move
    all methods, patterns only every other one, and not the default.
    """
    header = read_header(json.dumps(synthetic.header(synthetic.Campaign(), 0, "hub", 2)).encode())
    assert header is not None
    cells: list[Cell] = []
    headers: dict[int, Header] = {}
    for number, (operation, procs) in enumerate((op, n) for op in OPERATIONS for n in PROCS):
        names = [DEFAULT_METHODS[operation], *(f"method{index}" for index in range(RIVALS))]
        effects = random.normal(0, spread, (count, len(names)))
        if not in_jobs:
            effects[:, ::2] = 0
        effects[:, 1] -= math.log(gain)
        for series, size, index in product(range(count), SIZES[::4], range(len(names))):
            launches = random.normal(effects[series, index], SERIES_NOISE, (SERIES_LAUNCHES, 1))
            samples_s = 1e-5 * np.exp(
                launches + random.normal(0, SAMPLE_NOISE, (SERIES_LAUNCHES, 16))
            )
            found = _cell(operation, procs, size, names[index], 10 * number + series, samples_s)
            case = found.key.case._replace(pattern="blocks" if in_jobs else f"blocks{series}")
            cells.append(replace(found, key=found.key._replace(campaign=str(series), case=case)))
            date = datetime(2026, 11, 21, series, tzinfo=UTC).isoformat()
            of_job = replace(header, allocation=f"job{series}" if in_jobs else "", date=date)
            headers |= dict.fromkeys(found.parts["launch"].tolist(), of_job)
    return cells, Trust(cells, headers)


def gained(random: np.random.Generator, gain: float) -> list[Point]:
    """Return the decisions of six launches in which one method gains."""
    return decide(take(simulated(random, RIVALS, 16, gain), slice(LAUNCHES)))


def off_level(points: Iterable[Point], gain: float) -> list[float]:
    """Return for each verdict that has an interval how far its coverage of the truth is off."""
    off = []
    for point in points:
        if point.ratio_low is not None and point.ratio_high is not None and point.level:
            truth = 1 / gain if point.challenger == "method0" else 1.0
            off.append((point.ratio_low <= truth <= point.ratio_high) - point.level)
    return off


def findable(random: np.random.Generator, gain: float) -> list[bool]:
    """Return for samples without noise whether a test that knows the variances finds the gain."""
    shown = []
    for _ in range(1000):
        scale = _scale(random)
        default, method = scale * random.standard_t(4, (2, LAUNCHES)).mean(axis=1)
        error = scale * math.sqrt(2 * 2 / LAUNCHES)  # t with 4 degrees of freedom has variance 2
        reach = stats.student(math.inf, 1 - ERROR_LEVEL / LOOKS / RIVALS) * error
        shown.append(bool(method - default - math.log(gain) + reach < 0))
    return shown


def raced(seed: int) -> list[bool]:
    """Return for each size whether an equal method won a campaign that plans by its results."""
    machine = replace(MACHINES["equal"], launch_noise=0.05, heavy_tails=True, seed=seed)
    plan = machine.plan(procs=PROCS)
    with tempfile.TemporaryDirectory(prefix="switchpoint-decisions-") as name:
        return [point.status == FASTER for point in decide(measure(machine, plan, Path(name)))]


def main() -> int:
    """Print the figures beside their bars."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=12)
    options = options_of(parser, "decisions", {"seeds": 1})
    before = json.loads((DATA / "decisions-before.json").read_text())
    figures: list[Figure] = []
    halves: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="switchpoint-decisions-") as scratch:
        with tarfile.open(DATA / "first-campaign.tar.xz") as archive:
            archive.extractall(scratch)  # of our own; a filter needs Python 3.11.4
        for name, raw in (("sample", CHECKOUT / "results" / "sample"), ("first", Path(scratch))):
            database = Path(scratch) / f"{name}.db"
            ingest(database, [raw])
            cells = cells_of(database)
            figures += measured(name, cells, before[name])
            halves += contradicted(cells)
    winners = max(halves["winners"], 1)
    figures.append(
        Figure("split halves: contradicted", halves["contradicted"] / winners, "of winners", WRONG)
    )
    randoms = [np.random.default_rng((3, seed)) for seed in range(options.seeds)]
    wrong = [won for random in randoms for won in false_winners(random)]
    figures.append(Figure("equal: winners, 23 looks", float(np.mean(wrong)), OF_SIZES, WRONG))
    wrong = [won for seed in range(options.seeds) for won in raced(seed)]
    figures.append(Figure("equal: winners, planned", float(np.mean(wrong)), OF_SIZES, WRONG))
    figures += of_series(options.seeds)
    sides = [side for random in randoms for side in covered(random)]
    off = abs(float(np.mean(sides)) - (1 - ERROR_LEVEL))
    figures.append(Figure("bounds: coverage off its level", off, "", OFF))
    for gain, least in GAINS.items():
        points = [point for random in randoms for point in gained(random, gain)]
        off = abs(float(np.mean(off_level(points, gain))))
        figures.append(Figure(f"gain {gain}: coverage of intervals off their level", off, "", OFF))
        shown = [point.status == FASTER for point in points]
        figures.append(Figure(f"gain {gain}: found", float(np.mean(shown)), OF_SIZES, least=least))
        shown = [each for random in randoms for each in findable(random, gain)]
        figures.append(Figure(f"gain {gain}: to be found", float(np.mean(shown)), OF_SIZES))
    return conclude("decisions", figures, options)


if __name__ == "__main__":
    sys.exit(main())
