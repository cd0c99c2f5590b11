"""The cost and the choices of planned campaigns on machines with a known truth, over many seeds.

The cost is the time of all samples over that of six launches of 40 samples of every method at every
octave. The bench prints it by stage, with the regret at sizes that were not measured and the share
of wrong departures from the default, beside the targets; it exits with 1 when one is missed.
Run from the checkout: python -m tests.bench.planning
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import defaultdict
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from tests.bench.report import Figure, conclude, options_of
from tests.decisions import select
from tests.synthetic_plan import FAR, SyntheticMachine, machine_of, measure, regrets
from tuner.campaign.plans import RacePlan
from tuner.domain.effort import OVERHEAD, START_S
from tuner.domain.records import Cell
from tuner.domain.tables import Point, Rule
from tuner.units import share_text

PROCS = (2, 8)
HELD_OUT = 100  # sizes of each process count
EXHAUSTIVE = 6 * 40  # samples of a method at a size

COST, MEAN, P95, WORSE, FALSE = 0.1, 0.01, 0.05, 0.01, 0.02
EXHAUSTIVE_COST, BEST, SIZES = "of measuring all", "over the best", "of the sizes"


FEW = {
    "direct": (8e-4, 2e-7),
    "stfw:dims=2": (4e-4, 4e-7),
    "stfw:dims=3": (3.4e-4, 8e-7),
    "neighbor": (8.8e-4, 2e-7),
    "nap": (1.2e-3, 1.6e-7),
    "alltoallv": (1.8e-3, 3e-7),
}
CLOSE = {
    "direct": (4e-5, 1e-8),
    **{f"near:number={n}": (4e-5 * (0.9 + 0.04 * n), 1e-8 * (1.1 - 0.03 * n)) for n in range(8)},
    **{f"mid:number={n}": (4e-5 * (1.3 + 0.2 * n), 1.4e-8) for n in range(8)},
}
EQUAL = dict.fromkeys(["direct", *(f"equal:number={n}" for n in range(7))], (2e-5, 0.0))
WITH_EQUAL = EQUAL | {f"slow:number={n}": (4e-5 * (n + 1), 1e-8) for n in range(8)}


@dataclass
class Tally:
    """The results of one machine, over seeds."""

    cost: list[float] = field(default_factory=list)
    clock: list[float] = field(default_factory=list)  # with starts
    stages: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    over_best: list[float] = field(default_factory=list)
    over_default: list[float] = field(default_factory=list)
    points: int = 0
    wrong: int = 0


MACHINES = {
    "far": FAR,
    "few": machine_of(FEW),
    "close": machine_of(CLOSE),
    "noisy": replace(FAR, sample_noise=0.15, launch_noise=0.03),
    "equal": replace(machine_of(EQUAL), launch_noise=0.02, drift=0.2),
    "some equal": replace(machine_of(WITH_EQUAL), launch_noise=0.02, drift=0.2),
}


def run(machine: SyntheticMachine, seed: int, tally: Tally) -> None:
    """Run one campaign."""
    machine = replace(machine, seed=seed)
    plan = machine.plan(procs=PROCS)
    with tempfile.TemporaryDirectory(prefix="switchpoint-planning-") as name:
        cells = measure(machine, plan, Path(name))
    add_cost(machine, plan, cells, tally)
    rules, points = select(cells)
    add_regret(machine, rules, seed, tally)
    add_wrong(machine, points, tally)


def add_cost(machine: SyntheticMachine, plan: RacePlan, cells: list[Cell], tally: Tally) -> None:
    exhaustive_s = sum(
        EXHAUSTIVE * machine.truth(method, size, case.procs)
        for case in plan.cases
        for size in case.sizes
        for method in machine.methods
    )
    stage_of = {task.number: batch.stage for batch in plan.batches for task in batch.tasks}
    stages: dict[str, float] = defaultdict(float)
    for cell in cells:
        for part in cell.parts:
            samples = cell.of_launch(int(part["launch"]))[1]
            stages[stage_of[int(part["number"])]] += float(samples.sum()) / exhaustive_s
    cost = sum(stages.values())
    tally.cost.append(cost)
    starts_s = START_S * len(plan.tasks), START_S * 6 * len(plan.cases)
    clock_s = starts_s[0] + OVERHEAD * cost * exhaustive_s
    tally.clock.append(clock_s / (starts_s[1] + OVERHEAD * exhaustive_s))
    for stage, share in stages.items():
        tally.stages[stage] += share


def add_regret(machine: SyntheticMachine, rules: list[Rule], seed: int, tally: Tally) -> None:
    random = np.random.default_rng((7, seed))
    for procs in PROCS:
        over_best, over_default = regrets(machine, rules, procs, random, HELD_OUT)
        tally.over_best += over_best
        tally.over_default += over_default


def add_wrong(machine: SyntheticMachine, points: list[Point], tally: Tally) -> None:
    for point in points:
        tally.points += 1
        default_s = machine.truth("direct", point.case.size_bytes, point.case.layout.procs)
        chosen_s = machine.truth(point.method, point.case.size_bytes, point.case.layout.procs)
        tally.wrong += point.method != "direct" and chosen_s >= default_s


def figures_of(name: str, tally: Tally) -> list[Figure]:
    """Return the figures of one machine beside their bars."""
    over_default = np.array(tally.over_default)
    return [
        Figure(f"{name}: cost", float(np.mean(tally.cost)), EXHAUSTIVE_COST, most=COST),
        Figure(f"{name}: mean regret", float(np.mean(tally.over_best)), BEST, most=MEAN),
        Figure(f"{name}: p95 regret", float(np.quantile(tally.over_best, 0.95)), BEST, most=P95),
        Figure(f"{name}: over the default", float(np.mean(over_default > 0.02)), SIZES, most=WORSE),
        Figure(f"{name}: wrong winners", tally.wrong / tally.points, SIZES, most=FALSE),
    ]


def main() -> int:
    """Print the figures of every machine."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--machines", nargs="*", default=list(MACHINES), choices=list(MACHINES))
    options = options_of(parser, "planning", {"seeds": 1, "machines": ["few"]})
    figures: list[Figure] = []
    for name in options.machines:
        tally = Tally()
        for seed in range(options.seeds):
            run(MACHINES[name], seed, tally)
        figures += figures_of(name, tally)
        shares = (f"{k} {share_text(v / options.seeds, 2)}" for k, v in tally.stages.items())
        most, clock = share_text(max(tally.cost), 2), share_text(float(np.mean(tally.clock)), 2)
        rest = f"at most {most}; with starts {clock}"
        print(f"{name}: cost by stage: {', '.join(shares)}; {rest}", flush=True)
    return conclude("planning", figures, options)


if __name__ == "__main__":
    sys.exit(main())
