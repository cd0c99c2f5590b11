"""Races: campaigns whose launches follow from the results of those before, within a budget.

Where no queue forbids it, one job decides between its launches (tuner/campaign/race_job.py).
"""

from __future__ import annotations

import math
import os
import re
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console

from tuner.campaign import reframe
from tuner.campaign.batch import Batch
from tuner.campaign.durations import SESSION_S
from tuner.campaign.order import PLAN, PLANS, OrderError
from tuner.campaign.plan_state import (
    done,
    failed_methods,
    known,
    measured_s,
    plan_next,
    recorded_name,
    remaining,
    spent_s,
)
from tuner.campaign.planning import exhaustive_s, least_s, screening_budget_s
from tuner.campaign.plans import MOST_BATCHES, Budget, PlannedCase, RacePlan, default_sizes
from tuner.campaign.reframe import Call, DispatchError, Job, Session
from tuner.campaign.screening import MORE_RIVALS
from tuner.campaign.soaking import SoakRequest
from tuner.campaign.standings import known_methods, settled_before
from tuner.domain.effort import START_S
from tuner.domain.operations import sizes_for
from tuner.machine.nodes import launch as virtual
from tuner.rawfile import keeping
from tuner.units import counted, parse_sizes, share_text

_MOST_NAMED = 3  # methods of an operation in a line


@dataclass
class PlannedCampaign:
    """A race, and the file of its plan."""

    order: RacePlan
    path: Path
    failed: set[int] = field(default_factory=set)  # cases with a failed launch, in this run

    @classmethod
    def load(cls, path: Path) -> PlannedCampaign:
        """Return the campaign of a plan. Raise OrderError, OSError when it cannot be read."""
        return cls(PLANS.load(path), path)

    @classmethod
    def make(cls, call: Call, session: Session, budget: Budget, launches: int) -> PlannedCampaign:
        """Plan a race of at most so many launches of each size.

        Its cases are the jobs of a dry run of the call that can race; the call names the campaign.

        Raises:
            OrderError: the budget is too small, or a requested size is invalid.
        """
        name = call.variables["campaign"]
        names = {job.system: recorded_name(call.variables, job.system) for job in session.jobs}
        jobs = [job for job in session.wanted if job.races]
        places = {(names[job.system], job.environment) for job in jobs}
        failed = {place: failed_methods(*place) for place in places}
        cases = [
            PlannedCase(
                *(job.system, job.environment, job.operation, job.pattern, job.scale),
                *(job.procs, job.ppn),
                _sizes(job),
                failed[names[job.system], job.environment].get(job.operation, []),
                _methods(job),
                job.oversubscribed,
                cache=job.cache,
            )
            for job in jobs
        ]
        if not budget.share and budget.seconds < least_s(len(cases)):
            raise OrderError(
                f"{len(cases)} cases need at least {math.ceil(least_s(len(cases)))} s; give a "
                "larger --minutes or --budget, or fewer cases, as in `-- --name=^exchange`"
            )
        plan = RacePlan(
            *(name, str(call.config), budget.seconds or screening_budget_s(len(cases)), cases),
            *(call.variables, reframe.without_selection(call.selection), str(session.stage)),
            share=budget.share,
            launches=launches,
            most_batches=min((job.batches for job in jobs if job.batches), default=MOST_BATCHES),
            in_job=all(job.batches == 0 for job in jobs),
            ended=False,
            nodes=virtual.count(names),
            unraced=sorted({job.operation for job in session.wanted if not job.races}),
            skipped=_skipped(session),
        )
        return cls(plan, PLANS.path_of(name))

    @property
    def file(self) -> dict[str, str]:
        """Return the plan's file, as documents for programs name it."""
        return {"plan": str(self.path)}

    @property
    def config(self) -> Path:
        """Return ReFrame's configuration file."""
        return Path(self.order.config)

    @property
    def systems(self) -> list[str]:
        """Return ReFrame's systems on which it was begun."""
        return sorted({case.system for case in self.order.cases})

    @property
    def jobs(self) -> list[PlannedCase]:
        """Return the cases; each is a job."""
        return self.order.cases

    def resume(self) -> PlannedCampaign:
        """Return the campaign, with the launches that failures left out in its plan again."""
        self.order.resume()
        return self

    def document(self) -> dict[str, Any]:
        """Return the plan as a document for programs."""
        return asdict(self.order) | {"file": str(self.path)}

    def run(self, console: Console) -> list[Path]:
        """Measure the rest of the plan, and return all raw files.

        A case with a failed launch races no more in this run, and the others go on without it.

        Raises:
            DispatchError: jobs failed, or did not run; the finished launches are kept.
            KeyboardInterrupt, SystemExit: interrupted or terminated; finished launches are kept.
        """
        session, failures = None, []
        PLANS.save(self.order, self.path)  # which ReFrame reads
        if not self.order.batches:
            self._show_known(console)
        while remaining(self.order) or self._plan_next():
            session, batch = self._run_batch(console)
            try:
                batch.require_all(session)
                self._require_jobs(batch)
            except DispatchError as error:
                failures.append(str(error))
                if self.order.in_job:  # which went on without the case itself
                    break
                failures.append(self._leave_out_failed())
        if session and not failures:
            session.clear()
        self.order.ended = not failures
        PLANS.save(self.order, self.path)
        self._show_end(console)
        if failures:
            raise DispatchError("\n".join(failures))
        return keeping.of_campaign(self.order.campaign)

    def _require_jobs(self, batch: Batch) -> None:
        """Raise DispatchError when a place of a race had no job, as where its MPI is not loaded."""
        lacking = {" ".join(self.order.cases[task.case].place) for task in remaining(self.order)}
        if self.order.in_job and lacking:
            places = ", ".join(sorted(lacking))
            raise DispatchError(
                f"no job ran for {places}: load its modules, or see {batch.log}\n{batch}"
            )

    def _leave_out_failed(self) -> str:
        """Leave out the launches that a batch has not made, and their cases in the batches to come.

        Return which.
        """
        lacking = remaining(self.order)
        numbers = sorted({task.case for task in lacking})
        self.failed |= {*numbers}
        self.order.leave_out(lacking)
        PLANS.save(self.order, self.path)
        names = [str(self.order.cases[number]) for number in numbers]
        return f"left out of this run: {', '.join(names) or 'nothing'}"

    def soak_request(self, required: int) -> SoakRequest:
        """Return the request for soaks of the winners."""
        call = Call(self.config, self.order.options, self.order.variables)
        left_s = self.order.budget_s - self.order.spent_s
        return SoakRequest.of(call, self.systems, required, max(left_s, self.order.soaks_s))

    def _plan_next(self) -> bool:
        """Add the next batch to the plan, and return whether there is one."""
        turns = (turn.without(self.failed) for turn in self.order.turns)
        found = any(plan_next(self.order, turn) for turn in turns)
        PLANS.save(self.order, self.path)
        return found

    def _batch(self) -> Batch:
        """Return the last batch, and in a job those that follow; ReFrame runs what is missing.

        Kernels that an earlier session built are still there.
        """
        plan, path = self.order, self.path.absolute()
        check = "race" if plan.in_job else "planned"
        options = [f"--name=^{check}", *plan.options, "--keep-stage-files"]
        options += ["--dont-restage"] * os.access(plan.stage, os.R_OK)
        variables = {**plan.variables, "campaign": plan.campaign}
        call = Call(self.config, options, variables, {PLAN: str(path)}, "planned.py")
        planned, built = reframe.dry_run(call), len(plan.batches) > 1
        if plan.in_job:
            return Batch(
                *(plan.campaign, "race", call, planned, None),
                expected_s=plan.budget_s - plan.soaks_s - plan.spent_s,
                built=built,
                settled=self._settled,
            )
        missing = remaining(plan)
        numbers = {task.number for task in [*plan.batches[-1].tasks, *missing]}
        starts_s = sum(plan.start_s(task.case) for task in missing) + plan.slow * SESSION_S
        return Batch(
            *(plan.campaign, plan.batches[-1].stage, call, planned, len(numbers)),
            expected_s=starts_s + sum(task.budget_s for task in missing),
            built=built,
            others=len(done(plan) - numbers),
        )

    def _settled(self) -> str:
        """Return how much the race in a job had settled at its last decision."""
        progress = PLANS.load(self.path).batches[-1].progress
        return f", {progress}" if progress else ""

    def _show_known(self, console: Console) -> None:
        """Print what earlier campaigns have measured of the cases."""
        measured = known(self.order)
        cases = known_methods(self.order, measured)
        if not cases:
            return
        earlier = sorted({cell.key.campaign for cell, _ in measured.of_cases(self.order)})
        console.print(
            f"{len(cases)} of {len(self.order.cases)} cases are known by "
            f"{counted(len(earlier), 'earlier campaign')} (the last: {earlier[-1]}), whose "
            f"launches count: {settled_before(self.order, measured).progress}; open ones come "
            "first, then settled ones are checked",
            soft_wrap=True,
        )

    def _run_batch(self, console: Console) -> tuple[Session, Batch]:
        """Run the missing launches of the last batch, and add the time spent to the plan.

        The time is taken from the clock too, as a busy machine needs longer than launches record;
        that of jobs in a queue is not counted. Starts are not slow where one waited for its limit.
        """
        plan, started_s, took_s, passed = self.order, time.monotonic(), 0.0, False
        before, batch = keeping.of_campaign(plan.campaign), self._batch()
        spent_before_s = plan.spent_s
        try:
            session = batch.run(console)
            took_s = time.monotonic() - started_s - session.build_s - session.waited_s
            passed = not session.failures
        finally:
            plan = self.order = PLANS.load(self.path)  # a job plans its launches itself
            plan.spent_s = max(spent_s(plan), plan.spent_s, spent_before_s + took_s)
            made = {*keeping.of_campaign(plan.campaign)} - {*before}
            if passed and not plan.in_job:
                plan.slow = max(
                    (took_s - measured_s(made)) / (START_S * len(made) + SESSION_S), 1.0
                )
            PLANS.save(plan, self.path)
        return session, batch

    def _show_end(self, console: Console) -> None:
        """Print the time spent, and the methods that were not screened."""
        plan = self.order
        spent = f"spent {plan.spent_s:.0f} s of {plan.budget_s:.0f} s"
        whole_s = exhaustive_s(plan, known(plan))
        if plan.spent_s < whole_s:
            spent += (
                f"; measuring every method at every size would take an estimated {whole_s:.0f} s, "
                f"so this is {share_text(plan.spent_s / whole_s, 0)} of that"
            )
        console.print(spent)
        if its := [_named(*of) for of in plan.unscreened.items()]:
            console.print(
                f"not measured: {', '.join(its)}, which the models rank last; a further campaign "
                f"screens {MORE_RIVALS} more of a case, and `switchpoint show plan` prints the "
                "commands that measure all",
                soft_wrap=True,
            )


def _named(operation: str, methods: Sequence[str]) -> str:
    """Return methods in words; many are counted."""
    many = counted(len(methods), "method")
    return f"{operation} by {' '.join(methods) if len(methods) <= _MOST_NAMED else many}"


def _sizes(job: Job) -> list[int]:
    """Return the sizes asked for, or the default ones. Raise OrderError."""
    try:
        if job.sizes:
            return parse_sizes(sizes_for(job.operation, job.sizes))
        return default_sizes(job.operation, job.pattern)
    except ValueError as error:
        raise OrderError(f"--setvar=sizes: {error}") from error


def _methods(job: Job) -> list[str]:
    """Return the methods and families asked for; none stands for all."""
    return [] if job.methods == "all" else sorted({*re.findall(r"[^ ;]+", job.methods)})


def _skipped(session: Session) -> dict[str, str]:
    """Return why jobs are skipped, by their scales and systems."""
    reasons: dict[str, set[str]] = defaultdict(set)
    for job in session.jobs:
        if job.skipped_because:
            reasons[f"{job.scale} on {job.system}"].add(job.skipped_because)
    return {where: "; ".join(sorted(its)) for where, its in reasons.items()}


def newest() -> Path:
    """Return the newest plan. Raise OrderError when there is none."""
    if campaigns := PLANS.campaigns():
        return PLANS.path_of(campaigns[-1])
    place = PLANS.path_of("").parent
    raise OrderError(f"{place}: no plan; run `switchpoint run` first")
