"""What soaks tell of methods: which failed on a system, and how often the others were executed.

A method is chosen only when it was executed often enough without failing. No input or output.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING, Any

from tuner.records import DEFAULT_METHODS, UNSOAKED, Cell, Point, Soaked, Table

if TYPE_CHECKING:
    import pandas as pd

ENOUGH = 2_000
"""Executions that a method has to pass before it is chosen, unless another number is required."""

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


def candidates(cells: Iterable[Cell], soaks: Iterable[Soaked]) -> list[Cell]:
    """The cells of methods that never failed, and of the default, as there must be one."""
    failed = {(each.operation, each.method) for each in soaks if each.failure}
    return [
        cell
        for cell in cells
        if (what := (cell.key.operation, cell.key.method)) not in failed or _is_default(what)
    ]


def withhold(points: Iterable[Point], soaks: Iterable[Soaked], required: int) -> list[Point]:
    """Keeps the default where a method won that passed fewer executions than required.

    The others have raced against it all the same: who is chosen was chosen among them all.
    """
    enough = {(each.operation, each.method) for each in soaks if each.executions >= required}
    return [
        point
        if required == 0 or _is_default(what := (point.operation, point.method)) or what in enough
        else point._replace(method=DEFAULT_METHODS[point.operation], status=UNSOAKED)
        for point in points
    ]


def waiting(table: Table) -> dict[Method, list[Point]]:
    """The methods that won and are not chosen before they pass a soak, with where they won."""
    found: dict[Method, list[Point]] = defaultdict(list)
    for point in table.points:
        if point.status == UNSOAKED and point.challenger is not None:
            found[point.operation, point.challenger].append(point)
    return dict(sorted(found.items()))


def executions(table: Table) -> dict[Method, int]:
    """How often each method that the table chooses was executed in soaks, but for defaults."""
    counted = {(each.operation, each.method): each.executions for each in table.provenance.soaks}
    chosen = {(rule.operation, rule.method) for rule in table.rules}
    return {what: counted.get(what, 0) for what in sorted(chosen) if not _is_default(what)}


def notes(table: Table) -> list[str]:
    """What a reader must know before trusting the table's methods, a line each."""
    lines = [
        f"{each.operation} {each.method} failed its soak, and is "
        + (
            "the default all the same"
            if _is_default((each.operation, each.method))
            else "in no rule"
        )
        + f": {each.failure}"
        for each in table.provenance.soaks
        if each.failure
    ]
    required = table.provenance.required_executions
    if withheld := waiting(table):
        lines.append(
            f"faster, but in no rule before {required} executions in soaks: {_named(withheld)}; "
            "`switchpoint soak` does them"
        )
    if rarely := [what for what, count in executions(table).items() if count < ENOUGH]:
        lines.append(f"not soaked: {_named(rarely)}; `switchpoint soak` does it")
    if required:
        lines.append(f"only methods that passed {required} executions in soaks are chosen")
    return lines


def _named(methods: Iterable[Method]) -> str:
    return ", ".join(" ".join(what) for what in methods)


def _is_default(what: Method) -> bool:
    operation, method = what
    return method == DEFAULT_METHODS[operation]
