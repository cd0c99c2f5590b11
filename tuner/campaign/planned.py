"""Runs of a planned campaign: batch after batch as jobs of ReFrame, and the plan's file.

The plan's file and the raw files are the whole state, so a campaign that was killed can go on.
"""

from __future__ import annotations

import json
import math
import time
from collections import defaultdict
from collections.abc import Callable, Collection
from pathlib import Path

import msgspec
from rich.console import Console

from tuner import atomic
from tuner.campaign import reframe
from tuner.campaign.planning import anchors_s, exhaustive_s, least_s, next_batch
from tuner.campaign.plans import Budget, Plan, PlannedCase, Task, octaves
from tuner.campaign.races import Baseline
from tuner.campaign.reframe import Call, DispatchError, Session
from tuner.campaign.times import LINE_S, SESSION_S, START_S
from tuner.domain.operations import DEFAULT_METHODS, RULED_OPERATIONS
from tuner.domain.records import Cell
from tuner.errors import SwitchpointError
from tuner.files import read_bytes
from tuner.models import fitting, predicting
from tuner.models.predict import Times
from tuner.paths import database_path, new_campaign, results_directory
from tuner.rawfile import keeping
from tuner.rawfile.kinds import soak
from tuner.selection import soaks
from tuner.store.store import Store

RAW_NAME = "planned"


class PlanError(SwitchpointError):
    """Error of making, reading or running a plan; the message says why and what to do."""


def directory() -> Path:
    """Return the directory of plans."""
    return results_directory() / "plans"


def path_of(campaign: str) -> Path:
    """Return the path at which the plan of a campaign is kept, if there is one."""
    return directory() / f"{campaign}.json"


def newest() -> Path:
    """Return the plan that was made last. Raise PlanError when there is none."""
    plans = sorted(directory().glob("*.json"))
    if not plans:
        raise PlanError(f"{directory()}: no plan there; `switchpoint run --budget 10m` makes one")
    return plans[-1]


def load(path: Path) -> Plan:
    """Read a plan. Raise PlanError when the file is no plan, OSError when it cannot be read."""
    try:
        return msgspec.json.decode(read_bytes(path), type=Plan)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise PlanError(f"{path}: not a plan: {error}") from error


def save(plan: Plan, path: Path) -> None:
    """Write a plan; a killed run leaves the old one or the new one."""
    atomic.write(path, msgspec.json.format(msgspec.json.encode(plan), indent=1) + b"\n")


def make(config: Path, options: list[str], budget: Budget, variables: dict[str, str]) -> Path:
    """Plan a campaign over the jobs that ReFrame would run, and return the plan's file.

    Raises:
        DispatchError: nothing would run.
        PlanError: the budget is too small, or nothing can be tuned.
    """
    name = new_campaign()
    session = reframe.dry_run(Call(config, options, variables | {"campaign": name}))
    session.clear()
    failed = _failed()
    cases = [
        PlannedCase(
            *(job.system, job.environment, job.operation, job.pattern, job.scale),
            *(job.procs, job.ppn, octaves(job.operation, job.pattern)),
            failed.get(
                (variables.get("system_name", job.system), job.environment, job.operation), []
            ),
        )
        for job in session.wanted
        if job.operation in RULED_OPERATIONS
    ]
    if not cases:
        raise PlanError("nothing to plan: no check of an operation that tables have rules for")
    if not budget.share and budget.seconds < least_s(len(cases)):
        raise PlanError(
            f"{len(cases)} cases need at least {math.ceil(least_s(len(cases)))} s; give a larger "
            "--budget, or fewer cases, as in `-- --name=exchange`"
        )
    plan = Plan(
        *(name, str(config.absolute()), budget.seconds or anchors_s(len(cases)), cases),
        *(variables, reframe.without_selection(options), str(session.stage)),
        share=budget.share,
    )
    path = path_of(name)
    save(plan, path)
    return path


def _failed() -> dict[tuple[str, str, str], list[str]]:
    """Return the methods, other than defaults, that failed their soak.

    The keys are the system's name, the environment and the operation. Raises StoreError.
    """
    found: dict[tuple[str, str, str], list[str]] = defaultdict(list)
    if not database_path().is_file():
        return found
    with Store.open(database_path()) as store:
        for row in store.systems().to_dict("records"):
            for its in soaks.verdicts(soak.stored(store, str(row["system"]))):
                if its.failure and its.method != DEFAULT_METHODS[its.operation]:
                    place = str(row["name"]), str(row["environment"]), its.operation
                    found[place].append(its.method)
    return found


def done(plan: Plan) -> set[int]:
    """Return the numbers of the launches whose raw files are among the results."""
    files = keeping.of_campaign(plan.campaign)
    return {_number(path) for path in files if path.stem.startswith(RAW_NAME)}


def _number(path: Path) -> int:
    return int(path.stem.rpartition("-")[2])


def remaining(plan: Plan) -> list[Task]:
    """Return the planned launches that have not been made."""
    numbers = done(plan)
    return [task for task in plan.tasks if task.number not in numbers]


def run(path: Path, console: Console) -> list[Path]:
    """Run a plan to its end, from wherever it is, and return its raw files.

    Raises:
        DispatchError: a job failed; what it and others finished is kept.
        KeyboardInterrupt, SystemExit: interrupted; the finished launches are kept.
    """
    plan = load(path)
    session = None
    _keep_finished(plan)
    while True:
        if not remaining(plan):
            cells = measured(plan)
            batch = next_batch(plan, cells, baseline(cells))
            if batch is None:
                break
            plan.batches.append(batch)
            save(plan, path)
        session = _run_batch(plan, path, console)
    if session:
        session.clear()
    cells = measured(plan)
    _tell_left_out(plan, console)
    whole_s = exhaustive_s(plan, cells, baseline(cells))
    console.print(
        f"spent {plan.spent_s:.0f} s of {plan.budget_s:.0f} s; every method at every size is "
        f"estimated to take {whole_s:.0f} s, of which that is {plan.spent_s / whole_s:.0%}"
        if whole_s
        else f"spent {plan.spent_s:.0f} s of {plan.budget_s:.0f} s",
        highlight=False,
    )
    return keeping.of_campaign(plan.campaign)


def _tell_left_out(plan: Plan, console: Console) -> None:
    """Print the cases for which there was no time."""
    for number in plan.left_out:
        case = plan.cases[number]
        what = f"{case.operation} {case.pattern} on {case.procs} processes"
        console.print(f"left out: {what}: no time; give a larger --budget", highlight=False)


def _run_batch(plan: Plan, path: Path, console: Console) -> Session:
    """Make the missing launches of the last batch, as one session of ReFrame.

    What an earlier session has built is still there. The time spent is taken from the clock too, as
    a busy machine needs longer than the launches record.
    """
    variables = {**plan.variables, "campaign": plan.campaign}
    options = ["--name=^planned", *plan.options]
    options += ["--keep-stage-files", *["--dont-restage"] * Path(plan.stage).is_dir()]
    env = {reframe.PLAN: str(path)}
    request = Call(Path(plan.config), options, variables, env, "planned.py")
    log = results_directory() / "logs" / f"{plan.campaign}-{len(plan.batches)}.log"
    before, started_s = keeping.of_campaign(plan.campaign), time.monotonic()
    took_s = 0.0
    try:
        session = reframe.run(request, reframe.dry_run(request), log, _progress(plan, console))
        took_s = time.monotonic() - started_s - session.build_s
    finally:
        _keep_finished(plan)
        plan.spent_s = max(spent_s(plan), plan.spent_s + took_s)
        made = sorted({*keeping.of_campaign(plan.campaign)} - {*before})
        plan.slow = max((took_s - _seconds(made)) / (START_S * len(made) + SESSION_S), 1.0)
        save(plan, path)
    if session.failures:
        failures = "\n  ".join(session.failures)
        raise DispatchError(f"failed:\n  {failures}\nReFrame's output is in {log}")
    if missing := remaining(plan):
        raise DispatchError(f"{len(missing)} planned launches left no raw file; see {log}")
    return session


def spent_s(plan: Plan) -> float:
    """Return the seconds of the finished launches by their closing records, with their starts."""
    files = keeping.of_campaign(plan.campaign)
    return _seconds(files) + START_S * len(files) + SESSION_S * len(plan.batches)


def _seconds(files: Collection[Path]) -> float:
    """Return the seconds of launches by their closing records."""
    ends = (json.loads(path.read_bytes().splitlines()[-1]) for path in files)
    return float(sum(end["seconds"] for end in ends))


def cost_share(campaigns: Collection[str]) -> float | None:
    """Return the cost of planned campaigns over that of measuring everything; None if unplanned."""
    shares = []
    for path in map(path_of, sorted(campaigns)):
        plan = load(path) if path.is_file() else None
        if plan and plan.batches:
            cells = measured(plan)
            shares.append(spent_s(plan) / exhaustive_s(plan, cells, baseline(cells)))
    return sum(shares) / len(shares) if shares else None


def _keep_finished(plan: Plan) -> None:
    keeping.keep(keeping.complete_of_campaign(Path(plan.stage), plan.campaign))


def _progress(plan: Plan, console: Console) -> Callable[[], None]:
    """Return a function that prints the stage, its launches and the time spent now and then."""
    batch = plan.batches[-1]
    numbers = {task.number for task in batch.tasks}
    next_s = 0.0

    def tick() -> None:
        nonlocal next_s
        if time.monotonic() < next_s:
            return
        next_s = time.monotonic() + LINE_S
        finished = keeping.complete_of_campaign(Path(plan.stage), plan.campaign)
        count = len(({_number(path) for path in finished} | done(plan)) & numbers)
        what = f"{batch.stage}: {count} of {len(numbers)} launches"
        spent = f"{max(spent_s(plan), plan.spent_s):.0f} s of {plan.budget_s:.0f} s spent"
        console.print(f"{what}, {spent}" if count else f"{batch.stage}: building", highlight=False)

    return tick


def measured(plan: Plan) -> list[Cell]:
    """Return the cells of the plan's campaign, of all its systems."""
    if not plan.batches:
        return []
    with Store.open(database_path()) as store:
        campaigns = store.campaigns()
        systems = campaigns[campaigns["campaign"] == plan.campaign]["system"]
        return [
            cell
            for system in systems
            for cell in store.contents(str(system), campaign=plan.campaign)
        ]


def baseline(cells: list[Cell]) -> Baseline:
    """Return the predictions of the fitted model, if one system was measured and has parameters."""
    systems = {cell.key.system for cell in cells}
    known: dict[tuple[str, str, int, int, int], Times] = {}
    try:
        (system,) = systems
        with Store.open(database_path(), readonly=True) as store:
            model = fitting.fitted(store, system)
    except (ValueError, SwitchpointError):
        return lambda case, method, size: None

    def predicted_s(case: PlannedCase, method: str, size: int) -> float | None:
        key = case.operation, case.pattern, case.procs, case.ppn, size
        if key not in known:
            try:
                known[key] = predicting.predictor(model, predicting.PatternCase(*key[:4])).times(
                    size
                )
            except SwitchpointError:
                known[key] = {}
        time_s = known[key].get(method)
        return time_s if isinstance(time_s, float) and time_s > 0 else None

    return predicted_s
