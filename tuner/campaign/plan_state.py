"""The state of a race, from its plan, the store and the raw files among the results."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import NamedTuple

from tuner.campaign.durations import SESSION_S
from tuner.campaign.measured import Baseline, Measured, no_model
from tuner.campaign.order import PLANS
from tuner.campaign.planning import exhaustive_of_cases_s, next_batch
from tuner.campaign.plans import ALL, RAW_NAME, CaseKey, PlannedCase, RacePlan, Task, Turn
from tuner.domain.effort import START_S
from tuner.domain.records import Cell, Header
from tuner.errors import SwitchpointError
from tuner.machine.systems import of_this_machine
from tuner.models import fitting, predicting
from tuner.paths import database_path
from tuner.rawfile import keeping
from tuner.selection import soaks, tuning
from tuner.store.store import Store
from tuner.units import is_digits


def done(plan: RacePlan) -> set[int]:
    """Return the numbers of the launches whose raw files are among the results."""
    names = (path.stem.rpartition("-") for path in keeping.of_campaign(plan.campaign))
    return {int(number) for name, _, number in names if name == RAW_NAME and is_digits(number)}


def plan_next(plan: RacePlan, turn: Turn) -> bool:
    """Add a turn's next batch to the plan, and return whether there is one."""
    batch = next_batch(plan, turn, known(plan))
    if batch is not None:
        plan.batches.append(batch)
    return batch is not None


def remaining(plan: RacePlan) -> list[Task]:
    """Return the planned launches that have not been made."""
    numbers = done(plan)
    return [task for task in plan.tasks if task.number not in numbers]


def spent_s(plan: RacePlan) -> float:
    """Return the seconds of the finished launches by their closing records, with their starts."""
    numbers = done(plan)
    starts = (
        plan.starts_s.get(task.case, START_S) for task in plan.tasks if task.number in numbers
    )
    sessions_s = SESSION_S * (1 if plan.in_job else len(plan.batches))
    return measured_s(keeping.of_campaign(plan.campaign)) + sum(starts) + sessions_s


def measured_s(files: Collection[Path]) -> float:
    """Return the seconds of launches by their closing records."""
    return float(sum(keeping.end_record(path).seconds for path in files))


def cost_share(campaigns: Collection[str]) -> float | None:
    """Return planned campaigns' cost as a share of measuring everything; None if unplanned.

    What several of them raced is to be measured once.
    """
    cost_s = 0.0
    whole_s: dict[tuple[CaseKey, str], float] = defaultdict(float)
    for path in map(PLANS.path_of, sorted(campaigns)):
        if path.is_file() and (plan := PLANS.load(path)).batches:
            of_cases_s = exhaustive_of_cases_s(plan, known(plan))
            cost_s += spent_s(plan) if any(of_cases_s) else 0.0  # this store may have none of it
            for case, case_s in zip(plan.cases, of_cases_s, strict=True):
                key = case.key, case.cache
                whole_s[key] = max(whole_s[key], case_s)
    total_s = sum(whole_s.values())
    return cost_s / total_s if total_s else None


def known(plan: RacePlan) -> Measured:
    """Return all measurements on the plan's systems, as a table counts them.

    Before a place was measured, its system is taken to be the last one of that name there, unless
    it is of another machine.
    """
    path = database_path()
    if not path.is_file():
        return Measured()
    with Store.open(path) as store:
        places = _places(store, plan)
        cells: list[Cell] = []
        headers: dict[int, Header] = {}
        for system in places:
            headers |= tuning.headers(store, system)
            counts = store.campaigns(system).set_index("campaign")["launches"]
            earlier = counts.drop(plan.campaign, errors="ignore")
            cells += _earlier(path, system, frozenset(earlier.items()))
            cells += store.contents(system, campaign=plan.campaign)
    is_cold = any(case.cache == "cold" for case in plan.cases)
    cells = [cell for cell in cells if cell.key.case.cold == is_cold]
    campaigns = {cell.key.campaign for cell in cells} - {plan.campaign}
    made: dict[str, set[int]] = defaultdict(set)
    for cell in cells:
        made[cell.key.campaign].update(cell.parts["number"].tolist())
    plans = [
        _of_plan(path, path.stat().st_mtime_ns, frozenset(made[campaign]))
        for campaign in sorted(campaigns)
        if (path := PLANS.path_of(campaign)).is_file()
    ]
    considered = _considered(plans, headers.values())
    unscreened = _together(its.unscreened for its in plans)
    return Measured(cells, headers, places, considered, unscreened, _baseline(places))


class _Methods(NamedTuple):
    """The methods of a campaign's plan: those of launches it made, and those it did not screen."""

    campaign: str
    launched: dict[CaseKey, set[str]]
    unscreened: dict[CaseKey, set[str]]


def _considered(plans: Sequence[_Methods], headers: Iterable[Header]) -> dict[CaseKey, set[str]]:
    """Return the methods that launches of plans measured, or tried to.

    ALL comes with the names of those that the kernels had then.
    """
    had: dict[tuple[str, str], set[str]] = defaultdict(set)
    for header in headers:
        had[header.campaign, header.operation].update(header.methods.split())
    named = (
        {key: had[its.campaign, key[1]] for key, methods in its.launched.items() if ALL in methods}
        for its in plans
    )
    return _together([*(its.launched for its in plans), *named])


def _together(parts: Iterable[Mapping[CaseKey, set[str]]]) -> dict[CaseKey, set[str]]:
    found: dict[CaseKey, set[str]] = defaultdict(set)
    for part in parts:
        for key, methods in part.items():
            found[key] |= methods
    return found


@cache
def _of_plan(path: Path, changed_ns: int, made: frozenset[int]) -> _Methods:
    """Return the methods of a plan that was changed at a time and some launches of which are made.

    Launches that failed count: the first of each case that was left out.
    """
    plan = PLANS.load(path)
    failed = {task.case: task for task in reversed(plan.left_out)}
    tasks = [*(task for task in plan.tasks if task.number in made), *failed.values()]
    launches = [(plan.cases[task.case], task) for task in tasks]
    launched = ({case.key: {*task.methods} or {ALL, *case.offered}} for case, task in launches)
    unscreened = _together({case.key: case.unscreened} for case in plan.cases)
    return _Methods(plan.campaign, _together(launched), unscreened)


def _places(store: Store, plan: RacePlan) -> dict[str, tuple[str, str]]:
    """Return the places of a plan by the ids of their systems."""
    campaigns = store.campaigns()
    own = {*campaigns[campaigns["campaign"] == plan.campaign]["system"]}
    found: dict[str, tuple[str, str]] = {}
    for place in plan.places:
        here = {*of_this_machine(store.systems(), partition=place[0])["system"]}
        name = recorded_name(plan.variables, place[0])
        ids = store.named(name, place[1], with_virtual=True)
        last = [system for system in ids if system in here][-1:]
        found |= dict.fromkeys([system for system in ids if system in own] or last, place)
    return found


def recorded_name(variables: Mapping[str, str], system: str) -> str:
    """Return the name that raw files give to a system of ReFrame."""
    return variables.get("system_name") or system


@lru_cache(maxsize=4)  # a race decides often, and earlier campaigns are over
def _earlier(path: Path, system: str, launches: frozenset[tuple[Hashable, int]]) -> list[Cell]:
    """Return the cells of some campaigns of a system, each with so many launches."""
    campaigns = {campaign for campaign, _ in launches}
    if not campaigns:
        return []
    with Store.open(path, readonly=True) as store:
        return [cell for cell in store.contents(system) if cell.key.campaign in campaigns]


def _baseline(systems: Collection[str]) -> Baseline:
    """Return the predictions of the fitted model, if there is one system and it has parameters."""
    try:
        (system,) = systems
        with Store.open(database_path(), readonly=True) as store:
            model = fitting.fitted(store, system)
    except (ValueError, SwitchpointError):
        return no_model

    @cache
    def times_s(case: predicting.PatternCase, size: int) -> dict[str, float]:
        try:
            return predicting.predictor(model, case).known_s(size)
        except SwitchpointError:
            return {}

    def predicted_s(case: PlannedCase, method: str, size: int) -> float | None:
        predicted = predicting.PatternCase(case.operation, case.pattern, case.procs, case.ppn)
        time_s = times_s(predicted, size).get(method, 0.0)
        return time_s if time_s > 0 else None

    return predicted_s


def failed_methods(name: str, environment: str) -> dict[str, list[str]]:
    """Return the methods, other than defaults, that failed their soak with the last MPI library.

    The keys are operations. Raise StoreError.
    """
    found: dict[str, list[str]] = defaultdict(list)
    if not database_path().is_file():
        return found
    with Store.open(database_path()) as store:
        here = {*of_this_machine(store.systems())["system"]}
        for system in [its for its in store.named(name, environment) if its in here][-1:]:
            for operation, method in sorted(soaks.failed(tuning.outcomes(store, system))):
                found[operation].append(method)
    return found
