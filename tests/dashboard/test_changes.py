"""What pages say of changes between campaigns: History, Compare, and Overview's answer."""

import re
import shutil
import sqlite3
from dataclasses import replace
from pathlib import Path
from typing import Any

import plotly.graph_objects as go
import pytest

from dashboard import compared, pages
from dashboard.markup import as_html
from dashboard.query import UnknownError
from tests.dashboard.frames import drawn, said
from tests.synthetic import (
    Campaign,
    discovery_times,
    exchange_times,
    of_bcast,
    of_discovery,
    tuned_store,
    write,
    write_upgrade,
)
from tuner.domain.records import Cell
from tuner.rawfile.ingest import ingest
from tuner.selection import comparison, tuning
from tuner.selection.tuning import tune
from tuner.store.store import Store

AFTER = {"mpi_library": "MPICH Version: 5.0.3", "day": "2026-12-01"}


def slower(method: str, size: int) -> float:
    return exchange_times(method, size) * (2 if method == "neighbor" else 1)


@pytest.fixture(scope="module")
def upgraded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ingest a system before and after an upgrade of its MPI that makes one method half as fast."""
    results = tmp_path_factory.mktemp("upgraded")
    before = Campaign(name="20260101T000000Z", sizes=(8, 512, 4096))
    after = replace(before, name="20260201T000000Z", times=slower, seed=2, **AFTER)
    write(results, before)
    write(results, after)
    return tuned_store(results)


def test_history_crosses_upgrades_and_shows_what_changed(upgraded: Path) -> None:
    choice, parts = drawn(pages.history.PAGE, upgraded)
    assert [*choice.measured["campaign"].unique()] == ["20260101T000000Z", "20260201T000000Z"]
    text = said(parts["changes"])
    assert "MPICH Version: 5.0.2 → MPICH Version: 5.0.3" in text
    assert "3 of 12" in text
    assert "neighbor" in text


def test_history_has_the_times_of_the_other_pages(upgraded: Path) -> None:
    choice, parts = drawn(pages.history.PAGE, upgraded)
    with Store.open(upgraded, readonly=True) as store:
        cells = store.cells(operation="exchange", size_bytes=int(choice.query.size))
        numbers = pages.history.PAGE.data["history"](store, choice)
    assert len(numbers) == 3 * len(cells)
    methods = cells.sort_values("campaign").groupby("method")
    for line, (_, its) in zip(parts["history"]["data"], methods, strict=True):
        median_s, low_s, high_s = (its[name].to_numpy() for name in ("median_s", "low_s", "high_s"))
        assert line["y"] == median_s.tolist()
        assert line["error_y"]["array"] == (high_s - median_s).tolist()
        assert line["error_y"]["arrayminus"] == (median_s - low_s).tolist()


def test_history_has_what_only_older_campaigns_measured(tmp_path: Path) -> None:
    """The last one measured another pattern, and the one before it not all sizes."""
    first = Campaign(name="20260101T000000Z", sizes=(8, 512, 4096), day="2026-01-01")
    second = replace(first, name="20260201T000000Z", sizes=(8, 512), seed=2, day="2026-02-01")
    hub = (("hub:hubs=4,seed=1", 15, 4.25),)
    write(tmp_path, first)
    write(tmp_path, replace(second, times=slower))
    write(tmp_path, replace(second, name="20260301T000000Z", patterns=hub, day="2026-03-01"))
    path = tuned_store(tmp_path)
    choice, _ = drawn(pages.history.PAGE, path)
    assert choice.query.pattern == first.patterns[0][0]
    for size, names in (("8", [first.name, second.name]), ("4096", [first.name])):
        link = replace(choice.query, size=size).search()
        choice, _ = drawn(pages.history.PAGE, path, link)
        measured = choice.measured[choice.measured["size_bytes"] == int(size)]
        assert [*measured["campaign"].unique()] == names


def test_links_notice_what_came_of_every_version_that_history_shows(
    upgraded: Path, tmp_path: Path
) -> None:
    path = Path(shutil.copy(upgraded, tmp_path))
    links = {}
    with Store.open(path, readonly=True) as store:
        system = store.systems().sort_values("last_date")["system"].iloc[-1]
        for page in (pages.history.PAGE, pages.explore.PAGE):
            choice = page.choose(store, page.query(system), strict=True)
            links[page] = page.drawn(store, choice)["link"].removeprefix(page.path[1:])
    write(tmp_path / "more", Campaign(name="20260301T000000Z", launches=1))  # of the older MPI
    ingest(path, [tmp_path])
    with Store.open(path, readonly=True) as store:
        changed = {page: said(page.layout(store, link)) for page, link in links.items()}
    assert "It had 12 launches of what is shown, and has 13 now." in changed[pages.history.PAGE]
    assert "since this link was made" not in changed[pages.explore.PAGE]


def overview_of(path: Path) -> str:
    with Store.open(path, readonly=True) as store:
        return said(pages.overview.PAGE.layout(store, ""))


@pytest.mark.parametrize("common", [(8,), ()], ids=["a common cell", "nothing in common"])
def test_the_steps_of_many_campaigns_read_each_a_few_times(
    common: tuple[int, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each has a cell that none had before, and there are more than are kept."""
    many = range(48)
    few = Campaign(methods=("direct",), launches=1, samples=3)
    for number in many:
        name = f"20260101T0000{number:02d}Z"
        write(tmp_path, replace(few, name=name, sizes=(*common, 16 + number)))
    ingest(tmp_path / "switchpoint.db", [tmp_path])
    reads = []

    def contents(store: Store, *args: Any, **equal: Any) -> list[Cell]:
        reads.append(equal["campaign"])
        return read(store, *args, **equal)

    read = Store.contents
    monkeypatch.setattr(Store, "contents", contents)
    with Store.open(tmp_path / "switchpoint.db", readonly=True) as store:
        (system,) = store.systems()["system"]
        assert len(compared.steps(store, system)) == (len(many) - 1 if common else 0)
    assert len(set(reads)) == len(many)
    assert len(reads) <= 2 * len(many)


@pytest.mark.parametrize("factor", [1.45, 0.65])
def test_pages_notice_what_an_upgrade_did_to_any_operation(tmp_path: Path, factor: float) -> None:
    before, after = write_upgrade(tmp_path, factor)
    path = tuned_store(tmp_path)
    ratio = rf"{str(factor)[:3]}\d+×"

    overview = overview_of(path)
    assert re.search(
        rf"What changed\? discovery {'slower' if factor > 1 else 'faster'}  *discovery: {ratio} "
        rf"the time, 20 of 20 cells changed since {before} \(MPICH Version: 5.0.2\)",
        overview,
    )
    assert overview.count(" the time, ") == 1  # at most single cells of others seem to change

    choice, parts = drawn(pages.history.PAGE, path)
    assert choice.query.operation == "discovery"
    assert re.match(
        rf"{after} discovery {ratio} 20 of 20 \w+ .* MPICH Version: 5.0.2 → MPICH Version: 5.0.3 ",
        said(parts["changes"]).partition(" Links ")[2].strip(),
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
    path = tuned_store(tmp_path)
    assert f"No operation changed significantly since {before}" in overview_of(path)
    assert "the time," not in overview_of(path)
    _, parts = drawn(pages.history.PAGE, path)
    assert said(parts["changes"]).startswith("No operation changed significantly")
    _, parts = drawn(pages.compare.PAGE, path)
    assert said(parts["summary"]).startswith("0 of 55 shared cells")


def test_cells_that_slowed_are_not_good_though_the_mean_stays(tmp_path: Path) -> None:
    def mixed(method: str, size: int) -> float:
        return exchange_times(method, size) * {"neighbor": 1.5, "alltoallv": 1 / 1.5}.get(method, 1)

    before = Campaign(name="20260101T000000Z", sample_noise=0.01, launch_noise=0.001)
    write(tmp_path, before)
    write(tmp_path, replace(before, name="20260201T000000Z", times=mixed, seed=2))
    path = tuned_store(tmp_path)
    assert "Changed without effect on the mean: exchange (10 of 20 cells)" in overview_of(path)
    with Store.open(path, readonly=True) as store:
        page = as_html(pages.overview.PAGE.layout(store, ""), linked=True)
    assert re.search(r'<div class="answer-box "><p class="question">What changed', page)


def test_a_cell_is_held_against_the_last_campaign_that_measured_it(tmp_path: Path) -> None:
    """An exchange alone was measured between, and is the newest of the old version."""
    before, after = write_upgrade(tmp_path, 1.45)
    between = Campaign(name="20260115T000000Z", samples=20, day="2026-01-15", seed=7)
    write(tmp_path, between)
    path = tuned_store(tmp_path)
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
    path = tuned_store(tmp_path)
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


def test_compare_shows_cells_that_changed(upgraded: Path) -> None:
    choice, parts = drawn(pages.compare.PAGE, upgraded)
    assert choice.found is not None
    sides = [
        (choice.query.other_system, choice.query.other_campaign),
        (choice.query.system, choice.query.campaign),
    ]
    with Store.open(upgraded, readonly=True) as store:
        expected = comparison.compare(*(tuning.compared_side(store, *side) for side in sides))
    assert choice.found == expected
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


def test_compare_begins_with_the_campaign_since_which_an_operation_changed(tmp_path: Path) -> None:
    """Not with another of the older version, which has more of the operations."""

    def upgraded_times(method: str, size: int) -> float:
        return 1.45 * discovery_times(method, size)

    old = Campaign(name="20260101T000000Z", samples=20, day="2026-01-01")
    other = replace(old, name="20260102T000000Z", day="2026-01-02", seed=2)
    new = replace(old, name="20260201T000000Z", seed=3, **AFTER)
    write(tmp_path, of_discovery(old))
    for campaign in (other, new):
        write(tmp_path, campaign)
        write(tmp_path, of_bcast(campaign))
    write(tmp_path, replace(of_discovery(new), times=upgraded_times))
    choice, parts = drawn(pages.compare.PAGE, tuned_store(tmp_path))
    assert choice.query.other_campaign == old.name
    assert said(parts["summary"]).startswith("20 of 20 shared cells changed")


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
    """Ingest a real system with one campaign, a simulated one with one sample of each method."""
    results = tmp_path_factory.mktemp("mixed")
    write(results, Campaign(sizes=(8, 512), procs=(2, 8)))
    simulated = Campaign(
        system="simulated:torus-4x4x2", environment="simgrid", launches=1, samples=1, cores=16
    )
    for path in write(results, replace(simulated, sizes=(16, 1024))):
        path.write_text(path.read_text().replace("Synthetic CPU", "simulated"))
    return tuned_store(results)


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


def test_the_history_of_one_campaign_shows_no_changes(mixed: Path) -> None:
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
