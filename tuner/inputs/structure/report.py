"""The counts of `switchpoint matrix messages`: the messages of every method, without MPI."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from tuner.inputs.matrices.market import Pattern, read_pattern
from tuner.inputs.matrices.partition import ownership
from tuner.inputs.structure.halo import Halo, halo
from tuner.inputs.structure.methods import Method, method, standard_specs
from tuner.inputs.structure.traffic import MessageStatistics
from tuner.machine.mpi import available_cores

_MESSAGES_AT_ONCE = 1 << 24  # in all threads together: each takes about 150 bytes


@dataclass(frozen=True)
class ReportRow:
    """One method on one number of processes."""

    procs: int
    method: Method
    statistics: MessageStatistics

    def document(self) -> dict[str, Any]:
        """Return the row for JSON; statistics as in the raw files of launches."""
        return {
            "procs": self.procs,
            "method": self.method.spec,
            "layout": self.method.layout,
            "message_bound": self.method.message_bound,
            "statistics": asdict(self.statistics),
        }


@dataclass(frozen=True)
class ReportRequest:
    """A matrix to count, its parts, methods (none: all), ranks per node and bytes per item."""

    matrix: Path
    procs: Sequence[int]
    by: str
    specs: Sequence[str]
    ppn: int
    item_bytes: int


def report(request: ReportRequest) -> Iterator[ReportRow]:
    """Yield the counts of the methods one after the other.

    Raises:
        MatrixError: the matrix or its partition cannot be read or made.
        MethodError: a method is unknown or not applicable.
    """
    pattern = read_pattern(request.matrix)
    for procs in request.procs:
        methods = [method(spec, procs) for spec in request.specs or standard_specs(procs)]
        messages = _halo(request, pattern, procs)
        count = partial(_count, request, messages)
        # Arrays are counted without Python's lock, so threads share the work.
        workers = min(available_cores(), _MESSAGES_AT_ONCE // max(len(messages.items), 1))
        with ThreadPoolExecutor(max(workers, 1)) as threads:
            yield from threads.map(count, methods)


def _count(request: ReportRequest, messages: Halo, each: Method) -> ReportRow:
    statistics = each.count(messages, request.ppn).statistics(request.item_bytes)
    return ReportRow(messages.procs, each, statistics)


def _halo(request: ReportRequest, pattern: Pattern, procs: int) -> Halo:
    return halo(pattern, ownership(request.matrix, pattern, request.by, procs))
