"""The pages as one self-contained static file, for a wiki or for printing."""

import json
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any

from dash.development.base_component import Component
from markupsafe import Markup, escape

from dashboard.choice import newest_operations, system_options, systems_of
from dashboard.figures.axes import CONFIG
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
Props = dict[str, Any]
_ATTRIBUTES = {"className": "class", "tabIndex": "tabindex", "colSpan": "colspan"}
_KEPT = {"className", "style", "scope", "role", "title", "tabIndex", "colSpan"}
_LEFT_OUT = {"Location", "Store", "Button", "Figcaption"}  # they need a server, or a script
_ONLINE = {"links", "interactive"}  # classes of elements that need other pages or a server
_VOID = {"br", "hr", "img"}


def html_report(store: Store) -> str:
    """Return every system with its table and overlap, and the pages of each of its operations.

    Raises StoreError.
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


def as_html(node: Any) -> Markup:
    """Return a component of Dash, or an element, as HTML."""
    if node is None:
        return Markup()
    if isinstance(node, list | tuple):
        return Markup().join(map(as_html, node))
    if isinstance(node, Component):
        node = node.to_plotly_json()
    if not isinstance(node, dict):
        return escape(node)
    kind, props = node["type"], node["props"]
    if kind in _LEFT_OUT or props.get("hidden"):
        return Markup()
    special = _SPECIAL.get(kind)
    if special is not None:
        return special(props)
    if not _ONLINE.isdisjoint((props.get("className") or "").split()):
        return Markup()
    return _element(kind.lower(), props)


def _element(tag: str, props: Props) -> Markup:
    content = as_html(props.get("children"))
    if tag == "a":
        tag = "span"  # its target is not in the report
    attributes = Markup().join(
        Markup(' {}="{}"').format(_ATTRIBUTES.get(name, name), _value(value))
        for name, value in props.items()
        if (name in _KEPT or name.startswith("aria-")) and value is not None
    )
    if tag in _VOID:
        return Markup("<{}{}>").format(tag, attributes)
    return Markup("<{0}{1}>{2}</{0}>").format(tag, attributes, content)


def _value(value: Any) -> str:
    if isinstance(value, dict):
        return ";".join(
            f"{name}:{size}px" if isinstance(size, int) else f"{name}:{size}"
            for name, size in value.items()
        )
    return str(value)


def _graph(props: Props) -> Markup:
    figure = Markup(json.dumps(props["figure"]).replace("<", "\\u003c"))  # noqa: S704  no tag in it
    return Markup(
        '<div style="height:{}px"></div><script type="application/json" class="plotted">{}</script>'
    ).format(props["figure"]["layout"]["height"], figure)


def _select(props: Props) -> Markup:
    """Return the chosen option of a select."""
    chosen = [each["label"] for each in props["options"] if each["value"] == props["value"]]
    return Markup("<strong>{}</strong>").format(*chosen)


_SPECIAL: dict[str, Callable[[Props], Markup]] = {
    "Graph": _graph,
    "Select": _select,
    "Alert": lambda props: _element("div", props),
}


def write_report(store: Store, path: Path) -> None:
    """Write the report to a file atomically. Raises OSError."""
    atomic.write(path, html_report(store))
