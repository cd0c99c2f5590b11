"""What soaks tell of methods: which failed on a system, and how often the others were executed.

No input or output.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING, Any

from tuner.records import DEFAULT_METHODS, Cell, Soaked, Table

if TYPE_CHECKING:
    import pandas as pd

ENOUGH = 10_000
"""Executions that a method passed from which on it counts as soaked."""

Method = tuple[str, str]
"""Operation and method."""


def verdicts(soaks: pd.DataFrame) -> list[Soaked]:
    """Of every method that was soaked, by the sources with which that was done last.

    soaks: of `Store.soaks`. One failure on any layout, pattern or size is one of the method,
    whatever passed besides; only other sources are tried anew.
    """
    by_method: dict[Method, list[dict[Hashable, Any]]] = defaultdict(list)
    for row in soaks.to_dict("records"):
        by_method[row["operation"], row["method"]].append(row)
    found = []
    for (operation, method), rows in sorted(by_method.items()):
        last = [row for row in rows if row["commit"] == rows[-1]["commit"]]
        failed = next((row for row in last if not row["passed"]), None)
        failure = ""
        if failed is not None:
            failure = (
                f"{failed['reason']} ({failed['size_bytes']} B, {failed['pattern']} on "
                f"{failed['nodes']} x {failed['ppn']}, {failed['date']})"
            )
        passed = sum(int(row["executions"]) for row in last if row["passed"])
        found.append(Soaked(operation, method, passed, failure))
    return found


def candidates(cells: Iterable[Cell], soaks: Iterable[Soaked], required: int) -> list[Cell]:
    """The cells of methods that may be chosen: none that failed, or passed fewer executions.

    The default stays, as there must be one.
    """
    failed = {(each.operation, each.method) for each in soaks if each.failure}
    enough = {(each.operation, each.method) for each in soaks if each.executions >= required}
    return [
        cell
        for cell in cells
        if (what := (cell.key.operation, cell.key.method))[1] == DEFAULT_METHODS[what[0]]
        or (what not in failed and (required == 0 or what in enough))
    ]


def executions(table: Table) -> dict[Method, int]:
    """How often each method that the table chooses was executed in soaks, but for defaults."""
    counted = {(each.operation, each.method): each.executions for each in table.provenance.soaks}
    chosen = {(rule.operation, rule.method) for rule in table.rules}
    return {
        what: counted.get(what, 0) for what in sorted(chosen) if what[1] != DEFAULT_METHODS[what[0]]
    }


def notes(table: Table) -> list[str]:
    """What a reader must know before trusting the table's methods, a line each."""
    lines = [
        f"{each.operation} {each.method} failed its soak, and is "
        + (
            "the default all the same"
            if each.method == DEFAULT_METHODS[each.operation]
            else "in no rule"
        )
        + f": {each.failure}"
        for each in table.provenance.soaks
        if each.failure
    ]
    rarely = [" ".join(what) for what, count in executions(table).items() if count < ENOUGH]
    if rarely:
        lines.append(f"not soaked: {', '.join(rarely)}; `switchpoint run -- --tag=soak` does it")
    if required := table.provenance.required_executions:
        lines.append(f"only methods that passed {required} executions in soaks were candidates")
    return lines
