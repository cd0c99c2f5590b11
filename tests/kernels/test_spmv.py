"""The parallel product of a matrix with vectors, against SciPy's, by every exchange method."""

from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse
from numpy.typing import NDArray

from .conftest import Kernels, crowded
from .test_library import run

MATRICES = 20


def random_matrix(seed: int) -> scipy.sparse.coo_array:
    """Return a square matrix with empty rows and one dense row."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(9, 120))
    dense = rng.standard_normal((n, n)) * (rng.random((n, n)) < rng.uniform(0.01, 0.2))
    dense[rng.choice(n, n // 4, replace=False)] = 0
    dense[rng.integers(n)] = rng.standard_normal(n)
    return scipy.sparse.coo_array(dense)


def vectors(rows: int, count: int) -> NDArray[np.float64]:
    """Return the elements that kernels/tests/swp_spmv.c multiplies with."""
    row, vector = np.arange(rows, dtype=np.uint64)[:, None], np.arange(count, dtype=np.uint64)
    mixed = row * np.uint64(2654435761) + vector * np.uint64(40503)
    return 1 + (mixed % np.uint64(2**32)).astype(np.float64) / 2.0**32


def write_matrices(directory: Path) -> list[Path]:
    """Write random patterns, some symmetric, skew-symmetric or without values, one compressed."""
    paths = []
    for seed in range(MATRICES):
        matrix = random_matrix(seed)
        kind = {"field": None, "symmetry": "general"}
        if seed % 5 == 1:
            matrix, kind = matrix + matrix.T, {"field": None, "symmetry": "symmetric"}
        elif seed % 5 == 2:
            matrix, kind = matrix - matrix.T, {"field": None, "symmetry": "skew-symmetric"}
        elif seed % 5 == 3:
            kind = {"field": "pattern", "symmetry": "general"}
        elif seed % 5 == 4:
            matrix = scipy.sparse.coo_array((10 * matrix).astype(np.int64))
        path = directory / f"m{seed}.mtx"
        scipy.io.mmwrite(path, matrix, **kind)
        paths.append(path)
    return paths


@pytest.fixture(scope="module")
def matrices(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    return write_matrices(tmp_path_factory.mktemp("matrices"))


@pytest.mark.parametrize(
    ("procs", "count", "ppn"),
    [
        *((1, 1, 0), (2, 1, 0), (3, 1, 2), (4, 1, 2), (5, 1, 2), (1, 2, 0), (4, 3, 1)),
        pytest.param(8, 1, 3, marks=crowded(8)),
        *(
            pytest.param(procs, 1, procs % 4 + 1, marks=pytest.mark.nightly)
            for procs in range(1, 17)
        ),
    ],
)
def test_product_is_that_of_scipy(
    kernels: Kernels, tmp_path: Path, matrices: list[Path], procs: int, count: int, ppn: int
) -> None:
    rng = np.random.default_rng(procs)
    products: list[tuple[Path, Path]] = []
    arguments: list[str | Path] = []
    for path in matrices:
        rows = scipy.io.mminfo(path)[0]
        listed = tmp_path / f"{path.stem}.random.{procs}.part"
        np.savetxt(listed, rng.integers(procs, size=rows), fmt="%d")
        for part in ("contiguous", "strided", listed):
            products.append((path, tmp_path / f"y{len(products)}"))
            arguments += [path, part, products[-1][1]]
    options = ["--vectors", str(count), "--ppn", str(ppn)]
    run(kernels, "swp_spmv", procs, *options, *arguments)
    for path, product in products:
        matrix = scipy.sparse.csr_array(scipy.io.mmread(path), dtype=np.float64)
        x = vectors(matrix.shape[0], count)
        y = np.fromfile(product).reshape(x.shape)
        scale = abs(matrix) @ abs(x)
        assert np.all(np.abs(y - matrix @ x) <= 1e-13 * scale), product
