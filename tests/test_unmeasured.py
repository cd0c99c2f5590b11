"""What a table says of process counts and layouts that were not measured."""

import math
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.cells import CONSTANT, make_cells, scaled
from tests.decisions import METHODS, on, point, select
from tests.synthetic_plan import FAR, SyntheticMachine, measure, regrets
from tuner.domain.cases import UNKNOWN_CORES, DegreeClass, NodeCores
from tuner.domain.tables import Point, Ratio, Rule
from tuner.selection import match, unmeasured
from tuner.selection.comparison import Chosen
from tuner.selection.decisions import decide
from tuner.selection.kriging import Spread, Value, estimate, regimes, spread_of, value_of
from tuner.selection.rules import compile_rules
from tuner.selection.unmeasured import open_choices
from tuner.selection.worth import worths

Sizes = dict[int, str]


def points(nodes: int, ppn: int, sizes: Sizes, **features: object) -> list[Point]:
    return [
        on(point(method, size), nodes, ppn)._replace(ratios=known(nap=0.5), **features)
        for size, method in sizes.items()
    ]


def known(**ratios: float) -> tuple[Ratio, ...]:
    """Return ratios with errors of half a per cent."""
    return tuple(Ratio(name, its, error=0.005) for name, its in ratios.items())


def raced(nodes: int, ppn: int, size: int, **ratios: float) -> Point:
    """Choose the fastest; ratios are to the default."""
    best = min(ratios, key=lambda method: ratios[method])
    method = best if ratios[best] < 1 else "direct"
    (its,) = points(nodes, ppn, {size: method})
    return its._replace(ratios=known(**ratios))


def between(rules: list[Rule]) -> list[tuple[int, int, int, int]]:
    return [(*rule[1:5],) for rule in rules if rule.inferred]


def chosen(rules: list[Rule], nodes: int, ppn: int, size: int) -> str | None:
    rule = match.first(rules, DegreeClass("exchange", nodes, ppn, 6, 5.5), size)
    return rule.method if rule else None


def test_process_counts_held_out_lose_little(tmp_path: Path) -> None:
    """Tuned on 4 and 16 processes, asked on 8, with the rules between and without."""
    rules, _ = select(measure(FAR, FAR.plan(procs=(4, 16)), tmp_path))
    inferred, over_default = regrets(FAR, rules, 8)
    without, _ = regrets(FAR, [rule for rule in rules if not rule.inferred], 8)
    assert np.mean(inferred) <= 0.05 < 0.3 < np.mean(without)
    assert np.mean(np.array(over_default) > 0.02) <= 0.01


LATENCY_S, PER_BYTE_S = 2e-6, 1e-9


def forwarded_s(method: str, size: int, procs: int) -> float:
    """Return seconds of an exchange of all with all, sent directly or forwarded in a grid."""
    dims = 1 if method == "direct" else int(method[-1])
    side = procs ** (1 / dims)
    messages = dims * (side - 1)
    return 1e-6 * dims + messages * (LATENCY_S + procs / side * PER_BYTE_S * size)


@given(
    st.dictionaries(
        st.tuples(st.sampled_from([2, 3, 6, 8]), st.integers(0, 6)), st.floats(0.4, 1.6), min_size=1
    )
)
def test_rules_of_any_measurements_have_ends_in_order(ratios: dict[tuple[int, int], float]) -> None:
    """Though a choice may be known from another size than those of the nearest layout."""
    decided = [raced(1, ppn, 8**size, nap=ratio) for (ppn, size), ratio in ratios.items()]
    for rule in compile_rules(decided):
        ends = [end for end in zip(rule[1:11:2], rule[2:11:2], strict=True) if None not in end]
        assert all(low <= high for low, high in ends)


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
            rule = match.first(rules, DegreeClass("exchange", 1, procs, 6, 6.0), size)
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
        raced(1, procs, 2**power, nap=(2**power / procs**3) ** 0.3)
        for procs in (2, 32)
        for power in range(21)
    ]
    rules = compile_rules(found)
    ends = [rule.bytes_high for rule in rules if rule.method == "nap"]
    assert all(low <= high for low, high in pairwise(ends))
    for procs in range(4, 32):
        assert chosen(rules, 1, procs, procs**3 // 64) == "nap"
        assert chosen(rules, 1, procs, procs**3 * 4) == "direct"


def test_where_the_neighbours_differ_the_ratios_between_decide() -> None:
    a = raced(2, 4, 8, nap=0.5, neighbor=0.9, alltoallv=0.6)
    b = raced(2, 64, 8, nap=1.8, neighbor=0.6, alltoallv=0.7)
    rules = compile_rules([a, b])
    assert [chosen(rules, 2, ppn, 8) for ppn in (5, 8, 30, 63)] == ["nap"] * 2 + ["neighbor"] * 2
    late = raced(2, 64, 8, nap=1.8, neighbor=0.5)
    early = raced(2, 4, 8, nap=0.5, neighbor=1.8)
    rules = compile_rules([early, late])
    assert [chosen(rules, 2, ppn, 8) for ppn in (5, 16, 63)] == ["nap", "direct", "neighbor"]
    (kept,) = {rule.evidence for rule in rules if rule.method == "direct"}
    assert (kept.status, kept.challenger) == ("open", "nap")


def test_evidence_of_a_size_that_the_nearest_did_not_measure_is_of_the_chosen_method() -> None:
    near = [raced(1, 4, 8, nap=1.0), raced(1, 4, 512, nap=0.6)]
    far = [raced(1, 16, size, nap=nap) for size, nap in ((8, 1.0), (64, 0.8), (512, 0.6))]
    rules = [rule for rule in compile_rules([*near, *far]) if rule.inferred]
    assert {rule.method for rule in rules} == {"direct", "nap"}
    statuses = {rule.evidence.status for rule in rules if rule.method == "nap"}
    assert statuses == {"faster"}


def test_a_size_that_one_side_did_not_measure_lies_on_its_curve() -> None:
    a = [raced(2, 4, size, nap=0.25, neighbor=0.9) for size in (8, 64, 512)]
    b = [raced(2, 16, 8, nap=0.5, neighbor=0.3), raced(2, 16, 512, nap=8.0, neighbor=0.3)]
    rules = compile_rules([*a, *b])
    assert [chosen(rules, 2, 8, size) for size in (8, 64, 512)] == ["nap", "neighbor", "neighbor"]


SMALL, LARGE = (8, 512, 4096), (65536, 1 << 20)


@pytest.mark.parametrize("other", [2, 5])
def test_beyond_the_sizes_of_one_neighbour_the_other_decides(other: int) -> None:
    """A layout says nothing of larger sizes than it measured, nor chooses a method there."""
    whole = [raced(1, 8, size, nap=0.5 if size in SMALL else 1.5) for size in SMALL + LARGE]
    rules = compile_rules(whole + [raced(1, other, size, nap=0.3) for size in SMALL], NodeCores(16))
    assert {chosen(rules, 1, 6, size) for size in SMALL} == {"nap"}
    assert {chosen(rules, 1, 6, size) for size in LARGE} == {"direct"}
    faster = [raced(1, 8, size, nap=0.5) for size in SMALL + LARGE]
    rules = compile_rules(
        faster + [raced(1, other, size, nap=0.3) for size in SMALL], NodeCores(16)
    )
    assert {chosen(rules, 1, 6, size) for size in SMALL + LARGE} == {"nap"}


def test_sizes_of_another_regime_are_not_asked_about() -> None:
    """They get the default, as those larger than twice the largest do on a measured layout."""
    enough = [raced(1, 2, size, nap=0.5) for size in SMALL + LARGE]
    small = [raced(1, ppn, size, nap=0.5) for ppn in (4, 8) for size in SMALL]
    over = [on(point, 1, point.case.layout.ppn, over=True) for point in small]
    rules = compile_rules(enough + over, NodeCores(2))
    assert {chosen(rules, 1, 6, size) for size in SMALL} == {"nap"}
    assert {chosen(rules, 1, 6, size) for size in LARGE} == {None}


def test_a_method_is_not_chosen_beyond_the_sizes_at_which_it_exists() -> None:
    both = [raced(1, 4, size, nap=0.5, neighbor=1.2) for size in SMALL]
    alone = [raced(1, 4, size, neighbor=1.2) for size in LARGE]
    rules = compile_rules(
        both + alone + [raced(1, 8, size, nap=0.4) for size in SMALL], NodeCores(16)
    )
    assert {chosen(rules, 1, 6, size) for size in SMALL} == {"nap"}
    assert {chosen(rules, 1, 6, size) for size in LARGE} == {"direct"}


def test_an_open_size_is_not_filled_from_beyond_the_sizes_of_another_layout() -> None:
    slow = raced(1, 8, 1 << 20, nap=1.5)
    unsure = slow._replace(status="open", ratios=(Ratio("nap", 1.05, error=0.25),))
    own = [raced(1, 8, size, nap=0.5) for size in SMALL] + [unsure]
    other = [raced(1, 4, size, nap=0.3) for size in SMALL]
    assert list(open_choices(own + other)) == []
    filled = list(open_choices([*own, *other, raced(1, 4, 1 << 20, nap=0.3)]))
    assert filled == [(unsure, "nap")]


def test_a_method_that_a_neighbour_lacks_is_not_chosen_between() -> None:
    b = raced(2, 8, 8, neighbor=0.5)
    assert chosen(compile_rules([raced(2, 4, 8, nap=0.5), b]), 2, 6, 8) == "direct"
    both = raced(2, 4, 8, nap=0.5, neighbor=0.8)
    assert chosen(compile_rules([both, b]), 2, 6, 8) == "neighbor"


@pytest.mark.parametrize("other", [3, 12])
@pytest.mark.parametrize("gain", [0.5, 0.7, 0.9])
def test_a_method_for_powers_of_two_is_chosen_only_for_them(other: int, gain: float) -> None:
    """Once one other number of processes was measured, where the method loses."""
    found = {ppn: raced(1, ppn, 8, nap=gain, neighbor=1.2) for ppn in (4, 8, 32)}
    found[other] = raced(1, other, 8, nap=2 - gain, neighbor=1.2)
    rules = compile_rules(found.values(), NodeCores(64))
    taken = {ppn for ppn in range(3, 33) if chosen(rules, 1, ppn, 8) == "nap"}
    assert {4, 8, 32} <= taken <= {4, 8, 16, 32}
    assert 16 in taken or (other, gain) == (12, 0.9)


def test_where_only_powers_of_two_were_measured_others_are_next() -> None:
    """However much more is expected beyond; one is enough."""
    found = worths([raced(1, ppn, 8, nap=0.8) for ppn in (4, 8, 32)], NodeCores(64), beyond=True)
    assert found[0].untried and found[0].ppn.bit_count() > 1
    assert found[1].beyond and found[1].loss > 2 * found[0].loss
    assert all(its.untried == (its.ppn.bit_count() > 1) for its in found)


@pytest.mark.parametrize(("ratio", "untried"), [(0.6, [3, 5, 6]), (1.2, [])])
def test_where_only_the_default_was_chosen_nothing_is_untried(
    ratio: float, untried: list[int]
) -> None:
    powers = [raced(1, ppn, 8, nap=ratio) for ppn in (2, 8)]
    assert sorted(its.ppn for its in worths(powers, NodeCores(2)) if its.untried) == untried
    others = [raced(1, ppn, 8, nap=ratio) for ppn in (3, 6)]
    assert not any(its.untried for its in worths(powers + others, NodeCores(2)))


def test_each_regime_has_one_untried_layout_first() -> None:
    """One node shows nothing about several."""
    found = worths(
        [raced(*layout, 8, nap=0.5) for layout in ((1, 4), (1, 16), (2, 16), (16, 16))],
        NodeCores(16),
        beyond=True,
    )
    assert [its.nodes for its in found[:2] if its.untried] == [1, 3]
    assert found[2].beyond


SOCKET = 8


def test_where_a_second_socket_changes_the_order_the_risk_limit_holds() -> None:
    """Of what it lets pass, at most so many are slower than the default; and that is next."""
    random = np.random.default_rng(1)
    slower: list[bool] = []
    following: list[int] = []
    for _ in range(40):
        logs = random.normal(0.0, 0.4, (2, 4))  # within a socket, and over both
        ratios = [
            dict(zip(("nap", "neighbor", "alltoallv", "stfw"), np.exp(row).tolist(), strict=True))
            for row in logs
        ]
        found = [raced(1, ppn, 8, **ratios[ppn > SOCKET]) for ppn in (4, 8, 16)]
        rules = compile_rules(found, NodeCores(2 * SOCKET))
        methods = [chosen(rules, 1, ppn, 8) for ppn in range(SOCKET + 1, 2 * SOCKET)]
        slower += [ratios[1][method] > 1.02 for method in methods if method and method != "direct"]
        following.append(worths(found, NodeCores(2 * SOCKET))[0].ppn)
    assert len(slower) > 100
    assert np.mean(slower) <= unmeasured.MOST_RISK
    assert np.mean(np.array(following) > SOCKET) > 0.6


@pytest.mark.parametrize("method", ["orthogonal:grid=4x2", "vendor:algorithm=two_proc"])
def test_a_method_for_one_number_of_processes_fits_no_other(method: str) -> None:
    """Beside the layout there is one with more processes than cores, which says nothing here."""
    (its,) = points(1, 8, {8: method})
    only = its._replace(ratios=(Ratio(method, 0.5, 0.49, 0.51),))
    crowded = on(raced(1, 12, 8, nap=1.2), 1, 12, over=True)
    assert chosen(compile_rules([only, crowded], NodeCores(10)), 1, 9, 8) == "direct"


def test_crowded_layouts_say_nothing_of_those_with_enough_cores() -> None:
    points = [raced(1, 4, 8, nap=0.5), on(raced(1, 9, 8, neighbor=0.5), 1, 9, over=True)]
    for cores, from_nap in ((4, []), (6, [5, 6]), (None, [])):
        rules = compile_rules(points, NodeCores(cores))
        asked = range(5, 9)
        assert [ppn for ppn in asked if chosen(rules, 1, ppn, 8) == "nap"] == from_nap
        rest = {chosen(rules, 1, ppn, 8) for ppn in asked if ppn not in from_nap}
        assert rest == {"neighbor"}
        compared = Chosen(points, NodeCores(cores))  # as the table's rules
        named = DegreeClass(points[0].case.operation, 1, 5, points[0].mmax, points[0].mavg)
        assert (compared.method(named, 8) == "nap") == bool(from_nap)


def test_layouts_with_enough_cores_make_crowded_ones_surer() -> None:
    """Three ranks are nearer to two, for which the cores suffice, than to eight."""
    crowded = on(raced(1, 8, 8, nap=0.87), 1, 8, over=True)
    silent, agreeing = raced(1, 2, 8, neighbor=1.2), raced(1, 2, 8, nap=0.87)
    found = [
        chosen(compile_rules([its, crowded], NodeCores(2)), 1, 3, 8) for its in (silent, agreeing)
    ]
    assert found == ["direct", "nap"]


def test_a_gain_that_the_distance_may_eat_up_is_left() -> None:
    near, far = (
        compile_rules([raced(1, 3, 8, nap=0.85), raced(1, ppn, 8, nap=0.85)]) for ppn in (5, 1000)
    )
    assert [chosen(near, 1, 4, 8), chosen(far, 1, 40, 8)] == ["nap", "direct"]
    sure = compile_rules([raced(1, 3, 8, nap=0.6), raced(1, 1000, 8, nap=0.6)])
    assert chosen(sure, 1, 40, 8) == "nap"


def test_ratios_that_hardly_move_are_trusted_farther() -> None:
    steady = {ppn: raced(1, ppn, 8, nap=0.85) for ppn in (4, 64, 1024)}
    moving = steady | {64: raced(1, 64, 8, nap=2.0)}
    scales = [
        spread_of(its.values(), regimes(its.values(), UNKNOWN_CORES)).scale
        for its in (steady, moving)
    ]
    assert scales[0] < 1 < scales[1]


@pytest.mark.parametrize("launches", [3, 6])
def test_the_error_of_few_launches_is_their_standard_error(launches: int) -> None:
    """However far Student's t of few degrees of freedom reaches beyond it."""
    truth = CONSTANT | {"neighbor": scaled(0.8)}
    sizes = range(8, 72)
    cells = make_cells(truth, sizes, launches=launches, launch_noise=0.05, sample_noise=0.01)
    values = [value_of(point, "neighbor") for point in decide(cells)]
    errors = [value.error for value in values if value is not None]
    assert len(errors) == len(sizes)
    true = 0.05 * math.sqrt(2 / launches)  # both methods differ between launches
    assert math.sqrt(np.mean(np.square(errors))) == pytest.approx(true, rel=0.2)


def test_a_ratio_that_was_kept_without_its_error_has_that_of_its_interval() -> None:
    its = point("nap")._replace(ratios=(Ratio("nap", 0.5, 0.5 / 1.1, 0.5 * 1.1),))
    value = value_of(its, "nap")
    assert value is not None
    assert value.error == pytest.approx(math.log(1.1) / 1.96, rel=1e-3)
    assert value_of(its._replace(level=None), "nap") is None


def test_the_estimate_lies_between_its_neighbours() -> None:
    """Between two exact values it is on the line; at a measured layout it is that value."""
    known = {(1, 4): Value(0.0, 0.0), (1, 16): Value(-1.0, 0.0)}
    spread = Spread(regimes([], NodeCores(16)), scale=0.8)
    mean, variance = estimate((1, 8), known, spread)
    assert (mean, variance) == (pytest.approx(-0.5), pytest.approx(0.01))
    mean, variance = estimate((1, 16), known, spread)
    assert (mean, variance) == (pytest.approx(-1.0), pytest.approx(0.0, abs=1e-9))


def test_what_is_not_alike_is_not_joined() -> None:
    """One node has no network, and one process on a node no neighbours."""
    other = points(4, 4, {8: "nap"})
    assert between(compile_rules(points(1, 4, {8: "nap"}) + other)) == []
    rules = compile_rules(points(4, 1, {8: "neighbor"}) + other)
    assert {chosen(rules, 4, ppn, 8) for ppn in (2, 3)} == {"nap"}


def test_layouts_between_four_are_covered() -> None:
    corners = [
        each for nodes in (2, 8) for ppn in (2, 8) for each in points(nodes, ppn, {8: "nap"})
    ]
    rules = compile_rules(corners)
    assert {chosen(rules, nodes, ppn, 8) for nodes in range(2, 9) for ppn in range(2, 9)} == {"nap"}


def test_no_layout_is_missed_where_nodes_share_cores() -> None:
    """Six cores are enough for 6 x 1 and 2 x 3 processes, and too few for 7 x 1 and 3 x 3."""
    measured = {(n, ppn): n * ppn > 6 for n in (2, 8) for ppn in (1, 2, 8)}
    found = [
        on(raced(1, 8, 8, nap=0.1), n, ppn, over=crowded) for (n, ppn), crowded in measured.items()
    ]
    rules = compile_rules(found, NodeCores(6))
    holding = {
        (n, ppn): sum(
            match.first([rule], DegreeClass("exchange", n, ppn, 6, 5.5), 8) is not None
            for rule in rules
        )
        for n in range(2, 9)
        for ppn in range(1, 9)
    }
    assert [layout for layout, count in holding.items() if count != 1] == []


def test_what_to_measure_next_is_uncertain_and_differs() -> None:
    """The farther from all others the better, but not where methods hardly differ."""
    moving = [raced(1, 4, 8, nap=0.5), raced(1, 64, 8, nap=0.9)]
    found = worths(moving, UNKNOWN_CORES)
    assert 20 < found[0].ppn < 64  # the gain is in doubt on the way to 64
    assert all(worth.loss > 0 for worth in found)
    assert max(worth.ppn for worth in worths(moving, UNKNOWN_CORES, 16)) <= 16
    sure = [raced(1, ppn, 8, nap=0.1) for ppn in (4, 64)]
    assert worths(sure, UNKNOWN_CORES)[0].loss < found[0].loss
    assert worths(moving[:1], UNKNOWN_CORES) == []


def test_a_machine_with_thousands_of_nodes_has_few_rules() -> None:
    corners = [
        raced(nodes, ppn, 8, nap=0.5, neighbor=0.8) for nodes in (2, 4096) for ppn in (2, 128)
    ]
    rules = compile_rules(corners)
    assert chosen(rules, 1000, 48, 8) == "nap"
    assert len(rules) < 20
    assert worths(corners, UNKNOWN_CORES, 5000)[0].nodes <= 2500


def test_what_to_measure_next_of_thousands_of_nodes_takes_bounded_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also where nodes share cores, so that each number of nodes may be another regime."""
    asked: list[object] = []
    monkeypatch.setattr(unmeasured, "estimate", lambda *its: asked.append(its) or estimate(*its))
    spread = [
        on(raced(nodes, ppn, 8, nap=0.5), nodes, ppn, over=nodes * ppn > 8)
        for nodes in (2, 64, 9000)
        for ppn in (1, 2, 128)
    ]
    found = worths(spread, NodeCores(8), beyond=True)
    assert len(asked) < 1000
    assert found
    assert not [its for its in found if its.beyond]  # all larger ones are crowded


def test_after_one_node_two_and_four_are_what_to_measure_next() -> None:
    full = [raced(1, ppn, 8, nap=0.5) for ppn in (32, 64)]
    found = worths(full, NodeCores(64), beyond=True)
    assert [(its.nodes, its.ppn) for its in found if its.beyond] == [(2, 64), (4, 64)]
    assert worths(full, NodeCores(64), most_nodes=1, beyond=True) == worths(full, NodeCores(64))
    half = worths(full[:1], NodeCores(64), most_nodes=1, beyond=True)
    assert [(its.nodes, its.ppn) for its in half] == [(1, 64)]


def test_what_costs_less_nodes_is_measured_first() -> None:
    moving = [raced(2, 4, 8, nap=0.8), raced(24, 4, 8, nap=0.95)]
    found = worths(moving, NodeCores(4))
    most = max(found, key=lambda its: its.loss)
    assert found[0].nodes < most.nodes
    assert found[0].loss / found[0].nodes > most.loss / most.nodes


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
        if match.first([rule], DegreeClass("exchange", nodes, ppn, 2, 1.2), size) is not None
    ]
    assert len(holding) <= 1
    if (nodes, ppn) in decided and not holding:
        assert size > 2 * min(2**power for *_, power in decided[nodes, ppn])
    for rule in holding:
        its = {method for layout in decided for method in decided[layout].values()}
        assert rule.inferred == ((nodes, ppn) not in decided)
        assert rule.method in its
