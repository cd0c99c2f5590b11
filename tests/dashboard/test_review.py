"""The front page: the review of a system whose truth is known, and the map of its decisions."""

import re
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dashboard import compared, pages, rules
from dashboard.exported import exported
from dashboard.heatmap import heat_maps
from dashboard.markup import as_html
from dashboard.query import UnknownError
from dashboard.review import BAD, CARE, GOOD, NONE, SystemReview, judge, mean_gain
from dashboard.soaked import SoakResults
from dashboard.steadiness import Steadiness
from tests import probes, raw, test_soaks
from tests.dashboard.frames import drawn, said
from tests.dashboard.test_changes import overview_of
from tests.decisions import point
from tests.synthetic import Campaign, write, write_upgrade
from tuner.campaign.order import PLANS
from tuner.campaign.reframe import CHECKS
from tuner.domain.tables import Soaked, SoakedAt
from tuner.rawfile.ingest import ingest
from tuner.selection.next_step import with_options
from tuner.selection.tuning import tune
from tuner.store.store import Store

FEW = Campaign(samples=20, sizes=(8, 32768))


def judged(results: Path, *, soaked: int = 0, tuned: bool = True) -> list[SystemReview]:
    """Return the reviews of all systems, by name of their MPI library."""
    path = results / "switchpoint.db"
    ingest(path, [results])
    with Store.open(path) as store:
        systems = store.systems().sort_values("mpi_library").to_dict("records")
        reviews = []
        for system in systems:
            name = system["system"]
            if tuned:
                tune(store, name, required_executions=soaked)
            newest = store.campaigns_with_cells(name)
            steadiness = Steadiness.of(store, name, newest[0], {}) if newest else None
            step = compared.newest_step(store, name) if newest else None
            reviews.append(judge(store, system, store.table(name), steadiness, step))
        return reviews


def test_a_quiet_system_is_trusted_and_its_gain_is_that_of_its_sizes(tmp_path: Path) -> None:
    write(tmp_path, FEW)
    (review,) = judged(tmp_path)
    assert (review.level, review.words, review.doubts) == (GOOD, "Can be trusted", [])
    (gain,) = review.gains
    assert (gain.operation, gain.sizes, gain.faster, gain.waiting) == ("exchange", 2, 1, 0)
    assert gain.most == pytest.approx(4.008 / 2.016, rel=0.05)
    assert mean_gain([gain]) == pytest.approx(gain.most**0.5)
    assert review.advise().lines[0].startswith("switchpoint export --system local-cpu-mpich")


def test_a_system_whose_ranks_all_arrive_apart_has_a_review(tmp_path: Path) -> None:
    for path in write(tmp_path, FEW):
        raw.change(
            path,
            lambda it: it.update(sync="window-staggered") if it["record"] == "header" else None,
        )
    (review,) = judged(tmp_path, tuned=False)
    assert review.words == "No table yet"


def test_layouts_with_more_ranks_than_cores_gain_apart(tmp_path: Path) -> None:
    write(tmp_path, replace(FEW, procs=(2, 8)))
    (review,) = judged(tmp_path)
    assert [gain.sizes for gain in (*review.gains, *review.oversubscribed)] == [2, 2]


def disturb(record: dict[str, Any]) -> None:
    if record["record"] == "header":
        record["load"] = [9.0, 9.0, 9.0]
    elif record["record"] == "case":
        record["late"] = [1] * len(record["late"])


def test_disturbed_measurements_are_not_to_be_relied_on(tmp_path: Path) -> None:
    for path in write(tmp_path, FEW):
        raw.change(path, disturb)
    (review,) = judged(tmp_path)
    assert (review.level, review.words) == (BAD, "Do not rely on it")
    assert review.advise().lines == ["switchpoint run --environment mpich"]


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("local:cpu", ["switchpoint run --environment mpich"]),
        ("mine", ["switchpoint run --environment mpich --anonymous-as mine"]),
        (
            "blue waters:xe",
            [
                "# 'blue waters.py': the configuration of blue waters, "
                "which `switchpoint site init` writes there",
                "switchpoint run --config 'blue waters.py' --environment mpich -- "
                "'--system=blue waters:xe'",
            ],
        ),
        (
            "nodes:x",
            [
                f"switchpoint run --config {CHECKS / 'config' / 'nodes.py'} --environment mpich "
                "-- --system=nodes:x"
            ],
        ),
    ],
)
def test_a_system_is_measured_again_with_its_configuration(
    tmp_path: Path, name: str, lines: list[str]
) -> None:
    def of_system(record: dict[str, Any]) -> None:
        disturb(record)
        if record["record"] == "header":
            record["system"] = name

    for path in write(tmp_path, FEW):
        raw.change(path, of_system)
    (review,) = judged(tmp_path)
    assert review.advise().lines == lines
    with Store.open(tmp_path / "switchpoint.db", readonly=True) as store:
        models = said(pages.models.PAGE.layout(store, ""))
        changes = said(pages.history.PAGE.layout(store, ""))
    parameters = with_options(lines[-1], "--tag=parameters")
    assert f"measure some: {parameters}" in " ".join(models.split())
    assert f"only one campaign: {lines[-1]} adds another" in " ".join(changes.split())


def test_what_waits_for_a_soak_is_soaked_next(tmp_path: Path) -> None:
    write(tmp_path, FEW)
    (review,) = judged(tmp_path, soaked=1000)
    (gain,) = review.gains
    assert (gain.faster, gain.waiting, gain.mean) == (0, 1, 1.0)
    assert gain.awaited > 1.9
    assert review.advise().lines[0].startswith("switchpoint soak --system ")


def test_without_a_table_or_methods_the_next_command_makes_them(tmp_path: Path) -> None:
    write(tmp_path / "a", FEW)
    (review,) = judged(tmp_path / "a", tuned=False)
    assert review.level == NONE
    assert review.advise().lines[0].startswith("switchpoint tune --system ")
    (tmp_path / "b").mkdir()
    probes.write(tmp_path / "b", probes.ProbeCampaign(sizes=(8, 64), launches=1))
    (review,) = judged(tmp_path / "b")
    assert review.level == NONE
    assert review.advise().lines[0].startswith("switchpoint run")
    with Store.open(tmp_path / "b" / "switchpoint.db", readonly=True) as store:
        shown = as_html(pages.overview.PAGE.layout(store, ""), linked=True)
    assert "explore?" not in shown and "history?" not in shown  # which do not know the system


def test_what_to_do_next_follows_files_though_the_store_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SWITCHPOINT_RESULTS", str(tmp_path))
    cut, *_ = write(tmp_path, FEW)
    cut.write_text("".join(cut.read_text().splitlines(keepends=True)[:-1]))
    judged(tmp_path)
    resume = f"switchpoint run --resume {FEW.name}"
    assert resume not in overview_of(tmp_path / "switchpoint.db")
    plan = PLANS.path_of(FEW.name)
    plan.parent.mkdir(parents=True, exist_ok=True)
    plan.touch()
    assert resume in overview_of(tmp_path / "switchpoint.db")


def test_a_table_without_the_default_is_not_made_again(tmp_path: Path) -> None:
    write(tmp_path, replace(FEW, methods=("neighbor", "alltoallv")))
    (review,) = judged(tmp_path)
    assert (review.level, review.words) == (NONE, "No rules")
    assert review.advise().lines[0].startswith("switchpoint run")
    choice, _ = drawn(pages.table.PAGE, tmp_path / "switchpoint.db")
    assert "with their default" in pages.table.PAGE.missing(choice)


def test_a_table_that_lacks_launches_is_made_anew_first(tmp_path: Path) -> None:
    database, after = tmp_path / "switchpoint.db", tmp_path / "after"
    write(tmp_path, replace(FEW, methods=("neighbor", "alltoallv")))
    judged(tmp_path)
    write(after, replace(FEW, name="20261122T000000Z"))
    ingest(database, [after])
    with Store.open(database) as store:
        (system,) = store.systems()["system"]
        wanted = f"The table omits 6 launches: `switchpoint tune --system {system}`"
        assert wanted.lower() in rules.missing(store, system).lower()
        with pytest.raises(UnknownError, match=f"no rules; next: {wanted[0].lower()}{wanted[1:]}"):
            exported(store, system, "table")
        (review,) = judged(tmp_path, tuned=False)
        assert (review.words, review.advise().reason) == ("No rules", "The table omits 6 launches.")
        tune(store, system)
    _, parts = drawn(pages.table.PAGE, database)
    assert "This table omits" not in said(parts["settled"])
    write(after, replace(FEW, name="20261123T000000Z", launches=1))
    ingest(database, [after])
    for page, part in ((pages.table.PAGE, "settled"), (pages.choose.PAGE, "answer")):
        choice, parts = drawn(page, database)
        assert page.missing(choice) == ""
        shown = " ".join(said(parts[part]).split())
        assert "This table omits 1 launch; run switchpoint tune to make it anew." in shown


def test_after_an_upgrade_the_slower_operation_is_named_and_the_old_mpi_replaced(
    tmp_path: Path,
) -> None:
    """The campaigns' names come from raw files, and stay words of a shell."""
    names = [f"{name} $(date)" for name in write_upgrade(tmp_path, 1.45)]

    def renamed(record: dict[str, Any]) -> None:
        if record["record"] == "header":
            record["campaign"] += " $(date)"

    for path in tmp_path.rglob("*.jsonl"):
        raw.change(path, renamed)
    old, new = judged(tmp_path)
    assert (old.level, old.doubts) == (CARE, ["replaced by MPICH Version: 5.0.3"])
    assert (new.level, new.advise().reason) == (GOOD, "See why discovery is slower.")
    (line,) = new.advise().lines
    assert [side.partition("/")[2] for side in shlex.split(line)[2:]] == names


def test_a_library_that_is_used_beside_another_is_not_replaced(tmp_path: Path) -> None:
    write_upgrade(tmp_path, 1)
    write(tmp_path, Campaign(name="20260301T000000Z", samples=20, day="2026-03-01"))
    old, new = judged(tmp_path)
    assert [doubt for its in (old, new) for doubt in its.doubts if "replaced" in doubt] == []


def test_a_newer_library_is_not_replaced_by_an_older_one(tmp_path: Path) -> None:
    write(tmp_path, replace(FEW, name="20260101T000000Z", day="2026-01-01"))
    older = replace(FEW, environment="mpich4", mpi_library="MPICH Version: 4.0.2")
    write(tmp_path, replace(older, name="20260201T000000Z", day="2026-02-01", seed=2))
    assert [doubt for its in judged(tmp_path) for doubt in its.doubts if "replaced" in doubt] == []
    upgrade = replace(FEW, name="20260115T000000Z", mpi_library="MPICH Version: 5.0.3")
    write(tmp_path, replace(upgrade, day="2026-01-15", seed=3))
    _, before, _ = judged(tmp_path)
    assert before.doubts == ["replaced by MPICH Version: 5.0.3"]


def test_a_soak_is_not_the_newest_campaign(tmp_path: Path) -> None:
    write(tmp_path, replace(FEW, name="20260101T000000Z"))
    test_soaks.write(tmp_path, test_soaks.record("stfw:dims=2", executions=500))
    path = tmp_path / "switchpoint.db"
    ingest(path, [tmp_path])
    with Store.open(path, readonly=True) as store:
        assert len(store.campaigns()) == 2
        text = said(pages.overview.PAGE.layout(store, ""))
    table = text[text.index("Campaigns of ") :]
    assert table.index("20260101T000000Z") < table.index("soak executions")


def test_rows_of_a_map_are_named_apart() -> None:
    def rows(*degrees: tuple[int, float]) -> list[str]:
        shown = as_html(heat_maps([point(degree=degree) for degree in degrees], "here"))
        return re.findall('<th scope="row">(.*?)</th>', shown)

    assert rows((6, 5.5)) == ["8"]
    assert rows((6, 5.5), (15, 4.25)) == ["8, degree 6", "8, degree 15"]
    assert rows((6, 4.25), (6, 5.5)) == ["8, degree 6, mean 4.25", "8, degree 6, mean 5.5"]
    by_barrier = point(size=64)
    by_barrier = by_barrier._replace(case=by_barrier.case._replace(sync="barrier"))
    shown = said(heat_maps([point(), by_barrier], "here"))
    assert "8, barrier sync" in shown and "8, window sync" in shown


def test_a_soak_counts_on_its_layout_and_a_failure_everywhere() -> None:
    passed = Soaked("bcast", "binomial", 10_000, "", [SoakedAt(1, 2, 8, 10_000)])
    soaks = SoakResults("here", [passed, Soaked("bcast", "chain", 0, "wrong data")])
    assert soaks.text("bcast", "binomial", 1, 2) == "soaked 10,000 times"
    assert soaks.text("bcast", "binomial", 2, 2) == "not soaked"
    assert soaks.text("bcast", "chain", 2, 2) == "failed its soak"


def test_the_map_has_a_tile_for_every_decision(tmp_path: Path) -> None:
    write(tmp_path, replace(FEW, procs=(2, 4), cores=4))
    path = tmp_path / "switchpoint.db"
    ingest(path, [tmp_path])
    with Store.open(path) as store:
        table = tune(store, store.systems()["system"][0], required_executions=0)
    shown = heat_maps(table.points, "here")
    text = said(shown)
    assert text.startswith("exchange , default direct ranks 8 B 32 KiB 2 ■ ")
    tiles = as_html(shown).count('class="tile ')
    assert tiles == len(table.points) == 4
    assert "stfw:dims=2" in text and "8 B: stfw:dims=2 is " in as_html(shown)
