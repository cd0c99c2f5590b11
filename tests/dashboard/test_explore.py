"""The table of methods at one size, and sparse products in parts."""

from pathlib import Path

import numpy as np
import plotly.graph_objects as go
import pytest

from dashboard.pages.explore import (
    PAGE,
    ExploreQuery,
    _best,
    _cell_table,
    _choose,
    _draw,
    _method_options,
)
from dashboard.query import MalformedError, UnknownError
from tests.dashboard.frames import cells, drawn, said
from tests.synthetic import Campaign, write
from tuner.rawfile.ingest import ingest
from tuner.store.store import Store


@pytest.mark.parametrize(
    ("low", "high", "grey"),
    [(0.9, 1.1, True), (1.1, 1.3, False), (0.7, 0.9, False), (np.nan, np.nan, True)],
)
def test_what_is_not_distinguished_from_the_default_is_grey(
    low: float, high: float, grey: bool
) -> None:
    cell = cells().query("bytes == 8 and method in ['direct', 'neighbor']")
    other = cell["method"] == "neighbor"
    cell = cell.assign(
        speedup_low=np.where(other, low, 1),
        speedup_high=np.where(other, high, 1),
        plan_median_s=1e-5,
    )
    table = _cell_table(cell, "direct").children
    rows = [row["props"] for row in table.children[2].children]
    classes = {said(row["children"][0]): row["className"] for row in rows}
    assert classes["neighbor"] == ("even" if grey else None)
    assert classes["direct"] is None


def test_the_five_best_and_the_default_are_drawn_and_others_on_demand() -> None:
    methods = {"direct": (1.0, 1.0)} | {f"stfw:dims={n}": (1 + n / 10, 1 + n / 5) for n in range(8)}
    table = cells(methods).assign(operation="exchange")
    assert [value for value, _ in _method_options(table)] == ["best", "all"]
    assert _best(table) == {"direct", *(f"stfw:dims={n}" for n in range(5))}
    few = table[table["method"].isin(["direct", "stfw:dims=1"])]
    assert _method_options(few) == [("all", "all 2")]


def test_launches_of_one_number_are_drawn_together(tmp_path: Path) -> None:
    """As runs by hand have it, without --launch."""
    for seed in (1, 2):
        write(tmp_path / str(seed), Campaign(launches=1, sizes=(8,), samples=6, seed=seed))
    database = tmp_path / "switchpoint.db"
    ingest(database, [tmp_path])
    _, parts = drawn(PAGE, database, "?f=apart")
    methods = {trace.name: len(trace.x) for trace in go.Figure(parts["ecdf"]).data}
    assert methods["direct"] >= 12


@pytest.mark.parametrize(
    ("part", "share"), [("whole", 1.0), ("communication", 0.75), ("local", 0.5)]
)
def test_products_are_shown_whole_and_in_parts(database: Path, part: str, share: float) -> None:
    """Of the synthetic times; the table of a size has all three, whichever is drawn."""
    with Store.open(database, readonly=True) as store:
        choice = _choose(store, ExploreQuery.parse(f"?o=spmv&t={part}"), strict=True)
        parts = _draw(store, choice)
    for name in ("curves", "ecdf"):
        go.Figure(parts[name])
    rows = choice.cells
    assert rows["median_s"].to_numpy() == pytest.approx(share * rows["whole_s"], rel=0.05)
    assert rows["communication_s"].to_numpy() == pytest.approx(0.75 * rows["whole_s"], rel=0.05)
    assert rows["local_s"].to_numpy() == pytest.approx(0.5 * rows["whole_s"], rel=0.05)
    assert (rows["low_s"] <= rows["median_s"]).all()
    faster = rows[rows["method"] == "stfw:dims=2"]
    assert (faster["speedup_low"] > 1.5).all()
    header = parts["cell"].children.children[1].children
    assert {"Whole", "Exchange", "Local part"} <= {cell.children for cell in header.children}


def test_ranks_of_nodes_that_share_their_cores_are_counted_together(tmp_path: Path) -> None:
    for path in write(tmp_path, Campaign(procs=(8,), sizes=(8,))):
        header = path.read_text()
        path.write_text(header.replace('"nodes": 1, "ppn": 8', '"nodes": 4, "ppn": 2'))
    ingest(tmp_path / "s.db", [tmp_path])
    _, parts = drawn(PAGE, tmp_path / "s.db")
    assert "oversubscribed: 8 ranks on 2 cores" in said(parts["notes"])


def test_collectives_are_shown_by_their_block_and_rule(database: Path) -> None:
    with Store.open(database, readonly=True) as store:
        choice = _choose(store, ExploreQuery.parse("?o=bcast"), strict=True)
        parts = _draw(store, choice)
    figure = go.Figure(parts["curves"])
    assert figure.layout.xaxis.title.text == "bytes of the vector"
    assert figure.layout.yaxis.title.text == "speed-up over vendor"
    assert "messages sent by a rank" not in str(parts["notes"])
    assert "no rule of the table" not in str(parts["notes"])
    strip = next(trace for trace in figure.data if trace.type == "bar")
    assert list(strip.text) == ["binomial", "vendor"]


def test_launches_are_facets_on_demand(database: Path) -> None:
    with Store.open(database, readonly=True) as store:
        choice = _choose(store, ExploreQuery.parse("?o=bcast&f=apart"), strict=True)
        figure = go.Figure(_draw(store, choice)["ecdf"])
    assert [value for value, _ in choice.options["launches"]] == ["together", "apart"]
    names = [note.text for note in figure.layout.annotations]
    assert names == [f"launch {number}" for number in range(6)]
    lines = {(line.name, line.xaxis) for line in figure.data}
    assert len(lines) == len(figure.data) == 6 * len(choice.drawn)
    ends = [max(line.x) for line in figure.data if line.name == "vendor"]
    assert len(set(ends)) == 6


def test_the_rules_of_exchanges_are_shown_for_products(database: Path) -> None:
    with Store.open(database, readonly=True) as store:
        choice = _choose(store, ExploreQuery.parse("?o=spmv"), strict=True)
        assert "spmv" not in set(store.rules(choice.query.system)["operation"])
        assert "no rule of the table" not in str(_draw(store, choice)["notes"])
    assert [value for value, _ in choice.options["part"]] == ["whole", "communication", "local"]
    sizes = [label for _, label in choice.options["size"]]
    assert sizes == ["8 B (1 vector)", "64 B (8 vectors)"]


@pytest.mark.parametrize(
    ("search", "error"), [("?o=exchange&t=local", UnknownError), ("?t=other", MalformedError)]
)
def test_parts_that_there_are_not_are_refused(
    database: Path, search: str, error: type[Exception]
) -> None:
    with Store.open(database, readonly=True) as store, pytest.raises(error):
        _choose(store, ExploreQuery.parse(search), strict=True)
