"""`switchpoint bundle` and `catalogue`: tables as files, and those of other systems."""

from dataclasses import asdict
from pathlib import Path

import click

from tuner.commands.naming import Commands
from tuner.commands.options import (
    FILE,
    database_option,
    json_option,
    one_system,
    system_option,
    tuned,
)
from tuner.commands.printing.lines import say, say_json, say_written
from tuner.errors import SwitchpointError


@click.command()
@system_option()
@click.option("--output", type=FILE, help="Output file. [default: SYSTEM.bundle]")
@database_option
def bundle(system: str | None, output: Path | None, database: Path) -> None:
    """Write a system's table with all evidence as a file for other machines, without host names."""
    from tuner.catalogue import bundle as bundles
    from tuner.commands.tables import required_table
    from tuner.models.fitting import last_fitted

    with tuned(database) as store:
        table = required_table(store, one_system(store, system))
        model = last_fitted(store, table.provenance.system)
        table, model = bundles.without_hosts(store, table, model)
    system = table.provenance.system
    path = output or Path(f"{system}{bundles.SUFFIX}")
    kib = -(-bundles.write(path, table, model) // 1024)
    say_written(path, f"{system}, {len(table.points)} decisions, {kib} KiB")


@click.group(cls=Commands)
def catalogue() -> None:
    """Keep bundles of other systems, for `export --borrow`."""


@catalogue.command()
@click.argument("sources", nargs=-1, required=True, type=click.Path(path_type=Path, exists=True))
@database_option
def add(sources: tuple[Path, ...], database: Path) -> None:
    """Keep SOURCES: bundles, or directories that contain them; the newest of each system."""
    from tuner.catalogue import shelf
    from tuner.catalogue.bundle import SUFFIX

    paths = shelf.files(sources)
    if not paths:
        where = ", ".join(map(str, sources))
        raise SwitchpointError(f"{where}: no *{SUFFIX}; `switchpoint bundle` writes them")
    problems = []
    for path in paths:
        try:
            its = shelf.add(database, path)
        except (SwitchpointError, OSError) as error:
            problems.append(str(error))
        else:
            say(f"{shelf.directory(database)}: {its.provenance.system}")
    if problems:
        raise SwitchpointError("\n".join(problems))


@catalogue.command("list")
@database_option
@json_option
def list_bundles(database: Path, as_json: bool) -> None:
    """Print the systems whose bundles are kept."""
    from tuner.catalogue import shelf
    from tuner.commands.printing.console import console
    from tuner.commands.printing.grids import Columns

    bundles = shelf.bundles(database)
    if as_json:
        say_json([asdict(its.provenance) for its in bundles])
        return
    grid = Columns("system", "MPI", "cores", "decisions", "measured")
    for its, points, _ in bundles:
        library = its.mpi_library.partition(",")[0]
        grid.add_row(its.system, library, str(its.cores), str(len(points)), its.date)
    console().print(grid)
