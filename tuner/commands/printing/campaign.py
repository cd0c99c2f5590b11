"""Output of what a campaign will measure."""

from collections import Counter
from collections.abc import Collection
from pathlib import Path
from shlex import join, quote

from rich.console import Console

from tuner.campaign.campaigns import AnyCampaign
from tuner.campaign.fixed import FixedCampaign
from tuner.campaign.plan_state import done
from tuner.campaign.plans import RacePlan
from tuner.campaign.reframe import CONFIGS
from tuner.campaign.screening import MORE_RIVALS
from tuner.commands.printing.grids import Columns
from tuner.selection.next_step import checks_of, measuring_lines
from tuner.units import counted, size_text


def show_campaign(campaign: AnyCampaign, out: Console) -> None:
    """Print what a campaign measures, how long that takes, and how a plan is resumed."""
    if isinstance(campaign, FixedCampaign):
        _show_jobs(campaign, out)
        return
    show_plan(campaign.order, done(campaign.order), out)


def _show_jobs(campaign: FixedCampaign, out: Console) -> None:
    """Print the jobs of a campaign, what is skipped and why, and the expected time."""
    jobs = Columns("operation", "pattern", "scale", "processes", "environment", "launches")
    for job in campaign.jobs:
        jobs.add_row(
            *(job.operation, job.pattern, job.scale, str(job.procs)),
            *(f"{job.system} {job.environment}", str(job.launches)),
        )
    out.print(jobs)
    skipped = Counter(
        (job.scale, job.skipped_because) for job in campaign.planned.jobs if job.skipped_because
    )
    for (scale, reason), count in skipped.items():
        out.print(f"skipped: {scale} ({count} jobs): {reason}")
    out.print(
        f"{len(campaign.jobs)} jobs, {campaign.planned.launches} launches of at most "
        f"{campaign.order.budget_s:g} s; expected time: {campaign.expected_s / 60:.1f} min"
    )


def show_plan(plan: RacePlan, done: Collection[int], out: Console) -> None:
    """Print the cases, and each batch with its launches, those done, and its time limit."""
    most = f"at most {plan.budget_s:.0f} s"
    if plan.share:
        most = f"{plan.share:.3g} of the time to measure everything, " + (
            f"about {plan.budget_s:.0f} s" if plan.batches else "determined by the screening"
        )
    out.print(
        f"campaign {plan.campaign}: {len(plan.cases)} cases in {most}; {plan.spent_s:.0f} s spent"
    )
    cases = Columns("case", "operation", "pattern", "scale", "processes", "sizes", "methods")
    for number, case in enumerate(plan.cases):
        latest = [task for task in plan.tasks if task.case == number][-1:]
        methods = {method for task in latest for method in task.methods} or {*case.methods}
        cases.add_row(
            *(str(number), case.operation, case.pattern, case.scale, str(case.procs)),
            f"{size_text(case.sizes[0])} to {size_text(case.sizes[-1])}",
            " ".join(sorted(methods)) or "all",
        )
    out.print(cases)
    for where, reason in plan.skipped.items():
        out.print(f"skipped: {where}: {reason}")
    for operation in plan.unraced:
        check = "parameters" if operation == "probe" else operation
        out.print(
            f"not measured: {operation}, which does not race; "
            f"`{_measuring(plan, f'--name={check}')}` measures it",
            soft_wrap=True,
        )
    for operation, unscreened in plan.unscreened.items():
        selection = f"--name={checks_of({operation})}", f"--setvar=methods={';'.join(unscreened)}"
        further = f"to measure: `{_measuring(plan, *selection)}`"
        if plan.for_advice:
            further = f"`switchpoint advise` again screens {MORE_RIVALS} more of a case"
        out.print(
            f"not measured: {operation} by {counted(len(unscreened), 'method')}, which the models "
            f"rank last; {further}",
            soft_wrap=True,
        )
    batches = Columns("batch", "launches", "done", "sizes x methods", "at most")
    for batch in plan.batches:
        count = Counter(
            f"{len(race.sizes)} x {len(race.methods) or 'all'}"
            for task in batch.tasks
            for race in task.races
        ).most_common(3)
        finished = sum(task.number in done for task in batch.tasks)
        batches.add_row(
            *(batch.stage, str(len(batch.tasks)), str(finished)),
            ", ".join(text for text, _ in count),
            f"{sum(task.budget_s for task in batch.tasks):.0f} s",
        )
    if plan.batches:
        out.print(batches)
    out.print("each further batch is planned from the results of those before it")


def _measuring(plan: RacePlan, *selection: str) -> str:
    """Return the command that measures a selection where and how a plan measures its own."""
    environments = {environment for _, environment in plan.places}
    environment = environments.pop() if len(environments) == 1 else "all"
    config = Path(plan.config)
    site = None if config in CONFIGS.values() else config
    *_, command = measuring_lines(plan.places[0][0], environment, config=site)
    if name := plan.variables.get("system_name"):
        command += f" --anonymous-as {quote(name)}"
    return f"{command} -- {join([*plan.options, *selection])}"
