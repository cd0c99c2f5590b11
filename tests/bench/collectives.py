"""The gain of tuned collectives over the MPI library's defaults.

The bench uses four virtual nodes of two ranks, or this machine alone if nodes cannot be made. A
race chooses, as in a user's campaign. Other launches judge the choice (`auto`, with the table)
beside the library's default, interleaved in randomised rounds. Ratios are paired within rounds,
with their 95 % interval over launches. Last, alltoallv is compared on 2 and 8 ranks of this
machine. The bench prints the ratios, and the best of the library's own algorithms in the race. It
exits with 1 if the tuned choice is clearly over 2 % slower than the default, if all operations with
data together or small uneven blocks miss their bar, or if nothing could be compared. The raw files
stay for inspection.
Run from the checkout: python -m tests.bench.collectives [--mpi NAME] [--alone] [OPERATION...]
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.bench.report import Figure, conclude, measured_mpis, options_of, raw_files
from tests.kernels.conftest import build_kernels
from tuner import stats
from tuner.campaign import race_job
from tuner.campaign.durations import SOAKS_S
from tuner.campaign.launches import words_of
from tuner.campaign.order import PLANS
from tuner.campaign.plans import PlannedCase, RacePlan
from tuner.campaign.race_job import Start, Starts
from tuner.domain.effort import SOAKS_SHARE
from tuner.domain.operations import COLLECTIVES, DEFAULT_METHODS, NO_DATA, method_word, sizes_for
from tuner.export import forms
from tuner.machine import mpi
from tuner.machine.mpi import LaunchCommand, Mpi
from tuner.machine.nodes import launch as on_nodes
from tuner.machine.nodes.namespaces import NodesError, temporary
from tuner.machine.systems import LOCAL
from tuner.paths import CHECKOUT, campaign_name
from tuner.selection.tuning import tune
from tuner.store.store import Store
from tuner.units import parse_sizes, size_text

PPN = 2
MOST_SLOWER = 1.02
MOST_TOGETHER = 0.75
MOST_BESIDE_HAN = 0.9  # which Open MPI has since 5 as its default on several nodes
UNEVEN, SMALL_BYTES, MOST_SMALL_UNEVEN = "alltoallv", 512, 0.8
PROCS_ALONE = (2, 8)
JUDGES, JUDGING_SHARE = 6, 0.04
"""The launches that judge an operation, and the share of its time in the race that each takes."""

INTERVAL = "times the default, the low end of the interval"
MEAN = "times the default, geometric mean"

Starter = Callable[[Mpi, Path], LaunchCommand]


@contextmanager
def place(procs: int, without_nodes: bool = False) -> Iterator[tuple[str, Starter]]:
    """Yield a system's name, and the function that starts the ranks there."""

    def here(one: Mpi, build: Path) -> LaunchCommand:
        return mpi.launch(one, procs, build=build)

    if without_nodes:
        yield LOCAL, here
        return
    try:
        nodes = temporary(f"bench-{os.getpid()}")
        made = nodes.__enter__()
    except NodesError as error:
        print(f"no virtual nodes, so on this machine alone: {error}")
        yield LOCAL, here
        return
    try:
        system = f"{on_nodes.VIRTUAL_NODES}:{made.partition}"
        yield system, lambda one, build: on_nodes.launch(made, one, procs, PPN, build)
    finally:
        nodes.__exit__(None, None, None)


@dataclass(frozen=True)
class Launches:
    """Ranks of one MPI on one system, and where the raw files of their launches are kept."""

    launch: LaunchCommand
    build: Path
    system: str
    environment: str
    results: Path
    sizes: str

    @property
    def swpbench(self) -> Path:
        """Return the program that measures."""
        return self.build / "bench" / "swpbench"

    def measure(
        self,
        operation: str,
        methods: str,
        seconds: float,
        launches: int,
        table: str = "",
        pattern: str = "blocks",
    ) -> dict[int, SizeSamples]:
        """Measure launches of an operation; return samples by size. Exit when one fails."""
        paths = [self.results / f"{operation}-{number}.jsonl" for number in range(launches)]
        for number, path in enumerate(paths):
            options = {
                "op": operation,
                "pattern": pattern,
                "sizes": sizes_for(operation, self.sizes),
                "methods": methods,
                "budget": seconds,
                "launch": number,
                "campaign": "bench",
                "system": self.system,
                "environment": self.environment,
                "yield": self.launch.yield_setting,
                "out": path,
            }
            words = [f"--{option}={value}" for option, value in options.items() if value != ""]
            self._run(
                [*self.launch.argv_prefix, str(self.swpbench), "run", *words],
                self.launch.env | {"SWITCHPOINT_TABLE": table},
                operation,
            )
        return read_samples(paths)[operation]

    def race(self, operations: Sequence[str], procs: int, seconds: float) -> Path:
        """Race all methods of operations, in so many seconds for each; return the store."""
        own, ppn = (self.system, self.environment), procs if self.system == LOCAL else PPN
        cases = [
            PlannedCase(*own, each, "blocks", "", procs, ppn, sizes)
            for each in operations
            for sizes in [parse_sizes(sizes_for(each, self.sizes))]
        ]
        race_s = seconds * len(cases)
        budget_s = max(race_s + SOAKS_S, race_s / (1 - SOAKS_SHARE))  # of a plan, also for soaks
        plan = RacePlan(campaign_name(), "", budget_s, cases, in_job=True)

        def start(case: PlannedCase, options: Mapping[str, str]) -> Start:
            return Start(self.launch, words_of(options, plan.campaign, own, ""))

        path, starts = self.results / "plan.json", self.results / "starts.json"
        PLANS.save(plan, path)
        Starts.of(path, plan, own, self.swpbench, start).save(starts)
        env = {"SWITCHPOINT_RESULTS": str(self.results), "PYTHONPATH": str(CHECKOUT)}
        self._run([sys.executable, "-m", race_job.__name__, str(starts)], env, "the race")
        return self.results / "switchpoint.db"

    def _run(self, command: Sequence[str], env: Mapping[str, str], what: str) -> None:
        its = {**os.environ, **env}
        done = subprocess.run(command, cwd=self.results, env=its, capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"{what} failed:\n{(done.stdout + done.stderr)[-2000:]}")


@dataclass
class SizeSamples:
    """The samples of one operation at one size, by method and launch, with their rounds."""

    selected: str = ""
    samples: dict[str, dict[int, tuple[list[int], list[float]]]] = field(
        default_factory=lambda: defaultdict(dict)
    )

    def median_s(self, method: str) -> float:
        """Return the mean over launches of the median."""
        return float(np.mean([np.median(times) for _, times in self.samples[method].values()]))

    def log_ratio(self, method: str, other: str) -> tuple[float, float, float]:
        """Return the logarithm of method's time over other's, and the ends of its interval."""
        mine, others = self.samples[method], self.samples[other]
        pairs = [(*mine[launch], *others[launch]) for launch in mine.keys() & others.keys()]
        if len(pairs) < 2:  # no interval
            return math.nan, math.nan, math.nan
        ratios = (paired_log_ratios(*map(np.array, pair)) for pair in pairs)
        values = np.array([np.median(of_launch) for of_launch in ratios])
        low, high = stats.mean_interval(values)
        return float(values.mean()), float(low), float(high)


def paired_log_ratios(
    rounds: NDArray[Any], samples: NDArray[Any], other_rounds: NDArray[Any], others: NDArray[Any]
) -> stats.Floats:
    """Return log(sample / other) of every round that both have: drift affects both alike."""
    _, mine, theirs = np.intersect1d(rounds, other_rounds, return_indices=True)
    ratios: stats.Floats = np.log(samples[mine].astype(float) / others[theirs].astype(float))
    return ratios


def read_samples(paths: Iterable[Path]) -> dict[str, dict[int, SizeSamples]]:
    """Return the samples in raw files by operation and size."""
    found: dict[str, dict[int, SizeSamples]] = defaultdict(lambda: defaultdict(SizeSamples))
    for launch, path in enumerate(paths):
        header, *records = map(json.loads, path.read_text().splitlines())
        for record in records:
            if record["record"] == "case":
                at_size = found[header["operation"]][record["size_bytes"]]
                at_size.selected = record.get("selected", at_size.selected)
                at_size.samples[record["method"]][launch] = (record["round"], record["samples_s"])
    return found


@dataclass
class JudgingResult:
    """The results of the judging campaign for all operations so far.

    `most` is the bar of the geometric mean of those with data, `most_uneven` that of small uneven
    blocks, in times of the default. `logs` are by operation and size.
    """

    operations: list[str]
    most: float | None = None
    most_uneven: float | None = None
    logs: dict[str, dict[int, float]] = field(default_factory=lambda: defaultdict(dict))
    slower: list[str] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)
    worst: dict[bool, float] = field(default_factory=lambda: {True: 0.0, False: 0.0})

    def add(self, operation: str, size: int, at_size: SizeSamples, chosen: SizeSamples) -> None:
        """Add the samples of a size, and print its line; `chosen` has the library's algorithms."""
        default = DEFAULT_METHODS[operation]
        log, low, high = at_size.log_ratio("auto", default)
        if math.isnan(log):
            print(f"{operation:21}{size_text(size):>8} in too few launches: give more --seconds")
            return
        self.logs[operation][size] = log
        same = at_size.selected == default
        self.worst[same] = max(self.worst[same], log)
        case = f"{operation} at {size_text(size)}"
        self.figures.append(Figure(case, math.exp(low), INTERVAL, most=MOST_SLOWER))
        if low > math.log(MOST_SLOWER):
            self.slower.append(case)
        named = [name for name in chosen.samples if name.startswith(f"{default}:")]
        ratios = {name: chosen.log_ratio(name, default)[0] for name in named}
        own = {name: its for name, its in ratios.items() if not math.isnan(its)}
        best = min(own, key=own.__getitem__, default="")
        beside = f"{math.exp(own[best]):5.2f} {best}" if best else ""
        ratio = f"{math.exp(log):5.2f} [{math.exp(low):.2f}, {math.exp(high):.2f}]"
        selected = f"{default} (same method)" if same else at_size.selected
        microseconds = at_size.median_s(default) * 1e6
        print(
            f"{operation:21}{size_text(size):>8}{microseconds:10.0f} us"
            f"  {ratio} {selected:28}{beside}".rstrip()
        )

    def conclude(self) -> bool:
        """Print the figures beside their targets; return whether the bar is met.

        It is not met if an operation could not be compared at any size.
        """
        missing = [operation for operation in self.operations if operation not in self.logs]
        for operation in missing:
            print(f"{operation:21}not compared at any size: give more --seconds")
            self.figures.append(Figure(operation, math.nan, INTERVAL, most=MOST_SLOWER))
        if not self.logs:
            return False
        means = {operation: mean_of(logs.values()) for operation, logs in self.logs.items()}
        with_data = {name: mean for name, mean in means.items() if name not in NO_DATA}
        for operation, mean in with_data.items():
            self._add_mean(operation, [mean])
        self._add_mean("all operations with data", with_data.values(), self.most)
        small = [log for size, log in self.logs.get(UNEVEN, {}).items() if size <= SMALL_BYTES]
        self._add_mean(f"{UNEVEN} up to {size_text(SMALL_BYTES)}", small, self.most_uneven)
        for operation in means.keys() - with_data.keys():
            self._add_mean(operation, [means[operation]])
        worst, same = (math.exp(self.worst[same]) for same in (False, True))
        print(
            f"at worst {worst:.3f} of the default's time (bar {MOST_SLOWER}); "
            f"{same:.3f} where the choice is the default itself"
        )
        for case in self.slower:
            print(f"clearly slower than the default: {case}")
        return not self.slower and not missing

    def _add_mean(self, name: str, logs: Collection[float], most: float | None = None) -> None:
        if logs:
            mean = math.exp(mean_of(logs))
            print(f"{name:25}{mean:.2f} of the default's time, geometric mean")
            self.figures.append(Figure(name, mean, MEAN, most=most))


def mean_of(logs: Collection[float]) -> float:
    """Return the mean."""
    return math.fsum(logs) / len(logs)


def most_together(one: Mpi, operations: Collection[str]) -> float | None:
    """Return the bar of all operations with data; None for some of them, or without a target."""
    if not set(operations) >= set(COLLECTIVES) - set(NO_DATA) or not has_target(one):
        return None
    return MOST_BESIDE_HAN if one.family == "openmpi" and one.major >= 5 else MOST_TOGETHER


def has_target(one: Mpi) -> bool:
    """Return whether means beside this library's defaults have bars."""
    return one.family in ("mpich", "openmpi")


def compare(its: Launches, result: JudgingResult, procs: int, seconds: float) -> None:
    """Choose, judge and print; the result gets the figures."""
    operations = result.operations
    minutes = math.ceil(seconds * len(operations) / 60)
    print(f"the race takes about {minutes} min", file=sys.stderr)
    with Store.open(its.race(operations, procs, seconds)) as store:
        (system,) = store.systems()["system"]
        table = tune(store, system, required_executions=0)  # raced, never used
    path = its.results / "switchpoint.table"
    forms.write(table, "table", path)
    raced = read_samples(sorted(its.results.glob("*/*/*.jsonl")))
    print(f"{'':21}{'bytes':>8}{'default':>13}  tuned / default{'':32}best own algorithm / default")
    for operation in operations:
        methods = f"auto {method_word(DEFAULT_METHODS[operation])}"
        judged = its.measure(operation, methods, JUDGING_SHARE * seconds, JUDGES, str(path))
        for size, at_size in sorted(judged.items()):
            result.add(operation, size, at_size, raced[operation][size])
    result.conclude()


def measure(mpis: Sequence[Mpi], options: argparse.Namespace, lacking: list[str]) -> list[Figure]:
    """Compare under every MPI in one place; return the figures, and add what nodes lack."""
    figures: list[Figure] = []
    with place(options.procs, options.alone) as (system, start):
        for one in mpis:
            build = build_kernels(one)
            results = raw_files(options, "collectives")
            here = f"{options.procs} ranks, {system}"
            print(f"\n== collectives, {one}, {here}; raw files in {results}")
            try:
                launch = start(one, build)
            except NodesError as error:
                print(f"skipped: {error}")
                lacking.append(str(error))
                continue
            its = Launches(launch, build, system, one.name, results, options.sizes)
            most = most_together(one, options.operations)
            most_uneven = MOST_SMALL_UNEVEN if has_target(one) else None
            result = JudgingResult(options.operations, most, most_uneven)
            compare(its, result, options.procs, options.seconds)
            where = f"{one.name}, {here}" if options.alone else one.name
            figures += [replace(each, name=f"{where}: {each.name}") for each in result.figures]
    return figures


def main() -> int:
    """Compare under every MPI."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--mpi", help="one MPI's name; all by default")
    parser.add_argument(
        "--seconds", type=float, default=50, help="time of an operation in the race (%(default)s)"
    )
    parser.add_argument("--procs", type=int, default=8)
    parser.add_argument("--alone", action="store_true", help="on this machine, without nodes")
    parser.add_argument("--sizes", default="8,512,8K,64K")
    parser.add_argument("operations", nargs="*", default=list(COLLECTIVES), metavar="OPERATION")
    least = {"seconds": 3, "procs": 4, "sizes": "8", "operations": ["bcast"]}
    options = options_of(parser, "collectives", least)
    mpis = measured_mpis(options, options.mpi)
    if not mpis:
        here = ", ".join(one.name for one in mpi.find_mpis()) or "none"
        parser.error(f"no MPI {options.mpi or ''} on PATH; there is {here}")
    lacking: list[str] = []
    figures = measure(mpis, options, lacking)
    if not options.least and set(options.operations) >= set(COLLECTIVES):  # also where that bar is
        for procs in PROCS_ALONE:
            alone = {"procs": procs, "alone": True, "operations": [UNEVEN]}
            figures += measure(mpis, argparse.Namespace(**vars(options) | alone), lacking)
    return conclude("collectives", figures, options, ", ".join(lacking))


if __name__ == "__main__":
    sys.exit(main())
