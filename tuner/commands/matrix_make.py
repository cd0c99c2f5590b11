"""`switchpoint matrix make`: matrices for experiments, the same ones for the same seed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tuner.commands.naming import Commands
from tuner.commands.options import FILE, json_option, whole_number
from tuner.commands.printing.lines import say, say_json, say_written

if TYPE_CHECKING:
    from tuner.inputs.matrices.amg import Level
    from tuner.inputs.matrices.lookalike import Lookalike

_seed_option = click.option("--seed", type=whole_number(0), default=1, help="Random seed.")
directory_option = click.option(
    "--directory",
    type=click.Path(path_type=Path, file_okay=False),
    default=Path(),
    show_default="the current one",
    help="Output directory.",
)
_gzip_option = click.option("--gzip", "packed", is_flag=True, help="Write .mtx.gz.")


@click.group(cls=Commands)
def make() -> None:
    """Write matrices: look-alikes, multigrid levels, random ones."""


@make.command()
@click.argument("names", nargs=-1)
@click.option(
    "--rows", type=whole_number(2), show_default="as the original", help="Number of rows."
)
@_seed_option
@directory_option
@_gzip_option
@json_option
def lookalike(
    names: tuple[str, ...],
    rows: int | None,
    seed: int,
    directory: Path,
    packed: bool,
    as_json: bool,
) -> None:
    """Write look-alikes of the 22 matrices of the store-and-forward paper's Table 1.

    NAMES are from that table, for example cbuckle and gupta2; the default is all. The
    command prints targets, results, and deviations of more than 10 %.
    """
    from tuner.inputs.matrices import lookalike as looking
    from tuner.inputs.matrices.market import MatrixError

    table = looking.originals()
    if unknown := set(names) - set(table):
        known = ", ".join(table)
        raise MatrixError(f"unknown: {', '.join(sorted(unknown))}; available: {known}")
    chosen = [table[name] for name in names or table]
    targets = [looking.scaled(each.target, rows) if rows else each.target for each in chosen]
    made = []
    for each, target in zip(chosen, targets, strict=True):
        path = directory / f"{each.name}-{target.rows}{_suffix(packed)}"
        made.append(looking.make(each, target, path, seed))
        if not as_json:
            say(_description(made[-1]))
    if as_json:
        _print_json(made)


@make.command()
@click.argument("problem", type=click.Choice(["diffusion", "elasticity"]))
@click.option("--rows", type=whole_number(4), required=True, help="Approximate number of rows.")
@directory_option
@_gzip_option
@json_option
def amg(problem: str, rows: int, directory: Path, packed: bool, as_json: bool) -> None:
    """Write every level of an algebraic multigrid hierarchy."""
    from tuner.inputs.matrices import amg as multigrid

    made = []
    for level in multigrid.make(problem, rows, directory, _suffix(packed)):
        made.append(level)
        if not as_json:
            found = level.degrees
            say(
                f"{level.path}: {found.rows} rows, {found.nnz} entries, "
                f"{found.mean_degree:.1f} per row, at most {found.max_degree}"
            )
    if as_json:
        _print_json(made)


@make.command()
@click.argument("file", type=FILE)
@click.option("--rows", type=whole_number(1), required=True, help="Rows and columns.")
@click.option("--nonzeros", type=whole_number(1), default=25, help="Entries per row.")
@_seed_option
def random(file: Path, rows: int, nonzeros: int, seed: int) -> None:
    """Write a random matrix with the same number of entries in each row, compressed for .gz."""
    from tuner.inputs.matrices import random_rows

    random_rows.make(file, rows, nonzeros, seed)
    say_written(file, f"{rows} rows, {rows * nonzeros} entries")


def _suffix(packed: bool) -> str:
    return ".mtx.gz" if packed else ".mtx"


def _description(made: Lookalike) -> str:
    wanted, found = made.wanted, made.achieved
    text = (
        f"{made.path}: {found.rows} rows, nnz {found.nnz} (target {wanted.nnz}), maximum per row "
        f"{found.max_degree} ({wanted.max_degree}), cv {found.cv:.3f} ({wanted.cv:.3f})"
    )
    return f"{text}; missed: {made.missed}" if made.missed else text


def _print_json(made: Sequence[Lookalike | Level]) -> None:
    def document(each: Lookalike | Level) -> dict[str, Any]:
        return asdict(each) | {"path": str(each.path)}

    say_json([document(each) for each in made])
