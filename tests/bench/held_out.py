"""Measure the times by which tests.bench.unmeasured judges, on an idle machine.

Every launch of a layout measures all methods of six operations; layouts take turns, so that a drift
of the machine is spread over them. What the data has of the same cases is replaced. On simulated
machines each operation has its own launch, as SMPI's algorithms depend on it, and all are equal, so
that one sample is enough: --launches 1 --max-samples 1 --degrees 6. From 48 ranks on the methods
that fit few process counts are left out there, --without 'grid=|dims=[4-9]', and from 128 on
--sizes 8,8192 are enough.
Run from the checkout: python -m tests.bench.held_out --system virtual-nodes:tcp-1gbit --mpi openmpi
"""

from __future__ import annotations

import argparse
import itertools
import json
import lzma
import re
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

from tests.bench.unmeasured import DATA
from tuner import atomic
from tuner.campaign import launches
from tuner.domain.operations import COLLECTIVES
from tuner.machine.nodes.launch import VIRTUAL_NODES
from tuner.machine.nodes.namespaces import available
from tuner.machine.simulation.machines import is_simulated
from tuner.machine.systems import BuiltKernels, kernels, launch_on
from tuner.rawfile.reading import BenchFile

LAYOUTS = "1x2 1x3 1x4 2x1 2x2 2x3 2x4 3x1 3x2 3x3 3x4 4x1 4x2 4x3 4x4"
OPERATIONS = "exchange,discovery,bcast,allreduce,allgather,alltoall"
SIZES = "8,256,8192,65536"
DEGREES = "2,5"
TIMEOUT_S = 3600.0

Key = tuple[Any, ...]
"""The first fields of a row: what was measured."""


def patterns(operation: str, procs: int, degrees: Iterable[int]) -> list[str]:
    """Return what an operation sends: random messages of these degrees at most, or blocks."""
    if operation in COLLECTIVES:
        return ["blocks"]
    possible = sorted({min(degree, procs - 1) for degree in degrees})
    return [f"random:degree={degree},seed=1" for degree in possible]


def launch(
    options: argparse.Namespace,
    built: BuiltKernels,
    layout: tuple[int, int],
    operations: list[str],
    number: int,
) -> Iterator[tuple[tuple[str, str], BenchFile]]:
    """Yield the raw files of one launch of operations, each with operation and pattern."""
    nodes, ppn = layout
    procs = nodes * ppn
    only = operations[0] if len(operations) == 1 else ""
    start = launch_on(options.system, built.mpi, procs, ppn, built.root, only)
    specs = launches.specs(start, built.swpbench, [procs]) if options.without else {}
    degrees = [int(degree) for degree in options.degrees.split(",")]
    with tempfile.TemporaryDirectory() as scratch:
        wanted: list[tuple[list[str], Path]] = []
        sent: list[tuple[str, str]] = []
        for operation in operations:
            its = specs.get((operation, procs), ["all"])
            methods = [spec for spec in its if not specs or not re.search(options.without, spec)]
            for pattern in patterns(operation, procs, degrees):
                words = ["--op", operation, "--pattern", pattern, "--sizes", options.sizes]
                words += ["--budget", str(options.budget), "--launch", str(number), "--quiet"]
                words += ["--seed", str(number + 1), "--methods", ";".join(methods)]
                words += ["--max-samples", str(options.max_samples)]
                wanted.append((words, Path(scratch) / f"{len(wanted)}.jsonl"))
                sent.append((operation, pattern))
        yield from zip(
            sent, launches.run_each(start, built.swpbench, wanted, TIMEOUT_S), strict=True
        )


def main() -> int:
    """Measure, and write the data anew."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--system", default=f"{VIRTUAL_NODES}:tcp-1gbit", help="ReFrame's name")
    parser.add_argument("--mpi", default="", help="name; by default the first")
    parser.add_argument("--layouts", default=LAYOUTS, help="nodes x processes on each")
    parser.add_argument("--operations", default=OPERATIONS)
    parser.add_argument("--sizes", default=SIZES)
    parser.add_argument("--degrees", default=DEGREES, help="of exchanges and discoveries")
    parser.add_argument("--without", default="", help="methods to leave out, a pattern")
    parser.add_argument("--max-samples", type=int, default=200, help="1 where all are equal")
    parser.add_argument("--launches", type=int, default=4)
    parser.add_argument("--budget", type=float, default=1.5, help="seconds for an operation")
    parser.add_argument("--data", type=Path, default=DATA)
    options = parser.parse_args()
    built = kernels((options.system, options.mpi))
    layouts = [tuple(map(int, each.split("x"))) for each in options.layouts.split()]
    found: dict[Key, dict[str, list[float | None]]] = defaultdict(dict)
    virtual = options.system.startswith(VIRTUAL_NODES)
    operations = options.operations.split(",")
    together = [[each] for each in operations] if is_simulated(options.system) else [operations]
    with available() if virtual else nullcontext():
        for number in range(options.launches):
            for (nodes, ppn), its in itertools.product(layouts, together):
                what = f"{nodes} x {ppn}, {', '.join(its)}"
                print(f"launch {number + 1} of {options.launches}, {what}", flush=True)
                for sent, file in launch(options, built, (nodes, ppn), its, number):
                    if file.header is None:
                        continue
                    layout = (nodes, ppn, file.header.oversubscribed)
                    features = {case.size_bytes: case.features for case in file.cases}
                    for (method, size), median_s in file.medians_s().items():
                        degrees = features[size].mmax, features[size].mavg  # those of all methods
                        key = (options.system, built.mpi.name, *sent, *layout, *degrees, size)
                        none: list[float | None] = [None] * options.launches
                        found[key].setdefault(method, none)[number] = round(1e6 * median_s, 4)
    there = json.loads(lzma.decompress(options.data.read_bytes())) if options.data.exists() else []
    rows = {tuple(row[:10]): row[10] for row in there} | found
    ordered = [[*key, times] for key, times in sorted(rows.items())]
    atomic.write(options.data, lzma.compress(json.dumps(ordered).encode()))
    print(f"{len(found)} rows in {options.data}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
