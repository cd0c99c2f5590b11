"""Where layouts between measured ones are cut, as the regime changes."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.decisions import PROVENANCE, on
from tests.test_catalogue import bcast, lender, packed
from tests.test_unmeasured import chosen, raced
from tuner.catalogue.bundle import unpack
from tuner.domain.cases import Layout, NodeCores
from tuner.domain.tables import Point, Table
from tuner.selection import unmeasured
from tuner.selection.kriging import Regimes, are_oversubscribed, regimes
from tuner.selection.rules import compile_rules
from tuner.selection.unmeasured import Span, Spans

SPANS = st.tuples(st.integers(2, 60), st.integers(0, 30)).map(lambda its: (its[0], sum(its)))


def walked(nodes: Span, ppns: Span, cores: int) -> Iterator[Spans]:
    """Yield layouts cut where the cores that their nodes share no longer suffice, one by one."""
    (low, high), (first, last) = nodes, ppns
    enough = {number: min(max(cores // number, first - 1), last) for number in range(low, high + 1)}
    for most, alike in groupby(enough, lambda number: enough[number]):
        numbers = list(alike)
        for part in ((first, most), (most + 1, last)):
            if part[0] <= part[1]:
                yield (numbers[0], numbers[-1]), part


@given(SPANS, SPANS, st.integers(1, 4000))
def test_layouts_are_cut_where_a_walk_over_all_numbers_cuts_them(
    nodes: Span, ppns: Span, cores: int
) -> None:
    regime = regimes([], NodeCores(cores, shared=True))
    assert list(unmeasured._of_one_regime(nodes, ppns, regime)) == [*walked(nodes, ppns, cores)]


def test_a_small_bundle_of_a_million_nodes_takes_few_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nodes share cores, as many as there were processes; each further node may lack some."""
    calls = iter(range(1_000_000))

    def counted(points: list[Point], cores: NodeCores) -> Regimes:
        regime = regimes(points, cores)
        return lambda nodes, ppn: (next(calls), regime(nodes, ppn))[1]

    monkeypatch.setattr(unmeasured, "regimes", counted)
    points = [on(bcast("star", 8, 256), 2, 256, over=True)]
    for ppn in range(256, 318):
        its = bcast("star", 8, ppn)
        layout = Layout(250_000_000, 1 << 20, ppn, oversubscribed=False)
        points.append(its._replace(case=its.case._replace(layout=layout)))
    provenance = replace(lender().provenance, name="pico:x")  # whose cores nobody recorded
    unpack(packed(lender()._replace(provenance=provenance, points=points)))
    assert next(calls) > 1000


def test_a_rule_between_layouts_is_crowded_where_all_processes_have_too_few_cores() -> None:
    """No layout shows it: the crowded one has more processes on each node than cores."""
    points = [on(bcast("star", 8, 2), 2, 2), on(bcast("binomial", 8, 16), 2, 16, over=True)]
    for shared, most in ((False, 8), (True, 4)):
        cores = NodeCores(8, shared)
        rules = compile_rules(points, cores)
        over = are_oversubscribed(Table(PROVENANCE, rules, points), cores)
        crowded = [rule.ppn_low > most for rule in rules]
        assert over == crowded
        assert rules[-2].inferred


def test_shared_cores_of_unknown_number_are_too_few_for_all_where_none_had_enough() -> None:
    crowded = [on(bcast("star", 8, 2), 2, 2, over=True)]
    assert regimes(crowded, NodeCores(None, shared=True))(2, 1).oversubscribed


def test_ranks_that_were_placed_on_several_machines_share_no_cores() -> None:
    """Though they were placed as on virtual nodes."""
    regime = regimes([on(bcast("star", 8, 4), 4, 4)], NodeCores(8, shared=True))
    assert not regime(4, 4).oversubscribed and regime(1, 9).oversubscribed


def test_nodes_that_share_their_cores_are_crowded_together() -> None:
    virtual = [
        on(raced(2, 1, 8, nap=0.5), 2, 1),
        on(raced(2, 2, 8, neighbor=0.5), 2, 2, over=True),
        on(raced(4, 2, 8, neighbor=0.5), 4, 2, over=True),
    ]
    rules = compile_rules(virtual, NodeCores(2))
    assert chosen(rules, 3, 2, 8) == "neighbor"
    assert chosen(rules, 3, 1, 8) is None


def test_nodes_that_share_cores_have_as_many_as_processes_were_seen_to_have() -> None:
    """Though each of two nodes had one process only."""
    found = [
        on(raced(2, 1, 8, nap=0.9), 2, 1),
        on(raced(4, 1, 8, nap=0.5), 4, 1, over=True),
        on(raced(2, 2, 8, nap=0.5), 2, 2, over=True),
    ]
    for cores in (None, 2):
        regime = regimes(found, NodeCores(cores))
        over = [regime(*layout).oversubscribed for layout in ((2, 1), (4, 1), (2, 2))]
        assert over == [False, True, True]
