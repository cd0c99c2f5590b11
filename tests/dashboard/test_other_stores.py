"""The server's answers for stores that are empty, late, or lack a part."""

import sqlite3
from pathlib import Path

import pytest

from tests import probes
from tests.dashboard.conftest import PRODUCTS
from tests.dashboard.test_web import PAGES, arrival, client_of
from tests.synthetic import Campaign, write
from tuner.rawfile.ingest import ingest
from tuner.store.store import Store


def test_an_empty_store_says_what_to_run(tmp_path: Path) -> None:
    path = tmp_path / "switchpoint.db"
    Store.open(path).close()
    client = client_of(path)
    answer = client.get("/explore")
    assert answer.status_code == 200
    assert "switchpoint run" in answer.text
    for page in ("/", "/explore"):  # by a link of another page
        assert "switchpoint run" in arrival(client, page)


def test_a_store_of_probes_says_what_to_run_where_methods_are_shown(tmp_path: Path) -> None:
    probes.write(tmp_path, probes.ProbeCampaign(sizes=(8, 64), launches=1))
    path = tmp_path / "switchpoint.db"
    ingest(path, [tmp_path])
    client = client_of(path)
    for page in PAGES:
        answer = client.get(page)
        assert answer.status_code == 200, page
    answer = client.get("/explore")
    assert "switchpoint run" in answer.text
    assert client.get("/explore?s=no-such").status_code == 404
    assert "switchpoint run" in arrival(client, "/explore")


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE cell SET campaign = 'other'",
        "DELETE FROM product",
        "DELETE FROM product WHERE launch = (SELECT launch FROM product)",
    ],
)
def test_stores_of_others_may_lack_what_belongs_to_cells(tmp_path: Path, change: str) -> None:
    for each in (Campaign(sizes=(8,)), PRODUCTS):
        write(tmp_path, each)
    path = tmp_path / "switchpoint.db"
    ingest(path, [tmp_path])
    with sqlite3.connect(path) as database:
        database.execute(change)
    client = client_of(path)
    for page in (*PAGES, "/explore?o=spmv"):
        assert client.get(page).status_code == 200, page
    of_part = client.get("/explore?o=spmv&t=communication")
    assert of_part.status_code == (404 if change == "DELETE FROM product" else 200)


def test_a_store_that_appears_later_is_served(tmp_path: Path, database: Path) -> None:
    path = tmp_path / "switchpoint.db"
    client = client_of(path)
    assert client.get("/").status_code == 503
    path.write_bytes(database.read_bytes())
    assert client.get("/").status_code == 200
