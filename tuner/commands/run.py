"""`switchpoint run`: from a campaign to tables in use."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tuner.campaign.reframe import CONFIGS, Call, selects, selects_environment
from tuner.commands.browse import serve_somewhere
from tuner.commands.options import (
    config_option,
    json_option,
    minutes_option,
    require_defaults,
    require_soak_option,
    whole_number,
)
from tuner.commands.printing.lines import say_json
from tuner.commands.show_plan import BUDGET
from tuner.domain.effort import RUN_MINUTES
from tuner.errors import SwitchpointError

if TYPE_CHECKING:
    from rich.console import Console

    from tuner.campaign.campaigns import AnyCampaign
    from tuner.campaign.plans import Budget
    from tuner.machine.nodes.namespaces import Nodes

DEFAULT_CHECKS = "--tag=tuning"
RESUMING = ("resume", "dry_run", "required_executions", "as_json")
"""The options that a resumed campaign does not fix."""


@click.command()
@config_option("ReFrame configuration of the system, instead of --system.")
@click.option(
    "--system",
    type=click.Choice(list(CONFIGS)),
    help="local: this machine. nodes: virtual nodes on this machine; those already up, or four at "
    "1 Gbit/s until the end of the run.  [default: local]",
)
@click.option(
    "--launches",
    type=whole_number(1),
    help="Most launches of a size.  [default: 24; 6 of what does not race]",
)
@minutes_option(RUN_MINUTES, "Time for the campaign, with the soaks of the winners.")
@click.option(
    "--budget",
    metavar="BUDGET",
    type=BUDGET,
    help="The time in other units (90s, 10m, 1.5h), or as a share of that of measuring every "
    "method at every size (15%); replaces --minutes.",
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
    launches: int | None,
    minutes: float,
    budget: Budget | None,
    environment: str | None,
    anonymous_as: str | None,
    dry_run: bool,
    resume: str | None,
    required_executions: int | None,
    as_json: bool,
    reframe_options: tuple[str, ...],
) -> None:
    """Measure a campaign, soak the winners, make and export tables, and try them in a program.

    REFRAME_OPTIONS are passed to ReFrame, for example to select checks: `switchpoint run -- -n
    exchange`. By default the checks with the tag tuning run. On a terminal the dashboard starts at
    the end.
    """
    from tuner.campaign.campaigns import find, make
    from tuner.campaign.order import keep_finished
    from tuner.campaign.plans import Budget
    from tuner.campaign.site_file import environments
    from tuner.commands.finish import carry_out
    from tuner.commands.printing.campaign import show_campaign
    from tuner.commands.printing.console import console
    from tuner.machine.nodes import namespaces
    from tuner.selection import tuning

    # With --json, standard output is for the JSON alone.
    out = console(stderr=as_json)
    required = tuning.required(required_executions)
    if config is not None and system is not None:
        raise click.UsageError("--config and --system both name a system: give one")
    if "" in (anonymous_as, resume):
        raise click.UsageError("--anonymous-as and --resume need a name")
    earlier = find(resume) if resume else None
    named = environment
    if earlier is not None:
        require_defaults(context, but=RESUMING)
        config = earlier.config
        system = "nodes" if config == CONFIGS["nodes"] else None
    elif environment is None and config is None:
        environment = default_environment(out, reframe_options, system)
    selection = [] if environment in (None, "all") else [f"--prgenv=^{environment}$"]
    options = [*selection, *selecting(reframe_options)]
    variables = {"anonymous": "True", "system_name": anonymous_as} if anonymous_as else {}
    config = (config or CONFIGS[system or "local"]).absolute()
    call = Call(config, options, variables)
    with _nodes(earlier) if system == "nodes" else nullcontext(), ExitStack() as held:
        if earlier is not None:
            _hold(held, earlier.order.campaign)
            keep_finished(earlier.order.campaign, earlier.order.stage)  # they name their machine
            # Until now, another process may have continued it.
            campaign = find(earlier.order.campaign).resume()
        else:
            there = environments(config) if named not in (None, "all") else None
            if there is not None and named not in there:
                raise SwitchpointError(f"no environment {named}; there are: {', '.join(there)}")
            campaign = make(call, budget or Budget(minutes * 60), launches, only_shown=dry_run)
        if dry_run and as_json:
            say_json(campaign.document())
            return
        show_campaign(campaign, out)
        if dry_run:
            return
        if earlier is None:
            _hold(held, campaign.order.campaign)
        results = carry_out(campaign, required, out)
    if system == "nodes" and namespaces.find(namespaces.name_meant()) is None:
        out.print("the virtual nodes stopped with the run; `switchpoint nodes up` starts others")
    if as_json:
        say_json(results)
    elif out.is_terminal:
        serve_somewhere(context)


def _nodes(earlier: AnyCampaign | None) -> AbstractContextManager[Nodes]:
    """Return the virtual nodes of a run; a campaign that is resumed began on others like them."""
    from tuner.machine.nodes import namespaces

    if earlier is None:
        return namespaces.available()
    partition = "".join(system.partition(":")[2] for system in earlier.systems[:1])
    return namespaces.available(partition, earlier.order.nodes)


def _hold(held: ExitStack, campaign: str) -> None:
    """Keep other processes from a campaign until `held` ends. Raise OrderError where one has it."""
    from tuner.campaign.order import OrderError
    from tuner.paths import only_here

    if not held.enter_context(only_here(campaign)):
        raise OrderError(f"another process measures campaign {campaign}; wait until it ends")


def default_environment(
    console: Console, options: Sequence[str], system: str | None = None
) -> str | None:
    """Return the first MPI's name; print why it is measured and how to choose another.

    Each further MPI would take as much time again. Return None where ReFrame's options name an
    environment, and where no MPI is found: the site configuration then reports what to do.
    """
    from tuner.machine.mpi import find_all_mpis, why_first

    found = find_all_mpis()
    mpis = [first for first, *_ in found]
    if not mpis or selects_environment(options):
        return None
    say = partial(console.print, soft_wrap=True)
    command = f"switchpoint run{f' --system {system}' if system else ''}"
    say(f"measuring {mpis[0]}: {why_first(mpis[0])}")
    for other in mpis[1:]:
        say(f"to measure {other}: `{command} --environment {other.name}`")
    if mpis[1:]:
        say(f"to measure every one: `{command} --environment all`")
    for first, other in ((first, other) for first, *others in found for other in others):
        say(
            f"passed over: {other}, of the same major version as {first.mpicc}; to measure it, put "
            "it first on PATH, and in a checkout start afresh: `rm -r .venv build && make run`"
        )
    if sum(map(len, found)) == 1:
        say("no other MPI is on PATH; to measure one, add its mpicc and mpiexec to PATH")
    return mpis[0].name


def selecting(options: Sequence[str]) -> list[str]:
    """Return ReFrame's options, and the default selection of checks if they select none."""
    return [*options, *([] if selects(options) else [DEFAULT_CHECKS])]
