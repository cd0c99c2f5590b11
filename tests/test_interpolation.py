"""What a table says of process counts and layouts that were not measured."""

import math
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.synthetic_plan import SyntheticMachine, measure
from tests.test_planning import MACHINE, regrets
from tests.test_rules import METHODS, on, point
from tuner.domain.cases import Place
from tuner.domain.tables import Point, Ratio, Rule
from tuner.selection import match
from tuner.selection.decisions import select
from tuner.selection.rules import compile_rules

Sizes = dict[int, str]


def points(nodes: int, ppn: int, sizes: Sizes, **features: object) -> list[Point]:
    return [
        on(point(method, size), nodes, ppn)._replace(**features) for size, method in sizes.items()
    ]


def raced(nodes: int, ppn: int, size: int, **ratios: float) -> Point:
    """Chooses the fastest; ratios are to the default."""
    best = min(ratios, key=lambda method: ratios[method])
    method = best if ratios[best] < 1 else "direct"
    (its,) = points(nodes, ppn, {size: method})
    return its._replace(ratios=tuple(Ratio(*each) for each in ratios.items()))


def between(rules: list[Rule]) -> list[tuple[int, int, int, int]]:
    return [(*rule[1:5],) for rule in rules if rule.interpolated]


def chosen(rules: list[Rule], nodes: int, ppn: int, size: int) -> str | None:
    rule = match.first(rules, Place("exchange", nodes, ppn, 6, 5.5), size)
    return rule.method if rule else None


def test_process_counts_held_out_lose_little(tmp_path: Path) -> None:
    """Tuned on 4 and 16 processes, asked on 8, with the rules between and without."""
    rules, _ = select(measure(MACHINE, MACHINE.plan(procs=(4, 16)), tmp_path))
    interpolated, over_default = regrets(rules, 8)
    without, _ = regrets([rule for rule in rules if not rule.interpolated], 8)
    assert np.mean(interpolated) <= 0.05 < 0.3 < np.mean(without)
    assert np.mean(np.array(over_default) > 0.02) <= 0.01


LATENCY_S, PER_BYTE_S = 2e-6, 1e-9


def forwarded_s(method: str, size: int, procs: int) -> float:
    """Seconds of an exchange of all with all, sent directly or forwarded in a grid."""
    dims = 1 if method == "direct" else int(method[-1])
    side = procs ** (1 / dims)
    messages = dims * (side - 1)
    return 1e-6 * dims + messages * (LATENCY_S + procs / side * PER_BYTE_S * size)


@pytest.mark.parametrize("seed", range(3))
def test_where_neighbours_choose_other_grids_process_counts_between_lose_little(
    seed: int, tmp_path: Path
) -> None:
    """Nearly every size has another best method on 4, 16 and 64 processes."""
    methods = ("direct", *(f"stfw:dims={dims}" for dims in range(2, 7)))
    machine = SyntheticMachine(methods, forwarded_s, seed=seed)
    rules, _ = select(measure(machine, machine.plan(procs=(4, 16, 64), budget_s=1800), tmp_path))
    sizes = np.exp(np.linspace(math.log(8), math.log(131072), 100)).astype(int).tolist()
    over_best, over_default = [], []
    for procs in (5, 6, 8, 12, 20, 24, 32, 48, 60):
        for size in sizes:
            rule = match.first(rules, Place("exchange", 1, procs, 6, 6.0), size)
            assert rule is not None
            time_s = forwarded_s(rule.method, size, procs)
            over_best.append(time_s / min(forwarded_s(each, size, procs) for each in methods) - 1)
            over_default.append(time_s / forwarded_s("direct", size, procs) - 1)
    assert np.mean(over_best) <= 0.05
    assert np.mean(np.array(over_default) > 0.02) <= 0.01


def test_what_both_neighbours_choose_holds_between_them() -> None:
    rules = compile_rules(points(1, 4, {8: "nap"}) + points(1, 16, {8: "nap"}))
    assert between(rules) == [(1, 1, 5, 15)]
    assert chosen(rules, 1, 3, 8) is chosen(rules, 1, 17, 8) is None


def test_switch_points_lie_between_those_of_the_neighbours() -> None:
    """A method that is faster below procs^3 bytes, by as much as the size is away from there."""
    found = [
        raced(1, procs, 2**power, nap=(2**power / procs**3) ** 0.1)
        for procs in (2, 32)
        for power in range(21)
    ]
    rules = compile_rules(found)
    ends = [rule.bytes_high for rule in rules if rule.method == "nap"]
    assert all(low <= high for low, high in pairwise(ends))
    for procs in range(3, 32):
        assert chosen(rules, 1, procs, procs**3 // 4) == "nap"
        assert chosen(rules, 1, procs, procs**3 * 4) == "direct"


def test_where_the_neighbours_differ_the_ratios_between_decide() -> None:
    a = raced(2, 4, 8, nap=0.5, neighbor=0.9, alltoallv=0.6)
    b = raced(2, 64, 8, nap=1.8, neighbor=0.6, alltoallv=0.7)
    rules = compile_rules([a, b])
    assert [chosen(rules, 2, ppn, 8) for ppn in (5, 8, 30, 63)] == ["nap"] * 2 + ["neighbor"] * 2
    late = raced(2, 64, 8, nap=1.8, neighbor=0.9)
    early = raced(2, 4, 8, nap=0.9, neighbor=1.8)
    rules = compile_rules([early, late])
    assert [chosen(rules, 2, ppn, 8) for ppn in (5, 16, 63)] == ["nap", "direct", "neighbor"]
    (kept,) = {rule.evidence for rule in rules if rule.method == "direct"}
    assert (kept.status, kept.challenger) == ("open", None)


def test_a_size_that_one_side_did_not_measure_lies_on_its_curve() -> None:
    a = [raced(2, 4, size, nap=0.25, neighbor=0.9) for size in (8, 64, 512)]
    b = [raced(2, 16, 8, nap=0.5, neighbor=0.3), raced(2, 16, 512, nap=8.0, neighbor=0.3)]
    rules = compile_rules([*a, *b])
    assert [chosen(rules, 2, 8, size) for size in (8, 64, 512)] == ["nap", "neighbor", "neighbor"]


def test_what_one_side_cannot_have_is_not_compared() -> None:
    a = points(2, 4, {8: "nap", 64: "direct"})
    b = points(2, 8, {8: "neighbor", 64: "direct"})
    assert between(compile_rules(a + b)) == []
    a[0] = a[0]._replace(ratios=(Ratio("nap", 0.5), Ratio("neighbor", 0.8)))
    rules = compile_rules(a + b)
    assert [chosen(rules, 2, 6, size) for size in (8, 64)] == ["neighbor", "direct"]


def test_from_where_ranks_outnumber_cores_only_what_both_choose_holds() -> None:
    a = [raced(1, 4, 8, nap=0.5, neighbor=0.6), raced(1, 4, 64, nap=0.5, neighbor=0.6)]
    b = [raced(1, 9, 8, nap=0.5, neighbor=0.4), raced(1, 9, 64, nap=0.4, neighbor=0.5)]
    alike, crowded = (
        compile_rules(a + [on(point, 1, point.case.layout.ppn, over=many) for point in b])
        for many in (False, True)
    )
    assert [chosen(alike, 1, 6, size) for size in (8, 64)] == ["neighbor", "nap"]
    assert [chosen(crowded, 1, 6, size) for size in (8, 64)] == ["direct", "nap"]
    only_there = on(raced(1, 9, 8, alltoallv=0.5), 1, 9, over=True)
    assert chosen(compile_rules([a[0], only_there]), 1, 6, 8) == "direct"


def test_what_is_not_alike_is_not_joined() -> None:
    for axis in ((1, 4), (4, 1)):  # one node has no network, one process a node no neighbours
        other = points(4, 4, {8: "nap"})
        assert between(compile_rules(points(*axis, {8: "nap"}) + other)) == []


def test_layouts_between_four_are_covered() -> None:
    corners = [
        each for nodes in (2, 8) for ppn in (2, 8) for each in points(nodes, ppn, {8: "nap"})
    ]
    rules = compile_rules(corners)
    assert {chosen(rules, nodes, ppn, 8) for nodes in range(2, 9) for ppn in range(2, 9)} == {"nap"}


decisions = st.dictionaries(
    st.tuples(st.sampled_from([1, 2, 5]), st.sampled_from([1, 2, 4, 9])),
    st.dictionaries(
        st.tuples(st.integers(0, 3), st.integers(0, 2), st.integers(0, 10)), METHODS, min_size=1
    ),
    min_size=1,
)


@given(decisions, st.integers(1, 6), st.integers(1, 10), st.integers(0, 2**12))
def test_one_rule_holds_and_no_method_appears_from_nowhere(
    decided: dict[tuple[int, int], dict[tuple[int, int, int], str]], nodes: int, ppn: int, size: int
) -> None:
    found = [
        on(point(method, 2**power, (mmax, mavg + 0.5)), n, p)
        for (n, p), classes in decided.items()
        for (mmax, mavg, power), method in classes.items()
    ]
    rules = compile_rules(found)
    holding = [
        rule
        for rule in rules
        if match.first([rule], Place("exchange", nodes, ppn, 2, 1.2), size) is not None
    ]
    assert len(holding) <= 1
    assert len(holding) == 1 or (nodes, ppn) not in decided
    for rule in holding:
        its = {method for layout in decided for method in decided[layout].values()}
        assert rule.interpolated == ((nodes, ppn) not in decided)
        assert rule.method in its
