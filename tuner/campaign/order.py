"""Orders, which define what campaigns measure. An order is a JSON file named after its campaign.

An order and the raw files are the whole state of a campaign, so a killed campaign can be resumed.
There are three kinds: a fixed campaign, the plan of a race, and soaks of winners. A study has an
order as well, but keeps nothing.
"""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

import msgspec

from tuner import atomic
from tuner.campaign.durations import HANG_LIMIT_S
from tuner.campaign.plans import Entrants, RacePlan
from tuner.campaign.reframe import Call
from tuner.domain.operations import BY_ENVIRONMENT, COLLECTIVES
from tuner.errors import SwitchpointError
from tuner.files import read_json, shown
from tuner.machine.systems import FIXED_FILES, PLAN_FILES, other_machine
from tuner.paths import results_directory
from tuner.rawfile import keeping, reading
from tuner.units import counted

PLAN, SOAKS, STUDY = "SWITCHPOINT_PLAN", "SWITCHPOINT_SOAKS", "SWITCHPOINT_STUDY"
"""Environment variables that name the order for the checks `planned`, `winners` and `studied`."""

T = TypeVar("T")


class OrderError(SwitchpointError):
    """Error raised when an order cannot be made, found or read; the message says what to do."""


class FixedOrder(msgspec.Struct, frozen=True):
    """A campaign whose launches are all known before it starts."""

    campaign: str
    call: Call = msgspec.field(name="request")
    budget_s: float  # of a launch
    launches: int  # of all jobs
    stage: str  # where jobs run
    systems: list[str] = []  # of all jobs; none in files of older versions
    nodes: int = 0  # virtual ones; 0 where others measure, or an older version wrote the file

    @property
    def done(self) -> int:
        """Return the number of launches whose raw files are among the results."""
        return len(keeping.of_campaign(self.campaign))


@dataclass(frozen=True, slots=True)
class SoakLaunch:
    """The soaks of one launch, within a time; the samples of its races are executions."""

    budget_s: float
    races: list[Entrants] = field(default_factory=list)  # none in files of older versions
    operation: str = ""  # nor this

    @property
    def needs_own_start(self) -> bool:
        """Return whether its processes can take no other launch."""
        return any(name.startswith(BY_ENVIRONMENT) for race in self.races for name in race.methods)

    def options(self, number: int) -> dict[str, str]:
        """Return swpbench's options of the launch of that number in its job."""
        return {
            "--op": self.operation,
            "--pattern": soaked_pattern(self.operation),
            "--races": "|".join(map(str, self.races)),
            "--limit": f"{HANG_LIMIT_S:g}",
            "--budget": f"{self.budget_s:g}",
            "--seed": str(number + 1),
        }


def soaked_pattern(operation: str) -> str:
    """Return the pattern that a soak sends."""
    return "blocks" if operation in COLLECTIVES else "random:degree=6,seed=1"


@dataclass(frozen=True, slots=True)
class SoakJob:
    """The soaks of one job, on a layout."""

    system: str  # ReFrame's, as local:cpu
    environment: str
    nodes: int
    ppn: int
    launches: list[SoakLaunch]

    def starts(self, numbers: Sequence[int]) -> list[list[int]]:
        """Return these launches by starts: all in one, but for those that need their own."""
        own = [number for number in numbers if self.launches[number].needs_own_start]
        together = [number for number in numbers if number not in own]
        return [each for each in (together, *([number] for number in own)) if each]


@dataclass(frozen=True, slots=True)
class SoakOrder:
    """The soaks of one session of ReFrame, and where they run."""

    jobs: list[SoakJob]
    stage: str = ""


@dataclass(frozen=True, slots=True)
class StudyJob:
    """Launches of one operation with one pattern on a layout, each by swpbench's options."""

    operation: str
    pattern: str
    nodes: int
    ppn: int
    env: dict[str, str]  # of the ranks
    launches: list[dict[str, str]]


@dataclass(frozen=True, slots=True)
class StudyOrder:
    """The launches of a study on one system, and the directory that gets their raw files."""

    system: str  # ReFrame's, as local:cpu
    environment: str
    directory: str
    budget_s: float  # of a launch
    jobs: list[StudyJob]

    def raw_file(self, job: int, launch: int) -> Path:
        """Return the path of a launch's raw file."""
        return Path(self.directory) / f"{job}-{launch}.jsonl"


@dataclass(frozen=True)
class Orders(Generic[T]):
    """The files of one kind of order, in a directory of the results."""

    kind: type[T]
    what: str
    directory: str
    suffix: str

    def path_of(self, campaign: str) -> Path:
        """Return the path at which the order of a campaign is kept, if there is one."""
        return results_directory() / self.directory / f"{campaign}{self.suffix}"

    def campaigns(self) -> list[str]:
        """Return the campaigns that have an order, the oldest first."""
        paths = self.path_of("").parent.glob(f"*{self.suffix}")
        return sorted(path.name.removesuffix(self.suffix) for path in paths)

    def load(self, path: Path) -> T:
        """Read an order. Raise OrderError when the file is not one, OSError if it is unreadable."""
        try:
            return read_json(path, self.kind, lambda kind, value: kind(value))
        except ValueError as error:
            raise OrderError(
                f"{shown(path)}: not {self.what}: {error}; delete it, or restore it from a copy"
            ) from error

    def save(self, order: T, path: Path) -> None:
        """Write an order; a killed run leaves either the old one or the new one."""
        content = encoded(order, path)
        atomic.write(path, msgspec.json.format(content, indent=1) + b"\n")


def encoded(order: Any, path: Path) -> bytes:
    """Return the JSON of what is written to a path. Raise OrderError where JSON cannot hold it."""
    try:
        return msgspec.json.encode(order, enc_hook=str)
    except UnicodeEncodeError as error:
        what = "an option, a path or a variable"
        raise OrderError(f"{shown(path)}: {what} is not UTF-8: {error}") from error


FIXED = Orders(FixedOrder, "an order of a campaign", *FIXED_FILES)
PLANS = Orders(RacePlan, "a plan", *PLAN_FILES)
STUDIES = Orders(StudyOrder, "an order of a study", "logs", ".study.json")
SOAKINGS = Orders(SoakOrder, "an order of soaks", "logs", ".soaking.json")


def is_resumable(campaign: str) -> bool:
    """Return whether these results have the order of a campaign."""
    return any(orders.path_of(campaign).is_file() for orders in (PLANS, FIXED))


def partial_campaigns(*, only_readable: bool = False) -> dict[str, str]:
    """Return how much of each interrupted campaign is finished, the oldest first.

    Of one whose order cannot be read, return why, unless only others are wanted.
    """
    found = {}
    for orders, how_much in ((FIXED, _of_fixed), (PLANS, _of_planned)):
        for name in orders.campaigns():
            try:
                its = how_much(name)
            except (OrderError, OSError) as error:
                its = "" if only_readable else str(error)
            if its:
                found[name] = its
    return dict(sorted(found.items()))


def _of_fixed(campaign: str) -> str:
    """Return how much of a fixed campaign is finished, "" for none or all."""
    order = FIXED.load(FIXED.path_of(campaign))
    if not 0 < order.done < order.launches:
        return ""
    return state(campaign, order.done, order.launches) + _where(campaign, order.systems)


def _of_planned(campaign: str) -> str:
    """Return how much of a race is finished, "" if nothing is or it has ended."""
    done = len(keeping.of_campaign(campaign))
    if not done or (plan := PLANS.load(PLANS.path_of(campaign))).ended:
        return ""
    return state(campaign, done, None) + _where(campaign, (name for name, _ in plan.places))


def _where(campaign: str, systems: Iterable[str]) -> str:
    other = begun_elsewhere(campaign, systems)
    return f" on the machine where it began, {other}" if other else ""


def begun_elsewhere(campaign: str, systems: Iterable[str]) -> str:
    """Return which other machine has measured launches of a campaign, "" for none.

    `systems` are those on which ReFrame runs it. Homes and results are shared between machines.
    """
    of_machines = {path.parent: path for path in keeping.of_campaign(campaign)}
    headers = [reading.read_header(keeping.header_line(path)) for path in of_machines.values()]
    others = (
        other_machine(system, header.cpu_model, header.cores)
        for system in systems
        for header in headers
        if header
    )
    return next(filter(None, others), "")


def state(campaign: str, done: int, launches: int | None, resumed_by: str = "") -> str:
    """Return how much of a campaign is finished, and the command that measures the rest."""
    finished = f"{done} of " * (launches is not None)
    finished += counted(done if launches is None else launches, "launch", "launches")
    if launches is not None and done >= launches:
        return f"campaign {campaign} has all {finished}"
    command = resumed_by or f"switchpoint run --resume {campaign}"
    return f"campaign {campaign} is partial: {finished}; `{command}` measures the rest"


def keep_finished(campaign: str, stage: str) -> None:
    """Keep the raw files that the jobs of an order have finished.

    Every campaign is resumed and every batch ends in this way; then the rest is measured. A job
    that passed has copied its raw files to the results itself.
    """
    while os.access(stage, os.R_OK):  # another user's may lie in a closed directory
        finished = keeping.complete_of_campaign(Path(stage), campaign)
        try:
            keeping.keep(finished)
            return
        except FileNotFoundError:  # another process has kept them, and clears the stage
            if all(path.exists() for path in finished):
                raise
