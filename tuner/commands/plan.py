"""`switchpoint plan`: what a campaign within a budget has done, and what it does next."""

from __future__ import annotations

import json
import re
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tuner.commands.options import FILE, json_option

if TYPE_CHECKING:
    from rich.console import Console

    from tuner.campaign.plans import Budget


class _BudgetType(click.ParamType):  # type: ignore[type-arg]
    """A number with s, m, h, or with % for a share of what measuring everything would take."""

    name = "budget"

    def convert(
        self, value: Any, parameter: click.Parameter | None, context: click.Context | None
    ) -> Budget:
        """Return the budget of a value; the number must be above 0."""
        from tuner.campaign.plans import Budget

        found = re.fullmatch(r"(\d{1,6}(?:\.\d{1,3})?)([smh%])", str(value))
        number = float(found[1]) if found else 0.0
        if not found or not number:
            self.fail(f"{value} is no budget, as 90s, 10m, 1.5h or 15%", parameter, context)
        if found[2] == "%":
            return Budget(0.0, number / 100)
        return Budget(number * {"s": 1, "m": 60, "h": 3600}[found[2]])


BUDGET = _BudgetType()


@click.command()
@click.argument("file", type=FILE, required=False)
@json_option
def plan(file: Path | None, as_json: bool) -> None:
    """Show the plan in FILE, by default the newest of `switchpoint run --budget`.

    For each step its launches, how many are done, and their methods and sizes.
    """
    from tuner.campaign import planned
    from tuner.commands.printing.plan import show_plan
    from tuner.commands.printing.results import console

    path = file or planned.newest()
    loaded = planned.load(path)
    done = planned.done(loaded)
    if as_json:
        click.echo(json.dumps(asdict(loaded) | {"file": str(path), "done": sorted(done)}, indent=1))
        return
    out = console()
    out.print(path, highlight=False, soft_wrap=True)
    show_plan(loaded, done, out)


def carry_out(
    path: Path, dry_run: bool, as_json: bool, out: Console, required: int
) -> dict[str, Any]:
    """Show a plan and run it to its end, with its soaks; with `dry_run`, only show it."""
    from tuner.campaign import planned
    from tuner.campaign.reframe import Call
    from tuner.campaign.soaking import Site
    from tuner.campaign.times import SOAKS_S
    from tuner.commands import workflow
    from tuner.commands.printing.plan import show_plan

    loaded = planned.load(path)
    if dry_run and as_json:
        click.echo(json.dumps(asdict(loaded) | {"file": str(path)}, indent=1))
        return {}
    show_plan(loaded, planned.done(loaded), out)
    again = f"switchpoint run --plan {path}"
    out.print(f"interrupted, it goes on by: {again}", highlight=False, soft_wrap=True)
    if dry_run:
        return {}
    raw_files = planned.run(path, out)
    ended = planned.load(path)
    request = Call(ended.config_file, ended.options, ended.variables)
    site = Site.of(request, ended.cases, required)
    soaks_s = max(ended.budget_s - ended.spent_s, SOAKS_S)
    return workflow.finish(ended.campaign, raw_files, ended.cases, site, out, soaks_s) | {
        "plan": str(path)
    }
