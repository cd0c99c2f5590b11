"""A table as JSON, with every decided point and the fitted parameters."""

import json
from dataclasses import asdict
from typing import Any

from tuner.domain.flat import flat
from tuner.domain.tables import Point, Table
from tuner.export.form import Form
from tuner.models.system import SystemModel, encode


def table_document(table: Table) -> dict[str, Any]:
    """Return a table as a JSON object."""
    return {
        "provenance": asdict(table.provenance),
        "rules": [
            rule._asdict()
            | {
                "inferred": rule.inferred,
                "borrowed": bool(table.provenance.borrowed_for),
                "evidence": _point_document(rule.evidence),
            }
            for rule in table.rules
        ],
        "points": [_point_document(point) for point in table.points],
    }


def _point_document(point: Point) -> dict[str, Any]:
    return flat(point) | {"ratios": [ratio._asdict() for ratio in point.ratios]}


def _text(table: Table, model: SystemModel | None) -> str:
    document = {"format": "switchpoint-table", "version": 2, **table_document(table)}
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
