"""`switchpoint serve` and `report`: the dashboard, started from the command line."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import click

from tuner.commands.options import FILE, database_option, tuned, whole_number
from tuner.commands.printing.lines import say_written
from tuner.errors import SwitchpointError


def _prefix(context: click.Context, parameter: click.Parameter, value: str) -> str:
    """Return a path without its trailing slash; the path `/` becomes empty."""
    path = value.rstrip("/")
    if not re.fullmatch(r"(/[A-Za-z0-9._~-]+)*", path):
        raise click.BadParameter(f"{value} must start with /, for example /switchpoint")
    return path


@click.command()
@click.option("--host", default="127.0.0.1", help="Address to listen on.")
@click.option(
    "--port", type=whole_number(0, 65535), default=8050, help="Port; 0 selects a free one."
)
@click.option(
    "--prefix",
    default="",
    show_default=False,
    metavar="PATH",
    callback=_prefix,
    help="Path prefix behind a reverse proxy, for example /switchpoint.",
)
@click.option(
    "--allow-host",
    "hosts",
    multiple=True,
    metavar="NAME",
    help="Name by which browsers reach the server, beside this machine's; can be repeated.",
)
@database_option
def serve(host: str, port: int, prefix: str, hosts: tuple[str, ...], database: Path) -> None:
    """Start the dashboard; only this machine can reach it unless --host is given.

    If SWITCHPOINT_TOKEN is set, every request must carry the token: as the password of any user,
    or as `Authorization: Bearer TOKEN`. Requests to other host names than this machine's are
    refused unless --allow-host names them.
    """
    token = os.environ.get("SWITCHPOINT_TOKEN")
    if token == "":
        raise SwitchpointError("SWITCHPOINT_TOKEN is empty: give a token, or unset it")
    tuned(database).close()

    with _dashboard():
        from dashboard.app import serve as serve_dashboard

    serve_dashboard(database, host=host, port=port, prefix=prefix, token=token or "", hosts=hosts)


def serve_somewhere(context: click.Context) -> None:
    """Start the dashboard if it is installed; use another port if the usual one is taken."""
    if find_spec("dash") is None:
        return
    from dashboard.app import ListenError

    try:
        context.invoke(serve)
    except ListenError:
        context.invoke(serve, port=0)


@click.command()
@click.option("--output", type=FILE, default="report.html", help="Output file.")
@database_option
def report(output: Path, database: Path) -> None:
    """Write the dashboard's pages to one file that needs no server."""
    with tuned(database) as store:
        if store.systems().empty:
            raise SwitchpointError(f"{database} holds no measurements; run `switchpoint run` first")
        with _dashboard():
            from dashboard.report import write_report
        size_bytes = write_report(store, output)
    say_written(output, f"{size_bytes / 2**20:.1f} MiB")


@contextmanager
def _dashboard() -> Iterator[None]:
    """Raise an error that names a Python package that the dashboard lacks."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise SwitchpointError(f"the dashboard needs the Python package {error.name}") from error
