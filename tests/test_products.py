"""Products of matrices and vectors in the store: measured and shown, without rules of their own."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from tests import synthetic
from tuner.cli import main
from tuner.rawfile.ingest import ingest
from tuner.selection import products
from tuner.selection.tuning import tune
from tuner.store.cells import KEY
from tuner.store.store import Store

SPMV = synthetic.Campaign(
    operation="spmv", patterns=(("matrix:bar.mtx", 3, 2.5),), launches=6, sizes=(8, 16)
)


def test_medians_of_every_launch_are_kept(tmp_path: Path) -> None:
    paths = synthetic.write(tmp_path, SPMV)
    database = tmp_path / "s.db"
    assert not ingest(database, [tmp_path]).problems
    with Store.open(database, readonly=True) as store:
        (system,) = store.systems()["system"]
        products, cells = store.products(system), store.cells(system)
        launches = store.launches()
    assert len(products) == 6 * len(cells) == 6 * 2 * 4
    assert len(products.merge(cells, on=list(KEY))) == len(products)
    whole = {}
    for path in paths:
        for line in path.read_text().splitlines()[1:-1]:
            case = json.loads(line)
            whole[str(path), case["method"], case["bytes"]] = float(np.median(case["samples_s"]))
    for row in products.itertuples():
        median = whole[launches[row.launch].path, row.method, row.bytes]
        assert row.communication_s == pytest.approx(0.75 * median)
        assert row.local_s == pytest.approx(0.5 * median)


def test_ingesting_again_and_fuller_files_change_only_what_is_new(tmp_path: Path) -> None:
    path = synthetic.write(tmp_path, SPMV)[0]
    whole = path.read_text()
    path.write_text("".join(whole.splitlines(keepends=True)[:3]))
    database = tmp_path / "s.db"
    ingest(database, [path])
    path.write_text(whole)
    ingest(database, [path])
    ingest(database, [path])
    with Store.open(database, readonly=True) as store:
        (system,) = store.systems()["system"]
        assert len(store.products(system)) == len(store.cells(system)) == 8
        assert store.products(system, "another").empty


@pytest.mark.parametrize(
    "changes", [{"local_s": None}, {"communication_s": [1e-6]}, {"local_s": [-1.0] * 40}]
)
def test_a_case_without_its_phases_is_reported(tmp_path: Path, changes: dict[str, object]) -> None:
    path = synthetic.write(tmp_path, SPMV)[0]
    synthetic.change_record(path, **changes)
    report = ingest(tmp_path / "s.db", [path])
    problem = report.problems[0]
    assert (problem.path, problem.line) == (str(path), 2)
    assert "_s" in problem.message
    with Store.open(tmp_path / "s.db", readonly=True) as store:
        (system,) = store.systems()["system"]
        assert len(store.products(system)) == len(store.cells(system)) == 7


def test_phases_of_other_operations_are_not_looked_at(tmp_path: Path) -> None:
    path = synthetic.write(tmp_path, synthetic.Campaign())[0]
    synthetic.change_record(path, local_s=[1e-6])
    assert not ingest(tmp_path / "s.db", [path]).problems


def test_parts_take_the_place_of_the_whole(tmp_path: Path) -> None:
    synthetic.write(tmp_path, SPMV)
    ingest(tmp_path / "s.db", [tmp_path])
    with Store.open(tmp_path / "s.db", readonly=True) as store:
        (system,) = store.systems()["system"]
        contents, measured = store.contents(system), store.products(system)
        whole = products.with_parts(store.cells(system), measured)
    local = list(products.of_part(contents, measured, "local_s"))
    for cell, part in zip(contents, local, strict=True):
        assert part.parts["median_s"] == pytest.approx(0.5 * cell.parts["median_s"])
        assert part.samples_s is cell.samples_s
    both = products.summaries(local).merge(whole, on=["size_bytes", "bytes", "method"])
    assert both["median_s_x"].to_numpy() == pytest.approx(both["local_s"].to_numpy())
    assert (both["low_s_x"] < both["median_s_x"]).all()
    assert (both["median_s_x"] < both["high_s_x"]).all()
    assert (both["communication_s"] < both["median_s_y"]).all()


def test_show_prints_the_parts_of_the_last_campaign(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of both sizes, stfw is the fastest; the default stands beside it."""
    monkeypatch.setenv("SWITCHPOINT_RESULTS", str(tmp_path))
    synthetic.write(tmp_path, replace(SPMV, name="20251121T000000Z", sizes=(8, 24)))
    synthetic.write(tmp_path, SPMV)
    ingest(tmp_path / "switchpoint.db", [tmp_path])
    answer = CliRunner().invoke(main, ["show", "--json"])
    assert answer.exit_code == 0, answer.output
    rows = json.loads(answer.stdout)["products"]
    assert {(row["campaign"], row["size_bytes"]) for row in rows} == {
        ("20251121T000000Z", 24),
        ("20261121T034500Z", 8),
        ("20261121T034500Z", 16),
    }
    for row in rows:
        assert 0 < row["local_s"] < row["communication_s"] < row["median_s"]
    shown = CliRunner().invoke(main, ["show"]).stdout.split("sparse products, medians\n")[1]
    (two, one) = (row for row in rows if row["method"] == "direct" and row["size_bytes"] in (8, 16))
    assert [line.split()[4] for line in shown.splitlines() if "matrix:bar" in line] == [
        *("1", "1", "2", "2", "3", "3")
    ]
    for row in (one, two):
        assert f"{1e6 * row['communication_s']:.3g}" in shown
        assert f"{1e6 * row['local_s']:.3g}" in shown


def test_products_make_no_rules(tmp_path: Path) -> None:
    """A product's exchange is planned as an exchange, by the rules of exchanges."""
    synthetic.write(tmp_path, SPMV)
    synthetic.write(tmp_path, synthetic.Campaign())
    ingest(tmp_path / "s.db", [tmp_path])
    with Store.open(tmp_path / "s.db") as store:
        (system,) = store.systems()["system"]
        table = tune(store, system)
    assert {rule.operation for rule in table.rules} == {"exchange"}
    assert {point.case.operation for point in table.points} == {"exchange"}


def test_a_system_with_products_alone_has_an_empty_table(tmp_path: Path) -> None:
    synthetic.write(tmp_path, SPMV)
    ingest(tmp_path / "s.db", [tmp_path])
    with Store.open(tmp_path / "s.db") as store:
        (system,) = store.systems()["system"]
        assert tune(store, system).rules == []
