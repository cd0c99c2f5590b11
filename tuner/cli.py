"""The command `switchpoint`: each subcommand reads its options and calls one part of the tuner.

Each subcommand imports what it needs when it runs, so that all start fast.
"""

import sys
from dataclasses import asdict
from io import TextIOWrapper
from pathlib import Path
from typing import Any

import click

from tuner import __version__
from tuner.commands.advise import advise
from tuner.commands.browse import report, serve
from tuner.commands.catalogue import bundle, catalogue
from tuner.commands.check_choices import regret
from tuner.commands.check_library import guidelines
from tuner.commands.compare import compare
from tuner.commands.matrix import matrix
from tuner.commands.model import fit, predict, validate
from tuner.commands.naming import Commands, NamedCommands
from tuner.commands.network import network
from tuner.commands.nodes import nodes
from tuner.commands.options import NAMED_FILE, config_option, json_option
from tuner.commands.printing.lines import say, say_json
from tuner.commands.run import run
from tuner.commands.show import show
from tuner.commands.site import site
from tuner.commands.soak import soak
from tuner.commands.study import study
from tuner.commands.tables import export, ingest, tune
from tuner.errors import SwitchpointError
from tuner.files import printable


class _Commands(NamedCommands):
    """The commands, whose expected errors are one line and exit with 1."""

    def main(self, *args: Any, **extra: Any) -> Any:
        try:
            return super().main(*args, **extra)
        except MemoryError as error:  # click itself needs memory, too
            why = f": {error}" if str(error) else ""
            say(f"Error: not enough memory{why}", err=True)
            sys.exit(1)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            raise
        except click.ClickException as error:
            error.message = printable(error.message)  # type: ignore[misc]  # which may quote names
            raise
        except SwitchpointError as error:
            raise click.ClickException(printable(str(error))) from error
        except OSError as error:
            where = f"{error.filename}: " if error.filename else ""
            raise click.ClickException(printable(f"{where}{error.strerror or error}")) from error


@click.group(
    cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "show_default": True}
)
@click.version_option(__version__, prog_name="switchpoint")
def main() -> None:
    """Measure MPI exchange methods, choose the fastest, and use them in applications."""
    if isinstance(sys.stdout, TextIOWrapper):  # names of files may have bytes that are not UTF-8
        sys.stdout.reconfigure(errors="backslashreplace")


@main.command()
@config_option("Check this site configuration instead of this machine.")
@json_option
def doctor(config: Path | None, as_json: bool) -> None:
    """Check prerequisites."""
    from tuner.campaign.site_file import examine_site
    from tuner.commands.printing.console import activity, console
    from tuner.commands.printing.grids import Columns
    from tuner.machine.doctor import examine, missing

    with activity() as show:
        parts = examine_site(config, show) if config else examine(show)
    if as_json:
        say_json([asdict(part) for part in parts])
    else:
        grid = Columns("part", "", "used for", "found, or how to get it")
        for part in parts:
            sign = "ok" if part.found else "missing" if part.required else "-"
            grid.add_row(part.name, sign, part.used_for, part.found or part.advice)
        console().print(grid)
    if lacking := missing(parts):
        raise SwitchpointError(f"missing: {', '.join(lacking)}")


@main.group(cls=Commands)
def check() -> None:
    """Check a table, a model, the choices made, or the MPI library."""


@check.command("table")
@click.argument("files", metavar="FILE...", type=NAMED_FILE, nargs=-1, required=True)
@click.option("--fast", is_flag=True, help="Do not run the MPI library that a file is for.")
@json_option
def check_table(files: tuple[Path, ...], fast: bool, as_json: bool) -> None:
    """Check the table FILE with the library itself; print its rules or the first error.

    Of a file for an MPI library it prints whether the library, which loads all files together, runs
    each rule, and exits with 1 if one did not run.
    """
    from tuner.domain.flat import flat
    from tuner.export.loaded import DID_NOT
    from tuner.export.verify import VerifyError, verify_rules, verify_table

    document: dict[str, Any] = {"valid": True, "rules": []}
    try:
        document["text"] = "\n".join(verify_table(file) for file in files)
        if not as_json:
            say(document["text"])
        for its in verify_rules(files) if not fast else ():
            document["valid"] &= its.verdict != DID_NOT
            document["rules"].append(flat(its))
            if not as_json:
                say(str(its))
    except VerifyError as error:
        if not as_json:
            raise
        document = {"valid": False, "error": str(error)}
    if as_json:
        say_json(document)
    if not document["valid"]:
        raise SystemExit(1)


for name, command in (("choices", regret), ("library", guidelines), ("model", validate)):
    check.add_command(command, name)
for command in (
    *(
        advise,
        bundle,
        catalogue,
        compare,
        export,
        fit,
        ingest,
        matrix,
        network,
        nodes,
        predict,
        report,
        run,
        serve,
        show,
    ),
    *(site, soak, study, tune),
):
    main.add_command(command)


if __name__ == "__main__":
    main()
