"""Components that several pages share."""

from collections.abc import Iterable, Sequence
from typing import Any

import dash_bootstrap_components as dbc
from dash import dcc, html

from dashboard.elements import Element, element
from dashboard.figures.axes import CONFIG, Figure
from dashboard.figures.methods import method_style
from dashboard.markup import Component, Static

Option = tuple[str, str]  # value, label

MOST_TEXT_BYTES = 4 << 20
"""Of a table or profile that a user pastes, drops or chooses."""


def href(path: str, search: str = "") -> str:
    """Return a link from one page to another: relative, so that it holds under any prefix."""
    return f"{path.removeprefix('/') or './'}{search}"


def options(pairs: Sequence[Option]) -> list[dict[str, str]]:
    """Return options in the form that a select takes."""
    return [{"value": value, "label": label} for value, label in pairs]


def select(element_id: str, label: str, pairs: Sequence[Option], value: str) -> Component:
    """Return a labelled native select: `dcc.Dropdown` is unusable by keyboard and screen reader."""
    return html.Div(
        [
            html.Label(label, htmlFor=element_id, className="form-label"),
            dbc.Select(
                id=element_id,
                options=options(pairs),
                value=value,
                size="sm",
                placeholder="none measured",
            ),
        ],
        className="filter",
    )


def height_of(figure: Figure) -> dict[str, Any]:
    """Return the style that gives a figure its height, even before the script has loaded."""
    return {"height": figure["layout"]["height"]}


def graph(element_id: str, figure: Figure, description: str, data: str = "") -> Component:
    """Return a figure with a description for screen readers, and buttons that save it.

    data: the link to the numbers behind it, as CSV.
    """
    saving = [
        html.Button(form.upper(), type="button", title=f"Save as {form}", **{"data-save": form})
        for form in ("svg", "png")
    ]
    if data:
        saving.append(html.A("CSV", id=f"{element_id}_csv", href=data, title="Save the numbers"))
    return html.Figure(
        [
            dcc.Graph(
                id=element_id,
                figure=figure,
                config=CONFIG,
                responsive=True,
                style=height_of(figure),
            ),
            html.Figcaption(saving, className="saving"),
        ],
        role="group",
        **{"aria-label": description},
    )


def method_name(spec: str) -> Element:
    """Return a method with its marker and colour, as in the figures."""
    style = method_style(spec)
    marked = {"--method": style.color, "--glyph": f'"{style.glyph}\N{NO-BREAK SPACE}"'}
    return element("Span", spec, className="method", style=marked)


def key(methods: Iterable[str]) -> Component:
    """Return a key to methods that have no room for their names."""
    return html.P([method_name(method) for method in dict.fromkeys(methods)], className="key")


def prose(text: str) -> list[Component | str]:
    """Return a text as components, with the commands between backticks as code."""
    return [html.Code(piece) if code % 2 else piece for code, piece in enumerate(text.split("`"))]


def badge(text: str | list[Component | str], color: str = "warning") -> Component:
    """Return a mark for a fact that a reader must not overlook."""
    return html.Span(text, className=f"badge text-bg-{color}")


def card(title: str, *children: Any) -> Component:
    """Return a titled panel."""
    return html.Section(
        [html.H2(title, className="card-title"), *children], className="card card-body"
    )


def notice(title: str, *children: Any, color: str = "info") -> Component:
    """Return a message that replaces content."""
    return dbc.Alert([html.H2(title, className="alert-heading h5"), *children], color=color)


def commands(element_id: str, lines: Sequence[str]) -> Component:
    """Return lines for a shell, and a button that copies them."""
    return html.Div(
        [
            html.Pre(html.Code("\n".join(lines)), id=element_id, className="commands", tabIndex=0),
            html.Button("Copy", type="button", className="btn btn-sm", **{"data-copy": element_id}),
        ],
        className="copied",
    )


def pasted_text(element_id: str) -> list[Component]:
    """Return a field for a text that is pasted, dropped as a file, or read from a chosen file."""
    return [
        dbc.Textarea(id=element_id, rows=4, debounce=True, spellcheck=False),
        html.Button(
            "Or choose a file",
            type="button",
            className="btn btn-sm align-self-start mt-2 mb-2",
            **{"data-file": element_id, "data-most": str(MOST_TEXT_BYTES)},
        ),
    ]


def data_table(caption: str, header: Sequence[str], rows: Sequence[Element]) -> Static:
    """Return a table that scrolls on its own if the page is too narrow for it."""
    return Static(
        html.Table(
            [
                html.Caption(caption, className="visually-hidden"),
                html.Thead(html.Tr([html.Th(text, scope="col") for text in header])),
                html.Tbody(list(rows)),
            ],
            className="table table-sm",
        ),
        className="table-responsive",
        tabIndex=0,
        **{"aria-label": caption},
    )
