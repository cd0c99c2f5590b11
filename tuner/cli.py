"""The command `switchpoint`: each subcommand reads its options and calls one part of the tuner.

What a subcommand needs is imported when it runs, so that every one starts fast.
"""

from __future__ import annotations

import json
from contextlib import nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tuner import __version__
from tuner.browsing import html, require_store, serve, serve_somewhere, tuned
from tuner.commands.compare import compare
from tuner.commands.guidelines import guidelines
from tuner.commands.matrix import matrix
from tuner.commands.model import fit, predict, show_models, validate
from tuner.commands.network import network
from tuner.commands.nodes import nodes
from tuner.commands.options import (
    FILE,
    database_option,
    json_option,
    one_system,
    require_defaults,
    require_soak_option,
    system_option,
    systems_of,
)
from tuner.commands.overlap import show_overlap
from tuner.commands.plan import BUDGET, carry_out, plan
from tuner.commands.regret import regret
from tuner.commands.report import report
from tuner.commands.site import site
from tuner.commands.soak import soak
from tuner.commands.study import study
from tuner.dispatch import CHECKS
from tuner.errors import SwitchpointError
from tuner.export import FORMS

if TYPE_CHECKING:
    from rich.console import Console

    from tuner import workflow
    from tuner.planning import Budget
    from tuner.records import Table
    from tuner.store import Store


# Of this machine: as it is, and as several virtual nodes.
THIS_MACHINE = CHECKS / "config" / "local.py"
SYSTEMS = {"local": THIS_MACHINE, "nodes": CHECKS / "config" / "nodes.py"}
RESUMING = ("resume", "plan_file", "dry_run", "required_executions", "as_json")
"""The options of `run` that a campaign has not of its own."""


class _Commands(click.Group):
    """Shows an expected error as one line and exits with 1."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise
        except SwitchpointError as error:
            raise click.ClickException(str(error)) from error
        except OSError as error:
            where = f"{error.filename}: " if error.filename else ""
            raise click.ClickException(f"{where}{error.strerror or error}") from error


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="switchpoint")
def main() -> None:
    """Measure MPI exchange methods, choose the fastest, and hand the choice to applications."""


@main.command()
@click.option(
    "--config",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="The system's ReFrame configuration; otherwise that of --system.",
)
@click.option(
    "--system",
    type=click.Choice(list(SYSTEMS)),
    help="This machine as it is, local, or as virtual nodes; those that are up, else four at "
    "1 Gbit/s that end with the run.  [default: local]",
)
@click.option(
    "--launches",
    type=click.IntRange(min=1),
    default=6,
    show_default=True,
    help="Launches of each case: five choose a method, one confirms it.",
)
@click.option(
    "--minutes",
    type=click.FloatRange(min=0.1),
    default=4.0,
    show_default=True,
    help="Time for the campaign, which the launches share.",
)
@click.option(
    "--budget",
    metavar="BUDGET",
    type=BUDGET,
    help="Plan what is worth measuring within this time, as 10m, or this share of the time that "
    "measuring everything would take, as 15%, in the place of --launches and --minutes.",
)
@click.option(
    "--plan",
    "plan_file",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Carry out this plan of an earlier --budget, from where it is.",
)
@click.option(
    "--environment",
    metavar="NAME",
    help="The programming environment to measure, or 'all'; on this machine by default the MPI "
    "that mpicc on the path is, elsewhere all.",
)
@click.option(
    "--anonymous-as",
    metavar="NAME",
    help="Leave host names out of the raw files, and call the system NAME.",
)
@click.option("--dry-run", is_flag=True, help="Print what would run, and the expected time.")
@click.option("--resume", metavar="CAMPAIGN", help="Measure what a partial campaign lacks.")
@require_soak_option
@json_option
@click.argument("reframe_options", nargs=-1, type=click.UNPROCESSED)
@click.pass_context
def run(
    context: click.Context,
    config: Path | None,
    system: str | None,
    launches: int,
    minutes: float,
    budget: Budget | None,
    plan_file: Path | None,
    environment: str | None,
    anonymous_as: str | None,
    dry_run: bool,
    resume: str | None,
    required_executions: int | None,
    as_json: bool,
    reframe_options: tuple[str, ...],
) -> None:
    """Measure a campaign, soak what wins, choose, export the tables, and try them in a program.

    REFRAME_OPTIONS go to ReFrame, to select checks for example: `switchpoint run -- -n exchange`.
    Where they select none, the checks with the tag tuning run.
    On a terminal the dashboard starts at the end.
    """
    from tuner import orders, planned, tuning, workflow
    from tuner.nodes import namespaces
    from tuner.show.results import console

    # JSON has standard output for itself.
    out = console(stderr=as_json)
    required = tuning.required(required_executions)
    if config is not None and system is not None:
        raise click.UsageError("--config and --system both name a system: give one")
    if resume and planned.path_of(resume).is_file():
        plan_file = planned.path_of(resume)
    order = orders.read(resume) if resume and not plan_file else None
    if order is not None or plan_file is not None:
        require_defaults(context, but=RESUMING)
        if plan_file is not None:
            config = planned.load(plan_file).config_file
        elif order is not None:
            config = order.request.config
        system = "nodes" if config == SYSTEMS["nodes"] else None
    elif environment is None and config is None:
        environment = workflow.default_environment(out)
    selection = [] if environment in (None, "all") else [f"--prgenv=^{environment}$"]
    variables = {"anonymous": "True", "system_name": anonymous_as} if anonymous_as else {}
    options = [*selection, *workflow.selecting(reframe_options)]
    with namespaces.available() if system == "nodes" else nullcontext():
        config = config or SYSTEMS[system or "local"]
        if budget is not None:
            plan_file = planned.make(config, options, budget, variables)
        if plan_file is not None:
            results = carry_out(plan_file, dry_run, as_json, out, required)
        else:
            if order is not None:
                campaign = workflow.resume(order)
            else:
                campaign = workflow.plan(config, options, launches, minutes, variables)
            results = _measure(campaign, dry_run, as_json, out, required)
    if dry_run:
        return
    if system == "nodes" and namespaces.find(namespaces.name_meant()) is None:
        out.print("the virtual nodes ended with the run; `switchpoint nodes up` makes others")
    if as_json:
        click.echo(json.dumps(results, indent=1))
    elif out.is_terminal:
        serve_somewhere(context)


def _measure(
    campaign: workflow.Campaign, dry_run: bool, as_json: bool, out: Console, required: int
) -> dict[str, Any]:
    """Shows a campaign and runs it; a dry run only shows it."""
    from tuner import workflow

    if dry_run and as_json:
        click.echo(json.dumps(workflow.plan_document(campaign), indent=1))
        return {}
    workflow.show_plan(campaign, out)
    return {} if dry_run else workflow.run(campaign, out, required)


@main.command()
@click.argument("sources", nargs=-1, type=click.Path(path_type=Path, exists=True))
@database_option
@json_option
def ingest(sources: tuple[Path, ...], database: Path, as_json: bool) -> None:
    """Bring raw files into the store.

    SOURCES are raw files, or directories with such below; without any, all of the results but the
    committed sample. What is there already stays as it is. Lines that cannot be used are told with
    file and line, and the rest is ingested.
    """
    from tuner.ingest import ingest as bring_in
    from tuner.rawfiles import of_results

    report = bring_in(database, list(sources) or of_results())
    if as_json:
        click.echo(json.dumps({**asdict(report), "database": str(database)}, indent=1))
        return
    for problem in report.problems:
        click.echo(f"warning: {problem}", err=True)
    click.echo(
        f"{database}: {report.launches} launches with {report.samples} samples from "
        f"{report.files} files, {report.unchanged} of them there already, "
        f"{len(report.problems)} problems"
    )


@main.command()
@system_option("Tune only this system; any unambiguous part of its id.")
@click.option(
    "--campaign",
    "campaigns",
    multiple=True,
    metavar="NAME",
    help="Use only this campaign; may be repeated.",
)
@require_soak_option
@database_option
@json_option
def tune(
    system: str | None,
    campaigns: tuple[str, ...],
    required_executions: int | None,
    database: Path,
    as_json: bool,
) -> None:
    """Choose the methods of every system and store its table."""
    from tuner.export import table_document
    from tuner.show.results import console, show_table
    from tuner.store import Store
    from tuner.tuning import tune as make_table

    require_store(database)
    with Store.open(database) as store:
        names = [one_system(store, system)] if system else systems_of(store)
        tables = [
            make_table(store, name, list(campaigns) or None, required_executions) for name in names
        ]
    if as_json:
        click.echo(json.dumps([table_document(table) for table in tables], indent=1))
        return
    out = console()
    for table in tables:
        show_table(table, 0, out)


@main.command()
@system_option("The system; needed when there are several. Any unambiguous part of its id.")
@click.option("--format", "form", type=click.Choice(FORMS), default="table", help="The form.")
@click.option("--output", type=FILE, help="Write this file; otherwise standard output.")
@database_option
def export(system: str | None, form: str, output: Path | None, database: Path) -> None:
    """Write a system's table: for the library, as a C header, as JSON, or for an MPI library."""
    from tuner import export as exporting
    from tuner.fitting import last_fitted

    with tuned(database) as store:
        table = _table(store, one_system(store, system))
        model = last_fitted(store, table.provenance.system)
    if output is None:
        click.echo(exporting.export(table, form, model), nl=False)
        return
    exporting.write(table, form, output, model)
    click.echo(f"{output}: {len(table.rules)} rules of {table.provenance.system}")


@main.command()
@click.argument("what", type=click.Choice(["models", "overlap"]), required=False)
@system_option("Show only this system; any unambiguous part of its id.")
@database_option
@json_option
def show(what: str | None, system: str | None, database: Path, as_json: bool) -> None:
    """Show systems, campaigns, tables with their switch points, and sparse products.

    `show models`: the fitted parameters with their intervals, and the share of measured cases
    that they predict within 15 %. `show overlap`: where the time goes of communication that hides
    behind computation, and where it is predicted to go.
    """
    if what:
        (show_models if what == "models" else show_overlap)(system, database, as_json)
        return
    from tuner import orders
    from tuner.products import last_measured
    from tuner.show import results as showing

    with tuned(database) as store:
        names = [one_system(store, system)] if system else systems_of(store)
        systems = store.systems()
        systems = systems[systems["system"].isin(names)]
        campaigns = store.campaigns()
        campaigns = campaigns[campaigns["system"].isin(names)]
        tables = [_table(store, name) for name in names]
        products = {name: last_measured(store, name) for name in names}
    if as_json:
        click.echo(showing.as_json(systems, campaigns, tables, products.values()))
        return
    out = showing.console()
    showing.show_systems(systems, campaigns, out)
    for order in orders.partial():
        out.print(str(order), highlight=False, soft_wrap=True)
    launches = dict(zip(systems["system"], systems["launches"], strict=True))
    for table in tables:
        out.print()
        unused = int(launches[table.provenance.system]) - table.provenance.launches
        showing.show_table(table, unused, out)
    for name, rows in products.items():
        showing.show_products(name, rows, out)


@main.command()
@click.option(
    "--config",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Examine this site configuration instead of this machine.",
)
@json_option
def doctor(config: Path | None, as_json: bool) -> None:
    """Tell what this machine has, what it lacks, and how to get it."""
    from tuner import doctor as examination
    from tuner.show.results import console
    from tuner.sites.examine import examine

    parts = examine(config) if config else examination.examine()
    if as_json:
        click.echo(json.dumps([asdict(part) for part in parts], indent=1))
    else:
        examination.show(parts, console())
    if missing := examination.missing(parts):
        raise SwitchpointError(f"missing: {', '.join(part.name for part in missing)}")


@main.command("verify-table")
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@json_option
def verify_table(file: Path, as_json: bool) -> None:
    """Read the table FILE with the library itself, and tell its rules or its first error."""
    from tuner.verify import VerifyError
    from tuner.verify import verify_table as verify

    try:
        said = verify(file)
    except VerifyError as error:
        if not as_json:
            raise
        click.echo(json.dumps({"valid": False, "error": str(error)}))
        raise SystemExit(1) from error
    click.echo(json.dumps({"valid": True, "text": said}) if as_json else said)


main.add_command(compare)
main.add_command(fit)
main.add_command(guidelines)
main.add_command(matrix)
main.add_command(network)
main.add_command(nodes)
main.add_command(plan)
main.add_command(predict)
main.add_command(regret)
report.add_command(html)
main.add_command(report)
main.add_command(serve)
main.add_command(site)
main.add_command(soak)
main.add_command(study)
main.add_command(validate)


def _table(store: Store, system: str) -> Table:
    table = store.table(system)
    if table is None:
        raise SwitchpointError(f"{system} has no table; run `switchpoint tune`")
    return table


if __name__ == "__main__":
    main()
