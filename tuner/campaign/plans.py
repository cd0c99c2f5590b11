"""What a campaign within a budget is: its cases, its stages, and the launches planned so far.

Read and written by tuner/campaign/planned.py, made by tuner/campaign/planning.py. No input or
output.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

START_S = 0.5
"""Of a launch, beside its budget."""

SESSION_S = 6.0
"""ReFrame's own work for a stage."""

SOAKS_S = 15.0
"""For what won, to be executed very often, and ReFrame's work for that."""

LEAST_BUDGET_S = 0.3


class Budget(NamedTuple):
    """Seconds, or a share of what it would take to measure everything."""

    seconds: float
    share: float = 0.0


class Stage(NamedTuple):
    """A step of the campaign: launches of each case, and a share of the budget.

    Beside the default the best `rivals` take part, of which none is known to take longer than
    `reach` times the best.
    """

    launches: int
    share: float
    reach: float
    rivals: int | None = None


STAGES = {
    "anchors": Stage(1, 1, math.inf),
    "race 1": Stage(1, 1, 1.5),
    "race 2": Stage(3, 3, 1.25, 4),
    "race 3": Stage(3, 3, 1.1, 2),
}
"""What is done one after the other. What a stage spares of its share, the next ones have.

Race 2 puts sizes between those at which the best method differs. It and the last race give all
sizes six launches: five choose, the last confirms.
"""

REFINING = Stage(6, 1, 1.25, 2)
"""What follows, as often as there are sizes to put between others, and time for them."""


@dataclass(frozen=True, slots=True)
class PlannedCase:
    """What is tuned: an operation with a pattern on a layout, over sizes.

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
    """Methods that race at sizes, with so many samples; no methods are all."""

    sizes: list[int]
    methods: list[str]
    samples: int


@dataclass(frozen=True, slots=True)
class Task:
    """One launch. `number` tells the launches of a campaign apart."""

    number: int
    case: int
    races: list[Racing]
    budget_s: float

    @property
    def sizes(self) -> list[int]:
        """Of all races."""
        return sorted(size for race in self.races for size in race.sizes)

    @property
    def methods(self) -> list[str]:
        """Of all races; none for all."""
        return sorted({method for race in self.races for method in race.methods})


@dataclass(frozen=True, slots=True)
class Batch:
    """Launches that are planned together, from what was measured before them."""

    stage: str
    tasks: list[Task]


@dataclass(slots=True)
class Plan:
    """A campaign as planned so far. `spent_s` is of the clock, with ReFrame's own work.

    With a share, `budget_s` is that of what the measurements so far let everything cost. `slow` is
    how many times as long starts and sessions took as foreseen, in the last stage. The cases in
    `left_out` have no more time.
    """

    campaign: str
    config: str
    budget_s: float
    cases: list[PlannedCase]
    variables: dict[str, str] = field(default_factory=dict)  # of the checks
    options: list[str] = field(default_factory=list)  # ReFrame's
    stage: str = ""  # where its jobs run
    batches: list[Batch] = field(default_factory=list)
    spent_s: float = 0.0
    share: float = 0.0
    slow: float = 1.0
    left_out: list[int] = field(default_factory=list)

    @property
    def start_s(self) -> float:
        """What starting a launch is foreseen to take."""
        return START_S * self.slow

    @property
    def config_file(self) -> Path:
        """ReFrame's."""
        return Path(self.config)

    @property
    def tasks(self) -> list[Task]:
        """Of all batches."""
        return [task for batch in self.batches for task in batch.tasks]


def octaves(operation: str, pattern: str) -> list[int]:
    """The sizes of a case: bytes of a message or block, or of an item; messages have many items."""
    last = 2048 if pattern.startswith("matrix:") else 131072
    return [8 << power for power in range(int(math.log2(last // 8)) + 1)]
