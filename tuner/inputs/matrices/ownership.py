"""The owner of each row of a square matrix, and of the same element of a vector."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tuner.inputs.matrices.market import Indices


@dataclass(frozen=True)
class Ownership:
    """`owner[i]`, from 0 to procs - 1, owns row i. A process keeps its rows in their order."""

    procs: int
    owner: Indices

    @cached_property
    def order(self) -> Indices:
        """Return the rows by owner."""
        return np.argsort(self.owner, kind="stable")

    @cached_property
    def first(self) -> Indices:
        """Return where in `order` the rows of each process begin; one more entry ends the last."""
        sizes = np.bincount(self.owner, minlength=self.procs)
        return np.concatenate(([0], np.cumsum(sizes)))

    @cached_property
    def place(self) -> Indices:
        """Return the place of each row among those of its owner, from 0."""
        place = np.empty_like(self.owner)
        place[self.order] = np.arange(len(self.owner)) - self.first[self.owner[self.order]]
        return place


def contiguous(count: int, procs: int) -> Ownership:
    """Return blocks of neighbouring rows, the first `count` mod `procs` of them one larger."""
    sizes = np.full(procs, count // procs, dtype=np.int64)
    sizes[: count % procs] += 1
    return Ownership(procs, np.repeat(np.arange(procs, dtype=np.int64), sizes))


def strided(count: int, procs: int) -> Ownership:
    """Return the ownership with row r on process r mod `procs`."""
    return Ownership(procs, np.arange(count, dtype=np.int64) % procs)


RULES = {"contiguous": contiguous, "strided": strided}
