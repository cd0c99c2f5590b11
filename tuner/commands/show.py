"""`switchpoint show`: systems, campaigns, tables and sparse products; subcommands show more."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from tuner.commands.model import models
from tuner.commands.naming import Commands
from tuner.commands.options import (
    chosen_systems,
    database_option,
    json_option,
    system_option,
    tuned,
)
from tuner.commands.printing.lines import say_json
from tuner.commands.show_overlap import overlap
from tuner.commands.show_plan import plan
from tuner.commands.tables import no_table
from tuner.domain.operations import RULED_OPERATIONS

if TYPE_CHECKING:
    from tuner.domain.tables import Table


@click.group(cls=Commands, invoke_without_command=True, subcommand_metavar="[COMMAND [ARGS]...]")
@system_option("Show only this system: ID or unique substring.")
@click.option(
    "--op",
    "operation",
    metavar="OPERATION",
    type=click.Choice(RULED_OPERATIONS),
    help="Show only rules for this one.",
)
@database_option
@json_option
@click.pass_context
def show(
    context: click.Context, system: str | None, operation: str | None, database: Path, as_json: bool
) -> None:
    """Show systems, campaigns, tables with their switch points, and sparse products."""
    if context.invoked_subcommand:
        _hand_on_options(context, context.invoked_subcommand)
    else:
        _show_tables(system, operation, database, as_json)


for command in (models, overlap, plan):
    show.add_command(command)


def _hand_on_options(context: click.Context, name: str) -> None:
    """Give a subcommand the options that stand before its name. Raise UsageError for others."""
    known = {parameter.name for parameter in show.commands[name].params}
    given = {}
    for parameter in show.params:
        its = str(parameter.name)
        if context.get_parameter_source(its) is ParameterSource.COMMANDLINE:
            if its not in known:
                raise click.UsageError(f"`show {name}` has no {parameter.opts[0]}")
            given[its] = context.params[its]
    context.default_map = {name: given}


def _show_tables(system: str | None, operation: str | None, database: Path, as_json: bool) -> None:
    """Print the systems with their campaigns, tables and sparse products."""
    from tuner.campaign.order import partial_campaigns
    from tuner.commands.printing import results as showing
    from tuner.commands.printing.console import console
    from tuner.selection.products import last_measured
    from tuner.selection.tuning import omission

    with tuned(database) as store:
        names = chosen_systems(store, system)
        systems = store.systems()
        systems = systems[systems["system"].isin(names)]
        campaigns = store.campaigns()
        campaigns = campaigns[campaigns["system"].isin(names)]
        found = {name: store.table(name) for name in names}
        products = {name: last_measured(store, name) for name in names if not operation}
        launches = dict(zip(systems["system"], map(int, systems["launches"]), strict=True))
        omissions = {
            name: omission(store, table, launches[name]) for name, table in found.items() if table
        }
    tables = [_only(table, operation) for table in found.values() if table]
    if as_json:
        say_json(showing.results_document(systems, campaigns, tables, products.values()))
        return
    out = console()
    if not operation:
        showing.show_systems(systems, campaigns, out)
        for state in partial_campaigns().values():
            out.print(state)
    for table in tables:
        out.print()
        showing.show_table(table, omissions[table.provenance.system], out)
    for name in (name for name, table in found.items() if table is None):
        out.print()
        out.print(no_table(name, database))
    for name, rows in products.items():
        showing.show_products(name, rows, out)


def _only(table: Table, operation: str | None) -> Table:
    """Return the rules and points of one operation, or of all."""
    if operation is None:
        return table
    rules = [rule for rule in table.rules if rule.operation == operation]
    points = [point for point in table.points if point.case.operation == operation]
    return replace(table, rules=rules, points=points)
