"""The cost of a profile: programs of many small calls and of few large ones, with and without it.

Some call each microsecond, from two threads at once, or for messages of a rank to itself.

Each run is a rank that computes and calls MPI_Alltoall in turn; the program prints the median time
of its steps, which other work hardly disturbs. The figure is the median of the ratios of pairs of
runs.
Run from the checkout: python -m tests.bench.profiling [--pairs N]
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tests.bench.report import Figure, conclude, measured_mpis, options_of
from tests.kernels.conftest import build_kernels
from tests.processes import TIMEOUT_S
from tuner import stats
from tuner.machine import mpi as this_machine
from tuner.machine.mpi import Mpi, profiler

PROCS = 1  # whose calls wait for nobody, which would hide the cost
MOST_SLOWER, MOST_RAPID = 1.01, 1.03


class ProgramMix(NamedTuple):
    """The steps of a program."""

    bytes: int
    compute_us: int
    kind: str = ""
    most: float = MOST_SLOWER


MIXES = {
    "many small calls": ProgramMix(64, 10),
    "few large calls": ProgramMix(65536, 1000),
    "a call each microsecond": ProgramMix(64, 1, most=MOST_RAPID),
    "two threads": ProgramMix(64, 10, "threads"),
    "messages and waits": ProgramMix(64, 10, "waits"),
}


def step_s(
    mpi: Mpi, build: Path, mix: ProgramMix, seconds: float, libraries: Sequence[Path], profile: Path
) -> float:
    """Return the median seconds of a step of the program, which computes for so many."""
    start = this_machine.launch(mpi, PROCS, build=build, preload=libraries)
    steps = round(seconds / (1e-6 * mix.compute_us))
    words = [
        str(build / "tests" / "swp_mix"),
        *map(str, (steps, mix.bytes, mix.compute_us, mix.kind)),
    ]
    done = subprocess.run(
        [*start.argv_prefix, *words],
        env=os.environ | start.env | {"SWITCHPOINT_PROFILE": str(profile)},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=True,
    )
    return float(done.stdout.split()[-2])


def overhead(mpi: Mpi, name: str, pairs: int, seconds: float) -> Figure:
    """Return the median ratio of an MPI for a mix of that name, and print its interval."""
    build = build_kernels(mpi)
    library = profiler(build)
    assert library is not None
    ratios = []
    with tempfile.TemporaryDirectory() as scratch:
        profile = Path(scratch) / "mix.profile"
        for pair in range(pairs):
            order = ([library], []) if pair % 2 else ([], [library])
            times = [step_s(mpi, build, MIXES[name], seconds, its, profile) for its in order]
            plain_s, profiled_s = reversed(times) if pair % 2 else times
            ratios.append(profiled_s / plain_s)
    ordered = np.sort(ratios)
    low, high = stats.median_interval_ranks(np.array([pairs]))
    print(f"{mpi.name}, {name}: profiled / plain {np.median(ordered):.4f}", end=" ")
    print(f"({ordered[low[0]]:.4f} to {ordered[high[0]]:.4f}, {pairs} pairs)", flush=True)
    title = f"{mpi.name}, {name}: with a profile / without"
    return Figure(title, float(np.median(ordered)), "times", most=MIXES[name].most)


def main() -> int:
    """Compare under every MPI."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--pairs", type=int, default=10, help="of runs (%(default)s)")
    parser.add_argument("--seconds", type=float, default=0.1, help="of a run (%(default)s)")
    options = options_of(parser, "profiling", {"pairs": 2, "seconds": 0.01})
    figures = [
        overhead(mpi, name, options.pairs, options.seconds)
        for mpi in measured_mpis(options)
        for name in MIXES
    ]
    return conclude("profiling", figures, options)


if __name__ == "__main__":
    sys.exit(main())
