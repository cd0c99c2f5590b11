"""The table of a system: a decision at every measured size, and the rules made of them."""

import math
from dataclasses import dataclass, field
from typing import NamedTuple

from tuner.domain.cases import Case
from tuner.domain.operations import known_cores

FASTER, FASTER_TOGETHER, FASTER_HERE, DEFAULT, EQUAL, OPEN, UNSOAKED = STATUSES = (
    *("faster", "faster together", "faster in this allocation"),
    *("default", "equal", "open", "unsoaked"),
)
"""The statuses of a point.

- "faster": the method is shown to be faster than the default;
- "faster together": the same where ranks arrive together, but slower where they arrive apart;
- "faster in this allocation": the same, but other allocations of nodes may differ;
- "default": the default is shown to be faster than every other;
- "equal": no other can gain more than a few per cent, so the default stays;
- "open": the measurements do not decide; the default stays, or a method of other sizes or layouts;
- "unsoaked": the challenger is shown to be faster, but was not executed often enough yet.
"""

WON = (FASTER, FASTER_TOGETHER, FASTER_HERE)
"""The statuses by which a method takes the default's place."""


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


class Ratio(NamedTuple):
    """The time of a method / time of the default, with the ends of its interval where known.

    `error` is the standard error of its logarithm: None where the interval is unknown, of exact
    times, whose ends are the least and the greatest, and in tables written before it was kept.
    """

    method: str
    ratio: float
    low: float | None = None
    high: float | None = None
    error: float | None = None


class Point(NamedTuple):
    """The decision at one measured size of one degree class.

    `status` is one of STATUSES. `ratio` is time(challenger) / time(default) with its interval,
    which holds with the probability `level`, as those of `ratios` do; the challenger is the
    selected method or, where the default stays, the other that matters most. With the system and a
    method, `campaign` and `case` are the key of a cell.

    `may_lose` is the most that the default may lose, as a share of the best method's time, None
    where nothing bounds it. About `more_launches`, with samples of `more_s` seconds, would settle
    the point. An open point that is `filled` takes a method of other sizes or layouts. `staggered`
    is whether the challenger is shown to be faster where ranks arrive apart, too.

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
    level: float | None = None
    may_lose: float | None = None
    more_launches: int = 0
    more_s: float = 0.0
    filled: bool = False
    staggered: bool = False
    ratios: tuple[Ratio, ...] = ()

    @property
    def settled(self) -> bool:
        """Return whether the measurements at this size decide, and not those of others."""
        return self.status != OPEN and not self.filled

    @property
    def worst_loss(self) -> float:
        """Return the most that the default may lose, infinite where nothing bounds it."""
        return math.inf if self.may_lose is None else self.may_lose


class Rule(NamedTuple):
    """A line of the method table with the weakest of its points as its evidence.

    Filled points are no evidence. Where all others have one challenger, the evidence has the range
    of their ratios, with no `level`.

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
    def inferred(self) -> bool:
        """Return whether the rule is for layouts that were not measured."""
        its = self.evidence.case.layout
        return not (
            self.nodes_low <= its.nodes <= self.nodes_high
            and self.ppn_low <= its.ppn <= self.ppn_high
        )


@dataclass(frozen=True, slots=True)
class Provenance:
    """The origin of a table. The date is that of the newest launch.

    `disturbed` is the share of the measured parts that counts less, `refused` the same by cause,
    and `noisy` the share that others may have disturbed (tuner/selection/trust.py). `soaks` are
    those of all soaked methods; none was chosen where it passed fewer executions than required.
    `borrowed_for` is the system for which the table was borrowed, empty for its own.
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
    borrowed_for: str = ""

    @property
    def known_cores(self) -> int | None:
        """Return the cores of a node; None where they were not recorded."""
        return known_cores(self.name, self.cores)


@dataclass(frozen=True, slots=True)
class Table:
    """The rules of one system, in order of priority, and the points behind them."""

    provenance: Provenance
    rules: list[Rule]
    points: list[Point]
