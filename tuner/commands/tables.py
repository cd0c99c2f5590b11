"""`switchpoint ingest`, `tune` and `export`: from raw files to the table of a system."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tuner.atomic import is_stdout
from tuner.commands.options import (
    FILE,
    FORM,
    chosen_systems,
    database_option,
    json_option,
    one_system,
    require_soak_option,
    require_store,
    system_option,
    tuned,
)
from tuner.commands.printing.lines import say, say_json, say_written
from tuner.errors import SwitchpointError
from tuner.files import shown

if TYPE_CHECKING:
    from tuner.domain.tables import Table
    from tuner.models.system import SystemModel
    from tuner.store.store import Store


@click.command()
@click.argument("sources", nargs=-1, type=click.Path(path_type=Path, exists=True))
@database_option
@json_option
def ingest(sources: tuple[Path, ...], database: Path, as_json: bool) -> None:
    """Add raw files to the results database.

    SOURCES are raw files, or directories that contain them; by default all results except the
    committed sample. The metadata file of PICO's results (LOCATION_metadata.csv), or a directory
    that contains it, is imported: raw files are made of it and kept among the results. Existing
    data is unchanged. Unusable lines are reported with file and line number, and the rest is
    ingested.
    """
    from tuner.rawfile import pico
    from tuner.rawfile.ingest import ingest as bring_in
    from tuner.rawfile.keeping import of_results

    made = {source: pico.translated([source]) for source in sources}
    raw = [source for source in made if not pico.is_metadata(source)]
    of_pico = dict.fromkeys(path for paths, _ in made.values() for path in paths)
    report = bring_in(database, [*raw, *of_pico] if sources else of_results())
    report.problems[:0] = [each for _, problems in made.values() for each in problems]
    used = {shown(source) for source in raw}.difference(report.unused)
    used |= {shown(source) for source, (paths, _) in made.items() if paths}
    report.unused = [name for source in made if (name := shown(source)) not in used]
    if as_json:
        say_json({**asdict(report), "database": str(database)})
    else:
        for problem in report.problems:
            say(f"warning: {problem}", err=True)
        say(
            f"{database}: {report.launches} launches with {report.samples} samples from "
            f"{report.files} files, {report.unchanged} of them already present, "
            f"{len(report.problems)} problems"
        )
    if report.unused:
        raise SwitchpointError(f"no launch in {', '.join(report.unused)}")


@click.command()
@system_option("Tune only this system: ID or unique substring.")
@click.option(
    "--campaign",
    "campaigns",
    multiple=True,
    metavar="NAME",
    help="Use only this campaign; can be repeated.",
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
    """Choose methods for every system and store its table."""
    from tuner.commands.printing.console import console
    from tuner.commands.printing.results import show_table
    from tuner.export.document import table_document
    from tuner.selection.tuning import tune as make_table
    from tuner.store.store import Store

    require_store(database)
    with Store.open(database) as store:
        names = chosen_systems(store, system)
        # Only systems that have the campaigns, so that an error comes before any table is replaced.
        of_all = {name: {*store.campaigns(name)["campaign"]} for name in names}
        names = [name for name in names if of_all[name].issuperset(campaigns)] or names
        tables = [
            make_table(store, name, list(campaigns) or None, required_executions) for name in names
        ]
    if as_json:
        say_json([table_document(table) for table in tables])
        return
    out = console()
    for table in tables:
        show_table(table, "", out)


@click.command()
@system_option()
@click.option("--format", "form", type=FORM, default="table", help="Output format.")
@click.option("--output", type=FILE, help="Output file. [default: (standard output)]")
@click.option(
    "--borrow",
    is_flag=True,
    help="Write what the nearest system in the catalogue chose, for --system or this machine.",
)
@click.option("--environment", metavar="NAME", help="With --borrow: this machine's MPI.")
@database_option
def export(
    system: str | None,
    form: str,
    output: Path | None,
    borrow: bool,
    environment: str | None,
    database: Path,
) -> None:
    """Write a system's table: for the library, as a C header, as JSON, or for an MPI library."""
    from tuner.export import forms as exporting
    from tuner.machine.systems import measured_as
    from tuner.models.fitting import last_fitted
    from tuner.selection import tuning

    if environment and (system or not borrow):
        raise click.UsageError("--environment goes with --borrow, without --system")
    omission = ""
    if borrow:
        table, model = _borrowed(database, system, environment or "", form)
    else:
        with tuned(database) as store:
            name = one_system(store, system)
            table, model = required_table(store, name), last_fitted(store, name)
            omission = tuning.omission(store, table, int(store.description(name)["launches"]))
    place = measured_as(table.provenance.name)
    if output is None:
        say(exporting.export(table, form, model, place, omission), nl=False)
        return
    exporting.write(table, form, output, model, place, omission)
    if exporting.FORMS[form].is_of_mpi:
        what = "for its MPI library; the file lists the rules that it leaves out, and why"
    else:
        what = f"{len(table.rules)} rules"
    say_written(output, f"{table.provenance.system}, {what}")
    if borrow and form == "table" and not is_stdout(output):
        file = shlex.quote(str(output))
        say(f"`switchpoint check table {file}` shows whether this library has its methods")


def _borrowed(
    database: Path, system: str | None, environment: str, form: str
) -> tuple[Table, SystemModel | None]:
    """Return the nearest system's table for a system of the store, or for this machine.

    The parameters are the borrower's own.
    """
    from tuner.catalogue import borrowing, shelf
    from tuner.export.forms import FORMS
    from tuner.export.text import borrowed_note

    if FORMS[form].is_of_mpi:
        raise SwitchpointError(
            f"--format {form} cannot be borrowed: files for MPI libraries cannot mark rules so"
        )
    if system:
        with tuned(database) as store:
            borrower = borrowing.of_store(store, one_system(store, system))
    else:
        borrower = borrowing.this_machine(environment)
    table = borrowing.of_nearest(borrower, shelf.bundles(database))
    say(f"{table.provenance.system}: {borrowed_note(table.provenance)}", err=True)
    return table, borrower.model


def required_table(store: Store, system: str) -> Table:
    """Return a system's table. Raise SwitchpointError without one."""
    table = store.table(system)
    if table is None:
        raise SwitchpointError(no_table(system, store.path))
    return table


def no_table(system: str, database: Path) -> str:
    """Return how to make the table that a system lacks."""
    return (
        f"{system} has no table; run `switchpoint tune`, with --database on a copy where "
        f"{database} cannot be written"
    )
