"""A rank that is killed while it uses the node's memory: the launcher ends the job, with status."""

import os
import random
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.conftest import by_day
from tests.kernels.benchrun import SWPBENCH
from tests.kernels.conftest import Kernels, in_turn
from tests.processes import TIMEOUT_S, wait_for
from tuner.machine.mpi import launch

SOAKS = (
    *("exchange shared", "allreduce shared", "discovery shared", "exchange lent", "bcast shared"),
    *("exchange nap:node=shared --ppn=2", "allreduce twolevel:node=shared --ppn=2"),
    *("discovery nap:find=dense,node=shared --ppn=2", "exchange shared --ppn=2"),
)
PATTERNS = {"exchange": "random:degree=2", "discovery": "random"}
PROCS = 3


def ranks_of(program: Path) -> list[int]:
    """Return the processes of the program that have mapped memory of the node."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (process / "exe").readlink() != program:
                continue
            if "memfd:switchpoint" in (process / "maps").read_text():
                found.append(int(process.name))
        except OSError:  # it ended, or is another user's
            continue
    return found


@pytest.mark.parametrize(
    ("kernels", "seed"), by_day([*in_turn(range(2))], in_turn(range(64))), indirect=["kernels"]
)
def test_nobody_outlives_a_killed_rank(kernels: Kernels, tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
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
            wait_for(lambda: launcher.poll() is not None or len(ranks_of(program)) == PROCS)
            assert launcher.poll() is None
            time.sleep(chance.uniform(0, 0.2))
            os.kill(chance.choice(ranks_of(program)), signal.SIGKILL)
            assert launcher.wait(TIMEOUT_S) != 0
            wait_for(lambda: not ranks_of(program))
        finally:
            launcher.kill()
            for rank in ranks_of(program):
                os.kill(rank, signal.SIGKILL)
