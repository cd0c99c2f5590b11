"""Elements of HTML as plain dicts, in the form that Dash sends.

A component of Dash takes ten times as long to make, and tables have thousands of cells.
"""

from collections.abc import Iterable
from typing import Any

Element = dict[str, Any]


def element(kind: str, children: Any = None, **props: Any) -> Element:
    """Return an element of `dash.html` by name.

    children: text, an element or component, or a list of these.
    """
    return {
        "type": kind,
        "namespace": "dash_html_components",
        "props": {"children": children, **props},
    }


def anchor(text: str, to: str) -> Element:
    """Return a link to another page."""
    return element("A", text, href=to)


def row_head(content: Any, **props: Any) -> Element:
    """Return the header cell of a row."""
    return element("Th", content, scope="row", **props)


def data_cell(content: Any = None, **props: Any) -> Element:
    """Return a cell of a table."""
    return element("Td", content, **props)


def table_row(cells: Iterable[Element], **props: Any) -> Element:
    """Return a row of a table."""
    return element("Tr", list(cells), **props)
