"""Ratios of times within launches: drift from launch to launch cancels in them. No input or output.

Times are logarithms of a launch's median seconds, so that ratios are differences.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import TypeVar

import numpy as np

from tuner import stats
from tuner.domain.records import PART, Cell
from tuner.machine.simulation import machines

L = TypeVar("L")


def least_samples(cell: Cell) -> int:
    """Return the samples of a launch that counts: simulated ones would only be repeated."""
    return 1 if machines.is_simulated(cell.key.system) else stats.MIN_SAMPLES


def logs_of(cells: Iterable[Cell]) -> Iterator[tuple[Cell, dict[int, float]]]:
    """Yield each cell with the times of its launches that count, by launch, in their order."""
    cells = list(cells)
    # Bytes are joined because numpy compares the fields of many small structured arrays one by one.
    parts = np.frombuffer(b"".join(cell.parts.tobytes() for cell in cells), PART)
    launches, logs = parts["launch"].tolist(), np.log(parts["median_s"]).tolist()
    least = np.repeat([least_samples(cell) for cell in cells], [len(cell.parts) for cell in cells])
    counts = (parts["samples"] >= least).tolist()
    end = 0
    for cell in cells:
        here = range(end, end := end + len(cell.parts))
        yield cell, {launches[i]: logs[i] for i in here if counts[i]}


def paired(mine: Mapping[L, float], others: Mapping[L, float]) -> dict[L, float]:
    """Return the logarithm of time / other time for every launch that has both, in their order."""
    return {
        launch: mine[launch] - others[launch]
        for launch in sorted(mine.keys() & others.keys())  # type: ignore[type-var]
    }


def mean(logs: Collection[float]) -> float:
    """Return the mean of logarithms: the logarithm of the geometric mean."""
    return sum(logs) / len(logs)
