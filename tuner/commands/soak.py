"""`switchpoint soak`: stress-test the winners, then make new tables."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tuner.campaign.reframe import CONFIGS
from tuner.commands.options import config_option, minutes_option, require_soak_option, system_option
from tuner.errors import SwitchpointError
from tuner.paths import database_path

if TYPE_CHECKING:
    from tuner.machine.nodes.namespaces import Nodes


class _ElsewhereError(SwitchpointError):
    """Error raised when a system cannot be soaked here; the message says what to do."""


@click.command()
@config_option("ReFrame configuration of a system other than this machine.")
@system_option("Only this system: ID or unique substring.")
@minutes_option(10.0, "Time for each system; the next call finishes the rest.")
@require_soak_option
@click.argument("reframe_options", nargs=-1, type=click.UNPROCESSED)
def soak(
    config: Path | None,
    system: str | None,
    minutes: float,
    required_executions: int | None,
    reframe_options: tuple[str, ...],
) -> None:
    """Stress-test winning methods, choose those that pass, and export the tables.

    `switchpoint run` does this at its end. Run it to finish soaks that are left, or after a site
    has raised its requirement. REFRAME_OPTIONS are passed to ReFrame for the jobs: `switchpoint
    soak --config site.py -- -J account=m42`.
    """
    from tuner.campaign import site_file, soaking
    from tuner.commands.finish import tune_systems
    from tuner.commands.options import chosen_systems, for_jobs
    from tuner.commands.printing.console import console
    from tuner.machine.nodes.launch import VIRTUAL_NODES
    from tuner.machine.nodes.namespaces import NodesError
    from tuner.machine.systems import other_machine
    from tuner.selection import soaks, tuning
    from tuner.store.store import Store

    if reframe_options and config is None:
        raise click.UsageError("REFRAME_OPTIONS are for jobs, of a system that --config names")
    configs = {"local": CONFIGS["local"], VIRTUAL_NODES: CONFIGS["nodes"]}
    out = console()
    with Store.open(database_path(), readonly=True) as store:
        names = chosen_systems(store, system)
        names = [name for name in names if store.campaigns_with_cells(name)]
        systems = store.systems().sort_values("last_date").set_index("system")
    of_reframe = systems["name"].astype(str)
    of_machines = zip(of_reframe, systems["cpu_model"], systems["cores"], strict=True)
    systems["other"] = [other_machine(*each) for each in of_machines]
    rows = systems.to_dict("index")
    installed = systems.groupby(["name", "environment", "other"]).tail(1).index  # the last MPI
    required = tuning.required(required_executions)
    options, has_soaked = for_jobs(reframe_options), False
    of_config = site_file.systems(config) if config else None
    for name in names:
        if not (soaks.are_possible(of_reframe[name]) and (system or name in installed)):
            continue
        kind, _, partition = of_reframe[name].partition(":")
        is_of_config = of_config is None or of_reframe[name] in of_config
        its = configs.get(kind, config if is_of_config else None)
        try:
            its = _config_for(rows[name], its, config)
            with _nodes_for(name, partition) if kind == VIRTUAL_NODES else nullcontext():
                own = options if its is config else ()
                request = soaking.SoakRequest(its, required or soaks.ENOUGH, 60 * minutes, own)
                has_soaked = soaking.soak([name], request, out) or has_soaked
        except (_ElsewhereError, NodesError) as error:
            if system:
                raise SwitchpointError(f"{name}: {error}") from error
            out.print(f"not soaked: {name}: {error}", soft_wrap=True)
    tuned = tune_systems(names, out, required)
    if not has_soaked and any(soaks.waiting(its.table) for its in tuned):
        raise SwitchpointError("nothing was soaked of what waits")


def _nodes_for(system: str, partition: str) -> AbstractContextManager[Nodes]:
    """Return virtual nodes that are up, else as many as measured a system. Raise NodesError."""
    from tuner.machine.nodes import namespaces
    from tuner.store.store import Store

    with Store.open(database_path(), readonly=True) as store:
        most = int(store.cells(system)["nodes"].max())
    return namespaces.available(partition, made=max(namespaces.DEFAULT_COUNT, most))


def _config_for(system: Mapping[Hashable, Any], known: Path | None, given: Path | None) -> Path:
    """Return the configuration that is known for a system of the store.

    Raise _ElsewhereError: there is none, or the system is of another machine.
    """
    from tuner.machine.systems import measured_as
    from tuner.selection.next_step import soaking_command

    name, environment, other = system["name"], system["environment"], system["other"]
    if ":" not in name:
        command = soaking_command(name, environment, place=measured_as(name))
        raise _ElsewhereError(f"has a name of its own; soak it by `{command}`")
    if known is None:
        raise _ElsewhereError(
            f"not a system of {given or 'this machine'}; give its configuration with --config"
        )
    if other:
        raise _ElsewhereError(f"of another machine, {other}; soak it there")
    return known
