"""swpbench on the collectives of MPI: what it measures, refuses, and notices."""

from pathlib import Path

import pytest

from tests.kernels.benchrun import bench, documented_keys
from tests.kernels.conftest import Kernels
from tuner.domain.operations import COLLECTIVES, NO_DATA
from tuner.rawfile.reading import read
from tuner.units import parse_sizes

CORRUPT = "bench/swpbench_corrupt"
ROOTED = ("bcast", "gather", "scatter", "reduce")


@pytest.mark.parametrize("procs", [1, 3])
@pytest.mark.parametrize("operation", COLLECTIVES)
def test_every_collective_is_measured_and_verified(
    kernels: Kernels, tmp_path: Path, operation: str, procs: int
) -> None:
    out = tmp_path / "o.jsonl"
    sizes = "1" if operation in NO_DATA else "8,4K"
    result = bench(kernels, out, procs, op=operation, pattern="blocks", sizes=sizes, max_samples=3)
    assert result.status == 0, result.stderr
    assert (result.header["operation"], result.header["pattern"]) == (operation, "blocks:root=0")
    assert {case["size_bytes"] for case in result.cases} == {*parse_sizes(sizes)}
    methods = {case["method"] for case in result.cases}
    assert "vendor" in methods
    for case in result.cases:
        assert case["bytes"] == case["size_bytes"]
        assert case["features"]["mmax"] == 0
        assert case["verified"] >= 2
        assert set(case) <= set(documented_keys("case")) | {"record"}
        assert case["inner"] == 1 or operation not in ROOTED
    file = read(out)
    assert file.complete
    assert file.problems == []


@pytest.mark.parametrize("operation", ROOTED)
def test_other_roots(any_kernels: Kernels, tmp_path: Path, operation: str) -> None:
    out = tmp_path / "o"
    result = bench(any_kernels, out, 5, op=operation, pattern="blocks:root=3", sizes="24")
    assert result.status == 0, result.stderr


@pytest.mark.parametrize(
    ("operation", "way"),
    [
        *((operation, "byte") for operation in COLLECTIVES if operation not in NO_DATA),
        ("bcast", "stale"),
        ("reduce", "stale"),
    ],
)
def test_wrong_data_are_noticed(
    any_kernels: Kernels, tmp_path: Path, operation: str, way: str
) -> None:
    """On the last rank, or on the root where only that gets something."""
    rank = 0 if operation in ("gather", "reduce") else 2
    result = bench(
        any_kernels,
        tmp_path / "o",
        3,
        CORRUPT,
        op=operation,
        pattern="blocks",
        sizes="64",
        env={"SWP_CORRUPT": way, "SWP_CORRUPT_RANK": str(rank), "SWP_CORRUPT_CALL": "3"},
    )
    assert result.status != 0
    assert "wrong payload" in result.complaints[0]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"op": "allreduce", "sizes": "12", "pattern": "blocks"}, "multiples of 8"),
        ({"op": "allgather", "sizes": "8", "pattern": "blocks:root=1"}, "no root"),
        ({"op": "bcast", "sizes": "4G", "pattern": "blocks"}, "2 GiB"),
        ({"op": "barrier", "sizes": "8", "pattern": "blocks"}, "a barrier moves no data; write 1"),
        ({"op": "bcast", "sizes": "8", "pattern": "random:degree=3"}, "blocks"),
        ({"op": "exchange", "sizes": "8", "pattern": "blocks"}, "blocks"),
        ({"op": "bcast", "sizes": "8", "pattern": "blocks:root=2"}, "2 ranks"),
        ({"op": "alltoall", "sizes": "8", "pattern": "blocks", "methods": "direct"}, "alltoall"),
    ],
)
def test_what_cannot_be_is_refused(
    any_kernels: Kernels, tmp_path: Path, options: dict[str, str], words: str
) -> None:
    result = bench(any_kernels, tmp_path / "o", 2, **options)
    assert result.status != 0
    (line,) = result.complaints
    assert words in line


def test_auto_takes_the_rule_of_the_size(any_kernels: Kernels, tmp_path: Path) -> None:
    table = tmp_path / "table"
    table.write_text("switchpoint-table 1\nrule op=bcast bytes=0:64 method=binomial\n")
    env = {"SWITCHPOINT_TABLE": str(table)}
    out = tmp_path / "o"
    options = {"op": "bcast", "pattern": "blocks", "sizes": "64,65", "methods": "auto"}
    result = bench(any_kernels, out, 3, env=env, **options)
    assert result.status == 0, result.stderr
    assert [case["selected"] for case in result.cases] == ["binomial", "vendor"]
