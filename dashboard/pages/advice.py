"""Advice: what an application gains by a table, as `switchpoint advise` found, or by a profile."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Any

from dash import Dash, Input, Output, html

from dashboard import ids
from dashboard.choice import Filters, system_options, systems_of
from dashboard.elements import data_cell, row_head, table_row
from dashboard.markup import Component
from dashboard.pages.page import FilteredPage, clear_error
from dashboard.pages.parts import Block
from dashboard.query import PageQuery, parameter
from dashboard.snapshot import cached_table
from dashboard.web import OpenStore
from dashboard.widgets import (
    MOST_TEXT_BYTES,
    Option,
    card,
    commands,
    data_table,
    notice,
    pasted_text,
    prose,
)
from tuner.advice import document, mix, recorded, saved
from tuner.advice.document import Advice
from tuner.advice.profile import ProfileError
from tuner.domain.records import NAME
from tuner.store.store import Store

PATH = "/advice"
_NONE = "No program was advised on yet: run `switchpoint advise -n 8 -- ./app`, or give a profile."


@dataclass(frozen=True)
class AdviceQuery(PageQuery):
    """Kept advice, and the system whose table is asked about a given profile."""

    advice: str = parameter("a", NAME, "Program")
    system: str = parameter("s", NAME, "Table of")


@dataclass(frozen=True)
class AdviceChoice:
    """A complete query, its selects' options, and the advice; None: there is none."""

    query: AdviceQuery
    options: dict[str, list[Option]]
    found: Advice | None


def _choose(store: Store, query: AdviceQuery, *, strict: bool) -> AdviceChoice:
    """Complete a query: see `FilteredPage`."""
    kept = saved.newest(store.path.parent)
    filters = Filters(query, strict=strict)
    filters.choose("system", system_options(systems_of(store)))
    if not kept and not (strict and query.advice):
        none = AdviceQuery(system=filters.query.system)
        return AdviceChoice(none, filters.options | {"advice": []}, None)
    labels = (
        (name, f"{its.program} on {its.processes} processes, {name}") for name, its in kept.items()
    )
    name = filters.choose("advice", labels)
    return AdviceChoice(filters.query, filters.options, kept[name])


def _draw(store: Store, choice: AdviceChoice) -> dict[str, Any]:
    found = choice.found
    return {"kept": _shown(found, "kept") if found else html.P(prose(_NONE))}


def _shown(its: Advice, part: str) -> list[Component]:
    """Return advice in the words of the command. part: of the page, which names its elements."""
    rows = [
        table_row([row_head(name), *map(data_cell, cells), data_cell(table, className="wrap wide")])
        for name, *cells, table in document.rows(its)
    ]
    shown: list[Component] = [
        html.Ul([html.Li(line) for line in (*document.summary(its), *document.outcome(its))]),
        data_table("Calls with the most time", document.COLUMNS, rows),
    ]
    if wanted := [*document.worth_measuring(its)]:
        shown.append(html.Ul([html.Li(line) for line in wanted]))
    if lines := document.use(its):
        shown += [html.P("To use the table:"), commands(ids.of(PATH, f"{part}-use"), lines)]
    return shown


def _of_profile(store: Store, system: str, content: str) -> list[Component]:
    if len(content) > MOST_TEXT_BYTES:
        return [notice("This is too long", html.P("Use `switchpoint advise`."), color="warning")]
    try:
        its = recorded.parse(BytesIO(content.encode(errors="replace")))
    except ProfileError as error:
        return [notice("This is not a profile", html.P(str(error)), color="warning")]
    of = store.description(system)
    found = mix.mix(its, cached_table(store, system), of["name"], of["environment"])
    return _shown(document.advice(found), "given")


def _body(parts: Mapping[str, Component]) -> Sequence[Component]:
    hint = (
        "Paste or drop a profile that `libswitchpoint_profile.so` wrote, or a report of mpiP, to "
        "see what the table of a system says of its calls."
    )
    return [
        card("What the program gains", parts["kept"]),
        html.Div(
            card(
                "A profile of your own",
                parts["system"],
                html.Label(prose(hint), htmlFor=ids.of(PATH, "pasted"), className="hint"),
                *pasted_text(ids.of(PATH, "pasted")),
                html.Div(id=ids.of(PATH, "given"), role="status"),
            ),
            className="interactive",
        ),
    ]


class _AdvicePage(FilteredPage[AdviceChoice]):
    """A page that also shows what a table says of a pasted profile."""

    def register(self, app: Dash, open_store: OpenStore) -> None:
        super().register(app, open_store)

        @app.callback(
            Output(ids.of(PATH, "given"), "children"),
            Input(ids.of(PATH, "pasted"), "value"),
            Input(ids.of(PATH, "system"), "value"),
            prevent_initial_call=True,
        )
        def read(pasted: str | None, system: str) -> list[Component]:
            if not pasted:
                return []
            with open_store() as store:
                query = _choose(store, AdviceQuery(system=system), strict=True).query
                shown = _of_profile(store, query.system, pasted)
            clear_error()
            return shown


PAGE = _AdvicePage(
    path=PATH,
    title="Advice",
    query=AdviceQuery,
    parts={"kept": Block()},
    choose=_choose,
    draw=_draw,
    body=_body,
    moved=("system",),
)
