"""`switchpoint nodes`: several nodes on one machine."""

import os
import shlex
import shutil
from dataclasses import asdict
from pathlib import Path

import click

from tuner.commands.naming import Commands
from tuner.commands.options import json_option, whole_number, whole_numbers_in_order
from tuner.commands.printing.lines import say, say_json
from tuner.machine.directories import build_root
from tuner.machine.mpi import FINALIZE_LIBRARY, Mpi, has_workarounds, mpis_named
from tuner.machine.nodes import namespaces
from tuner.machine.nodes.launch import launch
from tuner.machine.nodes.namespaces import DEFAULT_COUNT, DEFAULT_RATE, SET_VARIABLE, NodesError

name_option = click.option(
    "--name",
    default=namespaces.name_meant,
    show_default=f"{SET_VARIABLE}, or default",
    help="Name of the set of nodes, if several are up.",
)


@click.group(cls=Commands)
def nodes() -> None:
    """Run on virtual nodes: network namespaces on this machine, joined by a switch."""


@nodes.command()
@click.option("--nodes", "count", default=DEFAULT_COUNT, help="Number of nodes, at most 64.")
@click.option(
    "--rate",
    default=DEFAULT_RATE,
    help="Bandwidth of a node's network card in each direction: 100mbit, 1gbit, …, or unlimited.",
)
@name_option
def up(count: int, rate: str, name: str) -> None:
    """Start virtual nodes, which run until `nodes down`. Nodes that are already up are kept."""
    made = namespaces.up(name, count, rate)
    say(f"{made.count} virtual nodes, {made.hosts[0]} to {made.hosts[-1]}, at {made.rate}")


@nodes.command()
@name_option
def down(name: str) -> None:
    """Stop the nodes and everything that runs on them."""
    say("virtual nodes stopped" if namespaces.down(name) else "no virtual nodes were up")


@nodes.command()
@name_option
@json_option
def status(name: str, as_json: bool) -> None:
    """Show the nodes and their network traffic."""
    from tuner.machine.nodes.traffic import traffic

    there = namespaces.meant(name)
    counts = traffic(there)
    if as_json:
        shape = {"name": there.name, "rate": there.rate}
        say_json({**shape, "nodes": [asdict(count) for count in counts]})
        return
    say(f"{there.count} virtual nodes at {there.rate}")
    for count in counts:
        sent, received = f"{count.sent_bytes} B sent", f"{count.received_bytes} B received"
        say(f"{count.host}: {sent}, {received}")


@nodes.command("exec", context_settings={"allow_interspersed_args": False})
@click.option("-n", "--procs", type=whole_number(1), help="Processes of an MPI program.")
@click.option(
    "--ppn",
    metavar="N[,N...]",
    callback=whole_numbers_in_order,
    help="Processes per node, or those of each node in turn. [default: (-n / nodes, rounded up)]",
)
@click.option(
    "--environment",
    metavar="NAME",
    help="MPI to start with, for example mpich. [default: (the first found)]",
)
@click.option("--node", metavar="HOST", help="Run the command on this node.")
@name_option
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED)
def execute(
    procs: int | None,
    ppn: list[int],
    environment: str | None,
    node: str | None,
    name: str,
    command: tuple[str, ...],
) -> None:
    """Run COMMAND on one node (--node), or as an MPI program on all (--procs).

    Without either option it runs beside their switch, where launchers of MPI programs run.
    """
    if procs is not None and node is not None:
        raise click.UsageError("give --node or --procs, not both")
    if procs is None and (ppn or environment):
        raise click.UsageError("--ppn and --environment need --procs")
    there = namespaces.meant(name)
    if procs is not None:
        mpi, *_ = mpis_named(environment or "")
        even = ppn[0] if ppn else -(-procs // there.count)
        start = launch(there, mpi, procs, ppn if len(ppn) > 1 else even, _build_of(command[0], mpi))
        os.environ.update(start.env)
        before = start.argv_prefix
    elif node is not None:
        before = there.on_node(node)
        command = (f"cd {shlex.quote(str(Path.cwd()))} && exec {shlex.join(command)}",)
    else:
        before = there.beside_switch()
    os.execvp(before[0], [*before, *command])  # noqa: S606 - no shell is wanted


def _build_of(program: str, mpi: Mpi) -> Path | None:
    """Return the build or installation of kernels that holds a program, else any for this MPI."""
    path = shutil.which(program)
    above = Path(path).resolve().parents if path else ()
    builds = [*above, *sorted(build_root().glob(f"install/*-{mpi.name}"))]
    build = next(filter(has_workarounds, builds), None)
    if build is None and mpi.device.endswith("ucx") and mpi.major < 5:
        raise NodesError(
            f"MPICH {mpi.version} hangs in MPI_Finalize without {FINALIZE_LIBRARY}, and no build "
            "of the kernels has it; run `switchpoint run --system nodes` to build it"
        )
    return build
