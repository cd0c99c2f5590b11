"""The HTTP API."""

import json
import shutil
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest
from dash import Dash
from flask.testing import FlaskClient
from jsonschema import Draft202012Validator
from openapi_spec_validator import validate

from dashboard import web
from dashboard.app import create_app
from dashboard.schemas import schemas
from tests import synthetic, test_soaks
from tests.cli import succeed
from tests.dashboard import large
from tuner.export import forms
from tuner.models.system import encode
from tuner.rawfile.ingest import ingest
from tuner.selection.tuning import tune_missing
from tuner.store.store import Store

ROOT = "/api/v1"


@pytest.fixture
def system(client: FlaskClient) -> str:
    systems = client.get(f"{ROOT}/systems").json["systems"]
    return str(max(systems, key=lambda system: system["samples"])["system"])


def test_systems_have_their_campaigns(client: FlaskClient, system: str) -> None:
    answer = client.get(f"{ROOT}/systems/{system}").json
    assert answer["system"] == system
    names = [campaign["campaign"] for campaign in answer["campaigns_measured"]]
    assert names == ["20261019T120000Z", "20261121T034500Z"]


@pytest.mark.parametrize("form", ["table", "header", "json"])
def test_a_table_is_the_exported_one(
    client: FlaskClient, database: Path, system: str, form: str
) -> None:
    with Store.open(database, readonly=True) as store:
        expected = forms.export(store.table(system), form)
    answer = client.get(f"{ROOT}/tables/{system}?format={form}")
    assert answer.data == expected.encode()


def test_what_did_not_change_is_not_sent_again(client: FlaskClient, system: str) -> None:
    for path in ("systems", f"systems/{system}", f"tables/{system}", "openapi.json"):
        answer = client.get(f"{ROOT}/{path}")
        assert answer.headers["Cache-Control"] == "private, no-cache"
        headers = {"If-None-Match": answer.headers["ETag"]}
        again = client.get(f"{ROOT}/{path}", headers=headers)
        assert (again.status_code, again.data) == (304, b"")


def test_cells_are_those_of_the_store(client: FlaskClient, database: Path, system: str) -> None:
    query = f"system={system}&campaign=20261121T034500Z&operation=discovery&procs=8"
    answer = client.get(f"{ROOT}/cells?{query}").json
    with Store.open(database, readonly=True) as store:
        expected = store.cells(system, campaign="20261121T034500Z", operation="discovery", procs=8)
    assert answer["total"] == len(expected) == len(answer["cells"])
    assert [cell["median_s"] for cell in answer["cells"]] == expected["median_s"].tolist()
    page = client.get(f"{ROOT}/cells?{query}&offset=3&limit=2").json
    assert page["cells"] == answer["cells"][3:5]


@pytest.mark.parametrize(
    "statistics",
    [
        *(
            f'{{"mmax": {its}}}'
            for its in ('"x"', "{}", "1e999", f"1{400 * '0'}", f"1{5000 * '0'}")
        ),
        "[1]",
        f"{'[' * 9999}{']' * 9999}",
    ],
    ids=["text", "object", "infinite", "large", "endless", "list", "deep"],
)
def test_statistics_that_are_no_finite_numbers_are_missing(
    database: Path, tmp_path: Path, system: str, statistics: str
) -> None:
    """Stores of earlier versions, or from elsewhere, may have them."""
    path = Path(shutil.copy(database, tmp_path))
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE cell SET statistics = ?", [statistics])
    client = create_app(path).server.test_client()
    query = f"system={system}&campaign=20261121T034500Z&limit=1"
    assert client.get(f"{ROOT}/cells?{query}").json["cells"][0]["statistics"] == {}
    assert client.get("/metrics/mmax.csv").status_code == 200


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("systems/nope", 404),
        ("tables/nope", 404),
        ("nope", 404),
        ("systems?x=1", 400),
        ("cells", 400),
        ("cells?system=&campaign=", 400),
        ("tables/nope?format=", 400),
        ("cells?system=nope&campaign=x", 404),
        ("cells?system=nope&campaign=x&limit=1001", 400),
        ("cells?system=nope&campaign=x&limit=0", 400),
        ("cells?system=nope&campaign=x&procs=-1", 400),
        ("compare", 400),
        ("compare?a_system=x&a_campaign=y&b_system=x", 400),
        ("compare?a_system=x&a_campaign=y&b_system=x&b_campaign=z", 404),
    ],
)
def test_errors_are_json(client: FlaskClient, path: str, status: int) -> None:
    answer = client.get(f"{ROOT}/{path}")
    assert answer.status_code == status
    assert answer.json["error"]


def test_a_form_that_nobody_knows_is_refused(client: FlaskClient, system: str) -> None:
    assert client.get(f"{ROOT}/tables/{system}?format=pickle").status_code == 400


def test_only_reading_is_allowed(client: FlaskClient) -> None:
    answer = client.post(f"{ROOT}/systems")
    assert answer.status_code == 405
    assert "GET" in answer.headers["Allow"]


def test_without_a_store_the_reason_is_reported(tmp_path: Path) -> None:
    answer = create_app(tmp_path / "none.db").server.test_client().get(f"{ROOT}/systems")
    assert answer.status_code == 503
    assert "no store there" in answer.json["error"]


def test_the_description_has_every_route_and_form(client: FlaskClient, app: Dash) -> None:
    document = client.get(f"{ROOT}/openapi.json").json
    rules = {
        str(rule).replace("<", "{").replace(">", "}") for rule in app.server.url_map.iter_rules()
    }
    assert set(document["paths"]) == {rule for rule in rules if rule.startswith(ROOT)}
    parameters = document["paths"][f"{ROOT}/tables/{{system}}"]["get"]["parameters"]
    assert parameters[1]["schema"]["enum"] == list(forms.FORMS)
    for each in document["paths"].values():  # what web.py answers before any route
        assert {"401", "421"} <= each["get"]["responses"].keys()
        assert "ETag" in each["get"]["responses"]["200"]["headers"]


def described(client: FlaskClient, route: str, status: str = "200") -> Draft202012Validator:
    """Return the validator of a route's answers, which may have nothing that is not described."""
    document = client.get(f"{ROOT}/openapi.json").json
    components = document["components"]
    for schema in components["schemas"].values():
        schema["additionalProperties"] = False
    answer = document["paths"][f"{ROOT}/{route}"]["get"]["responses"][status]
    if "$ref" in answer:
        answer = components["responses"][answer["$ref"].rpartition("/")[2]]
    schema = answer["content"]["application/json"]["schema"]
    return Draft202012Validator(schema | {"components": components})


def test_the_answers_are_as_described(client: FlaskClient, system: str) -> None:
    before, after = ((system, name) for name in ("20261019T120000Z", "20261121T034500Z"))
    measured = f"system={system}&campaign={after[1]}"
    for route, path in {
        "systems": "systems",
        "systems/{system}": f"systems/{system}",
        "tables/{system}": f"tables/{system}?format=json",
        "cells": f"cells?{measured}",
        "compare": f"compare?{sides(before, after)}",
    }.items():
        validator, answer = described(client, route), client.get(f"{ROOT}/{path}").json
        validator.validate(answer)
        assert not validator.is_valid(answer | {"more": 1})
        for name in answer:
            assert not validator.is_valid({**answer, name: {"wrong": 1}}), name
    described(client, "cells", "404").validate(client.get(f"{ROOT}/systems/nope").json)


def test_what_too_many_requests_get_is_as_described(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web, "VIEWS", 0)
    client = create_app(database).server.test_client()
    answer = client.get(f"{ROOT}/systems")
    described(client, "systems", str(answer.status_code)).validate(answer.json)
    responses = client.get(f"{ROOT}/openapi.json").json["components"]["responses"]
    header = responses["Unavailable"]["headers"]["Retry-After"]
    Draft202012Validator(header["schema"]).validate(int(answer.headers["Retry-After"]))


def test_a_table_with_fitted_parameters_is_as_described(
    database: Path, system: str, tmp_path: Path
) -> None:
    path = Path(shutil.copy(database, tmp_path))
    with Store.open(path) as store, store.transaction():
        store.put_model(system, encode(replace(large.model(), system=system)))
    client = create_app(path).server.test_client()
    answer = client.get(f"{ROOT}/tables/{system}?format=json").json
    assert answer["model"]
    described(client, "tables/{system}").validate(answer)


def test_the_description_is_valid(client: FlaskClient) -> None:
    validate(client.get(f"{ROOT}/openapi.json").json)


def test_no_schema_is_unused(client: FlaskClient) -> None:
    text = client.get(f"{ROOT}/openapi.json").text
    for name in schemas():
        assert f'"#/components/schemas/{name}"' in text


def sides(a: tuple[str, str], b: tuple[str, str]) -> str:
    """Return the query of a comparison."""
    return f"a_system={a[0]}&a_campaign={a[1]}&b_system={b[0]}&b_campaign={b[1]}"


def test_a_comparison_is_that_of_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SWITCHPOINT_REQUIRE_SOAK", "10000")
    names = synthetic.write_upgrade(tmp_path, 1.45)
    path = tmp_path / "switchpoint.db"
    ingest(path, [tmp_path])
    client = create_app(path).server.test_client()
    with Store.open(path) as store:
        measured = store.campaigns().set_index("campaign")["system"]
        query = sides(*((measured[name], name) for name in names))
        waiting = client.get(f"{ROOT}/compare?{query}").json
        assert (waiting["measured"], waiting["undecided"]) == (None, names[0])
        tune_missing(store)
    answer = client.get(f"{ROOT}/compare?{query}").json
    validator = described(client, "compare")
    for each in (waiting, answer):
        validator.validate(each)
    assert answer["changes"]
    assert answer["measured"]["moved"]
    assert answer.pop("undecided") == ""
    expected = json.loads(succeed("compare", *names, "--json", "--database", path))
    assert answer == expected
    assert answer["operations"][0]["operation"] == "discovery"
    assert answer["a"]["required_executions"] == 10000
    alone = client.get(f"{ROOT}/compare?{query}&operation=exchange").json  # tested as of all
    exchanges = [each for each in answer["operations"] if each["operation"] == "exchange"]
    assert alone["operations"] == exchanges
    assert exchanges[0]["changed"] == len(alone["changes"]) == 1


def test_a_comparison_without_what_failed_its_soak_is_that_of_the_command(tmp_path: Path) -> None:
    """The second best is chosen, not the default, though the failure is newer than the table."""
    latency_s = {"direct": 4e-6, "stfw:dims=2": 1e-6, "neighbor": 2e-6, "alltoallv": 9e-6}
    campaigns = (
        synthetic.Campaign(name="before", samples=20, methods=("direct", "neighbor")),
        synthetic.Campaign(
            name="after", samples=20, times=lambda method, size: latency_s[method] + 1e-9 * size
        ),
    )
    for campaign in campaigns:
        synthetic.write(tmp_path, campaign)
    path = synthetic.tuned_store(tmp_path)
    with Store.open(path, readonly=True) as store:
        (system,) = store.systems()["system"]
    test_soaks.write(tmp_path, test_soaks.failed("stfw:dims=2"))
    ingest(path, [tmp_path])
    client = create_app(path).server.test_client()
    names = [campaign.name for campaign in campaigns]
    query = sides(*((system, name) for name in names))
    answer = client.get(f"{ROOT}/compare?{query}").json
    assert answer.pop("undecided") == ""
    assert answer == json.loads(succeed("compare", *names, "--json", "--database", path))
    (moved,) = answer["measured"]["moved"]
    assert [each["method"] for each in moved["b"]] == ["neighbor", "direct"]
