"""Real matrices for halo patterns: what pyamg packages, written as Matrix Market files."""

from __future__ import annotations

from pathlib import Path


def write_matrix(name: str, directory: Path) -> Path:
    """Writes pyamg's example matrix `name`, for example "bar", to directory/NAME.mtx.

    Raises:
        ValueError: pyamg has no such example.
    """
    # Heavy imports, and only a matrix pattern needs them.
    from pyamg.gallery import load_example
    from scipy.io import mmwrite

    matrix = load_example(name)["A"]
    path = directory / f"{name}.mtx"
    mmwrite(path, matrix, comment=f"example '{name}' of pyamg's gallery")
    return path
