"""The layout that a campaign measures besides the scales."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from tests import synthetic
from tests.cli import succeed
from tests.test_unmeasured import SOCKET, chosen, raced
from tuner.campaign import worthiest as layouts
from tuner.campaign.worthiest import worthiest
from tuner.domain.cases import DegreeClass, NodeCores
from tuner.paths import database_path
from tuner.rawfile.ingest import ingest
from tuner.selection import tuning
from tuner.selection.rules import compile_rules
from tuner.selection.tuning import tune
from tuner.selection.worth import worths
from tuner.store.store import Store

CORES = 4


@pytest.fixture(autouse=True)
def of_so_many_cores(synthetic_machine: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let this be the machine that has measured."""
    monkeypatch.setattr("tuner.machine.systems.available_cores", lambda: CORES)


def test_a_method_that_is_fast_on_powers_of_two_alone_is_found_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though nothing is expected from another number of nodes, as powers of two agree."""
    monkeypatch.setenv("SWITCHPOINT_RESULTS", str(tmp_path / "results"))
    powers = [raced(nodes, CORES, 8, nap=0.5) for nodes in (2, 4, 8, 16, 32)]
    of_systems = {"before": powers, "after": [*powers, raced(3, CORES, 8, nap=1.5)]}
    for name in of_systems:
        its = synthetic.Campaign(environment=name, cores=CORES, launches=1, sizes=(8,))
        synthetic.write(tmp_path / name, its)
        ingest(database_path(), [tmp_path / name])
    with Store.open(database_path()) as store:
        for system, name in store.systems()[["system", "environment"]].to_numpy():
            store.put_table(replace(tune(store, system), points=of_systems[name]))

    def next_of(name: str) -> tuple[int, int] | None:
        return worthiest("local:cpu", name, lambda nodes, ppn: nodes <= 32 and ppn <= CORES)

    assert worths(powers, NodeCores(CORES))[0].loss < 1e-6
    assert next_of("before") == (3, CORES)
    assert not any(its.untried for its in worths(of_systems["after"], NodeCores(CORES)))
    assert next_of("after") != (3, CORES)
    of_rules = {
        name: compile_rules(points, NodeCores(CORES)) for name, points in of_systems.items()
    }
    assert [chosen(rules, 3, CORES, 8) for rules in of_rules.values()] == ["nap", "direct"]
    faster = {
        nodes for nodes in range(2, 33) if chosen(of_rules["after"], nodes, CORES, 8) == "nap"
    }
    assert faster == {2, 4, 8, 16, 32}
    monkeypatch.setattr("tuner.machine.systems.available_cores", lambda: 2 * CORES)
    layouts._worths.cache_clear()
    assert next_of("before") is None  # of another machine with the same results


def test_what_may_be_lost_is_a_share_of_the_time() -> None:
    found = worths([raced(1, ppn, 8, nap=0.05) for ppn in (32, 64)], NodeCores(64), beyond=True)
    assert max(its.loss for its in found) == pytest.approx(0.95, abs=0.02)


def test_after_one_socket_a_full_node_is_what_to_measure_next() -> None:
    within = [raced(1, ppn, 8, nap=0.5) for ppn in (2, 4, 6, 8)]
    found = worths(within, NodeCores(2 * SOCKET), most_nodes=1, beyond=True)
    assert (found[0].nodes, found[0].ppn) == (1, 2 * SOCKET)


def test_of_nodes_that_share_cores_no_crowded_layout_is_next() -> None:
    measured = [raced(nodes, 2, 8, nap=0.5) for nodes in (1, 2, 4)]
    for shared, expected in ((False, {(3, 2), (8, 2), (16, 2), (4, 8)}), (True, {(3, 2)})):
        found = worths(measured, NodeCores(8, shared), beyond=True)
        assert {(its.nodes, its.ppn) for its in found} == expected


def test_virtual_nodes_share_cores_in_tables_and_in_what_is_next(
    results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Though no measured layout shows it: all had enough."""
    monkeypatch.setattr("tuner.machine.systems.available_cores", lambda: 8)
    name, path = "virtual-nodes:tcp-1gbit", database_path()
    its = synthetic.Campaign(system=name, environment="shared", cores=8, launches=1, sizes=(8,))
    ingest(path, synthetic.write(results, its))
    measured = [raced(*layout, 8, nap=0.5) for layout in ((2, 1), (2, 4), (4, 1), (4, 2))]
    monkeypatch.setattr(tuning, "decide", lambda *_: measured)
    with Store.open(path) as store:
        (system,) = store.systems()["system"]
        table = tune(store, system, required_executions=0)
        compared = tuning.compared_side(store, system).chosen
    assert [chosen(table.rules, 3, ppn, 8) for ppn in (2, 3)] == ["nap", None]
    here = [DegreeClass("exchange", 3, ppn, 6, 5.5) for ppn in (2, 3)]
    assert [compared.method(each, 8) for each in here] == ["nap", None]
    following = json.loads(succeed("show", "plan", "--next", "--json", "--database", path))
    assert following and all(each["nodes"] * each["ppn"] <= 8 for each in following)
    assert worthiest(name, "shared", lambda nodes, ppn: nodes * ppn > 8) is None
