"""From decided points to rules, also of layouts between those measured. No input or output."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby

from tuner.selection.interpolation import Layouts, with_layouts_between
from tuner.selection.intervals import degrees_of
from tuner.tables import Point, Rule


def compile_rules(points: Iterable[Point]) -> list[Rule]:
    """The rules of one system's points, by operation, layout, degree and size."""
    rules = []
    for operation, here in groupby(sorted(points, key=_layout), lambda point: point.operation):
        measured: Layouts = {
            ((nodes, nodes), (ppn, ppn)): degrees_of(of_layout)
            for (_, nodes, ppn), of_layout in groupby(here, _layout)
        }
        for (nodes_span, ppn_span), degrees in sorted(
            with_layouts_between(measured).items(), key=lambda item: item[0]
        ):
            for mmax, means in degrees:
                for mavg, sizes in means:
                    for size, point in sizes:
                        bounds = (*nodes_span, *ppn_span, *mmax, *mavg, *size)
                        rules.append(Rule(operation, *bounds, point.method, point))
    return rules


def _layout(point: Point) -> tuple[str, int, int]:
    return point.operation, point.nodes, point.ppn


def matching(
    rules: Iterable[Rule], operation: str, nodes: int, ppn: int, mmax: int, mavg: float, bytes_: int
) -> Rule | None:
    """The first rule that holds for a case, as the library would find it; None without any."""
    for rule in rules:
        if (
            rule.operation == operation
            and rule.nodes_low <= nodes <= rule.nodes_high
            and rule.ppn_low <= ppn <= rule.ppn_high
            and _holds(rule.mmax_low, mmax, rule.mmax_high)
            and _holds(rule.mavg_low, mavg, rule.mavg_high)
            and _holds(rule.bytes_low, bytes_, rule.bytes_high)
        ):
            return rule
    return None


def _holds(low: float | None, value: float, high: float | None) -> bool:
    return (low is None or low <= value) and (high is None or value <= high)
