"""The overview and rules of all systems as a page for browsers without JavaScript."""

from http import HTTPStatus

from flask import Flask, Response

from dashboard import web
from dashboard.choice import system_options, systems_of
from dashboard.markup import as_html
from dashboard.pages import overview, table
from dashboard.web import OpenStore
from tuner.store.store import Store

PATH = "/plain"
_TEXT = (
    "Without JavaScript, the pages cannot be drawn: here are the overview and the rules of each "
    "system. The same figures are in `switchpoint show`."
)


def add_plain(server: Flask, open_store: OpenStore) -> None:
    """Add the page, to which the others lead where scripts are off."""

    @server.get(PATH)
    def plain() -> Response:
        with open_store() as store:
            if store.systems().empty:
                return web.empty_page()
            return web.plain_page(HTTPStatus.OK, "Switchpoint", _TEXT, _shown(store))


def _shown(store: Store) -> str:
    shown = [as_html(overview.PAGE.layout(store, ""))]
    for system, label in system_options(systems_of(store)):
        query = table.TableQuery(system, table.ALL)
        rules = table.PAGE.draw(store, table.PAGE.choose(store, query, strict=False))["rules"]
        shown += [as_html({"type": "H2", "props": {"children": label}}), as_html(rules)]
    return "\n".join(shown)
