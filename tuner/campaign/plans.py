"""The plan of a campaign within a budget: its cases, and the batches of launches so far.

tuner/campaign/order.py reads and writes it, tuner/campaign/planning.py makes it. The module does no
input or output.
"""

import math
from dataclasses import dataclass, field
from typing import NamedTuple

from tuner.selection.decisions import START_S


class Budget(NamedTuple):
    """Seconds, or a share of the time of measuring everything."""

    seconds: float
    share: float = 0.0


@dataclass(frozen=True, slots=True)
class PlannedCase:
    """A case to be tuned: an operation with a pattern on a layout, over sizes.

    Methods that failed their soak are not measured.
    """

    system: str  # ReFrame's, as local:cpu
    environment: str
    operation: str
    pattern: str
    scale: str
    procs: int
    ppn: int
    sizes: list[int]
    failed: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Racing:
    """Methods that race at sizes, with a number of samples; an empty list means all methods."""

    sizes: list[int]
    methods: list[str]
    samples: int


@dataclass(frozen=True, slots=True)
class Task:
    """One launch. `number` identifies it within its campaign."""

    number: int
    case: int
    races: list[Racing]
    budget_s: float

    @property
    def sizes(self) -> list[int]:
        """Return the sizes of all races."""
        return sorted(size for race in self.races for size in race.sizes)

    @property
    def methods(self) -> list[str]:
        """Return the methods of all races; none stands for all."""
        return sorted({method for race in self.races for method in race.methods})


@dataclass(frozen=True, slots=True)
class PlannedBatch:
    """Launches that are planned together, from the measurements before them."""

    stage: str
    tasks: list[Task]


@dataclass(slots=True)
class Plan:
    """A campaign as planned so far. `spent_s` is wall-clock time, with ReFrame's own work.

    With a share, `budget_s` is that share of the cost of measuring everything, as estimated from
    the measurements so far. `slow` is the ratio of the actual to the expected time of starts and
    sessions in the last batch.
    """

    campaign: str
    config: str
    budget_s: float
    cases: list[PlannedCase]
    variables: dict[str, str] = field(default_factory=dict)  # of the checks
    options: list[str] = field(default_factory=list)  # ReFrame's
    stage: str = ""  # where its jobs run
    batches: list[PlannedBatch] = field(default_factory=list)
    spent_s: float = 0.0
    share: float = 0.0
    slow: float = 1.0

    @property
    def start_s(self) -> float:
        """Return the expected time to start a launch."""
        return START_S * self.slow

    @property
    def tasks(self) -> list[Task]:
        """Return the launches of all batches."""
        return [task for batch in self.batches for task in batch.tasks]


def octaves(operation: str, pattern: str) -> list[int]:
    """Return the sizes: bytes of a message or block, or of an item; messages have many items."""
    last = 2048 if pattern.startswith("matrix:") else 131072
    return [8 << power for power in range(int(math.log2(last // 8)) + 1)]
