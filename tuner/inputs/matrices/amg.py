"""The levels of algebraic multigrid hierarchies, by pyamg.

The problems are those of Bienz, Gropp, Olson (2019): rotated anisotropic diffusion (theta = pi/4,
epsilon = 0.001) and linear elasticity, both on squares. Coarse levels are smaller and denser.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tuner.inputs.matrices.degrees import Degrees
from tuner.inputs.matrices.writing import write

_ENTRIES = 1 << 18  # entries of a block


@dataclass(frozen=True)
class Level:
    """One matrix of a hierarchy; 0 is the finest."""

    level: int
    path: Path
    degrees: Degrees


def _diffusion(rows: int) -> Any:
    from pyamg import ruge_stuben_solver
    from pyamg.gallery import diffusion_stencil_2d, stencil_grid

    side = max(round(math.sqrt(rows)), 2)
    stencil = diffusion_stencil_2d(type="FE", epsilon=0.001, theta=math.pi / 4)
    return ruge_stuben_solver(stencil_grid(stencil, (side, side), format="csr"))


def _elasticity(rows: int) -> Any:
    from pyamg import smoothed_aggregation_solver
    from pyamg.gallery import linear_elasticity

    side = max(round(math.sqrt(rows / 2)), 2)  # two unknowns at each point
    matrix, rigid_motions = linear_elasticity((side, side), format="bsr")
    return smoothed_aggregation_solver(matrix, rigid_motions)


PROBLEMS = {"diffusion": _diffusion, "elasticity": _elasticity}


def _made_alike(problem: Callable[[int], Any], rows: int) -> Any:
    """Return the levels of a problem, each time the same: pyamg draws vectors for its estimates."""
    state = np.random.get_state()
    np.random.seed(1)
    try:
        return problem(rows).levels
    finally:
        np.random.set_state(state)


def make(problem: str, rows: int, directory: Path, suffix: str) -> Iterator[Level]:
    """Write the levels of one of PROBLEMS with about `rows` rows, and yield each one."""
    levels = _made_alike(PROBLEMS[problem], rows)
    size = levels[0].A.shape[0]
    for number, level in enumerate(levels):
        matrix = level.A.tocsr()
        matrix.eliminate_zeros()
        path = directory / f"{problem}-{size}-level{number}{suffix}"
        comment = f"level {number} of {problem} by pyamg, of {len(levels)} levels"
        count = matrix.shape[0]
        write(path, count, matrix.nnz, _blocks(matrix), field="real", comment=comment)
        yield Level(number, path, Degrees.of(np.diff(matrix.indptr), count))


def _blocks(matrix: Any) -> Iterator[tuple[Any, Any, Any]]:
    """Yield blocks of whole rows, about _ENTRIES entries each."""
    ends = np.searchsorted(matrix.indptr, np.arange(_ENTRIES, matrix.nnz + _ENTRIES, _ENTRIES))
    first = 0
    for end in np.minimum(ends, matrix.shape[0]).tolist():
        block = matrix[first:end].tocoo()
        yield block.row + first, block.col, block.data
        first = end
