"""A machine with a known truth that runs the tasks of a plan, and writes raw files of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from tests import raw, synthetic
from tuner.campaign.durations import LEAST_LAUNCH_S
from tuner.campaign.measured import Measured
from tuner.campaign.planning import next_batch
from tuner.campaign.plans import Entrants, PlannedBatch, PlannedCase, RacePlan, Task, default_sizes
from tuner.domain.cases import COLD, STAGGERED, DegreeClass
from tuner.domain.effort import OVERHEAD, START_S
from tuner.domain.records import Cell
from tuner.domain.tables import Rule
from tuner.rawfile.ingest import ingest
from tuner.selection import match
from tuner.store.store import Store

PLACE = "local:cpu", "mpich"

Truth = Callable[[str, int, int], float]
"""Seconds of a method at a size on a number of processes; infinite if it is not applicable."""


@dataclass(frozen=True)
class SyntheticMachine:
    """The methods of one operation, with noise of samples and launches, and drift, all relative."""

    methods: tuple[str, ...]
    truth: Truth
    operation: str = "exchange"
    sample_noise: float = 0.05
    launch_noise: float = 0.01
    drift: float = 0.1
    seed: int = 1
    heavy_tails: bool = False  # of launches
    slow: float = 1.0  # starts and sessions take so many times as long as foreseen

    def plan(
        self,
        procs: tuple[int, ...] = (4,),
        patterns: int = 1,
        budget_s: float = 600,
        sizes: Sequence[int] = (),
    ) -> RacePlan:
        """Return a campaign on it, with so many patterns at each number of processes.

        Without `sizes`, they are the default ones.
        """
        cases = []
        for number in procs:
            for pattern in range(patterns):
                spec = f"random:degree=6,seed={pattern + 1}"
                cases.append(
                    PlannedCase(
                        *(*PLACE, self.operation, spec, "1_node", number, number),
                        list(sizes) or default_sizes(self.operation, spec),
                    )
                )
        return RacePlan("20261121T034500Z", "local.py", budget_s, cases, in_job=True)

    def run(self, results: Path, plan: RacePlan, task: Task) -> Path:
        """Run one launch of the plan; return its raw file."""
        case = plan.cases[task.case]
        spec = synthetic.Campaign(
            name=plan.campaign,
            operation=self.operation,
            cores=64,
            times=lambda method, size: self.truth(method, size, case.procs),
            sample_noise=self.sample_noise,
            launch_noise=self.launch_noise,
            drift=self.drift,
            heavy_tails=self.heavy_tails,
            sync="window" + COLD * (case.cache == "cold") + STAGGERED * task.staggered,
        )
        random = np.random.default_rng((self.seed, task.number))
        # Each has its own class: patterns are not decided together.
        pattern = case.pattern, 6, 5.0 + int(case.pattern.rpartition("=")[2])
        cases = [
            record
            for race in task.races
            for size in race.sizes
            for record in synthetic.block(
                replace(spec, methods=self._of(race, size, case.procs), samples=race.samples),
                *(random, pattern, size),
            )
        ]
        header = synthetic.header(spec, task.number, pattern[0], case.procs)
        return raw.write_launch(results / f"{task.number}.jsonl", header, cases)

    def _of(self, race: Entrants, size: int, procs: int) -> tuple[str, ...]:
        methods = tuple(race.methods) or self.methods
        return tuple(name for name in methods if math.isfinite(self.truth(name, size, procs)))

    def takes_s(self, plan: RacePlan, task: Task) -> float:
        """Return the time of a launch after its start; its budget is the limit."""
        procs = plan.cases[task.case].procs
        samples_s = sum(
            race.samples * self.truth(method, size, procs)
            for race in task.races
            for size in race.sizes
            for method in self._of(race, size, procs)
        )
        return min(OVERHEAD * samples_s, max(task.budget_s, LEAST_LAUNCH_S))


def machine_of(lines: Mapping[str, tuple[float, float]]) -> SyntheticMachine:
    """Return a machine of methods, with their latencies and seconds per byte on 4 processes."""

    def truth(method: str, size: int, procs: int) -> float:
        latency_s, per_byte_s = lines[method]
        return math.log2(procs) / 2 * latency_s + per_byte_s * size * procs / 4

    return SyntheticMachine(tuple(lines), truth)


FAR = machine_of(
    {
        "direct": (4e-5, 1e-8),
        "stfw:dims=2": (2e-5, 2e-8),
        "stfw:dims=3": (1.6e-5, 4e-8),
        "neighbor": (4.4e-5, 1e-8),
        "nap": (6e-5, 0.8e-8),
        **{f"slow:number={number}": (1e-4 * (number + 1), 2e-8) for number in range(10)},
    }
)
"""A machine of fifteen methods, of which most are far from the best."""


def measure(
    machine: SyntheticMachine,
    plan: RacePlan,
    results: Path,
    batches: int = 99,
    machine_of: Callable[[Task], SyntheticMachine] | None = None,
) -> list[Cell]:
    """Run a plan to its end, or so many batches, and return the cells of its store.

    `machine_of` gives other machines for some tasks.
    """
    database = results / "switchpoint.db"
    for _ in range(batches):
        cells = cells_of(database)
        batch = next_of_all(plan, cells)
        if batch is None:
            return cells
        plan.batches.append(batch)
        of_task = machine_of or (lambda task: machine)
        ingest(database, [of_task(task).run(results, plan, task) for task in batch.tasks])
        started_s = machine.slow * START_S * len(batch.tasks)
        plan.spent_s += started_s + sum(machine.takes_s(plan, task) for task in batch.tasks)
        plan.slow = machine.slow
    return cells_of(database)


def next_of_all(plan: RacePlan, cells: list[Cell]) -> PlannedBatch | None:
    """Return the next batch of the first turn that has one."""
    return next(
        filter(None, (next_batch(plan, turn, measured(cells)) for turn in plan.turns)), None
    )


def measured(cells: list[Cell]) -> Measured:
    """Return the cells as those of the one system that plans have here."""
    return Measured(cells, places=dict.fromkeys({cell.key.system for cell in cells}, PLACE))


def cells_of(database: Path) -> list[Cell]:
    """Return all cells of a store, or none if it does not exist."""
    if not database.exists():
        return []
    with Store.open(database, readonly=True) as store:
        return [
            cell for system in store.systems()["system"] for cell in store.contents(str(system))
        ]


def regrets(
    machine: SyntheticMachine,
    rules: Sequence[Rule],
    procs: int,
    random: np.random.Generator | None = None,
    count: int = 300,
) -> tuple[list[float], list[float]]:
    """Return by how much choices at random sizes exceed the best time, and that of the default."""
    random = random or np.random.default_rng(7)
    over_best, over_default = [], []
    drawn = np.exp(random.uniform(math.log(8), math.log(131072), count)).astype(int)
    for size in drawn.tolist():
        rule = match.first(rules, DegreeClass(machine.operation, 1, procs, 6, 6.0), size)
        default_s = machine.truth("direct", size, procs)
        time_s = machine.truth(rule.method, size, procs) if rule else default_s
        best_s = min(machine.truth(method, size, procs) for method in machine.methods)
        over_best.append(time_s / best_s - 1)
        over_default.append(time_s / default_s - 1)
    return over_best, over_default
