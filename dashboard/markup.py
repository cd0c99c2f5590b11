"""Components of Dash as HTML: for files, and for what a browser takes in one piece."""

import json
from collections.abc import Callable
from functools import cached_property
from typing import Any

from dash.development import base_component
from markupsafe import Markup, escape

from dashboard.elements import Element, element

Props = dict[str, Any]
_ATTRIBUTES = {"className": "class", "tabIndex": "tabindex", "colSpan": "colspan"}
_KEPT = {"className", "style", "scope", "role", "title", "tabIndex", "colSpan"}
_LEFT_OUT = {"Location", "Store", "Button", "Figcaption"}  # they need a server, or a script
_ONLINE = {"links", "interactive"}  # classes of elements that need other pages or a server
_VOID = {"br", "hr", "img"}
_TAGS = {"Alert": "div"}  # of components that are no elements


def as_html(node: Any, *, linked: bool = False) -> Markup:
    """Return a component of Dash, or an element, as HTML.

    linked: with its links; otherwise without all that needs other pages or a server.
    """
    if node is None:
        return Markup()
    if isinstance(node, list | tuple):
        return Markup().join(as_html(each, linked=linked) for each in node)
    if isinstance(node, Static):
        return _element("section", {"children": node.children, **node.props}, linked=linked)
    if isinstance(node, base_component.Component):
        node = node.to_plotly_json()
    if not isinstance(node, dict):
        return escape(node)
    kind, props = node["type"], node["props"]
    if kind in _LEFT_OUT or props.get("hidden"):
        return Markup()
    special = _SPECIAL.get(kind)
    if special is not None:
        return special(props)
    if not (linked or _ONLINE.isdisjoint((props.get("className") or "").split())):
        return Markup()
    return _element(_TAGS.get(kind, kind.lower()), props, linked=linked)


class Static:
    """Content that a browser gets as one text, which switchpoint.js puts into a `section`.

    Dash takes milliseconds to draw an element, and maps and tables have thousands. It holds neither
    figures nor anything that a callback changes. props: those of the section.
    """

    def __init__(self, children: Any, **props: Any) -> None:
        self.children = children
        self.props = props

    def to_plotly_json(self) -> Element:
        """Return what Dash sends."""
        return self._sent

    @cached_property
    def _sent(self) -> Element:
        text = as_html(self.children, linked=True)
        return element("Section", **self.props, **{"data-html": text})


Component = base_component.Component | Static
"""What pages consist of."""


def _element(tag: str, props: Props, *, linked: bool) -> Markup:
    content = as_html(props.get("children"), linked=linked)
    if tag == "a" and not linked:
        tag = "span"  # its target is not in the file
    attributes = Markup().join(
        Markup(' {}="{}"').format(_ATTRIBUTES.get(name, name), _value(value))
        for name, value in props.items()
        if (name in _KEPT or name.startswith("aria-") or (linked and name == "href"))
        and value is not None
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


_SPECIAL: dict[str, Callable[[Props], Markup]] = {"Graph": _graph, "Select": _select}
