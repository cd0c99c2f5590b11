"""The results of soaks: which methods failed on a system, and how often others were executed.

A method is chosen only where it was executed often enough, and nowhere while a failure of it
counts.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from tuner.domain.operations import DEFAULT_METHODS, FOREIGN, SHARED_BYTES, by_memory
from tuner.domain.records import Cell
from tuner.domain.tables import UNSOAKED, Point, Soaked, SoakedAt, Table
from tuner.machine.simulation import machines
from tuner.machine.systems import Place
from tuner.selection import off
from tuner.selection.next_step import soaking_command

if TYPE_CHECKING:
    import pandas as pd

ENOUGH = 10_000
"""Executions that a method has to pass before it is chosen, unless another number is required.

They are required on each layout on which it won, at the smallest of the sizes at which it did; at
the largest, whose executions take longest and use another protocol, a tenth is enough.
"""

_LARGEST_DIVISOR = 10

SoakedMethod = tuple[str, str]
"""Operation and method."""


def are_possible(name: str) -> bool:
    """Return whether soaks can run on a system, by ReFrame's name.

    On simulated machines every execution is the same, and nothing runs on those of PICO.
    """
    return not (machines.is_simulated(name) or name.startswith(FOREIGN))


def outcomes(soaks: pd.DataFrame, sources: str | None) -> list[Soaked]:
    """Return the outcome for every soaked method, from the sources that were soaked last.

    soaks: the frame of `kinds.soak.stored`. One failure on any layout, pattern or size fails the
    method, whatever else passed, until the system is measured with other `sources`, by commit; None
    stands for any.
    """
    by_method: dict[SoakedMethod, list[dict[Hashable, Any]]] = defaultdict(list)
    for row in soaks.to_dict("records"):
        by_method[row["operation"], row["method"]].append(row)
    found = []
    for (operation, method), rows in sorted(by_method.items()):
        last = [row for row in rows if row["commit"] == rows[-1]["commit"]]
        failed = next((row for row in last if not row["passed"]), None)
        failure = ""
        if failed is not None:
            if sources is not None and failed["commit"] != sources:
                continue
            failure = (
                f"{failed['reason']} ({failed['size_bytes']} B, {failed['pattern']} on "
                f"{failed['nodes']} x {failed['ppn']}, {failed['date']})"
            )
        counts: dict[tuple[int, int, int], int] = defaultdict(int)
        for row in last:
            if row["passed"]:
                counts[row["nodes"], row["ppn"], row["size_bytes"]] += int(row["executions"])
        places = [SoakedAt(*place, count) for place, count in sorted(counts.items())]
        found.append(Soaked(operation, method, sum(counts.values()), failure, places))
    return found


def failed(soaks: Iterable[Soaked]) -> set[SoakedMethod]:
    """Return the methods that failed once, without defaults, as there must be one."""
    having = ((each.operation, each.method) for each in soaks if each.failure)
    return {method for method in having if not _is_default(method)}


def left_out(methods: Iterable[SoakedMethod], soaks: Iterable[Soaked]) -> set[SoakedMethod]:
    """Return the methods that are not chosen: they failed a soak, or are off at this site."""
    without = failed(soaks)
    return {which for which in methods if which in without or off.is_off_here(which[1])}


def candidates(cells: Sequence[Cell], soaks: Iterable[Soaked]) -> list[Cell]:
    """Return the cells of methods that may be chosen."""
    methods = [(cell.key.case.operation, cell.key.method) for cell in cells]
    without = left_out(set(methods), soaks)
    return [cell for cell, method in zip(cells, methods, strict=True) if method not in without]


class Lack(NamedTuple):
    """The executions that a winning method has still to pass on one layout at one size.

    If `for_filled`, only filled sizes wait for them, beyond those where the method was measured.
    """

    operation: str
    method: str
    nodes: int
    ppn: int
    size_bytes: int
    executions: int
    for_filled: bool = False


def withhold(points: Iterable[Point], soaks: Iterable[Soaked], required: int) -> list[Point]:
    """Keep the default where a winning method failed, or passed fewer executions than required.

    Of the sizes at which it won on a layout, it has to pass all executions at the smallest, and a
    tenth at the largest. Filled ones beyond these wait by themselves, until it passed at both ends
    of all. No other method moves up: the winner was chosen among all.
    """
    points = list(points)
    withheld = {point for won, _ in _lacking(points, soaks, required) for point in won}
    return [
        point._replace(method=DEFAULT_METHODS[point.case.operation], status=UNSOAKED)
        if point in withheld
        else point
        for point in points
    ]


def waiting(table: Table) -> list[Lack]:
    """Return the executions missing before winning methods are chosen."""
    provenance = table.provenance
    found = _lacking(table.points, provenance.soaks, provenance.required_executions)
    return sorted({lack for _, lacks in found for lack in lacks})


def _lacking(
    points: Iterable[Point], soaks: Iterable[Soaked], required: int
) -> Iterator[tuple[list[Point], list[Lack]]]:
    """Yield sizes that must wait, with what they lack; failed methods always wait."""
    known = {(each.operation, each.method): each for each in soaks}
    for (operation, nodes, ppn, method), won in _won(points).items():
        its = known.get((operation, method), Soaked(operation, method, 0, ""))
        # Soaks send equal messages, of which larger ones do not go by memory.
        limit = SHARED_BYTES if operation == "exchange" and by_memory(method) else math.inf
        shown = [point for point in won if not point.filled] or won
        low, high = shown[0].case.bytes, shown[-1].case.bytes
        within = [point for point in won if low <= point.case.bytes <= high]
        beyond = [point for point in won if not low <= point.case.bytes <= high]
        counts: dict[int, int] = defaultdict(int)
        for at in its.places:
            if (at.nodes, at.ppn) == (nodes, ppn):
                counts[int(min(at.size_bytes, limit))] += at.executions
        lacks: dict[int, Lack] = {}
        for group, between, for_filled in ((within, shown, False), (beyond, won, True)):
            least, most = (int(min(end.case.bytes, limit)) for end in (between[0], between[-1]))
            needed = {most: -(-required // _LARGEST_DIVISOR)} | {least: required}
            lacks = {
                size: Lack(operation, method, nodes, ppn, size, number - counts[size], for_filled)
                for size, number in needed.items()
                if counts[size] < number
            } | lacks
            if group and (lacks or its.failure):
                yield group, [*lacks.values()]


def _won(points: Iterable[Point]) -> dict[tuple[str, int, int, str], list[Point]]:
    """Return the sizes at which a method won that is not the default, the smallest first.

    The keys are operation, nodes, processes on each, and method.
    """
    found: dict[tuple[str, int, int, str], list[Point]] = defaultdict(list)
    for point in sorted(points, key=lambda point: point.case.bytes):
        operation, nodes, ppn, *_ = point.case.of_any_degree
        if (method := _winner(point)) != DEFAULT_METHODS[operation]:
            found[operation, nodes, ppn, method].append(point)
    return found


def _winner(point: Point) -> str:
    """Return the winning method, even if it waits."""
    waits = point.status == UNSOAKED and point.challenger is not None
    return str(point.challenger) if waits else point.method


def executions(table: Table) -> dict[tuple[str, str, int, int], int]:
    """Return how often each method that the table chooses was soaked on each layout.

    Defaults are left out. The result is empty for simulated machines, which need no soaks; those
    borrowed from them do.
    """
    if machines.is_simulated(table.provenance.system) and not table.provenance.borrowed_for:
        return {}
    counted: dict[tuple[str, str, int, int], int] = defaultdict(int)
    for its in table.provenance.soaks:
        for nodes, ppn, _, count in its.places:
            counted[its.operation, its.method, nodes, ppn] += count
    return {
        (operation, method, nodes, ppn): counted[operation, method, nodes, ppn]
        for (operation, nodes, ppn, method), won in _won(table.points).items()
        if any(point.method == method for point in won)
    }


def notes(table: Table, place: Place | None = None) -> list[str]:
    """Return what a reader must know before trusting the table's methods, one line each.

    place: where it was measured, for notes that are printed here.
    """
    lines = [
        f"{each.operation} {each.method} failed its soak "
        + (
            "but stays the default"
            if _is_default((each.operation, each.method))
            else "and is in no rule"
        )
        + f": {each.failure}"
        for each in table.provenance.soaks
        if each.failure
    ]
    required = table.provenance.required_executions
    command = soaking_command(table.provenance.name, table.provenance.environment, place=place)
    lacks = waiting(table)
    withheld = {its[:4] for its in lacks if not its.for_filled}
    if withheld:
        lines.append(
            f"faster, but in no rule until soaked {required} times: {_named(withheld)}; "
            f"run `{command}`"
        )
    if beyond := {its[:4] for its in lacks} - withheld:
        lines.append(
            f"not chosen at open sizes beyond those where it was soaked: {_named(beyond)}; "
            f"run `{command}`"
        )
    if unsoaked := [where for where, count in executions(table).items() if not count]:
        advice = f"; run `{command}`" if are_possible(table.provenance.name) else ""
        lines.append(f"not soaked: {_named(unsoaked)}{advice}")
    if required:
        lines.append(f"only methods that passed {required} executions in soaks are chosen")
    return lines


def _named(places: Iterable[tuple[str, str, int, int]]) -> str:
    """Return the methods as text, each with its layouts."""
    layouts: dict[SoakedMethod, list[str]] = defaultdict(list)
    for operation, method, nodes, ppn in sorted(places):
        layouts[operation, method].append(f"{nodes} x {ppn}")
    return "; ".join(f"{' '.join(what)} on {', '.join(on)}" for what, on in layouts.items())


def _is_default(what: SoakedMethod) -> bool:
    operation, method = what
    return method == DEFAULT_METHODS[operation]
