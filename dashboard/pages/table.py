"""Table: the rules of a system with their evidence, and the table as applications load it."""

import difflib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import dash_bootstrap_components as dbc
from dash import Dash, Input, Output, html
from dash.development.base_component import Component
from flask import Response, request

from dashboard import ids, rules, soaked, web
from dashboard.choice import Filters, layout_key, newest_first, system_options
from dashboard.exported import FORMS, exported
from dashboard.figures.ribbons import DECIDED, ribbons
from dashboard.pages import explore
from dashboard.pages.page import FilteredPage
from dashboard.pages.parts import Block
from dashboard.query import Query, UnknownError, one_of, parameter
from dashboard.soaked import Standing
from dashboard.units import interval_text, ratio_text
from dashboard.web import OpenStore
from dashboard.widgets import Option, card, commands, data_table, graph, href, method_name
from tuner.records import NAME, UNSOAKED
from tuner.store import Store
from tuner.units import bytes_text

PATH = "/table"
DOWNLOAD_PATH = f"{PATH}/download"
_MOST_LINES = 4000  # of a pasted table


_HEADER = ("Case", "Bytes", "Method", "Status", "Speed-up (95 %)", "Soak", "Evidence")


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
    filters = Filters(query, strict=strict)
    filters.choose("system", system_options(newest_first(store.systems())))
    filters.choose("form", ((name, form.title) for name, form in FORMS.items()))
    return TableChoice(filters.query, filters.options)


def _draw(store: Store, choice: TableChoice) -> dict[str, Any]:
    table = rules.with_speedup(store.rules(choice.query.system))
    standing = soaked.of_table(store, choice.query.system)
    rows = table.assign(row=[rules.case_text(rule) for rule in table.itertuples()])
    figure = graph(
        ids.of(PATH, "ribbons-figure"),
        ribbons(rows, rules.size_range(table)),
        "The method that the table selects at each message size, a ribbon for each case.",
        href(f"{PATH}/rules.csv", choice.query.search()),
    )
    return {
        "ribbons": figure,
        "rules": data_table(
            "The rules, the first that holds first",
            _HEADER,
            [_row(rule, standing) for rule in table.itertuples()],
        ),
        "export": _export(store, choice.query),
    }


def _row(rule: Any, standing: Standing) -> Component:
    evidence = html.A(_samples_text(rule.launches), href=_evidence(rule))
    soak = standing.text(rule.operation, rule.method)
    if rule.status == UNSOAKED:
        soak = f"{rule.challenger} waits for it"
    texts = (bytes_text(rule.bytes_low, rule.bytes_high), method_name(rule.method), rule.status)
    cells = [html.Td(text) for text in (*texts, _speedup_text(rule), soak, evidence)]
    head = html.Th(rules.case_text(rule), scope="row", className="wrap")
    return html.Tr([head, *cells], className=None if rule.status in DECIDED else "even")


def _samples_text(launches: int) -> str:
    if not launches:
        return "samples"
    return f"samples of {launches} launch{'es' if launches > 1 else ''}"


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
    """The link to the file, the lines that switch it on, and the file itself to look at."""
    form = FORMS[query.form]
    try:
        text = exported(store, query.system, query.form)
    except UnknownError as reason:
        return [html.P(f"Not in this form: {reason.args[0]}")]
    return [
        html.P(html.A(f"Download {form.file}", href=href(DOWNLOAD_PATH, query.search()))),
        *([commands(ids.of(PATH, "commands"), form.use)] if form.use else []),
        html.Pre(html.Code(text), className="preview", tabIndex=0, **{"aria-label": form.file}),
    ]


def _body(parts: Mapping[str, Component]) -> Sequence[Component]:
    return [
        card("Method by message size", parts["ribbons"]),
        card(
            "Rules",
            html.P(
                "The first rule that holds, and whose method can be used, is taken. Where the "
                "default stays, the speed-up is that of the best of the others. Grey: nothing was "
                "shown to be faster than the default or, unsoaked, what was is executed very "
                "often before it is chosen, by `switchpoint soak`. Bytes: of a message in the "
                "mean, and of collectives of a rank's block, or of the whole vector (bcast, "
                "reduce, allreduce).",
                className="hint",
            ),
            parts["rules"],
        ),
        card("Export", parts["form"], parts["export"]),
        card(
            "Compare with yours",
            html.Label(
                "Paste a table that you have, in the form chosen above, to see how it differs.",
                htmlFor=ids.of(PATH, "pasted"),
                className="hint",
            ),
            dbc.Textarea(id=ids.of(PATH, "pasted"), rows=4, debounce=True, spellcheck=False),
            html.Button(
                "Or choose its file",
                type="button",
                className="btn btn-sm align-self-start mt-2 mb-2",
                **{"data-file": ids.of(PATH, "pasted")},
            ),
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
    """Adds the file to download, and the difference to another one."""

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
                return _difference(exported(store, query.system, query.form), pasted)

        @app.server.get(DOWNLOAD_PATH)
        def download() -> Response:
            query = TableQuery.parse(request.query_string.decode("ascii", "replace"))
            with open_store() as store:
                query = _choose(store, query, strict=True).query
                text = exported(store, query.system, query.form)
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
