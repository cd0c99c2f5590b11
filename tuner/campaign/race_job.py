"""The race of one job, which decides between its launches; checks/planned.py starts it.

Run in the job's directory: python -m tuner.campaign.race_job STARTS.
"""

import os
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tuner import atomic
from tuner.campaign import launches, screening
from tuner.campaign.durations import BEYOND_S
from tuner.campaign.launches import LaunchError
from tuner.campaign.order import PLANS, encoded, keep_finished
from tuner.campaign.plan_state import done, known, plan_next, remaining, spent_s
from tuner.campaign.plans import PlannedCase, RacePlan, Task, Turn
from tuner.campaign.standings import known_methods, unscreened_before
from tuner.errors import SwitchpointError
from tuner.files import read_json
from tuner.machine.mpi import LaunchCommand
from tuner.rawfile import keeping

ENDED = "race: ended"
"""The last line of a race that went well."""

FAILED = "race: failed: "
"""The beginning of the line that says why a race did not go well."""


@dataclass(frozen=True)
class Start:
    """The start of a case's launches: the launcher, and swpbench's options that all have."""

    launcher: LaunchCommand
    options: list[str]
    limit_s: float = BEYOND_S  # beyond a launch's budget
    cwd: Path | None = None  # of the launcher; by default that of the job


@dataclass(frozen=True)
class Starts:
    """The starts of a job's cases, by their numbers in the plan."""

    plan: Path
    system: str
    environment: str
    swpbench: Path
    of_case: dict[int, Start]
    probe: Start

    @classmethod
    def of(
        cls,
        path: Path,
        plan: RacePlan,
        place: tuple[str, str],
        swpbench: Path,
        start: Callable[[PlannedCase, Mapping[str, str]], Start],
    ) -> "Starts":
        """Return the starts of a place's cases; the probe has the most ranks with own cores.

        path: where the plan is. start: returns how a case starts with options of swpbench.
        """
        cases = {number: plan.cases[number] for number in plan.cases_of(place)}
        of_case = {number: start(case, case.options) for number, case in cases.items()}
        widest = max(cases.values(), key=lambda case: (not case.oversubscribed, case.procs))
        return cls(path, *place, swpbench, of_case, start(widest, screening.PROBE))

    def save(self, path: Path) -> None:
        """Write a file that `load` reads. Raise OrderError where a text is not UTF-8."""
        atomic.write(path, encoded(self, path))

    @classmethod
    def load(cls, path: Path) -> "Starts":
        """Read a file of `save`."""
        return read_json(path, cls, lambda kind, value: kind(value))


def race(starts: Starts) -> list[LaunchError]:
    """Make the launches that the plan lacks, plan the next from their results, until it is over.

    Finished launches are kept in the results, and the plan is saved, after each batch. A case with
    a failed launch races no more; return the failures. One start is made even without time, and
    so are the launches that the plan lacked at the beginning.

    Raises:
        RawFileError, StoreError, OSError: the results cannot be kept.
    """
    plan = PLANS.load(starts.plan)
    if not plan.advises:  # each start of advice has a time of its own
        plan.spent_s = max(plan.spent_s, spent_s(plan))
    started_s = time.monotonic() - plan.spent_s
    failures: dict[int, LaunchError] = {}
    _choose_methods(plan, starts)
    owed = {task.number for task in remaining(plan)}
    for turn in plan.turns_of((starts.system, starts.environment)):
        while tasks := _next(plan, turn.without(failures)):
            PLANS.save(plan, starts.plan)
            made: list[Path] = []
            for group in _groups(tasks, starts):
                plan.spent_s = time.monotonic() - started_s
                is_owed = group[0].number in owed
                if plan.left_s(turn) <= 0 and not is_owed and (made or done(plan)):
                    plan.drop(group)
                else:
                    made += _launch(plan, group, starts, failures)
            keeping.keep(made)
            plan.spent_s = time.monotonic() - started_s
            PLANS.save(plan, starts.plan)
    return list(failures.values())


def _choose_methods(plan: RacePlan, starts: Starts) -> None:
    """Restrict the cases that this campaign has not measured to the likeliest methods.

    If that fails, an error line says why; cases that no campaign measured screen all methods.
    """
    missing = remaining(plan)
    new = starts.of_case.keys() - {task.case for task in plan.tasks if task not in missing}
    new -= {number for number in new if plan.cases[number].offered}  # they were chosen before
    plan.drop([task for task in missing if task.case in new])  # planned before methods are known
    try:
        if new:
            procs = {plan.cases[number].procs for number in new}
            start = starts.probe
            specs = launches.specs(start.launcher, starts.swpbench, procs, start.cwd)
            before = known(plan)
            earlier = known_methods(plan, before), unscreened_before(plan, before)
            screening.choose(plan, new, specs, lambda: _probe(starts, plan), *earlier)
    except (SwitchpointError, OSError) as error:
        sys.stderr.write(f"race: methods are screened without a prediction: {error}\n")


def _probe(starts: Starts, plan: RacePlan) -> screening.Known:
    """Return what is known of the machine by a probe, which is not kept.

    It may take a tenth of the time beyond the limit of others, as slow networks need minutes.
    """
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as scratch:  # where rank 0 sees it too
        raw, start = Path(scratch) / "probe", starts.probe
        limit_s = start.limit_s + plan.budget_s / 10
        launches.run(
            *(start.launcher, starts.swpbench, start.options, raw, limit_s, start.cwd), "probe"
        )
        return screening.known_by(raw)


def _next(plan: RacePlan, turn: Turn) -> list[Task]:
    """Return the launches that a turn lacks, or else the next batch; none once it is over."""
    lacking = [task for task in remaining(plan) if task.case in turn.cases]
    return lacking or (plan.batches[-1].tasks[:] if plan_next(plan, turn) else [])


def _groups(tasks: Iterable[Task], starts: Starts) -> list[list[Task]]:
    """Return the launches that can share a start: of different cases, by the same launcher.

    A case thus meets as many states of the processes as it has launches. The order differs between
    groups, so that no case always comes after the same other one.
    """
    groups: dict[tuple[int, str], list[Task]] = defaultdict(list)
    launch_of = Counter[int]()
    for task in tasks:
        groups[launch_of[task.case], str(starts.of_case[task.case].launcher)].append(task)
        launch_of[task.case] += 1
    for group in groups.values():
        np.random.default_rng(group[0].number).shuffle(group)
    return list(groups.values())


def _launch(
    plan: RacePlan, tasks: Collection[Task], starts: Starts, failures: dict[int, LaunchError]
) -> list[Path]:
    """Make launches in one start, or in further ones after a failure; return their raw files.

    A failed launch is left out of the plan, as are further ones of its case.
    """
    left = [task for task in tasks if task.case not in failures]
    plan.leave_out([task for task in tasks if task.case in failures])
    made: list[Path] = []
    while left:
        try:
            made += _start(plan, left, starts)
            left = []
        except LaunchError as error:
            failed = [task for task in left if _wrong_layout(task)]  # all are, by a launcher
            failed = failed or [next((its for its in left if not _is_made(its)), left[-1])]
            plan.leave_out(failed)
            sys.stderr.write(error.output)
            for task in failed:
                Path(task.raw_name).unlink(missing_ok=True)  # it may be launched again
                what = plan.cases[task.case]
                failures[task.case] = LaunchError(f"{what} (launch {task.number}): {error}")
            others = [task for task in left if task not in failed]
            made += [Path(task.raw_name) for task in others if _is_made(task)]
            left = [task for task in others if not _is_made(task)]
    return made


def _is_made(task: Task) -> bool:
    return launches.is_usable(Path(task.raw_name)) and not _wrong_layout(task)


def _wrong_layout(task: Task) -> str:
    return keeping.wrong_layout(Path(task.raw_name))


def _start(plan: RacePlan, tasks: Sequence[Task], starts: Starts) -> list[Path]:
    """Make launches in one start, and return their raw files; the plan learns how long it takes."""
    cases = {task.raw_name: plan.cases[task.case] for task in tasks}
    keeping.expect(Path.cwd(), {name: (case.procs, case.ppn) for name, case in cases.items()})
    wanted = []
    for task in tasks:
        path = Path(task.raw_name).absolute()
        path.unlink(missing_ok=True)  # of a launch that was killed
        own = [word for option in task.options.items() for word in option]
        wanted.append(([*starts.of_case[task.case].options, *own], path))
    start = starts.of_case[tasks[0].case]
    timeout_s, started_s = sum(task.budget_s for task in tasks) + start.limit_s, time.monotonic()
    launches.run_each(start.launcher, starts.swpbench, wanted, timeout_s, start.cwd)
    for task in tasks:
        if wrong := _wrong_layout(task):
            raise LaunchError(wrong)
    measured_s = sum(keeping.end_record(path).seconds for _, path in wanted)
    start_s = (time.monotonic() - started_s - measured_s) / len(tasks)
    for task in tasks:
        plan.starts_s[task.case] = (plan.starts_s.get(task.case, start_s) + start_s) / 2
    return [path for _, path in wanted]


def _race_and_keep(starts: Starts) -> list[LaunchError]:
    """Run the race; keep its finished launches where it is interrupted: its command was killed."""
    try:
        return race(starts)
    except KeyboardInterrupt:
        keep_finished(PLANS.load(starts.plan).campaign, os.curdir)
        raise


def main() -> None:
    """Run the race; print why launches failed, and exit with 1 if any did."""
    try:
        failures = [str(error) for error in _race_and_keep(Starts.load(Path(sys.argv[1])))]
    except (SwitchpointError, OSError) as error:
        failures = [str(error)]
    for failure in failures:
        print(f"{FAILED}{failure}")
    if failures:
        raise SystemExit(1)
    print(ENDED)


if __name__ == "__main__":
    main()
