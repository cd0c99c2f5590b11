"""Measured overlap on its way from raw files to the store and beside predictions."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests import overlaps, probes
from tests.cli import fail, succeed
from tests.synthetic import change_record
from tuner.models.breakdowns import FtShape, SpmvShape, last_measured
from tuner.rawfile.ingest import ingest
from tuner.store.store import Store


def test_medians_over_launches_arrive(tmp_path: Path) -> None:
    overlaps.write(tmp_path)
    report = ingest(tmp_path / "s.db", [tmp_path])
    assert (report.launches, report.samples, report.problems) == (2, 40, [])
    assert ingest(tmp_path / "s.db", [tmp_path]).unchanged == 2
    with Store.open(tmp_path / "s.db", readonly=True) as store:
        (system,) = store.systems()["system"]
        rows = last_measured(store, system)
    assert rows["launches"].tolist() == [2] * 4
    full = rows[rows["flops"] == overlaps.FULL_FLOPS].iloc[0]
    assert full["computation_s"] == pytest.approx(1.1e-9 * overlaps.FULL_FLOPS)
    assert full["alone_s"] == pytest.approx(1e-9 * overlaps.FULL_FLOPS)
    assert full["initiation_s"] == 3e-6


def test_a_fuller_file_of_a_launch_replaces_the_other(tmp_path: Path) -> None:
    (raw,) = overlaps.write(tmp_path, launches=1)
    whole = raw.read_text().splitlines(keepends=True)
    raw.write_text("".join(whole[:2]))
    assert "no end record" in ingest(tmp_path / "s.db", [raw]).problems[0].message
    raw.write_text("".join(whole))
    assert ingest(tmp_path / "s.db", [raw]).problems == []
    with Store.open(tmp_path / "s.db", readonly=True) as store:
        assert len(store.records("overlap", store.systems()["system"][0])) == 4


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"samples_s": []}, "not a valid record"),
        ({"wait_s": [-1e-6] * 5}, "not a valid record"),
        ({"wait_s": [0]}, "5 samples_s, but other numbers for its parts"),
        ({"flops": -1}, "not a valid record"),
        ({"verified": 0}, "not a valid record"),
        ({"method": "pencils:by=put"}, "a second overlap: pattern='"),
    ],
)
def test_what_cannot_be_right_is_reported(
    tmp_path: Path, fields: dict[str, Any], message: str
) -> None:
    (raw,) = overlaps.write(tmp_path, launches=1)
    assert any(message in each for each in change_record(raw, **fields))


def test_overlap_is_shown_beside_predictions(tmp_path: Path) -> None:
    database = tmp_path / "s.db"
    overlaps.write(tmp_path)
    ingest(database, [tmp_path])
    shown = succeed("show", "overlap", "--database", database)
    assert "no predictions" in shown
    assert "1.10" in shown
    assert "no parameters have been fitted" in succeed(
        "show", "overlap", "--database", database, "--json"
    )
    probes.write(tmp_path, probes.ProbeCampaign())
    ingest(database, [tmp_path])
    succeed("fit", "--database", database)
    rows = json.loads(succeed("show", "overlap", "--database", database, "--json"))
    for row in rows:
        predicted = row["predicted"]
        assert predicted["total_s"] >= row["alone_s"]
        assert predicted["initiation_s"] + predicted["wait_s"] == pytest.approx(
            predicted["total_s"] - row["alone_s"]
        )
    exchange, pencils = rows[1], rows[3]
    assert exchange["method"] == "exchange:by=isend"
    assert pencils["predicted"]["wait_s"] < exchange["predicted"]["wait_s"]
    assert "no predictions" not in succeed("show", "overlap", "--database", database)


def test_without_overlap_there_is_nothing_to_show(tmp_path: Path) -> None:
    probes.write(tmp_path, probes.ProbeCampaign(launches=1))
    ingest(tmp_path / "s.db", [tmp_path])
    assert "--tag=overlap" in fail("show", "overlap", "--database", tmp_path / "s.db")


def test_shapes_are_read_from_patterns() -> None:
    assert FtShape.of("ft:rows=4,elements=256") == FtShape(4, 256)
    assert FtShape.of("pairs") is None
    assert SpmvShape.of("spmv:rows=4,nonzeros=8") == SpmvShape(4, 8)
    assert SpmvShape.of("pairs") is None
