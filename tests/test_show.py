"""`switchpoint show`: what it prints, and of what."""

import json
import re
from pathlib import Path

import pytest

from tests import synthetic
from tests.cli import call, fail, succeed
from tuner.campaign.order import FIXED, PLANS
from tuner.selection import tuning
from tuner.store.database import StoreError


def test_tables_that_cannot_be_written_stay_missing(
    two_systems: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise StoreError("the disk is full")

    succeed("ingest")
    monkeypatch.setattr(tuning, "tune", fail)
    assert "no table" in succeed("show")


def test_without_a_plan_the_command_that_makes_one_is_named(results: Path) -> None:
    assert "no plan; run `switchpoint run` first" in fail("show", "plan")


def test_show_can_be_restricted_to_an_operation(two_systems: Path) -> None:
    succeed("ingest")
    succeed("tune")
    text = succeed("show", "--op", "exchange", "--system", "mpich")
    assert "exchange" in text and "campaign " not in text and "discovery" not in text
    (table,) = json.loads(succeed("show", "--op", "exchange", "--system", "mpich", "--json"))[
        "tables"
    ]
    assert {rule["operation"] for rule in table["rules"]} == {"exchange"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["models", "--op", "exchange"], r"No such option:? '?--op\b"),
        (["--op", "exchange", "models"], "`show models` has no --op"),
        (["some/results"], "No such command 'some/results'"),
        (["models", "plan.json"], r"Got unexpected extra argument \(plan.json\)"),
        (["--next"], r"No such option:? '?--next\b"),
        (["overlap", "--next"], r"No such option:? '?--next\b"),
        (["plan", "plan.json", "--next"], "--next goes without a FILE"),
        (["plan", "--within=6"], "--within goes with --next"),
        (["plan", "--node-hours=1"], "--node-hours goes with --next"),
        (["plan", "--system=mpich"], "--system goes with --next"),
        (["--system=mpich", "plan"], "--system goes with --next"),
    ],
)
def test_a_wrong_option_of_show_is_one_line(words: list[str], message: str) -> None:
    answer = call("show", *words)
    (line,) = (line for line in answer.stderr.splitlines() if line.startswith("Error: "))
    assert answer.exit_code == 2
    assert re.match(f"Error: {message}", line)


def test_options_of_show_count_before_and_after_what_is_shown(tmp_path: Path) -> None:
    synthetic.write(tmp_path, synthetic.Campaign(procs=(4, 8), cores=64, samples=20))
    database = tmp_path / "s.db"
    succeed("ingest", tmp_path, "--database", database)
    options = ("--json", "--database", database, "--system", "mpich")
    after = succeed("show", "plan", "--next", *options)
    assert json.loads(after)
    assert succeed("show", *options, "plan", "--next") == after


def test_tune_then_show(two_systems: Path) -> None:
    succeed("ingest")
    tuned = succeed("tune", "--system", "openmpi")
    assert "nbx" in tuned
    assert "stfw" not in tuned
    shown = succeed("show")
    for text in (
        "local-cpu-mpich-",
        "local-cpu-openmpi-",
        "20261121T034500Z",
        "nbx",
        "stfw:dims=2",
    ):
        assert text in shown
    assert "mpich" not in succeed("show", "--system", "openmpi").split("campaign ")[1]


def test_show_prints_switch_points(two_systems: Path) -> None:
    succeed("ingest")
    lines = succeed("show", "--system", "local-cpu-mpich").splitlines()
    (before,) = (line for line in lines if "up to 1.41 KiB" in line)
    (after,) = (line for line in lines if "above 1.41 KiB" in line)
    assert "stfw:dims=2" in before
    assert "faster" in before
    assert "direct" in after


def test_collectives_are_shown_and_exported_beside_the_others(two_systems: Path) -> None:
    """Without a degree: the one rule at each size is for all."""
    synthetic.write(two_systems, synthetic.of_bcast(synthetic.Campaign()))
    succeed("ingest")
    lines = succeed("show", "--system", "local-cpu-mpich").splitlines()
    rows = [line.split() for line in lines if line.startswith("bcast")]
    assert [row[4] for row in rows] == ["-", "-"]
    assert ["binomial" in rows[0], "faster" in rows[0], "vendor" in rows[1]] == [True] * 3
    table = succeed("export", "--system", "local-cpu-mpich")
    rules = [line for line in table.splitlines() if line.startswith("rule op=bcast")]
    assert [" method=binomial " in rule for rule in rules] == [True, False]
    assert not any("mmax=" in rule for rule in rules)


def test_json_holds_what_is_shown(two_systems: Path) -> None:
    succeed("ingest")
    document = json.loads(succeed("show", "--json"))
    assert [len(document[name]) for name in ("systems", "campaigns", "tables")] == [2, 2, 2]
    assert document["tables"] == json.loads(succeed("tune", "--json"))


def test_what_is_inferred_is_marked(tmp_path: Path) -> None:
    synthetic.write(tmp_path, synthetic.Campaign(procs=(4, 8), cores=64, samples=20))
    database = tmp_path / "s.db"
    succeed("ingest", tmp_path, "--database", database)
    said = succeed("tune", "--database", database)
    assert "1 x 5 to 7 (i)" in said
    assert "(i) inferred from measured layouts" in said
    assert "beyond twice the largest measured size" not in said  # the default holds for all
    text = succeed("export", "--database", database)
    said = succeed("show", "plan", "--next", "--database", database)
    assert re.search(r"1 x 6 .*untried: only powers of two were measured", said)
    named = json.loads(
        succeed("show", "plan", "--next", "--within=6", "--json", "--database", database)
    )
    assert {(worth["ppn"], worth["untried"]) for worth in named} == {(5, True), (6, True)}
    hours = named[0]["node_hours"]
    assert 0 < hours < 0.1
    short = f"--node-hours={hours / 2:.3f}"
    shown = succeed("show", "plan", "--next", short, "--database", database)
    assert shown == "no other layout is within these limits\n"
    assert re.search(r"rule op=exchange nodes=1 ppn=5:7 .* evidence=\"inferred from 1 x ", text)


@pytest.mark.parametrize(
    ("system", "nodes"), [("local:cpu", {1}), ("mybox", {1}), ("hpc:cpu", {1, 2, 4})]
)
def test_several_nodes_are_not_proposed_for_one_machine(
    system: str, nodes: set[int], tmp_path: Path
) -> None:
    synthetic.write(tmp_path, synthetic.Campaign(system=system, procs=(4,), cores=64, samples=20))
    database = tmp_path / "s.db"
    succeed("ingest", tmp_path, "--database", database)
    succeed("tune", "--database", database)
    found = json.loads(succeed("show", "plan", "--next", "--json", "--database", database))
    assert {its["nodes"] for its in found} <= nodes
    assert bool(nodes - {1}) == any(its["nodes"] > 1 for its in found)


def test_that_no_layout_is_left_to_measure_is_no_error(tmp_path: Path) -> None:
    synthetic.write(tmp_path, synthetic.Campaign(procs=(4,), cores=4, samples=20))
    database = tmp_path / "s.db"
    succeed("ingest", tmp_path, "--database", database)
    succeed("tune", "--database", database)
    asked = ("show", "plan", "--next", "--database", database)
    assert succeed(*asked) == "no other layout is left to measure\n"
    assert json.loads(succeed(*asked, "--json")) == []


def test_layouts_of_pico_are_not_called_oversubscribed(tmp_path: Path) -> None:
    """Its results have no cores; one is stored."""
    pico = synthetic.Campaign(system="pico:made", procs=(4, 8), cores=1, samples=20)
    for path in synthetic.write(tmp_path, pico):
        path.write_text(
            path.read_text().replace('"oversubscribed": true', '"oversubscribed": false')
        )
    succeed("ingest", tmp_path, "--database", tmp_path / "s.db")
    said = succeed("tune", "--database", tmp_path / "s.db")
    assert "1 x 5 to 7 (i)" in said and "(o)" not in said


@pytest.mark.parametrize(
    ("sync", "mark", "words"),
    [
        ("hca", "(h)", "(h) started together by synchronised clocks"),
        ("window-cold", "(c)", "(c) with cold caches"),
        ("barrier", "(b)", "(b) started by barriers"),
    ],
)
def test_starts_by_other_than_one_clock_are_marked(
    tmp_path: Path, sync: str, mark: str, words: str
) -> None:
    synthetic.write(tmp_path, synthetic.Campaign(sync=sync, samples=20))
    database = tmp_path / "s.db"
    succeed("ingest", tmp_path, "--database", database)
    said = succeed("tune", "--database", database)
    assert f"1 x 2 {mark}" in said
    assert words in said


def test_words_in_brackets_are_shown_as_they_are(two_systems: Path) -> None:
    for path in two_systems.rglob("*.jsonl"):
        path.write_text(path.read_text().replace("MPICH Version", "MPICH [/x] [mpiexec@n0]"))
    succeed("ingest")
    assert "MPICH [/x] [mpiexec@n0]: 5.0.2" in succeed("show")
    assert "MPICH [/x] [mpiexec@n0]: 5.0.2" in succeed("tune")


def test_an_order_that_cannot_be_read_hides_no_tables(results: Path) -> None:
    synthetic.write(results, synthetic.Campaign(launches=1))
    succeed("ingest")
    for orders in (FIXED, PLANS):
        path = orders.path_of(f"{synthetic.Campaign.name}-{orders.directory}")
        path.parent.mkdir(exist_ok=True)
        path.write_text("{")
        synthetic.write(results, synthetic.Campaign(name=path.name.split(".")[0], launches=1))
    shown = succeed("show")
    assert "next: settle" in shown
    assert shown.count("; delete it, or restore it from a copy") == 2
    assert "to resume; partial campaigns: none" in fail("run", "--resume", "another")
