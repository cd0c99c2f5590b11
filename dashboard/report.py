"""The pages as one self-contained static file, for a wiki or for printing."""

import json
from importlib import resources
from pathlib import Path

from markupsafe import Markup

from dashboard.choice import newest_operations, system_options, systems_of
from dashboard.figures.axes import CONFIG
from dashboard.markup import as_html
from dashboard.pages import PAGES, overview
from dashboard.pages.page import Page
from dashboard.query import Query
from tuner import atomic
from tuner.store.store import Store

_DOCUMENT = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>Switchpoint report</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>{styles}</style><script>{theme}</script></head>
<body><main>{body}</main>
<script>{plotly}</script>
<script>{draw}</script></body></html>
"""
_DRAW = """
for (const data of document.querySelectorAll("script.plotted")) {
  const { data: traces, layout } = JSON.parse(data.textContent);
  Plotly.newPlot(data.previousElementSibling, traces, layout, CONFIG);
}
"""


def html_report(store: Store) -> str:
    """Return every system with its table and overlap, and the pages of each of its operations.

    Raise StoreError.
    """
    body = [as_html(overview.PAGE.layout(store, ""))]
    labels = dict(system_options(systems_of(store)))
    for system in systems_of(store)["system"]:
        body.append(Markup("<h1>{}</h1>").format(labels[system]))
        body += [
            as_html(page.layout(store, query.search())) for page, query in _views(store, system)
        ]
    draw = f"const CONFIG = {json.dumps(CONFIG)};{_DRAW}"
    assets = resources.files("dashboard").joinpath("assets")
    styles = [assets.joinpath(name) for name in ("bootstrap.min.css", "switchpoint.css")]
    return _DOCUMENT.format(
        styles="\n".join(style.read_text("utf-8") for style in styles),
        theme=assets.joinpath("theme.js").read_text("utf-8"),
        body=Markup("\n").join(body),
        plotly=assets.joinpath("plotly-cartesian.min.js").read_text("utf-8"),
        draw=draw,
    )


def _views(store: Store, system: str) -> list[tuple[Page, Query]]:
    """Return the views of a whole system, then those of each operation."""
    views = [(page, query) for page in PAGES for query in page.reported(store, system)]
    _, operations = newest_operations(store, system)
    places = {operation: place for place, operation in enumerate(operations)}
    return sorted(views, key=lambda view: places.get(getattr(view[1], "operation", ""), -1))


def write_report(store: Store, path: Path) -> int:
    """Write the report to a file atomically, and return its bytes. Raise OSError."""
    content = html_report(store).encode()
    atomic.write(path, content)
    return len(content)
