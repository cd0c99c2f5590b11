"""What several subcommands share of their options: the store and its systems above all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from tuner.errors import SwitchpointError
from tuner.places import database_path

if TYPE_CHECKING:
    from tuner.store import Store

FILE = click.Path(path_type=Path, dir_okay=False)

Option = Callable[[Callable[..., None]], Callable[..., None]]
"""What adds an option to a command."""

database_option = click.option(
    "--database",
    type=FILE,
    default=database_path,
    show_default="switchpoint.db in the results",
    help="The store.",
)
environment_option = click.option(
    "--environment", default="", show_default="the first found", help="The MPI's name."
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


require_soak_option = click.option(
    "--require-soak",
    "required_executions",
    type=click.IntRange(min=0),
    metavar="EXECUTIONS",
    help="Choose only methods that passed so many executions in soaks; 0 asks for none.  "
    "[default: SWITCHPOINT_REQUIRE_SOAK, or 2000]",
)


def launches_option(least: int, default: int, text: str) -> Option:
    """`--launches`: how many there are of something."""
    return click.option(
        "--launches",
        type=click.IntRange(min=least),
        default=default,
        show_default=True,
        help=text,
    )


def budget_option(default_s: float, what: str = "a launch") -> Option:
    """`--budget`, as `budget_s`: for one of many launches."""
    return click.option(
        "--budget",
        "budget_s",
        type=click.FloatRange(min=0.1),
        default=default_s,
        show_default=True,
        help=f"Time for {what}, in seconds.",
    )


def system_option(text: str) -> Option:
    """`--system`, which takes any part of an id that only one system has."""
    return click.option("--system", metavar="ID", help=text)


def systems_of(store: Store) -> list[str]:
    """The ids of all systems."""
    return [str(name) for name in store.systems()["system"]]


def one_system(store: Store, part: str | None) -> str:
    """The system that is meant; without a name, the only one."""
    systems = systems_of(store)
    matches = [name for name in systems if part is None or part in name]
    if part in systems:
        return str(part)
    if len(matches) == 1:
        return matches[0]
    if not systems:
        raise SwitchpointError(f"{store.path} holds no measurements; `switchpoint run` makes some")
    wanted = f"{len(matches) or 'no'} systems match {part}" if part else "there are several systems"
    raise SwitchpointError(f"{wanted}; name one by --system: {', '.join(matches or systems)}")


def require_defaults(context: click.Context, but: Sequence[str]) -> None:
    """Raises UsageError when another option than `but` is given, which a plan has already."""
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        if parameter.name not in but and source is not ParameterSource.DEFAULT:
            raise click.UsageError(f"{parameter.opts[-1]} comes from the campaign that is resumed")
