"""The messages of a sparse matrix's product with a vector: who needs what from whom."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from tuner.inputs.matrices.market import Indices, Pattern
from tuner.inputs.matrices.ownership import Ownership


@dataclass(frozen=True)
class Halo:
    """Message i brings the elements slots[first[i]:first[i+1]] from source[i] to destination[i].

    Elements are numbered process by process: those of process p are begins[p], …, begins[p+1] - 1
    as they lie there. Messages are ordered by source and destination, and their elements increase.
    None is empty, and none stays on its process.
    """

    procs: int
    source: Indices
    destination: Indices
    first: Indices
    slots: Indices
    begins: Indices

    @cached_property
    def items(self) -> Indices:
        """Return the number of elements of each message."""
        return np.diff(self.first)

    def owner(self, slots: Indices) -> Indices:
        """Return the process of each element."""
        return np.searchsorted(self.begins, slots, side="right") - 1


def halo(pattern: Pattern, owned: Ownership) -> Halo:
    """Return the elements that each process needs for its rows and does not own, each once."""
    procs = owned.procs
    span = int(np.diff(owned.first).max(initial=1))
    codes = _codes(pattern, owned, span)
    codes.sort()
    codes = codes[group_starts(codes)]
    pair, place = np.divmod(codes, span)
    del codes
    starts = np.flatnonzero(group_starts(pair))
    first = np.append(starts, len(pair))
    source, destination = np.divmod(pair[starts], procs)
    place += owned.first[np.repeat(source, np.diff(first))]
    return Halo(procs, source, destination, first, place, owned.first)


def _codes(pattern: Pattern, owned: Ownership, span: int) -> Indices:
    """Return a code of source, destination and place for each entry that needs another process."""
    receiver = owned.owner[pattern.rows]
    sender = owned.owner[pattern.columns]
    away = np.flatnonzero(sender != receiver)
    codes: Indices = sender[away]
    codes *= owned.procs
    codes += receiver[away]
    codes *= span
    codes += owned.place[pattern.columns[away]]
    return codes


def group_starts(values: Indices) -> npt.NDArray[np.bool_]:
    """Return where in a sorted array a new value begins."""
    starts = np.ones(len(values), dtype=np.bool_)
    np.not_equal(values[1:], values[:-1], out=starts[1:])
    return starts
