"""The algorithms of the MPI library that a table chooses, by operation, process count and bytes.

Libraries know the number of processes of a communicator, but not its layout, and can run only their
own algorithms. For any other method the choice is left to the library, and the rule is reported.
Between measured process counts it is left to it but for those of layouts that the table infers
rules for, and for counts between these, which are of such layouts with fewer processes on some
nodes.
"""

import math
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product
from typing import NamedTuple

from tuner.domain.cases import DegreeClass
from tuner.domain.operations import ALGORITHM, BY_ENVIRONMENT, COLLECTIVES, FOREIGN
from tuner.domain.tables import Rule, Table
from tuner.errors import SwitchpointError
from tuner.export.exported import Exported
from tuner.selection import match

OWN_SIZES = ("gather", "scatter", "alltoallv")
"""Operations whose size the library takes from arguments that differ between ranks, if from any."""

_MOST_LAYOUTS = 1 << 20
"""Layouts of all rules of an operation, each of which is looked at: seconds."""

SIZE_MOST = 2**31 - 1
"""The largest number of bytes in a file for a library."""

NEAR = 1 / 32
"""The share by which process counts may differ if sizes that are scaled by them are the same."""


class VendorError(SwitchpointError):
    """Error raised when a table cannot serve an MPI library; the message says why."""


class NoneBestError(VendorError):
    """Error raised when no algorithm of the library is best; options `alone` compare only these."""

    alone = "--name collective --setvar=collective.methods=vendor"


class SizeRange(NamedTuple):
    """The sizes from `low` to `high` bytes, both included; None leaves the choice to the library.

    `high` is None where unbounded.
    """

    low: int
    high: int | None
    algorithm: str | None


class Counts(NamedTuple):
    """The choices for the process count of a layout, from 0 bytes up.

    Inferred ones are for all process counts up to those of the last layout; `whole` are those of
    them that have as many processes on each node.
    """

    layout: tuple[int, int]
    last: tuple[int, int]
    inferred: bool
    intervals: list[SizeRange]
    whole: list[int]

    @property
    def procs(self) -> int:
        """Return the number of processes, or the least."""
        return math.prod(self.layout)

    @property
    def most(self) -> int:
        """Return the largest number of processes."""
        return math.prod(self.last)

    @property
    def is_power_of_two(self) -> bool:
        """Return whether there is one number of processes alone, which is a power of two."""
        return self.procs == self.most and self.procs.bit_count() == 1

    def spans(self, scaled: bool) -> list[tuple[int, int]]:
        """Return the process counts as intervals, within NEAR if sizes are `scaled` by them.

        The last count is alone then.
        """
        if not scaled or len(self.intervals) == 1:
            return [(self.procs, self.most)]
        found, first = [], self.procs
        while first < self.most:
            last = min(first + int(NEAR * first), self.most - 1)
            found.append((first, last))
            first = last + 1
        return [*found, (self.most, self.most)]


@dataclass
class Choices:
    """The choices of each operation by increasing process counts.

    Forms add which of them they express, and which are left out and why.
    """

    counts: dict[str, list[Counts]] = field(default_factory=dict)
    exported: dict[Exported, None] = field(default_factory=dict)
    left_out: dict[str, None] = field(default_factory=dict)

    def leave_out(self, operation: str, counts: Counts, reason: str) -> None:
        """Record, once, that a measured case is not exported, and why; inferred ones follow it."""
        line = f"{operation}, {counts.procs} processes: {reason}"
        if not counts.inferred:
            self.left_out[line] = None

    def fitting(
        self, operation: str, counts: Counts, scale: int = 1, most: int = SIZE_MOST
    ) -> list[SizeRange]:
        """Return the intervals that begin at sizes which a library's file can hold, times `scale`.

        The others are left out, and the last gets their sizes.
        """
        fit = [each for each in counts.intervals if each.low * scale <= most]
        if others := counts.intervals[len(fit) :]:
            reason = f"from {others[0].low} B: too large for the file"
            self.leave_out(operation, counts, reason)
            fit[-1] = fit[-1]._replace(high=None)
        return fit

    def keep(self, operation: str, counts: Counts, interval: SizeRange) -> None:
        """Record, once, that a form expresses an interval."""
        low, high, algorithm = interval
        if algorithm is None:
            return
        last = counts.last if counts.last != counts.layout else (0, 0)
        exported = Exported(operation, *counts.layout, low, high, algorithm, counts.inferred, *last)
        self.exported[exported] = None


def choices_of(table: Table, by_environment: bool = False) -> Choices:
    """Return the choices of a table's collective rules. Raise VendorError if no rule names one.

    Only algorithms that a launch proved to run count; `by_environment`: those too that are chosen
    by the environment, which no launch proves.
    """
    if table.provenance.name.startswith(FOREIGN):
        raise VendorError(
            f"the table of {table.provenance.system} is made of results of PICO: no launch proved "
            "that the library runs the algorithms by their names; measure them with "
            "`switchpoint run`"
        )
    choices = Choices()
    prefixes = (ALGORITHM, BY_ENVIRONMENT) if by_environment else (ALGORITHM,)
    of_spans: dict[str, dict[_Spans, list[Rule]]] = defaultdict(lambda: defaultdict(list))
    uneven = _uneven(table)
    for rule in table.rules:
        if procs := uneven.get((rule.operation, rule.nodes_low, rule.ppn_low)):
            nodes, ppn = layout = rule.nodes_low, rule.ppn_low
            reason = f"{nodes} x {ppn} was measured with {procs} processes alone"
            choices.leave_out(rule.operation, Counts(layout, layout, rule.inferred, [], []), reason)
        elif rule.operation in COLLECTIVES:
            spans = rule.inferred, rule.nodes_low, rule.nodes_high, rule.ppn_low, rule.ppn_high
            of_spans[rule.operation][spans].append(rule)
    for operation, by_spans in sorted(of_spans.items()):
        for counts, rules in _counts(choices, operation, by_spans, prefixes):
            _add(choices, operation, counts, rules, prefixes)
    if not choices.counts:
        none = f"the table of {table.provenance.system} chooses none of the library's algorithms"
        if why := _why_none(table, prefixes, uneven):
            raise VendorError(f"{none}: {why}")
        raise NoneBestError(f"{none}: the default or a method of Switchpoint is best everywhere")
    return choices


_Uneven = dict[tuple[str, int, int], int]
"""The processes by operation, nodes and processes on each."""


def _uneven(table: Table) -> _Uneven:
    """Return the most processes of collectives' layouts that were measured with fewer than fit."""
    most: dict[tuple[str, int, int], int] = defaultdict(int)
    for point in table.points:
        its = point.case.layout
        key = point.case.operation, its.nodes, its.ppn
        most[key] = max(most[key], its.procs)
    return {
        (operation, nodes, ppn): procs
        for (operation, nodes, ppn), procs in most.items()
        if procs < nodes * ppn and operation in COLLECTIVES
    }


_Spans = tuple[bool, int, int, int, int]
"""Whether rules are inferred, and their nodes and processes on each."""


def _counts(
    choices: Choices, operation: str, by_spans: dict[_Spans, list[Rule]], prefixes: tuple[str, ...]
) -> Iterator[tuple[Counts, list[Rule]]]:
    """Yield the choices by increasing process counts, with their rules.

    Of several layouts with the same count a measured one counts, and of these the table's first.
    """
    if sum((its[2] - its[1] + 1) * (its[4] - its[3] + 1) for its in by_spans) > _MOST_LAYOUTS:
        raise VendorError(f"the table's rules are for over {_MOST_LAYOUTS} layouts")
    found: dict[int, tuple[_Spans, tuple[int, int]]] = {}
    for spans in sorted(by_spans, key=lambda spans: spans[0]):
        inferred, nodes_low, nodes_high, ppn_low, ppn_high = spans
        every = product(range(nodes_low, nodes_high + 1), range(ppn_low, ppn_high + 1))
        for layout in every:
            _, first = found.setdefault(math.prod(layout), (spans, layout))
            if first != layout:
                choices.leave_out(
                    operation,
                    Counts(layout, layout, inferred, [], []),
                    f"{layout[0]} x {layout[1]}: the library does not distinguish layouts, "
                    f"and gets the choices for {first[0]} x {first[1]}",
                )
    intervals = {
        spans: _intervals(rules, DegreeClass(operation, spans[1], spans[3]), prefixes)
        for spans, rules in by_spans.items()
    }
    runs: list[Counts] = []
    of_runs: list[_Spans] = []
    for procs, (spans, layout) in sorted(found.items()):
        its = Counts(layout, layout, spans[0], intervals[spans], [procs])
        adjoins = bool(runs) and of_runs[-1] == spans and runs[-1].most == procs - 1
        if adjoins or (runs and _joins(runs[-1], its)):
            runs[-1].whole.append(procs)
            runs[-1] = runs[-1]._replace(last=layout)
            of_runs[-1] = spans
        else:
            runs.append(its)
            of_runs.append(spans)
    for counts, spans in zip(runs, of_runs, strict=True):
        yield counts, by_spans[spans]


def _joins(before: Counts, after: Counts) -> bool:
    """Return whether inferred counts choose like the next, and so do all between them.

    These must be of the next layout with fewer processes on some nodes. Powers of two stay apart,
    as some algorithms are for these only.
    """
    nodes, ppn = after.layout
    return (
        before.inferred
        and after.inferred
        and before.intervals == after.intervals
        and before.most + 1 >= ppn + nodes - 1
        and min(before.most.bit_count(), after.procs.bit_count()) > 1
    )


def _why_none(table: Table, prefixes: tuple[str, ...], uneven: _Uneven) -> str:
    """Return what the table lacks for such a choice; "" if nothing."""
    of_collectives = [
        rule for rule in table.rules if rule.operation in COLLECTIVES and not rule.inferred
    ]
    if not of_collectives:
        return "it has no rules for collectives; measure them"
    if all((rule.operation, rule.nodes_low, rule.ppn_low) in uneven for rule in of_collectives):
        return "its layouts have fewer processes on some nodes, which no file of a library says"
    unproved = {rule.method for rule in of_collectives if rule.method.startswith(BY_ENVIRONMENT)}
    if unproved and BY_ENVIRONMENT not in prefixes:
        return f"no launch proved that it obeys {', '.join(sorted(unproved))}"
    unsettled = sum(not rule.evidence.settled for rule in of_collectives)
    if unsettled:
        return f"{unsettled} of {len(of_collectives)} rules are open; measure for longer"
    return ""


def _add(
    choices: Choices, operation: str, counts: Counts, rules: list[Rule], prefixes: tuple[str, ...]
) -> None:
    for rule in rules:
        if rule.method != "vendor" and not rule.method.startswith(prefixes):
            why = (
                ": no launch proved that the library obeys it"
                if rule.method.startswith(BY_ENVIRONMENT)
                else " is not an algorithm of the library"
            )
            choices.leave_out(operation, counts, f"{_bytes(rule)}: {rule.method}{why}")
    if operation in OWN_SIZES and len(counts.intervals) > 1:
        choices.leave_out(
            operation,
            counts,
            "the library takes the size from arguments that not all ranks have, so ranks could run "
            "different algorithms: only one algorithm for all sizes can be exported",
        )
    elif any(interval.algorithm for interval in counts.intervals):
        choices.counts.setdefault(operation, []).append(counts)


def _intervals(
    rules: list[Rule], degree_class: DegreeClass, prefixes: tuple[str, ...]
) -> list[SizeRange]:
    """Return the choices of the first rule that matches, from each size at which they change."""
    changes: list[tuple[int, str | None]] = []
    following = 0.0
    for step in match.by_size(rules, degree_class):
        if step.low > following:
            changes.append((int(following), None))
        changes.append((int(step.low), _algorithm(rules[step.rule], prefixes)))
        following = step.high + 1
    if not changes or following < math.inf:
        changes.append((int(following), None))
    merged = [
        change
        for before, change in zip([None, *changes], changes, strict=False)
        if before is None or before[1] != change[1]
    ]
    highs = [low - 1 for low, _ in merged[1:]]
    return [
        SizeRange(low, high, algorithm)
        for (low, algorithm), high in zip(merged, [*highs, None], strict=True)
    ]


def _algorithm(rule: Rule, prefixes: tuple[str, ...]) -> str | None:
    method = rule.method
    return method.partition("=")[2] if method.startswith(prefixes) else None


def _bytes(rule: Rule) -> str:
    return f"{rule.bytes_low or 0} to {'any' if rule.bytes_high is None else rule.bytes_high} B"
