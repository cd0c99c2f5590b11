"""A rank that is killed, stopped, exits or has no memory in any phase: the job says so and ends."""

import json
import os
import re
import subprocess
from itertools import product
from pathlib import Path

import pytest

from tests.conftest import by_day
from tests.kernels.benchrun import SEVEN
from tests.kernels.conftest import MPIS, Kernels, finish, in_turn
from tests.kernels.preloaded import run_preloaded, write_rules
from tests.processes import TIMEOUT_S
from tuner.machine.mpi import launch

CORRUPT = "bench/swpbench_corrupt"
PATTERNS = {"allreduce": "blocks", "spmv": f"matrix:{SEVEN}"}
METHODS = {"exchange": "direct alltoallv neighbor", "allreduce": "vendor: binomial ring bine"}

PHASES = (
    ("exchange", "exchange_plan"),
    ("discovery", "discovery_plan"),
    ("allreduce", "collective_plan"),
    ("exchange", "exchange_execute"),
    ("spmv", "exchange_start"),
    ("spmv", "exchange_wait"),
    ("discovery", "discovery_execute"),
    ("allreduce", "collective_execute"),
)
"""The operations, and their calls before which a rank fails."""

STOPPED = r"made no progress in 2 s: (planning|execution|agreement|freeing|going on|probe)"
SAID = {
    "kill": "signal 9|EXIT CODE: 9",  # by the launcher
    "stop": rf"^swpbench: (rank \d|.*soak failed: .*) {STOPPED}",
    "exit": "^swpbench: rank 1 exits before the end$",
    "memory": "[Mm]emory|signal (6|9|11)|EXIT CODE: (6|9|11)|fails at 8 bytes: MPI_",
}

CASES = [*product(("run", "soak"), PHASES, SAID)]
BY_DAY = (0, 13, 21, 38, 43, 49)  # each fault, both commands, and most phases


def operation_of(name: str) -> list[str]:
    """Return the options that name an operation, its pattern, and methods that need no proof."""
    words = ["--op", name, "--pattern", PATTERNS.get(name, "random:degree=2")]
    return [*words, "--methods", METHODS.get(name, "all")]


@pytest.mark.parametrize(
    ("kernels", "case"),
    by_day([*in_turn(CASES[each] for each in BY_DAY)], product(MPIS, CASES)),
    indirect=["kernels"],
    ids=lambda case: "-".join([case[0], case[1][1], case[2]]) if isinstance(case, tuple) else None,
)
def test_a_rank_that_fails_ends_the_job_with_words(
    kernels: Kernels, tmp_path: Path, case: tuple[str, tuple[str, str], str]
) -> None:
    command, (operation, call), fault = case
    before, file = tmp_path / "before", tmp_path / "file"
    other = "exchange" if operation == "allreduce" else "allreduce"
    repeats = {"run": "--max-samples", "soak": "--executions"}[command]
    words = ["--sizes", "8", repeats, "20", "--limit", "2"]
    arguments = [command, *words, *operation_of(other)]
    arguments += ["--out", str(before), "--then", *words, *operation_of(operation)]
    arguments += ["--out", str(file)]
    env = {"SWP_CORRUPT": fault, "SWP_CORRUPT_AT": call, "SWP_CORRUPT_RANK": "1"}
    env["SWP_CORRUPT_CALL"] = "2" if call.endswith("_plan") else "15"
    done = kernels.run(CORRUPT, arguments, 2, env)
    assert done.returncode != 0
    assert re.search(SAID[fault], done.stdout + done.stderr, re.MULTILINE), done.stderr
    kept = [json.loads(line)["record"] for line in before.read_text().splitlines()]
    assert kept[-1] == "end"


OTHERS = {
    "probe": ["--sizes", "8"],
    "overlap": ["--pattern", "ft:rows=1,elements=2", "--methods", "exchange:by=isend"],
}
"""The other commands that measure, with options by which rank 1 sends."""


@pytest.mark.parametrize(
    ("kernels", "command", "fault"),
    by_day(
        [("mpich", "probe", "stop"), ("openmpi", "overlap", "stop")], product(MPIS, OTHERS, SAID)
    ),
    indirect=["kernels"],
)
def test_a_rank_that_fails_ends_other_measurements_with_words(
    kernels: Kernels, tmp_path: Path, command: str, fault: str
) -> None:
    arguments = [command, *OTHERS[command], "--max-samples", "20", "--limit", "2"]
    env = {"SWP_CORRUPT": fault, "SWP_CORRUPT_AT": "isend", "SWP_CORRUPT_RANK": "1"}
    env["SWP_CORRUPT_CALL"] = "15"
    done = kernels.run(CORRUPT, [*arguments, "--out", str(tmp_path / "file")], 2, env)
    assert done.returncode != 0
    assert re.search(SAID[fault], done.stdout + done.stderr, re.MULTILINE), done.stderr


@pytest.mark.check
def test_ranks_without_a_partner_wait_for_probes_longer_than_the_limit(
    any_kernels: Kernels, tmp_path: Path
) -> None:
    arguments = ["probe", "--sizes", "4M", "--max-samples", "40", "--limit", "0.5"]
    done = any_kernels.run(CORRUPT, [*arguments, "--out", str(tmp_path / "file")], 3)
    assert done.returncode == 0, done.stderr


FAILS = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
typedef int alltoall(const void *, int, MPI_Datatype, void *, int, MPI_Datatype, MPI_Comm);
int MPI_Alltoall(const void *send, int sends, MPI_Datatype sent, void *recv, int recvs,
                 MPI_Datatype received, MPI_Comm comm) {
  static int calls;
  int rank;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 1 && calls++ == atoi(getenv("FAILS_AT"))) {
    if (strcmp(getenv("FAILS"), "kill") == 0)
      raise(SIGKILL);
    exit(3);
  }
  alltoall *next = (alltoall *)dlsym(RTLD_NEXT, "MPI_Alltoall");
  return next(send, sends, sent, recv, recvs, received, comm);
}
"""


@pytest.mark.parametrize(
    ("kernels", "fault", "call", "method"),
    by_day(
        [("mpich", "kill", 20, "shared"), ("openmpi", "exit", 0, "bruck")],
        product(MPIS, ("kill", "exit"), (0, 20), ("bruck", "shared", "pairwise")),
    ),
    indirect=["kernels"],
)
def test_a_rank_that_fails_ends_a_program_with_a_table_as_without(
    kernels: Kernels, tmp_path: Path, fault: str, call: int, method: str
) -> None:
    """At its first call the others plan, at a later one they wait for it."""
    source, library = tmp_path / "fails.c", tmp_path / "fails.so"
    source.write_text(FAILS)
    build = [kernels.mpi.mpicc, "-shared", "-fPIC", source, "-o", library, "-ldl"]
    subprocess.run(build, check=True)
    table = write_rules(tmp_path, f"op=alltoall method={method}")
    env = {"FAILS": fault, "FAILS_AT": str(call)}
    words = ["100000000", "64", "0"]
    start = launch(kernels.mpi, 3, build=kernels.build, preload=[library])
    plain = finish(
        [*start.argv_prefix, str(kernels.build / "tests/swp_mix"), *words],
        os.environ | start.env | env,
        TIMEOUT_S,
    )
    ended = run_preloaded(kernels, "swp_mix", 3, *words, table=table, ahead=[library], env=env)
    # MPICH's launcher answers for the rank that exits, or for one that it kills then.
    either = {3, 9} if kernels.mpi.family == "mpich" and fault == "exit" else set()
    assert plain.returncode != 0 and ended.returncode != 0, ended.stderr
    assert ended.returncode in {plain.returncode, *either}, ended.stderr
