"""`switchpoint study`: studies of the papers, repeated on this machine."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tuner.commands.naming import Commands
from tuner.commands.options import (
    NAMED_FILE,
    budget_option,
    environment_option,
    json_option,
    launches_option,
    sizes_of_doubles,
    whole_number,
)
from tuner.commands.printing.lines import say, say_json
from tuner.commands.study_simulated import dsde, grids, nap, stfw, uneven
from tuner.units import change_text

if TYPE_CHECKING:
    from tuner.studies.applications import FormGain, Improvement
    from tuner.studies.layouts import Extremes


@click.group(cls=Commands)
def study() -> None:
    """Repeat a study of a paper, on this machine or by simulation."""


study.add_command(dsde)
study.add_command(grids)
study.add_command(nap)
study.add_command(stfw)
study.add_command(uneven)


@study.command()
@click.option("--procs", type=whole_number(8), default=256, help="Processes, a power of two.")
@click.option("--dragonfly", type=whole_number(2), default=32, help="Nodes of a group.")
@click.option("--fattree", type=whole_number(2), default=64, help="Nodes below a top-level link.")
@click.option(
    "--torus", metavar="SIZES", multiple=True, default=("8x8", "4x4x4"), help="Powers of two."
)
@json_option
def bine(procs: int, dragonfly: int, fattree: int, torus: tuple[str, ...], as_json: bool) -> None:
    """Count the bytes that negabinary trees send on global links, and on those of a torus.

    One rank on each node; placed from the start of a group, from all other places of it, or on
    half of the nodes by chance.
    """
    from tuner.studies import bine as counting

    for text in torus:
        if not re.fullmatch(r"(2|4|8|16|32|64)(x(2|4|8|16|32|64)){0,2}", text):
            raise click.BadParameter(f"{text!r} is not a torus, as 8x8 is", param_hint="--torus")
    networks = {"dragonfly": dragonfly, "fat tree": fattree}
    placed = list(counting.on_groups(procs, networks))
    tori = [tuple(map(int, text.split("x"))) for text in torus]
    loaded = [load for sizes in tori for load in counting.on_torus(sizes)]
    findings = list(counting.findings(placed, loaded))
    if as_json:
        document = {"global": list(map(asdict, placed)), "torus": list(map(asdict, loaded))}
        say_json(document | {"findings": list(map(asdict, findings))})
        return
    say(f"bytes on global links of {procs} ranks / those of the rival ({counting.PAPER})")
    for each in placed:
        say(
            f"{each.operation}, {each.rival}, {each.network}, {each.placement}: "
            f"mean {each.mean:.3f}, {each.least:.3f} to {each.most:.3f}"
        )
    say("allreduce on a torus: vectors on the busiest link, and summed over its steps")
    for load in loaded:
        say(f"{load.torus}, {load.method}: {load.most:.4g}, {load.in_turn:.4g}")
    for finding in findings:
        say(str(finding))


@study.command()
@click.argument("matrix", type=click.Path(path_type=Path))
@click.option("--procs", type=whole_number(2), required=True, help="Processes.")
@click.option(
    "--by",
    type=click.Choice(["graph", "hypergraph"]),
    default="graph",
    help="Partitioner: METIS or Mt-KaHyPar.",
)
@click.option(
    "--methods", metavar="SPECS", default="direct nap", help="Method specs, separated by spaces."
)
@click.option(
    "--system",
    type=click.Choice(["local", "nodes"]),
    default="local",
    help="This machine (local), or the virtual nodes that are up.",
)
@click.option(
    "--ppn",
    type=whole_number(1),
    show_default="by the machine's nodes, or evenly on virtual nodes",
    help="Processes per node.",
)
@launches_option(2, 5, "Launches per partition.")
@budget_option(10.0)
@environment_option
@json_option
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
    """Find the number of products with MATRIX after which a balanced partition pays off.

    The comparison is with rows distributed cyclically, which costs nothing.
    """
    from tuner.studies import crossover as crossing

    request = crossing.CrossoverRequest(
        *(matrix, procs, by, methods, ppn, launches, budget_s, environment, system == "nodes")
    )
    result, path = crossing.study(request)
    if as_json:
        say_json(asdict(result) | {"file": str(path)})
        return
    say(
        f"{result.matrix} on {procs} processes of {result.nodes} nodes: partitioned by {by} in "
        f"{result.partition_s:.3g} s"
    )
    for each in result.methods:
        middle, low, high = each.ratio
        after = f"pays off after {each.products} products" if each.products else "no gain shown"
        say(
            f"{each.method}: strided {each.strided_s * 1e6:.3g} us, balanced "
            f"{each.balanced_s * 1e6:.3g} us, ratio {middle:.3f} [{low:.3f}, {high:.3f}]: {after}"
        )
    say(path)


@study.command()
@click.option("--table", type=NAMED_FILE, required=True, help="Table for the preloaded library.")
@click.option("--procs", type=whole_number(1), required=True, help="Processes.")
@click.option(
    "--sizes",
    metavar="LIST",
    default="240 480 960 1920",
    help="Numbers of unknowns, multiples of --procs, separated by spaces.",
)
@click.option("--iterations", type=whole_number(1), default=100, help="Iterations per launch.")
@launches_option(4, 5, "Number of pairs of launches.")
@click.option(
    "--layout-sizes",
    metavar="LIST",
    default="1K:64K:x4",
    callback=lambda *given: given[-1] and sizes_of_doubles(*given),
    help="Sizes in bytes at which all layouts are measured, as for swpbench; empty for none.",
)
@budget_option(1.0, "a launch of layouts")
@environment_option
@json_option
def applications(
    table: Path,
    procs: int,
    sizes: str,
    iterations: int,
    launches: int,
    layout_sizes: str,
    budget_s: float,
    environment: str,
    as_json: bool,
) -> None:
    """Measure the time that a table saves in a Jacobi iteration and parallel Adams methods.

    The unmodified programs run with and without the preloaded library.
    """
    from tuner.studies import applications as applying
    from tuner.studies import layouts

    if not re.fullmatch(r"[0-9]{1,18}( +[0-9]{1,18})*", sizes.strip()):
        raise click.BadParameter(f"{sizes!r} is not a list of sizes", param_hint="--sizes")
    numbers = tuple(int(word) for word in sizes.split())
    build = applying.find_build(environment)
    request = applying.RunsRequest(table.absolute(), procs, numbers, iterations, launches)
    gains = applying.study(request, build)
    extremes: list[Extremes] = []
    try:
        if layout_sizes:
            extremes = layouts.extremes(build, procs, layout_sizes, launches, budget_s)
    finally:  # no failure of the layouts loses the gains
        if as_json:
            document = {
                "applications": [asdict(each) for each in gains],
                "layouts": [asdict(each) for each in extremes],
            }
            say_json(document)
        else:
            _show_savings(gains, extremes)


def _show_savings(gains: Sequence[FormGain], extremes: Sequence[Extremes]) -> None:
    for gain in gains:
        results = "identical" if gain.identical else "equal within rounding"
        say(
            f"{gain.name}: time saved: least {_saved(gain.least)}, mean {_saved(gain.mean)}, "
            f"greatest {_saved(gain.greatest)}; results {results}"
        )
    for each in extremes:
        say(
            f"{each.operation}: fastest layout {each.fastest} saves {_saved(each.fastest_saves)}, "
            f"slowest {each.slowest} {_saved(each.slowest_saves)}"
        )


def _saved(part: Improvement) -> str:
    where = f" at {part.size}" if part.size else ""
    middle, low, high = map(change_text, (part.middle, part.low, part.high))
    return f"{middle} [{low}, {high}]{where}"
