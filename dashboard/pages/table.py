"""Table: the rules of a system with their evidence, and the table as applications load it."""

import difflib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import dash_ag_grid as dag
import dash_bootstrap_components as dbc
import pandas as pd
from dash import Dash, Input, Output, html
from dash.development.base_component import Component
from flask import Response, request

from dashboard import ids, rules, web
from dashboard.choice import layout_key, newest_first, system_options
from dashboard.figures.methods import method_style
from dashboard.figures.ribbons import DECIDED, ribbons
from dashboard.pages import explore
from dashboard.pages.page import FilteredPage
from dashboard.pages.parts import Block
from dashboard.query import Query, UnknownError, choose, one_of, parameter
from dashboard.units import interval_text, ratio_text
from dashboard.web import OpenStore
from dashboard.widgets import Option, card, commands, graph, href
from tuner import export
from tuner.fitting import last_fitted
from tuner.records import NAME
from tuner.store import Store
from tuner.units import bytes_text

PATH = "/table"
DOWNLOAD_PATH = f"{PATH}/download"
_MOST_LINES = 4000  # of a pasted table


class Form(NamedTuple):
    """A form of exported tables."""

    title: str
    file: str
    mimetype: str


FORMS = {
    "table": Form("Switchpoint table", "switchpoint.table", "text/plain"),
    "header": Form("C header", "switchpoint_table.h", "text/plain"),
    "json": Form("JSON", "switchpoint.json", "application/json"),
}
# Field, title, least width in pixels, what more ag-grid is to know.
_COLUMNS: tuple[tuple[str, str, int, dict[str, Any]], ...] = (
    ("case", "Case", 190, {"wrapText": True, "autoHeight": True}),
    ("bytes", "Bytes", 170, {}),
    ("method", "Method", 125, {"cellRenderer": "MethodName"}),
    ("status", "Status", 95, {}),
    ("speedup", "Speed-up (95 %)", 175, {"wrapText": True, "autoHeight": True}),
    ("launches", "Launches", 90, {}),
    ("evidence", "Evidence", 90, {"cellRenderer": "EvidenceLink"}),
)


@dataclass(frozen=True)
class TableQuery(Query):
    """The system, and the form in which its table is exported."""

    system: str = parameter("s", NAME, "System")
    form: str = parameter("f", one_of(*FORMS), "Form")


@dataclass(frozen=True)
class FormQuery(Query):
    """The form alone, as callers of the API name it."""

    form: str = parameter("format", one_of(*FORMS))


@dataclass(frozen=True)
class TableChoice:
    """A complete query, and what its selects offer."""

    query: TableQuery
    options: dict[str, list[Option]]


def _choose(store: Store, query: TableQuery, *, strict: bool) -> TableChoice:
    systems = system_options(newest_first(store.systems()))
    system = choose([name for name, _ in systems], query.system, "system", strict=strict)
    form = choose(list(FORMS), query.form, "form", strict=strict)
    forms = [(name, form.title) for name, form in FORMS.items()]
    return TableChoice(TableQuery(system, form), {"system": systems, "form": forms})


def _draw(store: Store, choice: TableChoice) -> dict[str, Any]:
    table = rules.with_speedup(store.rules(choice.query.system))
    rows = table.assign(row=[rules.case_text(rule) for rule in table.itertuples()])
    figure = graph(
        ids.of(PATH, "ribbons-figure"),
        ribbons(rows, rules.size_range(table)),
        "The method that the table selects at each message size, a ribbon for each case.",
        href(f"{PATH}/rules.csv", choice.query.search()),
    )
    return {"ribbons": figure, "rules": _grid(table), "export": _export(store, choice.query)}


def _grid(table: pd.DataFrame) -> Component:
    unsure = {"condition": "!params.data.sure", "style": {"color": "var(--bs-secondary-color)"}}
    return dag.AgGrid(
        rowData=[_row(rule) for rule in table.itertuples()],
        columnDefs=[
            {"field": field, "headerName": title, "minWidth": width, "flex": width} | more
            for field, title, width, more in _COLUMNS
        ],
        # The order of the rules is their priority.
        defaultColDef={"sortable": False, "resizable": True},
        getRowStyle={"styleConditions": [unsure]},
        dashGridOptions={"domLayout": "autoHeight", "animateRows": False},
        style={"height": None},
    )


def _row(rule: Any) -> dict[str, Any]:
    return {
        "case": rules.case_text(rule),
        "bytes": bytes_text(rule.bytes_low, rule.bytes_high),
        "method": rule.method,
        "color": method_style(rule.method).color,
        "status": rule.status,
        "speedup": _speedup_text(rule),
        "launches": rule.launches,
        "evidence": _evidence(rule),
        "sure": rule.status in DECIDED,
    }


def _speedup_text(rule: Any) -> str:
    """The challenger's speed-up, and which it is where the default stays."""
    if math.isnan(rule.speedup):
        return ""
    text = ratio_text(rule.speedup)
    if interval := interval_text(rule.speedup_low, rule.speedup_high, _bare_ratio_text):
        text += f" ({interval})"
    return text if rule.challenger == rule.method else f"{rule.challenger} {text}"


def _bare_ratio_text(ratio: float) -> str:
    return ratio_text(ratio).removesuffix("×")


def _evidence(rule: Any) -> str:
    """The link to the cell that the rule rests on."""
    query = explore.ExploreQuery(
        system=rule.system,
        campaign=rule.campaign,
        operation=rule.operation,
        pattern=rule.pattern,
        layout=layout_key(rule.procs, rule.nodes, rule.ppn, rule.sync, rule.oversubscribed),
        size=str(rule.size_bytes),
    )
    return href(explore.PATH, query.search())


def _export(store: Store, query: TableQuery) -> list[Component]:
    """The link to the file, and the file itself to look at."""
    try:
        text = exported(store, query)
    except UnknownError as reason:
        return [html.P(str(reason.args[0]))]
    name = FORMS[query.form].file
    return [
        html.P(html.A(f"Download {name}", href=href(DOWNLOAD_PATH, query.search()))),
        html.Pre(html.Code(text), className="preview", tabIndex=0, **{"aria-label": name}),
        html.P(
            "Files for Open MPI, MPICH and Intel MPI are made of what that very library says of "
            "itself, where it is installed:",
            className="hint",
        ),
        commands(
            ids.of(PATH, "commands"),
            [f"switchpoint export --system {query.system} --format openmpi --output rules.conf"],
        ),
    ]


def exported(store: Store, query: TableQuery) -> str:
    """The text that `switchpoint export` writes; `UnknownError` when there is no table."""
    table = store.table(query.system)
    if table is None:
        raise UnknownError("This system has no table yet: run `switchpoint tune`.")
    try:
        return export.export(table, query.form, last_fitted(store, query.system))
    except export.ExportError as error:
        raise UnknownError(str(error)) from error


def _body(parts: Mapping[str, Component]) -> Sequence[Component]:
    return [
        card("Method by message size", parts["ribbons"]),
        card(
            "Rules",
            html.P(
                "The first rule that holds, and whose method can be used, is taken. Where the "
                "default stays, the speed-up is that of the best of the others. Grey: nothing was "
                "shown to be faster than the default. Bytes: of a message in the mean, and of "
                "collectives of a rank's block, or of the whole vector (bcast, reduce, allreduce).",
                className="hint",
            ),
            parts["rules"],
        ),
        card("Export", parts["form"], parts["export"]),
        card(
            "Compare with yours",
            html.Label(
                "Paste a table that you have, in the format chosen above, to see how it differs.",
                htmlFor=ids.of(PATH, "pasted"),
                className="hint",
            ),
            dbc.Textarea(id=ids.of(PATH, "pasted"), rows=4, debounce=True, spellcheck=False),
            html.Div(id=ids.of(PATH, "difference"), role="status"),
        ),
    ]


def _difference(here: str, pasted: str) -> list[Component]:
    """Lines of the pasted table that are not here, and lines here that are not in it."""
    old, new = (text.replace("\r", "").strip().splitlines() for text in (pasted, here))
    if len(old) > _MOST_LINES:
        return [html.P(f"More than {_MOST_LINES} lines: no table is that long.")]
    lines = list(difflib.unified_diff(old, new, "yours", "here", n=1, lineterm=""))
    if not lines:
        return [html.P("No line differs.")]
    classes = {"-": "removed", "+": "added"}
    spans = [html.Span(f"{line}\n", className=classes.get(line[:1], "")) for line in lines]
    return [html.Pre(html.Code(spans), className="preview", tabIndex=0)]


class _TablePage(FilteredPage[TableChoice]):
    """Adds the file to download, and the difference to a pasted one."""

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
                query = _choose(store, TableQuery(system, form), strict=True).query
                return _difference(exported(store, query), pasted)

        @app.server.get(DOWNLOAD_PATH)
        def download() -> Response:
            query = TableQuery.parse(request.query_string.decode("ascii", "replace"))
            with open_store() as store:
                query = _choose(store, query, strict=True).query
                text = exported(store, query)
            form = FORMS[query.form]
            headers = {"Content-Disposition": f'attachment; filename="{form.file}"'}
            return web.cached(Response(text, mimetype=form.mimetype, headers=headers))


PAGE = _TablePage(
    path=PATH,
    title="Table",
    query=TableQuery,
    parts={"ribbons": Block(), "rules": Block(), "export": Block()},
    choose=_choose,
    draw=_draw,
    body=_body,
    data={"rules": lambda store, choice: store.rules(choice.query.system)},
    moved=("form",),
)
