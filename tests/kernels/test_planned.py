"""MPI_Gatherv, MPI_Scatterv and MPI_Alltoallw under the preloaded library."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from tests.conftest import Require, by_day

from .conftest import Kernels
from .preloaded import (
    add_device_code,
    assert_cases_passed,
    dispatched,
    exchange_table,
    require_of_mpi,
    run_preloaded,
    write_rules,
)
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
    unfixed = "its counts are not promised to stay: swp_fixed_counts"
    nonblocking = "nonblocking; only plain and persistent calls are dispatched"
    for name in NAMES:
        assert (name, unfixed) in left
        assert (f"I{name.lower()}", nonblocking) in left
    assert ("Gatherv", "an argument that MPI does not allow") in left
    other_groups = "the communicator has ranks of another job, or is between two groups"
    assert ("Gatherv", other_groups) in left
    apart = "persistent; ranks are not promised to start it together: swp_started_together"
    made = {name for name, _ in left if "_init" in name}
    wrong = "by the rules for its bytes, or for an argument that MPI does not allow"
    for name in made:
        expected = {apart, unfixed} | (
            {wrong} if name in ("Gatherv_init", "Scatterv_init") else set()
        )
        assert {why for function, why in left if function == name} == expected
    assert not made or made >= {f"{name}_init" for name in NAMES}


def test_programs_with_code_for_accelerators_keep_the_requests_of_mpi(
    kernels: Kernels, require: Require, tmp_path: Path
) -> None:
    """No start could use a method, while the library's own requests may overlap with computing."""
    require_of_mpi("persistent", kernels, require)
    program = add_device_code(kernels, require, "swp_planned", tmp_path)
    only_starts = ("--break-promise", "0", "--started")
    done = run_preloaded(kernels, program, 4, *only_starts, table=exchange_table(tmp_path))
    assert done.returncode == 0, done.stdout + done.stderr
    why = "a process may use an accelerator, and buffers are not promised to be the host's"
    left = rf"MPI_Gatherv_init(_c)? left to the MPI library \({why}: swp_host_buffers\): 3 calls"
    assert re.search(left, done.stderr), done.stderr
    assert not dispatched(done.stderr)


def test_calls_are_planned_for_eight_roots(any_kernels: Kernels, tmp_path: Path) -> None:
    done = run_preloaded(any_kernels, "swp_planned", 9, table=exchange_table(tmp_path))
    why = "calls with other roots are planned, and each plan takes a communicator"
    assert f"MPI_Gatherv left to the MPI library ({why})" in done.stderr, done.stderr


def check_broken_promise(kernels: Kernels, directory: Path, function: int, *options: str) -> None:
    """Expect that other counts end the job where there is a rule for exchanges, and only there."""
    arguments = ["--break-promise", str(function), *options]
    table = exchange_table(directory)
    done = run_preloaded(kernels, "swp_planned", 4, *arguments, table=table)
    who = rf"MPI_{NAMES[function]}(_c)?: rank 1 of a communicator with swp_fixed_counts=true"
    assert done.returncode != 0, done.stdout
    what = r"calls it with \d+ bytes (to|from) rank 0, and \d+ in the first"
    assert len(re.findall(f"{who} {what}", done.stderr)) == 1, done.stderr
    unruled = write_rules(directory, "op=bcast method=binomial")
    done = run_preloaded(kernels, "swp_planned", 4, *arguments, table=unruled)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("function", range(len(NAMES)))
def test_a_broken_promise_ends_the_job(any_kernels: Kernels, tmp_path: Path, function: int) -> None:
    check_broken_promise(any_kernels, tmp_path, function)


@pytest.mark.parametrize("function", by_day([2], [0, 1]))
def test_a_start_that_breaks_a_promise_ends_the_job(
    kernels: Kernels, require: Require, tmp_path: Path, function: int
) -> None:
    require_of_mpi("persistent", kernels, require)
    check_broken_promise(kernels, tmp_path, function, "--started")


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
