"""What pages say of a store whose truth is known (tests/synthetic.py)."""

import json
import math
import re
import shutil
import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
import pytest

from dashboard import pages, starting
from dashboard.pages import explore
from dashboard.pages.page import FilteredPage
from dashboard.query import UnknownError
from tests import overlaps, probes, test_soaks
from tests.dashboard import large as large_store
from tests.dashboard.conftest import PATTERNS
from tests.dashboard.frames import said
from tests.synthetic import (
    BCAST_LATENCY_S,
    BLOCKS,
    Campaign,
    bcast_times,
    exchange_times,
    write,
    write_upgrade,
)
from tests.test_cli import succeed
from tuner.domain.cases import Place
from tuner.domain.tables import DEFAULT, EQUAL, FASTER, OPEN, Table
from tuner.models.fitting import fit
from tuner.rawfile.ingest import ingest
from tuner.selection import comparison, match
from tuner.selection.evidence import settlement, verdict
from tuner.selection.tuning import tune, tune_missing
from tuner.store.store import Store


def drawn(page: FilteredPage[Any], database: Path, search: str = "") -> tuple[Any, dict[str, Any]]:
    with Store.open(database, readonly=True) as store:
        choice = page.choose(store, page.query.parse(search), strict=True)
        return choice, page.draw(store, choice)


def test_the_overview_tells_how_steady_the_newest_campaign_was(tmp_path: Path) -> None:
    for path in write(tmp_path, Campaign(sizes=(8, 512), cores=64)):
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        for case in lines[1:3]:  # other work slowed the first two
            case["canary_s"] = [5 * value for value in case["canary_s"]]
        path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    probes.write(tmp_path, probes.ProbeCampaign(name="20261201T000000Z", sizes=(8, 64), launches=1))
    database = tmp_path / "switchpoint.db"
    ingest(database, [tmp_path])
    with Store.open(database, readonly=True) as store:
        page = pages.overview.PAGE.layout(store, "")
    text = said(page)
    assert "unsteady machine: slowest canary 5." in text or "slowest canary 4.9" in text
    assert "Newest campaign: canary (8-byte ping-pong) 1.0" in text
    assert "1 node × 2; at most " in text
    links = re.findall(r"explore\?s=[^&']+&c=([^&']+)", str(page))
    assert links == ["20261121T034500Z"]  # the other has nothing to explore


def test_pages_tell_which_methods_were_soaked_and_which_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SWITCHPOINT_REQUIRE_SOAK", "2000")
    for name in ("20261019T120000Z", "20261121T034500Z"):
        write(tmp_path, Campaign(name=name, samples=20, sizes=(8, 32768)))
    database = tmp_path / "switchpoint.db"
    soaks = [test_soaks.record("stfw:dims=2", executions=number) for number in (1500, 500)]
    states = {
        pages.table.PAGE: (
            "unsoaked direct; stfw:dims=2 is ",
            "pending",
            "faster than direct",
            "soaked 2,000 times",
        ),
        pages.choose.PAGE: (
            "faster but waits for its soak",
            "direct; stfw:dims=2 is",
            "faster than direct",
            "Soaked 2,000 times.",
        ),
    }
    for number, soak in enumerate(soaks):
        test_soaks.write(tmp_path, soak, launch=number)
        ingest(database, [tmp_path])
        with Store.open(database) as store:
            (system,) = store.systems()["system"]
            tune(store, system)
        for page, texts in states.items():
            _, parts = drawn(page, database, "?o=exchange&b=8" if page is pages.choose.PAGE else "")
            text = said(parts["answer" if page is pages.choose.PAGE else "rules"])
            assert [each in text for each in texts] == [not number] * 2 + [bool(number)] * 2


def test_the_map_has_the_method_that_is_decided_for_every_layout(database: Path) -> None:
    choice, _ = drawn(pages.best.PAGE, database, "?o=exchange&l=all")
    assert set(choice.best["procs"]) == {2, 8}
    small = choice.best[choice.best["size_bytes"] <= 512]
    assert set(small["method"]) == {"stfw:dims=2"}
    assert small["settled"].all()
    large = choice.best[choice.best["size_bytes"] >= 32768]
    assert set(large["method"]) == {"direct"}


@pytest.fixture(scope="module")
def decided(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Table]:
    """Nothing waits for a soak, and there is one campaign, so that its decisions are the table."""
    results = tmp_path_factory.mktemp("decided")
    few = Campaign(procs=(2, 8), launches=3, launch_noise=0.03)
    bcast = {"patterns": (BLOCKS,), "methods": tuple(BCAST_LATENCY_S), "times": bcast_times}
    write(results, few)
    write(results, replace(few, operation="bcast", **bcast))
    path = results / "switchpoint.db"
    ingest(path, [results])
    with Store.open(path) as store:
        (system,) = store.systems()["system"]
        return path, tune(store, system, required_executions=0)


def tiles_of(database: Path, operation: str) -> dict[tuple[int, int], Any]:
    """Return the tiles of the map, by processes and size."""
    choice, _ = drawn(pages.best.PAGE, database, f"?o={operation}&l=all")
    return {(tile.procs, tile.bytes): tile for tile in choice.best.itertuples()}


def test_the_same_point_says_the_same_on_every_page(decided: tuple[Path, Table]) -> None:
    database, table = decided
    tiles = {name: tiles_of(database, name) for name in ("exchange", "bcast")}
    for point in table.points:
        case, words = point.case, verdict(point, "×")
        tile = tiles[case.operation][case.layout.procs, case.bytes]
        assert (tile.method, tile.verdict, tile.settled) == (point.method, words, point.settled)
        link = explore.cell_link(table.provenance.system, point.campaign, case)
        _, parts = drawn(pages.explore.PAGE, database, f"?{link.partition('?')[2]}")
        assert words in said(parts["verdict"])
        where = f"?o={case.operation}&r={case.layout.nodes}x{case.layout.ppn}"
        _, parts = drawn(pages.choose.PAGE, database, f"{where}&b={case.bytes}&d={point.mmax}")
        answer = said(parts["answer"])
        assert words in answer
        assert ("interval holds" in answer) == (point.status in (FASTER, DEFAULT))
    assert {point.status for point in table.points} == {FASTER, DEFAULT, EQUAL, OPEN}
    assert sum(map(len, tiles.values())) == len(table.points) == 20


def test_the_table_says_what_show_prints(decided: tuple[Path, Table]) -> None:
    database, table = decided
    _, parts = drawn(pages.table.PAGE, database, f"?o={pages.table.ALL}")
    shown = succeed("show", "--database", str(database))
    for rule in table.rules:
        assert verdict(rule.evidence, "×") in said(parts["rules"])
        assert verdict(rule.evidence) in shown
    words = str(settlement(table.points))
    assert words in shown
    assert re.findall(r"\w+", said(parts["settled"]).lower()) == re.findall(r"\w+", words.lower())
    _, parts = drawn(pages.table.PAGE, database, "?o=bcast")
    assert "of 10 sizes" in said(parts["settled"])


def test_the_map_chooses_what_the_rules_of_the_table_choose(decided: tuple[Path, Table]) -> None:
    database, table = decided
    for operation in ("exchange", "bcast"):
        for (procs, size), tile in tiles_of(database, operation).items():
            place = Place(operation, tile.nodes, tile.ppn, tile.mmax, tile.mavg)
            rule = match.first(table.rules, place, size)
            assert rule is not None
            assert (procs, tile.method) == (rule.evidence.case.layout.procs, rule.method)


def test_pages_show_a_store_of_an_older_version_before_it_is_tuned(tmp_path: Path) -> None:
    """Its decisions are gone: pages of one campaign decide anew, the others say what to run."""
    old = Path(__file__).parents[1] / "data" / "store-v8.db"
    database = Path(shutil.copy(old, tmp_path))
    with Store.open(database) as store:
        ((system, campaign),) = store.campaigns()[["system", "campaign"]].to_numpy().tolist()
        assert store.undecided(system) == [campaign]
        assert store.decisions(system, campaign, "exchange") == []
    assert "Make a table. switchpoint tune --system" in " ".join(overview_of(database).split())
    _, parts = drawn(pages.choose.PAGE, database)
    assert said(parts["answer"]) == "No rule of the table matches this case: direct is used."
    _, parts = drawn(pages.table.PAGE, database)
    assert said(parts["settled"]) == ""
    before = tiles_of(database, "exchange")
    drawn(pages.explore.PAGE, database)
    with Store.open(database) as store:
        tune(store, system)
        assert store.undecided(system) == []
    assert tiles_of(database, "exchange") == before != {}


def test_every_tile_of_the_map_is_a_link_too(database: Path) -> None:
    choice, parts = drawn(pages.best.PAGE, database, "?o=exchange&l=all")
    links = re.findall(r"'href': 'explore([^']+)'", str(parts["listed"]))
    assert len(links) == len(choice.best)
    sizes = {drawn(pages.explore.PAGE, database, link)[0].query.size for link in links[:3]}
    assert len(sizes) == 3


def test_metrics_are_counted_in_plans_over_all_patterns(database: Path) -> None:
    choice, parts = drawn(pages.metrics.PAGE, database, "?o=exchange&b=512")
    assert set(choice.cells["mmax"]) == {6, 15}
    for name in pages.metrics.METRICS:
        figure = go.Figure(parts[name])
        assert {trace.name for trace in figure.data} == {
            "direct",
            "stfw:dims=2",
            "neighbor",
            "alltoallv",
        }
    _, parts = drawn(pages.metrics.PAGE, database, "?o=bcast")
    assert not go.Figure(parts["mmax"]).data


def test_metrics_begin_where_counts_differ(tmp_path: Path) -> None:
    """Not on two ranks, of which each sends as much, nor with a newer campaign without counts."""
    few = Campaign(launches=2, samples=4, sizes=(8, 64, 512))
    write(tmp_path, few)
    write(tmp_path, replace(few, procs=(8,), patterns=PATTERNS))
    bcast = {"patterns": (BLOCKS,), "methods": tuple(BCAST_LATENCY_S), "times": bcast_times}
    write(tmp_path, replace(few, name="20261231T000000Z", operation="bcast", **bcast))
    path = tmp_path / "switchpoint.db"
    ingest(path, [tmp_path])
    query = drawn(pages.metrics.PAGE, path)[0].query
    chosen = (query.campaign, query.operation, query.layout, query.size)
    assert chosen == (few.name, "exchange", "8@1x8-window-over", "64")


def test_the_map_leaves_out_oversubscribed_layouts_unless_asked(database: Path) -> None:
    choice, _ = drawn(pages.best.PAGE, database, "?o=exchange")
    assert choice.query.layouts == "fits"
    assert set(choice.best["procs"]) == {2}


def test_oversubscribed_layouts_are_not_shown_by_themselves(database: Path) -> None:
    choice, parts = drawn(pages.explore.PAGE, database)
    assert "over" not in choice.query.layout
    assert "oversubscribed" not in said(parts["notes"])


@pytest.mark.parametrize(("size", "method"), [(64, "stfw:dims=2"), (1048576, "direct")])
def test_choose_names_the_method_of_the_table(database: Path, size: int, method: str) -> None:
    _, parts = drawn(pages.choose.PAGE, database, f"?o=exchange&r=1x2&b={size}&d=6")
    text = said(parts["answer"])
    assert method in text
    assert ("faster than direct" in text) == (method != "direct")
    assert "SWITCHPOINT_TABLE" in said(parts["switch"])


@pytest.mark.parametrize("size", [1, 2**26])
def test_choose_marks_the_selected_size_whatever_it_is(database: Path, size: int) -> None:
    _, parts = drawn(pages.choose.PAGE, database, f"?o=exchange&b={size}")
    layout = parts["ribbon"]["layout"]
    low, high = layout["xaxis"]["range"]
    assert layout["shapes"][-1]["x0"] == size
    assert low < math.log10(size) < high


def test_choose_preloads_for_collectives(database: Path) -> None:
    _, parts = drawn(pages.choose.PAGE, database, "?o=bcast&b=64")
    assert "binomial" in said(parts["answer"])
    assert "LD_PRELOAD" in said(parts["switch"])


def test_choose_starts_applications_as_the_system_does(
    database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    library = tmp_path / "lib" / "libswitchpoint_pmpi.so"
    library.parent.mkdir()
    library.touch()
    for name in ("srun", "mpiexec.mpich"):
        (tmp_path / name).touch(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("SWITCHPOINT_KERNELS", str(tmp_path))
    system = drawn(pages.choose.PAGE, database)[0].system | {"environment": "mpich"}
    assert starting.preload(system) == library
    program = f"env LD_PRELOAD={library} ./app"
    assert starting.command(system, 1, 4, library) == f"mpiexec.mpich -n 4 {program}"
    site = system | {"name": "cluster:batch"}
    assert starting.command(site, 2, 2, library) == f"srun -n 4 --ntasks-per-node=2 {program}"
    nodes = system | {"name": "virtual-nodes:tcp"}
    begun = "switchpoint nodes exec --environment mpich -n 4 --ppn 2"
    assert starting.command(nodes, 2, 2, library) == f"{begun} {program}"
    assert starting.command(nodes, 2, 2, None) == f"{begun} ./app"
    monkeypatch.setenv("SWITCHPOINT_KERNELS", str(tmp_path / "lib" / "none"))
    assert starting.preload(system) == starting.ELSEWHERE


def test_choose_says_which_size_stands_for_one_that_was_not_measured(database: Path) -> None:
    _, parts = drawn(pages.choose.PAGE, database, "?o=bcast&b=64")
    assert "not measured: 32 B stands for it" in said(parts["answer"])
    _, parts = drawn(pages.choose.PAGE, database, "?o=bcast&b=128")
    assert "stands for it" not in said(parts["answer"])


AFTER = {"mpi_library": "MPICH Version: 5.0.3", "day": "2026-12-01"}


@pytest.fixture(scope="module")
def upgraded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A system before and after an upgrade of its MPI that makes one method twice as slow."""

    def slower(method: str, size: int) -> float:
        return exchange_times(method, size) * (2 if method == "neighbor" else 1)

    results = tmp_path_factory.mktemp("upgraded")
    before = Campaign(name="20260101T000000Z", sizes=(8, 512, 4096))
    after = replace(before, name="20260201T000000Z", times=slower, seed=2, **AFTER)
    write(results, before)
    write(results, after)
    return stored(results)


def test_history_crosses_upgrades_and_tells_what_changed(upgraded: Path) -> None:
    choice, parts = drawn(pages.history.PAGE, upgraded)
    assert [campaign.name for campaign, _ in choice.measured] == [
        "20260101T000000Z",
        "20260201T000000Z",
    ]
    text = said(parts["changes"])
    assert "MPICH Version: 5.0.2 → MPICH Version: 5.0.3" in text
    assert "3 of 12" in text
    assert "neighbor" in text


def stored(results: Path) -> Path:
    path = results / "switchpoint.db"
    ingest(path, [results])
    with Store.open(path) as store:
        tune_missing(store)
    return path


def overview_of(path: Path) -> str:
    with Store.open(path, readonly=True) as store:
        return said(pages.overview.PAGE.layout(store, ""))


@pytest.mark.parametrize("factor", [1.45, 0.65])
def test_pages_notice_what_an_upgrade_did_to_any_operation(tmp_path: Path, factor: float) -> None:
    before, after = write_upgrade(tmp_path, factor)
    path = stored(tmp_path)
    ratio = rf"{str(factor)[:3]}\d+×"

    assert re.search(
        rf"What changed\? discovery {'slower' if factor > 1 else 'faster'}  *discovery: {ratio} "
        rf"the time, 20 of 20 cells changed since {before} \(MPICH Version: 5.0.2\)",
        overview_of(path),
    )

    choice, parts = drawn(pages.history.PAGE, path)
    assert choice.query.operation == "discovery"
    assert re.match(
        rf"{after} discovery {ratio} 20 of 20 \w+ .* MPICH Version: 5.0.2 → MPICH Version: 5.0.3 ",
        said(parts["changes"]).partition(" MPI ")[2].strip(),
    )
    for operation in ("exchange", "bcast"):
        choice, parts = drawn(pages.history.PAGE, path, f"?o={operation}")
        assert choice.query.operation == operation
        assert re.search(rf"discovery {ratio} 20 of 20 ", said(parts["changes"]))

    choice, parts = drawn(pages.compare.PAGE, path)
    assert choice.query.operation == pages.compare.ALL
    assert said(parts["summary"]).startswith("discovery changed most.")
    assert re.search(rf"discovery 20 of 20 {ratio} ", said(parts["summary"]))
    with Store.open(path, readonly=True) as store:
        changed = pages.compare.PAGE.data["changes"](store, choice)
    assert set(changed["operation"][:20]) == {"discovery"}
    choice, parts = drawn(pages.compare.PAGE, path, "?o=bcast")
    assert "0 of 15 shared cells" in said(parts["summary"])


def test_pages_say_so_where_an_upgrade_changed_nothing(tmp_path: Path) -> None:
    before, _ = write_upgrade(tmp_path, 1)
    path = stored(tmp_path)
    assert f"No operation changed significantly since {before}" in overview_of(path)
    assert "the time," not in overview_of(path)
    _, parts = drawn(pages.history.PAGE, path)
    assert said(parts["changes"]).startswith("No operation changed significantly")
    _, parts = drawn(pages.compare.PAGE, path)
    assert said(parts["summary"]).startswith("0 of 55 shared cells")


def test_a_cell_is_held_against_the_last_campaign_that_measured_it(tmp_path: Path) -> None:
    """An exchange alone was measured between, and is the newest of the old version."""
    before, after = write_upgrade(tmp_path, 1.45)
    between = Campaign(name="20260115T000000Z", samples=20, day="2026-01-15", seed=7)
    write(tmp_path, between)
    path = stored(tmp_path)
    assert f"20 of 20 cells changed since {before}" in overview_of(path)
    _, parts = drawn(pages.history.PAGE, path)
    assert re.search(rf"{after} discovery 1.4\d× 20 of 20 ", said(parts["changes"]))
    choice, parts = drawn(pages.compare.PAGE, path)
    assert choice.query.other_campaign == before
    assert said(parts["summary"]).startswith("discovery changed most.")


def test_compare_keeps_measured_and_deployable_switch_points_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the table of the system was made: with soaks, or without asking for them."""
    fast = {"direct": 4e-6, "stfw:dims=2": 8e-6, "neighbor": 1e-6, "alltoallv": 9e-6}
    write(tmp_path, Campaign(name="20260101T000000Z", samples=20))
    after = Campaign(name="20260201T000000Z", samples=20, day="2026-12-01", seed=2)
    write(tmp_path, replace(after, times=lambda method, size: fast[method] + 1e-9 * size))
    monkeypatch.setenv("SWITCHPOINT_REQUIRE_SOAK", "10000")
    path = stored(tmp_path)
    choice, parts = drawn(pages.compare.PAGE, path)
    assert choice.found.measured.loss.p95 > 0.1
    assert choice.found.deployable.loss.p95 == 0
    for part, hidden in (("moved", "No switch point moved"), ("loss", "0 % at the 95th")):
        measured, deployable = said(parts[part]).split("Deployable")
        assert measured.startswith("Measured")
        assert hidden in deployable and hidden not in measured
    with Store.open(path) as store:
        for system in store.systems()["system"]:
            tune(store, system, required_executions=0)
    choice, parts = drawn(pages.compare.PAGE, path)
    assert choice.found.deployable == choice.found.measured
    assert choice.found.measured.loss.p95 > 0.1
    assert said(parts["loss"]).startswith("Measured and deployable")


def test_compare_tells_cells_that_changed(upgraded: Path) -> None:
    choice, parts = drawn(pages.compare.PAGE, upgraded)
    assert choice.found is not None
    sides = [
        (choice.query.other_system, choice.query.other_campaign),
        (choice.query.system, choice.query.campaign),
    ]
    with Store.open(upgraded, readonly=True) as store:
        cells = [store.contents(system, campaign=campaign) for system, campaign in sides]
    assert choice.found == comparison.compare(*map(comparison.measured, cells))
    assert {change.where.method for change in choice.found.changes} == {"neighbor"}
    assert all(1.5 < change.ratio < 2.5 for change in choice.found.changes)
    assert "3 of 12 shared cells" in said(parts["summary"])
    same, changed = go.Figure(parts["significance"]).data
    assert (same.name, changed.name) == ("unchanged", "neighbor")
    assert (len(same.x), len(changed.x)) == (9, 3)
    line = parts["significance"]["layout"]["shapes"][1]["y0"]
    assert max(changed.y) < line < min(same.y)
    same = f"?s={choice.query.system}&c={choice.query.campaign}"
    same += f"&t={choice.query.system}&u={choice.query.campaign}"
    choice, parts = drawn(pages.compare.PAGE, upgraded, same)
    assert "are the same" in pages.compare.PAGE.missing(choice)
    assert {said(parts["moved"]), said(parts["loss"])} == {"Nothing to compare."}


def test_compare_begins_with_the_system_before_an_upgrade(upgraded: Path, tmp_path: Path) -> None:
    """Also where another system was measured since, and the new version more than once."""
    path = Path(shutil.copy(upgraded, tmp_path))
    write(tmp_path / "other", Campaign(name="20260301T000000Z", environment="openmpi", launches=1))
    again = Campaign(name="20260401T000000Z", sizes=(8,), seed=3)
    write(tmp_path / "again", replace(again, **AFTER | {"day": "2026-12-24"}))
    ingest(path, [tmp_path])
    with Store.open(path, readonly=True) as store:
        library = store.systems().set_index("system")["mpi_library"]
    choice, _ = drawn(pages.compare.PAGE, path)
    query = choice.query
    assert library[query.other_system] == "MPICH Version: 5.0.2"
    assert library[query.system] == AFTER["mpi_library"]
    assert (query.other_campaign, query.campaign) == ("20260101T000000Z", "20260401T000000Z")
    labels = {label for _, label in choice.options["system"]}
    assert labels == {"local:cpu, mpich 5.0.3", "local:cpu, mpich 5.0.2", "local:cpu, openmpi"}
    assert "different machines" not in said(drawn(pages.compare.PAGE, path)[1]["sides"])
    # Of the older system there is nothing before it: other MPIs of the machine, the newest first.
    choice, _ = drawn(pages.compare.PAGE, path, f"?s={query.other_system}")
    assert choice.query.other_system == query.system


def test_a_machine_is_not_compared_with_another_unasked(upgraded: Path, tmp_path: Path) -> None:
    path = Path(shutil.copy(upgraded, tmp_path))
    cluster = Campaign(
        system="cluster:batch", name="20260301T000000Z", launches=1, day="2026-12-30"
    )
    write(tmp_path, cluster)
    ingest(path, [tmp_path])
    choice, _ = drawn(pages.compare.PAGE, path)
    assert choice.query.system.startswith("cluster-batch")
    assert choice.query.other_system == choice.query.system


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A real system with one campaign, and a simulated one with one sample of each method."""
    results = tmp_path_factory.mktemp("mixed")
    write(results, Campaign(sizes=(8, 512), procs=(2, 8)))
    simulated = Campaign(
        system="simulated:torus-4x4x2", environment="simgrid", launches=1, samples=1, cores=16
    )
    for path in write(results, replace(simulated, sizes=(16, 1024))):
        path.write_text(path.read_text().replace("Synthetic CPU", "simulated"))
    path = results / "switchpoint.db"
    ingest(path, [results])
    with Store.open(path) as store:
        tune_missing(store)
    return path


def test_a_simulated_system_is_marked_and_its_single_samples_count(mixed: Path) -> None:
    simulated = "?s=" + drawn(pages.explore.PAGE, mixed)[0].options["system"][-1][0]
    for page, part in ((pages.explore.PAGE, "notes"), (pages.choose.PAGE, "answer")):
        assert "simulated" in said(drawn(page, mixed, simulated)[1][part])
        assert "simulated" not in said(drawn(page, mixed)[1][part])
    choice, parts = drawn(pages.explore.PAGE, mixed, simulated)
    assert "launches" not in said(parts["notes"])
    assert "even" not in str(parts["cell"])
    assert (choice.cells["speedup_low"] == choice.cells["speedup"]).all()
    _, parts = drawn(pages.models.PAGE, mixed, simulated)
    assert "with which this machine is simulated" in said(parts["parameters"])


def test_a_real_system_is_not_compared_with_a_simulated_one_unasked(mixed: Path) -> None:
    choice, parts = drawn(pages.compare.PAGE, mixed)
    assert choice.query.other_system == choice.query.system
    assert "are the same" in pages.compare.PAGE.missing(choice)
    simulated = choice.options["system"][-1][0]
    choice, parts = drawn(pages.compare.PAGE, mixed, f"?t={simulated}")
    assert said(parts["sides"]).startswith("different machines")
    assert "choose another" in pages.compare.PAGE.missing(choice)
    assert said(parts["moved"]) == "Nothing to compare."


def test_the_history_of_one_campaign_has_no_changes_to_tell_of(mixed: Path) -> None:
    _, parts = drawn(pages.history.PAGE, mixed)
    assert said(parts["changes"]).startswith("Each case has only one campaign")


def test_what_is_not_decided_yet_is_said_in_a_comparison(upgraded: Path, tmp_path: Path) -> None:
    path = Path(shutil.copy(upgraded, tmp_path))
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE launch SET decided = 0")
    _, parts = drawn(pages.compare.PAGE, path)
    assert "switchpoint tune" in said(parts["moved"]) and "switchpoint tune" in said(parts["loss"])
    assert "3 of 12 shared cells" in said(parts["summary"])


def test_a_comparison_with_what_is_not_there_is_refused(upgraded: Path) -> None:
    with pytest.raises(UnknownError):
        drawn(pages.compare.PAGE, upgraded, "?u=nope")


def test_overlap_is_broken_down_and_predicted(tmp_path: Path) -> None:
    overlaps.write(tmp_path)
    probes.write(tmp_path, probes.ProbeCampaign())
    path = tmp_path / "switchpoint.db"
    ingest(path, [tmp_path])
    _, parts = drawn(pages.overlap.PAGE, path)
    assert "not predicted" in said(parts["notes"])
    with Store.open(path) as store:
        fit(store, store.systems()["system"].iloc[0])
    choice, parts = drawn(pages.overlap.PAGE, path)
    assert choice.query.flops == str(overlaps.FULL_FLOPS)
    figure = go.Figure(parts["breakdown"])
    computation, initiation = figure.data[:2]
    assert computation.x == pytest.approx([1.1e-9 * overlaps.FULL_FLOPS] * 2)
    assert initiation.x == pytest.approx([3e-6] * 2)
    assert choice.rows["predicted_s"].notna().all()
    assert "1.10×" in said(parts["methods"])


@pytest.mark.parametrize(
    ("page", "command"),
    [
        (pages.overlap.PAGE, "switchpoint run -- --tag=overlap"),
        (pages.models.PAGE, "switchpoint run -- --tag=parameters"),
    ],
)
def test_an_empty_page_says_what_to_run_and_nothing_else(
    database: Path, page: FilteredPage[Any], command: str
) -> None:
    with Store.open(database, readonly=True) as store:
        shown = page.layout(store, "")
    *_, missing, body = shown.children
    assert command in said(missing)
    assert body.hidden


def test_models_are_held_against_measurements(tmp_path: Path) -> None:
    path = tmp_path / "switchpoint.db"
    large_store.write(path, large_store.Size(campaigns=3, samples=10_000))
    choice, parts = drawn(pages.models.PAGE, path, "?o=exchange")
    assert set(choice.errors["method"]) >= {"direct", "stfw:dims=2"}
    errors = choice.errors
    assert errors["residual"].to_numpy() == pytest.approx(
        (errors["predicted_s"] / errors["median_s"] - 1).to_numpy(), rel=1e-6
    )
    assert "within 15 %" in said(parts["verdict"])
    assert "LogGP" in said(parts["parameters"])
    assert "copying ns/B" in said(parts["parameters"])
