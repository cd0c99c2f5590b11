"""Profiles of unmodified programs: what is recorded, however they end."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tuner.advice import profile
from tuner.advice.profile import Profile
from tuner.machine import mpi

from .conftest import TIMEOUT_S, Kernels, finish
from .test_shim import FORTRAN

STEPS, PROCS = 400, 3


def run_profiled(
    kernels: Kernels, path: Path, program: Path | str, *arguments: str
) -> subprocess.CompletedProcess[str]:
    """Run a program that is profiled into `path`."""
    library = mpi.profiler(kernels.build)
    assert library is not None
    start = mpi.launch(kernels.mpi, PROCS, build=kernels.build, preload=[library])
    environment = os.environ | start.env | {"SWITCHPOINT_PROFILE": str(path)}
    return finish([*start.argv_prefix, str(program), *arguments], environment, TIMEOUT_S)


def counts_of(its: Profile) -> dict[tuple[str, int, int], int]:
    """Return the calls of one process by function, processes and bytes."""
    return {
        (calls.shape.call, calls.shape.procs, calls.shape.bytes): calls.count for calls in its.calls
    }


@pytest.mark.parametrize(("end", "threads"), [("", 1), ("threads", 2)])
def test_all_calls_are_counted(kernels: Kernels, tmp_path: Path, end: str, threads: int) -> None:
    path = tmp_path / "mix.profile"
    done = run_profiled(kernels, path, kernels.build / "tests/swp_mix", str(STEPS), "40", "0", end)
    assert done.returncode == 0 and done.stdout.startswith("mixed in "), done.stderr
    its = profile.read(path)
    assert (its.procs, its.reported, its.finalized, its.lost) == (PROCS, PROCS, True, 0)
    assert counts_of(its) == {
        ("Alltoall", 3, 40): threads * STEPS,
        ("Allreduce", 2, 8): threads * STEPS // 10,
        ("Allreduce", 1, 8): threads * STEPS // 10,
        ("Barrier", 3, 0): threads,
    }
    alltoall = next(calls for calls in its.calls if calls.shape.call == "Alltoall")
    assert alltoall.shape.nodes == 1 and alltoall.types == ("MPI_CHAR",)
    assert 0 < alltoall.own_s <= alltoall.seconds and alltoall.spread_s is not None
    assert 0 < its.bound_s <= threads * its.seconds


@pytest.mark.parametrize("end", ["exit", "abort"])
def test_programs_without_finalize_are_recorded(kernels: Kernels, tmp_path: Path, end: str) -> None:
    path = tmp_path / "mix.profile"
    run_profiled(kernels, path, kernels.build / "tests/swp_mix", str(STEPS), "40", "0", end)
    its = profile.read(path)
    assert 1 <= its.reported <= PROCS and not its.finalized
    assert counts_of(its)["Alltoall", 3, 40] == STEPS


def test_fortran_programs_are_recorded(kernels_of, require, tmp_path: Path) -> None:
    kernels = kernels_of("openmpi")  # whose Fortran functions do not call those of C
    wrapper = Path(shutil.which(kernels.mpi.mpicc) or kernels.mpi.mpicc)
    compiler = wrapper.with_name(wrapper.name.replace("mpicc", "mpif90"))
    works = compiler.exists() and shutil.which("gfortran") is not None
    require("fortran", works, "no gfortran, or no mpif90 beside mpicc")
    program, path = tmp_path / "swp_f08", tmp_path / "f08.profile"
    build = [compiler, "-I", FORTRAN, FORTRAN / "swp_f08.f90", "-fPIC", "-o"]
    subprocess.run([*build, program], check=True)
    subprocess.run([*build, program.with_suffix(".so"), "-shared"], check=True)
    loads = f"import ctypes; ctypes.CDLL('{program}.so').main(0, None)"  # RTLD_LOCAL
    for command in ([str(program)], [sys.executable, "-c", loads]):
        done = run_profiled(kernels, path, *command)
        assert done.returncode == 0 and "all right" in done.stdout, done.stdout + done.stderr
        recorded = {calls.shape.operation for calls in profile.read(path).calls}
        assert recorded >= set(profile.DISPATCHED)


def test_a_profile_that_cannot_be_written_is_one_line(any_kernels: Kernels, tmp_path: Path) -> None:
    path = tmp_path / "none" / "mix.profile"
    done = run_profiled(any_kernels, path, any_kernels.build / "tests/swp_mix", "1", "8", "0")
    assert done.returncode != 0 and f"switchpoint: profile {path}: cannot be written" in done.stderr
