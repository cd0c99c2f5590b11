"""Persistent collectives of programs that promise to start them together, under the preload."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.conftest import Require, by_day
from tuner.domain.operations import COLLECTIVES

from .conftest import Kernels
from .preloaded import assert_cases_passed, dispatched, require_of_mpi, rules_for_all, run_preloaded
from .test_library import VALGRIND


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Return a table with a method for every collective, and for exchanges."""
    path = rules_for_all(tmp_path / "all.table", ["method=METHOD"])
    with path.open("a") as file:
        file.write("rule op=exchange method=nap\n")
    return path


@pytest.mark.parametrize("procs", by_day([3], [1, 2, 4, 8]))
def test_starts_repeat_the_plain_call(
    kernels: Kernels, require: Require, procs: int, table: Path
) -> None:
    require_of_mpi("persistent", kernels, require)
    for guard in "1", "0":
        env = {"SWITCHPOINT_GUARD": guard}
        done = run_preloaded(kernels, "swp_together", procs, table=table, env=env)
        assert_cases_passed(done)
    assert set(dispatched(done.stderr)) == {*COLLECTIVES, "exchange"}, done.stderr
    starts = 3 * 12 + 1  # of three functions, and of blocks of nothing
    assert f"exchange by nap: {starts} calls" in done.stderr, done.stderr
    why = "its operation is the program's own, which may be freed before the request"
    assert f"MPI_Allreduce_init left to the MPI library ({why}): 1 calls" in done.stderr


def test_what_the_rules_leave_to_mpi_starts_as_mpi_starts_it(
    kernels: Kernels, require: Require, table: Path
) -> None:
    require_of_mpi("persistent", kernels, require)
    small = "op=allreduce method", "op=allreduce bytes=1000:2000 method"
    table.write_text(table.read_text().replace(*small))
    done = run_preloaded(kernels, "swp_together", 2, table=table)
    assert_cases_passed(done)
    why = "by the rules for its bytes, or for an argument that MPI does not allow"
    assert f"MPI_Allreduce_init left to the MPI library ({why}): 3 calls" in done.stderr


def test_requests_without_a_tag_are_left_to_mpi(
    any_kernels: Kernels, require: Require, table: Path
) -> None:
    require_of_mpi("persistent", any_kernels, require)
    done = run_preloaded(any_kernels, "swp_together", 1, "--many", table=table)
    assert done.returncode == 0 and "1 cases passed" in done.stdout, done.stdout + done.stderr
    why = "as many other requests live as there are tags for"
    assert f"MPI_Barrier_init left to the MPI library ({why}): 3 calls" in done.stderr


def test_a_start_behind_the_communicator_ends_the_job(
    kernels: Kernels, require: Require, table: Path
) -> None:
    require_of_mpi("persistent", kernels, require)
    done = run_preloaded(kernels, "swp_together", 2, "--orphan", table=table)
    why = "a persistent collective is started after its communicator was freed"
    assert done.returncode != 0 and why in done.stderr, done.stdout + done.stderr


@pytest.mark.check
def test_valgrind_finds_nothing(kernels: Kernels, require: Require, table: Path) -> None:
    require_of_mpi("persistent", kernels, require)
    require("valgrind", shutil.which("valgrind") is not None, "no valgrind on the path")
    env = {"SWP_TEST_TIMEOUT": "240"}
    done = run_preloaded(kernels, "swp_together", 1, table=table, before=VALGRIND, env=env)
    assert done.returncode == 0, done.stdout + done.stderr
