"""The patterns of swpbench have the features that they must have."""

import gzip
import random
from itertools import product
from pathlib import Path

import pytest

from tests.conftest import by_day
from tests.kernels.benchrun import bench
from tests.kernels.conftest import Kernels
from tests.kernels.halo import OracleHalo, matrix_halo, read_entries, stencil_halo

MATRICES = Path(__file__).parents[1] / "data" / "matrix" / "good"
GOOD = sorted(MATRICES.glob("*.mtx"))


def assert_features(kernels: Kernels, out: Path, pattern: str, halo: OracleHalo, size: int) -> str:
    """Run both operations; return the pattern as the header names it."""
    for operation in ("exchange", "discovery"):
        path = out.with_suffix(f".{operation}")
        result = bench(
            kernels,
            path,
            halo.procs,
            op=operation,
            pattern=pattern,
            sizes=str(size),
            max_samples=1,
            methods={"exchange": "direct alltoallv", "discovery": "pex"}[operation],
        )
        assert result.status == 0, result.stderr
        for case in result.cases:
            assert case["features"] == pytest.approx(halo.features(size)), pattern
            assert case["bytes"] == halo.mean_bytes(size)
    name: str = result.header["pattern"]
    return name


@pytest.mark.parametrize(
    ("path", "procs"),
    by_day([*product(GOOD, [3]), (MATRICES / "general-real.mtx", 8)], product(GOOD, [8])),
    ids=lambda value: getattr(value, "stem", None),
)
def test_matrix_is_the_halo_of_its_product(
    any_kernels: Kernels, tmp_path: Path, path: Path, procs: int
) -> None:
    halo = matrix_halo(path, procs)
    name = assert_features(any_kernels, tmp_path / "o", f"matrix:{path}", halo, 12)
    assert name == f"matrix:{path.name}"


@pytest.mark.parametrize(
    "procs",
    [pytest.param(1, marks=pytest.mark.nightly), 3, pytest.param(8, marks=pytest.mark.nightly)],
)
@pytest.mark.parametrize("path", GOOD, ids=lambda path: path.stem)
def test_matrix_in_parts(any_kernels: Kernels, tmp_path: Path, path: Path, procs: int) -> None:
    rows, _ = read_entries(path)
    strided = [row % procs for row in range(rows)]
    pattern = f"matrix:{path},part=strided"
    halo = matrix_halo(path, procs, strided)
    name = assert_features(any_kernels, tmp_path / "s", pattern, halo, 8)
    assert name == f"matrix:{path.name},part=strided"

    dealt = random.Random(rows)
    owners = [dealt.randrange(procs) for _ in range(rows)]  # some ranks may own nothing
    part = tmp_path / f"{path.stem}.random.{procs}.part"
    part.write_text("".join(f"{owner}\n" for owner in owners))
    halo = matrix_halo(path, procs, owners)
    name = assert_features(any_kernels, tmp_path / "f", f"matrix:{path},part={part}", halo, 8)
    assert name == f"matrix:{path.name},part={part.name}"


def test_matrix_compressed_by_gzip(any_kernels: Kernels, require, tmp_path: Path) -> None:
    plain = MATRICES / "general-real.mtx"
    path = tmp_path / "general-real.mtx.gz"
    path.write_bytes(gzip.compress(plain.read_bytes()))
    result = bench(any_kernels, tmp_path / "o", 3, pattern=f"matrix:{path}", methods="direct")
    require("zlib", "without zlib" not in result.stderr, "the kernels were built without it")
    assert result.cases[0]["features"] == pytest.approx(matrix_halo(plain, 3).features(8))


@pytest.mark.parametrize(
    ("pattern", "grid", "points", "edge"),
    [
        ("stencil:dim=3,points=27", (2, 2, 2), 27, 4),
        ("stencil:dim=3,points=7,edge=3", (2, 2, 2), 7, 3),
        ("stencil:dim=3,points=27,edge=1", (3, 1, 1), 27, 1),
        ("stencil:dim=2,points=9", (3, 2), 9, 4),
        ("stencil:dim=2,points=5,edge=2", (3, 3), 5, 2),
        ("stencil:dim=1,points=3", (5,), 3, 4),
    ],
)
def test_stencil(
    any_kernels: Kernels,
    tmp_path: Path,
    pattern: str,
    grid: tuple[int, ...],
    points: int,
    edge: int,
) -> None:
    halo = stencil_halo(grid, points, edge)
    name = assert_features(any_kernels, tmp_path / "o", pattern, halo, 8)
    assert name == f"stencil:dim={len(grid)},points={points},edge={edge}"


@pytest.mark.parametrize(("procs", "hubs"), [(1, 1), (5, 2), (7, 7), (4, 9)])
def test_hub(any_kernels: Kernels, tmp_path: Path, procs: int, hubs: int) -> None:
    result = bench(any_kernels, tmp_path / "o", procs, pattern=f"hub:hubs={hubs}", methods="direct")
    assert result.header["pattern"] == f"hub:hubs={hubs},seed=1"
    few = min(hubs, procs)
    messages = few * (procs - 1) + (procs - few) * few
    features = result.cases[0]["features"]
    assert features["mmax"] == procs - 1
    assert features["mavg"] == pytest.approx(messages / procs)


@pytest.mark.parametrize(("procs", "degree"), [(8, 0), (8, 3), (5, 6)])
def test_random(any_kernels: Kernels, tmp_path: Path, procs: int, degree: int) -> None:
    result = bench(
        any_kernels,
        tmp_path / "o",
        procs,
        pattern=f"random:seed=4,degree={degree}",
        methods="direct",
    )
    assert result.header["pattern"] == f"random:degree={degree},seed=4"
    features = result.cases[0]["features"]
    assert features["mmax"] == features["mavg"] == min(degree, procs - 1)
