"""A table as JSON, with every decided point and the fitted parameters."""

import json
from dataclasses import asdict
from typing import Any

from tuner.domain.flat import flat
from tuner.domain.tables import Point, Table
from tuner.export.form import Form
from tuner.models.system import SystemModel, encode
from tuner.selection.evidence import have_filled, settlement, verdict
from tuner.selection.next_step import next_step

FORMAT, VERSION = "switchpoint-table", 2


def table_document(table: Table) -> dict[str, Any]:
    """Return a table as a JSON object, with what is settled and what to do next."""
    settled = settlement(table.points)
    return _rules_document(table) | {
        "settlement": asdict(settled) | {"worst": settled.worst and flat(settled.worst.case)},
        "next_step": asdict(next_step(table)),
    }


def _rules_document(table: Table) -> dict[str, Any]:
    return {
        "format": FORMAT,
        "version": VERSION,
        "provenance": asdict(table.provenance),
        "rules": [
            rule._asdict()
            | {
                "inferred": rule.inferred,
                "filled": filled,
                "borrowed": bool(table.provenance.borrowed_for),
                "evidence": _point_document(rule.evidence),
            }
            for rule, filled in zip(table.rules, have_filled(table), strict=True)
        ],
        "points": [_point_document(point) for point in table.points],
    }


def _point_document(point: Point) -> dict[str, Any]:
    ratios = [ratio._asdict() for ratio in point.ratios]
    return flat(point) | {"ratios": ratios, "verdict": verdict(point)}


def _text(table: Table, model: SystemModel | None) -> str:
    return _lines(table_document(table), model)


def portable(table: Table, model: SystemModel | None) -> str:
    """Return the document of a table without what to do next, which depends on this machine."""
    return _lines(_rules_document(table), model)


def _lines(document: dict[str, Any], model: SystemModel | None) -> str:
    if model is not None:
        document["model"] = json.loads(encode(model))
    members = (f"{json.dumps(name)}: {_json_lines(value)}" for name, value in document.items())
    return "{" + ",\n".join(members) + "}\n"


def _json_lines(value: Any) -> str:
    """Return JSON with one rule or point per line, for line-based tools and fast writing."""
    if not isinstance(value, list):
        return json.dumps(value)
    return "[\n" + ",\n".join(map(json.dumps, value)) + "\n]"


FORM = Form("JSON", "switchpoint.json", _text, "application/json", knows_off=True)
