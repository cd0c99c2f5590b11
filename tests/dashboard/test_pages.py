"""What pages say of a store whose truth is known (tests/synthetic.py)."""

import json
import re
import shutil
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from html import escape, unescape
from pathlib import Path
from typing import Any

import pandas as pd
import plotly.graph_objects as go
import pytest

from dashboard import measuring, pages
from dashboard.figures.breakdown import PARTS
from dashboard.heatmap import heat_maps
from dashboard.markup import as_html
from dashboard.pages import explore
from dashboard.pages.page import FilteredPage
from dashboard.steadiness import Steadiness
from tests import overlaps, probes, raw, test_soaks
from tests.cli import succeed
from tests.dashboard import large as large_store
from tests.dashboard.conftest import PATTERNS
from tests.dashboard.frames import drawn, said
from tests.dashboard.test_changes import overview_of
from tests.synthetic import Campaign, of_bcast, write
from tuner.advice import document
from tuner.domain.cases import DegreeClass
from tuner.domain.tables import DEFAULT, EQUAL, FASTER, OPEN, Point, Ratio, Table
from tuner.export.forms import export
from tuner.models.fitting import fit
from tuner.models.predict import SwitchPoint
from tuner.paths import CHECKOUT
from tuner.rawfile.ingest import ingest
from tuner.selection import match
from tuner.selection.evidence import certainty, sure_verdict, verdict
from tuner.selection.next_step import next_step, summary
from tuner.selection.tuning import tune
from tuner.store.store import Store


def slow_canaries(path: Path, factor: float, sizes: Sequence[int]) -> None:
    """Slow the canaries of a raw file's cases at these sizes."""
    lines = raw.read(path)
    for line in lines:
        if line.get("size_bytes") in sizes:
            line["canary_s"] = [factor * canary_s for canary_s in line["canary_s"]]
    raw.write(path, lines)


def test_large_messages_that_slow_the_canary_after_them_are_no_other_work(tmp_path: Path) -> None:
    for path in write(tmp_path, Campaign(sizes=(8, 512, 32768), cores=64)):
        slow_canaries(path, 5, (32768,))
    ingest(tmp_path / "switchpoint.db", [tmp_path])
    with Store.open(tmp_path / "switchpoint.db", readonly=True) as store:
        (system,) = store.systems()["system"]
        steadiness = Steadiness.of(store, system, "20261121T034500Z", {})
    assert steadiness.doubts() == []
    assert steadiness.slowest == pytest.approx(1, abs=0.1)


def test_a_slow_operation_is_slow_by_itself_too(tmp_path: Path) -> None:
    write(tmp_path, Campaign(sizes=(8, 512), cores=64))
    for path in write(tmp_path, of_bcast(Campaign(sizes=(8, 512), cores=64))):
        slow_canaries(path, 5, (8, 512))
    ingest(tmp_path / "switchpoint.db", [tmp_path])
    with Store.open(tmp_path / "switchpoint.db", readonly=True) as store:
        (system,) = store.systems()["system"]
        of = partial(Steadiness.of, store, system, "20261121T034500Z")
        assert of({"operation": "bcast"}).doubts() == of({}).doubts() != []
        assert of({"operation": "exchange"}).doubts() == []


def test_the_overview_reports_how_steady_the_newest_campaign_was(tmp_path: Path) -> None:
    for path in write(tmp_path, Campaign(sizes=(8, 512), cores=64))[:4]:
        slow_canaries(path, 5, (8, 512))  # other work slowed four launches of six
    probes.write(tmp_path, probes.ProbeCampaign(name="20261201T000000Z", sizes=(8, 64), launches=1))
    database = tmp_path / "switchpoint.db"
    ingest(database, [tmp_path])
    with Store.open(database, readonly=True) as store:
        page = pages.overview.PAGE.layout(store, "")
    text = said(page)
    assert "unsteady machine: slowest canary 3." in text
    assert re.search(r"Newest campaign: median canary \(8-byte ping-pong\) (4\.9|5\.0)", text)
    assert "1 node × 2; at most " in text
    shown = as_html(page, linked=True)
    links = re.findall(r'explore\?s=[^&"]+&amp;c=([^&"]+)', shown)
    assert links == ["20261121T034500Z"]  # the other has nothing to explore


@pytest.mark.parametrize(
    ("name", "cpu_model", "shown"),
    [
        ("local:cpu", "Synthetic CPU", True),
        ("pico:x", "x", False),
        ("simulated:x", "simulated", False),
    ],
)
def test_what_was_not_measured_is_not_shown_as_zero(
    tmp_path: Path, name: str, cpu_model: str, shown: bool
) -> None:
    sync = "window" if shown else "barrier"
    its = Campaign(system=name, cpu_model=cpu_model, sizes=(8,), launches=2, sync=sync)
    for path in write(tmp_path, its):
        if not shown:
            raw.change(path, lambda it: it.update(plan_s=[]) if it["record"] == "case" else None)
    database = tmp_path / "switchpoint.db"
    ingest(database, [tmp_path])
    overview = overview_of(database)
    assert ("have a late rank" in overview, "0.1 – 0.1" in overview) == (shown, shown)
    cell = said(drawn(pages.explore.PAGE, database)[1]["cell"])
    assert ("11.0 µs" in cell, "0 ns" in cell) == (shown, False)


@pytest.mark.parametrize(("path", "statements"), [("/", 0), ("/history", 0)])
def test_an_unchanged_store_is_not_read_again(database: Path, path: str, statements: int) -> None:
    """However many campaigns it has."""
    (page,) = (page for page in pages.PAGES if page.path == path)
    for _ in range(2):
        read: list[str] = []
        with Store.open(database, readonly=True) as store:
            store._connection.set_trace_callback(read.append)
            page.layout(store, "")
    assert len(read) <= statements


def test_pages_show_which_methods_were_soaked_and_which_wait(
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


def test_advice_is_shown_in_the_words_of_the_command(database: Path) -> None:
    choice, parts = drawn(pages.advice.PAGE, database)
    assert choice.found is not None and choice.found.outcome == "gain"
    assert len(choice.options["advice"]) == 1  # a broken file is none
    text = said(parts["kept"])
    its = choice.found
    lines = [*document.summary(its), *document.outcome(its), *document.use(its)]
    assert [line for line in lines if line not in text] == []
    assert "the table saves 20 % of the run time" in text
    cells = [cell for row in document.rows(its) for cell in row]
    assert [cell for cell in cells if cell not in text] == []
    assert any("binomial is " in cell for cell in cells)


def test_the_map_has_the_method_that_is_decided_for_every_layout(database: Path) -> None:
    choice, _ = drawn(pages.map.PAGE, database, "?o=exchange&l=all")
    assert set(choice.best["procs"]) == {2, 8}
    small = choice.best[choice.best["size_bytes"] <= 512]
    assert set(small["method"]) == {"stfw:dims=2"}
    assert small["settled"].all()
    large = choice.best[choice.best["size_bytes"] >= 32768]
    assert set(large["method"]) == {"direct"}


@pytest.fixture(scope="module")
def decided(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Table]:
    """Tune without waiting for a soak from one campaign, so that its decisions are the table."""
    results = tmp_path_factory.mktemp("decided")
    few = Campaign(procs=(2, 8), launches=3, launch_noise=0.03)
    write(results, few)
    write(results, of_bcast(few))
    path = results / "switchpoint.db"
    ingest(path, [results])
    with Store.open(path) as store:
        (system,) = store.systems()["system"]
        return path, tune(store, system, required_executions=0)


def tiles_of(database: Path, operation: str) -> dict[tuple[int, int], Any]:
    """Return the tiles of the map, by processes and size."""
    choice, _ = drawn(pages.map.PAGE, database, f"?o={operation}&l=all")
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


def test_the_table_of_two_campaigns_says_the_same_everywhere(tmp_path: Path) -> None:
    """Map and Explore name both what one campaign decides, and what the table does."""
    for number, name in enumerate(("20261120T034500Z", "20261121T034500Z")):
        write(tmp_path, Campaign(name=name, launches=2, launch_noise=0.1, seed=number))
    database = tmp_path / "switchpoint.db"
    ingest(database, [tmp_path])
    with Store.open(database) as store:
        (system,) = store.systems()["system"]
        table = tune(store, system, required_executions=0)
        alone = store.decisions(system, "20261121T034500Z", "exchange")
    front = as_html(heat_maps(table.points, "here"))
    shown = json.loads(succeed("show", "--json", "--database", str(database)))["tables"][0]
    assert shown["next_step"]["lines"] == next_step(table).lines
    tiles = tiles_of(database, "exchange")
    for of_campaign, point, in_json in zip(alone, table.points, shown["points"], strict=True):
        case, words = point.case, verdict(point, "×")
        own = f"This campaign alone: {sure_verdict(of_campaign)}"
        by_all = f"2 campaigns: {sure_verdict(point)}"
        tile = tiles[case.layout.procs, case.bytes]
        assert own in tile.verdict_lines and f"The table, by {by_all}" in tile.verdict_lines
        link = explore.cell_link(system, of_campaign.campaign, of_campaign.case)
        _, parts = drawn(pages.explore.PAGE, database, f"?{link.partition('?')[2]}")
        assert f"{own}." in said(parts["verdict"]) and f"{by_all}." in said(parts["verdict"])
        where = f"?o=exchange&r={case.layout.nodes}x{case.layout.ppn}&b={case.bytes}"
        _, parts = drawn(pages.choose.PAGE, database, f"{where}&d={point.mmax}")
        assert words in said(parts["answer"])
        assert escape(words) in front
        assert in_json["verdict"] == verdict(point)
    pairs = zip(alone, table.points, strict=True)
    assert any(verdict(one) != verdict(both) for one, both in pairs)


def test_the_table_says_what_show_prints(decided: tuple[Path, Table]) -> None:
    database, table = decided
    _, parts = drawn(pages.table.PAGE, database, f"?o={pages.table.ALL}")
    shown = succeed("show", "--database", str(database))
    for rule in table.rules:
        assert verdict(rule.evidence, "×") in said(parts["rules"])
        assert verdict(rule.evidence) in shown
    sure = certainty(rule.evidence for rule in table.rules)
    assert sure == "intervals by size are ranges, which have no level"
    assert f"{sure}\n" in shown and sure[1:] in said(parts["rules"])
    assert all(f" {sure}\n" in export(table, form) for form in ("table", "header"))
    words = summary(table)
    assert words in shown
    assert re.findall(r"\w+", said(parts["settled"]).lower()) == re.findall(r"\w+", words.lower())
    _, parts = drawn(pages.table.PAGE, database, "?o=bcast")
    assert "of 10 sizes" in said(parts["settled"])


def test_the_map_chooses_what_the_rules_of_the_table_choose(decided: tuple[Path, Table]) -> None:
    database, table = decided
    for operation in ("exchange", "bcast"):
        for (procs, size), tile in tiles_of(database, operation).items():
            degree_class = DegreeClass(operation, tile.nodes, tile.ppn, tile.mmax, tile.mavg)
            rule = match.first(table.rules, degree_class, size)
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
    choice, parts = drawn(pages.map.PAGE, database, "?o=exchange&l=all")
    listed = as_html(parts["listed"], linked=True)
    links = re.findall(r'href="explore([^"]+)"', unescape(listed))
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


@pytest.mark.parametrize(
    ("statistics", "shown"),
    [
        ({"mmax": 3}, False),
        ({"mmax": 3, "mavg": 0, "vavg_bytes": 0}, False),
        ({"mmax": 3, "mavg": 1, "vavg_bytes": 0}, True),
        ({"mmax": 1e15, "mavg": 1e-9, "vavg_bytes": 1e30}, True),
    ],
)
def test_metrics_leave_out_plans_without_all_counts(
    statistics: dict[str, float], shown: bool, tmp_path: Path
) -> None:
    for path in write(tmp_path, Campaign(launches=1, samples=4, sizes=(8,))):
        lines = raw.read(path)
        (direct,) = (line for line in lines if line.get("method") == "direct")
        direct["statistics"] = statistics
        raw.write(path, lines)
    database = tmp_path / "switchpoint.db"
    assert ingest(database, [tmp_path]).problems == []
    choice, parts = drawn(pages.metrics.PAGE, database)
    assert set(choice.cells["method"]) == {"stfw:dims=2", "neighbor", "alltoallv"} | (
        {"direct"} if shown else set()
    )
    for name in pages.metrics.METRICS:
        assert len(go.Figure(parts[name]).data) == choice.cells["method"].nunique()


def test_metrics_begin_where_counts_differ(tmp_path: Path) -> None:
    """Not on two ranks, of which each sends as much, nor with a newer campaign without counts."""
    few = Campaign(launches=2, samples=4, sizes=(8, 64, 512))
    write(tmp_path, few)
    write(tmp_path, replace(few, procs=(8,), patterns=PATTERNS))
    write(tmp_path, of_bcast(replace(few, name="20261231T000000Z")))
    path = tmp_path / "switchpoint.db"
    ingest(path, [tmp_path])
    query = drawn(pages.metrics.PAGE, path)[0].query
    chosen = (query.campaign, query.operation, query.layout, query.size)
    assert chosen == (few.name, "exchange", "8@1x8-window-over", "64")


def test_the_map_leaves_out_oversubscribed_layouts_unless_asked(database: Path) -> None:
    choice, _ = drawn(pages.map.PAGE, database, "?o=exchange")
    assert choice.query.layouts == "fits"
    assert set(choice.best["procs"]) == {2}


def test_oversubscribed_layouts_are_not_shown_by_themselves(database: Path) -> None:
    choice, parts = drawn(pages.explore.PAGE, database)
    assert "over" not in choice.query.layout
    assert "oversubscribed" not in said(parts["notes"])


@pytest.mark.parametrize("with_ends", [True, False])
def test_explore_draws_methods_without_intervals(
    database: Path, monkeypatch: pytest.MonkeyPatch, with_ends: bool
) -> None:
    found = explore.decided.points_of

    def without_level(point: Point) -> Point:
        ratios = tuple(Ratio(its.method, its.ratio) for its in point.ratios)
        return point._replace(level=None, ratios=point.ratios if with_ends else ratios)

    monkeypatch.setattr(
        explore.decided,
        "points_of",
        lambda *given: [point and without_level(point) for point in found(*given)],
    )
    _, parts = drawn(explore.PAGE, database)
    assert " at 9" not in said(parts["cell"])


def test_pages_say_what_pico_does_not_measure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SWITCHPOINT_RESULTS", str(tmp_path))
    succeed("ingest", CHECKOUT / "tests" / "data" / "pico")
    with Store.open(tmp_path / "switchpoint.db", readonly=True) as store:
        (system,) = store.systems()["system"]
        its = measuring.with_own_commands("Run `switchpoint run -- --tag=overlap`.", store, system)
        again = measuring.with_own_commands("Run `switchpoint run`.", store, system)
        assert store.loads(system)
        page = said(pages.overview.PAGE.layout(store, ""))
    assert its == "PICO does not measure this."
    assert "`switchpoint ingest pico/results/" in again
    assert "0.0 – 0.0" not in page  # PICO does not record the load


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


def test_overlap_without_any_time_is_drawn(tmp_path: Path) -> None:
    for path in overlaps.write(tmp_path, launches=1):
        lines = raw.read(path)
        for line in lines[1:-1]:
            line.update(dict.fromkeys([*PARTS, "alone_s"], [0] * len(line["samples_s"])))
        raw.write(path, lines)
    database = tmp_path / "switchpoint.db"
    assert ingest(database, [tmp_path]).problems == []
    _, parts = drawn(pages.overlap.PAGE, database)
    assert go.Figure(parts["breakdown"]).data[0].x == (0, 0)


@pytest.mark.parametrize(
    ("page", "command"),
    [(pages.overlap.PAGE, " -- --tag=overlap"), (pages.models.PAGE, " -- --tag=parameters")],
)
def test_an_empty_page_says_what_to_run_and_nothing_else(
    database: Path, page: FilteredPage[Any], command: str
) -> None:
    with Store.open(database, readonly=True) as store:
        shown = page.layout(store, "")
    *_, missing, body = shown.children
    assert re.search(rf"switchpoint run --environment \w+{command}", said(missing))
    assert body.hidden


def test_switch_points_of_models_are_in_bytes_per_message() -> None:
    """As the figure is, also where sizes are those of an item, of which a message has several."""
    cells = pd.DataFrame({"size_bytes": [8, 8, 64, 512], "bytes": [24, 24, 192, 1536]})
    crossovers = [SwitchPoint(23, "direct", "nap"), SwitchPoint(64, "nap", "direct")]
    assert pages.models._switches(crossovers, cells) == "nap from 69 B, direct from 192 B"
    assert pages.models._switches([], cells) == "none"


def test_models_are_held_against_measurements(tmp_path: Path) -> None:
    path = tmp_path / "switchpoint.db"
    large_store.write(path, large_store.Size(campaigns=3, samples=10_000))
    choice, parts = drawn(pages.models.PAGE, path, "?o=exchange")
    assert set(choice.errors["method"]) >= {"direct", "stfw:dims=2"}
    errors = choice.errors
    assert errors["residual"].to_numpy() == pytest.approx(
        (errors["predicted_s"] / errors["median_s"] - 1).to_numpy(), rel=1e-6
    )
    assert "within 15 %" in said(parts["accuracy"])
    assert "LogGP" in said(parts["parameters"])
    assert "copying ns/B" in said(parts["parameters"])
