"""Ratios of times within launches: drift from launch to launch cancels in them. No input or output.

Times are logarithms of a launch's median seconds, so that ratios are differences. Launches count as
in decisions.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import NamedTuple, TypeVar

import numpy as np

from tuner.domain.records import PART, Cell
from tuner.machine.simulation import machines
from tuner.selection.pairing import DISTURBED_WEIGHT, LEAST_ROUNDS
from tuner.selection.trust import Trust

L = TypeVar("L")


class Log(NamedTuple):
    """A logarithm from one launch, and its weight."""

    value: float
    weight: float = 1.0

    def over(self, other: "Log") -> "Log":
        """Return the logarithm of a ratio within a launch; if one was disturbed, so are both."""
        return Log(self.value - other.value, min(self.weight, other.weight))


def logs_of(
    cells: Iterable[Cell], trust: Trust | None = None
) -> Iterator[tuple[Cell, dict[int, Log]]]:
    """Yield each cell with the times of its launches that count, by launch, in their order.

    Those of launches without enough rounds do not count, but simulated ones would only be repeated.
    With `trust`, disturbed ones weigh less.
    """
    cells = list(cells)
    # Bytes are joined because numpy compares the fields of many small structured arrays one by one.
    parts = np.frombuffer(b"".join(cell.parts.tobytes() for cell in cells), PART)
    launches, logs = parts["launch"].tolist(), np.log(parts["median_s"]).tolist()
    samples = parts["samples"].tolist()
    end = 0
    for cell in cells:
        here = range(end, end := end + len(cell.parts))
        least = 1 if machines.is_simulated(cell.key.system) else LEAST_ROUNDS
        disturbed = trust.disturbed(cell) if trust else ()
        yield (
            cell,
            {
                launches[i]: Log(logs[i], DISTURBED_WEIGHT if launches[i] in disturbed else 1.0)
                for i in here
                if samples[i] >= least
            },
        )


def paired(mine: Mapping[L, Log], others: Mapping[L, Log]) -> dict[L, Log]:
    """Return the logarithm of time / other time for every launch that has both, in their order."""
    return {
        launch: mine[launch].over(others[launch])
        for launch in sorted(mine.keys() & others.keys())  # type: ignore[type-var]
    }


def mean(logs: Collection[Log]) -> float:
    """Return the weighted mean of logarithms: the logarithm of the geometric mean."""
    return sum(log.value * log.weight for log in logs) / sum(log.weight for log in logs)
