"""The server's answers, without a browser."""

import base64
import copy
import json
import re
import socket
import sqlite3
import threading
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from dash import Dash
from flask.testing import FlaskClient

from dashboard import app as app_module
from dashboard import pages, web
from dashboard.app import create_app
from tests.dashboard.frames import said
from tests.synthetic import Campaign, write
from tuner.rawfile.ingest import ingest
from tuner.store.store import Store

PAGES = tuple(page.path for page in pages.PAGES)
FILTERED = {page.path[1:]: page for page in pages.PAGES if hasattr(page, "filters")}


def client_of(path: Path) -> FlaskClient:
    return create_app(path).server.test_client()


@pytest.mark.parametrize("path", PAGES)
def test_pages_answer(client: FlaskClient, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 200
    assert "Switchpoint" in answer.text


@pytest.mark.parametrize(
    "path",
    [
        "/nope",
        "/explore/",
        "/explore/x",
        "/assets/nope.css",
        "/assets/../app.py",
        "/_dash-component-suites/dash/nope.js",
        "/_dash-component-suites/os/path.py",
        "/explore?s=no-such-system",
        "/explore?p=random:degree=7,seed=1",
        "/explore?b=9",
        "/table?s=no-such-system",
    ],
)
def test_what_does_not_exist_is_404(client: FlaskClient, path: str) -> None:
    assert client.get(path).status_code == 404


@pytest.mark.parametrize(
    "path",
    [
        "/explore?b=x",
        "/explore?x=1",
        "/explore?s=a&s=b",
        "/explore?s=%3Cscript%3E",
        "/explore?s=%00",
        "/explore?r=8@1y8",
        "/table?f=pickle",
        "/?s=a",
    ],
)
def test_malformed_queries_are_400_and_not_echoed(client: FlaskClient, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 400
    assert "<script>" not in answer.text.replace('<script src="/assets/theme.js"></script>', "")


def test_errors_are_escaped(client: FlaskClient) -> None:
    answer = client.get("/explore?s=%22%27%26")
    assert answer.status_code == 404
    assert "&amp;" in answer.text


@pytest.mark.parametrize("path", [*PAGES, "/nope", "/healthz", "/assets/switchpoint.css"])
def test_every_answer_has_the_security_headers(client: FlaskClient, path: str) -> None:
    headers = client.get(path).headers
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "unsafe-eval" not in policy
    assert "unsafe-inline" not in policy.split("script-src")[1].split(";")[0]
    assert headers["X-Content-Type-Options"] == "nosniff"


def test_pages_name_no_foreign_address(client: FlaskClient) -> None:
    for path in PAGES:
        assert not re.search(r"(src|href)=\"(https?:)?//", client.get(path).text)


def test_answers_are_compressed(client: FlaskClient) -> None:
    accepted = {"Accept-Encoding": "gzip, deflate"}
    script = re.findall(r'src="([^"]+)"', client.get("/").text)[-1]
    for path in ("/", script, "/_dash-dependencies", "/assets/bootstrap.min.css"):
        assert "Content-Encoding" in client.get(path, headers=accepted).headers


def test_health_is_ok_over_a_store(client: FlaskClient) -> None:
    answer = client.get("/healthz")
    assert (answer.status_code, answer.text) == (200, "ok\n")


def garbage(path: Path) -> None:
    path.write_bytes(b"not a database " * 100)


def other_application(path: Path) -> None:
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE cell (x)")


def older(path: Path) -> None:
    Store.open(path).close()
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 1")


def newer(path: Path) -> None:
    Store.open(path).close()
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 999")


def truncated(path: Path) -> None:
    Store.open(path).close()
    path.write_bytes(path.read_bytes()[:5000])


def cut_to_nothing(path: Path) -> None:
    path.touch()


def missing(path: Path) -> None:
    pass


def a_directory(path: Path) -> None:
    path.mkdir()


@pytest.mark.parametrize(
    "breakage",
    [missing, a_directory, garbage, other_application, older, newer, truncated, cut_to_nothing],
)
def test_a_store_that_can_not_be_read_is_503_with_its_reason(tmp_path: Path, breakage: Any) -> None:
    path = tmp_path / "switchpoint.db"
    breakage(path)
    client = client_of(path)
    health = client.get("/healthz")
    assert health.status_code == 503
    assert str(path) in health.text
    for page in PAGES:
        answer = client.get(page)
        assert answer.status_code == 503
        said = re.sub("</?code>", "`", answer.text.replace("&#39;", "'"))
        assert health.text.strip() in said
        assert "switchpoint run" in answer.text
        assert "Traceback" not in answer.text


def test_who_has_no_token_is_not_told_where_the_store_is(tmp_path: Path) -> None:
    client = create_app(tmp_path / "switchpoint.db", token="secret").server.test_client()
    answer = client.get("/healthz")
    assert (answer.status_code, answer.text) == (503, "the store cannot be read\n")


def test_a_locked_store_is_503_and_served_when_it_is_free(
    tmp_path: Path, database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app_module, "_BUSY_TIMEOUT_S", 0)
    path = tmp_path / "switchpoint.db"
    path.write_bytes(database.read_bytes())
    client = client_of(path)
    writer = sqlite3.connect(path, isolation_level=None)
    writer.execute("BEGIN EXCLUSIVE")
    for page in (*PAGES, "/healthz"):
        answer = client.get(page)
        assert answer.status_code == 503
        assert "locked by another process" in answer.text
    writer.execute("ROLLBACK")
    writer.close()
    assert client.get("/explore").status_code == 200


def test_few_answers_are_made_at_a_time_and_all_in_the_end(database: Path) -> None:
    opened = web.in_turn(partial(Store.open, database, readonly=True))
    begun, leave = threading.Semaphore(0), threading.Event()
    at_once: list[int] = []
    seen: list[int] = []

    def answer() -> None:
        with pytest.raises(RuntimeError, match="of a view"), opened():
            at_once.append(1)
            seen.append(len(at_once))
            begun.release()
            leave.wait(60)
            at_once.pop()
            raise RuntimeError("of a view")

    users = [threading.Thread(target=answer) for _ in range(5)]
    for user in users:
        user.start()
    for _ in range(2):
        assert begun.acquire(timeout=60)
    assert not begun.acquire(timeout=0.2)
    leave.set()
    for _ in range(3):
        assert begun.acquire(timeout=60)
    for user in users:
        user.join(60)
    assert not at_once and len(seen) == 5 and max(seen) == 2


def test_beyond_the_views_that_may_wait_the_rest_is_answered_still(
    database: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web, "VIEWS", 0)
    client = create_app(database).server.test_client()
    for path in ("/explore", "/api/v1/systems"):
        answer = client.get(path)
        assert (answer.status_code, answer.headers["Retry-After"]) == (503, "5")
    answer = client.post("/_dash-update-component", json=call(client, "explore"))
    assert "Too many pages are being made. Try again." in answer.text
    assert client.get("/healthz").status_code == 200
    assert client.get("/assets/switchpoint.css").status_code == 200


def test_below_a_prefix_all_addresses_begin_with_it(database: Path) -> None:
    client = create_app(database, prefix="/swp").server.test_client()
    below = {"SCRIPT_NAME": "/swp"}  # as waitress has it under a prefix
    page = client.get("/explore", environ_overrides=below).text
    addresses = re.findall(r'(?:src|href)="([^"]+)"', page)
    assert addresses
    assert all(address.startswith(("/swp/", "assets/", "plain")) for address in addresses)
    assert re.search(r'requests_pathname_prefix"\s*:\s*"(/|\\u002f)swp', page)
    plain = client.get("/nope/nope", environ_overrides=below).text
    assert 'href="/swp/assets/switchpoint.css"' in plain
    request = call(client, "explore")
    for item in request["state"]:
        if item["property"] == "pathname":
            item["value"] = "/swp/explore"
    assert client.post("/_dash-update-component", json=request).status_code == 200


def test_a_token_keeps_others_out(database: Path) -> None:
    client = create_app(database, token="sésame").server.test_client()
    for path in (*PAGES, "/assets/switchpoint.css", "/_dash-layout", "/table/download", "/nope"):
        answer = client.get(path)
        assert answer.status_code == 401
        assert answer.headers["WWW-Authenticate"].startswith("Basic")
        assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
        for wrong in (("any", ""), ("any", "sesame"), ("sésame", "any")):
            assert client.get(path, auth=wrong).status_code == 401
    assert client.get("/", headers={"Authorization": "Bearer wrong"}).status_code == 401
    assert client.get("/", headers={"Authorization": "nonsense"}).status_code == 401
    for scheme in ("Digest", "Token", "Basic", "Bearerx"):
        assert client.get("/", headers={"Authorization": f"{scheme} sésame"}).status_code == 401
    assert client.get("/", headers={"Authorization": 'Digest password="sésame"'}).status_code == 401
    assert client.get("/", auth=("any", "sésame")).status_code == 200
    assert client.get("/healthz").status_code == 200


@pytest.mark.parametrize(
    "token", ["a=b", "a==", "sésame", "voilà", "Å", "not UTF-8: \udcff", "not UTF-8: \udc85"]
)
def test_a_token_is_compared_by_its_bytes(database: Path, token: str) -> None:
    client = create_app(database, token=token).server.test_client()
    sent = token.encode("utf-8", "surrogateescape")
    basic = base64.b64encode(b"any:" + sent).decode()
    for header in (f"bearer {sent.decode('latin-1')}", f"BASIC {basic}"):
        answer = client.get("/assets/switchpoint.css", headers={"Authorization": header})
        assert answer.status_code == 200


@pytest.mark.parametrize(
    ("given", "hosts", "status"),
    [
        *((name, (), 200) for name in ("localhost", "LOCALHOST.", "localhost:8050", "127.0.0.1")),
        *((name, (), 200) for name in ("[::1]:8050", "192.0.2.7:80", socket.gethostname())),
        *((name, (), 421) for name in ("", "evil.example", "evil.example:8050", "localhost.evil")),
        *(
            (name, (), 421)
            for name in ("127.0.0.1.evil", "[localhost.evil]", "a@localhost", "[::1]a")
        ),
        ("Site.example.org:443", ("site.Example.org",), 200),
        ("other.example.org", ("site.example.org",), 421),
    ],
)
def test_only_known_host_names_are_served(
    database: Path, given: str, hosts: tuple[str, ...], status: int
) -> None:
    client = create_app(database, hosts=hosts).server.test_client()
    for path in ("/", "/healthz", "/api/v1/systems", "/assets/switchpoint.css"):
        answer = client.get(path, headers={"Host": given})
        assert answer.status_code == status
        assert ("--allow-host" in answer.text) == (status == 421)


def call(client: FlaskClient, page: str) -> dict[str, Any]:
    """Return the request that a page's filters send, with the defaults of open selects."""
    dependencies = client.get("/_dash-dependencies").json
    declared = next(one for one in dependencies if one["output"].startswith(f"..{page}-url"))
    return request_of(declared, state=f"/{page}") | {"changedPropIds": [f"{page}-system.value"]}


def request_of(declared: dict[str, Any], value: Any = "", state: Any = "") -> dict[str, Any]:
    """Return the request of a callback, with `value` in every input."""
    names = [name.rpartition(".") for name in declared["output"].strip(".").split("...")]
    outputs = [{"id": element, "property": value} for element, _, value in names]
    last = declared["inputs"][-1]
    return {
        "output": declared["output"],
        "outputs": outputs if declared["output"].startswith("..") else outputs[0],
        "inputs": [item | {"value": value} for item in declared["inputs"]],
        "state": [item | {"value": state} for item in declared["state"]],
        "changedPropIds": [f"{last['id']}.{last['property']}"],
    }


def test_no_declared_call_fails_whatever_its_values(app: Dash, client: FlaskClient) -> None:
    """Those that only browsers compute are declared among them."""
    declared = client.get("/_dash-dependencies").json
    assert {one["output"] for one in declared} == app.callback_map.keys()
    for value in (None, "", "/nope", "x" * 1000):
        for one in declared:
            request = request_of(one, value, value)
            status = client.post("/_dash-update-component", json=request).status_code
            assert status < 500, (one["output"], value)


@pytest.mark.parametrize("page", FILTERED)
def test_a_change_of_filters_answers_with_its_link(client: FlaskClient, page: str) -> None:
    answer = client.post("/_dash-update-component", json=call(client, page))
    assert answer.status_code == 200
    link = answer.json["response"][f"{page}-url"]["search"]
    assert client.get(f"/{page}{link}").status_code == 200


def test_a_filter_that_no_longer_applies_gives_way(client: FlaskClient) -> None:
    request = call(client, "explore")
    for item in request["inputs"]:
        if item["id"] == "explore-pattern":
            item["value"] = "random:degree=7,seed=1"
    response = client.post("/_dash-update-component", json=request).json["response"]
    assert response["explore-pattern"]["value"] == "hub:hubs=4,seed=1"


def test_whatever_a_header_may_say_every_page_answers(tmp_path: Path) -> None:
    pattern = "matrix:my matrix (1) & more, é.mtx,part=strided"
    spec = Campaign(system="s" * 240, name="a 'b' & \"c\"", patterns=((pattern, 6, 5.5),))
    write(tmp_path, replace(spec, sizes=(2**60,), procs=(2**12,), samples=6))
    path = tmp_path / "switchpoint.db"
    report = ingest(path, [tmp_path])
    assert (report.launches, report.problems) == (6, [])
    client = client_of(path)
    with Store.open(path, readonly=True) as store:
        for page in pages.PAGES:
            page.layout(store, "")
    for name in FILTERED:
        answer = client.post("/_dash-update-component", json=call(client, name))
        link = answer.json["response"][f"{name}-url"]["search"]
        assert client.get(f"/{name}{link}").status_code == 200


HOSTILE = (None, 3, True, [], {}, [{}], "x", "\x00", "<script>", "a" * 10000, {"$ne": 1}, -1.5)


def test_forged_calls_never_break_the_server(client: FlaskClient) -> None:
    dependencies = client.get("/_dash-dependencies").json
    for declared in dependencies:
        if declared["clientside_function"]:
            continue
        good = request_of(declared)
        for key in good:
            for value in HOSTILE:
                expect_no_error(client, good | {key: value})
        for group in ("inputs", "state"):
            for index in range(len(good[group])):
                for name in ("id", "property", "value"):
                    for value in HOSTILE:
                        forged = copy.deepcopy(good)
                        forged[group][index][name] = value
                        expect_no_error(client, forged)


@pytest.mark.parametrize(
    "body", ["", "null", "[]", "{", json.dumps({"output": "x"}), '{"output": ' + "[" * 3000]
)
def test_what_is_no_call_is_400(client: FlaskClient, body: str) -> None:
    answer = client.post("/_dash-update-component", data=body, content_type="application/json")
    assert answer.status_code == 400


def test_no_value_of_an_input_breaks_a_callback_whatever_changed(client: FlaskClient) -> None:
    """The location is null before a page is known, and so are selects that are not there yet."""
    for declared in client.get("/_dash-dependencies").json:
        if declared["clientside_function"]:
            continue
        for changed in ([], *([item] for item in declared["inputs"])):
            names = [f"{item['id']}.{item['property']}" for item in changed]
            for value in HOSTILE:
                forged = request_of(declared, value, value) | {"changedPropIds": names}
                expect_no_error(client, forged)
                for item in forged["state"]:
                    before, item["value"] = item["value"], "/history"
                    expect_no_error(client, forged)
                    item["value"] = before


@pytest.mark.parametrize("page", FILTERED)
@pytest.mark.parametrize("search", [None, "", "?s=nope", "?x"])
def test_a_location_without_a_path_is_answered(
    client: FlaskClient, page: str, search: str | None
) -> None:
    request = call(client, page) | {"changedPropIds": [f"{page}-url.search"]}
    for item in request["inputs"]:
        item["value"] = search
    for item in request["state"]:
        item["value"] = None
    assert client.post("/_dash-update-component", json=request).status_code == 204


def expect_no_error(client: FlaskClient, request: dict[str, Any]) -> None:
    answer = client.post("/_dash-update-component", json=request)
    assert answer.status_code in (200, 204, 400, 404), request


def test_a_message_names_commands_as_such(tmp_path: Path) -> None:
    text = client_of(tmp_path / "switchpoint.db").get("/explore").text
    assert "make it with <code>switchpoint run</code>, or <code>switchpoint ingest</code>" in text


def test_a_store_that_vanishes_is_reported_in_the_page(tmp_path: Path, database: Path) -> None:
    path = tmp_path / "switchpoint.db"
    path.write_bytes(database.read_bytes())
    client = client_of(path)
    request = call(client, "explore")
    path.unlink()
    answer = client.post("/_dash-update-component", json=request)
    assert answer.status_code == 200
    assert "no store there" in answer.text
    assert "no store there" in arrival(client, "/map", "?o=bcast")


def arrival(client: FlaskClient, path: str, search: str = "") -> str:
    """Return the content that a link within the pages leads to, with the address to reload it."""
    dependencies = client.get("/_dash-dependencies").json
    declared = next(one for one in dependencies if one["output"] == "content.children")
    answer = client.post("/_dash-update-component", json=request_of(declared, path, search))
    content = json.dumps(answer.json["response"]["content"]["children"])
    assert f'"{path[1:]}{search}"' in content
    return content


@pytest.mark.parametrize("path", FILTERED)
def test_a_choice_of_another_page_is_kept_as_far_as_it_holds(
    client: FlaskClient, path: str
) -> None:
    case = "o=bcast&p=nope&r=8%402x4-window&k=1"
    assert client.get(f"/{path}?{case}").status_code == 200
    assert client.get(f"/{path}?o=bcast&p=nope").status_code in (400, 404)


def test_a_link_says_that_the_store_has_changed_since(tmp_path: Path) -> None:
    database = tmp_path / "switchpoint.db"
    links = []
    for launches in (2, 3):
        write(tmp_path, Campaign(launches=launches, sizes=(8,), samples=6))
        ingest(database, [tmp_path])
        client = client_of(database)
        answer = client.post("/_dash-update-component", json=call(client, "explore"))
        links.append(answer.json["response"]["explore-url"]["search"])
        assert client.get(f"/explore{links[-1]}").status_code == 200
    with Store.open(database, readonly=True) as store:
        before, now = (said(pages.explore.PAGE.layout(store, link)) for link in links)
    assert "had 2 launches of what is shown, and has 3 now" in before
    assert "has changed since" not in now
