"""The compilation of points to rules, also for layouts that were not measured.

No input or output.
"""

from collections import defaultdict
from collections.abc import Iterable

from tuner.domain.cases import UNKNOWN_CORES, NodeCores
from tuner.domain.tables import Point, Rule
from tuner.selection.intervals import DegreeIntervals, MergeKey, degrees_of, its_method, join, same
from tuner.selection.kriging import USUAL, Variances
from tuner.selection.unmeasured import MeasuredLayouts, Span, unmeasured

ByLayout = dict[tuple[Span, Span], DegreeIntervals]
"""Choices by nodes and processes per node."""


def compile_rules(
    points: Iterable[Point],
    cores: NodeCores = UNKNOWN_CORES,
    usual: Variances = USUAL,
    key: MergeKey = its_method,
) -> list[Rule]:
    """Return the rules of one system's points, by operation, layout, degree and size.

    `usual` is how layouts of systems differ. No rule holds points whose `key` differs.
    """
    rules = []
    of_operations, spread = MeasuredLayouts.of(points, cores, usual)
    for operation, measured in of_operations.items():
        chosen = {layout: degrees_of(classes, key=key) for layout, classes in measured.items()}
        between = dict(unmeasured(measured, spread, key))
        chosen |= _united(_united(between, 1, key), 0, key)
        for (nodes_span, ppn_span), degrees in sorted(chosen.items(), key=lambda item: item[0]):
            for mmax, means in degrees:
                for mavg, sizes in means:
                    for size, point in sizes:
                        bounds = (*nodes_span, *ppn_span, *mmax, *mavg, *size)
                        rules.append(Rule(operation, *bounds, point.method, point))
    return rules


def _united(layouts: ByLayout, axis: int, key: MergeKey) -> ByLayout:
    """Merge layouts that follow each other along nodes or processes per node and choose alike."""
    lines: dict[Span, list[tuple[Span, DegreeIntervals]]] = defaultdict(list)
    for layout, degrees in sorted(layouts.items(), key=lambda item: item[0]):
        line, span = lines[layout[1 - axis]], layout[axis]
        if line and line[-1][0][1] + 1 == span[0] and same(line[-1][1], degrees, key):
            (low, _), before = line.pop()
            span, degrees = (low, span[1]), join(before, degrees)
        line.append((span, degrees))
    return {
        (other, span) if axis else (span, other): degrees
        for other, line in lines.items()
        for span, degrees in line
    }
