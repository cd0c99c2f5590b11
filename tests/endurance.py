"""Methods executed as often as in years of production, and commands that fail or end at any point.

Every payload is checked. Methods by the node's memory are executed 10^7 times, past the largest
number of their calls, near which these begin. Parsers are given a hundred million
inputs. Results are kept as those of `make nightly`, so a second start goes on. A share of the
executions takes the same share of the time: all of it takes a day on two cores.
Run from the checkout: python -m tests.endurance [--share 0.01] [PART...]
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product

from tests import kill_commands, kill_writers, starved
from tests.fuzzing.__main__ import TARGETS, lacking
from tests.nightly import PYTEST, NightPart, make_parser, run_missing
from tuner.domain.operations import COLLECTIVES, sizes_for
from tuner.machine.mpi import Mpi, find_mpis
from tuner.paths import CHECKOUT

EXECUTIONS = dict.fromkeys(("exchange", "discovery", *COLLECTIVES), 1_000_000)
PROMPT_EXECUTIONS = 20_000_000
"""Of discoveries among which no rank is made late: some hung after 2^24."""

BY_MEMORY_EXECUTIONS = 10_000_000
ON_NODES = "twolevel:node=shared"
BY_LEADERS = f"{ON_NODES},leaders=2"
BY_MEMORY = {
    "exchange": ("shared lent", "shared nap:node=shared"),
    "discovery": ("shared", "nap:find=dense,node=shared"),
    **{each: ("shared", ON_NODES) for each in COLLECTIVES if each != "allgatherv"},
    **dict.fromkeys(("bcast", "allreduce", "allgather"), ("shared", f"{ON_NODES} {BY_LEADERS}")),
    **dict.fromkeys(("alltoallv", "reduce_scatter_block"), ("shared", "")),
    "alltoall": ("shared", BY_LEADERS),
}
"""Methods for one node, and for nodes of two ranks, by operation."""

ONE_WAY = CHECKOUT / "tests" / "data" / "matrix" / "upper-bidiagonal.mtx"
"""A matrix by whose halo each rank sends to one that sends it nothing, and so acknowledges."""

PATTERNS = {
    "exchange": {"": "random:degree=1,seed=1", "-one-way": f"matrix:{ONE_WAY}"},
    "discovery": {"": "random:degree=1,seed=1"},
    **{each: {"": "blocks"} for each in COLLECTIVES},
}
"""By the suffix of a part; the first is that of soaks of all methods."""

PROCS = (2, 4)
LIMIT_MIN = 24 * 60
KILLS = dict.fromkeys(kill_commands.COMMANDS, 100) | dict.fromkeys(kill_writers.COMMANDS, 200)
CROWD_S = 600.0
CAMPAIGNS = 200
"""Of half a million samples each, in one store."""

FAULTS = NightPart(
    "faults",
    LIMIT_MIN,
    command=(*PYTEST, "-m", "", "tests/test_faults.py", "tests/test_kill_writers.py"),
)
"""Every change of a file by ingest, keep, tune and export fails, and kills them; power is lost.

The tests of the day are among these.
"""

WRITER_FAULTS = NightPart(
    "faults-swpbench",
    LIMIT_MIN,
    command=(
        *PYTEST,
        "-m",
        "",
        "tests/kernels/test_bench_errors.py::test_a_call_on_the_output_that_fails",
    ),
)
"""Every call by which `swpbench` writes its file fails, by each error."""


def find_parts(share: float) -> Iterator[NightPart]:
    """Yield faults, lack of memory, a crowd, growth, kills, parsers, and soaks by MPI and ranks.

    Parsers for which this machine has no compiler or library are optional.
    """
    yield FAULTS
    yield WRITER_FAULTS
    every = max(1, round(1 / share))
    yield from_tests("starved", "starved", f"--every={every}", *starved.COMMANDS)
    yield from_tests("crowd", "crowd", f"--seconds={share * CROWD_S:g}")
    campaigns = max(20, round(share * CAMPAIGNS))  # fewer show no growth
    yield from_tests("growth", "bench.store_growth", f"--campaigns={campaigns}")
    for name, kill_count in KILLS.items():
        module = "kill_commands" if name in kill_commands.COMMANDS else "kill_writers"
        count = max(1, round(share * kill_count))
        yield from_tests(f"kills-{name}", module, f"--kills={count}", name)
    for target in TARGETS:
        part = from_tests(f"fuzzing-{target}", "fuzzing", f"--share={share}", target)
        yield replace(part, is_optional=bool(lacking(target)))
    for mpi in find_mpis():
        for procs in PROCS:
            for operation, executions in EXECUTIONS.items():
                yield make_part(mpi, procs, operation, share * executions)
            options = ["--methods=all", "--prompt"]
            prompt = share * PROMPT_EXECUTIONS
            yield make_part(mpi, procs, "discovery", prompt, "-prompt", options)
        for operation in BY_MEMORY:
            yield from by_memory(mpi, operation, share * BY_MEMORY_EXECUTIONS)


def by_memory(mpi: Mpi, operation: str, executions: float) -> Iterator[NightPart]:
    """Yield the soaks of an operation's methods that use the node's memory."""
    on_one_node, on_nodes = BY_MEMORY[operation]
    for procs, way in product(PROCS, PATTERNS[operation]):
        options = [f"--methods={on_one_node}"]
        yield make_part(mpi, procs, operation, executions, "-memory", options, way)
    if on_nodes:
        options = [f"--methods={on_nodes}", "--ppn=2"]
        yield make_part(mpi, max(PROCS), operation, executions, "-layers", options)


def from_tests(name: str, module: str, *words: str) -> NightPart:
    """Return a part that runs a program of `tests`."""
    return NightPart(name, LIMIT_MIN, command=(sys.executable, "-m", f"tests.{module}", *words))


def make_part(
    mpi: Mpi,
    procs: int,
    operation: str,
    executions: float,
    suffix: str = "",
    options: Sequence[str] = ("--methods=all",),
    way: str = "",
) -> NightPart:
    """Return the soak of methods of an operation on one of its patterns, by messages of 8 bytes."""
    words = [
        *(mpi.name, str(procs), *options),
        f"--sizes={sizes_for(operation, '8')}",
        f"--executions={max(1, round(executions))}",
        f"--op={operation}",
        f"--pattern={PATTERNS[operation][way]}",
    ]
    return from_tests(f"{operation}-{mpi.name}-{procs}{suffix}{way}", "soaked", *words)


def main() -> int:
    """Run the parts that are not done yet."""
    parser = make_parser(__doc__)
    parser.add_argument("--share", type=float, default=1.0, help="of the executions (default: 1)")
    options = parser.parse_args()
    if not 0 < options.share < math.inf:
        parser.error(f"--share={options.share:g}: not a positive number")
    return run_missing(f"endurance-{options.share:g}", [*find_parts(options.share)], options)


if __name__ == "__main__":
    sys.exit(main())
