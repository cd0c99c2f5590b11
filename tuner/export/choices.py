"""The algorithms of the MPI library that a table chooses, by operation, process count and bytes.

Libraries know the number of processes of a communicator, but not its layout, and can run only their
own algorithms. For any other method the choice is left to the library, and the rule is reported.
The choice is also left to it between the measured process counts, because libraries do not check
whether an algorithm is applicable.
"""

import math
from dataclasses import dataclass, field
from typing import NamedTuple

from tuner.domain.cases import Place
from tuner.domain.operations import ALGORITHM, APART, COLLECTIVES, FOREIGN
from tuner.domain.tables import Rule, Table
from tuner.errors import SwitchpointError
from tuner.export.exported import Exported
from tuner.selection import match

OWN_SIZES = ("gather", "scatter", "alltoallv")
"""Operations whose size the library takes from arguments that differ between ranks, if from any."""

SIZE_MOST = 2**31 - 1
"""The largest number of bytes in a file for a library."""


class VendorError(SwitchpointError):
    """Error raised when a table cannot serve an MPI library; the message says why."""


class Interval(NamedTuple):
    """The sizes from `low` to `high` bytes, both included; None leaves the choice to the library.

    `high` is None where unbounded.
    """

    low: int
    high: int | None
    algorithm: str | None


class Counts(NamedTuple):
    """The choices for the process count of a layout, from 0 bytes up."""

    nodes: int
    ppn: int
    intervals: list[Interval]

    @property
    def procs(self) -> int:
        """Return the number of processes."""
        return self.nodes * self.ppn


@dataclass
class Choices:
    """The choices of each operation by increasing process counts.

    Forms add which of them they express, and which are left out and why.
    """

    counts: dict[str, list[Counts]] = field(default_factory=dict)
    exported: list[Exported] = field(default_factory=list)
    left_out: list[str] = field(default_factory=list)

    def leave_out(self, operation: str, procs: int, reason: str) -> None:
        """Record, once, that a case is not exported, and why."""
        line = f"{operation}, {procs} processes: {reason}"
        if line not in self.left_out:
            self.left_out.append(line)

    def fitting(self, operation: str, counts: Counts, scale: int = 1) -> list[Interval]:
        """Return the intervals that begin at sizes which libraries' files can hold, times `scale`.

        The others are left out, and the last gets their sizes.
        """
        fit = [each for each in counts.intervals if each.low * scale <= SIZE_MOST]
        if others := counts.intervals[len(fit) :]:
            reason = f"from {others[0].low} B: too large for the file"
            self.leave_out(operation, counts.procs, reason)
            fit[-1] = fit[-1]._replace(high=None)
        return fit

    def keep(self, operation: str, counts: Counts, interval: Interval) -> None:
        """Record, once, that a form expresses an interval."""
        low, high, algorithm = interval
        if algorithm is None:
            return
        exported = Exported(operation, counts.nodes, counts.ppn, low, high, algorithm)
        if exported not in self.exported:
            self.exported.append(exported)


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
    prefixes = (ALGORITHM, APART) if by_environment else (ALGORITHM,)
    layouts: dict[tuple[str, int], tuple[int, int]] = {}
    rules: dict[tuple[str, int], list[Rule]] = {}
    for rule in table.rules:
        if rule.operation not in COLLECTIVES or rule.inferred:
            continue
        nodes, ppn = rule.nodes_low, rule.ppn_low
        key = rule.operation, nodes * ppn
        layout = layouts.setdefault(key, (nodes, ppn))
        if layout == (nodes, ppn):
            rules.setdefault(key, []).append(rule)
        else:
            choices.leave_out(
                *key,
                f"{nodes} x {ppn}: the library does not distinguish layouts, "
                f"and gets the choices for {layout[0]} x {layout[1]}",
            )
    for (operation, procs), of_layout in sorted(rules.items(), key=lambda item: item[0]):
        _add(choices, Place(operation, *layouts[operation, procs]), of_layout, prefixes)
    if not choices.counts:
        raise VendorError(
            f"the table of {table.provenance.system} chooses none of the library's algorithms: "
            + _why_none(table)
        )
    return choices


def _why_none(table: Table) -> str:
    of_collectives = [
        rule for rule in table.rules if rule.operation in COLLECTIVES and not rule.inferred
    ]
    if not of_collectives:
        return "it has no rules for collectives; measure them"
    unsettled = sum(not rule.evidence.settled for rule in of_collectives)
    if unsettled:
        return f"{unsettled} of {len(of_collectives)} rules are open; measure for longer"
    return (
        "the default or a method of Switchpoint is best everywhere; to compare only the library's "
        "algorithms, measure with `--setvar=collective.methods=vendor`"
    )


def _add(choices: Choices, place: Place, rules: list[Rule], prefixes: tuple[str, ...]) -> None:
    operation, procs = place.operation, place.nodes * place.ppn
    for rule in rules:
        if rule.method != "vendor" and not rule.method.startswith(prefixes):
            why = (
                ": no launch proved that the library obeys it"
                if rule.method.startswith(APART)
                else " is not an algorithm of the library"
            )
            choices.leave_out(operation, procs, f"{_bytes(rule)}: {rule.method}{why}")
    intervals = _intervals(rules, place, prefixes)
    if operation in OWN_SIZES and len(intervals) > 1:
        choices.leave_out(
            operation,
            procs,
            "the library takes the size from arguments that not all ranks have, so ranks could run "
            "different algorithms: only one algorithm for all sizes can be exported",
        )
    elif any(interval.algorithm for interval in intervals):
        of_operation = choices.counts.setdefault(operation, [])
        of_operation.append(Counts(place.nodes, place.ppn, intervals))


def _intervals(rules: list[Rule], place: Place, prefixes: tuple[str, ...]) -> list[Interval]:
    """Return the choices of the first rule that matches, from each size at which they change."""
    changes: list[tuple[int, str | None]] = []
    following = 0.0
    for step in match.by_size(rules, place):
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
        Interval(low, high, algorithm)
        for (low, algorithm), high in zip(merged, [*highs, None], strict=True)
    ]


def _algorithm(rule: Rule, prefixes: tuple[str, ...]) -> str | None:
    method = rule.method
    return method.partition("=")[2] if method.startswith(prefixes) else None


def _bytes(rule: Rule) -> str:
    return f"{rule.bytes_low or 0} to {'any' if rule.bytes_high is None else rule.bytes_high} B"
