"""The preloaded library under programs that know nothing of it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest

from tests.conftest import by_day
from tests.processes import TIMEOUT_S
from tuner.domain.operations import COLLECTIVES
from tuner.machine.mpi import preload_library, profiler

from .conftest import MPIS, Kernels, finish, in_turn
from .preloaded import (
    INSTRUCTIONS,
    add_device_code,
    assert_cases_passed,
    build_fortran,
    dispatched,
    every_method,
    instructions_over_pmpi,
    mpi_library,
    require_of_mpi,
    rules_for_all,
    run_preloaded,
    symbols,
    vendor_table,
    write_rules,
)
from .test_library import TESTS, VALGRIND, run

COLLECTIVE = re.compile(  # all that MPI has
    "MPI_I?(Barrier|(Bcast|Gatherv?|Scatterv?|Reduce|Allreduce|Reduce_scatter(_block)?|Scan|Exscan|"
    "(Neighbor_)?all(gatherv?|toall[vw]?)))(_init)?(_c)?",
    re.IGNORECASE,
)
WAITING = re.compile(
    "MPI_((Wait|Test)(any|all|some)?|Parrived|Request_get_status(_any|_all|_some)?)"
)
BROKEN = TESTS / "tables" / "broken"


def check_every_method(
    kernels: Kernels, procs: int, directory: Path, *arguments: str, guard: str = "0"
) -> None:
    table = every_method(kernels, procs, directory)
    env = {"SWITCHPOINT_GUARD": guard}
    arguments = ("--wild", "--truncation", *arguments)
    done = run_preloaded(kernels, "swp_pmpi", procs, *arguments, table=table, env=env)
    assert_cases_passed(done)
    rules = {
        (op, method) for op, method in re.findall(r"op=(\w+) \S*method=(\S+)", table.read_text())
    }
    used = dispatched(done.stderr)
    if procs > 1:
        assert set(used) == set(COLLECTIVES)
    missing = {
        (op, method)
        for op, method in rules
        if method not in used.get(op, set())
        and not re.search("twolevel|global=|levels=", method)  # on one node
    }
    assert len(missing) <= len(rules) / 5, f"hardly used: {sorted(missing)}"


@pytest.mark.parametrize(
    ("kernels", "procs"),
    by_day([*product(MPIS, [2]), *in_turn([5, 1, 3, 4])], product(MPIS, range(1, 18))),
    indirect=["kernels"],
)
def test_results_are_those_of_mpi_under_every_method(
    kernels: Kernels, procs: int, tmp_path
) -> None:
    check_every_method(kernels, procs, tmp_path)


@pytest.mark.parametrize("procs", [2])
def test_ten_thousand_communicators_come_and_go(kernels: Kernels, procs: int, tmp_path) -> None:
    check_every_method(kernels, procs, tmp_path, "--communicators", "10000")


def test_the_guard_drops_a_rule_that_loses(kernels: Kernels, tmp_path) -> None:
    table = write_rules(tmp_path, "op=bcast method=chain:segment=16")
    arguments = ["mpi", "bcast", "5000"]
    off = run_preloaded(kernels, "swp_calls", 5, *arguments, table=table)
    assert off.returncode == 0 and "guard" not in off.stderr
    dropped: list[str] = []
    for _ in range(10):  # a busy machine may hide the loss from one job
        env = {"SWITCHPOINT_GUARD": "1"}
        on = run_preloaded(kernels, "swp_calls", 5, *arguments, table=table, env=env)
        assert on.returncode == 0, on.stderr
        dropped = [line for line in on.stderr.splitlines() if "guard: on 5 ranks bcast by" in line]
        if dropped:
            break
    assert len(dropped) == 1, on.stderr


def test_the_guard_settles(kernels: Kernels, tmp_path) -> None:
    table = write_rules(tmp_path, "op=bcast method=binomial")
    env = {"SWITCHPOINT_GUARD": "1"}
    done = run_preloaded(kernels, "swp_calls", 2, "mpi", "bcast", "3000", table=table, env=env)
    calls = re.search(r"bcast by vendor: (\d+) calls", done.stderr)
    assert calls is not None, done.stderr
    assert calls[1] == "10" or "no longer used" in done.stderr


def test_results_are_those_of_mpi_under_the_guard(kernels: Kernels, tmp_path) -> None:
    check_every_method(kernels, 3, tmp_path, guard="1")


@pytest.mark.parametrize(("procs", "most"), by_day([(2, 2)], [(4, 99), (5, 99)]))
def test_one_table_gives_the_same_bits_again(
    kernels: Kernels, procs: int, most: int, tmp_path
) -> None:
    rules = every_method(kernels, procs, tmp_path).read_text()
    methods = set(re.findall(r"op=(reduce|allreduce) (?:bytes=\S+ )?method=(\S+)", rules))
    assert len(methods) > 5
    table = tmp_path / "one.table"
    for operation, method in sorted(methods)[:most]:
        table.write_text(f"switchpoint-table 1\nrule op={operation} method={method}\n")
        form = "columns-all" if operation == "allreduce" else "columns-root"
        jacobi = kernels.build / "examples" / "swp_example_jacobi"
        runs = [
            run_preloaded(kernels, jacobi, procs, form, str(48 * procs), "3", table=table)
            for _ in range(3)
        ]
        assert all(done.returncode == 0 for done in runs), runs
        assert len({done.stdout.split()[1] for done in runs}) == 1, (operation, method)


def test_without_a_table_nothing_is_dispatched(kernels: Kernels) -> None:
    done = run_preloaded(kernels, "swp_pmpi", 2, table=None)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "switchpoint:" not in done.stderr


def test_the_same_program_passes_without_the_preload(kernels: Kernels) -> None:
    assert run(kernels, "swp_pmpi", 3) > 100


@pytest.mark.parametrize(
    "name",
    ["unknown_method.table", "range_exchanged.table", "other_version.table", "no_such.table"],
)
def test_a_broken_table_ends_the_job_with_one_line(kernels: Kernels, name: str) -> None:
    done = run_preloaded(kernels, "swp_pmpi", 3, table=BROKEN / name)
    lines = [line for line in done.stderr.splitlines() if line.startswith("switchpoint:")]
    assert done.returncode != 0
    assert len(lines) == 1 and name in lines[0], done.stderr


def test_the_report_lists_what_was_dispatched(kernels: Kernels, tmp_path) -> None:
    done = run_preloaded(kernels, "swp_calls", 2, "mpi", "bcast", "7", table=vendor_table(tmp_path))
    assert "switchpoint: bcast by vendor: 7 calls of 64 to 64 bytes" in done.stderr
    silent = {"SWITCHPOINT_REPORT": "0"}
    table = vendor_table(tmp_path)
    done = run_preloaded(kernels, "swp_calls", 2, "mpi", "bcast", "7", table=table, env=silent)
    assert done.returncode == 0 and "switchpoint" not in done.stderr


@pytest.mark.parametrize("end", ["exit", "abort"])
def test_programs_without_finalize_have_a_report(any_kernels: Kernels, tmp_path, end: str) -> None:
    table = write_rules(tmp_path, "op=alltoall method=bruck")
    done = run_preloaded(any_kernels, "swp_mix", 1, "5", "64", "0", end, table=table)
    lines = re.findall(r"switchpoint: alltoall.*", done.stderr)  # a launcher's may come before
    assert lines == ["switchpoint: alltoall by bruck: 5 calls of 64 to 64 bytes"], done.stderr


def test_the_report_names_what_ran_when_a_selected_method_cannot(
    kernels: Kernels, tmp_path
) -> None:
    rules = "op=bcast method=vendor:algorithm=binomial", "op=bcast method=knomial:radix=4"
    table = write_rules(tmp_path, *rules)
    done = run_preloaded(kernels, "swp_calls", 2, "threads", "bcast", "5", table=table)
    assert "switchpoint: bcast by knomial:radix=4: 5 calls" in done.stderr
    why = "would also affect calls of other threads"
    passed = rf"bcast not by vendor:algorithm=binomial \(.*{why}.*\): 5 calls"
    assert re.search(passed, done.stderr), done.stderr


def test_the_report_says_why_a_rule_is_passed_over(kernels: Kernels, tmp_path) -> None:
    table = write_rules(tmp_path, "op=bcast method=vendor:algorithm=no_such")
    done = run_preloaded(kernels, "swp_calls", 2, "mpi", "bcast", "5", table=table)
    assert "switchpoint: bcast by vendor: 5 calls of 64 to 64 bytes" in done.stderr
    why = r"\(the MPI library has no such algorithm, or .*\): 5 calls of 64 to 64 bytes"
    passed = rf"switchpoint: bcast not by vendor:algorithm=no_such {why}"
    assert re.search(passed, done.stderr), done.stderr


def test_the_report_says_that_a_rule_names_a_method_that_is_off(kernels: Kernels, tmp_path) -> None:
    table = write_rules(tmp_path, "op=bcast method=binomial")
    env = {"SWITCHPOINT_OFF": "binomial"}
    done = run_preloaded(kernels, "swp_calls", 2, "mpi", "bcast", "5", table=table, env=env)
    assert "switchpoint: bcast by vendor: 5 calls of 64 to 64 bytes" in done.stderr
    why = r"\(off at this site, by SWITCHPOINT_OFF\)"
    assert re.search(rf"switchpoint: bcast not by binomial {why}: 5 calls", done.stderr), (
        done.stderr
    )


def test_a_table_that_is_no_file_ends_the_job(kernels: Kernels, tmp_path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    done = run_preloaded(kernels, "swp_calls", 2, "mpi", "bcast", "5", table=fifo)
    assert done.returncode != 0
    assert f"{fifo}: not a regular file; name a method table" in done.stderr


def test_algorithms_of_the_library_run(kernels: Kernels, tmp_path) -> None:
    table = write_rules(tmp_path, "op=bcast method=vendor:algorithm=binomial")
    done = run_preloaded(kernels, "swp_calls", 2, "mpi", "bcast", "5", table=table)
    assert "switchpoint: bcast by vendor:algorithm=binomial: 5 calls" in done.stderr


def test_no_rank_uses_an_algorithm_that_the_process_of_another_lacks(kernels: Kernels, tmp_path):
    table = write_rules(tmp_path, "op=bcast method=vendor:algorithm=binomial")
    locking = (
        'test "${OMPI_COMM_WORLD_RANK:-0}" = 0 || OMPI_MCA_coll_tuned_use_dynamic_rules=0; '
        'exec "$@"'
    )
    before = ["env", "OMPI_MCA_coll_tuned_use_dynamic_rules=1", "sh", "-c", locking, "sh"]
    done = run_preloaded(kernels, "swp_calls", 2, "mpi", "bcast", "5", table=table, before=before)
    assert done.returncode == 0, done.stderr
    if kernels.mpi.family == "openmpi" and kernels.mpi.major == 4:
        why = r"\(another rank's process does not have it\)"
        assert re.search(rf"bcast not by vendor:algorithm=binomial {why}: 5 calls", done.stderr)


def test_programs_with_code_for_accelerators_are_left_alone_without_a_promise(
    kernels: Kernels, require, tmp_path
) -> None:
    program = add_device_code(kernels, require, "swp_calls", tmp_path)
    table = write_rules(tmp_path, "op=bcast method=binomial")
    done = run_preloaded(kernels, "swp_calls", 2, "mpi", "bcast", "5", table=table)
    assert "switchpoint: bcast by binomial: 5 calls" in done.stderr
    promised = ["bcast", "2", "host_buffers", "1", "bcast", "5", "host_buffers", "0", "bcast", "3"]
    done = run_preloaded(kernels, program, 2, "mpi", *promised, table=table)
    assert done.returncode == 0, done.stderr
    assert "switchpoint: bcast by binomial: 5 calls" in done.stderr
    assert "switchpoint: bcast by vendor: 5 calls" in done.stderr
    why = "a process may use an accelerator, and buffers are not promised to be the host's"
    assert f"bcast not by a rule ({why}: swp_host_buffers): 5 calls" in done.stderr, done.stderr


TOOL = """
#include <mpi.h>
#include <stdlib.h>
static int begun;
int MPI_Init(int *argc, char ***argv) { begun = 1; return PMPI_Init(argc, argv); }
int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{ begun = 1; return PMPI_Init_thread(argc, argv, required, provided); }
int MPI_Finalize(void) { if (!begun) abort(); return PMPI_Finalize(); }
"""


def test_a_tool_behind_it_which_has_not_seen_mpi_begin_does_not_see_it_end(
    kernels: Kernels, tmp_path
) -> None:
    (source := tmp_path / "tool.c").write_text(TOOL)
    tool, table = tmp_path / "libtool.so", vendor_table(tmp_path)
    subprocess.run([kernels.mpi.mpicc, "-shared", "-fPIC", "-o", tool, source], check=True)
    done = run_preloaded(kernels, "swp_calls", 2, "mpi", "bcast", "7", table=table, behind=[tool])
    assert done.returncode == 0, done.stderr
    assert "switchpoint: bcast by vendor: 7 calls" in done.stderr


def test_another_library_may_end_mpi_first(kernels: Kernels, tmp_path) -> None:
    ahead = [kernels.build / "libswp_finalize.so"]
    table = vendor_table(tmp_path)
    done = run_preloaded(kernels, "swp_calls", 2, "mpi", "bcast", "7", table=table, ahead=ahead)
    assert "switchpoint: bcast by vendor: 7 calls" in done.stderr


def test_the_code_of_an_error_is_mpis_where_ranks_poll(kernels_of, tmp_path) -> None:
    kernels = kernels_of("openmpi")  # whose setting makes ranks poll
    table = write_rules(tmp_path, "op=allreduce method=hypercube")
    arguments = ["--brief", "--truncation", "--communicators", "0"]
    env = {"OMPI_MCA_mpi_yield_when_idle": "0"}
    done = run_preloaded(kernels, "swp_pmpi", 2, *arguments, table=table, env=env)
    assert_cases_passed(done)


@pytest.mark.parametrize("arguments", [[], ["--init"]], ids=["alone", "before_init"])
def test_sessions_are_dispatched_too(
    kernels: Kernels, require, tmp_path, arguments: list[str]
) -> None:
    require_of_mpi("sessions", kernels, require)
    table = every_method(kernels, 2, tmp_path)
    done = run_preloaded(kernels, "swp_sessions", 2, *arguments, table=table)
    assert done.returncode == 0 and "all right" in done.stdout, done.stdout + done.stderr


def test_blocks_beyond_an_int_are_gathered_too(kernels: Kernels, require, tmp_path) -> None:
    require_of_mpi("large_counts", kernels, require)
    table = write_rules(tmp_path, "op=allgatherv method=ring", "op=bcast method=binomial")
    done = run_preloaded(kernels, "swp_far", 3, table=table)
    assert done.returncode == 0 and "all right" in done.stdout, done.stdout + done.stderr
    assert "switchpoint: allgatherv by ring: 2 calls" in done.stderr


def test_alltoallv_is_dispatched_where_its_counts_stay(any_kernels: Kernels, tmp_path) -> None:
    table = write_rules(tmp_path, "op=alltoallv method=pairwise")
    done = run_preloaded(any_kernels, "swp_calls", 1, "mpi", "alltoallv", "3", table=table)
    assert done.returncode == 0, done.stderr
    why = "alltoallv not by a rule (its counts are not promised to stay: swp_fixed_counts)"
    assert f"{why}: 3 calls of 64 to 64 bytes" in done.stderr


def test_blocks_that_do_not_match_are_left_to_mpi(any_kernels: Kernels, tmp_path: Path) -> None:
    table = write_rules(tmp_path, "op=alltoallv method=bruck")
    done = run_preloaded(any_kernels, "swp_pmpi", 2, "--unmatched", table=table)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "or expects other bytes of a rank than that sends it): 1 calls" in done.stderr
    assert "alltoallv by bruck" not in done.stderr


def test_persistent_collectives_are_left_to_mpi(kernels: Kernels, require, tmp_path) -> None:
    require_of_mpi("persistent", kernels, require)
    table = rules_for_all(tmp_path / "all.table", ["method=METHOD"])
    done = run_preloaded(kernels, "swp_left", 3, table=table)
    assert_cases_passed(done)
    why = "persistent; ranks are not promised to start it together: swp_started_together"
    for name in "Allreduce", "Alltoall", "Alltoallv", "Bcast":
        line = f"MPI_{name}_init left to the MPI library ({why}): 1 calls"
        assert line in done.stderr, done.stderr


def test_calls_with_ranks_of_another_job_are_left_to_mpi(
    kernels_of: Callable[[str], Kernels], tmp_path: Path
) -> None:
    kernels = kernels_of("openmpi")  # Debian's MPICH 4.0.2 cannot start processes later
    table = rules_for_all(tmp_path / "all.table", ["method=METHOD"])
    done = run_preloaded(kernels, "swp_merged", 2, table=table)
    assert done.returncode == 0 and "1 cases passed on 1 ranks" in done.stdout, done.stderr
    why = "the communicator has ranks of another job, or is between two groups"
    for name in "Allreduce", "Alltoallv":
        assert f"MPI_{name} left to the MPI library ({why}): 2 calls" in done.stderr, done.stderr


def test_the_report_names_all_collectives_that_are_left_to_mpi(kernels: Kernels, tmp_path) -> None:
    table = write_rules(tmp_path, "op=allgather method=ring")
    done = run_preloaded(kernels, "swp_left", 2, "--all", table=table)
    assert_cases_passed(done)
    no_table, no_rule = (
        "no table is about this function",
        "the table has no rule for it on these ranks",
    )
    waiting = "nonblocking; methods wait for other ranks"
    expected = {
        **dict.fromkeys(["Barrier", "Bcast", "Allgatherv", "Alltoallv"], no_rule),
        **dict.fromkeys(["Gatherv", "Scatterv", "Alltoallw"], no_rule),
        **dict.fromkeys(["Reduce_scatter", "Scan", "Exscan"], no_table),
        **dict.fromkeys(["Ialltoall", "Iallreduce", "Ibarrier"], waiting),
        "Neighbor_alltoall": no_rule,
        "Ineighbor_alltoall": "nonblocking; only plain and persistent calls are dispatched",
    }
    found = dict(re.findall(r"MPI_(\w+) left to the MPI library \((.*)\): 1 calls", done.stderr))
    more = {
        "Allreduce": no_rule,
        "Barrier_init": no_rule,
        "Neighbor_alltoall_init": no_rule,
        "Scan_c": no_table,
    }
    assert found.items() <= (expected | more).items() and expected.items() <= found.items(), found


@pytest.mark.parametrize(
    ("argument", "function", "bytes_"),
    [("promise", "MPI_Alltoallv", 8), ("large", "MPI_Alltoallv_c", 4 * (2**32 + 1))],
)
def test_a_rank_that_changes_promised_counts_ends_the_job(
    kernels: Kernels, require, tmp_path, argument: str, function: str, bytes_: int
) -> None:
    if argument == "large":
        require_of_mpi("large_counts", kernels, require)
    table = write_rules(tmp_path, "op=alltoallv method=pairwise")
    done = run_preloaded(kernels, "swp_pmpi", 3, f"--break-{argument}", table=table)
    said = [line for line in done.stderr.splitlines() if line.startswith("switchpoint:")]
    assert done.returncode != 0 and "cases" not in done.stdout and len(said) == 1, done.stderr
    who = "rank 1 of a communicator with swp_fixed_counts=true calls it with"
    what = f"{bytes_} bytes from rank 1, and 4 in the first call: "
    assert said[0].startswith(f"switchpoint: {function}: {who} {what}")


@pytest.mark.parametrize("name", ["swp_mpif", "swp_use_mpi", "swp_f08"])
def test_fortran_programs_are_dispatched(kernels: Kernels, require, tmp_path, name: str) -> None:
    table = every_method(kernels, 3, tmp_path)
    with table.open("a") as file:
        file.write("rule op=exchange method=alltoallv\n")
    # Open MPI's Fortran library may be loaded for Python's module alone.
    of_openmpi = kernels.mpi.family == "openmpi" and name == "swp_f08"
    for loaded in [False, True][: 1 + of_openmpi]:
        program, *arguments = build_fortran(kernels, require, name, tmp_path, loaded=loaded)
        check_fortran(run_preloaded(kernels, program, 3, *arguments, table=table), name)


def check_fortran(done: subprocess.CompletedProcess[str], name: str) -> None:
    """Check that the results are right, and that no operation was left to the MPI library."""
    assert done.returncode == 0 and f"{name}: all right" in done.stdout, done.stdout + done.stderr
    used = dispatched(done.stderr)
    assert set(used) == {*COLLECTIVES, "exchange"}
    assert all(methods != {"vendor"} for methods in used.values()), used


def test_a_call_left_to_mpi_costs_few_instructions(kernels: Kernels, require, tmp_path) -> None:
    require("valgrind", shutil.which("valgrind") is not None, "no valgrind on the path")
    costs = instructions_over_pmpi(kernels, vendor_table(tmp_path))
    assert len(costs) == len(COLLECTIVES) and all(
        0 < cost <= INSTRUCTIONS for cost in costs.values()
    ), costs


def test_no_rule_is_too_many_to_be_seen(any_kernels: Kernels, require, tmp_path) -> None:
    require("valgrind", shutil.which("valgrind") is not None, "no valgrind on the path")
    rules = [f"bytes={2 * i} method=METHOD" for i in range(33)]  # the last is for 64 bytes
    costs = instructions_over_pmpi(any_kernels, rules_for_all(tmp_path / "many.table", rules))
    promised = costs.pop("alltoallv")  # what is not promised is not looked up
    meeting = costs.pop("barrier")  # of one byte, for which there is no rule
    assert max(promised, meeting) <= INSTRUCTIONS
    assert all(cost > INSTRUCTIONS for cost in costs.values()), costs


@pytest.mark.parametrize("find", [preload_library, profiler])
def test_a_preload_that_is_closed_stays_loaded(any_kernels: Kernels, find) -> None:
    library = find(any_kernels.build)
    closed = f"import ctypes, _ctypes; _ctypes.dlclose(ctypes.CDLL({str(library)!r})._handle)"
    program = f"{closed}; print(open('/proc/self/maps').read())"
    done = finish([sys.executable, "-c", program], os.environ, TIMEOUT_S)
    assert done.returncode == 0 and library.name in done.stdout, done.stderr


def test_the_library_inside_never_calls_what_stands_before_mpi(kernels: Kernels) -> None:
    library = preload_library(kernels.build)
    assert library is not None
    exported = symbols("--dynamic", "--defined-only", library)
    called = symbols("--undefined-only", kernels.build / "pmpi" / "libswitchpoint_own_calls.a")
    assert {"MPI_Bcast", "MPI_Init", "MPI_Comm_free"} <= exported
    assert {name for name in exported if not name.lower().startswith(("mpi_", "ompi_"))} == set()
    assert called & exported == set()


def test_every_form_of_a_collective_is_seen(kernels: Kernels) -> None:
    library = preload_library(kernels.build)
    assert library is not None
    offered = symbols("--dynamic", "--defined-only", mpi_library(kernels))
    messages = {
        f"MPI_{name}{form}"
        for name in ("Send", "Ssend", "Rsend", "Recv", "Sendrecv")
        for form in ("", "_c")
    }
    collectives = {name for name in offered if COLLECTIVE.fullmatch(name)}
    waiting = {name for name in offered if WAITING.fullmatch(name)}
    exported = symbols("--dynamic", "--defined-only", library)
    assert len(collectives) >= 44 and collectives & offered <= exported, collectives - exported
    assert len(waiting) >= 9 and waiting | messages & offered <= exported


@pytest.mark.check
def test_valgrind_finds_nothing_under_the_preload(kernels: Kernels, require, tmp_path) -> None:
    require("valgrind", shutil.which("valgrind") is not None, "no valgrind on the path")
    table = every_method(kernels, 2, tmp_path)
    env = {"SWP_TEST_TIMEOUT": "240"}
    arguments = ["--wild", "--communicators", "50"]
    done = run_preloaded(kernels, "swp_pmpi", 2, *arguments, table=table, before=VALGRIND, env=env)
    assert done.returncode == 0, done.stdout + done.stderr
