"""The gain of tuned collectives over the MPI library's defaults.

The bench uses four virtual nodes of two ranks, or this machine alone if nodes cannot be made. A
race chooses, as in a user's campaign. Other launches judge the choice (`auto`, with the table)
beside the library's default, interleaved in randomised rounds. Ratios are paired within rounds,
with their 95 % interval over launches. Last, on this machine alone, all operations with data are
compared on 2 ranks, and alltoallv on 8. The bench prints the ratios, and the best of the library's
own algorithms in the race. It exits with 1 if the tuned choice is clearly over 2 % slower than the
default, if a mean misses its bar, or if nothing could be compared. The raw files stay for
inspection.
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
MOST_SMALL_UNEVEN = 0.8
MOST_SMALL_ON_TWO, MOST_LARGE_ON_TWO = 0.5, 0.95
SIZES_ON_TWO, SHARE_ON_TWO = "8,1K,64K", 0.4
"""What is compared on two ranks of this machine, and the share of the time that it needs there."""
SMALL_BYTES, LARGE_BYTES = 1024, 65536
UNEVEN = "alltoallv"
WITH_DATA = tuple(name for name in COLLECTIVES if name not in NO_DATA)
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


@dataclass(frozen=True)
class Mean:
    """A geometric mean over operations, of each over its sizes in a range; it may have a bar."""

    name: str
    operations: Sequence[str]
    sizes_bytes: range = range(sys.maxsize)
    most: float | None = None


@dataclass
class JudgingResult:
    """The results of the judging campaign for all operations so far.

    `means` are judged beside those of each operation. `logs` are by operation and size.
    """

    operations: Sequence[str]
    means: Sequence[Mean] = ()
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
        for mean in [*(Mean(operation, [operation]) for operation in self.logs), *self.means]:
            self._add_mean(mean)
        worst, same = (math.exp(self.worst[same]) for same in (False, True))
        print(
            f"at worst {worst:.3f} of the default's time (bar {MOST_SLOWER}); "
            f"{same:.3f} where the choice is the default itself"
        )
        for case in self.slower:
            print(f"clearly slower than the default: {case}")
        return not self.slower and not missing

    def _add_mean(self, mean: Mean) -> None:
        of_each = [
            [log for size, log in self.logs.get(operation, {}).items() if size in mean.sizes_bytes]
            for operation in mean.operations
        ]
        times = math.exp(mean_of([mean_of(logs) for logs in of_each]))
        said = "an operation was not compared"
        if not math.isnan(times):
            said = f"{times:.2f} of the default's time, geometric mean"
        print(f"{mean.name:42}{said}")
        self.figures.append(Figure(mean.name, times, MEAN, most=mean.most))


def mean_of(logs: Collection[float]) -> float:
    """Return the mean, NaN of none."""
    return math.fsum(logs) / len(logs) if logs else math.nan


def means_of(
    one: Mpi, operations: Collection[str], sizes_bytes: Collection[int], on_two: bool
) -> list[Mean]:
    """Return the means over what is compared; on_two: on two ranks of this machine alone.

    One has its bar if all of its operations are compared, and there is a target for the MPI.
    """
    small, large = range(SMALL_BYTES + 1), range(LARGE_BYTES, LARGE_BYTES + 1)
    up_to, at = f"up to {size_text(SMALL_BYTES)}", f"at {size_text(LARGE_BYTES)}"
    together = MOST_BESIDE_HAN if one.family == "openmpi" and one.major >= 5 else MOST_TOGETHER
    uneven = Mean(f"{UNEVEN} {up_to}", [UNEVEN], small, MOST_SMALL_UNEVEN)
    means = [Mean("all operations with data", WITH_DATA, most=together), uneven]
    if on_two:
        others = [name for name in WITH_DATA if name != UNEVEN]
        means = [
            Mean(f"all with data but {UNEVEN}, {up_to}", others, small, MOST_SMALL_ON_TWO),
            Mean(f"all with data but {UNEVEN}, {at}", others, large, MOST_LARGE_ON_TWO),
            uneven,
        ]
    found = []
    for mean in means:
        named = [name for name in mean.operations if name in operations]
        is_whole = named == [*mean.operations]
        name = mean.name if is_whole else mean.name.replace("all", "some", 1)
        most = mean.most if is_whole and one.family in ("mpich", "openmpi") else None
        if named and any(size in mean.sizes_bytes for size in sizes_bytes):
            found.append(replace(mean, name=name, operations=named, most=most))
    return found


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
            on_two = system == LOCAL and options.procs == 2
            means = means_of(one, options.operations, parse_sizes(options.sizes), on_two)
            result = JudgingResult(options.operations, means)
            compare(its, result, options.procs, options.seconds)
            where = f"{one.name}, {here}" if options.alone else one.name
            figures += [replace(each, name=f"{where}: {each.name}") for each in result.figures]
    return figures


def alone_of(options: argparse.Namespace) -> list[argparse.Namespace]:
    """Return the options of each comparison on this machine alone that belongs to all others."""
    on_two = {
        "procs": 2,
        "operations": WITH_DATA,
        "sizes": SIZES_ON_TWO,
        "seconds": SHARE_ON_TWO * options.seconds,
    }
    all_alone: list[dict[str, Any]] = [on_two, {"procs": 8, "operations": [UNEVEN]}]
    if options.least:
        all_alone = [{"procs": 2}]
    elif options.alone or not set(options.operations) >= set(COLLECTIVES):
        all_alone = []
    return [argparse.Namespace(**vars(options) | {"alone": True} | each) for each in all_alone]


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
    figures: list[Figure] = []
    for each in (options, *alone_of(options)):
        figures += measure(mpis, each, lacking)
    return conclude("collectives", figures, options, ", ".join(lacking))


if __name__ == "__main__":
    sys.exit(main())
