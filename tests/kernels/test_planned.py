"""MPI_Gatherv, MPI_Scatterv and MPI_Alltoallw under the preloaded library."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.conftest import by_day

from .conftest import Kernels
from .preloaded import assert_cases_passed, dispatched, exchange_table, run_preloaded, write_rules
from .test_library import VALGRIND, run

NAMES = ("Gatherv", "Scatterv", "Alltoallw")


@pytest.mark.parametrize("procs", by_day([1, 4], [2, 3, 5, 9, 16]))
def test_blocks_arrive_in_every_form(kernels: Kernels, procs: int, tmp_path: Path) -> None:
    done = run_preloaded(kernels, "swp_planned", procs, table=exchange_table(tmp_path))
    assert_cases_passed(done)
    used = dispatched(done.stderr)["exchange"]
    assert "nap" in used and "vendor" not in used
    assert ("stfw:dims=2" in used) == (procs >= 4)
    assert ("alltoallv" in used) == (procs > 1), "a rank alone sends nothing"


@pytest.mark.parametrize("procs", by_day([2], [1, 4]))
def test_the_same_calls_are_right_without_the_preload(kernels: Kernels, procs: int) -> None:
    assert run(kernels, "swp_planned", procs) > 100


def test_blocks_arrive_without_rules_for_exchanges(kernels: Kernels, tmp_path: Path) -> None:
    table = write_rules(tmp_path, "op=bcast method=binomial")
    done = run_preloaded(kernels, "swp_planned", 2, table=table)
    assert_cases_passed(done)
    assert "exchange" not in dispatched(done.stderr)


def test_no_model_chooses_where_no_rule_matches(any_kernels: Kernels, tmp_path: Path) -> None:
    table = tmp_path / "model.table"
    table.write_text(
        "switchpoint-table 1\n"
        "rule op=exchange nodes=99 method=nap\n"
        "model message pair=on_node up_to=*"
        " alpha_s=1e-6 step_s=1 receive_s=0 per_byte_s=0 beta_s=0\n"
    )
    done = run_preloaded(any_kernels, "swp_planned", 3, table=table)
    assert_cases_passed(done)
    assert dispatched(done.stderr)["exchange"] == {"vendor"}


def test_blocks_arrive_under_the_guard(kernels: Kernels, tmp_path: Path) -> None:
    env = {"SWITCHPOINT_GUARD": "1"}
    done = run_preloaded(kernels, "swp_planned", 4, table=exchange_table(tmp_path), env=env)
    assert_cases_passed(done)


def test_the_guard_begins_again_with_a_promise(kernels: Kernels, tmp_path: Path) -> None:
    table = write_rules(tmp_path, "op=exchange method=alltoallv")
    env = {"SWITCHPOINT_GUARD": "1"}
    done = run_preloaded(kernels, "swp_planned", 3, "--renew", table=table, env=env)
    assert done.returncode == 0, done.stdout + done.stderr
    calls = re.search(r"exchange by vendor: (\d+) calls", done.stderr)
    assert calls is not None, done.stderr
    assert calls[1] == "20" or "no longer used" in done.stderr


def test_the_report_says_why_calls_are_left_to_mpi(kernels: Kernels, tmp_path: Path) -> None:
    done = run_preloaded(kernels, "swp_planned", 4, table=exchange_table(tmp_path))
    left = re.findall(r"MPI_(\w+) left to the MPI library \((.*)\)", done.stderr)
    for name in NAMES:
        assert (name, "its counts are not promised to stay: swp_fixed_counts") in left
        assert (f"I{name.lower()}", "nonblocking; only plain calls are dispatched") in left
    assert ("Gatherv", "an argument that MPI does not allow") in left
    other_groups = "the communicator has ranks of another job, or is between two groups"
    assert ("Gatherv", other_groups) in left
    whys = {why for name, why in left if "_init" in name}
    assert whys <= {"persistent; only plain calls are dispatched"}


def test_calls_are_planned_for_eight_roots(any_kernels: Kernels, tmp_path: Path) -> None:
    done = run_preloaded(any_kernels, "swp_planned", 9, table=exchange_table(tmp_path))
    why = "calls with other roots are planned, and each plan takes a communicator"
    assert f"MPI_Gatherv left to the MPI library ({why})" in done.stderr, done.stderr


@pytest.mark.parametrize("function", range(len(NAMES)))
def test_a_broken_promise_ends_the_job(any_kernels: Kernels, tmp_path: Path, function: int) -> None:
    table = exchange_table(tmp_path)
    done = run_preloaded(
        any_kernels, "swp_planned", 4, "--break-promise", str(function), table=table
    )
    who = f"MPI_{NAMES[function]}: rank 1 of a communicator with swp_fixed_counts=true calls it"
    assert done.returncode != 0, done.stdout
    assert re.search(rf"{who} with \d+ bytes (to|from) rank 0, and \d+ in the first", done.stderr)
    unruled = write_rules(tmp_path, "op=bcast method=binomial")
    arguments = ("--break-promise", str(function))
    done = run_preloaded(any_kernels, "swp_planned", 4, *arguments, table=unruled)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    "procs", [pytest.param(1, marks=pytest.mark.check), pytest.param(4, marks=pytest.mark.nightly)]
)
def test_valgrind_finds_nothing_in_planned_calls(
    kernels: Kernels, require, procs: int, tmp_path: Path
) -> None:
    require("valgrind", shutil.which("valgrind") is not None, "no valgrind on the path")
    table = exchange_table(tmp_path)
    env = {"SWP_TEST_TIMEOUT": "240"}
    done = run_preloaded(kernels, "swp_planned", procs, table=table, before=VALGRIND, env=env)
    assert done.returncode == 0, done.stdout + done.stderr
