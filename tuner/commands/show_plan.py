"""`switchpoint show plan`, and budgets: the planned launches of a race."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tuner.commands.options import one_system, tuned
from tuner.commands.printing.lines import say, say_json
from tuner.errors import SwitchpointError
from tuner.units import share_text

if TYPE_CHECKING:
    from tuner.campaign.plans import Budget
    from tuner.selection.worth import Worth


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

_SHOWN = 5  # layouts to measure next


def show_plan(file: Path | None, as_json: bool) -> None:
    """Print the output of `switchpoint show plan`; file: the plan, by default the newest."""
    from tuner.campaign import planned
    from tuner.commands.printing import campaign as showing
    from tuner.commands.printing.results import console

    campaign = planned.PlannedCampaign.load(file or planned.newest())
    done = planned.done(campaign.order)
    if as_json:
        say_json(campaign.document() | {"done": sorted(done)})
        return
    out = console()
    out.print(campaign.path, soft_wrap=True)
    showing.show_plan(campaign.order, done, out)


def show_next(
    system: str | None, database: Path, most_procs: float, most_node_hours: float, as_json: bool
) -> None:
    """Print unmeasured layouts within these limits, by expected gain per node."""
    from tuner.campaign.planning import screening_budget_s
    from tuner.commands.printing.grids import Columns
    from tuner.commands.printing.results import console
    from tuner.machine.systems import LOCAL
    from tuner.selection.worth import worths

    with tuned(database) as store:
        table = store.table(one_system(store, system))
    if table is None:
        raise SwitchpointError("there is no table to begin from; run `switchpoint tune`")
    node_hours = screening_budget_s(len({point.case[:2] for point in table.points})) / 3600
    most_nodes = most_node_hours / node_hours
    if table.provenance.name == LOCAL:
        most_nodes = min(most_nodes, 1)
    cores = table.provenance.known_cores
    found = worths(table.points, cores, most_procs, most_nodes, beyond=True)[:_SHOWN]
    if as_json:
        say_json([its._asdict() | {"node_hours": its.nodes * node_hours} for its in found])
        return
    if not found:
        limited = math.isfinite(min(most_procs, most_node_hours))
        where = "within these limits" if limited else "left to measure"
        say(f"no other layout is {where}")
        return
    grid = Columns("nodes x ppn", "expected to gain", "node-hours", "most in", "")
    for its in found:
        grid.add_row(
            *(f"{its.nodes} x {its.ppn}", share_text(its.loss), f"{its.nodes * node_hours:.2f}"),
            *(its.operation, _why(its)),
        )
    console().print(grid)


def _why(its: Worth) -> str:
    """Return what sets a layout apart, if anything."""
    if its.untried:
        return "untried: only powers of two were measured"
    return "beyond what was measured" if its.beyond else ""
