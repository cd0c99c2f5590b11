"""Random matrices with a constant number of entries in every row."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from tuner.inputs.matrices.market import Indices, MatrixError
from tuner.inputs.matrices.writing import write

_BLOCK_ROWS = 1 << 14


def make(path: Path, rows: int, entries: int, seed: int) -> None:
    """Write a matrix with `entries` in each row, at random columns; one block of rows at a time.

    Raises:
        MatrixError: a row has no room for that many.
    """
    if entries > rows:
        raise MatrixError(f"a row of {rows} columns has no room for {entries} entries")
    rng = np.random.default_rng(seed)
    comment = f"{entries} random entries a row, seed {seed}, by switchpoint"
    write(path, rows, rows * entries, _blocks(rows, entries, rng), comment=comment)


def _blocks(rows: int, entries: int, rng: np.random.Generator) -> Iterator[tuple[Indices, Indices]]:
    for first in range(0, rows, _BLOCK_ROWS):
        count = min(_BLOCK_ROWS, rows - first)
        columns = _distinct(count, rows, entries, rng)
        yield np.repeat(np.arange(first, first + count), entries), columns.ravel()


def _distinct(count: int, columns: int, entries: int, rng: np.random.Generator) -> Indices:
    """Return increasing distinct columns for each of `count` rows."""
    if entries**2 > columns:  # too few rows would be without repeats
        chosen = (rng.choice(columns, entries, replace=False, shuffle=False) for _ in range(count))
        return np.array([np.sort(each) for each in chosen])
    drawn = np.sort(rng.integers(0, columns, (count, entries)), axis=1)
    while len(again := np.flatnonzero((drawn[:, 1:] == drawn[:, :-1]).any(axis=1))):
        drawn[again] = np.sort(rng.integers(0, columns, (len(again), entries)), axis=1)
    return drawn
