"""The MPI installations of this machine are found, named and started, oversubscribed as well."""

import os
import stat
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from tests.compiler import build_preload
from tests.processes import TIMEOUT_S
from tuner.errors import SwitchpointError
from tuner.machine import directories
from tuner.machine.mpi import (
    YIELD_LIBRARY,
    Mpi,
    available_cores,
    find_mpis,
    identify,
    is_linked_with,
    last_line,
    launch,
)

SUM_OF_RANKS = """
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv) {
  int rank, size;
  long sum = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int i = 0; i < 50; i++) {
    long mine = rank;
    MPI_Allreduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  }
  if (rank == 0)
    printf("ranks %d sum %ld\\n", size, sum);
  MPI_Finalize();
  return 0;
}
"""


@pytest.fixture(params=["mpich", "openmpi"])
def mpi(request, require) -> Mpi:
    found = {mpi.name: mpi for mpi in find_mpis()}
    require(request.param, request.param in found, "no mpicc and mpiexec of this family found")
    return found[request.param]


@pytest.fixture
def program(mpi, tmp_path) -> Path:
    source = tmp_path / "sum.c"
    source.write_text(SUM_OF_RANKS)
    subprocess.run([mpi.mpicc, str(source), "-o", str(tmp_path / "sum")], check=True)
    return tmp_path / "sum"


def test_a_program_is_of_the_mpi_whose_library_it_loads(mpi, program):
    assert is_linked_with(str(program), mpi)
    assert not is_linked_with(str(program), replace(mpi, version=f"{mpi.version}9"))
    assert not any(is_linked_with(str(program), each) for each in find_mpis() if each != mpi)
    assert not is_linked_with("/bin/sh", mpi)


def run(mpi: Mpi, program: Path, procs: int) -> str:
    start = launch(mpi, procs)
    return subprocess.run(
        [*start.argv_prefix, str(program)],
        env=os.environ | start.env,
        capture_output=True,
        text=True,
        check=True,
        timeout=TIMEOUT_S,
    ).stdout


@pytest.mark.parametrize("procs", [1, 2, 8])
def test_every_rank_joins_one_world(mpi, program, procs):
    assert f"ranks {procs} sum {procs * (procs - 1) // 2}\n" in run(mpi, program, procs)


def test_an_installation_knows_its_version(mpi):
    assert mpi.major >= 3
    assert mpi.version in str(mpi)


def test_ranks_that_fit_get_no_yield_setting(mpi):
    assert launch(mpi, 2, cores=2).yield_setting == ""


def test_oversubscribed_ranks_yield(mpi, tmp_path):
    (tmp_path / YIELD_LIBRARY).touch()
    setting = launch(mpi, 2 * available_cores(), build=tmp_path).yield_setting
    if mpi.family == "openmpi":
        assert setting == "mpi_yield_when_idle=1"
    elif mpi.major >= 5:
        assert "MPIR_CVAR_CH4_PROGRESS_THROTTLE=1" in setting
    elif mpi.device == "ch4:ucx":
        assert setting == "LD_PRELOAD=libswp_yield.so"
    else:
        assert setting == ""


@pytest.fixture
def mpich4(require) -> Mpi:
    found = [
        m for m in find_mpis() if m.family == "mpich" and m.device == "ch4:ucx" and m.major < 5
    ]
    require("mpich4", bool(found), "no MPICH 4 over UCX found")
    return found[0]


def test_a_sanitizer_build_has_no_preload(mpich4, tmp_path):
    assert launch(mpich4, 64, cores=2, build=tmp_path) == launch(mpich4, 64, cores=64)


@pytest.mark.parametrize("place", ["plain", "with (a) space"])
def test_the_named_preload_exists(mpich4, tmp_path, place):
    library = tmp_path / place / "lib" / YIELD_LIBRARY
    library.parent.mkdir(parents=True)
    source = tmp_path / "preload.c"
    source.write_text(
        "#include <unistd.h>\n"
        '__attribute__((constructor)) static void say(void) { (void)!write(1, "here\\n", 5); }\n'
    )
    build_preload(source, library)
    start = launch(mpich4, 2, cores=1, build=tmp_path / place)
    assert start.yield_setting == f"LD_PRELOAD={YIELD_LIBRARY}"
    answer = subprocess.run(
        [*start.argv_prefix, "true"], capture_output=True, text=True, check=True, timeout=TIMEOUT_S
    )
    assert answer.stdout == "here\n" * 2
    assert answer.stderr == ""


def test_programs_of_two_families_are_no_pair(require):
    found = {mpi.name: mpi for mpi in find_mpis()}
    require("mpich", "mpich" in found, "no MPICH found")
    require("openmpi", "openmpi" in found, "no Open MPI found")
    assert identify(found["mpich"].mpicc, found["openmpi"].mpiexec) is None


def test_a_program_that_is_no_mpi_is_passed_over(tmp_path, monkeypatch):
    for name in ("mpicc", "mpiexec"):
        impostor = tmp_path / name
        impostor.write_text("#!/bin/sh\necho something else\n")
        impostor.chmod(impostor.stat().st_mode | stat.S_IXUSR)
    before = find_mpis()
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    assert find_mpis() == before


def test_zero_processes_are_refused(mpi):
    with pytest.raises(ValueError, match="at least 1"):
        launch(mpi, 0)


@pytest.mark.parametrize("name", ["my checkout", "John's"])
def test_jobs_run_where_the_path_is_one_word(name, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(directories, "build_root", lambda: Path("/data") / name)
    assert directories.scratch_directory().is_relative_to(tmp_path)


def test_a_path_in_which_no_job_runs_is_an_error_that_commands_print(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "my cache"))
    monkeypatch.setattr(directories, "build_root", lambda: Path("/my checkout"))
    with pytest.raises(SwitchpointError, match="in a path with spaces or quotes; name another"):
        directories.scratch_directory()


def test_the_last_line_of_a_failed_launch_is_the_program_s(mpi):
    start = launch(mpi, 2)
    for words, expected in (("echo no memory >&2; echo >&2", "no memory"), ("", None)):
        command = [*start.argv_prefix, "sh", "-c", f"{words or ':'}; exit 3"]
        ended = subprocess.run(
            command, env=os.environ | start.env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        )
        line = last_line(ended.stdout.decode())
        assert line == expected if expected else not line.startswith("-")
