"""swpbench multiplies: whole products, and their communication and computation apart, verified."""

from pathlib import Path

import pytest

from tests.kernels.benchrun import (
    CORRUPT,
    MATRICES,
    SEVEN,
    bench,
    complaint,
    documented_keys,
    has_type,
)
from tests.kernels.conftest import Kernels
from tests.kernels.halo import matrix_halo, read_entries
from tests.kernels.test_bench import LISTS

PHASES = ("communication_s", "local_s")


@pytest.mark.parametrize("procs", [1, 2, 4, 8])
@pytest.mark.parametrize("part", ["contiguous", "strided"])
def test_every_exchange_method(kernels: Kernels, tmp_path: Path, procs: int, part: str) -> None:
    result = bench(
        kernels,
        tmp_path / "o.jsonl",
        procs,
        op="spmv",
        pattern=f"matrix:{SEVEN},part={part}",
        sizes="8,24",
    )
    assert result.status == 0, result.stderr
    assert result.header["operation"] == "spmv"
    exchange = bench(kernels, tmp_path / "e.jsonl", procs, max_samples=1)
    assert {case["method"] for case in result.cases} == {case["method"] for case in exchange.cases}
    owners = [row % procs for row in range(7)] if part == "strided" else None
    for case in result.cases:
        halo = matrix_halo(SEVEN, procs, owners)
        assert case["features"] == pytest.approx(halo.features(case["size_bytes"]))
        assert case["bytes"] == halo.mean_bytes(case["size_bytes"])
        assert {len(case[key]) for key in (*LISTS, *PHASES)} == {4}
        assert min(case["communication_s"] + case["local_s"]) >= 0
        assert case["verified"] >= 2
        for key in PHASES:
            assert has_type(case[key], documented_keys("case")[key])


@pytest.mark.parametrize(
    "path",
    sorted(path for path in MATRICES.glob("good/*.mtx") if "complex" not in path.stem),
    ids=lambda path: path.stem,
)
def test_every_kind_of_real_matrix(any_kernels: Kernels, tmp_path: Path, path: Path) -> None:
    rows, _ = read_entries(path)
    part = tmp_path / "p"
    part.write_text("".join(f"{(row * row + 1) % 3}\n" for row in range(rows)))
    pattern = f"matrix:{path},part={part}"
    result = bench(any_kernels, tmp_path / "o", 3, op="spmv", pattern=pattern, methods="direct")
    assert result.status == 0, result.stderr


def test_phases_are_of_products_only(any_kernels: Kernels, tmp_path: Path) -> None:
    result = bench(any_kernels, tmp_path / "o", pattern=f"matrix:{SEVEN}", methods="direct")
    assert not set(PHASES) & set(result.cases[0])


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"pattern": "random:degree=2"}, "matrix:FILE"),
        ({"sizes": "8,12"}, "--sizes: 12"),
        ({"sizes": "4"}, "8 bytes for each vector"),
        ({"pattern": f"matrix:{MATRICES / 'good' / 'hermitian-complex.mtx'}"}, "complex"),
        ({"methods": "nbx"}, "nbx"),
    ],
)
def test_what_cannot_be_multiplied_is_refused(
    any_kernels: Kernels, tmp_path: Path, options: dict[str, str], words: str
) -> None:
    options = {"op": "spmv", "pattern": f"matrix:{SEVEN}", **options}
    assert words in complaint(bench(any_kernels, tmp_path / "o", **options))


@pytest.mark.parametrize("procs", [2, 4])
@pytest.mark.parametrize(
    ("way", "words"),
    [("byte", "wrong payload"), ("stale", "wrong payload"), ("row", "wrong product")],
)
def test_wrong_products_are_noticed(
    kernels: Kernels, tmp_path: Path, procs: int, way: str, words: str
) -> None:
    result = bench(
        kernels,
        tmp_path / "o",
        procs,
        CORRUPT,
        op="spmv",
        pattern=f"matrix:{SEVEN}",
        methods="direct alltoallv",
        max_samples=6,
        env={"SWP_CORRUPT": way, "SWP_CORRUPT_RANK": "1", "SWP_CORRUPT_CALL": "9"},
    )
    assert words in complaint(result)
    assert not result.cases


def test_the_corrupting_program_multiplies_correctly_by_default(
    any_kernels: Kernels, tmp_path: Path
) -> None:
    pattern = f"matrix:{SEVEN}"
    assert bench(any_kernels, tmp_path / "o", 2, CORRUPT, op="spmv", pattern=pattern).status == 0
