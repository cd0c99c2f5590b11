"""The HTTP API, /api/v1: the data of the pages, for scripts, as openapi.json describes it."""

import json
from dataclasses import dataclass
from http import HTTPStatus
from importlib import resources
from typing import Any, TypeVar

from flask import Flask, Response, request

from dashboard import compared, web
from dashboard.exported import exported
from dashboard.frames import rows_of
from dashboard.pages import metrics, table
from dashboard.query import INTEGER, WORD, MalformedError, Query, UnknownError, parameter
from dashboard.schemas import schemas
from dashboard.web import OpenStore
from tuner.domain.records import NAME, PATTERN_SPEC
from tuner.export.forms import FORMS
from tuner.store.store import Store

ROOT = "/api/v1"
QueryT = TypeVar("QueryT", bound=Query)
_MOST_CELLS = 1000
_TEXTS = {"Name": NAME, "Word": WORD, "PatternSpec": PATTERN_SPEC}
_FAILURES = {"400": "Malformed", "401": "NoToken", "421": "UnknownHost"}  # of every route


@dataclass(frozen=True)
class CellsQuery(Query):
    """The cells of a system and campaign; the other parameters select among them."""

    system: str = parameter("system", NAME)
    campaign: str = parameter("campaign", NAME)
    operation: str = parameter("operation", WORD)
    pattern: str = parameter("pattern", PATTERN_SPEC)
    procs: str = parameter("procs", r"[0-9]{1,10}")
    offset: str = parameter("offset", r"[0-9]{1,9}")
    limit: str = parameter("limit", INTEGER)


@dataclass(frozen=True)
class ComparisonQuery(Query):
    """Two campaigns with their systems, and an operation; if it is empty, all operations."""

    a_system: str = parameter("a_system", NAME)
    a_campaign: str = parameter("a_campaign", NAME)
    b_system: str = parameter("b_system", NAME)
    b_campaign: str = parameter("b_campaign", NAME)
    operation: str = parameter("operation", WORD)


def add_api(server: Flask, open_store: OpenStore) -> None:
    """Add the routes; `web.answer_errors` answers errors as JSON."""

    @server.get(f"{ROOT}/openapi.json")
    def openapi() -> Response:
        _query(Query)
        return _json(_description() | {"servers": [{"url": request.script_root or "/"}]})

    @server.get(f"{ROOT}/systems")
    def systems() -> Response:
        _query(Query)
        with open_store() as store:
            return _json({"systems": rows_of(store.systems())})

    @server.get(f"{ROOT}/systems/<system>")
    def one_system(system: str) -> Response:
        _query(Query)
        with open_store() as store:
            described = _described(store, system)
            campaigns = store.campaigns(system).drop(columns="system")
        return _json(described | {"campaigns_measured": rows_of(campaigns)})

    @server.get(f"{ROOT}/tables/<system>")
    def one_table(system: str) -> Response:
        query = _query(table.FormQuery)
        with open_store() as store:
            _described(store, system)
            text = exported(store, system, query.form or "table")
        return web.cached(Response(text, mimetype=FORMS[query.form or "table"].mimetype))

    @server.get(f"{ROOT}/cells")
    def some_cells() -> Response:
        query = _query(CellsQuery)
        if not (query.system and query.campaign):
            raise MalformedError("system and campaign are required")
        limit = int(query.limit or _MOST_CELLS)
        if not 1 <= limit <= _MOST_CELLS:
            raise MalformedError(f"limit must be from 1 to {_MOST_CELLS}")
        with open_store() as store:
            return _json(_cells(store, query, limit))

    @server.get(f"{ROOT}/compare")
    def comparison() -> Response:
        query = _query(ComparisonQuery)
        a, b = (query.a_system, query.a_campaign), (query.b_system, query.b_campaign)
        if not all(a + b):
            raise MalformedError("a_system, a_campaign, b_system and b_campaign are required")
        with open_store() as store:
            for side in (a, b):
                _check_campaign(store, *side)
            return _json(compared.document(store, a, b, query.operation))


def _description() -> dict[str, Any]:
    """Return openapi.json with all schemas, forms, and what is the same of each route."""
    document = json.loads(resources.files("dashboard").joinpath("openapi.json").read_text())
    document["components"]["schemas"] = schemas() | {
        name: {"type": "string", "pattern": f"^{pattern}$"} for name, pattern in _TEXTS.items()
    }
    told = {"schema": {"$ref": "#/components/schemas/Failure"}}
    for failure in document["components"]["responses"].values():
        failure["content"] = {"application/json": told}
    for path in document["paths"].values():
        responses = path["get"]["responses"]
        responses["200"]["headers"] = {"ETag": {"schema": {"type": "string"}}}
        responses["304"] = {"description": "Not changed"}
        for status, name in _FAILURES.items():
            responses[status] = {"$ref": f"#/components/responses/{name}"}
    its = document["paths"][f"{ROOT}/tables/{{system}}"]["get"]
    its["parameters"][1]["schema"]["enum"] = list(FORMS)
    answers = its["responses"]["200"]["content"]
    for form in FORMS.values():
        answers.setdefault(form.mimetype, {"schema": {"type": "string"}})
    return document


def _cells(store: Store, query: CellsQuery, limit: int) -> dict[str, Any]:
    _check_campaign(store, query.system, query.campaign)
    procs = int(query.procs) if query.procs else None
    found = store.cells(
        query.system,
        campaign=query.campaign,
        operation=query.operation or None,
        pattern=query.pattern or None,
        procs=procs,
    )
    offset = int(query.offset or 0)
    rows = rows_of(found.iloc[offset : offset + limit])
    for row in rows:
        row["statistics"] = metrics.statistics(row["statistics"])
    return {"total": len(found), "offset": offset, "cells": rows}


def _check_campaign(store: Store, system: str, campaign: str) -> None:
    """Raise UnknownError if the store has no campaign of that name."""
    _described(store, system)
    if campaign not in set(store.campaigns(system)["campaign"]):
        raise UnknownError(f"The store holds no campaign {campaign!r} of {system}.")


def _described(store: Store, system: str) -> dict[str, Any]:
    systems = store.systems()
    found = rows_of(systems[systems["system"] == system])
    if not found:
        raise UnknownError(f"The store holds no system {system!r}.")
    return found[0]


def _query(kind: type[QueryT]) -> QueryT:
    """Return the parameters of the request. Raise MalformedError if one is empty."""
    if "" in request.args.values():
        raise MalformedError("a parameter is empty")
    return kind.parse(request.query_string.decode("ascii", "replace"))


def _json(document: Any) -> Response:
    text = json.dumps(document, allow_nan=False, indent=1)
    return web.cached(Response(f"{text}\n", HTTPStatus.OK, mimetype="application/json"))
