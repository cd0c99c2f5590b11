"""Intervals around points: everything is covered, and nothing said twice."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.decisions import METHODS, point
from tuner.domain.tables import FASTER, UNSOAKED, Rule
from tuner.selection.intervals import real_intervals, whole_intervals
from tuner.selection.match import covers
from tuner.selection.rules import compile_rules


def holds(rule: Rule, mmax: int, mavg: float, size: int) -> bool:
    return all(
        (low is None or low <= value) and (high is None or value <= high)
        for value, low, high in (
            (mmax, rule.mmax_low, rule.mmax_high),
            (mavg, rule.mavg_low, rule.mavg_high),
            (size, rule.bytes_low, rule.bytes_high),
        )
    )


increasing = st.lists(st.integers(0, 2**40), min_size=1, max_size=20, unique=True).map(sorted)


@given(increasing)
def test_whole_intervals_cover_everything_once(values: list[int]) -> None:
    intervals = whole_intervals(values)
    assert intervals[0].low is None
    assert intervals[-1].high is None
    assert all(after.low == before.high + 1 for before, after in pairwise(intervals))
    for value, (low, high) in zip(values, intervals, strict=True):
        assert (low is None or low <= value) and (high is None or value <= high)


def test_boundaries_lie_at_the_geometric_midpoint() -> None:
    assert [interval.high for interval in whole_intervals([8, 512, 4096])] == [64, 1448, None]
    assert [interval.high for interval in real_intervals([1.0, 4.0])] == [2.0, None]


cases = st.dictionaries(
    st.tuples(st.integers(0, 9), st.integers(0, 3), st.integers(0, 10)), METHODS, min_size=1
)


@given(cases)
def test_every_measured_case_gets_its_own_method(decided: dict[tuple[int, int, int], str]) -> None:
    """The first rule that holds at a point has the point's method, for any set of points."""
    points = [
        point(method, 2**size, (mmax, mavg + 0.5)) for (mmax, mavg, size), method in decided.items()
    ]
    rules = compile_rules(points)
    for each in points:
        first = next(rule for rule in rules if holds(rule, each.mmax, each.mavg, each.case.bytes))
        assert first.method == each.method


@given(cases, st.integers(0, 2**20), st.floats(0, 2**20), st.integers(0, 2**40))
def test_every_case_is_covered(
    decided: dict[tuple[int, int, int], str], mmax: int, mavg: float, size: int
) -> None:
    points = [point(method, 2**s, (m, a + 0.5)) for (m, a, s), method in decided.items()]
    rules = compile_rules(points)
    assert any(holds(rule, mmax, mavg, min(size, 2)) for rule in rules)
    if not any(holds(rule, mmax, mavg, size) for rule in rules):
        assert size > 2 * min(2**largest for *_, largest in decided)


@pytest.mark.parametrize(
    ("operation", "methods", "largest"),
    [
        ("exchange", ["direct", "neighbor"], 2048),
        ("exchange", ["neighbor"], 16),
        ("exchange", ["neighbor", "direct"], None),
        ("bcast", ["vendor", "binomial"], 2048),
        ("bcast", ["binomial", "vendor:algorithm=chain"], None),
        ("barrier", ["dissemination"], None),
        ("discovery", ["nbx", "nbx"], None),
        ("discovery", ["pex", "nbx"], 2048),
    ],
)
def test_methods_hold_up_to_twice_the_largest_measured_size(
    operation: str, methods: list[str], largest: int | None
) -> None:
    points = [point(method, 8 * 128**n, operation=operation) for n, method in enumerate(methods)]
    rules = compile_rules(points)
    assert [rule.bytes_high for rule in rules][-1] == largest


@given(st.dictionaries(st.integers(0, 20), METHODS, min_size=1))
def test_sizes_rise_and_neighbours_differ(decided: dict[int, str]) -> None:
    rules = compile_rules(point(method, 2**size) for size, method in decided.items())
    assert all(a.method != b.method for a, b in pairwise(rules))
    assert all(b.bytes_low == a.bytes_high + 1 for a, b in pairwise(rules))


def test_degrees_that_agree_are_merged() -> None:
    points = [point("neighbor", 8, (mmax, mavg)) for mmax in (3, 9) for mavg in (1.5, 2.5)]
    (rule,) = compile_rules(points)
    assert rule[5:12] == (None, None, None, None, None, 16, "neighbor")


def test_degrees_that_differ_are_not() -> None:
    points = [point("neighbor", 8, (4, 4.0)), point("direct", 8, (16, 4.0))]
    assert [(rule.mmax_low, rule.mmax_high, rule.method) for rule in compile_rules(points)] == [
        (None, 8, "neighbor"),
        (9, None, "direct"),
    ]


@pytest.mark.parametrize(
    ("statuses", "weakest"),
    [(["equal", "open", "default"], "open"), (["default", "equal"], "equal")],
)
def test_a_rule_is_as_good_as_its_weakest_point(statuses: list[str], weakest: str) -> None:
    points = [point("direct", 8**i, status=status) for i, status in enumerate(statuses)]
    (rule,) = compile_rules(points)
    assert rule.evidence.status == weakest


@pytest.mark.parametrize("status", [FASTER, UNSOAKED])
def test_of_faster_points_the_least_gain_counts(status: str) -> None:
    method = "direct" if status == UNSOAKED else "neighbor"
    (rule,) = compile_rules(
        point("neighbor", size, ratio=ratio, status=status)._replace(method=method)
        for size, ratio in ((8, 0.5), (64, 0.9), (512, 0.7))
    )
    assert (rule.evidence.case.bytes, rule.evidence.ratio) == (64, 0.9)
    assert (rule.evidence.ratio_low, rule.evidence.ratio_high, rule.evidence.level) == (
        *(0.5, 0.9),
        None,
    )


def test_a_rule_holds_where_ranks_arrive_apart_if_all_its_points_do() -> None:
    both, together = point("neighbor", 8)._replace(staggered=True), point("neighbor", 64)
    filled = point("neighbor", 512, status="open")._replace(filled=True)
    assert [rule.evidence.staggered for rule in compile_rules([both, filled])] == [True]
    assert [rule.evidence.staggered for rule in compile_rules([both, together])] == [False]


def test_filled_points_leave_the_evidence_to_others() -> None:
    filled = point("neighbor", 64, ratio=1.1, status="open")._replace(filled=True)
    (rule,) = compile_rules([point("neighbor", 8), filled, point("neighbor", 512, ratio=0.6)])
    assert (rule.evidence.status, rule.evidence.ratio) == ("faster", 0.6)
    assert covers(rule, filled)
    assert (rule.evidence.ratio_low, rule.evidence.ratio_high) == (0.5, 0.6)
