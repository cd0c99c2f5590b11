"""Under which MPI libraries a build runs.

One against the standard ABI of MPI 5 does under all that have it, others under their family alone.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Require, by_day
from tests.processes import TIMEOUT_S
from tuner.machine.mpi import Mpi, find_mpis, launch, preload_library, profiler

from .conftest import Kernels, build_kernels, finish
from .preloaded import build_fortran

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


OF_ANOTHER = pytest.mark.parametrize(
    ("of", "name", "other", "version"),
    [
        ("mpich", "MPICH", "openmpi", r"Open MPI \S+"),
        ("openmpi", "Open MPI", "mpich", r"MPICH Version:\s+\S+"),
    ],
)


@OF_ANOTHER
def test_a_program_of_another_mpi_ends_with_a_line(
    kernels_of: Callable[[str], Kernels],
    tmp_path: Path,
    of: str,
    name: str,
    other: str,
    version: str,
) -> None:
    """An interpreter's, too, which loads its MPI after the preload has brought another."""
    source = tmp_path / "begin.c"
    begin = "int begin(void) { return MPI_Init(0, 0) || MPI_Finalize(); }"
    source.write_text(f"#include <mpi.h>\n{begin}\nint main(void) {{ return begin(); }}\n")
    program, module, right = (tmp_path / name for name in ("begin", "libother.so", "libright.so"))
    shared = ["-shared", "-fPIC"]
    for built, mpi, options in ((program, other, []), (module, other, shared), (right, of, shared)):
        subprocess.run([kernels_of(mpi).mpi.mpicc, *options, source, "-o", built], check=True)
    env = os.environ | {"LD_PRELOAD": str(preload_library(kernels_of(of).build))}

    def ended(*command: str | Path) -> tuple[int, str]:
        done = finish(command, env, TIMEOUT_S)
        return done.returncode, done.stderr

    interpreted = f"import ctypes, sys; other = ctypes.CDLL('{module}')"
    said = f"libswitchpoint_pmpi.so is built for {name}, but the program runs under {version}"
    for command in ([program], [sys.executable, "-c", f"{interpreted}.begin()"]):
        status, text = ended(*command)
        assert status == 1
        assert re.fullmatch(f"switchpoint: {said}\n", text), text
    # Another MPI that is loaded, and not called, is nobody's business.
    uncalled = f"{interpreted}; sys.exit(ctypes.CDLL('{right}').begin())"
    assert ended(sys.executable, "-c", uncalled) == (0, "")


@OF_ANOTHER
def test_a_program_in_fortran_of_another_mpi_ends_with_a_line(
    kernels_of: Callable[[str], Kernels],
    require: Require,
    tmp_path: Path,
    of: str,
    name: str,
    other: str,
    version: str,
) -> None:
    program = {"mpich": "swp_f08", "openmpi": "swp_use_mpi"}[of]  # whose MPI_Init is defined twice
    for loaded in (False, True):
        command = build_fortran(kernels_of(other), require, program, tmp_path, loaded=loaded)
        for library in (preload_library(kernels_of(of).build), profiler(kernels_of(of).build)):
            assert library is not None
            done = finish(command, os.environ | {"LD_PRELOAD": str(library)}, TIMEOUT_S)
            said = f"{library.name} is built for {name}, but the program runs under {version}"
            assert done.returncode == 1
            assert re.fullmatch(f"switchpoint: {said}\n", done.stderr), done.stderr
