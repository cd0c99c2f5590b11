"""Performance guidelines that any implementation should keep, checked on measurements.

The guidelines are those of Traeff, Gropp, Thakur (2010), self-consistent performance: a collective
is not slower than its emulation by others, and smaller data do not take longer than larger. A
violation is reported only where the 95 % intervals of the medians are apart. No input or output.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from tuner.domain.cases import STAGGERED, Layout
from tuner.domain.flat import columns, take
from tuner.domain.operations import AUTO, COLLECTIVES, DEFAULT_METHODS

LEAST = 1.05
"""The least ratio of medians that is reported."""


class EmulationStep(NamedTuple):
    """A step of an emulation, whose block is larger by `times_procs` times the processes.

    -1 divides by the processes; 0 leaves the block as it is.
    """

    operation: str
    times_procs: int = 0


EMULATIONS = {
    "allreduce": [EmulationStep("reduce"), EmulationStep("bcast")],
    "reduce": [EmulationStep("allreduce")],
    "gather": [EmulationStep("allgather")],
    "allgather": [EmulationStep("gather"), EmulationStep("bcast", 1)],
    "scatter": [EmulationStep("bcast", 1)],
    "bcast": [EmulationStep("scatter", -1), EmulationStep("allgather", -1)],
    "reduce_scatter_block": [EmulationStep("reduce", 1), EmulationStep("scatter")],
    "allgatherv": [EmulationStep("allgather")],
}
"""Emulations of each collective, as steps one after the other."""


@dataclass(frozen=True, slots=True)
class Violation:
    """A case that takes longer than it should, in seconds; `than` names the faster one."""

    operation: str
    pattern: str
    nodes: int
    ppn: int
    method: str
    bytes: int
    time_s: float
    than: str
    than_s: float

    @property
    def ratio(self) -> float:
        """Return how many times as long the slower one takes."""
        return self.time_s / self.than_s


class _Time(NamedTuple):
    median_s: float
    low_s: float
    high_s: float


class _Sizes(NamedTuple):
    """A case at all sizes."""

    operation: str
    pattern: str
    layout: Layout
    sync: str


_Times = dict[_Sizes, dict[str, dict[int, _Time]]]


def comparable(cells: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the cells that are compared: of more launches than one, whose ranks start together."""
    return [
        cell
        for cell in cells
        if cell["method"] != AUTO and cell["launches"] > 1 and not cell["sync"].endswith(STAGGERED)
    ]


def violations(cells: Iterable[dict[str, Any]]) -> list[Violation]:
    """Return the violations in one campaign's cells, rows of `Store.cells`, the worst first."""
    times: _Times = {}
    for cell in comparable(cells):
        case = take(_Sizes, (cell[name] for name in columns(_Sizes)))
        time = _Time(cell["median_s"], cell["low_s"], cell["high_s"])
        times.setdefault(case, {}).setdefault(cell["method"], {})[cell["size_bytes"]] = time
    found = [*_falling(times), *_emulated(times)]
    return sorted(found, key=lambda violation: -violation.ratio)


def _falling(times: _Times) -> Iterator[Violation]:
    """Yield the cases where less data takes longer than more, by the same method."""
    for case, methods in times.items():
        for method, sizes in methods.items():
            for size, time in sorted(sizes.items()):
                larger = [other for other in sizes if other > size]
                best = min(larger, key=lambda other: sizes[other].median_s, default=None)
                if best is not None and _is_slower(time, sizes[best]):
                    than = f"itself at {best} B"
                    yield _violation(case, method, size, time, than, sizes[best].median_s)


def _emulated(times: _Times) -> Iterator[Violation]:
    """Yield the collectives of the MPI library that are slower than others that do the same."""
    for case, methods in times.items():
        if case.operation not in COLLECTIVES:
            continue
        default = DEFAULT_METHODS[case.operation]
        for size, time in methods.get(default, {}).items():
            steps = []
            for part in EMULATIONS.get(case.operation, []):
                of_part = times.get(case._replace(operation=part.operation), {}).get(default, {})
                step = of_part.get(_scaled(size, part, case.layout.procs))
                steps += [step] if step else []
            if not steps or len(steps) < len(EMULATIONS[case.operation]):
                continue
            whole = _Time(*map(sum, zip(*steps, strict=True)))
            if _is_slower(time, whole):
                than = " and ".join(part.operation for part in EMULATIONS[case.operation])
                yield _violation(case, default, size, time, than, whole.median_s)


def _scaled(size: int, part: EmulationStep, procs: int) -> int:
    if part.times_procs < 0:
        return size // procs if size % procs == 0 else 0
    return size * procs if part.times_procs else size


def _is_slower(time: _Time, than: _Time) -> bool:
    return time.low_s > than.high_s and time.median_s > LEAST * than.median_s


def _violation(
    case: _Sizes, method: str, size: int, time: _Time, than: str, than_s: float
) -> Violation:
    place = case.operation, case.pattern, case.layout.nodes, case.layout.ppn
    return Violation(*place, method, size, time.median_s, than, than_s)
