"""One build against the standard ABI of MPI 5 runs under every library that has it."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.conftest import by_day
from tests.processes import TIMEOUT_S
from tuner.machine.mpi import Mpi, find_mpis, launch

from .conftest import build_kernels

LIBRARY = "libmpi_abi.so"
EVERY = {"exchange": "random:degree=3,seed=1", "discovery": "hub:hubs=2,seed=1"} | dict.fromkeys(
    ["bcast", "allreduce", "allgatherv", "reduce_scatter_block"], "blocks"
)


def libraries(mpi: Mpi) -> Path:
    """Return where an MPI has its libraries."""
    return Path(mpi.mpicc).resolve().parent.parent / "lib"


@pytest.mark.parametrize(
    ("name", "library"),
    [("mpich", "MPICH"), ("intelmpi", "Intel(R) MPI")],
    ids=["mpich", "intelmpi"],
)
@pytest.mark.parametrize(
    "operations",
    [pytest.param(["bcast"], marks=pytest.mark.check), *by_day([], [(EVERY,)])],
    ids=["brief", "every"],
)
def test_a_standard_build_runs_under(name, library, operations, require, tmp_path):
    mpicc = shutil.which("mpicc_abi")
    require("abi", mpicc is not None, "no mpicc_abi on the path")
    having = [mpi for mpi in find_mpis() if (libraries(mpi) / LIBRARY).exists()]
    mpi = next((mpi for mpi in having if mpi.family == name), None)
    require("mpich5" if name == "mpich" else name, mpi is not None, f"none with {LIBRARY}")
    build = build_kernels(Mpi("abi", "mpich", "5", mpicc, ""), target="swpbench")
    start = launch(mpi, 4, build=build)
    env = os.environ | start.env | {"LD_LIBRARY_PATH": str(libraries(mpi))}
    for operation in operations:
        raw = tmp_path / f"{operation}.jsonl"
        options = [
            f"--op={operation}",
            f"--pattern={EVERY[operation]}",
            "--methods=all",
            "--sizes=8,64K",
        ]
        command = [*start.argv_prefix, build / "bench" / "swpbench", "run", *options]
        answer = subprocess.run(
            [*command, "--budget=0.5", f"--out={raw}"],
            env=env,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
        )
        assert answer.returncode == 0, answer.stdout + answer.stderr
        header = json.loads(raw.read_text().splitlines()[0])
        assert library in header["mpi_library"]
        assert header["procs"] == 4
