"""The node's memory is taken where the machine, and a container or job on it, has enough left."""

import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.conftest import Require
from tests.kernels.benchrun import bench
from tests.kernels.conftest import Kernels

MIB = 1 << 20
MACHINE = {"proc/meminfo": "MemTotal: 8388608 kB\nMemAvailable:    2097152 kB\n"}
MACHINE_LEFT = 2048 * MIB
V1, V2 = "sys/fs/cgroup/memory", "sys/fs/cgroup"
V1_UNLIMITED = 9223372036854771712


def group(path: str, limit: int | str, used: int, cache: int = 0) -> dict[str, str]:
    """Return the files of a group of version 2, half of whose cache is active."""
    return {
        f"{path}/memory.max": f"{limit}\n",
        f"{path}/memory.current": f"{used}\n",
        f"{path}/memory.stat": f"anon 5\ninactive_file {cache // 2}\nactive_file {cache // 2}\n",
    }


def group_1(path: str, limit: int, used: int, cache: int = 0) -> dict[str, str]:
    """Return the files of a group of version 1, none of whose cache is its own."""
    statistics = f"inactive_file 0\nactive_file 0\ntotal_inactive_file {cache}\n"
    return {
        f"{path}/memory.limit_in_bytes": f"{limit}\n",
        f"{path}/memory.usage_in_bytes": f"{used}\n",
        f"{path}/memory.stat": f"{statistics}total_active_file 0\n",
    }


def in_groups(*lines: str) -> dict[str, str]:
    """Return the file of the groups that the process is in."""
    return {"proc/self/cgroup": "".join(f"{line}\n" for line in lines)}


CASES: dict[str, tuple[int, dict[str, str]]] = {
    "machine": (MACHINE_LEFT, {}),
    "namespace": (70 * MIB, in_groups("0::/") | group(V2, 100 * MIB, 30 * MIB)),
    "own": (70 * MIB, in_groups("0::/job/a") | group(f"{V2}/job/a", 100 * MIB, 30 * MIB)),
    "ancestor": (
        10 * MIB,
        in_groups("0::/job/a")
        | group(f"{V2}/job/a", "max", 30 * MIB)
        | group(f"{V2}/job", 100 * MIB, 90 * MIB),
    ),
    "cache": (70 * MIB, in_groups("0::/") | group(V2, 100 * MIB, 90 * MIB, 60 * MIB)),
    "nothing": (0, in_groups("0::/") | group(V2, 100 * MIB, 101 * MIB)),
    "slow": (
        40 * MIB,
        in_groups("0::/") | group(V2, 100 * MIB, 30 * MIB) | {f"{V2}/memory.high": f"{70 * MIB}\n"},
    ),
    "unlimited": (MACHINE_LEFT, in_groups("0::/") | group(V2, "max", 30 * MIB)),
    "more than the machine": (MACHINE_LEFT, in_groups("0::/") | group(V2, 9000 * MIB, MIB)),
    "container of version 1": (
        30 * MIB,
        in_groups("9:cpu,memory:/docker/a", "8:cpuset:/docker/a", "0::/docker/a")
        | group_1(V1, 100 * MIB, 90 * MIB, 20 * MIB),
    ),
    "ancestor of version 1": (
        50 * MIB,
        in_groups("4:memory:/a/b")
        | group_1(f"{V1}/a/b", 100 * MIB, 40 * MIB)
        | group_1(f"{V1}/a", 200 * MIB, 150 * MIB)
        | group_1(V1, V1_UNLIMITED, 2000 * MIB),
    ),
    "unlimited in version 1": (
        MACHINE_LEFT,
        in_groups("4:memory:/") | group_1(V1, V1_UNLIMITED, 2000 * MIB),
    ),
    "another controller": (MACHINE_LEFT, in_groups("8:cpuset:/a") | group_1(f"{V1}/a", MIB, 0)),
    "odd lines": (MACHINE_LEFT, in_groups("", "0:", "0::/../a", "0::" + "/a" * 4000)),
}


@pytest.mark.parametrize("case", CASES)
def test_the_least_that_is_left_counts(any_kernels: Kernels, tmp_path: Path, case: str) -> None:
    left, files = CASES[case]
    for name, text in (MACHINE | files).items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    done = any_kernels.run_alone("tests/swp_memory_left", str(tmp_path), "2")
    assert done.stdout == f"{left}\n"


def test_what_is_not_there_does_not_limit(any_kernels: Kernels, tmp_path: Path) -> None:
    done = any_kernels.run_alone("tests/swp_memory_left", str(tmp_path), "2")
    assert int(done.stdout) > 1 << 60


@pytest.mark.parametrize("descriptors", ["0", "1"])
def test_what_cannot_be_opened_may_limit(
    any_kernels: Kernels, tmp_path: Path, descriptors: str
) -> None:
    """Of a group two files are open at a time."""
    for name, text in (MACHINE | CASES["namespace"][1]).items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    done = any_kernels.run_alone("tests/swp_memory_left", str(tmp_path), descriptors)
    assert done.stdout == "-1\n"


def enter(group: Path, limit: str, size: int) -> tuple[str, ...]:
    """Return a command that starts another one in a control group, which may have so many bytes."""
    (group / limit).write_text(str(size))
    return ("sh", "-c", 'echo $$ > "$0"/cgroup.procs && exec "$@"', str(group))


@pytest.fixture
def limited(require: Require) -> Iterator[Callable[[int], tuple[str, ...]]]:
    """Return the function that limits the bytes of a control group, and returns how to enter it."""
    for root, limit in ((V1, "memory.limit_in_bytes"), (V2, "memory.max")):
        place = Path("/", root, f"switchpoint-{os.getpid()}")
        try:
            place.mkdir()
        except OSError:
            continue
        try:
            if (place / limit).exists():
                yield partial(enter, place, limit)
                return
        finally:
            place.rmdir()
    require("cgroups", False, "no control group with a limit of memory can be made here")


def test_ranks_of_a_small_container_live(
    any_kernels: Kernels, limited: Callable[[int], tuple[str, ...]], tmp_path: Path
) -> None:
    """Without a look at the limit, the kernel would end a rank that takes its part."""
    result = bench(
        any_kernels,
        tmp_path / "o.jsonl",
        2,
        methods="direct lent",
        sizes="31M",
        pattern="random:degree=1",
        under=limited(256 * MIB),
    )
    assert result.status == 0, result.stderr
    assert [case["method"] for case in result.cases] == ["direct"]
    (skipped,) = result.records[-1]["skipped"]
    assert "memory of the node cannot be had" in skipped["reason"]
    assert "more than half" in skipped["reason"]


@pytest.mark.check
def test_pairs_that_plan_at_once_live(
    any_kernels: Kernels, limited: Callable[[int], tuple[str, ...]]
) -> None:
    """Each pair finds enough for itself; all four would take more than there is."""
    done = any_kernels.run("tests/swp_pairs", [str(28 * MIB)], 8, under=limited(480 * MIB))
    assert done.returncode == 0, done.stderr
    refused = done.stdout.count("memory of the node cannot be had")
    assert refused > 0
    assert f"{4 - refused} pairs" in done.stdout
