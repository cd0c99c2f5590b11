"""Output of systems, campaigns and tables: rich on a terminal, plain lines elsewhere, or JSON."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from rich.console import Console

from tuner.commands.printing.grids import Columns
from tuner.domain.operations import COLLECTIVES, DEFAULT_METHODS
from tuner.domain.tables import Rule, Table
from tuner.export.document import table_document
from tuner.machine.systems import measured_as, node_cores
from tuner.selection import soaks, trust
from tuner.selection.evidence import certainty, have_filled, verdict
from tuner.selection.kriging import are_oversubscribed
from tuner.selection.next_step import summary
from tuner.units import bytes_text, degree_text, span_text, us_text

if TYPE_CHECKING:
    import pandas as pd


_SCHEMES = [
    ("h", "hca", "started together by synchronised clocks of several machines"),
    ("b", "barrier", "started by barriers, whose skew is part of the times"),
    ("c", "cold", "with cold caches"),
]
"""Ways to measure other than by one clock and with warm caches: mark, word of `sync`, words."""


def show_systems(systems: pd.DataFrame, campaigns: pd.DataFrame, out: Console) -> None:
    """Print the measured systems and campaigns, one line each."""
    grid = Columns(
        "system", "MPI", "processor", "cores", "campaigns", "launches", "samples", "last"
    )
    for row in systems.to_dict("records"):
        grid.add_row(
            row["system"],
            row["mpi_library"],
            row["cpu_model"],
            str(row["cores"]),
            str(row["campaigns"]),
            str(row["launches"]),
            f"{row['samples']}",
            row["last_date"],
        )
    out.print(grid)
    out.print()
    grid = Columns("campaign", "of system", "launches", "samples", "commit")
    for row in campaigns.to_dict("records"):
        missing = row["launches"] - row["complete"]
        soaked = f", {row['executions']} executions in soaks" * bool(row["executions"])
        grid.add_row(
            row["campaign"],
            row["system"],
            f"{row['launches']}{f', {missing} incomplete' if missing else ''}",
            f"{row['samples']}{soaked}",
            row["commit"],
        )
    out.print(grid)


def show_table(table: Table, omission: str, out: Console) -> None:
    """Print a system's table: its switch points, the verdict on each, what is open and omitted."""
    provenance = table.provenance
    out.print(
        f"{provenance.system}: {provenance.mpi_library}, {provenance.cpu_model}, "
        f"campaigns: {len(provenance.campaigns)}, launches: {provenance.launches}, "
        f"last {provenance.date}"
    )
    for note in trust.notes(provenance):
        out.print(note)
    grid = Columns("operation", "nodes x ppn", "degree", "bytes", "method", "status", "verdict")
    before: tuple[str, ...] = ()
    most_bytes: dict[tuple[str, ...], int | None] = {}
    cores = node_cores(provenance.name, provenance.cpu_model, provenance.cores)
    filled, oversubscribed = have_filled(table), are_oversubscribed(table, cores)
    for rule, has_filled, is_over in zip(table.rules, filled, oversubscribed, strict=True):
        case = (rule.operation, _layout_text(rule, is_over), _degree_text(rule))
        sizes = bytes_text(rule.bytes_low, rule.bytes_high)
        shown = ("", "", "") if case == before and out.is_terminal else case
        grid.add_row(
            *shown,
            sizes,
            rule.method,
            rule.evidence.status + " (f)" * has_filled,
            verdict(rule.evidence),
        )
        before = case
        most_bytes[case] = rule.bytes_high
    out.print(grid)
    if any(most is not None for most in most_bytes.values()):
        out.print(
            "no rule holds beyond twice the largest measured size: the default is used, or, in "
            "exchanges and discoveries, what a fitted model estimates"
        )
    if any(oversubscribed):
        out.print("(o) more ranks than cores")
    for mark, scheme, words in _SCHEMES:
        if any(scheme in rule.evidence.case.sync.split("-") for rule in table.rules):
            out.print(f"({mark}) {words}")
    if any(rule.inferred for rule in table.rules):
        out.print(
            "(i) inferred from measured layouts of the same kind; the evidence is that of the "
            "nearest one with this choice"
        )
    if sure := certainty(rule.evidence for rule in table.rules):
        out.print(sure)
    if any(filled):
        out.print("(f) some of the sizes are open, and take the method of other sizes or layouts")
    place = measured_as(provenance.name)
    for note in soaks.notes(table, place):
        out.print(note)
    if omission:
        out.print(f"this table {omission}; run `switchpoint tune` to make it anew")
    out.print(summary(table, place))


def show_products(system: str, products: pd.DataFrame, out: Console) -> None:
    """Print a system's sparse products, if any: each case's default and fastest method.

    products: a frame from `tuner.selection.products.last_measured`.
    """
    import pandas as pd

    if products.empty:
        return
    default = DEFAULT_METHODS["spmv"]
    out.print(f"\n{system}: sparse products, medians")
    grid = Columns(
        *("pattern", "nodes x ppn", "vectors", "method"),
        *("whole product", "exchange alone", "local part alone"),
    )
    case = ["pattern", "nodes", "ppn", "oversubscribed", "sync", "size_bytes"]
    for _, rows in products.groupby(case):
        defaults = rows[rows["method"] == default]
        fastest = rows.loc[[rows["median_s"].idxmin()]]
        for row in pd.concat([defaults, fastest]).drop_duplicates("method").to_dict("records"):
            times = (row["median_s"], row["communication_s"], row["local_s"])
            grid.add_row(
                row["pattern"],
                f"{row['nodes']} x {row['ppn']}{' (o)' if row['oversubscribed'] else ''}",
                str(row["size_bytes"] // 8),
                row["method"],
                *(f"{us_text(seconds)} us" for seconds in times),
            )
    out.print(grid)


def _degree_text(rule: Rule) -> str:
    if rule.operation in COLLECTIVES:
        return "-"
    degrees = (rule.mmax_low, rule.mmax_high), (rule.mavg_low, rule.mavg_high)
    return degree_text(*degrees).removeprefix("degree ") or "all"


def _layout_text(rule: Rule, is_oversubscribed: bool) -> str:
    nodes, ppn = span_text(rule.nodes_low, rule.nodes_high), span_text(rule.ppn_low, rule.ppn_high)
    marks = " (o)" * is_oversubscribed + " (i)" * rule.inferred
    for mark, scheme, _ in _SCHEMES:
        marks += f" ({mark})" * (scheme in rule.evidence.case.sync.split("-"))
    return f"{nodes} x {ppn}{marks}"


def results_document(
    systems: pd.DataFrame,
    campaigns: pd.DataFrame,
    tables: Iterable[Table],
    products: Iterable[pd.DataFrame],
) -> Any:
    """Return systems, campaigns, tables and sparse products as one JSON document."""
    document: dict[str, Any] = {
        "systems": systems.to_dict("records"),
        "campaigns": campaigns.to_dict("records"),
        "tables": [table_document(table) for table in tables],
        "products": [row for rows in products for row in rows.to_dict("records")],
    }
    return document
