"""Real matrices for halo patterns: pyamg's examples, written as Matrix Market files."""

from pathlib import Path


def write_matrix(name: str, directory: Path) -> Path:
    """Write pyamg's example matrix `name`, for example "bar", to directory/NAME.mtx.

    Raises:
        ValueError: pyamg has no such example.
    """
    # Imports are slow, and only matrix patterns need them.
    from pyamg.gallery import load_example
    from scipy.io import mmwrite

    matrix = load_example(name)["A"]
    path = directory / f"{name}.mtx"
    mmwrite(path, matrix, comment=f"example '{name}' of pyamg's gallery")
    return path
