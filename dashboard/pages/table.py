"""Table: the rules of a system with their evidence, and the table as applications load it."""

import difflib
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd
from dash import Dash, Input, Output, html
from flask import Response, request

from dashboard import ids, rules, soaked, web
from dashboard.choice import Filters, named, operations_of, system_options, systems_of
from dashboard.elements import Element, anchor, data_cell, row_head, table_row
from dashboard.exported import exported
from dashboard.figures.ribbons import ribbons
from dashboard.markup import Component
from dashboard.pages import explore
from dashboard.pages.page import FilteredPage, clear_error
from dashboard.pages.parts import Block
from dashboard.query import WORD, PageQuery, Query, UnknownError, parameter
from dashboard.snapshot import cached_table
from dashboard.soaked import SoakResults
from dashboard.web import OpenStore
from dashboard.widgets import (
    Option,
    card,
    commands,
    data_table,
    graph,
    href,
    key,
    method_name,
    pasted_text,
    prose,
)
from tuner.domain.records import NAME
from tuner.domain.tables import OPEN, UNSOAKED
from tuner.export.forms import FORMS
from tuner.selection.evidence import certainty
from tuner.selection.next_step import summary
from tuner.store.store import Store
from tuner.units import bytes_text, counted

PATH = "/table"
DOWNLOAD_PATH = f"{PATH}/download"
ALL = "all"  # operations
_MOST_LINES = 4000  # of a pasted table, where the one here is not longer

_HINT = (
    "The first rule that matches and whose method is applicable is used. Grey: the measurements do "
    "not decide, or the faster method still has to pass its soak (`switchpoint soak`). Bytes: mean "
    "message size; for collectives, the block of a rank, or the whole vector (bcast, reduce, "
    "allreduce). Where no rule holds, as beyond twice the largest measured size, the default is "
    "used, or, in exchanges and discoveries, what a fitted model estimates."
)
_HEADER = ("Case", "Bytes", "Method", "Status", "Verdict", "Soak", "Evidence")


@dataclass(frozen=True)
class TableQuery(PageQuery):
    """The system, whose rules are listed, and the form in which its table is exported."""

    system: str = parameter("s", NAME, "System")
    operation: str = parameter("o", WORD, "Rules for")
    form: str = parameter("f", [*FORMS], "Form")


@dataclass(frozen=True)
class FormQuery(Query):
    """The form alone, as callers of the API name it."""

    form: str = parameter("format", [*FORMS])


@dataclass(frozen=True)
class TableChoice:
    """A complete query, the options of its selects, and the rules of the operation."""

    query: TableQuery
    options: dict[str, list[Option]]
    rules: pd.DataFrame
    missing: str  # what to run, if there are none


def _choose(store: Store, query: TableQuery, *, strict: bool) -> TableChoice:
    filters = Filters(query, strict=strict)
    system = filters.choose("system", system_options(systems_of(store)))
    found = rules.of_table(store, system)
    missing = rules.missing(store, system)
    operations = named(operations_of(found))
    operation = filters.choose("operation", [*operations, (ALL, "all operations")])
    if operation != ALL:
        found = found[found["operation"] == operation]
    filters.choose("form", ((name, form.title) for name, form in FORMS.items()))
    return TableChoice(filters.query, filters.options, found, missing)


def _draw(store: Store, choice: TableChoice) -> dict[str, Any]:
    table = choice.rules
    soaks = soaked.of_table(store, choice.query.system)
    of_table = list(table.itertuples())
    cases = [rules.case_text(rule) for rule in of_table]
    rows = table.assign(row=cases)
    figure = graph(
        ids.of(PATH, "ribbons-figure"),
        ribbons(rows, rules.size_range(table)),
        "Method that the table selects by message size, one ribbon per case.",
        href(f"{PATH}/rules.csv", choice.query.search()),
    )
    return {
        "settled": [html.P(prose(line)) for line in _settled(store, choice.query)],
        "ribbons": [figure, key(table["method"])],
        "rules": [
            html.P(_certainty(store, choice.query), className="hint"),
            data_table(
                f"Rules of {choice.query.system} in order of priority",
                _HEADER,
                [_row(rule, case, soaks) for rule, case in zip(of_table, cases, strict=True)],
            ),
        ],
        "export": _export(store, choice.query),
    }


def _row(rule: Any, case: str, soaks: SoakResults) -> Element:
    evidence = anchor(_samples_text(rule.launches), explore.evidence_link(rule._asdict()))
    soak = soaks.text(rule.operation, rule.method, rule.nodes, rule.ppn)
    if rule.status == UNSOAKED:
        soak = "pending"
    cells = (
        row_head(case, className="wrap"),
        data_cell(bytes_text(rule.bytes_low, rule.bytes_high)),
        data_cell(method_name(rule.method)),
        data_cell(rule.status),
        data_cell(rule.verdict, className="wrap wide"),
        data_cell(soak),
        data_cell(evidence),
    )
    return table_row(cells, className="even" if rule.status in (OPEN, UNSOAKED) else None)


def _certainty(store: Store, query: TableQuery) -> str:
    """Return how sure the intervals of the listed rules are."""
    table = cached_table(store, query.system)
    rules_of = table.rules if table else []
    listed = [rule.evidence for rule in rules_of if query.operation in (ALL, rule.operation)]
    said = certainty(listed)
    return f"{said.capitalize()}." if said else ""


def _settled(store: Store, query: TableQuery) -> list[str]:
    """Return what is settled of the listed operations and what is next, below what is lacking."""
    table = cached_table(store, query.system)
    if table is None:
        return []
    its = [point for point in table.points if query.operation in (ALL, point.case.operation)]
    said = summary(replace(table, points=its))
    lines = [rules.omission_text(store, query.system), f"{said[0].upper()}{said[1:]}."]
    return [*filter(None, lines)]


def _samples_text(launches: int) -> str:
    if not launches:
        return "samples"
    return f"samples of {counted(launches, 'launch', 'launches')}"


def _export(store: Store, query: TableQuery) -> list[Component]:
    """Return the link to the file, the lines for a shell that use it, and a preview."""
    form, whole = FORMS[query.form], replace(query, operation="")
    try:
        text = exported(store, query.system, query.form)
    except UnknownError as reason:
        return _unavailable(reason)
    exporting = f"switchpoint export --system {shlex.quote(query.system)} "
    use = [line.replace("switchpoint export ", exporting) for line in form.use]
    return [
        html.P(html.A(f"Download {form.file}", href=href(DOWNLOAD_PATH, whole.search()))),
        *([commands(ids.of(PATH, "commands"), use)] if use else []),
        html.Pre(html.Code(text), className="preview", tabIndex=0, **{"aria-label": form.file}),
    ]


def _unavailable(reason: UnknownError) -> list[Component]:
    return [html.P(f"Not available in this form: {reason.args[0]}")]


def _body(parts: Mapping[str, Component]) -> Sequence[Component]:
    return [
        card("Method by message size", parts["settled"], parts["ribbons"]),
        card("Rules", html.P(prose(_HINT), className="hint"), parts["rules"]),
        card("Export all rules", parts["form"], parts["export"]),
        html.Div(
            card(
                "Compare with your table",
                html.Label(
                    "Paste or drop your table, in the form chosen above, to see the differences.",
                    htmlFor=ids.of(PATH, "pasted"),
                    className="hint",
                ),
                *pasted_text(ids.of(PATH, "pasted")),
                html.Div(id=ids.of(PATH, "difference"), role="status"),
            ),
            className="interactive",
        ),
    ]


def _difference(here: str, pasted: str) -> list[Component]:
    """Return lines of the pasted table that are not here, and lines here that are not in it."""
    old, new = (text.replace("\r", "").strip().splitlines() for text in (pasted, here))
    most = max(_MOST_LINES, 2 * len(new))
    if len(old) > most:
        return [html.P(f"More than {most} lines: the table here has {len(new)}.")]
    lines = list(difflib.unified_diff(old, new, "yours", "here", n=1, lineterm=""))
    if not lines:
        return [html.P("No differences.")]
    classes = {"-": "removed", "+": "added"}
    spans = [html.Span(f"{line}\n", className=classes.get(line[:1], "")) for line in lines]
    return [html.Pre(html.Code(spans), className="preview", tabIndex=0)]


class _TablePage(FilteredPage[TableChoice]):
    """A page that also serves the table's file, and shows how a pasted table differs."""

    def register(self, app: Dash, open_store: OpenStore) -> None:
        super().register(app, open_store)

        @app.callback(
            Output(ids.of(PATH, "difference"), "children"),
            Input(ids.of(PATH, "pasted"), "value"),
            Input(ids.of(PATH, "system"), "value"),
            Input(ids.of(PATH, "form"), "value"),
            prevent_initial_call=True,
        )
        def compare(pasted: str | None, system: str, form: str) -> list[Component]:
            if not pasted:
                return []
            with open_store() as store:
                query = _choose(store, TableQuery(system, form=form), strict=True).query
                try:
                    shown = _difference(exported(store, query.system, query.form), pasted)
                except UnknownError as reason:
                    shown = _unavailable(reason)
            clear_error()
            return shown

        @app.server.get(DOWNLOAD_PATH)
        def download() -> Response:
            query = TableQuery.parse(request.query_string.decode("ascii", "replace"))
            with open_store() as store:
                query = _choose(store, query, strict=True).query
                text = exported(store, query.system, query.form)
            form = FORMS[query.form]
            headers = {"Content-Disposition": f'attachment; filename="{form.file}"'}
            return web.cached(Response(text, mimetype=form.mimetype, headers=headers))


def _reported(store: Store, system: str) -> list[Query]:
    """Return all rules."""
    return [TableQuery(system, ALL)]


PAGE = _TablePage(
    path=PATH,
    title="Table",
    query=TableQuery,
    parts={"settled": Block(), "ribbons": Block(), "rules": Block(), "export": Block()},
    choose=_choose,
    draw=_draw,
    body=_body,
    data={"rules": lambda store, choice: choice.rules},
    moved=("form",),
    missing=lambda choice: choice.missing,
    reported=_reported,
)
