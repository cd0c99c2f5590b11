"""`switchpoint matrix`: matrices as inputs, and partitions of their rows."""

from dataclasses import asdict
from pathlib import Path

import click

from tuner.commands.matrix_make import directory_option, make
from tuner.commands.matrix_messages import messages
from tuner.commands.naming import Commands
from tuner.commands.options import PARTITIONS, json_option, whole_number
from tuner.commands.printing.lines import say, say_json
from tuner.units import share_text

_FILE = click.Path(path_type=Path)


@click.group(cls=Commands)
def matrix() -> None:
    """Make, fetch, inspect and partition matrices, and count their messages."""


matrix.add_command(make)
matrix.add_command(messages)


@matrix.command()
@click.argument("name")
@directory_option
def fetch(name: str, directory: Path) -> None:
    """Fetch the matrix NAME or GROUP/NAME from the SuiteSparse collection."""
    from tuner.inputs.matrices import suitesparse

    say(suitesparse.fetch(name, directory))


@matrix.command()
@click.argument("file", type=_FILE)
@json_option
def info(file: Path, as_json: bool) -> None:
    """Print the size of the matrix in FILE and the distribution of its entries over rows."""
    from tuner.inputs.matrices.degrees import degrees
    from tuner.inputs.matrices.market import read_pattern

    found = degrees(read_pattern(file))
    if as_json:
        say_json(asdict(found))
        return
    say(
        f"{file}: {found.rows} x {found.columns}, {found.nnz} entries; entries per row: "
        f"mean {found.mean_degree:.2f}, maximum {found.max_degree}, "
        f"coefficient of variation {found.cv:.2f}"
    )


@matrix.command()
@click.argument("file", type=_FILE)
@click.option("--parts", type=whole_number(1), required=True, help="Number of parts.")
@click.option(
    "--by",
    type=click.Choice(PARTITIONS),
    required=True,
    help="Blocks of rows, row r in part r mod K, METIS, or Mt-KaHyPar.",
)
@click.option(
    "--seed", type=whole_number(0), default=1, help="Random seed of METIS and Mt-KaHyPar."
)
@json_option
def partition(file: Path, parts: int, by: str, seed: int, as_json: bool) -> None:
    """Partition the rows of the matrix in FILE, and write the partition to a file beside it.

    An existing partition of the same matrix is reused.
    """
    from tuner.inputs.matrices.market import read_pattern
    from tuner.inputs.matrices.ownership import Ownership
    from tuner.inputs.matrices.partition import kept_partition
    from tuner.inputs.structure.quality import quality

    pattern = read_pattern(file)
    kept = kept_partition(file, pattern, by, parts, seed)
    found = quality(pattern, Ownership(parts, kept.parts))
    if as_json:
        document = {"file": str(kept.path), "partition_s": kept.partition_s, "reused": kept.reused}
        say_json(document | asdict(found))
        return
    made = "reused" if kept.reused else "made"
    say(f"{kept.path}: {made}; partitioning took {kept.partition_s:.3g} s")
    say(
        f"{parts} parts, imbalance {share_text(found.imbalance)}; elements: volume {found.volume}, "
        f"vavg {found.vavg:.1f}, vmax {found.vmax}; messages: {found.messages}, "
        f"mavg {found.mavg:.1f}, mmax {found.mmax}"
    )
