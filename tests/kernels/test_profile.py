"""Profiles of unmodified programs: what is recorded, however they end."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.processes import TIMEOUT_S
from tuner.advice import recorded
from tuner.advice.profile import Profile
from tuner.domain.operations import DISPATCHED
from tuner.files import printable
from tuner.machine import mpi

from .conftest import Kernels, finish
from .preloaded import build_fortran

STEPS, PROCS = 400, 3


def run_profiled(
    kernels: Kernels, path: Path, program: Path | str, *arguments: str, procs: int = PROCS
) -> subprocess.CompletedProcess[str]:
    """Run a program that is profiled into `path`."""
    library = mpi.profiler(kernels.build)
    assert library is not None
    start = mpi.launch(kernels.mpi, procs, build=kernels.build, preload=[library])
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
    its = recorded.read(path)
    assert (its.procs, its.reported, its.finalized, its.lost) == (PROCS, PROCS, True, 0)
    assert counts_of(its) == {
        ("Alltoall", 3, 40): threads * STEPS,
        ("Allreduce", 2, 8): threads * STEPS // 10,
        ("Allreduce", 1, 8): threads * STEPS // 10,
        ("Barrier", 3, 1): threads,
    }
    alltoall = next(calls for calls in its.calls if calls.shape.call == "Alltoall")
    assert alltoall.shape.nodes == 1 and alltoall.types == ("MPI_CHAR",)
    assert 0 < alltoall.own_s <= alltoall.seconds
    assert (alltoall.spread_s is None) == (threads > 1)  # their calls have no order for all ranks
    assert 0 < its.bound_s <= its.seconds


def test_the_time_of_calls_that_differ_too_much_is_kept(
    any_kernels: Kernels, tmp_path: Path
) -> None:
    path = tmp_path / "mix.profile"
    run_profiled(any_kernels, path, any_kernels.build / "tests/swp_mix", "1", "0", "0", "many")
    its = recorded.read(path)
    alone = {key: count for key, count in counts_of(its).items() if key[1] == 0}
    assert alone.keys() == {("Bcast", 0, 0), ("Barrier", 0, 1)}
    assert its.lost == PROCS * sum(alone.values())
    assert its.bound_s >= sum(calls.own_s for calls in its.calls if not calls.shape.procs) > 0


def test_uneven_blocks_are_recorded_as_tables_count_them(
    any_kernels: Kernels, tmp_path: Path
) -> None:
    path = tmp_path / "mix.profile"
    run_profiled(any_kernels, path, any_kernels.build / "tests/swp_mix", "1", "0", "0", "uneven")
    assert counts_of(recorded.read(path)) == {("Allgatherv", PROCS, 8 // PROCS): 1}


def test_calls_on_a_communicator_that_is_being_freed_are_of_its_ranks(
    kernels: Kernels, tmp_path: Path
) -> None:
    path = tmp_path / "mix.profile"
    done = run_profiled(kernels, path, kernels.build / "tests/swp_mix", "100", "0", "0", "freed")
    assert done.returncode == 0, done.stderr
    found = counts_of(recorded.read(path))
    assert found == {
        (call, procs, bytes_): 50
        for call, bytes_ in (("Barrier", 1), ("Allreduce", 8))
        for procs in (1, PROCS)
    }


def test_communicators_beyond_the_most_are_counted_without_layout(
    kernels_of: Callable[[str], Kernels], tmp_path: Path
) -> None:
    kernels = kernels_of("openmpi")  # whose ranks yield, where they have no cores of their own
    path, procs, steps = tmp_path / "mix.profile", 7, 700
    program = kernels.build / "tests/swp_mix"
    run_profiled(kernels, path, program, str(steps), "8", "0", "shuffled", procs=procs)
    its = recorded.read(path)
    barriers = counts_of(its)
    assert (its.reported, its.finalized) == (procs, True)
    assert its.lost == 0
    assert barriers["Barrier", procs, 1] + barriers["Barrier", 0, 1] == steps
    with path.open() as lines:
        assert all(len(json.loads(line)["groups"]) == 512 for line in lines)


def test_short_calls_are_all_counted_and_timed_in_part(
    any_kernels: Kernels, tmp_path: Path
) -> None:
    path, procs, steps = tmp_path / "mix.profile", 2, 20_000
    program = any_kernels.build / "tests/swp_mix"
    run_profiled(any_kernels, path, program, str(steps), "8", "0", procs=procs)
    its = recorded.read(path)
    assert counts_of(its)["Alltoall", procs, 8] == steps
    # Most of the run is in them: what one in eight takes would be little of it.
    assert 0.25 * its.seconds < its.communication_s <= 1.05 * its.seconds
    assert any(calls.spread_s is not None for calls in its.calls)


@pytest.mark.parametrize("end", ["exit", "abort"])
def test_programs_without_finalize_are_recorded(kernels: Kernels, tmp_path: Path, end: str) -> None:
    path = tmp_path / "mix.profile"
    run_profiled(kernels, path, kernels.build / "tests/swp_mix", str(STEPS), "40", "0", end)
    its = recorded.read(path)
    assert 1 <= its.reported <= PROCS and not its.finalized
    assert counts_of(its)["Alltoall", 3, 40] == STEPS


def test_a_rank_that_aborts_while_rank_0_waits_for_its_profile_ends_the_job(
    any_kernels: Kernels, tmp_path: Path
) -> None:
    path = tmp_path / "late.profile"
    done = run_profiled(
        any_kernels, path, any_kernels.build / "tests/swp_mix", "10", "40", "0", "late"
    )
    assert done.returncode != 0
    assert recorded.read(path).reported >= 1


def test_fortran_programs_are_recorded(kernels: Kernels, require, tmp_path: Path) -> None:
    for loaded in (False, True):
        path = tmp_path / f"f08-{loaded}.profile"
        command = build_fortran(kernels, require, "swp_f08", tmp_path, loaded=loaded)
        done = run_profiled(kernels, path, *command)
        assert done.returncode == 0 and "all right" in done.stdout, done.stdout + done.stderr
        its = recorded.read(path)
        assert its.finalized
        assert {calls.shape.operation for calls in its.calls} >= set(DISPATCHED)


def test_requests_of_fortran_programs_are_recorded(
    kernels: Kernels, require, tmp_path: Path
) -> None:
    path = tmp_path / "requests.profile"
    command = build_fortran(kernels, require, "swp_requests", tmp_path)
    done = run_profiled(kernels, path, *command)
    assert done.returncode == 0 and "all right" in done.stdout, done.stdout + done.stderr
    calls = {each.shape.call: each.count for each in recorded.read(path).calls}
    waits = ("Waitall", "Wait", "Test", "Testall", "Testany", "Testsome", "Request_get_status")
    probes = ("Probe", "Iprobe", "Mprobe", "Improbe")
    on_ring = [f"Neighbor_all{name}" for name in ("gather", "gatherv", "toall", "toallv", "toallw")]
    once = ("Isend", "Irecv", "Ibarrier", "Win_fence", *waits, *probes, *on_ring)
    assert calls == dict.fromkeys(once, 1)


def test_programs_in_turn_have_a_file_each_in_a_directory(
    any_kernels: Kernels, tmp_path: Path
) -> None:
    program = any_kernels.build / "tests/swp_mix"
    for steps in ("10", "20"):
        run_profiled(any_kernels, tmp_path, program, steps, "40", "0", procs=2)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["1", "2"]
    first, second, both = map(recorded.read, (tmp_path / "1", tmp_path / "2", tmp_path))
    assert counts_of(both)["Alltoall", 2, 40] == 10 + 20
    assert both.seconds == first.seconds + second.seconds
    assert (both.program, both.procs, both.reported) == ("swp_mix", 2, 2)


def test_a_profile_that_cannot_be_written_is_one_line(any_kernels: Kernels, tmp_path: Path) -> None:
    path = tmp_path / "no\x1b[31mne" / "mix.profile"
    done = run_profiled(any_kernels, path, any_kernels.build / "tests/swp_mix", "1", "8", "0")
    assert done.returncode != 0
    assert f"switchpoint: profile {printable(str(path))}: cannot be written" in done.stderr
