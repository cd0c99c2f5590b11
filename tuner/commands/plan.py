"""`switchpoint show plan`, and budgets: the planned launches of a race."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

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


def show_plan(file: Path | None, as_json: bool) -> None:
    """Print the output of `switchpoint show plan`; file: the plan, by default the newest."""
    from tuner.campaign import planned
    from tuner.commands.printing import campaign as showing
    from tuner.commands.printing.results import console

    campaign = planned.PlannedCampaign.load(file or planned.newest())
    done = planned.done(campaign.order)
    if as_json:
        click.echo(json.dumps(campaign.document() | {"done": sorted(done)}, indent=1))
        return
    out = console()
    out.print(campaign.path, soft_wrap=True)
    showing.show_plan(campaign.order, done, out)
