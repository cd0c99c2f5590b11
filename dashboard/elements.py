"""Elements of HTML as plain dicts, in the form that Dash sends.

A component of Dash takes ten times as long to be made and sent, and tables have thousands.
"""

from collections.abc import Iterable
from typing import Any

Element = dict[str, Any]


def element(kind: str, children: Any = None, **props: Any) -> Element:
    """An element by its name in `dash.html`; children: text, an element or component, or a list."""
    return {
        "type": kind,
        "namespace": "dash_html_components",
        "props": {"children": children, **props},
    }


def anchor(text: str, to: str) -> Element:
    """A link to another page."""
    return element("A", text, href=to)


def row_head(content: Any, **props: Any) -> Element:
    """The cell that a row begins with, and is called by."""
    return element("Th", content, scope="row", **props)


def data_cell(content: Any = None, **props: Any) -> Element:
    """A cell of a table."""
    return element("Td", content, **props)


def table_row(cells: Iterable[Element], **props: Any) -> Element:
    """A row of a table."""
    return element("Tr", list(cells), **props)
