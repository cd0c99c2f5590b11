"""Methods for several nodes whose messages on a node go by its memory, against the same by MPI.

Under each MPI, on four virtual nodes of two ranks: `nap` and `twolevel`, measured by the same
launches, with their ratio paired within rounds. Without virtual nodes it is skipped.
Run from the checkout: python -m tests.bench.node_layers [--seconds S] [OPERATION...]
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator

from tests.bench.collectives import Launches, place
from tests.bench.report import Figure, conclude, measured_mpis, options_of, raw_files
from tests.kernels.conftest import build_kernels
from tuner.domain.operations import method_word
from tuner.machine.nodes.launch import VIRTUAL_NODES
from tuner.machine.nodes.namespaces import NodesError
from tuner.units import size_text

PROCS = 8
MOST = 0.9
"""The most of the time by MPI, as geometric mean over the sizes of an operation."""
MEMORY = "node=shared"
LAYERED = {
    "exchange": "nap",
    **dict.fromkeys(("bcast", "gather", "scatter", "reduce", "allreduce", "allgather"), "twolevel"),
}
PATTERN = "random:degree=4"


def compare(its: Launches, operation: str, seconds: float, launches: int) -> Iterator[float]:
    """Measure an operation; print the ratio at each size, and yield its logarithm."""
    method = LAYERED[operation]
    by_memory = f"{method}:{MEMORY}"
    pattern = PATTERN if operation == "exchange" else "blocks"
    methods = f"{method_word(method)} {by_memory}"
    by_size = its.measure(operation, methods, seconds, launches, pattern=pattern)
    for size, at_size in sorted(by_size.items()):
        log, low, high = at_size.log_ratio(by_memory, method)
        interval = f"{math.exp(log):.3f} [{math.exp(low):.3f}, {math.exp(high):.3f}]"
        print(f"{operation:12}{size_text(size):>8}  {by_memory} / {method} {interval}", flush=True)
        yield log


def main() -> int:
    """Compare under every MPI."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=4, help="of a launch (%(default)s)")
    parser.add_argument("--launches", type=int, default=5)
    parser.add_argument("--sizes", default="8,64,512,1K")
    parser.add_argument("operations", nargs="*", default=list(LAYERED), metavar="OPERATION")
    least = {"seconds": 0.05, "launches": 2, "sizes": "8", "operations": ["exchange", "bcast"]}
    options = options_of(parser, "node_layers", least)
    figures: list[Figure] = []
    with place(PROCS) as (system, start):
        skipped = "" if system.startswith(VIRTUAL_NODES) else "no virtual nodes"
        for one in [] if skipped else measured_mpis(options):
            results = raw_files(options, "node_layers")
            print(f"\n== on-node layers, {one}, {PROCS} ranks, {system}; raw files in {results}")
            try:
                launch = start(one, build := build_kernels(one))
            except NodesError as error:
                skipped = str(error)
                print(f"skipped: {skipped}")
                continue
            its = Launches(launch, build, system, one.name, results, options.sizes)
            for operation in options.operations:
                logs = list(compare(its, operation, options.seconds, options.launches))
                name = f"{one.name}: {operation} by {LAYERED[operation]}, {MEMORY} / mpi"
                mean = math.exp(sum(logs) / len(logs))
                figures.append(Figure(name, mean, "times, geometric mean over sizes", most=MOST))
    return conclude("node_layers", figures, options, skipped)


if __name__ == "__main__":
    sys.exit(main())
