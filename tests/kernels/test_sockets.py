"""Sockets by hwloc: a machine that is described to it, with ranks bound to its cores."""

import json
import os
from pathlib import Path

import pytest

from tests.conftest import Require, packaged
from tests.kernels.benchrun import bench
from tests.kernels.conftest import Kernels
from tests.kernels.test_library import run


@pytest.fixture(scope="module")
def two_cores(require: Require) -> tuple[int, int]:
    """Return two cores of this machine."""
    cores = sorted(os.sched_getaffinity(0))
    require("hwloc", len(cores) > 1, "two sockets need two cores")
    return cores[0], cores[1]


@pytest.fixture(scope="module")
def knows_sockets(require: Require) -> None:
    """Skip without hwloc; otherwise the build has to have found it."""
    require("hwloc", packaged("hwloc >= 2.0"), "pkg-config finds no hwloc")


def sockets(*cores: int) -> dict[str, str]:
    """Return an environment with two sockets for hwloc: one of the cores and another in each."""
    first, second = cores
    others = [core for core in range(4) if core not in cores][:2]
    numbers = f"{first},{others[0]},{second},{others[1]}"
    shape = f"package:2 core:2 pu:1(indexes={numbers})"
    return {"HWLOC_SYNTHETIC": shape, "HWLOC_THISSYSTEM": "1"}


@pytest.mark.usefixtures("knows_sockets")
@pytest.mark.parametrize("procs", [1, 2, 4, 5])
def test_messages_on_a_socket_are_distinguished(
    kernels: Kernels, two_cores: tuple[int, int], procs: int
) -> None:
    cores = [str(core) for core in two_cores]
    run(kernels, "swp_sockets", procs, *cores, env=sockets(*two_cores))


@pytest.mark.usefixtures("knows_sockets")
def test_ranks_that_are_bound_to_no_socket_make_it_unknown(
    kernels: Kernels, two_cores: tuple[int, int]
) -> None:
    run(kernels, "swp_sockets", 2, "free", env=sockets(*two_cores))


def bound_to(cores: tuple[int, int], kernels: Kernels, directory: Path) -> Path:
    """Write a swpbench whose even ranks run on the first core, and odd ones on the second."""
    first, second = cores
    bound = directory / "bound"
    bound.write_text(
        "#!/bin/sh\n"
        f"[ $((${{PMI_RANK:-$OMPI_COMM_WORLD_RANK}} % 2)) = 0 ] && core={first} || core={second}\n"
        f'exec taskset -c $core {kernels.build / "bench" / "swpbench"} "$@"\n'
    )
    bound.chmod(0o755)
    return bound


@pytest.mark.usefixtures("knows_sockets")
@pytest.mark.parametrize(("procs", "scopes"), [(2, {"on_node"}), (4, {"on_node", "on_socket"})])
def test_pairs_on_a_socket_are_probed_apart(
    kernels: Kernels, two_cores: tuple[int, int], tmp_path: Path, procs: int, scopes: set[str]
) -> None:
    out = tmp_path / "o.jsonl"
    program = str(bound_to(two_cores, kernels, tmp_path))
    options = ["--sizes", "8", "--max-samples", "2", "--out", str(out)]
    done = kernels.run(program, ["probe", *options], procs, sockets(*two_cores))
    assert done.returncode == 0, done.stderr
    records = [json.loads(line) for line in out.read_text().splitlines()]
    single = {each["scope"] for each in records if each.get("quantity") == "prtt"}
    assert single == scopes
    loads = [each for each in records if each.get("quantity") == "mutual"]
    assert {(each["scope"], each["pairs"]) for each in loads} == {("on_node", procs // 2)}


@pytest.mark.usefixtures("knows_sockets")
def test_a_launch_records_sockets_and_binding(
    kernels: Kernels, two_cores: tuple[int, int], tmp_path: Path
) -> None:
    result = bench(
        kernels,
        tmp_path / "o.jsonl",
        4,
        program=str(bound_to(two_cores, kernels, tmp_path)),
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
