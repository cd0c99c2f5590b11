"""`swpbench soak`: what passes, and that a hang, a wrong byte, a leak and an error are found."""

import json
import os
import re
import signal
import subprocess
import time
from itertools import product
from pathlib import Path

import pytest

from tests.compiler import build_preload
from tests.conftest import by_day
from tests.kernels.benchrun import SWPBENCH, Record, Result, documented_keys, has_type
from tests.kernels.conftest import MPIS, Kernels, in_turn, on_ranks
from tests.processes import TIMEOUT_S, command_lines, environments, is_running, wait_for
from tuner.machine.mpi import launch

CORRUPT = "bench/swpbench_corrupt"
RING = ("--op", "exchange", "--pattern", "random:degree=1", "--sizes", "8")


def soak(
    kernels: Kernels,
    out: Path,
    procs: int,
    *options: str,
    wrong: str = "",
    call: int = 0,
    rank: int = 1,
) -> Result:
    """Run `swpbench soak`, in which a rank may go wrong from its call of that number on."""
    env = {"SWP_CORRUPT": wrong, "SWP_CORRUPT_RANK": str(rank), "SWP_CORRUPT_CALL": str(call)}
    program = CORRUPT if wrong else SWPBENCH
    words = ["soak", "--out", str(out), *options]
    done = kernels.run(program, words, procs, env if wrong else None)
    lines = out.read_text().splitlines() if out.is_file() else []
    return Result(done.returncode, done.stdout, done.stderr, [json.loads(line) for line in lines])


def soaks(result: Result) -> list[Record]:
    """Return the records of soaks in a file that is complete."""
    assert result.records[-1]["record"] == "end", result.stderr
    found = [each for each in result.records if each["record"] == "soak"]
    assert result.records[-1]["cases"] == len(found)
    return found


def failed(result: Result) -> Record:
    """Return the record of the one method that was soaked and failed."""
    assert result.status != 0
    (record,) = soaks(result)
    assert not record["passed"]
    return record


@on_ranks([1, 4, 3])
@pytest.mark.parametrize("operation", ["exchange", "discovery", "allreduce"])
def test_every_method_passes(kernels: Kernels, tmp_path: Path, operation: str, procs: int) -> None:
    pattern = "blocks" if operation == "allreduce" else "random:degree=2"
    words = ("--op", operation, "--pattern", pattern, "--sizes", "8,4096", "--executions", "150")
    result = soak(kernels, tmp_path / "o", procs, *words)
    assert result.status == 0, result.stderr
    assert "swpbench: soak passed" in result.stdout
    assert result.header["operation"] == "soak"
    assert {each["size_bytes"] for each in soaks(result)} == {8, 4096}
    keys = documented_keys("soak")
    for record in soaks(result):
        assert {key: has_type(record[key], kind) for key, kind in keys.items()} == dict.fromkeys(
            keys, True
        )
        assert set(record) == set(keys)
        assert (record["passed"], record["executions"], record["failure"]) == (True, 150, "")
        assert record["operation"] == operation


def test_each_race_has_its_own_methods_and_executions(any_kernels: Kernels, tmp_path: Path) -> None:
    words = ("--op", "exchange", "--pattern", "random:degree=1", "--races")
    races = "8 30 direct|8 20 neighbor|64,4K 20 direct neighbor"
    result = soak(any_kernels, tmp_path / "o", 2, *words, races)
    found = [(each["size_bytes"], each["method"], each["executions"]) for each in soaks(result)]
    assert found == [
        (8, "direct", 30),
        (8, "neighbor", 20),
        *((size, method, 20) for size in (64, 4096) for method in ("direct", "neighbor")),
    ]


@pytest.mark.parametrize("operation", ["exchange", "discovery"])
@pytest.mark.parametrize("right", [130, pytest.param(9999, marks=pytest.mark.nightly)])
def test_a_wrong_byte_is_found_in_the_execution_that_it_is_in(
    kernels: Kernels, tmp_path: Path, operation: str, right: int
) -> None:
    """Rank 1 goes wrong after so many right calls, so that the second method does at once."""
    methods = {"exchange": "direct alltoallv", "discovery": "pex pcx"}[operation]
    words = ("--op", operation, "--pattern", "random:degree=9", "--sizes", "8")
    words += ("--methods", methods, "--executions", str(max(right + 1, 200)))
    result = soak(kernels, tmp_path / "o", 4, *words, wrong="byte", call=right)
    assert result.status != 0
    first, second = soaks(result)
    assert (first["failure"], second["failure"]) == ("payload", "payload")
    assert first["reason"].startswith(f"rank 1: execution {right + 1}: wrong payload from rank 0")
    assert second["reason"].startswith("rank 1: execution 1: wrong payload")
    (complaint,) = result.complaints
    assert "soak failed: 2 of 2" in complaint


@pytest.mark.parametrize(
    ("kernels", "operation"),
    by_day([*in_turn(["gather", "bcast"])], in_turn(["reduce", "scatter"])),
    indirect=["kernels"],
)
def test_every_method_passes_with_the_ranks_as_roots_in_turn(
    kernels: Kernels, tmp_path: Path, operation: str
) -> None:
    words = ("--op", operation, "--pattern", "blocks", "--sizes", "8", "--executions", "50")
    result = soak(kernels, tmp_path / "o", 3, *words)
    assert result.status == 0, result.stderr
    assert all(each["executions"] == 50 for each in soaks(result))


@pytest.mark.parametrize(
    ("operation", "reason"),
    [
        ("bcast", "execution 1: wrong payload from rank 2"),
        ("scatter", "execution 1: wrong payload from rank 2"),
        ("gather", "execution 3: wrong payload from rank 0"),
        ("reduce", "execution 3: wrong payload: element 0"),
    ],
)
def test_each_method_begins_with_the_root_after_the_last_of_the_one_before(
    any_kernels: Kernels, tmp_path: Path, operation: str, reason: str
) -> None:
    """The last is rank 1, in execution 50; of a gather and a reduce only the root has bytes."""
    words = ("--op", operation, "--pattern", "blocks", "--sizes", "8", "--executions", "50")
    words += ("--methods", "vendor binomial")
    result = soak(any_kernels, tmp_path / "o", 3, *words, wrong="byte", call=50)
    first, second, *_ = soaks(result)  # the library's own algorithms may be among them
    assert (first["passed"], second["failure"]) == (True, "payload")
    assert second["reason"].startswith(f"rank 1: {reason}")


@pytest.mark.parametrize(
    ("kernels", "operation"),
    by_day(
        [("mpich", "exchange"), ("openmpi", "discovery")], product(MPIS, ["exchange", "discovery"])
    ),
    indirect=["kernels"],
)
def test_a_hang_ends_with_the_stacks_of_all_ranks(
    kernels: Kernels, tmp_path: Path, operation: str
) -> None:
    words = ("--op", operation, "--pattern", "random:degree=2", "--sizes", "8", "--limit", "1")
    words += ("--methods", {"exchange": "direct", "discovery": "pcx"}[operation])
    result = soak(kernels, tmp_path / "o", 3, *words, wrong="hang", call=100)
    record = failed(result)
    assert record["failure"] == "hang"
    assert 100 <= record["executions"] < 200
    for rank in range(3):
        assert re.search(rf"^swpbench: rank {rank} hangs: ", result.stderr, re.MULTILINE)
    assert re.search(r"^swpbench: rank 1   hang_here\+0x", result.stderr, re.MULTILINE)
    assert any(frame.startswith("main+0x") for frame in record["stack"])
    assert "swpbench: soak failed: " in result.stderr


def test_wrong_bytes_before_a_hang_are_the_failure(any_kernels: Kernels, tmp_path: Path) -> None:
    words = (*RING, "--methods", "direct", "--limit", "1")
    result = soak(any_kernels, tmp_path / "o", 2, *words, wrong="last", call=70, rank=0)
    record = failed(result)
    assert (record["failure"], record["executions"]) == ("payload", 71)
    assert record["reason"].startswith("rank 0: execution 71: wrong payload from rank 1")
    assert any(frame.startswith("hang_here+0x") for frame in record["stack"])


def test_a_hang_between_two_sizes_keeps_the_soaks_before_it(
    any_kernels: Kernels, tmp_path: Path
) -> None:
    words = (*RING[:-1], "8,64", "--methods", "direct", "--executions", "20", "--limit", "0.5")
    result = soak(any_kernels, tmp_path / "o", 2, *words, wrong="between", rank=0)
    assert result.status != 0
    assert [each["passed"] for each in soaks(result)] == [True]
    hang = "soak failed: hang: rank 0 made no progress in 0.5 s: going on to a size"
    assert hang in result.stderr


def begin_soak(
    kernels: Kernels, out: Path, *words: str, lines: int = 1
) -> tuple[subprocess.Popen[str], list[int]]:
    """Start a soak on two ranks; return it with their processes when it has written lines."""
    start = launch(kernels.mpi, 2, build=kernels.build)
    words = (*words, "--out", str(out))
    soaking = subprocess.Popen(
        [*start.argv_prefix, str(kernels.build / SWPBENCH), "soak", *words],
        env=os.environ | start.env,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    while soaking.poll() is None and not (out.is_file() and out.read_text().count("\n") >= lines):
        time.sleep(0.02)
    ranks = ranks_that_write(out)
    assert len(ranks) == 2
    return soaking, ranks


def test_a_job_that_is_suspended_does_not_hang(any_kernels: Kernels, tmp_path: Path) -> None:
    words = (*RING, "--methods", "direct", "--executions", "100000000", "--budget", "1")
    words += ("--limit", "1")
    soaking, ranks = begin_soak(any_kernels, tmp_path / "o", *words)
    for number in (signal.SIGSTOP, signal.SIGCONT):
        for rank in ranks:
            os.kill(rank, number)
        time.sleep(2 if number == signal.SIGSTOP else 0)
    _, stderr = soaking.communicate(timeout=TIMEOUT_S)
    assert soaking.returncode == 0, stderr


@pytest.mark.parametrize(
    ("kernels", "rank"), by_day([("mpich", 0)], product(MPIS, [0, 1])), indirect=["kernels"]
)
def test_a_rank_that_is_stopped_for_good_leaves_an_outcome(
    kernels: Kernels, tmp_path: Path, rank: int
) -> None:
    """The watchdogs watch from the first method on; the stop is in the second."""
    words = (*RING[:-2], "--races", "8 20 stfw:dims=2 direct|8 100000000 alltoallv", "--limit", "2")
    soaking, processes = begin_soak(kernels, tmp_path / "o", *words, lines=2)
    time.sleep(1)  # until the ranks have gone on to it
    (stopped,) = (each for each in processes if rank_of(each) == rank)
    os.kill(stopped, signal.SIGSTOP)
    _, stderr = soaking.communicate(timeout=TIMEOUT_S)
    assert soaking.returncode != 0
    *_, outcome, end = map(json.loads, (tmp_path / "o").read_text().splitlines())
    assert (outcome["failure"], outcome["passed"]) == ("hang", False), stderr
    assert f"rank {1 - rank} made no progress" in outcome["reason"]
    assert (end["record"], end["cases"]) == ("end", 2)
    assert [each["method"] for each in end["skipped"]] == ["stfw:dims=2"]
    wait_for(lambda: not is_running(stopped))  # Open MPI's launcher ends a moment earlier


STOPS_RANK_1 = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
int pthread_create(pthread_t *thread, const pthread_attr_t *how, void *(*start)(void *), void *it) {
  Dl_info of;
  const char *rank = getenv("PMI_RANK");
  if (rank && rank[0] == '1' && dladdr((void *)start, &of) && strstr(of.dli_fname, "swpbench"))
    raise(SIGSTOP);
  return ((int (*)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *))
          dlsym(RTLD_NEXT, "pthread_create"))(thread, how, start, it);
}
"""


@pytest.mark.parametrize("kernels", ["mpich"], indirect=True)
def test_a_rank_that_is_stopped_before_it_is_watched_ends_the_job(
    kernels: Kernels, tmp_path: Path
) -> None:
    source, library = tmp_path / "stops.c", tmp_path / "stops.so"
    source.write_text(STOPS_RANK_1)
    build_preload(source, library)
    start = launch(kernels.mpi, 2, build=kernels.build, preload=[library])
    words = (*RING, "--methods=direct", "--limit=0.1", f"--out={tmp_path / 'o'}")
    answer = subprocess.run(
        [*start.argv_prefix, kernels.build / SWPBENCH, "soak", *words],
        env=os.environ | start.env,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
    )
    assert answer.returncode != 0
    assert "soak failed: hang: rank 0 made no progress in 1 s: preparing" in answer.stderr
    assert not (tmp_path / "o").exists()


def rank_of(process: int) -> int:
    """Return the rank that the launcher gave to a process."""
    environment = dict(environments())[process]
    names = ("PMI_RANK", "OMPI_COMM_WORLD_RANK")
    return next(int(environment[name]) for name in names if name in environment)


def ranks_that_write(out: Path) -> list[int]:
    """Return the processes of swpbench that write a file."""
    return [
        pid
        for pid, words in command_lines()
        if str(out) in words and Path(words[0]).name == "swpbench"
    ]


def test_a_leak_is_found(kernels: Kernels, tmp_path: Path) -> None:
    words = (*RING, "--methods", "direct", "--executions", "2000")
    record = failed(soak(kernels, tmp_path / "o", 2, *words, wrong="leak"))
    assert (record["failure"], record["executions"]) == ("leak", 6000)
    assert record["growth_bytes"] >= 1500 * 48
    assert record["reason"].startswith("rank 1: leak: ")


def test_a_failed_soak_leaves_the_next_of_its_start(kernels: Kernels, tmp_path: Path) -> None:
    words = (*RING, "--methods", "direct", "--executions", "200")
    further = tmp_path / "further"
    discovery = ("--op", "discovery", "--methods", "pex", *RING[2:], "--executions", "20")
    result = soak(
        kernels,
        *(tmp_path / "o", 2, *words, "--then", "--out", str(further), *discovery),
        wrong="byte",
    )
    assert failed(result)["failure"] == "payload"
    _, record, end = map(json.loads, further.read_text().splitlines())
    assert (record["method"], record["failure"], end["record"]) == ("pex", "payload", "end")
    assert result.stderr.count("swpbench: soak failed: 1 of 1") == 2


@pytest.mark.parametrize("fault", ["a wrong option", "a file that exists"])
def test_an_error_ends_all_soaks_of_a_start(
    any_kernels: Kernels, tmp_path: Path, fault: str
) -> None:
    words = (*RING, "--methods", "direct", "--executions", "20")
    there, last = tmp_path / "there", tmp_path / "last"
    there.touch()
    wrong = (*words, "--no-such") if fault == "a wrong option" else words
    then = ("--then", "--out", str(there), *wrong, "--then", "--out", str(last), *words)
    result = soak(any_kernels, tmp_path / "o", 2, *words, *then)
    assert result.status != 0
    assert [each["passed"] for each in soaks(result)] == [True]
    assert len(result.complaints) == 1
    assert not last.exists()


def test_a_pool_that_fills_up_is_no_leak(kernels: Kernels, tmp_path: Path) -> None:
    words = (*RING, "--methods", "direct", "--executions", "2000")
    (record,) = soaks(soak(kernels, tmp_path / "o", 2, *words, wrong="pool"))
    assert (record["passed"], record["reason"], record["growth_bytes"]) == (True, "", 0)
    assert record["executions"] == 6000  # as it was taken for a leak at first


def test_what_the_c_library_keeps_for_later_is_no_leak(
    any_kernels: Kernels, tmp_path: Path
) -> None:
    words = (*RING, "--methods", "direct", "--executions", "2000")
    result = soak(any_kernels, tmp_path / "o", 2, *words, wrong="free")
    assert [each["passed"] for each in soaks(result)] == [True], result.stderr


@pytest.mark.parametrize(("rank", "failure"), [(0, "error"), (1, "hang")])
def test_an_execution_that_fails_ends_the_job(
    any_kernels: Kernels, tmp_path: Path, rank: int, failure: str
) -> None:
    """The other rank waits for the one that failed: only its own process knows why."""
    words = (*RING, "--methods", "direct", "--limit", "1")
    result = soak(any_kernels, tmp_path / "o", 2, *words, wrong="error", call=70, rank=rank)
    assert failed(result)["failure"] == failure
    assert f"rank {rank} hangs: " in result.stderr
    assert "after execution 71 fails" in result.stderr


def test_a_failed_turn_is_the_failure_after_wrong_bytes(
    any_kernels: Kernels, tmp_path: Path
) -> None:
    words = ("--op", "bcast", "--pattern", "blocks", "--sizes", "8", "--methods", "vendor")
    words += ("--executions", "50")
    result = soak(any_kernels, tmp_path / "o", 2, *words, wrong="turn", call=49, rank=0)
    record = failed(result)
    assert record["failure"] == "error"
    assert record["reason"].startswith("rank 0: going on to the next root after execution 50")
    assert "wrong payload" not in record["reason"]


def test_what_the_budget_leaves_out_is_said(any_kernels: Kernels, tmp_path: Path) -> None:
    words = (*RING, "--methods", "direct alltoallv", "--budget", "0.2", "--executions", "100000000")
    result = soak(any_kernels, tmp_path / "o", 2, *words)
    assert result.status == 0, result.stderr
    (record,) = soaks(result)
    assert record["passed"]
    assert 0 < record["executions"] < 100000000
    assert [each["method"] for each in result.records[-1]["skipped"]] == ["alltoallv"]


@pytest.mark.parametrize(
    ("option", "value", "words"),
    [
        ("--executions", "0", "from 1"),
        ("--limit", "0", "seconds from 0.1"),
        ("--max-samples", "4", "not of soak"),
    ],
)
def test_options_that_are_wrong(
    any_kernels: Kernels, tmp_path: Path, option: str, value: str, words: str
) -> None:
    command = ["soak", "--out", str(tmp_path / "o"), *RING, option, value]
    done = any_kernels.run(SWPBENCH, command, 2)
    assert done.returncode != 0
    assert words in done.stderr
