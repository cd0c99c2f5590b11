"""The number of neighbours that the ranks of block-distributed matrices have.

Hoefler, Siebert, Lumsdaine, PPoPP'10, assume few; they counted them in matrices of fluids and
finite elements.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tuner.inputs.matrices import amg, lookalike
from tuner.inputs.matrices.market import read_pattern
from tuner.inputs.matrices.ownership import contiguous
from tuner.inputs.structure.halo import halo
from tuner.studies.findings import Finding
from tuner.studies.matrices import lookalike_file, matrices_directory, original_of
from tuner.studies.simulator import LogFunction

_FEW = 2.0  # times lg P


@dataclass(frozen=True)
class Neighbours:
    """The numbers of ranks that each sends to, for a matrix in blocks of neighbouring rows."""

    matrix: str
    rows: int
    procs: int
    mean: float
    most: int


def count(
    matrices: Sequence[str], rows: int, procs: Sequence[int], log: LogFunction
) -> Iterator[Neighbours]:
    """Yield counts for finest multigrid levels, by name of their problem, and look-alikes by name.

    Raise StudyError, MatrixError.
    """
    for name in matrices:
        path = _level(name, rows) if name in amg.PROBLEMS else _lookalike(name, rows, log)
        pattern = read_pattern(path)
        size = pattern.shape[0]
        for each in procs:
            sent = np.bincount(halo(pattern, contiguous(size, each)).source, minlength=each)
            yield Neighbours(name, size, each, float(sent.mean()), int(sent.max()))


def _level(problem: str, rows: int) -> Path:
    return next(amg.make(problem, rows, matrices_directory(), ".mtx")).path


def _lookalike(name: str, rows: int, log: LogFunction) -> Path:
    original = original_of(name)
    return lookalike_file(original, lookalike.scaled(original.target, rows), log)


def finding(found: Sequence[Neighbours]) -> Finding:
    """Return the paper's assumption, checked at the largest scale."""
    most = max(each.procs for each in found)
    last = [each for each in found if each.procs == most]
    few = [each for each in last if each.mean <= _FEW * np.log2(most)]
    means = ", ".join(f"{each.matrix} {each.mean:.3g}" for each in last)
    return Finding(
        "ranks of block-distributed matrices have about lg P neighbours on average",
        len(few) == len(last),
        f"{most} ranks, lg P = {np.log2(most):.3g}: {means}",
    )
