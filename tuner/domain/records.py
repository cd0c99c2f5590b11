"""Records of single launches and measurements; many of a kind are kept in data frames."""

from __future__ import annotations

import hashlib
import re
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tuner.domain.cases import COLD, STAGGERED, CellKey
from tuner.files import CONTROL

NAME = rf"[^{CONTROL}<>/.][^{CONTROL}<>/]{{0,199}}"
"""The names that campaigns and ids of systems may have: directories and links have them too."""

PATTERN_SPEC = rf"[a-z][^{CONTROL}<>]{{0,300}}"
"""A pattern; that of a matrix has the name of a file, which may hold spaces."""

SPEC = rf"[a-z][a-z0-9_]*(:[^\s\"{CONTROL}]+)?"
"""A method with its parameters."""

DATE = r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}Z"

SYNC = rf"[a-z]{{1,10}}({COLD})?({STAGGERED})?"


SHORTEST_S, LONGEST_S = 2.0**-40, 2.0**40
"""The bounds of a sample, a picosecond and a trillion: float32 holds them and their ratios."""


@dataclass(frozen=True, slots=True)
class Clock:
    """The clock that the samples were taken with."""

    name: str
    tick_s: float


@dataclass(frozen=True, slots=True)
class Header:
    """The first line of a raw file; docs/reference/benchfile.md explains the fields."""

    schema: int
    program: str
    system: str
    environment: str
    campaign: str
    launch: int
    date: str
    hostnames: list[str]
    cpu_model: str
    cores: int
    mpi_library: str
    mpi_standard: str
    compiler: str
    flags: str
    commit: str
    operation: str
    pattern: str
    procs: int
    nodes: int
    ppn: int
    oversubscribed: bool
    yield_setting: str
    binding: str
    seed: int
    sync: str
    clock: Clock
    load: list[float]
    buffers: str
    budget_s: float
    placement: str = ""  # of virtual nodes: block or cyclic; empty: the machine's nodes
    allocation: str = ""  # of the batch system; empty without one
    methods: str = ""  # names of all that the kernels have for the operation; empty: not known
    crossing_s: float = 0.0  # of 64 KiB between the halves of all ranks; 0 on one node
    others: float | None = None  # share of the cores' time that others took; of the end record


@dataclass(frozen=True, slots=True)
class System:
    """The properties that must be equal for two measurements to be compared."""

    name: str
    environment: str
    mpi_library: str
    mpi_standard: str
    compiler: str
    cpu_model: str
    cores: int

    @classmethod
    def of(cls, header: Header) -> System:
        """Return the system on which a launch ran; virtual nodes make it another one."""
        return cls(
            name=f"{header.system}+{header.placement}" if header.placement else header.system,
            environment=header.environment,
            mpi_library=header.mpi_library,
            mpi_standard=header.mpi_standard,
            compiler=header.compiler,
            cpu_model=header.cpu_model,
            cores=header.cores,
        )

    @property
    def id(self) -> str:
        """Return a readable name that differs where any field differs: `local-cpu-mpich-1f00ba`."""
        words = re.sub(r"[^A-Za-z0-9.]+", "-", f"{self.name}-{self.environment}")[:150].strip("-.")
        digest = hashlib.sha256(repr(sorted(asdict(self).items())).encode()).hexdigest()
        return f"{words}-{digest[:6]}"


@dataclass(frozen=True, slots=True)
class Launch:
    """One start of the benchmark, as the store keeps it."""

    id: int  # hash of the header, so that the same launch is recognised wherever its file lies
    system: str
    campaign: str
    number: int
    date: str
    content: str  # sha256 of the file
    path: str
    complete: bool
    samples: int
    commit: str
    problems: str  # JSON list of [line, message]
    header: str  # JSON


class Features(NamedTuple):
    """The features of a case, known before it is measured, and those of its plan."""

    mmax: int
    mavg: float
    vavg_bytes: float
    vmax_bytes: int
    statistics: str  # statistics of the plan, as JSON


class CellSummary(NamedTuple):
    """The summary of a cell. The interval is of the median from launch to launch."""

    launches: int
    n: int
    median_s: float
    low_s: float
    high_s: float
    p10_s: float
    p90_s: float
    above_2_medians: float  # share of the samples
    late: float  # share of the samples
    plan_median_s: float
    canary_median_s: float


class Part(NamedTuple):
    """A launch's part of a cell. The first two fields order the parts."""

    number: int
    launch: int
    samples: int
    late: int  # samples for which some rank was late
    median_s: float
    plan_s: float
    canary_s: float


PART = np.dtype(
    list(zip(Part._fields, ("<i4", "<i8", "<i4", "<i4", "<f8", "<f4", "<f4"), strict=True))
)
"""The type of a Part in an array and in the store."""


@dataclass(frozen=True, slots=True)
class Cell:
    """All samples of one method in one case, launch after launch."""

    key: CellKey
    features: Features
    parts: NDArray[Any]  # of type PART, by launch number
    rounds: NDArray[np.uint16]
    samples_s: NDArray[np.float32]

    def of_launch(self, launch: int) -> tuple[NDArray[np.uint16], NDArray[np.float32]]:
        """Return rounds and samples of one launch; both empty when it has no part in the cell."""
        (index,) = np.nonzero(self.parts["launch"] == launch)
        if not len(index):
            return self.rounds[:0], self.samples_s[:0]
        begin = int(self.parts["samples"][: index[0]].sum())
        here = slice(begin, begin + int(self.parts["samples"][index[0]]))
        return self.rounds[here], self.samples_s[here]


class Product(NamedTuple):
    """The parts of a product that a launch of spmv measured, for one cell: medians in seconds."""

    key: CellKey
    launch: int
    communication_s: float
    local_s: float


@dataclass(frozen=True, slots=True)
class Problem:
    """Something in a raw file that could not be used, and its place."""

    path: str
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}"
