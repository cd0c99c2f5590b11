"""Our own programs of random calls, under every MPI of this machine and a table of every method."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from tests.conftest import by_day
from tests.kernels.conftest import Kernels
from tests.kernels.preloaded import CASES_PASSED, assert_cases_passed, exchange_table, run_preloaded

from .programs import Program, run_dispatched


@pytest.mark.parametrize("procs", by_day([2], [3, 4, 5]))
def test_collectives_do_what_mpi_does(kernels: Kernels, tmp_path: Path, procs: int) -> None:
    # Two threads of four ranks hang in collectives of Intel MPI 2021.18 by themselves.
    options = ["--one-thread", "--communicators", "20"]
    program = Program([kernels.build / "tests" / "swp_pmpi", *options])
    assert CASES_PASSED.search(run_dispatched(kernels, program, procs, tmp_path))


@pytest.mark.parametrize(
    ("procs", "command"),
    by_day(
        [(2, "swp_neighbors"), (2, "swp_planned")],
        itertools.product(
            [2, 4, 5], ["swp_neighbors", "swp_neighbors --persistent 20", "swp_planned"]
        ),
    ),
)
def test_blocks_arrive(kernels: Kernels, tmp_path: Path, procs: int, command: str) -> None:
    program, *arguments = command.split()
    done = run_preloaded(kernels, program, procs, *arguments, table=exchange_table(tmp_path))
    assert_cases_passed(done)
