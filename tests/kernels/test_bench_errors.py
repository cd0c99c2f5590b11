"""Whatever is wrong, swpbench says it in one line and ends with an error on all ranks."""

import errno
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import count
from pathlib import Path
from subprocess import DEVNULL, CompletedProcess

import pytest

from tests.compiler import build_preload
from tests.conftest import Require, by_day
from tests.kernels.benchrun import CORRUPT, SEVEN, SWPBENCH, bench, complaint
from tests.kernels.conftest import Kernels, finish, on_ranks
from tests.processes import TIMEOUT_S
from tuner.files import printable
from tuner.machine.mpi import launch


@pytest.fixture(params=["FIFO", "socket", "device"])
def special(request: pytest.FixtureRequest) -> Iterator[Path]:
    """Yield what is no regular file; nobody writes to the FIFO."""
    with tempfile.TemporaryDirectory() as directory:  # the name of a socket must be short
        path = Path(directory) / "special"
        if request.param == "FIFO":
            os.mkfifo(path)
        elif request.param == "socket":
            with socket.socket(socket.AF_UNIX) as made:
                made.bind(str(path))
        else:
            path.symlink_to("/dev/zero")
        yield path


def test_special_files_are_refused(any_kernels: Kernels, tmp_path: Path, special: Path) -> None:
    """Not waited for, by any rank."""
    runs: list[dict[str, str]] = [
        {"pattern": f"matrix:{special}"},
        {"pattern": f"matrix:{SEVEN},part={special}"},
    ]
    for options in runs:
        said = complaint(bench(any_kernels, tmp_path / "o", **options))
        assert said.startswith(f"swpbench: cannot open {special}: not a regular file; "), said
    done = any_kernels.run("bench/swpbench", ["table", str(special)], 2)
    assert done.returncode != 0
    assert f"{special}: not a regular file; name a method table" in done.stderr
    for variable in ("SWITCHPOINT_TABLE", "SWITCHPOINT_USER_TABLE"):
        env = {variable: str(special)}
        result = bench(any_kernels, tmp_path / variable, methods="auto", env=env)
        assert f"{special}: not a regular file; " in complaint(result)


def test_a_special_file_is_not_written(any_kernels: Kernels, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    said = complaint(bench(any_kernels, tmp_path / "fifo"))
    assert said == f"swpbench: cannot write {tmp_path}/fifo: it exists already; choose another name"


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("op", "broadcast"),
        ("op", ""),
        ("pattern", "ring"),
        ("pattern", "random:degree"),
        ("pattern", "random:degree=-1"),
        ("pattern", "random:degree=2,degree=3"),
        ("pattern", "random:hubs=2"),
        ("pattern", "random:degree=2x"),
        ("pattern", "random:"),
        ("pattern", "hub:hubs=0"),
        ("pattern", "stencil:dim=4"),
        ("pattern", "stencil:dim=3,points=9"),
        ("pattern", "matrix:"),
        ("pattern", "matrix"),
        ("pattern", "matrix:,part=strided"),
        ("pattern", "matrix:a<b.mtx"),
        ("pattern", "matrix:a\u200eb.mtx"),
        ("pattern", f"matrix:{'m' * 150},part={'p' * 150}"),
        ("sizes", ""),
        ("sizes", "0"),
        ("sizes", "-8"),
        ("sizes", "8,"),
        ("sizes", "8:64"),
        ("sizes", "8:64:2"),
        ("sizes", "8:64:x1"),
        ("sizes", "64:8:x2"),
        ("sizes", "8k"),
        ("sizes", "99999999999999999999"),
        ("methods", ""),
        ("methods", "teleport"),
        ("methods", "teleport:dims=2"),
        ("methods", "stfw:dims=two"),
        ("methods", "nbx"),
        ("budget", "soon"),
        ("budget", "-1"),
        ("budget", "inf"),
        ("budget", "1e10"),
        ("launch", "-1"),
        ("launch", "first"),
        ("max-samples", "0"),
        ("seed", "1.5"),
        ("sync", "clock"),
        ("ppn", "0"),
        ("ppn", "two"),
        ("placement", "random"),
        ("placement", "cyclic"),  # of no virtual nodes
        ("campaign", ""),
        ("campaign", "2026/11/21"),
        ("campaign", ".hidden"),
        ("campaign", "a<b"),
        ("campaign", "a\x85b"),
        ("campaign", "a\u2028b"),
        ("campaign", "a" * 201),
        ("out", ""),
        ("out", "/nonexistent/o.jsonl"),
        ("out", "/dev/full"),
        ("frequency", "7"),
    ],
)
def test_bad_option(any_kernels: Kernels, tmp_path: Path, option: str, value: str) -> None:
    text = complaint(bench(any_kernels, tmp_path / "o", **{option: value}))
    assert f"--{option}" in text or (value and value in text)


@cache
def can_trace() -> bool:
    if shutil.which("strace") is None:
        return False
    return subprocess.run(["strace", "-o", os.devnull, "true"], stderr=DEVNULL).returncode == 0


@pytest.mark.parametrize("error", by_day(["EIO"], ["ENOSPC", "EIO", "EMFILE", "ENOMEM"]))
@pytest.mark.parametrize("call", ["newfstatat", "openat", "fcntl", "write", "close"])
def test_a_call_on_the_output_that_fails(
    any_kernels: Kernels,
    tmp_path: Path,
    require: Require,
    record_property: Callable[[str, object], None],
    call: str,
    error: str,
) -> None:
    require("strace", can_trace(), "no strace, or no right to it")
    for nth in count(1):
        out, trace = tmp_path / f"{nth}.jsonl", tmp_path / f"{nth}.strace"
        fault = f"inject={call}:error={error}:when={nth}"
        under = ["strace", "-f", "-o", str(trace), "-P", str(out), "-e", fault]
        result = bench(any_kernels, out, 1, under=under, op="allreduce", pattern="blocks")
        if "INJECTED" not in trace.read_text():
            break
        if result.status == 0:
            assert result.records[-1]["record"] == "end"
        else:
            reason = os.strerror(getattr(errno, error))
            assert result.complaints == [f"swpbench: cannot write {out}: {reason}"]
            assert "complete" not in result.stdout
    assert result.status == 0 and nth > 1
    record_property("faults", nth - 1)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "command"),
        (["measure"], "measure"),
        (["run"], "--op"),
        (["run", "--op", "exchange", "--op", "exchange"], "twice"),
        (["run", "--op"], "needs"),
        (["run", "--quiet=yes"], "no value"),
        (["run", "file"], "file"),
        (["table"], "FILE"),
        (["table", "a", "b"], "FILE"),
        (["list", "all"], "list"),
        (["table", "/nonexistent/table"], "/nonexistent/table"),
    ],
)
def test_bad_command_line(any_kernels: Kernels, arguments: list[str], words: str) -> None:
    done = any_kernels.run("bench/swpbench", arguments, 2)
    assert done.returncode != 0
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("swpbench: ")]
    assert words in line


def test_messages_that_a_discovery_cannot_carry(any_kernels: Kernels, tmp_path: Path) -> None:
    result = bench(any_kernels, tmp_path / "o", op="discovery", methods="pex", sizes="8,4G")
    assert result.status == 0, result.stderr
    assert [case["size_bytes"] for case in result.cases] == [8]
    (skipped,) = result.records[-1]["skipped"]
    assert skipped["size_bytes"] == 2**32
    assert "2 GiB" in skipped["reason"]
    text = complaint(bench(any_kernels, tmp_path / "none", op="discovery", sizes="4G"))
    assert "2 GiB" in text


# A process of little memory, as one that begins has had that of what it was forked from.
PEAK = """import resource, subprocess, sys
status = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL).returncode
print(status, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


def refused_table(kernels: Kernels, table: Path) -> tuple[str, int]:
    """Return what is said of a table that is refused, and the most memory that was used, in KiB."""
    reader = [kernels.build / "bench/swpbench", "table", table]
    done = subprocess.run(
        [sys.executable, "-c", PEAK, *reader], capture_output=True, text=True, check=True
    )
    status, used_kib = map(int, done.stdout.splitlines()[-1].split())
    assert status != 0
    return done.stderr, used_kib


def test_a_long_line_of_a_table_ends_its_reading(any_kernels: Kernels, tmp_path: Path) -> None:
    table = tmp_path / "a.table"
    table.write_text("switchpoint-table 1\n" + "x" * 5000)
    os.truncate(table, 1 << 30)
    said, used_kib = refused_table(any_kernels, table)
    assert f"{table}:2: " in said
    assert used_kib < 1 << 19


def test_a_file_that_is_no_table_is_not_read_to_its_end(
    any_kernels: Kernels, tmp_path: Path
) -> None:
    table = tmp_path / "a.table"
    with table.open("w") as file:
        file.write("# a comment\n\n")
        file.writelines(f"{'x' * 1023}\n" * 1024 for _ in range(128))
    said, used_kib = refused_table(any_kernels, table)
    assert f"{table}:3: not a method table" in said
    assert used_kib < 1 << 17


def test_what_is_no_rule_of_a_table_takes_little_memory(
    any_kernels: Kernels, tmp_path: Path
) -> None:
    table = tmp_path / "a.table"
    table.write_text("switchpoint-table 1\n" + f"#{' r' * 500}\n" * 2000 + "x\n")
    said, used_kib = refused_table(any_kernels, table)
    assert f"{table}:2002: " in said
    assert used_kib < 1 << 19


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"pattern": "random:\x1b[31m=1"}, r"\x1b[31m"),
        ({"pattern": "matrix:no\x1b[31m\nfile"}, r"no\x1b[31m\x0afile"),
        ({"methods": "di\x1brect\x7f"}, r"di\x1brect\x7f"),
        ({"methods": "\x80di\x9brect\x9f"}, r"\x80di\x9brect\x9f"),
        ({"methods": "\u200ed\u2028i\u202er\u2069\u061c"}, r"\u200ed\u2028i\u202er\u2069\u061c"),
        ({"methods": "\u00a0d\u2010i\u2027r\u206a"}, "\u00a0d\u2010i\u2027r\u206a"),
    ],
)
def test_control_characters_are_escaped(
    any_kernels: Kernels, tmp_path: Path, options: dict[str, str], words: str
) -> None:
    said = complaint(bench(any_kernels, tmp_path / "o", **options))
    assert words in said
    assert said == printable(said)


def test_control_characters_of_a_table_are_escaped(any_kernels: Kernels, tmp_path: Path) -> None:
    table = tmp_path / "a.table"
    table.write_text("switchpoint-table 1\nrule op=\x1b[31mexchange\x07 method=direct\n")
    done = any_kernels.run("bench/swpbench", ["table", str(table)], 1)
    assert done.returncode != 0
    assert rf"{table}:2: unknown operation '\x1b[31mexchange\x07'" in done.stderr
    assert "\x1b" not in done.stderr


def test_control_characters_of_a_path_are_escaped(any_kernels: Kernels, tmp_path: Path) -> None:
    out = tmp_path / "o\x1b[31m.jsonl"
    assert bench(any_kernels, out).stdout.endswith(f"swpbench: complete {printable(str(out))}\n")


def test_measured_data_are_not_overwritten(any_kernels: Kernels, tmp_path: Path) -> None:
    out = tmp_path / "o.jsonl"
    for content in ('{"record": "header"}\n', ""):
        out.write_text(content)
        assert "it exists already" in complaint(bench(any_kernels, out))
        assert out.read_text() == content


def test_a_file_is_written_by_one_of_the_launches_that_begin_together(
    any_kernels: Kernels, tmp_path: Path
) -> None:
    out = tmp_path / "o.jsonl"
    with ThreadPoolExecutor(4) as four:
        begun = [four.submit(bench, any_kernels, out, procs=1) for _ in range(4)]
    assert sorted(each.result().status != 0 for each in begun) == [False, True, True, True]
    records = [json.loads(line)["record"] for line in out.read_text().splitlines()]
    assert (records.count("header"), records[-1]) == (1, "end")


OWN_BOOT_ID = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
FILE *fopen(const char *path, const char *mode) {
  FILE *(*next)(const char *, const char *);
  next = (FILE * (*)(const char *, const char *)) dlsym(RTLD_NEXT, "fopen");
  return next(strstr(path, "/boot_id") ? "/proc/self/stat" : path, mode);
}
"""


@pytest.mark.parametrize(
    ("program", "words"),
    [
        (
            SWPBENCH,
            ["run", "--op=bcast", "--pattern=blocks", "--sizes=8", "--out=o", "--sync=window"],
        ),
        ("studies/comparisons/swp_compare_fields", ["0.1", "window"]),
    ],
)
def test_ranks_of_several_machines_do_not_start_by_one_clock(
    kernels: Kernels, tmp_path: Path, program: str, words: list[str]
) -> None:
    """Each process takes itself for a machine of its own, as it sees another boot id."""
    source, library = tmp_path / "boots.c", tmp_path / "boots.so"
    source.write_text(OWN_BOOT_ID)
    build_preload(source, library)
    start = launch(kernels.mpi, 2, build=kernels.build, preload=[library])
    done = subprocess.run(
        [*start.argv_prefix, kernels.build / program, *words],
        cwd=tmp_path,
        env=os.environ | start.env,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
    )
    assert done.returncode != 0
    assert "window: these machines have clocks of their own; write hca or barrier" in done.stderr


def test_buffers_that_do_not_fit(any_kernels: Kernels, tmp_path: Path) -> None:
    result = bench(any_kernels, tmp_path / "o", sizes="1048576M", pattern="stencil:edge=512")
    assert "out of memory" in complaint(result)


def test_broken_table(any_kernels: Kernels, tmp_path: Path) -> None:
    table = tmp_path / "table"
    table.write_text("switchpoint-table 2\n")
    env = {"SWITCHPOINT_TABLE": str(table)}
    text = complaint(bench(any_kernels, tmp_path / "o", methods="auto", env=env))
    assert f"{table}:1" in text


@on_ranks([2, 4])
@pytest.mark.parametrize(
    ("operation", "way", "words"),
    [
        ("exchange", "byte", "wrong payload"),
        ("exchange", "stale", "wrong payload"),
        ("discovery", "byte", "wrong payload"),
        ("discovery", "size", "bytes, expected"),
        ("discovery", "source", "wrong delivery"),
        ("discovery", "lost", "wrong delivery"),
    ],
)
def test_wrong_data_are_noticed(
    kernels: Kernels, tmp_path: Path, procs: int, operation: str, way: str, words: str
) -> None:
    """What goes wrong is in the second size, after 16 calls: that of the first is kept."""
    methods = {"exchange": "direct alltoallv", "discovery": "pex dense"}[operation]
    result = bench(
        kernels,
        tmp_path / "o.jsonl",
        procs,
        CORRUPT,
        op=operation,
        methods=methods,
        sizes="16K,32K",
        max_samples=6,
        pattern="random:degree=9",
        env={"SWP_CORRUPT": way, "SWP_CORRUPT_RANK": "1", "SWP_CORRUPT_CALL": "22"},
    )
    text = complaint(result)
    assert words in text
    assert "at 32768 bytes" in text
    assert "rank 0" in text or way == "lost"
    assert {case["size_bytes"] for case in result.cases} == {16384}


def test_the_wrong_byte_is_named(any_kernels: Kernels, tmp_path: Path) -> None:
    env = {"SWP_CORRUPT": "byte", "SWP_CORRUPT_RANK": "1"}
    result = bench(any_kernels, tmp_path / "o", 2, CORRUPT, methods="direct", env=env)
    assert "direct at 8 bytes: wrong payload from rank 0, item 0 (8 bytes): byte 0" in complaint(
        result
    )


@pytest.mark.parametrize("operation", ["exchange", "discovery"])
def test_an_execution_that_fails_ends_the_job(
    kernels: Kernels, tmp_path: Path, operation: str
) -> None:
    env = {"SWP_CORRUPT": "error", "SWP_CORRUPT_RANK": "1", "SWP_CORRUPT_CALL": "5"}
    result = bench(kernels, tmp_path / "o", 4, CORRUPT, op=operation, env=env)
    assert "fails at 8 bytes" in complaint(result)


def test_the_corrupting_program_measures_correctly_by_default(
    any_kernels: Kernels, tmp_path: Path
) -> None:
    assert bench(any_kernels, tmp_path / "o", 2, CORRUPT).status == 0


@pytest.mark.parametrize(("built", "launched"), [("mpich", "openmpi"), ("openmpi", "mpich")])
def test_the_launcher_of_another_mpi_is_named(built, launched, kernels_of, tmp_path) -> None:
    mixed = Kernels(kernels_of(launched).mpi, kernels_of(built).build)
    result = bench(mixed, tmp_path / "raw.jsonl")
    assert result.status != 0
    # Of one rank at least: its end may end the other. MPICH 5 refuses when it starts, and says why.
    assert result.complaints or "unsupported PMI version" in result.stderr
    for line in result.complaints:
        assert "the launcher started 2 processes" in line
        assert "the launcher of the MPI that it was built with" in line
    assert not (tmp_path / "raw.jsonl").exists()


@pytest.mark.parametrize(
    ("outer", "started"),
    [
        ({}, "SLURM_STEP_NUM_TASKS"),
        ({}, "FLUX_JOB_SIZE"),
        ({"SLURM_STEP_NUM_TASKS": "1"}, "PMI_SIZE"),
        ({"FLUX_JOB_SIZE": "1"}, "PMI_SIZE"),
        ({"FLUX_JOB_SIZE": "1"}, "OMPI_COMM_WORLD_SIZE"),
    ],
)
def test_a_launcher_is_named_also_in_a_job_of_one_process(
    any_kernels: Kernels, tmp_path: Path, outer: dict[str, str], started: str
) -> None:
    done = alone(any_kernels, tmp_path / "raw", outer | {started: "2"})
    assert done.returncode != 0
    assert f"the launcher started 2 processes ({started})" in done.stderr
    assert not (tmp_path / "raw").exists()


@pytest.mark.parametrize("scheduler", ["SLURM_STEP_NUM_TASKS", "FLUX_JOB_SIZE"])
@pytest.mark.parametrize("launcher", ["PMI_SIZE", "OMPI_COMM_WORLD_SIZE"])
def test_one_process_may_be_launched_in_a_job_of_several(
    any_kernels: Kernels, tmp_path: Path, scheduler: str, launcher: str
) -> None:
    done = alone(any_kernels, tmp_path / "raw", {scheduler: "2", launcher: "1"})
    assert done.returncode == 0, done.stderr


def alone(kernels: Kernels, out: Path, env: dict[str, str]) -> CompletedProcess[str]:
    """Run swpbench without a launcher, but with what one leaves in the environment."""
    command = f"run --op=bcast --pattern=blocks:root=0 --sizes=8 --out={out}".split()
    return finish([str(kernels.build / SWPBENCH), *command], os.environ | env, TIMEOUT_S)


ON_A_SMALL_DISK = 'mount -t tmpfs -o size=$1 none "$2" && disk=$2 && shift 2 && "$@"; code=$?; '
ON_A_SMALL_DISK += 'cp "$disk"/o "$disk"-kept; exit $code'


@pytest.mark.parametrize(("size",), by_day([("8k",)], [("4k",), ("12k",)]))
def test_a_full_disk_is_one_line_and_keeps_whole_cases(
    any_kernels: Kernels, tmp_path: Path, require: Require, size: str
) -> None:
    alone = ["unshare", "--mount", "--map-root-user"]
    works = shutil.which("unshare") and subprocess.call([*alone, "true"], stderr=DEVNULL) == 0
    require("namespaces", bool(works), "unshare --mount does not work here")
    disk = tmp_path / "disk"
    disk.mkdir()
    start = launch(any_kernels.mpi, 2, build=any_kernels.build)
    words = [
        "run",
        "--op=allreduce",
        "--pattern=blocks",
        "--sizes=8:4K:x2",
        "--max-samples=20",  # a case with all that fit in a time may be larger than the disk
        "--out",
        str(disk / "o"),
    ]
    command = [*start.argv_prefix, str(any_kernels.build / SWPBENCH), *words]
    there = [*alone, "sh", "-c", ON_A_SMALL_DISK, "sh", size, str(disk)]
    done = finish([*there, *command], os.environ | start.env, TIMEOUT_S)
    assert done.returncode != 0
    said = [line for line in done.stderr.splitlines() if line.startswith("swpbench: ")]
    assert said == [f"swpbench: cannot write {disk}/o: No space left on device"]
    *lines, _ = (tmp_path / "disk-kept").read_text().split("\n")  # the last is torn
    records = [json.loads(line)["record"] for line in lines]
    assert records == ["header", *["case"] * (len(records) - 1)] and len(records) > 1
