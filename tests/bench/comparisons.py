"""The library against code written by hand and against peers, under every MPI of this machine.

The bench runs the programs of kernels/studies/comparisons at 2 and 8 ranks, those of fields and of
discovery also on four virtual nodes of two ranks, and counts the instructions that the preloaded
library adds to a call, if valgrind is installed. Peers take part if they are installed:
SWP_BENCH_MPI_ADVANCE and SWP_BENCH_PETSC name their prefixes, with {mpi} for the name of the MPI
they were built with, as /opt/petsc-{mpi}.
Run from the checkout: python -m tests.bench.comparisons [--seconds S] [--sync window|hca|barrier]
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from pathlib import Path

from tests.bench.collectives import place
from tests.bench.report import PEERS, Figure, conclude, measured_mpis, options_of
from tests.kernels.conftest import Kernels, build_kernels
from tests.kernels.preloaded import INSTRUCTIONS, instructions_over_pmpi, vendor_table
from tuner.machine.mpi import LaunchCommand, Mpi, launch
from tuner.machine.nodes.launch import VIRTUAL_NODES

PROGRAMS = ("swp_compare_exchange", "swp_compare_discovery", "swp_compare_fields")
TIMED = re.compile(r"  (\S.*?) +[\d.]+ us +([\d.]+) \[")  # an entrant, beside the first one
EXCHANGED = r"exchange, 2 ranks, random.*, {} B, back to back: {}$"
LENT = r"exchange, 2 ranks, random.*, 65536 B, written.*: lent, in the plan's memory$"
DISCOVERED = r"discovery, 2 ranks, .* {} B: shared$"
BARS = {
    EXCHANGED.format(8, "shared"): 0.5,
    EXCHANGED.format(1024, "shared"): 0.6,
    LENT: 0.65,
    DISCOVERED.format(8): 0.55,
    DISCOVERED.format(1024): 0.55,
    DISCOVERED.format(65536): 1.0,
}
"""The most on two ranks, in times of the exchange by hand, and of sends to known senders; of
`lent`, for what `shared` is not for, where the program writes what it sends to the plan's memory.
"""
COPIED = EXCHANGED.format(65536, "lent")
MOST_BESIDE_ONE_COPY, MOST_BESIDE_TWO_COPIES = 1.0, 0.9
"""The most of `lent` on two ranks where the program sends its own memory: two copies."""
PROCS = 8
"""Ranks on four virtual nodes."""
NODE_PROGRAMS = ("swp_compare_fields", "swp_compare_discovery")
NODE_BARS = {
    r"3 fields, \d+ ranks, random.*, 8 B: fields$": 0.45,
    **{
        rf"discovery, .* {size} B: .* / known senders, the fastest of each$": 1.1
        for size in (8, 1024)
    },
}
"""The most on virtual nodes, in times of three exchanges, and of sends to known senders."""
BEST = re.compile(r"  (\S.* / \S.*): ([\d.]+) \[")


class ComparisonError(Exception):
    """An error of a program of a comparison."""


def build(mpi: Mpi) -> Kernels:
    """Return the kernels as tests have them, or with the peers that are installed for this MPI."""
    prefixes = {peer: os.environ.get(peer, "").format(mpi=mpi.name) for peer in PEERS}
    peers = [f"-D{peer}={prefix}" for peer, prefix in prefixes.items() if prefix]
    if not peers:
        return Kernels(mpi, build_kernels(mpi))
    wrapper = Path(mpi.mpicc)
    cxx = wrapper.with_name(wrapper.name.replace("mpicc", "mpicxx"))
    return Kernels(mpi, build_kernels(mpi, "peers", *peers, f"-DMPI_CXX_COMPILER={cxx}"))


def count_instructions(mpi: Mpi) -> Iterator[Figure]:
    """Yield the cost of a call under the preload that the table leaves to the MPI library."""
    kernels = Kernels(mpi, build_kernels(mpi))
    with tempfile.TemporaryDirectory() as directory:
        costs = instructions_over_pmpi(kernels, vendor_table(Path(directory)))
    for operation, counted in costs.items():
        name = f"{mpi.name}: {operation} left to the MPI library"
        yield Figure(name, counted, "instructions more a call", most=INSTRUCTIONS)


def runs(
    mpis: Sequence[Mpi], all_procs: Sequence[int], nodes: bool
) -> Iterator[tuple[Kernels, str, str, LaunchCommand]]:
    """Yield each program to run: its build, name, place, and how to start it."""
    built = [build(mpi) for mpi in mpis]
    for kernels, program, procs in product(built, PROGRAMS, all_procs):
        start = launch(kernels.mpi, procs, build=kernels.build)
        yield kernels, program, f"{procs} ranks", start
    if nodes:
        with place(PROCS) as (system, starter):
            for kernels in built:
                start = starter(kernels.mpi, kernels.build)
                for program in NODE_PROGRAMS:
                    yield kernels, program, f"{system}, {PROCS} ranks", start


def bars_of(mpi: Mpi, on_nodes: bool) -> dict[str, float]:
    """Return the bars of two ranks or of virtual nodes, by patterns of the names of figures."""
    if on_nodes:
        return NODE_BARS
    release = tuple(map(int, re.findall(r"\d+", mpi.version)[:2]))
    reads_senders = mpi.family != "mpich" or release >= (4, 3) or mpi.device.endswith("ucx")
    return BARS | {COPIED: MOST_BESIDE_ONE_COPY if reads_senders else MOST_BESIDE_TWO_COPIES}


def compare(
    kernels: Kernels, program: str, where: str, start: LaunchCommand, arguments: list[str]
) -> Iterator[Figure]:
    """Run a program, print its output, and yield its ratios. Raise ComparisonError."""
    title = f"{program}, {kernels.mpi}, {where} {start.yield_setting}"
    print(f"\n== {title.rstrip()}", flush=True)
    path = kernels.build / "studies" / "comparisons" / program
    command = [*start.argv_prefix, str(path), *arguments]
    env = os.environ | start.env
    done = subprocess.run(command, env=env, stdout=subprocess.PIPE, text=True)
    print(done.stdout, flush=True)
    figures = list(ratios(done.stdout))
    if done.returncode != 0 or not figures:
        raise ComparisonError(f"{title.rstrip()}: failed with exit status {done.returncode}")
    on_nodes = where.startswith(VIRTUAL_NODES)
    bars = bars_of(kernels.mpi, on_nodes)
    for name, ratio, unit in figures:
        bar = next((most for pattern, most in bars.items() if re.match(pattern, name)), None)
        place_of = f"{where}: " if on_nodes else ""
        yield Figure(f"{kernels.mpi.name}: {place_of}{name}", ratio, unit, most=bar)


def lost_bars(figures: Iterable[Figure], mpi: Mpi, bars: Iterable[str]) -> Iterator[str]:
    """Yield the bars of an MPI that no figure has: what they judge was not measured."""
    names = [its.name for its in figures if its.most and its.name.startswith(f"{mpi.name}: ")]
    for bar in bars:
        if not any(re.search(bar, name) for name in names):
            yield f"{mpi.name}: no figure of {bar}"


def ratios(text: str) -> Iterator[tuple[str, float, str]]:
    """Yield name, ratio and unit of every line that has a ratio."""
    heading, seen = "", list[str]()
    for line in text.splitlines():
        if not line.startswith(" "):
            heading, seen = line.rpartition(", ")[0], []  # without the number of rounds
        elif timed := TIMED.match(line):
            again = " again" if timed[1] in seen else ""  # an entrant that runs twice
            if seen:
                yield f"{heading}: {timed[1]}{again}", float(timed[2]), f"times {seen[0]}"
            seen.append(timed[1])
        elif best := BEST.match(line):
            yield f"{heading}: {best[1]}, the fastest of each", float(best[2]), "times"


def main() -> int:
    """Run every comparison; the others still run if a program fails."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=2, help="for each size (%(default)s)")
    parser.add_argument("--sync", default="", choices=["", "window", "hca", "barrier"])
    parser.add_argument("--procs", type=int, nargs="*", default=[2, 8])
    parser.add_argument(
        "--nodes",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="fields and discovery on virtual nodes too (%(default)s)",
    )
    least = {"seconds": 0.01, "procs": [2], "nodes": False}
    options = options_of(parser, "comparisons", least)
    arguments = [str(options.seconds), options.sync]
    figures: list[Figure] = []
    failures: list[str] = []
    mpis = measured_mpis(options)
    lacking = [] if shutil.which("valgrind") else ["no valgrind"]
    for mpi in [] if lacking else mpis:
        figures += count_instructions(mpi)
    on_nodes = False
    for kernels, program, where, start in runs(mpis, options.procs, options.nodes):
        on_nodes |= where.startswith(VIRTUAL_NODES)
        try:
            figures += compare(kernels, program, where, start, arguments)
        except ComparisonError as error:
            failures.append(str(error))
    for mpi in mpis:
        if 2 in options.procs:
            failures += lost_bars(figures, mpi, bars_of(mpi, on_nodes=False))
        if on_nodes:
            failures += lost_bars(figures, mpi, bars_of(mpi, on_nodes=True))
    if options.nodes and not on_nodes:
        lacking.append("no virtual nodes")
    missed = conclude("comparisons", figures, options, ", ".join(lacking))
    for failure in failures:
        print(failure, file=sys.stderr)
    return 2 if failures else missed


if __name__ == "__main__":
    sys.exit(main())
