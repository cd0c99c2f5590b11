"""Output of the differences between two campaigns or systems."""

from rich.console import Console

from tuner.commands.printing.grids import Columns
from tuner.domain.operations import COLLECTIVES
from tuner.selection.changes import FALSE_DISCOVERIES, Shift, Where
from tuner.selection.comparison import Choice, Comparison, Loss, Moved, Replaced, Subject
from tuner.stats import LEVEL
from tuner.units import change_text, multiple_text, share_text, size_text

SHOWN_CHANGES = 20
"""The maximum number of rows shown; the others are counted, and are in the JSON."""


def show_comparison(a: Subject, b: Subject, comparison: Comparison, out: Console) -> None:
    """Print the changed cells, the moved switch points, and the cost of the other's table."""
    for letter, subject in (("A", a), ("B", b)):
        out.print(f"{letter}: {subject.name}: {subject.mpi_library}")
    if comparison.common_ratio is None:
        out.print("no method was measured by both in the same case")
        return
    _show_changes(comparison, out)
    out.print("\nmeasured: choices by time alone, soaked or not")
    _show_replaced(comparison.measured, out)
    out.print(f"\ndeployable: choices for exported tables, {_requirement(a, b)}")
    if comparison.deployable == comparison.measured:
        out.print("the same as measured")
    else:
        _show_replaced(comparison.deployable, out)


def _requirement(a: Subject, b: Subject) -> str:
    numbers = [a.required_executions, b.required_executions]
    if not any(numbers):
        return "which require no soaks here"
    if numbers[0] == numbers[1]:
        return f"after {numbers[0]} executions in soaks"
    return f"after {numbers[0]} executions in soaks (A), and {numbers[1]} (B)"


def _show_replaced(replaced: Replaced, out: Console) -> None:
    _show_moved(replaced.moved, out)
    _show_loss(replaced.loss, out)


def _show_changes(comparison: Comparison, out: Console) -> None:
    changes = comparison.changes
    out.print(
        f"\n{len(changes)} of {comparison.compared} shared cells changed (at most "
        f"{share_text(FALSE_DISCOVERIES, 0)} of those by chance); on average over all cells, B "
        f"takes {multiple_text(comparison.common_ratio or 1)} x the time of A"
    )
    if not changes:
        return
    _show_operations(comparison.operations, out)
    out.print()
    ratio = f"time B / A ({share_text(LEVEL, 0)})"
    table = Columns("operation", "pattern", "nodes x ppn", "bytes", "method", ratio)
    for change in changes[:SHOWN_CHANGES]:
        where, case = change.where, change.where.case
        table.add_row(
            *(case.operation, case.pattern, _layout(where), size_text(case.bytes), where.method),
            f"{multiple_text(change.ratio)} ({multiple_text(change.low)} to "
            f"{multiple_text(change.high)})",
        )
    out.print(table)
    if len(changes) > SHOWN_CHANGES:
        out.print(f"and {len(changes) - SHOWN_CHANGES} smaller changes; --json lists all")


def _show_operations(operations: list[Shift], out: Console) -> None:
    """Print one line per operation, the most changed first."""
    table = Columns("operation", "changed cells", "mean time B / A")
    for shift in operations:
        changed = f"{len(shift.changes)} of {shift.compared}"
        table.add_row(shift.operation, changed, multiple_text(shift.ratio))
    out.print(table)


def _show_moved(moved: list[Moved], out: Console) -> None:
    if not moved:
        out.print("no switch point moved at the sizes that both measured")
        return
    out.print("different methods are chosen at sizes that both measured:")
    table = Columns("operation", "nodes x ppn", "degree", "", "methods", "sizes, settled by both")
    for each in moved:
        degree = "-" if each.operation in COLLECTIVES else f"{each.mmax}, mean {each.mavg:g}"
        case = (each.operation, f"{each.nodes} x {each.ppn}", degree)
        counts = f"{each.sizes}, {each.settled}"
        table.add_row(*case, "A", _choices(each.a), counts)
        table.add_row(*case, "B", _choices(each.b), counts)
    out.print(table)


def _show_loss(loss: Loss, out: Console) -> None:
    if loss.mean is None or loss.p95 is None or loss.worst is None:
        out.print("the cost of B's table on A is unknown: A has measured none of its methods")
        return
    out.print(
        f"with B's table, the time of A's {loss.cases} cases changes by {change_text(loss.mean)} "
        f"on average and by {change_text(loss.p95)} at the 95th percentile"
    )
    if loss.worst_where:
        where = loss.worst_where
        its = where.case
        case = f"{its.operation} {its.pattern} on {_layout(where)} at {size_text(its.bytes)}"
        out.print(f"worst: {change_text(loss.worst)} with {where.method} for {case}")
    if loss.without_rule:
        out.print(f"{loss.without_rule} cases have no rule in B and take the default")
    if loss.not_measured:
        out.print(
            f"{loss.not_measured} more cases are left out: A has not measured the method that B's "
            "table chooses"
        )


def _layout(where: Where) -> str:
    its = where.case.layout
    return f"{its.nodes} x {its.ppn}{' (o)' if its.oversubscribed else ''}"


def _choices(choices: list[Choice]) -> str:
    first, *others = choices
    return ", ".join(
        [first.method, *(f"from {size_text(c.from_bytes)} {c.method}" for c in others)]
    )
