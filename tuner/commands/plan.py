"""`switchpoint plan`: the finished and the planned launches of a campaign within a budget."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tuner.commands.options import FILE, json_option

if TYPE_CHECKING:
    from tuner.campaign.plans import Budget


class _BudgetType(click.ParamType):  # type: ignore[type-arg]
    """A number with s, m or h, or with % for a share of the time to measure everything."""

    name = "budget"

    def convert(
        self, value: Any, parameter: click.Parameter | None, context: click.Context | None
    ) -> Budget:
        """Return the budget that a value stands for; its number must be above 0."""
        from tuner.campaign.plans import Budget

        found = re.fullmatch(r"(\d{1,6}(?:\.\d{1,3})?)([smh%])", str(value))
        number = float(found[1]) if found else 0.0
        if not found or not number:
            self.fail(f"{value} is not a budget such as 90s, 10m, 1.5h or 15%", parameter, context)
        if found[2] == "%":
            return Budget(0.0, number / 100)
        return Budget(number * {"s": 1, "m": 60, "h": 3600}[found[2]])


BUDGET = _BudgetType()


@click.command()
@click.argument("file", type=FILE, required=False)
@json_option
def plan(file: Path | None, as_json: bool) -> None:
    """Show the plan in FILE, by default the newest of `switchpoint run --budget`.

    List the launches of each stage, how many are done, and their methods and sizes.
    """
    from tuner.campaign import planned
    from tuner.commands.printing.campaign import show_plan
    from tuner.commands.printing.results import console

    campaign = planned.PlannedCampaign.load(file or planned.newest())
    done = planned.done(campaign.order)
    if as_json:
        click.echo(json.dumps(campaign.document() | {"done": sorted(done)}, indent=1))
        return
    out = console()
    out.print(campaign.path, soft_wrap=True)
    show_plan(campaign.order, done, out)
