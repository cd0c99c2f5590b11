"""What is counted from a matrix's pattern is what the library counts when it runs."""

from pathlib import Path

import pytest
from scipy import io, sparse

from tests.kernels.benchrun import bench
from tests.kernels.conftest import Kernels
from tuner.structure.report import Request, report

GOOD = Path(__file__).parents[1] / "data" / "matrix" / "good"


@pytest.fixture(scope="module")
def matrices(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A mesh, scattered entries with empty rows and dense ones, no entries, few."""
    from pyamg.gallery import load_example

    directory = tmp_path_factory.mktemp("matrices")
    scattered = sparse.random(83, 83, density=0.06, random_state=3, format="lil")
    scattered[11, :] = 1
    scattered[:, 40] = 1
    scattered[20:30, :] = 0
    made = {
        "mesh": load_example("bar")["A"],
        "scattered": scattered,
    }
    for name, matrix in made.items():
        io.mmwrite(directory / f"{name}.mtx", matrix)
    return {name: directory / f"{name}.mtx" for name in made} | {
        "empty": GOOD / "no-entries.mtx",
        "few": GOOD / "symmetric-pattern.mtx",
    }


def counted(path: Path, procs: int, by: str, methods: list[str]) -> dict[str, dict[str, float]]:
    """Statistics by method, from the pattern."""
    request = Request(path, [procs], by, methods, ppn=procs, item_bytes=8)
    return {row.method.spec: row.document()["statistics"] for row in report(request)}


@pytest.mark.parametrize("procs", [1, 2, 3, 7, 12, 16])
@pytest.mark.parametrize("name", ["mesh", "scattered", "empty", "few"])
def test_contiguous_parts(
    any_kernels: Kernels, tmp_path: Path, matrices: dict[str, Path], name: str, procs: int
) -> None:
    pattern = f"matrix:{matrices[name]}"
    grids = {1: [], 7: ["stfw:grid=2x4", "stfw:grid=3x3"], 12: ["stfw:grid=2x2x3"]}.get(procs, [])
    result = bench(
        any_kernels,
        tmp_path / "o",
        procs,
        pattern=pattern,
        methods=" ".join(["direct", "stfw", *grids]),
        max_samples=1,
    )
    assert result.status == 0, result.stderr
    reported = {case["method"]: case["statistics"] for case in result.cases}
    for method, statistics in counted(matrices[name], procs, "contiguous", list(reported)).items():
        known = {key: value for key, value in reported[method].items() if key in statistics}
        assert known == pytest.approx({key: statistics[key] for key in known}), method
        assert len(known) >= 8
