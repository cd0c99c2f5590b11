"""The table of a system: a decision at every measured size, and the rules made of them."""

from dataclasses import dataclass, field
from typing import NamedTuple

from tuner.domain.cases import Case

UNSOAKED = "unsoaked"
"""The status of a point whose winner still has to pass its soak."""


class SoakedAt(NamedTuple):
    """The executions of a method that passed on one layout at one size."""

    nodes: int
    ppn: int
    size_bytes: int
    executions: int


@dataclass(frozen=True, slots=True)
class Soaked:
    """The result of all soaks of a method: executions that passed, or why it failed."""

    operation: str
    method: str
    executions: int
    failure: str
    places: list[SoakedAt] = field(default_factory=list)


class Point(NamedTuple):
    """The decision at one measured size of one degree class.

    `ratio` is time(challenger) / time(default) with its interval; the challenger is the selected
    method or, where the default stays, the best of the others. With the system and a method,
    `campaign` and `case` are the key of a cell.

    `status` is the reason for the method: "faster", it was shown to be faster; "default", it was
    shown to be faster than every other; "tie", nothing was shown; "undecided", there are too few
    launches to show anything; "unsoaked", the challenger is shown to be faster, but was not
    executed very often yet.

    `ratios` are those of all other methods that share launches with the default, by name: choices
    between measured layouts follow from them.
    """

    campaign: str
    case: Case
    mmax: int
    mavg: float
    method: str
    status: str
    challenger: str | None
    ratio: float | None
    ratio_low: float | None
    ratio_high: float | None
    launches: int
    ratios: tuple[tuple[str, float], ...] = ()


class Rule(NamedTuple):
    """A line of the method table with the weakest of its points as its evidence.

    Intervals include both ends; None is unbounded. A rule holds for one measured layout, or for
    some between measured ones.
    """

    operation: str
    nodes_low: int
    nodes_high: int
    ppn_low: int
    ppn_high: int
    mmax_low: int | None
    mmax_high: int | None
    mavg_low: float | None
    mavg_high: float | None
    bytes_low: int | None
    bytes_high: int | None
    method: str
    evidence: Point

    @property
    def interpolated(self) -> bool:
        """Return whether the rule is for layouts that were not measured."""
        its = self.evidence.case.layout
        return not (
            self.nodes_low <= its.nodes <= self.nodes_high
            and self.ppn_low <= its.ppn <= self.ppn_high
        )


@dataclass(frozen=True, slots=True)
class Provenance:
    """The origin of a table. The date is that of the newest launch.

    `disturbed` is the share of the measured parts that does not count, `refused` the same by cause,
    and `noisy` the share that counts with wider intervals (tuner/selection/trust.py). `soaks` are
    those of all soaked methods; none was chosen where it passed fewer executions than required.
    """

    system: str
    name: str
    environment: str
    mpi_library: str
    mpi_standard: str
    compiler: str
    cpu_model: str
    cores: int
    campaigns: list[str]
    launches: int
    samples: int
    commit: str
    date: str
    version: str
    disturbed: float = 0.0
    refused: dict[str, float] = field(default_factory=dict)
    noisy: float = 0.0
    soaks: list[Soaked] = field(default_factory=list)
    required_executions: int = 0


@dataclass(frozen=True, slots=True)
class Table:
    """The rules of one system, in order of priority, and the points behind them."""

    provenance: Provenance
    rules: list[Rule]
    points: list[Point]
