"""Look-alikes of the matrices of Selvitopi & Aykanat, SC'19, Table 1, which we may not distribute.

A look-alike is symmetric, and has the original's rows and entries, and the maximum and coefficient
of variation of its entries per row. Its entries are placed anew: near each other for a mesh, at all
distances for networks and optimisation. The constants of the distances are the same for all
matrices of a kind, and calibrated by the means of the paper's Table 2.
"""

import csv
import math
import zlib
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

import numpy as np

from tuner.inputs.matrices.degree_sequence import Target, degree_sequence
from tuner.inputs.matrices.degrees import Degrees
from tuner.inputs.matrices.market import MatrixError
from tuner.inputs.matrices.symmetric import lower_triangle
from tuner.inputs.matrices.writing import write

TOLERANCE = 0.1
_SCATTERED = ("network", "optimization", "programming")
_DENSE_ROW = 0.01  # share of the columns that the greatest row of a smaller version keeps
_MESH_TAIL, _NETWORK_TAIL = 3.0, 1.5


@dataclass(frozen=True)
class Original:
    """A matrix of the table."""

    name: str
    kind: str
    target: Target
    groups: tuple[str, ...]  # sets of the paper: small15, large10

    @property
    def tail(self) -> float:
        """Return how fast the partners of a row become fewer farther away, by the kind."""
        return _NETWORK_TAIL if any(word in self.kind for word in _SCATTERED) else _MESH_TAIL


@dataclass(frozen=True)
class Lookalike:
    """The matrix that was made, with its target.

    `missed` states what is over 10 % off, and why.
    """

    name: str
    path: Path
    wanted: Target
    achieved: Degrees
    missed: str


def originals() -> dict[str, Original]:
    """Return the table, by name."""
    text = resources.files("tuner.inputs.matrices").joinpath("stfw_table1.csv").read_text("utf-8")
    return {
        row["matrix"]: Original(
            row["matrix"],
            row["kind"],
            Target(int(row["n"]), int(row["nnz"]), int(row["max_degree"]), float(row["cv"])),
            tuple(row["set"].split()),
        )
        for row in csv.DictReader(text.splitlines())
    }


def scaled(target: Target, rows: int) -> Target:
    """Return the target of the same matrix with another number of rows.

    Mean and variation of a row's entries stay, and dense rows stay as dense; the most entries of a
    row are never fewer than the variation needs.

    Raises:
        MatrixError: too few rows for that many entries per row.
    """
    mean = target.mean
    if rows < 2 * mean:
        raise MatrixError(f"{rows} rows are too few for {mean:.0f} entries per row: use twice that")
    share = target.max_degree / target.rows
    most = target.max_degree if share < _DENSE_ROW else round(share * rows)
    needed = math.ceil(1.2 * (mean + (target.cv * mean) ** 2 / (mean - 1)))
    return Target(rows, round(mean * rows), min(max(most, needed), rows), target.cv)


def coarsened(target: Target, entries: int) -> Target:
    """Return the target of a matrix whose rows stand for several of the original's each.

    Rows and the entries of each become fewer alike, so that a row still meets the same share of
    all. Parts meet fewer others than those of the original, the fewer the less entries are left;
    the constants of the distances were calibrated with 400 000. A matrix is not made larger.
    """
    scale = min(math.sqrt(entries / target.nnz), 1)
    nnz = min(entries, target.nnz)
    rows = min(round(scale * target.rows), nnz // 2)
    return Target(rows, nnz, min(math.ceil(scale * target.max_degree), rows), target.cv)


def make(original: Original, target: Target, path: Path, seed: int) -> Lookalike:
    """Write a look-alike; the same seed gives the same file."""
    rng = np.random.default_rng([seed, zlib.crc32(original.name.encode())])
    degrees = degree_sequence(target, rng)
    rows, columns = lower_triangle(degrees, original.tail, rng)
    comment = f"look-alike of {original.name}, seed {seed}, by switchpoint"
    write(path, target.rows, len(rows), [(rows, columns)], symmetry="symmetric", comment=comment)
    below = rows != columns
    counts = np.bincount(rows, minlength=target.rows)
    counts += np.bincount(columns[below], minlength=target.rows)
    achieved = Degrees.of(counts, target.rows)
    return Lookalike(original.name, path, target, achieved, _missed(target, achieved))


def _missed(target: Target, achieved: Degrees) -> str:
    """Return a text on what exceeds the tolerance, with a reason if one holds for all."""
    pairs = {
        "nnz": (achieved.nnz, target.nnz),
        "maximum": (achieved.max_degree, target.max_degree),
        "cv": (achieved.cv, target.cv),
    }
    off = [
        f"{name} {found:.4g} instead of {wanted:.4g}"
        for name, (found, wanted) in pairs.items()
        if abs(found - wanted) > TOLERANCE * wanted
    ]
    if achieved.cv < (1 - TOLERANCE) * target.cv:
        off.append("in a symmetric matrix dense rows fill the others too")
    if target.cv < target.least_cv:
        off.append(f"with this maximum cv is at least {target.least_cv:.2f}")
    return "; ".join(off)
