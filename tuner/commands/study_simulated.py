"""`switchpoint study` on simulated machines: claims of the papers about many ranks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from tuner.commands.options import (
    PARTITIONS,
    json_option,
    sizes,
    sizes_of_doubles,
    whole_number,
    whole_numbers,
)
from tuner.commands.printing.lines import say, say_json
from tuner.units import change_text, significant, us_text

if TYPE_CHECKING:
    from tuner.studies.findings import Finding
    from tuner.studies.simulator import Simulator
    from tuner.studies.stfw_tables import Pair, Scaling

_PPN = 16


def numbers_option(name: str, default: str, text: str, least: int = 1) -> Callable[..., Any]:
    """Return an option that takes a comma-separated list of numbers that are `least` or more."""

    def numbers(context: click.Context, parameter: click.Parameter, value: str) -> list[int]:
        found = whole_numbers(context, parameter, value)
        if found[0] < least:
            raise click.BadParameter(f"{found[0]} is too few; at least {least} are needed")
        return found

    return click.option(name, default=default, metavar="N[,N...]", callback=numbers, help=text)


def machine_option(default: str) -> Callable[..., Any]:
    """Return the option `--machine`, the name of a simulated machine."""
    return click.option("--machine", default=default, metavar="NAME", help="Simulated machine.")


def simulated_option(default: int) -> Callable[..., Any]:
    """Return the option `--simulated`, the most ranks of which times are simulated."""
    text = "Simulate up to this many ranks; predict times beyond."
    return click.option("--simulated", type=whole_number(0), default=default, help=text)


ppn_option = click.option("--ppn", type=whole_number(1), default=_PPN, help="Processes per node.")


def simulator_of(machine: str, ppn: int, study: str) -> Simulator:
    """Return a simulator that logs progress to stderr."""
    from tuner.machine.simulation.machines import machine as of_name
    from tuner.studies.simulator import simulator

    return simulator(of_name(machine), ppn, study, lambda line: say(line, err=True))


def show_rows(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table of texts, with the first column aligned to the left."""
    from tuner.commands.printing.console import console
    from tuner.commands.printing.grids import Columns

    table = Columns(*columns, right=columns[1:])
    for row in rows:
        table.add_row(*row)
    console().print(table)


def show_study(
    simulator: Simulator,
    rows: Sequence[Any],
    findings: Sequence[Finding],
    as_json: bool,
    *shown: Callable[[], None],
    **more: Sequence[Any],
) -> None:
    """Print the campaign, the rows, `more` and the findings as one document, or all as text.

    shown: print the rows.
    """
    if as_json:
        parts = {"rows": rows, **more, "findings": findings}
        document = {name: [asdict(row) for row in each] for name, each in parts.items()}
        say_json({"campaign": simulator.campaign, **document})
        return
    for show in shown:
        show()
    for finding in findings:
        say(str(finding))
    say(f"campaign {simulator.campaign}")


@click.command()
@machine_option("torus-4x4x2-bluegenep")
@numbers_option("--procs", "64,128,256,512", "Ranks.", least=2)
@click.option("--degree", type=whole_number(1), default=6, help="Neighbours per rank.")
@numbers_option("--sweep", "1,4,16", "Numbers of neighbours to try on the largest rank count.")
@click.option(
    "--matrices",
    metavar="NAMES",
    default="diffusion,elasticity,fe_rotor,cbuckle",
    help="Comma-separated matrices, in contiguous blocks, whose neighbours are counted; empty for "
    "none.",
)
@click.option("--rows", type=whole_number(64), default=20000, help="Rows of each matrix.")
@ppn_option
@json_option
def dsde(
    machine: str,
    procs: list[int],
    degree: int,
    sweep: list[int],
    matrices: str,
    rows: int,
    ppn: int,
    as_json: bool,
) -> None:
    """Simulate the microbenchmark of the NBX paper: find senders among many ranks."""
    from tuner.studies import dsde as studying
    from tuner.studies import neighbours

    simulator = simulator_of(machine, ppn, "dsde")
    most = max(procs)
    cases = [(each, degree) for each in procs]
    cases += [(most, each) for each in sweep if each != degree and each < most]
    simulator.require_room(most)
    names = [name for name in matrices.split(",") if name]
    counts = list(neighbours.count(names, rows, procs, simulator.log))
    found = list(studying.study(simulator, cases))
    findings = list(studying.findings(found, degree))
    if counts:
        findings.append(neighbours.finding(counts))
    show_found = partial(
        show_rows,
        [
            "ranks",
            "neighbours",
            *(f"{name} us" for name in studying.METHODS),
            "fastest",
            "formulas",
        ],
        (
            [
                *(str(row.procs), str(row.degree)),
                *(us_text(row.simulated_s[name]) for name in studying.METHODS),
                row.fastest,
                " ".join(us_text(row.formula_s[name]) for name in studying.METHODS),
            ]
            for row in found
        ),
    )
    show_counts = partial(
        show_rows,
        ["matrix", "rows", "ranks", "neighbours, mean", "most"],
        (
            [each.matrix, str(each.rows), str(each.procs), f"{each.mean:.1f}", str(each.most)]
            for each in counts
        ),
    )
    shown = [show_found, show_counts] if counts else [show_found]
    show_study(simulator, found, findings, as_json, *shown, neighbours=counts)


@click.command()
@machine_option("torus-4x4x2-bluewaters")
@numbers_option("--procs", "64,512", "Ranks.", least=2)
@click.option("--rows", type=whole_number(64), default=40000, help="Rows of the finest levels.")
@click.option(
    "--random-rows", type=whole_number(1), default=20, help="Rows of random matrices per rank."
)
@numbers_option("--nonzeros", "25,50,100", "Entries per row of random matrices.")
@simulated_option(64)
@ppn_option
@json_option
def nap(
    machine: str,
    procs: list[int],
    rows: int,
    random_rows: int,
    nonzeros: list[int],
    simulated: int,
    ppn: int,
    as_json: bool,
) -> None:
    """Simulate node-aware exchange on many ranks, with the paper's matrices."""
    from tuner.studies import nap as studying

    simulator = simulator_of(machine, ppn, "nap")
    request = studying.NapRequest(procs, rows, random_rows, nonzeros, simulated)
    found = list(studying.study(simulator, request))
    findings = list(studying.findings(found))
    columns = ["matrix", "rows", "ranks", "messages off the node", "bytes off the node"]
    show = partial(
        show_rows,
        [*columns, "all off-node KiB", "all on-node KiB", "time us", "speed-up", "model us"],
        (
            [
                *(row.matrix, str(row.rows), str(row.procs)),
                f"{row.standard.most_messages} -> {row.aware.most_messages}",
                f"{row.standard.most_bytes} -> {row.aware.most_bytes}",
                f"{row.standard.off_node_bytes >> 10} -> {row.aware.off_node_bytes >> 10}",
                f"{row.standard.on_node_bytes >> 10} -> {row.aware.on_node_bytes >> 10}",
                f"{us_text(row.standard.time_s)} -> {us_text(row.aware.time_s)}",
                f"{row.speedup:.2f}",
                f"{us_text(row.standard.predicted_s)} -> {us_text(row.aware.predicted_s)}",
            ]
            for row in found
        ),
    )
    show_study(simulator, found, findings, as_json, show)


@click.command()
@machine_option("torus-4x4x2-bluewaters")
@numbers_option("--procs", "48,64,96", "Ranks.")
@click.option(
    "--sizes",
    default="1K:64K:x8",
    metavar="SIZES",
    callback=sizes_of_doubles,
    help="Sizes, as for swpbench.",
)
@ppn_option
@json_option
def grids(machine: str, procs: list[int], sizes: str, ppn: int, as_json: bool) -> None:
    """Simulate collectives along all process grids, as in the paper's figures."""
    from tuner.studies import grids as studying

    simulator = simulator_of(machine, ppn, "grids")
    found = list(studying.study(simulator, procs, sizes))
    findings = list(studying.findings(found))
    show = partial(
        show_rows,
        ["operation", "ranks", "grids", "least saved", "mean", "greatest", "by", "slowest grid"],
        (
            [
                *(row.operation, str(row.procs), str(row.layouts)),
                *map(change_text, (row.least, row.mean, row.greatest)),
                f"{row.best} at {row.best_bytes} B",
                change_text(row.most_lost),
            ]
            for row in found
        ),
    )
    show_study(simulator, found, findings, as_json, show)


@click.command()
@machine_option("dragonfly-4x1x4x2-aries")
@click.option("--procs", type=whole_number(2), default=512, help="Processes.")
@click.option(
    "--sizes",
    default="8:4K:x8",
    metavar="SIZES",
    callback=sizes,
    help="Mean blocks, as for swpbench.",
)
@numbers_option("--radix", "2,4,8,16,32,64", "Radices.")
@ppn_option
@json_option
def uneven(machine: str, procs: int, sizes: str, radix: list[int], ppn: int, as_json: bool) -> None:
    """Simulate an all-to-all of uneven blocks by each radix, within and between nodes too."""
    from tuner.studies import uneven as studying

    simulator = simulator_of(machine, ppn, "uneven")
    found = list(studying.study(simulator, procs, sizes, radix))
    findings = list(studying.findings(found))
    layered = [f"{each}+{each} us" for each in found[0].layered_s]
    show = partial(
        show_rows,
        ["bytes", "library us", "pairwise us", *(f"{each} us" for each in radix), *layered],
        (
            [
                str(row.size_bytes),
                *(
                    us_text(time_s)
                    for time_s in (
                        *(row.library_s, row.linear_s),
                        *(*row.flat_s.values(), *row.layered_s.values()),
                    )
                ),
            ]
            for row in found
        ),
    )
    show_study(simulator, found, findings, as_json, show)


@click.command()
@machine_option("torus-2x2x2x2x2-bluegeneq")
@click.option(
    "--table",
    type=click.Choice(["2", "3"]),
    default="2",
    help="The paper's table to compare with: 2 (Blue Gene/Q) or 3 (large scale).",
)
@click.option("--matrices", metavar="NAMES", show_default="the table's", help="Comma-separated.")
@numbers_option("--procs", "32,64,128,256,512", "Ranks.", least=4)
@click.option(
    "--entries", type=whole_number(4096), default=400_000, help="Most entries of each matrix."
)
@click.option(
    "--by", type=click.Choice(PARTITIONS), default="hypergraph", help="Partition of the rows."
)
@simulated_option(512)
@click.option(
    "--headers/--no-headers",
    default=True,
    help="Also simulate the paper's variant that sends headers.",
)
@ppn_option
@json_option
def stfw(
    machine: str,
    table: str,
    matrices: str | None,
    procs: list[int],
    entries: int,
    by: str,
    simulated: int,
    headers: bool,
    ppn: int,
    as_json: bool,
) -> None:
    """Simulate store-and-forward on many ranks, for the paper's tables 2 and 3 and figure 8."""
    from tuner.studies import stfw as studying
    from tuner.studies import stfw_tables as tables

    group, system = {"2": ("small15", ""), "3": ("large10", _system(machine))}[table]
    names = matrices.split(",") if matrices else studying.names(group)
    simulator = simulator_of(machine, ppn, "stfw")
    request = studying.StfwRequest(names, entries, by, procs, simulated, headers)
    found = list(studying.study(simulator, request))
    pairs = tables.means(found, tables.published(f"table{table}", system))
    findings = list(tables.findings(pairs))
    products = tables.scaling(found)
    shown = [partial(_show_schemes, pairs)]
    if len(procs) > 1:
        findings.append(tables.scaling_finding(products))
        shown.append(partial(_show_products, products))
    show_study(simulator, found, findings, as_json, *shown, means=pairs)


def _system(machine: str) -> str:
    return "xc40_dragonfly" if machine.startswith("dragonfly") else "xk7_torus3d"


def _show_schemes(pairs: Sequence[Pair]) -> None:
    """Print each scheme's values as ours / the paper's."""
    columns = ["ranks", "scheme", "mmax", "mavg", "vavg words", "buffer KiB", "time us"]
    columns += ["with headers us", "model us", "gain"]
    direct: dict[int, Pair] = {p.ours.procs: p for p in pairs if p.ours.dims == 1}
    rows = []
    for pair in pairs:
        ours, paper = pair.ours, pair.paper
        base = direct[ours.procs]
        cells = [str(ours.procs), "BL" if ours.dims == 1 else f"STFW{ours.dims}"]
        for name, factor in _COLUMNS.items():
            cells.append(_beside(getattr(ours, name), getattr(paper, name, None), factor))
        gain = base.ours.shown_s / ours.shown_s
        wanted = base.paper.shown_s / paper.shown_s if base.paper and paper else None
        rows.append([*cells, _beside(gain, wanted, 1)])
    show_rows(columns, rows)
    say("of two numbers, the second is the paper's")


_COLUMNS = {
    "mmax": 1,
    "mavg": 1,
    "vavg_words": 1,
    "buffer_kib": 1,
    "time_s": 1e6,
    "headered_s": 1e6,
    "predicted_s": 1e6,
}


def _beside(ours: float | None, paper: float | None, factor: float) -> str:
    words = [significant(each * factor) for each in (ours, paper) if each is not None]
    return " / ".join(words) if ours is not None else f"- / {words[0]}" if words else "-"


def _show_products(products: Sequence[Scaling]) -> None:
    """Print figure 8 in microseconds: BL, and the fastest STFW."""
    procs = sorted({count for each in products for count in each.direct_s})
    rows = [
        [each.matrix, *(f"{us_text(each.direct_s[n])} / {us_text(each.stfw_s[n])}" for n in procs)]
        for each in products
    ]
    show_rows(["product us, BL / STFW", *map(str, procs)], rows)
