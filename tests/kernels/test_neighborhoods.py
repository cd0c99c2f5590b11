"""Neighbourhood collectives under the preloaded library."""

from __future__ import annotations

import shutil
from itertools import product
from pathlib import Path

import pytest

from tests.conftest import by_day

from .conftest import Kernels
from .preloaded import (
    assert_cases_passed,
    dispatched,
    exchange_table,
    require_of_mpi,
    run_preloaded,
    write_rules,
)
from .test_library import TESTS, VALGRIND, run


@pytest.fixture
def exchanges(tmp_path: Path) -> Path:
    """Return a table with rules for exchanges."""
    return exchange_table(tmp_path)


@pytest.mark.parametrize("procs", [2, 5])
def test_blocks_arrive_whichever_rank_changes_its_counts(
    kernels: Kernels, procs: int, exchanges: Path
) -> None:
    done = run_preloaded(kernels, "swp_neighbors", procs, table=exchanges)
    assert_cases_passed(done)
    used = dispatched(done.stderr)["exchange"]
    assert {"nap", "alltoallv"} <= used
    assert ("stfw:dims=2" in used) == (procs >= 4)
    assert ("vendor" in used) == (procs == 2), "a ring of two has one rank on both sides"


@pytest.mark.parametrize("procs", by_day([1], [3, 4, 8, 13, 16]))
def test_blocks_arrive_on_any_number_of_ranks(
    kernels: Kernels, procs: int, exchanges: Path
) -> None:
    assert_cases_passed(run_preloaded(kernels, "swp_neighbors", procs, table=exchanges))


@pytest.mark.parametrize(
    ("procs", "number"), by_day([(1, "2200"), (4, "50")], product([3, 8, 13, 16], ["10"]))
)
def test_persistent_requests_complete_among_others(
    kernels: Kernels, require, procs: int, number: str, exchanges: Path
) -> None:
    require_of_mpi("persistent", kernels, require)
    done = run_preloaded(kernels, "swp_neighbors", procs, "--persistent", number, table=exchanges)
    assert_cases_passed(done)
    used = dispatched(done.stderr)["exchange"]
    assert ({"stfw:dims=2", "nap"} if procs == 4 else {"nap"}) <= used


def test_an_old_request_does_not_complete_with_a_young_one(
    kernels: Kernels, require, tmp_path: Path
) -> None:
    """There are 32767 tags for them, of which the last one made would have the first one's."""
    table = write_rules(tmp_path, "op=exchange method=alltoallv")
    done = run_preloaded(kernels, "swp_left", 2, "--old", "32766", table=table)
    assert done.returncode == 0, done.stdout + done.stderr
    used = dispatched(done.stderr).get("exchange", set())
    require_of_mpi("persistent", kernels, require)
    assert used == {"alltoallv"}


@pytest.mark.parametrize("method", ["shared", "lent"])
def test_a_start_that_waits_stops_no_other_thread(
    kernels: Kernels, require, tmp_path: Path, method: str
) -> None:
    table = write_rules(tmp_path, f"op=exchange method={method}")
    done = run_preloaded(kernels, "swp_left", 2, "--ahead", table=table)
    assert done.returncode == 0, done.stdout + done.stderr
    used = dispatched(done.stderr).get("exchange", set())
    require_of_mpi("persistent", kernels, require)
    assert used == {method}


@pytest.fixture
def breaking(tmp_path: Path) -> Path:
    """Return a table with a rule for each operation of swp_broken."""
    return write_rules(tmp_path, "op=exchange method=alltoallv", "op=allgatherv method=ring")


@pytest.mark.parametrize("guard", ["0", "1"])
def test_an_error_is_that_of_its_own_request_and_of_later_calls(
    kernels: Kernels, breaking: Path, guard: str
) -> None:
    env = {"SWITCHPOINT_GUARD": guard}
    done = run_preloaded(kernels, "swp_broken", 2, table=breaking, env=env)
    assert_cases_passed(done)
    assert dispatched(done.stderr)["exchange"] == {"alltoallv"}


def test_an_error_of_a_request_ends_the_job_where_it_is_fatal(
    kernels: Kernels, require, breaking: Path
) -> None:
    require_of_mpi("persistent", kernels, require)
    done = run_preloaded(kernels, "swp_broken", 2, "--fatal", table=breaking)
    assert done.returncode != 0 and "went on" not in done.stdout, done.stdout + done.stderr


def test_blocks_arrive_under_the_guard(kernels: Kernels, exchanges: Path) -> None:
    env = {"SWITCHPOINT_GUARD": "1"}
    done = run_preloaded(kernels, "swp_neighbors", 5, table=exchanges, env=env)
    assert_cases_passed(done)
    assert {"nap", "alltoallv"} <= dispatched(done.stderr)["exchange"]


def test_the_same_calls_are_right_without_the_preload(kernels: Kernels) -> None:
    assert run(kernels, "swp_neighbors", 3) > 100


@pytest.mark.parametrize(
    ("argument", "words"),
    [
        (
            "--break-promise",
            "rank 1 of a communicator with swp_fixed_counts=true calls it with 20 ",
        ),
        ("--half-a-promise", "swp_fixed_counts is not the same on all ranks of a communicator"),
    ],
)
def test_a_broken_promise_ends_the_job(
    kernels: Kernels, exchanges: Path, argument: str, words: str
) -> None:
    done = run_preloaded(kernels, "swp_neighbors", 4, argument, table=exchanges)
    assert done.returncode != 0 and words in done.stderr, done.stdout + done.stderr


def test_without_rules_for_exchanges_a_promise_is_ignored(kernels: Kernels, tmp_path: Path) -> None:
    table = write_rules(tmp_path, "op=bcast method=binomial")
    done = run_preloaded(kernels, "swp_neighbors", 4, "--break-promise", table=table)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "exchange" not in dispatched(done.stderr)


@pytest.mark.parametrize(
    ("procs", "arguments"),
    [
        pytest.param(1, [], marks=pytest.mark.check),
        pytest.param(4, [], marks=pytest.mark.nightly),
        pytest.param(4, ["--persistent", "10"], marks=pytest.mark.nightly),
    ],
)
def test_valgrind_finds_nothing_in_neighborhoods(
    kernels: Kernels, require, procs: int, arguments: list[str], exchanges: Path
) -> None:
    require("valgrind", shutil.which("valgrind") is not None, "no valgrind on the path")
    if arguments:
        require_of_mpi("persistent", kernels, require)
    done = run_preloaded(
        kernels,
        "swp_neighbors",
        procs,
        *arguments,
        table=exchanges,
        before=(*VALGRIND, *[f"--suppressions={TESTS / 'persistent.supp'}"] * bool(arguments)),
        env={"SWP_TEST_TIMEOUT": "240"},
    )
    assert_cases_passed(done)
