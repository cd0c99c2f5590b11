"""The command `switchpoint`: each subcommand reads its options and calls one part of the tuner.

Each subcommand imports what it needs when it runs, so that all start fast.
"""

from __future__ import annotations

import json
import sys
from contextlib import nullcontext
from dataclasses import asdict
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tuner import __version__
from tuner.campaign.reframe import CHECKS
from tuner.commands.browse import html, serve, serve_somewhere
from tuner.commands.compare import compare
from tuner.commands.guidelines import guidelines
from tuner.commands.matrix import matrix
from tuner.commands.model import fit, predict, validate
from tuner.commands.network import network
from tuner.commands.nodes import nodes
from tuner.commands.options import (
    NAMED_FILE,
    duration,
    json_option,
    require_defaults,
    require_soak_option,
    whole_number,
)
from tuner.commands.plan import BUDGET, carry_out, plan
from tuner.commands.regret import regret
from tuner.commands.report import report
from tuner.commands.site import site
from tuner.commands.soak import soak
from tuner.commands.study import study
from tuner.commands.tables import export, ingest, show, tune
from tuner.errors import SwitchpointError

if TYPE_CHECKING:
    from rich.console import Console

    from tuner.campaign.plans import Budget
    from tuner.commands import workflow


# The systems of this machine: as it is, and as several virtual nodes.
THIS_MACHINE = CHECKS / "config" / "local.py"
SYSTEMS = {"local": THIS_MACHINE, "nodes": CHECKS / "config" / "nodes.py"}
RESUMING = ("resume", "plan_file", "dry_run", "required_executions", "as_json")
"""The options of `run` that a resumed campaign does not fix."""


class _Commands(click.Group):
    """A group that prints an expected error as one line and exits with 1."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise
        except SwitchpointError as error:
            raise click.ClickException(str(error)) from error
        except MemoryError as error:
            raise click.ClickException(f"not enough memory: {error}") from error
        except OSError as error:
            where = f"{error.filename}: " if error.filename else ""
            raise click.ClickException(f"{where}{error.strerror or error}") from error


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="switchpoint")
def main() -> None:
    """Measure MPI exchange methods, choose the fastest, and hand the choice to applications."""
    if isinstance(sys.stdout, TextIOWrapper):  # names of files may have bytes that are not UTF-8
        sys.stdout.reconfigure(errors="backslashreplace")


@main.command()
@click.option(
    "--config",
    type=NAMED_FILE,
    help="ReFrame configuration of the system, instead of --system.",
)
@click.option(
    "--system",
    type=click.Choice(list(SYSTEMS)),
    help="local: this machine as it is. nodes: virtual nodes on this machine; those that are up, "
    "or four at 1 Gbit/s until the end of the run.  [default: local]",
)
@click.option(
    "--launches",
    type=whole_number(1),
    default=6,
    show_default=True,
    help="Launches of each case: five to choose a method, one to confirm it.",
)
@click.option(
    "--minutes",
    type=duration(0.1),
    default=4.0,
    show_default=True,
    help="Time for the campaign, divided among its launches.",
)
@click.option(
    "--budget",
    metavar="BUDGET",
    type=BUDGET,
    help="Measure what is most useful within this time (10m), or within this share of the time of "
    "an exhaustive campaign (15%); replaces --launches and --minutes.",
)
@click.option(
    "--plan",
    "plan_file",
    type=NAMED_FILE,
    help="Continue this plan of an earlier run with --budget.",
)
@click.option(
    "--environment",
    metavar="NAME",
    help="Programming environment to measure, or 'all'. [default: (the first MPI found on this "
    "machine; all on other systems)]",
)
@click.option(
    "--anonymous-as",
    metavar="NAME",
    help="Omit host names from the raw files, and call the system NAME.",
)
@click.option("--dry-run", is_flag=True, help="Print what would run and the expected time.")
@click.option("--resume", metavar="CAMPAIGN", help="Finish a partial campaign.")
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

    REFRAME_OPTIONS are passed to ReFrame, for example to select checks: `switchpoint run -- -n
    exchange`. By default the checks with the tag tuning run. On a terminal the dashboard starts at
    the end.
    """
    from tuner.campaign import orders, planned
    from tuner.commands import workflow
    from tuner.commands.printing.results import console
    from tuner.machine.nodes import namespaces
    from tuner.selection import tuning

    # With --json, standard output is for the JSON alone.
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
        environment = workflow.default_environment(out, reframe_options)
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
    campaign: workflow.PlannedCampaign, dry_run: bool, as_json: bool, out: Console, required: int
) -> dict[str, Any]:
    """Show a campaign and run it; with `dry_run`, only show it."""
    from tuner.commands import workflow

    if dry_run and as_json:
        click.echo(json.dumps(workflow.plan_document(campaign), indent=1))
        return {}
    workflow.show_plan(campaign, out)
    return {} if dry_run else workflow.run(campaign, out, required)


@main.command()
@click.option(
    "--config",
    type=NAMED_FILE,
    help="Check this site configuration instead of this machine.",
)
@json_option
def doctor(config: Path | None, as_json: bool) -> None:
    """Check prerequisites."""
    from tuner.campaign.examine import examine
    from tuner.commands.printing.results import console
    from tuner.machine import doctor as examination

    parts = examine(config) if config else examination.examine()
    if as_json:
        click.echo(json.dumps([asdict(part) for part in parts], indent=1))
    else:
        examination.show(parts, console())
    if missing := examination.missing(parts):
        raise SwitchpointError(f"missing: {', '.join(part.name for part in missing)}")


@main.command("verify-table")
@click.argument("file", type=NAMED_FILE)
@json_option
def verify_table(file: Path, as_json: bool) -> None:
    """Check the table FILE with the library itself; print its rules or the first error."""
    from tuner.export.verify import VerifyError
    from tuner.export.verify import verify_table as verify

    try:
        said = verify(file)
    except VerifyError as error:
        if not as_json:
            raise
        click.echo(json.dumps({"valid": False, "error": str(error)}))
        raise SystemExit(1) from error
    click.echo(json.dumps({"valid": True, "text": said}) if as_json else said)


report.add_command(html)
for command in (
    *(compare, export, fit, guidelines, ingest, matrix, network, nodes, plan, predict, regret),
    *(report, serve, show, site, soak, study, tune, validate),
):
    main.add_command(command)


if __name__ == "__main__":
    main()
