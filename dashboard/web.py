"""Responses of the server besides Dash's: real 404s and 400s, headers, health, plain pages."""

import base64
import binascii
import hmac
import json
import re
import socket
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from http import HTTPStatus
from ipaddress import ip_address
from typing import Any

from dash import Dash
from dash.exceptions import DependencyException
from flask import Flask, Response, abort, request
from markupsafe import escape
from werkzeug.exceptions import HTTPException, MethodNotAllowed, NotFound, ServiceUnavailable

from dashboard.choice import systems_of
from dashboard.query import MalformedError, UnknownError, UnmeasuredError
from tuner.store.database import StoreError
from tuner.store.store import Store

# Opens the store for one request, so that a replaced file is seen at the next one.
OpenStore = Callable[[], AbstractContextManager[Store]]
# Checks the query of a page's URL; raises MalformedError or UnknownError.
Check = Callable[[Store, str], object]

_AT_ONCE = 2  # answers; one that takes long leaves the other turn
VIEWS = 48
"""Requests that read the store or wait for it: others need threads of the server, too."""

_RETRY_S = 5

HEALTH_PATH = "/healthz"
PLAIN_PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{title} · Switchpoint</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="icon" href="{root}/assets/favicon.svg">
<link rel="stylesheet" href="{root}/assets/bootstrap.min.css">
<link rel="stylesheet" href="{root}/assets/switchpoint.css">
<script src="{root}/assets/theme.js"></script></head>
<body><main class="container py-5"><h1>{title}</h1><p>{text}</p>{more}
<p><a href="{root}/">Overview</a></p></main></body></html>
"""
_HOST = re.compile(r"(\[(?P<address>[^]]*)\]|(?P<name>[^][:]+?)\.?)(:[0-9]*)?")
_COMMAND = re.compile(r"`([^`]*)`")  # commands in messages
TO_MEASURE = """<p>To measure and tune this machine, and show the results here:</p>
<pre class="commands" tabindex="0"><code>switchpoint run
switchpoint serve</code></pre>
<p>To load existing raw files, run <code>switchpoint ingest</code>.</p>"""


def plain_page(status: HTTPStatus, title: str, text: str, more: str = "") -> Response:
    """Return a page that needs neither Dash nor a store; callers of the API get JSON."""
    if request.path.startswith("/api/"):
        return Response(json.dumps({"error": text}) + "\n", status, mimetype="application/json")
    root = escape(request.script_root)  # the prefix behind a proxy
    shown = _COMMAND.sub(r"<code>\1</code>", str(escape(text)))
    body = PLAIN_PAGE.format(title=escape(title), text=shown, more=more, root=root)
    return Response(body, status=status, mimetype="text/html")


def empty_page(reason: str = "The store is empty.") -> Response:
    """Return the page of a store without measurements, or without those that a page shows."""
    return plain_page(HTTPStatus.OK, "No measurements yet", reason, TO_MEASURE)


def cached(response: Response) -> Response:
    """Return a response with an ETag, so that it is sent again only after a change."""
    response.headers["Cache-Control"] = "private, no-cache"
    response.add_etag()
    response.make_conditional(request)
    return response


def require_host(server: Flask, names: Iterable[str]) -> None:
    """Serve only requests whose Host is an IP address, a name of this machine, or one of `names`.

    Other names may be of sites that lead their visitors' browsers here.
    """
    served = {"localhost", socket.gethostname().lower(), *(name.lower() for name in names)}

    @server.before_request
    def check_host() -> Response | None:
        given = request.headers.get("Host", "")
        found = _HOST.fullmatch(given)
        name = (found["name"] or found["address"]).lower() if found else ""
        if name in served or _is_address(name):
            return None
        return plain_page(
            HTTPStatus.MISDIRECTED_REQUEST,
            "421: unknown host",
            f"This dashboard is not served as {given[:100]!r}; `--allow-host NAME` adds a name.",
        )


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def require_token(server: Flask, token: str) -> None:
    """Serve only clients that send the token by `Bearer`, or as any user's password by `Basic`.

    `/healthz` stays open, for monitoring.
    """
    expected = token.encode("utf-8", "surrogateescape")  # as the environment has it

    @server.before_request
    def check_token() -> Response | None:
        if request.path == HEALTH_PATH or hmac.compare_digest(_secret(), expected):
            return None
        answer = plain_page(
            HTTPStatus.UNAUTHORIZED, "401: token required", "This dashboard requires its token."
        )
        answer.headers["WWW-Authenticate"] = 'Basic realm="Switchpoint", charset="UTF-8"'
        return answer


def _secret() -> bytes:
    """Return the token of a request as it was sent; werkzeug takes one with `=` for parameters."""
    scheme, _, given = request.headers.get("Authorization", "").partition(" ")
    # WSGI decodes headers as Latin-1, where the last byte of `à` is a space, too.
    secret = given.strip(" \t").encode("latin-1")
    if scheme.lower() == "bearer":
        return secret
    if scheme.lower() == "basic":
        with suppress(binascii.Error):
            return base64.b64decode(secret, validate=True).partition(b":")[2]
    return b""


def in_turn(open_store: OpenStore) -> OpenStore:
    """Return a function that opens the store and lets few go on with it at a time.

    More would slow each other down: SQLite gives the interpreter away at each row, and a thread
    that computes returns it late. Where too many wait, the function raises ServiceUnavailable.
    """
    turns, places = threading.Semaphore(_AT_ONCE), threading.Semaphore(VIEWS)

    @contextmanager
    def opened() -> Iterator[Store]:
        if not places.acquire(blocking=False):
            raise ServiceUnavailable(
                "Too many pages are being made. Try again.", retry_after=_RETRY_S
            )
        try:
            with open_store() as store, turns:  # a locked store keeps only its own user waiting
                yield store
        finally:
            places.release()

    return opened


def add_page_check(server: Flask, checks: Mapping[str, Check], open_store: OpenStore) -> None:
    """Pass a request on to Dash only if its page exists and the store can answer its query.

    By itself Dash answers every path with its page and status 200; here the catch-all route serves
    only the paths of `checks`.
    """

    @server.before_request
    def check_page() -> Response | None:
        if request.url_rule is None or request.url_rule.rule not in ("/", "/<path:path>"):
            return None
        check = checks.get(request.path)
        if check is None:
            abort(HTTPStatus.NOT_FOUND)
        with open_store() as store:
            if systems_of(store).empty:
                return empty_page()
            try:
                check(store, request.query_string.decode("ascii", "replace"))
            except UnmeasuredError:
                return empty_page("The store has no measurements that this page shows.")
        return None


def add_callback_check(server: Flask, app: Dash) -> None:
    """Reject calls that no page of ours sends: Dash would fail on them with a 500.

    All inputs and states of our callbacks are texts, or null before they are known.
    """

    @server.before_request
    def check_call() -> None:
        if request.endpoint != "/_dash-update-component":
            return
        body = None
        with suppress(RecursionError):  # of nested lists, by the thousand
            body = request.get_json(silent=True)
        if not isinstance(body, dict) or not _is_call(body, app.callback_map):
            raise MalformedError("No page of this dashboard sends such a request.")


def _is_call(body: dict[str, Any], callbacks: Mapping[str, dict[str, Any]]) -> bool:
    output = body.get("output")
    # What browsers compute is declared too, without a function.
    if not isinstance(output, str) or "callback" not in callbacks.get(output, {}):
        return False
    declared = callbacks[output]
    inputs = [f"{item['id']}.{item['property']}" for item in declared["inputs"]]
    changed = body.get("changedPropIds")
    return (
        isinstance(changed, list)
        and all(isinstance(name, str) and name in inputs for name in changed)
        and body.get("outputs") == _outputs(output)
        and _are_texts(body.get("inputs"), declared["inputs"])
        and _are_texts(body.get("state", []), declared["state"])
    )


def _outputs(output: str) -> Any:
    """Return the outputs that a callback's name stands for: `..a.b...c.d..`, or `a.b` alone."""
    names = output.removeprefix("..").removesuffix("..").split("...")
    parts = [name.rpartition(".") for name in names]
    outputs = [{"id": element, "property": value} for element, _, value in parts]
    return outputs if output.startswith("..") else outputs[0]


def _are_texts(given: Any, declared: list[dict[str, str]]) -> bool:
    """Return whether these are the declared properties, in order, each with a text or null."""
    return (
        isinstance(given, list)
        and all(isinstance(item, dict) for item in given)
        and [{"id": i.get("id"), "property": i.get("property")} for i in given] == declared
        and all(isinstance(item.get("value"), str | None) for item in given)
    )


def answer_errors(server: Flask) -> None:
    """Answer every error with a short page without a traceback."""

    @server.errorhandler(MalformedError)
    def malformed(error: MalformedError) -> Response:
        return plain_page(HTTPStatus.BAD_REQUEST, "400: this link is malformed", str(error))

    @server.errorhandler(UnknownError)
    def unknown(error: UnknownError) -> Response:
        return plain_page(HTTPStatus.NOT_FOUND, "404: not in this store", str(error.args[0]))

    @server.errorhandler(StoreError)
    def unreadable(error: StoreError) -> Response:
        return plain_page(
            HTTPStatus.SERVICE_UNAVAILABLE, "No measurements to show", str(error), TO_MEASURE
        )

    @server.errorhandler(DependencyException)
    def no_such_script(error: DependencyException) -> Response:
        return http_error(NotFound())

    @server.errorhandler(HTTPException)
    def http_error(error: HTTPException) -> Response:
        status = HTTPStatus(error.code or HTTPStatus.INTERNAL_SERVER_ERROR)
        answer = plain_page(status, f"{status.value}: {status.phrase}", status.description)
        if isinstance(error, MethodNotAllowed):
            answer.headers["Allow"] = ", ".join(sorted(error.valid_methods or ()))
        if isinstance(error, ServiceUnavailable):
            answer.headers["Retry-After"] = str(error.retry_after)
        return answer


def add_health(server: Flask, open_store: OpenStore, is_open: bool) -> None:
    """Add `/healthz`: 200 `ok`, or 503 if the store cannot be read.

    is_open: the reason, which names files, may be shown to everyone.
    """

    @server.get(HEALTH_PATH)
    def healthz() -> Response:
        status, text = HTTPStatus.OK, "ok"
        try:
            with open_store() as store:
                store.systems()
        except StoreError as error:
            status = HTTPStatus.SERVICE_UNAVAILABLE
            text = str(error) if is_open else "the store cannot be read"
        headers = {"Cache-Control": "no-store"}
        return Response(f"{text}\n", status, mimetype="text/plain", headers=headers)


def add_headers(server: Flask, script_hashes: Sequence[str]) -> None:
    """Add the security headers to every answer.

    script-src holds the hash of the one inline script that Dash writes (it starts the renderer);
    no `unsafe-eval`: the parts of plotly.js used here do not evaluate text. style-src needs
    `unsafe-inline`: plotly.js sets style attributes and adds a style element. data: images are
    the arrows of Bootstrap's selects, blob: images the SVG that plotly.js draws to save a PNG.
    """
    policy = "; ".join(
        (
            "default-src 'none'",
            f"script-src 'self' {' '.join(script_hashes)}",
            "style-src 'self' 'unsafe-inline'",
            "img-src 'self' data: blob:",
            "connect-src 'self'",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
        )
    )

    @server.after_request
    def add(response: Response) -> Response:
        response.headers["Content-Security-Policy"] = policy
        response.headers["X-Content-Type-Options"] = "nosniff"
        response.headers["Referrer-Policy"] = "no-referrer"
        return response
