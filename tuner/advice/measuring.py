"""A race for just the cells that matter to one application, in the layouts of its calls."""

from __future__ import annotations

import shutil
import sys
from collections import defaultdict
from collections.abc import Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from signal import SIGINT

from tuner.advice.mix import ITEM_BYTES, Assessment
from tuner.advice.profile import Calls
from tuner.advice.running import Invocation, RunError, last_text, run
from tuner.advice.site import Site
from tuner.campaign.durations import SOAK_LIMIT_S
from tuner.campaign.launches import words_of
from tuner.campaign.order import PLANS, SOAKINGS, SoakJob, SoakOrder, begun_elsewhere, keep_finished
from tuner.campaign.plan_state import failed_methods
from tuner.campaign.plans import PlannedCase, RacePlan
from tuner.campaign.race_job import FAILED, Start, Starts
from tuner.campaign.reframe import CONFIGS, DispatchError
from tuner.campaign.soaking import SoakRequest
from tuner.domain.operations import NO_DATA, NO_DATA_BYTES
from tuner.files import one_line
from tuner.machine.directories import python_path, scratch_directory
from tuner.machine.mpi import LaunchCommand, last_line
from tuner.paths import new_campaign, only_here, results_directory, results_id
from tuner.rawfile import keeping

LEAST_S = 25.0
"""The shortest race, with its soaks."""

LATEST_S = 0.01
"""The most by which ranks arrive apart: by then all others wait, whatever the method."""

SIZES = 4
"""Most sizes of a case, those that may add most first."""


def cases_of(wanted: Sequence[Assessment], site: Site) -> list[PlannedCase]:
    """Return the cases of the calls to measure, on layouts that start, the most promising first.

    Ranks arrive apart as in the most promising calls of the case. Cases weigh as many seconds as
    they may add.
    """
    sizes: dict[tuple[str, int, int, int], list[int]] = defaultdict(list)
    first: dict[tuple[str, int, int, int], Calls] = {}
    weights: dict[tuple[str, int, int, int], float] = defaultdict(float)
    for each in wanted:
        shape = each.calls.shape
        key = shape.operation, shape.nodes, shape.ppn, shape.procs
        most = shape.most_bytes // ITEM_BYTES
        items = max(min(round(shape.bytes / ITEM_BYTES), most), 1)
        size = NO_DATA_BYTES if shape.operation in NO_DATA else items * ITEM_BYTES
        if size not in sizes[key]:
            if len(sizes[key]) == SIZES or not site.start(*key[1:]):
                continue
            sizes[key].append(size)
            first.setdefault(key, each.calls)
        weights[key] += each.more_s
    environment = site.kernels.mpi.name
    failed = failed_methods(site.system, environment) if sizes else {}
    return [
        PlannedCase(
            *(site.system, environment, operation, "blocks", _scale(nodes, procs), procs, ppn),
            sorted(its),
            failed.get(operation, []),
            oversubscribed=site.is_oversubscribed(first[operation, nodes, ppn, procs].shape),
            arrival_s=_arrival_s(first[operation, nodes, ppn, procs]),
            weight=weights[operation, nodes, ppn, procs],
        )
        for (operation, nodes, ppn, procs), its in sizes.items()
        if its
    ]


def _scale(nodes: int, procs: int) -> str:
    return f"{procs}_on_{nodes}_node{'s' * (nodes > 1)}"


def _arrival_s(calls: Calls) -> float:
    """Return the time in which random arrivals are on average as far apart as those of calls."""
    procs = calls.shape.procs
    return min((calls.spread_s or 0.0) * (procs + 1) / (procs - 1), LATEST_S)


def measure(cases: list[PlannedCase], site: Site, seconds: float) -> tuple[list[str], str]:
    """Race the cases for a time; return the systems of the results, and what failed, else "".

    Finished launches are kept whatever happens. A race of the cases that was interrupted goes on.

    Raises:
        KeyboardInterrupt, SystemExit: interrupted, or terminated.
    """
    with closing(_interrupted(site)) as plans:
        plan = next((its for its in plans if _covers(its, cases)), None)
        if plan is not None:
            return _race(plan, site, seconds)
    name = new_campaign()
    stage = str(scratch_directory() / f"advise-{name}-{results_id()}")
    plan = RacePlan(name, str(CONFIGS["local"]), 0.0, cases, stage=stage, in_job=True)
    plan.advises, plan.for_advice = site.app.name, True
    with only_here(name):
        return _race(plan, site, seconds)


def _race(plan: RacePlan, site: Site, seconds: float) -> tuple[list[str], str]:
    plan.budget_s, plan.spent_s = seconds, 0.0  # an interrupted start had another budget
    stage, file = Path(plan.stage), PLANS.path_of(plan.campaign).absolute()
    stage.mkdir(parents=True, exist_ok=True)
    PLANS.save(plan, file)
    place, swpbench = (site.system, site.kernels.mpi.name), site.kernels.swpbench.absolute()
    starts = Starts.of(file, plan, place, swpbench, partial(_start, site, plan.campaign))
    starts.save(stage / "starts.json")
    log, failure = stage / "race.log", ""
    try:
        with log.open("wb") as output:
            command = [sys.executable, "-m", "tuner.campaign.race_job", str(stage / "starts.json")]
            results = str(results_directory().absolute())
            start = Invocation(
                command, {"PYTHONPATH": python_path(), "SWITCHPOINT_RESULTS": results}
            )
            run(start, output, output, stage, at_kill=SIGINT)  # by which it keeps launches
    except RunError as error:
        lines = log.read_text(errors="replace").splitlines()
        said = [line.removeprefix(FAILED) for line in lines if line.startswith(FAILED)]
        failure = one_line("; ".join(said) or (lines[-1] if lines else str(error)))
    finally:
        keep_finished(plan.campaign, str(stage))
        shutil.rmtree(stage, ignore_errors=True)
    return _systems(plan), failure


def interrupted(site: Site) -> list[str]:
    """Return the systems of launches whose results earlier advice on the program has not used.

    Those that had finished are kept first.
    """
    systems: set[str] = set()
    for plan in _interrupted(site):
        keep_finished(plan.campaign, plan.stage)
        systems.update(_systems(plan))
    return sorted(systems)


def end(site: Site) -> None:
    """Record that advice on the program has used all results."""
    for plan in _interrupted(site):
        plan.advises = ""
        PLANS.save(plan, PLANS.path_of(plan.campaign))


def _interrupted(site: Site) -> Generator[RacePlan]:
    """Yield the plans of advice on the program that has not ended, the newest first.

    Those that another process has are left out; none gets one while it is looked at here.
    """
    for name in reversed(PLANS.campaigns()):
        if _is_interrupted(PLANS.load(PLANS.path_of(name)), site):
            with only_here(name) as is_free:
                plan = PLANS.load(PLANS.path_of(name))  # as the other process left it
                if is_free and _is_interrupted(plan, site):
                    yield plan


def _is_interrupted(plan: RacePlan, site: Site) -> bool:
    place = site.system, site.kernels.mpi.name
    is_of_program = plan.advises == site.app.name and plan.places == [place]
    return is_of_program and not begun_elsewhere(plan.campaign, [site.system])


def _covers(plan: RacePlan, cases: Sequence[PlannedCase]) -> bool:
    own = {_identity(case): {*case.sizes} for case in plan.cases}
    return all({*case.sizes} <= own.get(_identity(case), set()) for case in cases)


def _identity(case: PlannedCase) -> tuple[str, str, int, int]:
    return case.operation, case.pattern, case.procs, case.ppn


def _systems(plan: RacePlan) -> list[str]:
    return sorted({path.parent.parent.name for path in keeping.of_campaign(plan.campaign)})


def _start(site: Site, campaign: str, case: PlannedCase, options: Mapping[str, str]) -> Start:
    launch = site.start(-(-case.procs // case.ppn), case.ppn, case.procs)
    if launch is None:  # as the virtual nodes of an interrupted start are fewer now
        raise RunError(f"{case.procs} processes, {case.ppn} on each node, cannot be started")
    launch = replace(launch, env=launch.env | case.switched_off)
    return Start(launch, _words(launch, site, campaign, options), cwd=Path.cwd())


def _words(
    launch: LaunchCommand, site: Site, campaign: str, options: Mapping[str, str]
) -> list[str]:
    place, launcher = (site.system, site.kernels.mpi.name), Path(launch.argv_prefix[0]).name
    return words_of(options, campaign, place, launcher, site.cores)


def soak_request(site: Site, required: int, seconds: float) -> SoakRequest:
    """Return the request for soaks of the winners, which run as they were measured."""
    return SoakRequest(CONFIGS["local"], required, seconds, run=partial(_soak, site))


def _soak(site: Site, jobs: list[SoakJob]) -> None:
    """Run soaks, and keep the finished launches; one of a method that failed says so itself.

    Raise DispatchError: what kept launches from ending well, once all were made.
    """
    campaign, failures = new_campaign(), []
    stage = scratch_directory() / f"advise-{campaign}-{results_id()}"
    stage.mkdir(parents=True)
    layouts = {
        _soak_file(number, each): (job.nodes * job.ppn, job.ppn)
        for number, job in enumerate(jobs)
        for each in range(len(job.launches))
    }
    keeping.expect(stage, layouts)
    SOAKINGS.save(SoakOrder(jobs, str(stage)), SOAKINGS.path_of(campaign))
    try:
        for number, job in enumerate(jobs):
            launch = site.start(job.nodes, job.ppn, job.nodes * job.ppn)
            if launch is None:  # of another program
                continue
            for numbers in job.starts(range(len(job.launches))):
                words: list[str] = []
                for each in numbers:
                    out = (stage / _soak_file(number, each)).absolute()
                    own = {"--out": str(out), "--launch": str(each)}
                    own |= job.launches[each].options(each) | {"--yield": launch.yield_setting}
                    words += ["--then"] * bool(words) + _words(launch, site, campaign, own)
                start = [*launch.argv_prefix, str(site.kernels.swpbench.absolute()), "soak", *words]
                limit_s = sum(job.launches[each].budget_s + SOAK_LIMIT_S for each in numbers)
                failures += _failure(Invocation(start, launch.env), stage, limit_s)
    finally:
        keep_finished(campaign, str(stage))
        shutil.rmtree(stage, ignore_errors=True)
    if failures:
        raise DispatchError("; ".join(failures))


def _soak_file(job: int, launch: int) -> str:
    return f"soak-{job}-{launch}.jsonl"


def _failure(start: Invocation, stage: Path, limit_s: float) -> list[str]:
    """Run a command, and return its last line if it fails, else nothing."""
    with (stage / "soak.log").open("w+b") as log:
        try:
            run(start, log, log, limit_s=limit_s)  # where the program runs
        except RunError as error:
            return [one_line(last_line(last_text(log))) or str(error)]
    return []
