"""The pages as one file."""

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import plotly.graph_objects as go

from dashboard.elements import anchor, data_cell, row_head, table_row
from dashboard.markup import as_html
from dashboard.pages import PAGES
from dashboard.report import html_report
from dashboard.widgets import data_table, notice
from tests import probes, synthetic
from tests.cli import succeed
from tuner.rawfile.ingest import ingest
from tuner.store.store import Store


class Tags(HTMLParser):
    """Collects what a browser would fetch or follow, and checks that elements are closed."""

    def __init__(self) -> None:
        super().__init__()
        self.foreign: list[str] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.foreign += [value or "" for name, value in attrs if name in ("src", "href")]
        if tag not in ("meta", "br", "hr"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_command_writes_it(database: Path, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    assert str(path) in succeed("report", "--database", database, "--output", path)
    assert path.read_text().startswith("<!DOCTYPE html>")
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]


def test_a_report_needs_nothing_else_and_has_every_system(database: Path) -> None:
    with Store.open(database, readonly=True) as store:
        report = html_report(store)
        systems = store.systems()
    tags = Tags()
    tags.feed(report)
    assert (tags.foreign, tags.open) == ([], [])
    assert "Compare with your table" not in report and "Click a" not in report
    for environment in systems["environment"]:
        assert f"local:cpu, {environment}" in report
    figures = re.findall(r'<script type="application/json" class="plotted">(.*?)</script>', report)
    assert len(figures) > 10
    for figure in figures:
        go.Figure(json.loads(figure))


def test_a_report_has_what_every_page_says_belongs_in_it(database: Path) -> None:
    with Store.open(database, readonly=True) as store:
        report = html_report(store)
        reported = [
            page.title
            for system in store.systems()["system"]
            for page in PAGES
            for _ in page.reported(store, system)
        ]
    titles = re.findall(r"<h1>([^<]*)</h1>", report)
    assert sorted(title for title in titles if ":" not in title) == sorted(
        ["Measured systems", *reported]
    )
    assert {"Explore", "Map", "Metrics", "Table", "History", "Compare"} <= set(reported)


def test_the_newest_campaign_may_have_operations_of_its_own(tmp_path: Path) -> None:
    """There is nothing to compare these with."""
    older = synthetic.Campaign(samples=20)
    newer = replace(older, name="20261122T034500Z", operation="discovery")
    newer = replace(newer, methods=("pex", "nbx"), times=synthetic.discovery_times)
    for campaign in (older, newer):
        synthetic.write(tmp_path, campaign)
    database, path = tmp_path / "s.db", tmp_path / "report.html"
    succeed("ingest", tmp_path, "--database", database)
    succeed("report", "--database", database, "--output", path)
    assert "discovery" in path.read_text()


def test_an_mpi_of_which_only_probes_are_stored_has_no_history(tmp_path: Path) -> None:
    """That of its machine has several campaigns, with another version."""
    older = synthetic.Campaign(samples=20, sizes=(8,), cores=64, mpi_library="MPICH Version: 5.0.1")
    for name in ("20260101T000000Z", "20260201T000000Z"):
        synthetic.write(tmp_path, replace(older, name=name))
    probes.write(tmp_path, probes.ProbeCampaign(sizes=(8, 64), launches=1))
    ingest(tmp_path / "s.db", [tmp_path])
    with Store.open(tmp_path / "s.db", readonly=True) as store:
        assert html_report(store).count("<h1>History</h1>") == 1


def test_what_a_browser_gets_as_html_is_escaped_and_linked() -> None:
    cells = [row_head("<script>"), data_cell(anchor("a&b", "explore?s=x&c='\"<"), title='"<i>')]
    sent = data_table("<b>", ["<u>"], [table_row(cells)]).to_plotly_json()["props"]["data-html"]
    tags = Tags()
    tags.feed(sent)
    assert (tags.foreign, tags.open) == (["explore?s=x&c='\"<"], [])
    assert not re.search("<(script|b|u|i)>", sent)
    assert "&lt;script&gt;" in sent


def test_a_notice_and_a_link_are_text_in_a_file() -> None:
    file = as_html(notice("Nothing", anchor("there", "explore")))
    assert file == '<div><h2 class="alert-heading h5">Nothing</h2><span>there</span></div>'
