"""The parts of a page whose contents change, each with the component that shows it."""

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from dash import html

from dashboard.markup import Component
from dashboard.widgets import graph


class PagePart(Protocol):
    """A part that a page's `draw` computes again for each choice."""

    @property
    def shown_by(self) -> str:
        """Return the property of the component that takes the drawn value."""

    def component(self, element_id: str, drawn: Any, data: str) -> Component:
        """Return the component. data: the link to the numbers of a figure; empty for none."""


@dataclass(frozen=True)
class Block:
    """A group of components. css_class: their layout."""

    css_class: str = ""
    shown_by: ClassVar[str] = "children"

    def component(self, element_id: str, drawn: Any, data: str) -> Component:
        """Return the component: see `PagePart`."""
        return html.Div(drawn, id=element_id, className=self.css_class)


@dataclass(frozen=True)
class Plot:
    """A figure. description: the text for screen readers."""

    description: str
    shown_by: ClassVar[str] = "figure"

    def component(self, element_id: str, drawn: Any, data: str) -> Component:
        """Return the component: see `PagePart`."""
        return graph(element_id, drawn, self.description, data)


@dataclass(frozen=True)
class Link:
    """A link whose address is drawn."""

    text: str
    shown_by: ClassVar[str] = "href"

    def component(self, element_id: str, drawn: Any, data: str) -> Component:
        """Return the component: see `PagePart`."""
        return html.A(self.text, id=element_id, href=drawn)
