"""`switchpoint show plan`, and budgets: the planned launches of a race."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tuner.commands.options import (
    FILE,
    database_option,
    duration,
    json_option,
    one_system,
    system_option,
    tuned,
    whole_number,
)
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

        found = re.fullmatch(r"([0-9]{1,6}(?:\.[0-9]{1,3})?)([smh%])", str(value))
        number = float(found[1]) if found else 0.0
        if not found or not number:
            self.fail(f"{value} is not a budget such as 90s, 10m, 1.5h or 15%", parameter, context)
        if found[2] == "%":
            return Budget(0.0, number / 100)
        return Budget(number * {"s": 1, "m": 60, "h": 3600}[found[2]])


BUDGET = _BudgetType()

_SHOWN = 5  # layouts to measure next


@click.command()
@click.argument("file", type=FILE, required=False)
@click.option("--next", "of_next", is_flag=True, help="Show the layouts to measure next instead.")
@system_option("With --next: ID or unique substring; required if there are several.")
@click.option(
    "--within", type=whole_number(2), metavar="N", help="With --next: of N processes at most."
)
@click.option(
    "--node-hours",
    type=duration(0.001),
    metavar="H",
    help="With --next: that take H node-hours at most.",
)
@database_option
@json_option
def plan(
    file: Path | None,
    of_next: bool,
    system: str | None,
    within: int | None,
    node_hours: float | None,
    database: Path,
    as_json: bool,
) -> None:
    """Show the launches of each batch of a race, and how many are done.

    FILE is the plan, by default the newest. With --next, the layouts to measure next are shown
    instead: untried ones, and those from which most is expected.
    """
    if of_next and file:
        raise click.UsageError("--next goes without a FILE")
    for option, value in (("system", system), ("within", within), ("node-hours", node_hours)):
        if value and not of_next:
            raise click.UsageError(f"--{option} goes with --next")
    if of_next:
        _show_next(system, database, within or math.inf, node_hours or math.inf, as_json)
    else:
        _show_plan(file, as_json)


def _show_plan(file: Path | None, as_json: bool) -> None:
    """Print a plan, by default the newest."""
    from tuner.campaign import plan_state, planned
    from tuner.commands.printing import campaign as showing
    from tuner.commands.printing.console import console

    campaign = planned.PlannedCampaign.load(file or planned.newest())
    done = plan_state.done(campaign.order)
    if as_json:
        its = {"done": sorted(done), "unscreened": campaign.order.unscreened}
        say_json(campaign.document() | its)
        return
    out = console()
    out.print(campaign.path, soft_wrap=True)
    showing.show_plan(campaign.order, done, out)


def _show_next(
    system: str | None, database: Path, most_procs: float, most_node_hours: float, as_json: bool
) -> None:
    """Print unmeasured layouts within these limits, by expected gain per node."""
    from tuner.campaign.planning import screening_budget_s
    from tuner.commands.printing.console import console
    from tuner.commands.printing.grids import Columns
    from tuner.machine.systems import is_one_machine, node_cores
    from tuner.selection.worth import worths

    with tuned(database) as store:
        table = store.table(one_system(store, system))
    if table is None:
        raise SwitchpointError("there is no table to begin from; run `switchpoint tune`")
    node_hours = screening_budget_s(len({point.case[:2] for point in table.points})) / 3600
    most_nodes = most_node_hours / node_hours
    of = table.provenance
    if is_one_machine(of.name, [point.case.layout.nodes for point in table.points]):
        most_nodes = min(most_nodes, 1)
    cores = node_cores(of.name, of.cpu_model, of.cores)
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
