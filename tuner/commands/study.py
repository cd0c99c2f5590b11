"""`switchpoint study`: questions of the papers, answered on this machine."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import click


@click.group()
def study() -> None:
    """Answer a question of the papers by measuring on this machine."""


@study.command()
@click.argument("matrix", type=click.Path(path_type=Path))
@click.option("--procs", type=click.IntRange(min=2), required=True, help="Processes.")
@click.option(
    "--by",
    type=click.Choice(["graph", "hypergraph"]),
    default="graph",
    show_default=True,
    help="What balances the rows: METIS or Mt-KaHyPar.",
)
@click.option(
    "--methods",
    metavar="SPECS",
    default="direct nap",
    show_default=True,
    help="Method specs, separated by spaces.",
)
@click.option(
    "--system",
    type=click.Choice(["local", "nodes"]),
    default="local",
    show_default=True,
    help="This machine as it is, or the virtual nodes that are up.",
)
@click.option(
    "--ppn",
    type=click.IntRange(min=1),
    show_default="the machine's nodes, or as evenly as the virtual ones allow",
    help="So many processes on each node; on this machine as it is, take so many for one.",
)
@click.option(
    "--launches",
    type=click.IntRange(min=2),
    default=5,
    show_default=True,
    help="Launches of each of the two partitions.",
)
@click.option(
    "--budget",
    "budget_s",
    type=click.FloatRange(min=0.1),
    default=10.0,
    show_default=True,
    help="Time for a launch, in seconds.",
)
@click.option("--environment", default="", show_default="the first found", help="The MPI's name.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def crossover(
    matrix: Path,
    procs: int,
    by: str,
    methods: str,
    system: str,
    ppn: int | None,
    launches: int,
    budget_s: float,
    environment: str,
    as_json: bool,
) -> None:
    """Tell after how many products with MATRIX a balanced partition has made good its time.

    The alternative is rows that are dealt out in strides, at no cost.
    """
    from tuner import crossover as crossing

    request = crossing.Request(
        *(matrix, procs, by, methods, ppn, launches, budget_s, environment, system == "nodes")
    )
    result, path = crossing.study(request)
    if as_json:
        click.echo(json.dumps(asdict(result) | {"file": str(path)}, indent=1))
        return
    click.echo(
        f"{result.matrix} on {procs} processes of {result.nodes} nodes: partitioned by {by} in "
        f"{result.partition_s:.3g} s"
    )
    for each in result.methods:
        middle, low, high = each.ratio
        after = f"pays after {each.products} products" if each.products else "no gain is shown"
        click.echo(
            f"{each.method}: strided {each.strided_s * 1e6:.3g} us, balanced "
            f"{each.balanced_s * 1e6:.3g} us, ratio {middle:.3f} [{low:.3f}, {high:.3f}]: {after}"
        )
    click.echo(path)
