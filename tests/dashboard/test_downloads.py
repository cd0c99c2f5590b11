"""Files that pages offer: exported tables, and the numbers of figures."""

import csv
import json
import re
from dataclasses import replace
from html import unescape
from pathlib import Path

import pytest
from flask.testing import FlaskClient

from dashboard import pages
from dashboard.choice import systems_of
from tests.conftest import Require
from tests.dashboard.test_web import client_of, request_of
from tests.profiles import content, tally
from tests.synthetic import Campaign, tuned_store, write
from tests.test_mpip import REPORT
from tests.vendor.tables import table_of
from tuner.export import forms
from tuner.machine.mpi import find_mpis
from tuner.store.store import Store

PAGES = tuple(page.path for page in pages.PAGES)
FILTERED = {page.path[1:]: page for page in pages.PAGES if hasattr(page, "filters")}


@pytest.mark.parametrize("form", ["table", "header", "json"])
def test_a_download_has_the_bytes_of_the_export(
    client: FlaskClient, database: Path, form: str
) -> None:
    with Store.open(database, readonly=True) as store:
        system = store.systems()["system"].iloc[0]
        expected = forms.export(store.table(system), form)
    answer = client.get(f"/table/download?s={system}&f={form}")
    assert answer.status_code == 200
    assert answer.data == expected.encode()
    assert "attachment" in answer.headers["Content-Disposition"]


@pytest.mark.parametrize("family", ["mpich", "openmpi"])
def test_files_for_mpi_libraries_are_those_of_the_export(
    database: Path, tmp_path: Path, require: Require, family: str
) -> None:
    found = {mpi.family: mpi for mpi in find_mpis()}
    require(family, family in found, f"no {family} on the path")
    path = tmp_path / "switchpoint.db"
    path.write_bytes(database.read_bytes())
    with Store.open(path) as store:
        system = store.systems()["system"].iloc[0]
        table = table_of(found[family])
        table = replace(table, provenance=replace(table.provenance, system=system))
        with store.transaction():
            store.put_table(table)
        expected = forms.export(store.table(system), family)
    client = client_of(path)
    for answer in (
        client.get(f"/table/download?s={system}&f={family}"),
        client.get(f"/api/v1/tables/{system}?format={family}"),
    ):
        assert (answer.status_code, answer.data) == (200, expected.encode())


def test_what_no_library_can_run_is_refused_with_the_reason(client: FlaskClient) -> None:
    answer = client.get("/table/download?f=openmpi")
    assert answer.status_code == 404
    assert "cannot be exported for Open MPI" in answer.text
    answer = client.get("/table/download?f=mpich")
    assert answer.status_code == 404
    assert "a method of Switchpoint is best everywhere" in unescape(answer.text)
    command = "-- --name collective --setvar=collective.methods=vendor"
    assert re.search(rf"switchpoint run \S.* {command}", unescape(answer.text))


def test_a_pasted_table_is_held_against_the_one_here(
    client: FlaskClient, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However long that is."""
    monkeypatch.setattr(pages.table, "_MOST_LINES", 1)
    with Store.open(database, readonly=True) as store:
        system = systems_of(store)["system"].iloc[0]
        text = forms.export(store.table(system), "table")
    rule = next(line for line in text.splitlines() if line.startswith("rule"))
    pasted = {
        (text, "table"): "No differences.",
        (text.replace(f"{rule}\n", ""), "table"): f"+{rule}",
        (text, "openmpi"): "Not available in this form",
        (3 * text, "table"): f"lines: the table here has {len(text.splitlines())}.",
    }
    dependencies = client.get("/_dash-dependencies").json
    declared = next(one for one in dependencies if one["output"] == "table-difference.children")
    for (given, form), expected in pasted.items():
        request = request_of(declared)
        for item, value in zip(request["inputs"], (given, system, form), strict=True):
            item["value"] = value
        answer = client.post("/_dash-update-component", json=request)
        assert json.dumps(expected)[1:-1] in json.dumps(answer.json)
        assert answer.json["sideUpdate"] == {"alert": {"children": None}}


@pytest.mark.parametrize(
    ("pasted", "expected"),
    [
        (
            content(tally("Bcast", 64, 0.5)).decode(),
            "app: 1.00 s on 2 processes, 50 % of it in MPI",
        ),
        (REPORT.read_text(), "collectives are taken to be of all 2 processes"),
        ("{}", "line 1 is not a line of a profile"),
        ("\ud800", "This is not a profile"),
    ],
)
def test_a_pasted_profile_is_advised_on(
    client: FlaskClient, database: Path, pasted: str, expected: str
) -> None:
    with Store.open(database, readonly=True) as store:
        system = systems_of(store)["system"].iloc[0]
    dependencies = client.get("/_dash-dependencies").json
    declared = next(one for one in dependencies if one["output"] == "advice-given.children")
    request = request_of(declared)
    for item, value in zip(request["inputs"], (pasted, system), strict=True):
        item["value"] = value
    answer = client.post("/_dash-update-component", json=request)
    assert expected in json.dumps(answer.json)
    assert answer.json["sideUpdate"] == {"alert": {"children": None}}


@pytest.mark.parametrize(
    "path", [f"/{path}/{name}.csv" for path, page in FILTERED.items() for name in page.data]
)
def test_numbers_of_figures_are_csv(client: FlaskClient, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 200
    assert answer.mimetype == "text/csv"
    rows = list(csv.reader(answer.text.splitlines()))
    assert len({len(row) for row in rows}) == 1
    page, name = path[1:].removesuffix(".csv").split("/")
    file = answer.headers["Content-Disposition"]
    assert (
        re.fullmatch(rf'attachment; filename="{page}-{name}-[\w.@=,-]+\.csv"', file)
        or page == "map"
    )
    assert client.get(f"{path}?s=no-such-system").status_code == 404
    assert client.get(f"{path}?nope=1").status_code == 400


def test_no_text_of_a_csv_is_a_formula(tmp_path: Path) -> None:
    write(tmp_path, Campaign(mpi_library="=HYPERLINK(1)", launches=1, sizes=(8,)))
    answer = client_of(tuned_store(tmp_path)).get("/history/history.csv")
    rows = csv.DictReader(answer.text.splitlines())
    assert {row["mpi_library"] for row in rows} == {"'=HYPERLINK(1)"}


def test_samples_have_their_launches_and_the_file_the_case(client: FlaskClient) -> None:
    answer = client.get("/explore/ecdf.csv?o=bcast&b=8")
    rows = list(csv.DictReader(answer.text.splitlines()))
    assert {row["launch"] for row in rows} == {*"012345"}
    assert len(rows) == 3 * 6 * 40
    assert "-bcast-blocks_root=0-2@1x2-window-" in answer.headers["Content-Disposition"]


def test_a_part_of_products_has_none_of_the_samples_of_the_whole(client: FlaskClient) -> None:
    whole, part = (
        {
            name: list(csv.DictReader(client.get(f"/explore/{name}.csv?{query}").text.splitlines()))
            for name in ("curves", "ecdf")
        }
        for query in ("o=spmv", "o=spmv&t=communication")
    )
    assert whole["ecdf"] and not part["ecdf"]
    for name in ("p10_s", "p90_s", "above_2_medians"):
        assert all(row[name] for row in whole["curves"])
        assert not any(row[name] for row in part["curves"])
    assert all(row["median_s"] for row in part["curves"])


@pytest.mark.parametrize(
    ("query", "status"), [("?s=nope", 404), ("?f=nope", 400), ("?f=table&f=json", 400), ("", 200)]
)
def test_unknown_downloads_are_refused(client: FlaskClient, query: str, status: int) -> None:
    assert client.get(f"/table/download{query}").status_code == status
