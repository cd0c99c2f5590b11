"""The interface of every page, and pages whose filters and URL hold their whole state."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Generic, Protocol, TypeVar

import pandas as pd
from dash import (
    ALL,
    ClientsideFunction,
    Dash,
    Input,
    Output,
    State,
    ctx,
    dcc,
    html,
    no_update,
    set_props,
)
from dash.exceptions import PreventUpdate
from flask import Response, request

from dashboard import ids, stamp
from dashboard.markup import Component
from dashboard.measuring import with_own_commands
from dashboard.pages.parts import PagePart, Plot
from dashboard.query import PageQuery, Query
from dashboard.web import OpenStore
from dashboard.widgets import Option, height_of, href, notice, options, prose, select
from tuner.store.store import Store

_MOST_OF_VALUE = 48
_FORMULA = re.compile(r"^([=+\-@\t\r\n])")  # the beginning of texts that spreadsheets evaluate


class Page(Protocol):
    """A page of the dashboard."""

    @property
    def path(self) -> str:
        """Return its path."""

    @property
    def title(self) -> str:
        """Return its name in the header."""

    def check(self, store: Store, search: str) -> None:
        """Raise `MalformedError` or `UnknownError` for a link that has no view."""

    def layout(self, store: Store, search: str) -> Component:
        """Return the whole page for a link."""

    def reported(self, store: Store, system: str) -> Sequence[Query]:
        """Return the queries whose views a report of a system shows."""

    def register(self, app: Dash, open_store: OpenStore) -> None:
        """Add the callbacks."""


def _file_name(name: str, query: Query) -> str:
    """Return the name of a file that holds what a query chose, in characters that all systems take.

    Names of systems and campaigns are long, and those of patterns longer.
    """
    chosen = [name, *(value[:_MOST_OF_VALUE] for value in vars(query).values() if value)]
    return re.sub(r"[^A-Za-z0-9.@=,_-]+", "_", "-".join(chosen))


def keep_case(app: Dash, location: str, baseline: Input | State) -> None:
    """Let the links to the pages keep the choice of a location, which sees its own changes only."""
    app.clientside_callback(
        ClientsideFunction("switchpoint", "keepCase"),
        Output({"nav": ALL}, "href", allow_duplicate=True),
        Input(location, "search"),
        baseline,
        State(ids.PAGES, "data"),
        prevent_initial_call="initial_duplicate",
    )


def clear_error() -> None:
    """Remove the error of an earlier call from above the page, once one succeeded."""
    set_props(ids.ALERT, {"children": None})


class PageChoice(Protocol):
    """A complete query, and the options of each filter: field of the query → (value, label)."""

    @property
    def query(self) -> PageQuery:
        """Return the query, with a value for every field."""

    @property
    def options(self) -> Mapping[str, Sequence[Option]]:
        """Return the options."""


ChoiceT = TypeVar("ChoiceT", bound=PageChoice)


@dataclass(frozen=True, eq=False)
class FilteredPage(Generic[ChoiceT]):
    """A page with a select for every field of its query that has a label.

    parts: by name (`ids.of`), the results of `draw` for a choice.
    choose: completes a query from the store; strict as for `query.choose`.
    body: the contents below title and filters, made of the components of all parts, by name, and of
      the filters in `moved`, which do not stand above.
    data: name → numbers for a choice; `PATH/NAME.csv` serves them, and the figure of that name
      links to them.
    missing: what to run where there is nothing to show; "" where there is. The body is then hidden.
    reported: the queries whose views a report of a system shows.
    systems: those that the view of a query shows; by default those that it names.
    """

    path: str
    title: str
    query: type[PageQuery]
    parts: Mapping[str, PagePart]
    choose: Callable[..., ChoiceT]
    draw: Callable[[Store, ChoiceT], dict[str, Any]]
    body: Callable[[Mapping[str, Component]], Sequence[Component]]
    data: Mapping[str, Callable[[Store, ChoiceT], pd.DataFrame]] = field(default_factory=dict)
    moved: Collection[str] = ()
    missing: Callable[[ChoiceT], str] = lambda choice: ""
    reported: Callable[[Store, str], Sequence[Query]] = lambda store, system: ()
    systems: Callable[[Store, Any], Iterable[str]] = lambda store, query: stamp.named_by(query)

    @property
    def filters(self) -> dict[str, str]:
        """Return the label of each select by its field of the query."""
        labels = {item.name: item.metadata["label"] for item in fields(self.query)}
        return {name: label for name, label in labels.items() if label}

    def check(self, store: Store, search: str) -> None:
        """Check a link: see `Page`."""
        self._linked(store, search)

    def _linked(self, store: Store, search: str) -> ChoiceT:
        """Return the choice of a link. Raise UnknownError for one that the store does not hold."""
        link, _ = stamp.split(search)
        carried = self.query.carried(link)
        query = carried or self.query.parse(link)
        return self.choose(store, query, strict=carried is None)

    def layout(self, store: Store, search: str) -> Component:
        """Return the whole page: see `Page`."""
        choice = self._linked(store, search)
        drawn = self.drawn(store, choice, search)
        selects = {
            name: select(
                ids.of(self.path, name), label, choice.options[name], getattr(choice.query, name)
            )
            for name, label in self.filters.items()
        }
        parts = {
            name: part.component(ids.of(self.path, name), drawn[name], drawn.get(f"{name}_csv", ""))
            for name, part in self.parts.items()
        }
        above = [element for name, element in selects.items() if name not in self.moved]
        link = html.A("Link to this view", id=ids.of(self.path, "link"), href=drawn["link"])
        body = self.body(parts | {name: selects[name] for name in self.moved})
        return html.Div(
            [
                dcc.Location(id=ids.of(self.path, "url"), refresh=False),
                dcc.Store(id=ids.of(self.path, "shown"), data=search),
                html.H1(self.title),
                html.Div(above, className="filters"),
                html.Div(drawn["since"], id=ids.of(self.path, "since")),
                html.Div(drawn["missing"], id=ids.of(self.path, "missing")),
                html.Div(
                    [*body, html.P(link, className="links")],
                    id=ids.of(self.path, "body"),
                    hidden=drawn["hidden"],
                ),
            ]
        )

    def drawn(self, store: Store, choice: ChoiceT, link: str = "") -> dict[str, Any]:
        """Return the changing properties of the page, by the names of `_outputs`.

        link: the one that was opened; the page says so if the store has changed since it was made.
        """
        search = choice.query.search()
        drawn = dict(self.draw(store, choice))
        missing = with_own_commands(self.missing(choice), store, choice.query.system)
        drawn["missing"] = (
            notice("Nothing to show yet", html.P(prose(missing))) if missing else None
        )
        drawn["hidden"] = bool(missing)
        systems = self.systems(store, choice.query)
        changed = stamp.difference(store, systems, stamp.split(link)[1])
        title = "The store has changed since this link was made"
        drawn["since"] = notice(title, html.P(changed)) if changed else None
        drawn["link"] = href(self.path, self._stamped(store, choice))
        for name in self._plots():
            drawn[f"{name}_style"] = height_of(drawn[name])
            if name in self.data:
                drawn[f"{name}_csv"] = href(f"{self.path}/{name}.csv", search)
        return drawn

    def _stamped(self, store: Store, choice: ChoiceT) -> str:
        return stamp.stamped(store, choice.query, self.systems(store, choice.query))

    def _plots(self) -> list[str]:
        return [name for name, part in self.parts.items() if isinstance(part, Plot)]

    def _outputs(self) -> dict[str, Output]:
        """Return the properties that `drawn` computes: parts, and figures' heights and links."""
        found = {
            name: Output(ids.of(self.path, name), part.shown_by)
            for name, part in self.parts.items()
        }
        found["missing"] = Output(ids.of(self.path, "missing"), "children")
        found["hidden"] = Output(ids.of(self.path, "body"), "hidden")
        found["since"] = Output(ids.of(self.path, "since"), "children")
        found["link"] = Output(ids.of(self.path, "link"), "href")
        for name in self._plots():
            found[f"{name}_style"] = Output(ids.of(self.path, name), "style")
            if name in self.data:
                found[f"{name}_csv"] = Output(ids.of(self.path, f"{name}_csv"), "href")
        return found

    def register(self, app: Dash, open_store: OpenStore) -> None:
        """Add one callback for all filters and the Back button."""
        self._answer(app, open_store)
        for name in self.data:
            self._add_data(app, open_store, name)
        keep_case(app, ids.of(self.path, "url"), State(ids.BASELINE, "data"))

    def _add_data(self, app: Dash, open_store: OpenStore, name: str) -> None:
        def answer() -> Response:
            query = self.query.parse(request.query_string.decode("ascii", "replace"))
            with open_store() as store:
                choice = self.choose(store, query, strict=True)
                frame = self.data[name](store, choice)
            file = _file_name(f"{self.title.lower()}-{name}", choice.query)
            headers = {"Content-Disposition": f'attachment; filename="{file}.csv"'}
            text = frame.replace(_FORMULA, r"'\1", regex=True).to_csv(index=False)
            return Response(text, mimetype="text/csv", headers=headers)

        path = f"{self.path}/{name}.csv"
        app.server.add_url_rule(path, path, answer, methods=["GET"])

    def _answer(self, app: Dash, open_store: OpenStore) -> None:
        url, shown = ids.of(self.path, "url"), ids.of(self.path, "shown")
        elements = {name: ids.of(self.path, name) for name in self.filters}

        @app.callback(
            output={
                "search": Output(url, "search"),
                "shown": Output(shown, "data"),
                "values": {name: Output(element, "value") for name, element in elements.items()},
                "options": {name: Output(element, "options") for name, element in elements.items()},
                "parts": self._outputs(),
            },
            inputs={
                "search": Input(url, "search"),
                "values": {name: Input(element, "value") for name, element in elements.items()},
                "path": State(url, "pathname"),
                "shown": State(shown, "data"),
            },
            prevent_initial_call=True,
        )
        def update(
            search: str | None, values: dict[str, str], path: str | None, shown: str | None
        ) -> dict[str, Any]:
            search = search or ""
            from_link = ctx.triggered_id == url
            # The location also reports the query already shown, and the path of the next page.
            if from_link and (search == shown or ids.page_path(path or "") != self.path):
                raise PreventUpdate
            with open_store() as store:
                if from_link:
                    choice = self._linked(store, search)
                else:
                    choice = self.choose(store, self.query(**values), strict=False)
                parts = self.drawn(store, choice, search if from_link else "")
                link = search if from_link else self._stamped(store, choice)
            clear_error()
            return {
                "search": no_update if from_link else link,
                "shown": link,
                "values": {name: getattr(choice.query, name) for name in self.filters},
                "options": {name: options(choice.options[name]) for name in self.filters},
                "parts": parts,
            }
