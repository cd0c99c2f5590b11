"""PETSc's examples print the same with and without the preload and a table of every method."""

from __future__ import annotations

import math
import re
import subprocess
from itertools import zip_longest
from pathlib import Path

import pytest

from tests.conftest import Require
from tests.kernels.conftest import Kernels
from tests.kernels.preloaded import mpi_library

from .programs import HOME, PROCS, Program, run_alone, run_dispatched

RTOL = 1e-6  # sums are added up in another order
SMALL = 1e-8  # residuals that are rounding errors
NUMBER = re.compile(r"[-+]?\d+\.?\d*(?:e[-+]?\d+)?")
EXAMPLES = {
    "vec/vec/tutorials/ex1": "",
    "vec/is/sf/tests/ex1": "",
    "vec/is/sf/tests/ex3": "-op sum",
    "vec/is/sf/tests/ex5": "-nl 5",
    "vec/is/sf/tests/ex8": "",
    "vec/is/sf/tests/ex18": "-nsfs 3 -n_leaves_per_rank 5 -leave_step 3",
    "vec/is/sf/tutorials/ex1": "-test_all -sf_type neighbor",
    "sys/tests/ex8": "-verbose -build_twosided redscatter",
    "ksp/ksp/tutorials/ex2": "-m 20 -n 20 -ksp_monitor_short",
    "ksp/ksp/tutorials/ex45": "-da_grid_x 17 -da_grid_y 17 -da_grid_z 17 -ksp_monitor_short",
    "ksp/ksp/tutorials/ex54": "-ne 19 -alpha 1e-3 -ksp_type cg -pc_type gamg -ksp_monitor_short",
    "snes/tutorials/ex19": "-da_refine 2 -snes_monitor_short",
}

pytestmark = pytest.mark.nightly


def same(one: str, other: str) -> bool:
    """Return whether two lines are equal, numbers within what the order of sums can change."""
    pairs = zip(map(float, NUMBER.findall(one)), map(float, NUMBER.findall(other)), strict=False)
    return NUMBER.sub("#", one) == NUMBER.sub("#", other) and all(
        math.isclose(a, b, rel_tol=RTOL, abs_tol=SMALL) for a, b in pairs
    )


def build(require: Require, kernels: Kernels, example: str) -> Path:
    """Compile one of PETSc's examples where PETSc was built with this MPI."""
    asked = subprocess.run(
        ["pkg-config", "--cflags", "--libs", "petsc"], capture_output=True, text=True
    )
    require("petsc", asked.returncode == 0, "pkg-config knows no PETSc")
    found = re.search(r"-I(\S+)/include", asked.stdout)
    prefix = Path(found[1]) if found else Path("/usr")
    sources = [*Path("/usr/share/petsc").glob(f"*/share/petsc/examples/src/{example}.c")]
    sources += [*prefix.glob(f"share/petsc/examples/src/{example}.c")]
    require("petsc", bool(sources), "PETSc's examples are not installed")
    libraries = sorted((prefix / "lib").glob("libpetsc*.so"))
    uses = subprocess.run(["ldd", *libraries[:1]], capture_output=True, text=True).stdout
    same_mpi = f"=> {mpi_library(kernels)}" in uses
    require("petsc", same_mpi, "PETSc was built with another MPI")
    program = HOME / "petsc" / kernels.mpi.name / example.replace("/", "-")
    program.parent.mkdir(parents=True, exist_ok=True)
    command = [kernels.mpi.mpicc, "-w", sources[0], "-o", program, *asked.stdout.split(), "-lm"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-4000:]
    return program


@pytest.mark.parametrize("example", EXAMPLES)
def test_petsc_prints_the_same(
    kernels: Kernels, require: Require, tmp_path: Path, example: str
) -> None:
    program = Program([build(require, kernels, example), *EXAMPLES[example].split()])
    for procs in PROCS:
        alone = run_alone(kernels, program, procs).splitlines()
        dispatched = run_dispatched(kernels, program, procs, tmp_path).splitlines()
        differing = [
            (a, b) for a, b in zip_longest(alone, dispatched, fillvalue="") if not same(a, b)
        ]
        assert not differing, f"{procs} ranks: {differing[:5]}"
