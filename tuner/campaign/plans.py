"""The plan of a race: its cases, and the batches of launches so far.

tuner/campaign/order.py reads and writes it, tuner/campaign/planning.py makes it.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Self

from tuner.campaign.durations import BEYOND_S, SESSION_S, SOAKS_S
from tuner.domain.effort import SOAKS_SHARE, START_S
from tuner.domain.operations import NO_DATA, NO_DATA_BYTES, method_word
from tuner.selection import off

MOST_LAUNCHES = 24
"""Most launches of a size, unless others are asked for."""

FIRST_SHARE, LAST_SHARE = 0.43, 0.9
"""Shares of the time at which cases must end, and then those that oversubscribe cores."""

RACE_SHARE = 0.95
"""Share of the time before the winners are measured with ranks that arrive apart."""

MOST_BATCHES = 4
"""Most batches of jobs, where a site's configuration says nothing."""

MOST_JOB_S = 900.0
"""The time limit of a job with several launches, at most, in seconds."""

RAW_NAME = "planned"
"""The part of a raw file's name before the number of its launch."""

SCREENING = "screening"
"""The title of the first batch."""


class Budget(NamedTuple):
    """Seconds, or a share of the time of measuring everything."""

    seconds: float
    share: float = 0.0


CaseKey = tuple[tuple[str, str], str, str, int, int]
"""The place, operation, pattern as raw files have it, processes, and those on a node, of a case."""


@dataclass(frozen=True, slots=True)
class PlannedCase:
    """A case to be tuned: an operation with a pattern on a layout, over sizes.

    Methods that failed their soak are not measured. Where ranks arrive apart, that is by up to
    `arrival_s`; 0 stands for the time of an execution. Where time is short, cases of more weight
    come first.
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
    methods: list[str] = field(default_factory=list)  # none stands for all
    oversubscribed: bool = False
    arrival_s: float = 0.0
    weight: float = 1.0
    offered: list[str] = field(default_factory=list)  # all methods that may race, once known
    cache: str = ""  # swpbench's option; the default is warm

    def __str__(self) -> str:
        return f"{self.operation} {self.pattern} on {self.procs} processes"

    @property
    def place(self) -> tuple[str, str]:
        """Return the system and the environment."""
        return self.system, self.environment

    @property
    def key(self) -> CaseKey:
        """Return what is the same in all campaigns that measure the case."""
        return self.place, self.operation, _as_written(self.pattern), self.procs, self.ppn

    @property
    def unscreened(self) -> set[str]:
        """Return the methods that the models ranked behind those that were screened."""
        return {*self.offered} - {*self.methods} if self.methods else set()

    @property
    def options(self) -> dict[str, str]:
        """Return swpbench's options that all launches of the case share."""
        return {"--op": self.operation, "--pattern": self.pattern, "--cache": self.cache}

    @property
    def switched_off(self) -> dict[str, str]:
        """Return the environment variable that switches the failed methods off too."""
        return off.switched_off(self.failed)


def _as_written(pattern: str) -> str:
    """Return a pattern of a check as raw files have it: a matrix by its file, blocks with a root.

    Others are written in full. One that is not is another case, which begins anew.
    """
    if pattern.startswith("matrix:"):
        return f"{pattern.removesuffix('.mtx')}.mtx"
    return "blocks:root=0" if pattern == "blocks" else pattern


ALL = "all"
"""The word for all methods."""


@dataclass(frozen=True, slots=True)
class Entrants:
    """Methods that race at sizes, with a number of samples; an empty list means all methods.

    Where they are soaked, the samples are executions. Of the methods, `families` are a user's
    words: a name stands for all of that name.
    """

    sizes: list[int]
    methods: list[str]
    samples: int
    families: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        """Return the form of swpbench's option."""
        sizes = ",".join(map(str, self.sizes))
        words = [name if name in self.families else method_word(name) for name in self.methods]
        return f"{sizes} {self.samples} {' '.join(words) or ALL}"


@dataclass(frozen=True, slots=True)
class Task:
    """One launch. `number` identifies it within its campaign."""

    number: int
    case: int
    races: list[Entrants]
    budget_s: float
    proved: bool = False  # by an earlier launch: that the MPI library runs its algorithms by name
    staggered: bool = False  # ranks arrive apart
    arrival_s: float = 0.0  # see PlannedCase

    @property
    def sizes(self) -> list[int]:
        """Return the sizes of all races."""
        return sorted(size for race in self.races for size in race.sizes)

    @property
    def methods(self) -> list[str]:
        """Return the methods of all races; none stands for all."""
        return sorted({method for race in self.races for method in race.methods})

    @property
    def limit_s(self) -> float:
        """Return the time that a job's limit grants the launch."""
        return self.budget_s + BEYOND_S

    @property
    def raw_name(self) -> str:
        """Return the name of the launch's raw file."""
        return f"{RAW_NAME}-{self.number}.jsonl"

    @property
    def options(self) -> dict[str, str]:
        """Return swpbench's options that differ between launches; each has its own order."""
        arrival = f"{self.arrival_s:.3g}" if self.arrival_s > 0 else "staggered"
        return {
            "--launch": str(self.number),
            "--races": "|".join(map(str, self.races)),
            "--budget": f"{self.budget_s:g}",
            "--seed": str(self.number + 1),
            "--proof": "earlier" if self.proved else "here",
            "--arrival": arrival if self.staggered else "together",
        }


@dataclass(frozen=True, slots=True)
class PlannedBatch:
    """Launches that are planned together, and how much the measurements before them settled."""

    stage: str  # the title, by the key of plan files
    tasks: list[Task]
    sizes: int = 0  # of all cases
    settled: int = 0
    settled_here: int = 0  # of those, the ones that other allocations of nodes may not confirm

    @property
    def progress(self) -> str:
        """Return how much was settled, in words; empty where nothing was measured."""
        if not self.sizes:
            return ""
        here = f", {self.settled_here} of them in this allocation" if self.settled_here else ""
        return f"{self.settled} of {self.sizes} sizes settled{here}"


class Turn(NamedTuple):
    """The cases that race until a share of the plan's time is spent.

    Each begins with the screenings that its cases lack, and one may end with them. Where it is
    staggered, winners meet the default again, by ranks that arrive apart. Where it is spare time,
    sizes that earlier campaigns settled are checked once none is open.
    """

    cases: Collection[int]
    share: float
    staggered: bool = False
    spare: bool = False
    screens_only: bool = False

    def without(self, cases: Collection[int]) -> Self:
        """Return the turn of its other cases."""
        return self._replace(cases=[case for case in self.cases if case not in cases])


@dataclass(slots=True)
class RacePlan:
    """A race as planned so far. `spent_s` is wall-clock time, with ReFrame's own work.

    Where no queue forbids it, each system and environment has one job, which decides between its
    launches (`in_job`); elsewhere every batch is jobs of its own. With a share, `budget_s` is that
    share of the cost of measuring everything, as estimated from the measurements so far. `starts_s`
    are the measured times that launches of cases take beside what their raw files record. `slow` is
    the ratio of the actual to the expected time of starts and sessions in the last batch of jobs.
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
    launches: int = MOST_LAUNCHES  # of a size, at most
    most_batches: int = MOST_BATCHES  # of jobs
    in_job: bool = False
    starts_s: dict[int, float] = field(default_factory=dict)
    unraced: list[str] = field(default_factory=list)  # operations that were selected too
    skipped: dict[str, str] = field(default_factory=dict)  # where scales do not fit, and why
    ended: bool = True  # also where an older version wrote the plan
    nodes: int = 0  # virtual ones; 0 where others measure, or an older version wrote the plan
    advises: str = ""  # the program, while advice on it has not taken its results into account
    for_advice: bool = False  # its cases are a program's, which no check measures
    left_out: list[Task] = field(default_factory=list)  # by a failure, until the race is resumed

    def __post_init__(self) -> None:
        """Raise ValueError for what no plan is, as a damaged file may be."""
        if not self.cases:
            raise ValueError("no cases")
        if not all(case.sizes for case in self.cases):
            raise ValueError("a case has no sizes")
        if not all(0 <= task.case < len(self.cases) for task in [*self.tasks, *self.left_out]):
            raise ValueError("a launch has no case")

    @property
    def tasks(self) -> list[Task]:
        """Return the launches of all batches."""
        return [task for batch in self.batches for task in batch.tasks]

    @property
    def unscreened(self) -> dict[str, list[str]]:
        """Return the methods that were not screened in some case, by operation."""
        found: dict[str, set[str]] = defaultdict(set)
        for case in self.cases:
            found[case.operation] |= case.unscreened
        return {operation: sorted(methods) for operation, methods in found.items() if methods}

    def drop(self, tasks: Collection[Task]) -> None:
        """Drop launches for which the time is over."""
        numbers = {task.number for task in tasks}
        for batch in self.batches:
            batch.tasks[:] = [task for task in batch.tasks if task.number not in numbers]

    def leave_out(self, tasks: Collection[Task]) -> None:
        """Leave launches that failed, or were planned for a job that did, to a resumed race."""
        self.drop(tasks)
        self.left_out += tasks

    def resume(self) -> None:
        """Plan the launches that were left out again, in a batch and with time of their own."""
        if self.left_out:
            launches_s = (self.start_s(task.case) + task.budget_s for task in self.left_out)
            self.budget_s += self.session_s + sum(launches_s)
            self.most_batches += 1
            self.batches.append(PlannedBatch("resumed", self.left_out))
            self.left_out = []

    @property
    def session_s(self) -> float:
        """Return the expected time that a batch takes beside its launches."""
        return 0.0 if self.in_job else SESSION_S * self.slow

    def start_s(self, case: int) -> float:
        """Return the expected time that a launch takes beside what its raw file records."""
        return self.starts_s.get(case, START_S) * self.slow

    @property
    def places(self) -> list[tuple[str, str]]:
        """Return the systems and environments of the cases."""
        return sorted({case.place for case in self.cases})

    def cases_of(self, place: tuple[str, str]) -> list[int]:
        """Return the numbers of the cases of a system and environment."""
        return [number for number, case in enumerate(self.cases) if case.place == place]

    def turns_of(self, place: tuple[str, str]) -> list[Turn]:
        """Return the turns of a system and environment, which all have as much time.

        Oversubscribed cases come last, as they matter less, but not those of advice, which have
        weights; spare time goes to all that is open. A budget that is a share of the time of all
        cases needs to know them all.
        """
        before, each = self.places.index(place) / len(self.places), 1 / len(self.places)
        its = self.cases_of(place)
        last = [number for number in its if self.cases[number].oversubscribed]
        first = [number for number in its if not self.cases[number].oversubscribed]
        race = RACE_SHARE * each
        turns = [Turn(its, before + race, spare=True), Turn(its, before + each, staggered=True)]
        if first and last and not self.advises:
            turns = [
                Turn(first, before + FIRST_SHARE * race),
                Turn(last, before + LAST_SHARE * race),
                *turns,
            ]
        if self.share:
            turns = [Turn(its, before + race, screens_only=True), *turns]
        return turns

    @property
    def turns(self) -> list[Turn]:
        """Return the turns of all jobs, or one for all where every batch is jobs of its own."""
        if self.in_job:
            return [turn for place in self.places for turn in self.turns_of(place)]
        return [Turn(range(len(self.cases)), 1.0, spare=True)]

    @property
    def soaks_s(self) -> float:
        """Return the time kept for the soaks of the winners."""
        return max(SOAKS_S * self.slow, SOAKS_SHARE * self.budget_s)

    def left_s(self, turn: Turn) -> float:
        """Return the time that a turn has left."""
        return turn.share * (self.budget_s - self.soaks_s) - self.spent_s


def dealt(plan: RacePlan, tasks: Sequence[Task]) -> list[list[Task]]:
    """Return the launches of a batch by jobs, each of which has launches of several cases.

    A job has one launch of a case, so that the cases of a batch meet the same allocations, and each
    of them several. Its launches have the same processes, and leave out the same failed methods.
    """
    jobs: dict[tuple[object, ...], list[list[Task]]] = defaultdict(list)
    launch_of = Counter[int]()
    for task in tasks:
        case = plan.cases[task.case]
        alike = jobs[case.place, case.procs, case.ppn, tuple(case.failed), launch_of[task.case]]
        launch_of[task.case] += 1
        if not alike or sum(its.limit_s for its in alike[-1]) + task.limit_s > MOST_JOB_S:
            alike.append([])
        alike[-1].append(task)
    return [job for alike in jobs.values() for job in alike]


def default_sizes(operation: str, pattern: str) -> list[int]:
    """Return the sizes of a race unless others are asked for: powers of two from 8 bytes.

    For matrix patterns they are up to 2 KiB an item, as their messages have many.
    """
    if operation in NO_DATA:
        return [NO_DATA_BYTES]
    last = 2048 if pattern.startswith("matrix:") else 131072
    return [8 << power for power in range(int(math.log2(last // 8)) + 1)]
