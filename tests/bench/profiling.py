"""The cost of a profile: a program with steps of 100 us, with and without it, in turn.

Each pair of runs is two ranks that compute, then exchange 64 bytes by MPI_Alltoall; the program
times itself, without its start. The figure is the median of the pairs' ratios.
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

import numpy as np

from tests.bench.report import Figure, conclude, measured_mpis, options_of
from tests.conftest import TIMEOUT_S
from tests.kernels.conftest import build_kernels
from tuner import stats
from tuner.machine import mpi as this_machine
from tuner.machine.mpi import Mpi, profiler

PROCS, BYTES, COMPUTE_US = 2, 64, 100
MOST_SLOWER = 1.01


def seconds(mpi: Mpi, build: Path, steps: int, libraries: Sequence[Path], profile: Path) -> float:
    """Return the seconds of the program's steps."""
    start = this_machine.launch(mpi, PROCS, build=build, preload=libraries)
    words = [str(build / "tests" / "swp_mix"), str(steps), str(BYTES), str(COMPUTE_US)]
    done = subprocess.run(
        [*start.argv_prefix, *words],
        env=os.environ | start.env | {"SWITCHPOINT_PROFILE": str(profile)},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=True,
    )
    return float(done.stdout.split()[-2])


def overhead(mpi: Mpi, pairs: int, steps: int) -> Figure:
    """Return the median ratio of an MPI, and print its interval."""
    build = build_kernels(mpi)
    library = profiler(build)
    assert library is not None
    ratios = []
    with tempfile.TemporaryDirectory() as scratch:
        profile = Path(scratch) / "mix.profile"
        for pair in range(pairs):
            order = ([library], []) if pair % 2 else ([], [library])
            times = [seconds(mpi, build, steps, libraries, profile) for libraries in order]
            plain_s, profiled_s = reversed(times) if pair % 2 else times
            ratios.append(profiled_s / plain_s)
    ordered = np.sort(ratios)
    low, high = stats.median_interval_ranks(np.array([pairs]))
    print(f"{mpi.name}: profiled / plain {np.median(ordered):.4f}", end=" ")
    print(f"({ordered[low[0]]:.4f} to {ordered[high[0]]:.4f}, {pairs} pairs)", flush=True)
    name = f"{mpi.name}: with a profile / without"
    return Figure(name, float(np.median(ordered)), "times", most=MOST_SLOWER)


def main() -> int:
    """Compare under every MPI."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--pairs", type=int, default=40, help="of runs (%(default)s)")
    parser.add_argument("--steps", type=int, default=5000, help="of a run (%(default)s)")
    options = options_of(parser, "profiling", {"pairs": 2, "steps": 50})
    figures = [overhead(mpi, options.pairs, options.steps) for mpi in measured_mpis(options)]
    return conclude("profiling", figures, options)


if __name__ == "__main__":
    sys.exit(main())
