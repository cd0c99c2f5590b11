"""The server: Dash's pages behind our own rules for paths, queries, headers and errors."""

import gc
import logging
import os
import signal
import socket
import sys
import threading
from collections.abc import Iterable
from contextlib import suppress
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from types import FrameType

import dash_bootstrap_components as dbc
import scipy.special  # noqa: F401  else the first visitor to compare waits for it
from dash import ClientsideFunction, Dash, Input, Output, State, dcc, html, set_props
from dash.exceptions import PreventUpdate
from flask import Flask
from werkzeug.exceptions import ServiceUnavailable

from dashboard import compared, ids, web
from dashboard.api import add_api
from dashboard.choice import explorable
from dashboard.markup import Component
from dashboard.pages import PAGES
from dashboard.pages.page import keep_case
from dashboard.plain import add_plain
from dashboard.query import UnknownError
from dashboard.server import server_on
from dashboard.web import OpenStore
from dashboard.widgets import MOST_TEXT_BYTES, href, notice, prose
from tuner.errors import SwitchpointError
from tuner.selection import tuning
from tuner.store.database import StoreError
from tuner.store.store import Store


class ListenError(SwitchpointError):
    """Error raised when the server cannot listen on its address; the message says why."""


_BUSY_TIMEOUT_S = 2.0  # users would not wait longer for a page
_MOST_REQUEST_BYTES = 3 * MOST_TEXT_BYTES  # as JSON has it, and the state of a page
_GARBAGE = 50_000  # new objects before a search for garbage: a page makes more than the usual 700
_FAILURES = (StoreError, UnknownError, ServiceUnavailable)
"""Errors whose messages users see; others are bugs, or forged requests."""

_INDEX = """<!DOCTYPE html>
<html lang="en">
<head>
{%metas%}
<title>{%title%}</title>
<link rel="icon" href="assets/favicon.svg">
<script src="assets/theme.js"></script>
<script src="assets/plotly-cartesian.min.js" defer></script>
{%css%}
<noscript><meta http-equiv="refresh" content="0; url=plain"></noscript>
</head>
<body>
<noscript>These pages need JavaScript. <a href="plain">Show the tables without it</a>.</noscript>
{%app_entry%}
<footer>{%config%}{%scripts%}{%renderer%}</footer>
</body>
</html>
"""


def create_app(
    database: Path, prefix: str = "", token: str = "", hosts: Iterable[str] = ()
) -> Dash:
    """Return the application over the store at `database`, which need not exist yet.

    prefix: the first part of the path behind a reverse proxy, as `/switchpoint`. token: the secret
    that visitors must know; if it is empty, everyone is let in. hosts: names of the server beside
    those of this machine.
    """
    opener = _opener(database)
    open_store = web.in_turn(opener)
    server = Flask(__name__, static_folder=None)
    server.config["MAX_CONTENT_LENGTH"] = _MOST_REQUEST_BYTES
    web.require_host(server, hosts)
    if token:
        web.require_token(server, token)
    web.add_page_check(server, {page.path: page.check for page in PAGES}, open_store)
    app = Dash(
        __name__,
        server=server,  # type: ignore[arg-type]  # Dash annotates calls without arguments
        requests_pathname_prefix=f"{prefix}/",
        routes_pathname_prefix="/",
        title="Switchpoint",
        update_title="",
        index_string=_INDEX,
        assets_ignore=r"theme\.js|plotly-.*",  # the head loads them
        meta_tags=[{"name": "viewport", "content": "width=device-width, initial-scale=1"}],
        compress=True,
        on_error=_report,
        suppress_callback_exceptions=True,  # only the page that is shown is in the layout
    )
    app.layout = _shell()
    _add_routing(app, open_store)
    for page in PAGES:
        page.register(app, open_store)
    web.add_callback_check(server, app)
    web.answer_errors(server)
    web.add_health(server, opener, is_open=not token)  # which waits for no view
    add_api(server, open_store)
    add_plain(server, open_store)
    web.add_headers(server, app.csp_hashes())
    gc.freeze()  # loaded modules stay: scanning them for garbage takes as long as a page
    gc.set_threshold(_GARBAGE)
    return app


def _opener(database: Path) -> OpenStore:
    return partial(Store.open, database, readonly=True, busy_timeout_s=_BUSY_TIMEOUT_S)


def compare_campaigns(database: Path) -> None:
    """Compare every campaign with those before it, which the first visitors would wait for.

    The results are kept; a campaign that comes later costs only its own comparison.
    """
    with suppress(StoreError), _opener(database)() as store:
        for system in explorable(store)["system"]:
            compared.steps(store, system)
    gc.freeze()  # they stay


def _report(error: Exception) -> None:
    """Show above the page why a callback failed. Raise what is not among `_FAILURES`."""
    if not isinstance(error, _FAILURES):
        raise error
    set_props(ids.ALERT, {"children": _failure(error)})


def _failure(error: Exception, *more: Component) -> Component:
    why = error.description if isinstance(error, ServiceUnavailable) else str(error)
    return notice("This view cannot be shown", html.P(prose(why)), *more, color="warning")


def _shell() -> Component:
    links = [dbc.NavLink(page.title, id=ids.nav(page.path), href=href(page.path)) for page in PAGES]
    return html.Div(
        [
            dcc.Location(id=ids.URL, refresh=False),
            dcc.Store(id=ids.PAGES, data=[[href(page.path), page.title] for page in PAGES]),
            dcc.Store(id=ids.BASELINE, storage_type="local"),
            html.A("Skip to the content", href=f"#{ids.CONTENT}", className="skip"),
            html.Header(
                [
                    html.A("Switchpoint", href=href("/"), className="brand"),
                    html.Nav(links, className="nav", **{"aria-label": "Pages"}),
                ]
            ),
            html.Div(id=ids.TITLE, className="visually-hidden", **{"aria-live": "polite"}),
            html.Div(id=ids.ALERT, role="status"),
            html.Main(html.P("Loading …"), id=ids.CONTENT, tabIndex="-1"),
        ]
    )


def _add_routing(app: Dash, open_store: OpenStore) -> None:
    """Add the callback that shows the page for a path; each page handles its own query."""
    pages = {page.path: page for page in PAGES}

    @app.callback(
        Output(ids.CONTENT, "children"), Input(ids.URL, "pathname"), State(ids.URL, "search")
    )
    def show(path: str | None, search: str | None) -> Component:
        page = pages.get(ids.page_path(path or ""))
        if page is None:
            raise PreventUpdate
        search = search or ""
        try:
            with open_store() as store:
                return page.layout(store, search)
        except _FAILURES as error:  # the last page must not stay under this page's address
            reload = html.A("Reload this page", href=href(page.path, search), **{"data-reload": ""})
            return html.Div([html.H1(page.title), _failure(error, reload)])

    app.clientside_callback(
        ClientsideFunction("switchpoint", "arrived"),
        Output(ids.TITLE, "children"),
        Output(ids.ALERT, "children"),
        *(Output(ids.nav(page.path), "active") for page in PAGES),
        Input(ids.URL, "pathname"),
        State(ids.PAGES, "data"),
    )
    keep_case(app, ids.URL, Input(ids.BASELINE, "data"))


def serve(
    database: Path,
    host: str = "127.0.0.1",
    port: int = 8050,
    prefix: str = "",
    token: str = "",
    hosts: Iterable[str] = (),
) -> None:
    """Serve until interrupted or terminated, then end the process. Options: see `create_app`.

    Raise ListenError, TuningError.
    """
    tuning.required()  # else pages would fail on a malformed number
    app = create_app(database, prefix, token, [host, *hosts])
    server = server_on(_listen(host, port), app.server, prefix)

    # A browser asks for a page's scripts all at once, so queueing is normal.
    logging.getLogger("waitress.queue").setLevel(logging.ERROR)

    def stop(number: int, frame: FrameType | None) -> None:
        sys.exit(0)  # waitress finishes the requests in hand

    signal.signal(signal.SIGTERM, stop)
    address = ip_address(server.effective_host.partition("%")[0])
    shown = f"[{server.effective_host}]" if address.version == 6 else server.effective_host
    reach = "this machine only" if address.is_loopback else "other machines as well"
    if token:
        reach += ", with the token"
    url = f"http://{shown}:{server.effective_port}{prefix}/"
    print(f"Switchpoint dashboard: {url} ({reach}); press Ctrl-C to stop", flush=True)
    threading.Thread(target=compare_campaigns, args=[database], daemon=True).start()
    try:
        server.run()
    finally:
        server.close()
    # At the interpreter's end, threads that still compute in C++ would abort the process.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)


def _listen(host: str, port: int) -> socket.socket:
    """Return a socket at the first address of a host. Raise ListenError."""
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(address, family=family)
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ListenError(
            f"cannot listen on {host}:{port}: {reason}; choose another --port or --host"
        ) from error
