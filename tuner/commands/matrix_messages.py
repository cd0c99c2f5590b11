"""`switchpoint matrix messages`: what methods send for a matrix, found without a run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tuner.commands.options import json_option, whole_number, whole_numbers
from tuner.commands.printing.lines import say_json

if TYPE_CHECKING:
    from rich.console import Console

    from tuner.inputs.structure.report import ReportRow


@click.command()
@click.argument("matrix", type=click.Path(path_type=Path))
@click.option(
    "--parts", required=True, metavar="K[,K...]", callback=whole_numbers, help="Process counts."
)
@click.option(
    "--by",
    default="contiguous",
    metavar="PARTITION",
    help="Partition of the rows: contiguous, strided, graph, hypergraph, or a partition file.",
)
@click.option(
    "--methods",
    metavar="SPECS",
    default="",
    show_default="direct, stfw with each number of dimensions, nap",
    help="Method specs, separated by spaces.",
)
@click.option("--ppn", type=whole_number(1), default=16, help="Processes per node, in rank order.")
@click.option("--item-bytes", type=whole_number(1), default=8, help="Size of a vector element.")
@json_option
def messages(
    matrix: Path, parts: list[int], by: str, methods: str, ppn: int, item_bytes: int, as_json: bool
) -> None:
    """Count messages, volumes and buffers of every method for the product of MATRIX with a vector.

    The library reports the same numbers when it runs with that many processes.
    """
    from tuner.commands.printing.console import console
    from tuner.inputs.structure import report as reporting

    request = reporting.ReportRequest(matrix, parts, by, methods.split(), ppn, item_bytes)
    rows = list(reporting.report(request))
    if as_json:
        say_json([row.document() for row in rows])
    else:
        _show(rows, console())


def _show(rows: Sequence[ReportRow], out: Console) -> None:
    """Print the table; bytes are of an execution, vavg, vmax and buffer of a process."""
    from tuner.commands.printing.grids import Columns

    counts = ("mmax", "bound", "mavg", "vavg", "vmax", "buffer", "off-node mmax", "off-node bytes")
    table = Columns("parts", "method", "grid", *counts, right=("parts", *counts))
    for row in rows:
        its = row.statistics
        bound = row.method.message_bound
        table.add_row(
            str(row.procs),
            row.method.spec,
            row.method.layout,
            str(its.mmax),
            "" if bound is None else str(bound),
            f"{its.mavg:.1f}",
            f"{its.vavg_bytes:.0f}",
            str(its.vmax_bytes),
            str(its.buffer_bytes),
            str(its.off_node_mmax),
            str(its.off_node_bytes),
        )
    out.print(table)
