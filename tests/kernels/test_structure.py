"""What is counted from a matrix's pattern is what the library counts when it runs."""

from itertools import product
from pathlib import Path

import numpy as np
import pytest
from scipy import io, sparse

from tests.conftest import by_day
from tests.kernels.benchrun import bench
from tests.kernels.conftest import Kernels
from tuner.inputs.matrices.market import read_pattern
from tuner.inputs.structure.report import ReportRequest, report

GOOD = Path(__file__).parents[1] / "data" / "matrix" / "good"

DISTRIBUTED = [*product(["mesh", "scattered"], ["contiguous", "strided", "file"])]
LAYOUTS = [(1, 1), (2, 1), (7, 2), (12, 4), (16, 5)]  # processes, and those of a node


@pytest.fixture(scope="module")
def matrices(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Write a mesh, scattered entries with empty rows and dense ones, no entries, few."""
    from pyamg.gallery import load_example

    directory = tmp_path_factory.mktemp("matrices")
    scattered = sparse.random(83, 83, density=0.06, random_state=3, format="lil")
    scattered[11, :] = 1
    scattered[:, 40] = 1
    scattered[20:30, :] = 0
    made = {"mesh": load_example("bar")["A"], "scattered": scattered}
    for name, matrix in made.items():
        io.mmwrite(directory / f"{name}.mtx", matrix)
    return {name: directory / f"{name}.mtx" for name in made} | {
        "empty": GOOD / "no-entries.mtx",
        "few": GOOD / "symmetric-pattern.mtx",
    }


def counted(
    path: Path, procs: int, by: str, methods: list[str], ppn: int
) -> dict[str, dict[str, float]]:
    """Return statistics by method, from the pattern."""
    request = ReportRequest(path, [procs], by, methods, ppn, item_bytes=8)
    return {row.method.spec: row.document()["statistics"] for row in report(request)}


def assert_reported(kernels: Kernels, out: Path, path: Path, procs: int, by: str, ppn: int) -> None:
    """Run every method that is counted, and compare."""
    grids = {7: ["stfw:grid=2x4", "stfw:grid=3x3"], 12: ["stfw:grid=2x2x3"]}.get(procs, [])
    result = bench(
        kernels,
        out,
        procs,
        pattern=f"matrix:{path},part={by}",
        methods=" ".join(["direct", "stfw", "nap:", "nap:sharing=no", *grids]),
        ppn=ppn,
        max_samples=1,
    )
    assert result.status == 0, result.stderr
    reported = {case["method"]: case["statistics"] for case in result.cases}
    for method, statistics in counted(path, procs, by, list(reported), ppn).items():
        known = {key: reported[method][key] for key in statistics}
        assert known == pytest.approx(statistics), method


@pytest.mark.parametrize(
    ("name", "by", "procs", "ppn"),
    by_day(
        [
            *((*case, 7, 3) for case in DISTRIBUTED),
            *((*DISTRIBUTED[place], *layout) for place, layout in enumerate(LAYOUTS)),
        ],
        ((*case, *layout) for case in DISTRIBUTED for layout in LAYOUTS),
    ),
)
def test_counts_are_those_of_the_library(
    any_kernels: Kernels,
    tmp_path: Path,
    matrices: dict[str, Path],
    name: str,
    by: str,
    procs: int,
    ppn: int,
) -> None:
    if by == "file":
        rows = read_pattern(matrices[name]).shape[0]
        parts = np.random.default_rng(procs).integers(0, procs, rows)
        by = str(tmp_path / "a.part")
        np.savetxt(by, parts, fmt="%d")
    assert_reported(any_kernels, tmp_path / "o", matrices[name], procs, by, ppn)


@pytest.mark.parametrize("name", ["empty", "few"])
def test_counts_of_few_entries(
    any_kernels: Kernels, tmp_path: Path, matrices: dict[str, Path], name: str
) -> None:
    assert_reported(any_kernels, tmp_path / "o", matrices[name], 7, "contiguous", ppn=2)
