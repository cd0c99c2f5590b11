"""Number of algorithm names that pass the proof though the MPI library runs the same for all.

A preloaded library lets no control variable be set, so that every `vendor:algorithm=NAME` is the
library's own choice; under Open MPI 5 on virtual nodes that is the two-level `han`, in which ranks
wait in other places from call to call. swpbench should prove none of the names.
Run from the checkout: python -m tests.bench.same_names [--names N] [--load PROCESSES] [--mpi NAME]
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from itertools import count
from math import comb
from pathlib import Path

from tests.bench.collectives import place
from tests.bench.report import Figure, conclude, measured_mpis, options_of
from tests.kernels.benchrun import SWPBENCH
from tests.kernels.conftest import build_kernels, finish
from tuner.domain.operations import ALGORITHM
from tuner.machine.mpi import LaunchCommand, Mpi
from tuner.machine.nodes.namespaces import NodesError

PROCS, SIZES = 4, "256,4K,64K"
MOST = 0.01
"""The most of the names that may pass."""
CHANCE = 0.05  # that more of them pass than the limit that is given

OPERATIONS = ("bcast", "allreduce", "allgather", "reduce", "alltoall")
UNSET = Path(__file__).with_name("unset.c")
PRELOADED = 'LD_PRELOAD="$LD_PRELOAD $0" exec "$@"'
TIMEOUT_S = 600.0  # far beyond a launch

PASSED, SAME, UNSEEN = "passed", "same", "unseen"


@contextlib.contextmanager
def loaded(processes: int) -> Iterator[None]:
    """Keep cores busy."""
    busy = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(processes)]
    try:
        yield
    finally:
        for each in busy:
            each.kill()
            each.wait()


def judge(
    start: LaunchCommand, command: list[str | Path], operation: str, number: int, out: Path
) -> Counter[str]:
    """Launch swpbench once; return how many names passed, seemed the same, or were not seen."""
    words = ["run", "--op", operation, "--pattern", "blocks", "--methods", "vendor"]
    words += ["--sizes", SIZES, "--max-samples", "1", "--seed", str(number), "--out", str(out)]
    finished = finish(
        [*start.argv_prefix, *map(str, command), *words], os.environ | start.env, TIMEOUT_S
    )
    if finished.returncode != 0:
        raise RuntimeError(finished.stderr[-2000:])
    *records, end = map(json.loads, out.read_text().splitlines())
    out.unlink()
    methods = [record["method"] for record in records if record["record"] == "case"]
    judged = Counter({PASSED: sum(method.startswith(ALGORITHM) for method in methods)})
    for skip in end["skipped"]:
        judged[SAME] += "observed to change" in skip["reason"] or "run the same" in skip["reason"]
        judged[UNSEEN] += "to wait for another" in skip["reason"]
    return judged


def judge_all(
    mpi: Mpi, start: LaunchCommand, build: Path, names: int, scratch: Path
) -> Counter[str]:
    """Judge so many names; none where the library has none."""
    unset = scratch / "libunset.so"
    subprocess.run([mpi.mpicc, "-shared", "-fPIC", UNSET, "-o", unset], check=True)
    command: list[str | Path] = ["sh", "-c", PRELOADED, unset, build / SWPBENCH]
    judged: Counter[str] = Counter()
    for number in count():
        operation = OPERATIONS[number % len(OPERATIONS)]
        judged += judge(start, command, operation, number, scratch / "raw.jsonl")
        seen = judged[PASSED] + judged[SAME]
        if seen >= names or (number >= len(OPERATIONS) and seen == 0):
            break
    return judged


def most(passed: int, seen: int) -> float:
    """Return the upper limit of the part that passes (Clopper and Pearson), one-sided."""
    low, high = passed / seen, 1.0
    for _ in range(50):
        part = (low + high) / 2
        terms = (comb(seen, k) * part**k * (1 - part) ** (seen - k) for k in range(passed + 1))
        low, high = (part, high) if sum(terms) > CHANCE else (low, part)
    return high


def main() -> int:
    """Judge the names of every MPI."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--names", type=int, default=400, help="of each MPI (%(default)s)")
    parser.add_argument("--load", type=int, default=0, help="busy processes beside (%(default)s)")
    parser.add_argument("--mpi", help="of this name only")
    options = options_of(parser, "same_names", {"names": 4})
    figures: list[Figure] = []
    with place(PROCS) as (system, start), loaded(options.load):
        for mpi in measured_mpis(options, options.mpi):
            try:
                launch = start(mpi, build := build_kernels(mpi))
            except NodesError as error:
                print(f"{mpi} skipped: {error}")
                continue
            with tempfile.TemporaryDirectory() as scratch:
                judged = judge_all(mpi, launch, build, options.names, Path(scratch))
            passed, seen = judged[PASSED], judged[PASSED] + judged[SAME]
            print(f"{mpi}, {system}: {passed} of {seen} passed, {judged[UNSEEN]} unseen")
            if seen:
                name = f"{mpi.name}: same names that pass, at most"
                figures.append(Figure(name, most(passed, seen), f"({passed} of {seen})", most=MOST))
    return conclude("same_names", figures, options)


if __name__ == "__main__":
    sys.exit(main())
