"""Halos: of given messages, and drawn ones with what each message holds."""

from collections import defaultdict

import numpy as np
from hypothesis import strategies as st

from tuner.inputs.matrices.market import Pattern
from tuner.inputs.matrices.ownership import Ownership, contiguous
from tuner.inputs.structure.halo import Halo, halo

Messages = dict[tuple[int, int], set[int]]  # elements by source and destination


def pattern_of(entries: list[tuple[int, int]], rows: int) -> Pattern:
    """Return a pattern from positions, repeated ones included."""
    array = np.array(entries, dtype=np.int64).reshape(-1, 2)
    return Pattern((rows, rows), array[:, 0], array[:, 1])


def halo_of(messages: Messages, procs: int) -> Halo:
    """Return the halo of these messages; a process owns 100 elements, numbered from 0 here."""
    entries = [
        (100 * destination, 100 * source + item)
        for (source, destination), items in messages.items()
        for item in items
    ]
    pattern = pattern_of(entries, 100 * procs)
    return halo(pattern, contiguous(100 * procs, procs))


@st.composite
def halos(draw: st.DrawFn) -> tuple[Halo, Messages]:
    """Draw a halo, and the same worked out entry by entry."""
    procs = draw(st.integers(1, 20))
    count = draw(st.integers(1, 40))
    index = st.integers(0, count - 1)
    entries = draw(st.lists(st.tuples(index, index), max_size=150))
    parts = draw(st.lists(st.integers(0, procs - 1), min_size=count, max_size=count))
    pattern = pattern_of(entries, count)
    messages: Messages = defaultdict(set)
    for row, column in entries:
        if parts[row] != parts[column]:
            messages[parts[column], parts[row]].add(column)
    owned = Ownership(procs, np.array(parts))
    slots = {int(row): slot for slot, row in enumerate(owned.order)}
    return halo(pattern, owned), {
        pair: {slots[column] for column in columns} for pair, columns in messages.items()
    }
