"""What a table says of process counts and layouts that were not measured."""

from itertools import pairwise
from pathlib import Path

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.synthetic_plan import measure
from tests.test_planning import MACHINE, regrets
from tests.test_rules import METHODS, point
from tuner.selection.decisions import select
from tuner.selection.rules import compile_rules, matching
from tuner.tables import Point, Rule

Sizes = dict[int, str]


def points(nodes: int, ppn: int, sizes: Sizes, **features: object) -> list[Point]:
    return [
        point(method, size)._replace(nodes=nodes, ppn=ppn, procs=nodes * ppn, **features)
        for size, method in sizes.items()
    ]


def between(rules: list[Rule]) -> list[tuple[int, int, int, int]]:
    return [(*rule[1:5],) for rule in rules if rule.interpolated]


def chosen(rules: list[Rule], nodes: int, ppn: int, size: int) -> str | None:
    rule = matching(rules, "exchange", nodes, ppn, 6, 5.5, size)
    return rule.method if rule else None


def test_process_counts_held_out_lose_little(tmp_path: Path) -> None:
    """Tuned on 4 and 16 processes, asked on 8, with the rules between and without."""
    rules, _ = select(measure(MACHINE, MACHINE.plan(procs=(4, 16)), tmp_path))
    interpolated, over_default = regrets(rules, 8)
    without, _ = regrets([rule for rule in rules if not rule.interpolated], 8)
    assert np.mean(interpolated) <= 0.05 < 0.3 < np.mean(without)
    assert np.mean(np.array(over_default) > 0.02) <= 0.01


def test_what_both_neighbours_choose_holds_between_them() -> None:
    rules = compile_rules(points(1, 4, {8: "nap"}) + points(1, 16, {8: "nap"}))
    assert between(rules) == [(1, 1, 5, 15)]
    assert chosen(rules, 1, 3, 8) is chosen(rules, 1, 17, 8) is None


def test_switch_points_lie_between_those_of_the_neighbours() -> None:
    sizes = [2**power for power in range(21)]
    a, b = (
        {size: "nap" if size < limit else "direct" for size in sizes} for limit in (2**4, 2**16)
    )
    rules = compile_rules(points(1, 2, a) + points(1, 32, b))
    ends = [rule.bytes_high for rule in rules if rule.method == "nap"]
    assert all(low < high for low, high in pairwise(ends))
    for procs, size in ((3, 40), (7, 600), (14, 4000)):  # half-way, size = procs^3.
        assert chosen(rules, 1, procs, size // 2) == "nap"
        assert chosen(rules, 1, procs, size * 2) == "direct"


def test_where_the_neighbours_differ_nothing_is_said() -> None:
    a, b = {8: "nap", 64: "direct"}, {8: "neighbor", 64: "direct"}
    rules = compile_rules(points(2, 4, a) + points(2, 8, b))
    assert [chosen(rules, 2, 6, size) for size in (8, 22, 23, 64)] == [
        None,
        None,
        "direct",
        "direct",
    ]
    assert between(compile_rules(points(1, 4, {8: "nap"}) + points(1, 8, {8: "direct"}))) == []


def test_what_is_not_alike_is_not_joined() -> None:
    crowded = points(1, 8, {8: "nap"}, oversubscribed=True)
    assert between(compile_rules(points(1, 4, {8: "nap"}) + crowded)) == []
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
    decided: dict[tuple[int, int], dict[tuple[int, int, int], str]],
    nodes: int,
    ppn: int,
    size: int,
) -> None:
    found = [
        point(method, 2**power, (mmax, mavg + 0.5))._replace(nodes=n, ppn=p)
        for (n, p), classes in decided.items()
        for (mmax, mavg, power), method in classes.items()
    ]
    rules = compile_rules(found)
    holding = [
        rule for rule in rules if matching([rule], "exchange", nodes, ppn, 2, 1.2, size) is not None
    ]
    assert len(holding) <= 1
    assert len(holding) == 1 or (nodes, ppn) not in decided
    for rule in holding:
        its = {method for layout in decided for method in decided[layout].values()}
        assert rule.interpolated == ((nodes, ppn) not in decided)
        assert rule.method in its
