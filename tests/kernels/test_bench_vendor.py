"""swpbench on the MPI library's own algorithms: it races those that it has seen at work."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.kernels.benchrun import Result, bench
from tests.kernels.conftest import Kernels
from tests.vendor.tables import ALGORITHMS, ATTEMPTS

PREFIX = "vendor:algorithm="


def measure(kernels: Kernels, out: Path, operation: str, **options: Any) -> Result:
    return bench(
        kernels,
        out,
        4,
        op=operation,
        pattern="blocks",
        **{"methods": "vendor", "sizes": "16K", "max_samples": 2} | options,
    )


def raced(result: Result) -> set[str]:
    return {case["method"].removeprefix(PREFIX) for case in result.cases}


def skipped(result: Result) -> dict[str, str]:
    """Return the reasons, by algorithm."""
    skips = result.records[-1]["skipped"]
    return {skip["method"].removeprefix(PREFIX): skip["reason"] for skip in skips}


def race(
    kernels: Kernels, directory: Path, operation: str, wanted: set[str], **options: Any
) -> Result:
    """Measure until those that are wanted are raced; stacks are samples, and may miss one."""
    for attempt in range(ATTEMPTS):
        result = measure(kernels, directory / str(attempt), operation, **options)
        if result.status == 0 and raced(result) >= wanted:
            break
    assert result.status == 0, result.stderr
    assert raced(result) >= wanted, skipped(result)
    return result


@pytest.mark.parametrize("operation", ["bcast", "allreduce", "allgather", "alltoall"])
def test_algorithms_that_differ_are_raced(kernels: Kernels, tmp_path: Path, operation: str) -> None:
    wanted = {"vendor", *ALGORITHMS[kernels.mpi.family][operation]}
    result = race(kernels, tmp_path, operation, wanted)
    assert len({tuple(case["round"]) for case in result.cases}) == 1


def test_an_algorithm_the_library_would_replace_is_left_out(
    kernels_of: Callable[[str], Kernels], tmp_path: Path
) -> None:
    result = measure(kernels_of("mpich"), tmp_path / "o", "alltoall")
    assert "pairwise_sendrecv_replace" not in raced(result)
    assert "refused by the MPI library" in skipped(result)["pairwise_sendrecv_replace"]


NOTHING = {"OMPI_MCA_coll_basic_priority": "100"}  # before the component of the algorithms


@pytest.mark.parametrize("name", ["openmpi", pytest.param("openmpi5", marks=pytest.mark.check)])
def test_algorithms_that_send_other_messages_are_raced(
    kernels_of: Callable[[str], Kernels], tmp_path: Path, name: str
) -> None:
    """Messages are counted exactly, so one launch suffices."""
    kernels = kernels_of(name)
    wanted = {"pipeline", "split_binary_tree", "binomial", "scatter_allgather"}
    result = measure(kernels, tmp_path / "o", "bcast")
    assert raced(result) >= wanted, skipped(result)
    nothing = measure(kernels, tmp_path / "nothing", "bcast", env=NOTHING)
    assert nothing.status == 0, nothing.stderr
    assert raced(nothing) == {"vendor"}
    assert "not observed to change" in skipped(nothing)["binomial"]


def test_one_algorithm_alone_is_compared_with_those_not_named(
    kernels: Kernels, tmp_path: Path
) -> None:
    name = ALGORITHMS[kernels.mpi.family]["bcast"][1]
    result = race(kernels, tmp_path, "bcast", {name}, methods=f"{PREFIX}{name}")
    assert len(result.cases) == 1


def test_a_name_with_a_colon_is_the_method_without_its_family(
    any_kernels: Kernels, tmp_path: Path
) -> None:
    wanted = {"vendor", "chain"}
    result = race(any_kernels, tmp_path, "bcast", wanted, methods="vendor: chain:")
    assert raced(result) == wanted


def test_an_algorithm_of_the_environment_is_a_launch_s_only_method(
    kernels: Kernels, tmp_path: Path
) -> None:
    spec = f"vendor:environment={ALGORITHMS[kernels.mpi.family]['bcast'][0]}"
    alone = measure(kernels, tmp_path / "alone", "bcast", methods=spec)
    assert alone.status == 0, alone.stderr
    assert raced(alone) == {spec}
    assert f"swpbench: no launch proves that the library obeys {spec}\n" in alone.stdout
    among = measure(kernels, tmp_path / "among", "bcast", methods=f"{spec} binomial")
    assert among.status != 0
    assert f"swpbench: --methods: {spec} applies to the whole launch" in among.stderr
    words = ["--op", "bcast", "--pattern", "blocks", "--sizes", "8", "--out", str(tmp_path / "o")]
    words = ["run", *words, "--methods", spec, "--then", *words, "--methods", "vendor"]
    before = kernels.run("bench/swpbench", words, 2)
    assert before.returncode != 0
    assert f"swpbench: --methods: {spec} applies to all launches of a start" in before.stderr


def test_a_component_of_open_mpi_is_an_algorithm_of_the_environment(
    kernels_of: Callable[[str], Kernels], tmp_path: Path
) -> None:
    spec = "vendor:environment=adapt"
    env = {"OMPI_MCA_coll_base_verbose": "10"}
    result = measure(kernels_of("openmpi"), tmp_path / "o", "bcast", methods=spec, env=env)
    assert result.status == 0, result.stderr
    assert raced(result) == {spec}
    assert "available: adapt, priority: 99" in result.stderr
