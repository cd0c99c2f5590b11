"""Options that several subcommands share: the store and its systems above all."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource
from click.shell_completion import CompletionItem

from tuner.errors import SwitchpointError
from tuner.files import require_regular
from tuner.paths import database_path
from tuner.units import parse_number, parse_sizes

if TYPE_CHECKING:
    from tuner.store.store import Store

_MOST = 2**31 - 1

FILE = click.Path(path_type=Path, dir_okay=False)


class _NamedFile(click.Path):
    """An existing regular file, also where another program opens it, or perhaps a directory."""

    def __init__(self, *, dir_okay: bool = False) -> None:
        super().__init__(path_type=Path, exists=True, dir_okay=dir_okay)

    def convert(
        self, value: Any, parameter: click.Parameter | None, context: click.Context | None
    ) -> Path:
        path = Path(os.fsdecode(super().convert(value, parameter, context)))
        if not path.is_dir():
            require_regular(path)
        return path


class _Form(click.ParamType[str]):
    """The name of a form of exported tables; only a command that has it loads the forms."""

    name = "form"

    @property
    def _names(self) -> click.Choice[str]:
        from tuner.export.forms import FORMS

        return click.Choice(list(FORMS))

    def convert(
        self, value: Any, parameter: click.Parameter | None, context: click.Context | None
    ) -> str:
        return self._names.convert(value, parameter, context)

    def get_metavar(self, param: click.Parameter, ctx: click.Context) -> str | None:
        return self._names.get_metavar(param, ctx)

    def shell_complete(
        self, context: click.Context, parameter: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        return self._names.shell_complete(context, parameter, incomplete)


FORM = _Form()

NAMED_FILE = _NamedFile()
NAMED_FILE_OR_DIRECTORY = _NamedFile(dir_okay=True)

OptionDecorator = Callable[[Callable[..., None]], Callable[..., None]]
"""A decorator that adds an option to a command."""


class _Number(click.ParamType[Any]):
    """A number as `parse_number` reads it, in a range."""

    def convert(
        self, value: Any, parameter: click.Parameter | None, context: click.Context | None
    ) -> Any:
        try:
            parse_number(str(value))
        except ValueError as error:
            self.fail(str(error), parameter, context)
        return super().convert(value, parameter, context)


class _WholeNumber(_Number, click.IntRange):
    """A whole number in a range."""


class _Duration(_Number, click.FloatRange):
    """A time in a range."""


def whole_number(least: int, most: int = _MOST) -> click.IntRange:
    """Return the type of a count, at the most the largest that MPI can count."""
    return _WholeNumber(least, most)


def duration(least: float) -> click.FloatRange:
    """Return the type of seconds or minutes, up to the most that clocks can count."""
    return _Duration(least, 1e6)


def whole_numbers(
    context: click.Context, parameter: click.Parameter, value: str | None
) -> list[int]:
    """Return the numbers of a comma-separated list, increasing; each is at least 1."""
    return sorted(set(whole_numbers_in_order(context, parameter, value)))


def whole_numbers_in_order(
    context: click.Context, parameter: click.Parameter, value: str | None
) -> list[int]:
    """Return the numbers of a comma-separated list; each is at least 1."""
    if value is None:
        return []
    words = value.split(",")
    if not all(re.fullmatch("[0-9]{1,18}", word) and 1 <= int(word) <= _MOST for word in words):
        raise click.BadParameter(f"{value!r} is not a comma-separated list of positive integers")
    return list(map(int, words))


def sizes_in_bytes(context: click.Context, parameter: click.Parameter, value: str) -> list[int]:
    """Return the sizes of a list in the form of swpbench's --sizes, increasing."""
    try:
        return parse_sizes(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from error


def sizes(context: click.Context, parameter: click.Parameter, value: str) -> str:
    """Return the value if it has the form of swpbench's --sizes, which swpbench itself parses."""
    sizes_in_bytes(context, parameter, value)
    return value


def sizes_of_doubles(context: click.Context, parameter: click.Parameter, value: str) -> str:
    """Return the value as `sizes` does, if all sizes are multiples of 8, as reductions need."""
    if any(size % 8 for size in sizes_in_bytes(context, parameter, value)):
        raise click.BadParameter("sizes are multiples of 8, as reductions take")
    return value


database_option = click.option(
    "--database",
    type=FILE,
    default=database_path,
    show_default="switchpoint.db in the results",
    help="Results database.",
)
environment_option = click.option(
    "--environment", default="", show_default="the first found", help="MPI to use."
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON.")


require_soak_option = click.option(
    "--require-soak",
    "required_executions",
    type=whole_number(0),
    metavar="EXECUTIONS",
    help="Choose only methods that passed this many executions in soaks; 0 requires none.  "
    "[default: SWITCHPOINT_REQUIRE_SOAK, or 10000]",
)


def for_jobs(options: Sequence[str]) -> list[str]:
    """Return ReFrame's options for jobs. Raise UsageError if one of them would select checks."""
    from tuner.campaign.reframe import without_selection

    kept = without_selection(options)
    if kept != [*options]:
        raise click.UsageError("options of ReFrame that select checks have no place here")
    return kept


def config_option(text: str) -> OptionDecorator:
    """Return the option `--config`, the file of a site's configuration."""
    return click.option("--config", type=NAMED_FILE, help=text)


def minutes_option(default: float, text: str) -> OptionDecorator:
    """Return the option `--minutes`, the time for a campaign."""
    return click.option("--minutes", type=duration(0.1), default=default, help=text)


def launches_option(least: int, default: int, text: str) -> OptionDecorator:
    """Return the option `--launches`, the number of launches."""
    return click.option("--launches", type=whole_number(least), default=default, help=text)


def budget_option(default_s: float, what: str = "a launch") -> OptionDecorator:
    """Return the option `--budget`, passed as `budget_s`: the time of one of many launches."""
    return click.option(
        "--budget",
        "budget_s",
        type=duration(0.1),
        default=default_s,
        help=f"Time for {what}, in seconds.",
    )


PARTITIONS = ("contiguous", "strided", "graph", "hypergraph")
"""The keys of `PARTITIONERS`, whose import takes long."""


def system_option(
    text: str = "System ID or unique substring; required if there are several.",
) -> OptionDecorator:
    """Return the option `--system`, which takes an ID or a unique substring of one."""
    return click.option("--system", metavar="ID", help=text)


def require_store(database: Path) -> None:
    """Raise MissingStoreError when there is no store, as only ingest makes one."""
    from tuner.store.database import MissingStoreError

    if not database.is_file():
        raise MissingStoreError(database)


def tuned(database: Path) -> Store:
    """Open the store for reading; tables that are missing after a rebuild are made first.

    They stay missing where the store cannot be written.
    """
    from tuner.selection.tuning import tune_missing
    from tuner.store.database import StoreError
    from tuner.store.store import Store

    with Store.open(database, readonly=True) as store:
        incomplete = store.untuned()
    if incomplete and os.access(database, os.W_OK) and os.access(database.parent, os.W_OK):
        with suppress(StoreError), Store.open(database) as store:  # a full disk, or another writer
            tune_missing(store)
    return Store.open(database, readonly=True)


def systems_of(store: Store) -> list[str]:
    """Return the ids of all systems."""
    return [str(name) for name in store.systems()["system"]]


def one_system(store: Store, part: str | None, option: str = " with --system") -> str:
    """Return the system that `part` identifies; without it, the only system.

    option: how users choose one, for the error.
    """
    systems = systems_of(store)
    matches = [name for name in systems if part is None or part in name]
    if part in systems:
        return str(part)
    if len(matches) == 1:
        return matches[0]
    if not systems:
        raise SwitchpointError(f"{store.path} holds no measurements; run `switchpoint run` first")
    wanted = f"{len(matches) or 'no'} systems match {part}" if part else "there are several systems"
    raise SwitchpointError(f"{wanted}; choose one{option}: {', '.join(matches or systems)}")


def chosen_systems(
    store: Store, part: str | None, otherwise: Callable[[Store], list[str]] = systems_of
) -> list[str]:
    """Return the system that `part` identifies alone; without it, all or those of `otherwise`."""
    return [one_system(store, part)] if part else otherwise(store)


def require_defaults(context: click.Context, but: Sequence[str]) -> None:
    """Raise UsageError for a given option that is not in `but`: a resumed campaign fixes it."""
    for parameter in context.command.params:
        source = context.get_parameter_source(parameter.name or "")
        if parameter.name not in but and source is not ParameterSource.DEFAULT:
            raise click.UsageError(f"{parameter.opts[-1]} is fixed by the resumed campaign")
