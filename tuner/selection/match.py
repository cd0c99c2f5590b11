"""The first rule that holds for a case: at one size, and at all of them. No input or output.

The library (kernels/src/selection/choices.c) and the exported header match in the same way.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from tuner.domain.cases import DegreeClass
from tuner.domain.tables import Point, Rule


class SizeStep(NamedTuple):
    """The first rule from `low` to `high` bytes, both included; `high` may be infinite."""

    low: float
    high: float
    rule: int


def first(rules: Iterable[Rule], degree_class: DegreeClass, bytes_: int) -> Rule | None:
    """Return the first rule that holds for a case; None without any."""
    return next((rule for _, rule in _for(rules, degree_class) if _holds_at(rule, bytes_)), None)


def covers(rule: Rule, point: Point) -> bool:
    """Return whether a rule rests on a point, among others."""
    degree_class = point.case.of_any_degree._replace(mmax=point.mmax, mavg=point.mavg)
    return first([rule], degree_class, point.case.bytes) is not None


def by_size(rules: Sequence[Rule], degree_class: DegreeClass) -> list[SizeStep]:
    """Return the index of the first rule at every size that has one, by increasing size."""
    here = list(_for(rules, degree_class))
    begins = {0.0} | {float(rule.bytes_low or 0) for _, rule in here}
    begins |= {float(rule.bytes_high + 1) for _, rule in here if rule.bytes_high is not None}
    ordered = sorted(begins)
    steps: list[SizeStep] = []
    for low, following in zip(ordered, [*ordered[1:], math.inf], strict=True):
        index = next((index for index, rule in here if _holds_at(rule, low)), None)
        if index is None:
            continue
        if steps and (steps[-1].high, steps[-1].rule) == (low - 1, index):
            low = steps.pop().low
        steps.append(SizeStep(low, following - 1, index))
    return steps


def on_layout(rules: Iterable[Rule], degree_class: DegreeClass) -> Iterator[tuple[int, Rule]]:
    """Yield the rules that hold for an operation on a layout for some degrees and size."""
    operation, nodes, ppn, *_ = degree_class
    for index, rule in enumerate(rules):
        if (
            rule.operation == operation
            and rule.nodes_low <= nodes <= rule.nodes_high
            and rule.ppn_low <= ppn <= rule.ppn_high
        ):
            yield index, rule


def _for(rules: Iterable[Rule], degree_class: DegreeClass) -> Iterator[tuple[int, Rule]]:
    """Yield the rules that hold for a degree class at some size, with their indices."""
    for index, rule in on_layout(rules, degree_class):
        if within(rule.mmax_low, degree_class.mmax, rule.mmax_high) and within(
            rule.mavg_low, degree_class.mavg, rule.mavg_high
        ):
            yield index, rule


def _holds_at(rule: Rule, bytes_: float) -> bool:
    return within(rule.bytes_low, bytes_, rule.bytes_high)


def within(low: float | None, value: float, high: float | None) -> bool:
    """Return whether a value is in an interval; unknown (negative) ones are if all others are."""
    if not low and high is None:
        return True
    return (low or 0) <= value and (high is None or value <= high)
