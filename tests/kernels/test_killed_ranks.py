"""A rank that is killed while it uses the node's memory: the launcher ends the job, with status."""

import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Require, by_day
from tests.kernels.benchrun import CORRUPT, SWPBENCH
from tests.kernels.conftest import Kernels, finish, in_turn
from tests.processes import TIMEOUT_S, wait_for
from tuner.machine.mpi import launch

SOAKS = (
    *("exchange shared", "allreduce shared", "discovery shared", "exchange lent", "bcast shared"),
    *("exchange nap:node=shared --ppn=2", "allreduce twolevel:node=shared --ppn=2"),
    *("discovery nap:find=dense,node=shared --ppn=2", "exchange shared --ppn=2"),
)
PATTERNS = {"exchange": "random:degree=2", "discovery": "random"}
PROCS = 3

EARLY = range(48, 64)
"""The seeds by which a rank is killed as it starts; by others it has mapped the node's memory."""


def ranks_of(program: Path, mapped: str = "") -> list[int]:
    """Return the processes of the program that have mapped a file of that name."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "exe").readlink() != program:
                continue
            if mapped in (process / "maps").read_text():
                found.append(int(process.name))
        except OSError:  # it ended, or is another user's
            continue
    return found


@pytest.mark.parametrize(
    ("kernels", "seed"), by_day([*in_turn(range(2))], in_turn(range(64))), indirect=["kernels"]
)
def test_nobody_outlives_a_killed_rank(kernels: Kernels, tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    mapped = "" if seed in EARLY else "memfd:switchpoint"
    operation, method, *nodes = SOAKS[seed // 2 % len(SOAKS)].split()
    program = Path(shutil.copy(kernels.build / SWPBENCH, tmp_path / "swpbench"))  # to be found by
    start = launch(kernels.mpi, PROCS, build=kernels.build)
    words = ["soak", "--op", operation, "--pattern", PATTERNS.get(operation, "blocks"), *nodes]
    words += ["--sizes", "8", "--methods", method, "--executions", "100000000"]
    words += ["--out", str(tmp_path / "out")]
    with subprocess.Popen(
        [*start.argv_prefix, str(program), *words],
        env=os.environ | start.env,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as launcher:
        try:
            wait_for(lambda: launcher.poll() is not None or len(ranks_of(program, mapped)) == PROCS)
            assert launcher.poll() is None
            time.sleep(chance.uniform(0, 0.2 if mapped else 0.05))
            os.kill(chance.choice(ranks_of(program)), signal.SIGKILL)
            assert launcher.wait(TIMEOUT_S) != 0
            wait_for(lambda: not ranks_of(program))
        finally:
            launcher.kill()
            for rank in ranks_of(program):
                os.kill(rank, signal.SIGKILL)


SMALL = 'mount -t tmpfs -o size=64k none /dev/shm && "$@"; code=$?; '
SMALL += """echo "bytes: $(($(stat -f -c '%b * %S' /dev/shm)))"; """
SMALL += 'echo "left: $(ls -A /dev/shm)"; exit $code'
"""Runs a command where /dev/shm has 64 KiB, less than a file of the node's memory; lists it."""


@pytest.mark.parametrize("killed", [False, True])
def test_the_nodes_memory_needs_nothing_of_a_small_dev_shm_and_leaves_nothing(
    kernels_of: Callable[[str], Kernels], tmp_path: Path, require: Require, killed: bool
) -> None:
    """Open MPI needs none by `tcp`, while MPICH over UCX does not start."""
    alone = ["unshare", "--mount", "--map-root-user"]
    command = [*alone, "true"]
    works = shutil.which("unshare") and subprocess.call(command, stderr=subprocess.DEVNULL) == 0
    require("namespaces", bool(works), "unshare --mount does not work here")
    kernels = kernels_of("openmpi")
    start = launch(kernels.mpi, 2, build=kernels.build)
    env = os.environ | start.env | {"OMPI_MCA_btl": "self,tcp"}
    env |= {"SWP_CORRUPT_RANK": "1", "SWP_CORRUPT_CALL": "100"}
    env |= {"SWP_CORRUPT": "kill", "SWP_CORRUPT_AT": "exchange_execute"} if killed else {}
    words = ["soak", "--op=exchange", "--pattern=random:degree=1", "--sizes=8", "--methods=shared"]
    words += ["--executions=200", f"--out={tmp_path / 'out'}", "--quiet"]
    soak = [*start.argv_prefix, str(kernels.build / CORRUPT), *words]
    done = finish([*alone, "sh", "-c", SMALL, "sh", *soak], env, TIMEOUT_S)
    assert (done.returncode != 0) == killed, done.stderr
    assert ("soak passed" in done.stdout) != killed
    assert ("signal 9" in done.stdout + done.stderr) == killed, "the launcher names it"
    assert done.stdout.endswith("bytes: 65536\nleft: \n")
