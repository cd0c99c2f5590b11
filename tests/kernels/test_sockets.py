"""Sockets by hwloc: a machine that it is told to see, with ranks bound to its cores."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.conftest import Require
from tests.kernels.benchrun import bench
from tests.kernels.conftest import Kernels
from tests.kernels.test_library import run


@pytest.fixture(scope="module")
def two_cores(require: Require) -> tuple[int, int]:
    """Two cores of this machine."""
    cores = sorted(os.sched_getaffinity(0))
    require("hwloc", len(cores) > 1, "two sockets need two cores")
    return cores[0], cores[1]


@pytest.fixture(scope="module")
def knows_sockets(require: Require) -> None:
    """Where it does not skip, the build has to have found hwloc."""
    found = subprocess.run(["pkg-config", "--exists", "hwloc >= 2.0"], check=False)
    require("hwloc", found.returncode == 0, "pkg-config finds no hwloc")


def sockets(*cores: int) -> dict[str, str]:
    """The environment in which hwloc sees two sockets, each with one of the cores and another."""
    first, second = cores
    others = [core for core in range(4) if core not in cores][:2]
    numbers = f"{first},{others[0]},{second},{others[1]}"
    shape = f"package:2 core:2 pu:1(indexes={numbers})"
    return {"HWLOC_SYNTHETIC": shape, "HWLOC_THISSYSTEM": "1"}


@pytest.mark.usefixtures("knows_sockets")
@pytest.mark.parametrize("procs", [1, 2, 4, 5])
def test_messages_on_a_socket_are_told_apart(
    kernels: Kernels, two_cores: tuple[int, int], procs: int
) -> None:
    cores = [str(core) for core in two_cores]
    run(kernels, "swp_sockets", procs, *cores, env=sockets(*two_cores))


@pytest.mark.usefixtures("knows_sockets")
def test_ranks_that_are_bound_to_no_socket_make_it_unknown(
    kernels: Kernels, two_cores: tuple[int, int]
) -> None:
    run(kernels, "swp_sockets", 2, "free", env=sockets(*two_cores))


@pytest.mark.usefixtures("knows_sockets")
def test_a_launch_records_sockets_and_binding(
    kernels: Kernels, two_cores: tuple[int, int], tmp_path: Path
) -> None:
    first, second = two_cores
    bound = tmp_path / "bound"
    bound.write_text(
        "#!/bin/sh\n"
        f"[ $((${{PMI_RANK:-$OMPI_COMM_WORLD_RANK}} % 2)) = 0 ] && core={first} || core={second}\n"
        f'exec taskset -c $core {kernels.build / "bench" / "swpbench"} "$@"\n'
    )
    bound.chmod(0o755)
    result = bench(
        kernels,
        tmp_path / "o.jsonl",
        4,
        program=str(bound),
        methods="direct",
        env=sockets(*two_cores),
    )
    assert result.status == 0, result.stderr
    assert (result.header["sockets"], result.header["bound"]) == (2, True)
    statistics = result.cases[0]["statistics"]
    assert (statistics["on_node_messages"], statistics["on_socket_messages"]) == (12, 4)
    assert (statistics["on_node_bytes"], statistics["on_socket_bytes"]) == (12 * 8, 4 * 8)


@pytest.mark.usefixtures("knows_sockets")
def test_a_launch_of_free_ranks_records_so(
    any_kernels: Kernels, two_cores: tuple[int, int], tmp_path: Path
) -> None:
    result = bench(any_kernels, tmp_path / "o.jsonl", env=sockets(*two_cores))
    assert (result.header["sockets"], result.header["bound"]) == (2, False)
    for case in result.cases:
        assert not {"on_socket_messages", "on_socket_bytes"} & set(case["statistics"])
