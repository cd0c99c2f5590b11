"""The forms of a table that others read: our library, C, JSON, and the MPI libraries.

Each form carries its provenance; the texts come from templates/, except JSON.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tuner import atomic
from tuner.domain import off
from tuner.domain.operations import DEFAULT_METHODS
from tuner.domain.tables import Point, Provenance, Rule, Table
from tuner.errors import SwitchpointError
from tuner.export import intelmpi, mpich, openmpi
from tuner.selection import soaks, trust
from tuner.units import multiple_text

if TYPE_CHECKING:
    import jinja2

    from tuner.models.system import SystemModel


class ExportError(SwitchpointError):
    """Error raised when a table cannot be written; the message says why and what to do."""


def export(table: Table, form: str, model: SystemModel | None = None) -> str:
    """Return a table as text in one of FORMS. Raise ExportError when it has no rules.

    The forms `table` and `json` carry the model too, the parameters fitted to the system's probes.
    The others, whose readers do not know SWITCHPOINT_OFF, leave out the methods that are off.
    """
    if not table.rules:
        raise ExportError(
            f"the table of {table.provenance.system} has no rules: the default was measured "
            "nowhere; measure it with `switchpoint run`"
        )
    if form == "table":
        return _table_text(table, model)
    if form == "json":
        return _json_text(table, model)
    used = [rule for rule in table.rules if not off.is_off_here(rule.method)]
    if not used:
        raise ExportError(
            f"every rule of the table of {table.provenance.system} names a method that is off: "
            f"{off.VARIABLE}={os.environ[off.VARIABLE]}"
        )
    return _TEXTS[form](replace(table, rules=used))


def write(table: Table, form: str, path: Path, model: SystemModel | None = None) -> None:
    """Write a table to a file, whole. Raise ExportError."""
    text = export(table, form, model)
    try:
        atomic.write(path, text)
    except OSError as error:
        raise ExportError(f"{path}: cannot be written: {error.strerror}") from error


def evidence(point: Point) -> str:
    """Return the evidence for a point in words, with speeds as multiples of the default's."""
    default = DEFAULT_METHODS[point.operation]
    where = f"at {point.bytes} B, {point.launches} launches of {point.pattern}"
    if point.oversubscribed:
        where += ", oversubscribed"
    if point.launches == 0:
        return f"{point.status}: no launch of {point.pattern} counts at {point.bytes} B"
    if point.challenger is None or point.ratio is None:
        return f"{point.status}: nothing to compare {where}"
    return f"{point.status}: {point.challenger} has {speed(point)} the speed of {default} {where}"


def reason(rule: Rule, executions: dict[tuple[str, str, int, int], int]) -> str:
    """Return a rule's evidence in words; `executions` are of soaks (tuner/selection/soaks.py)."""
    said = evidence(rule.evidence)
    if rule.interpolated:
        said = f"interpolated, at {rule.evidence.nodes} x {rule.evidence.ppn} {said}"
    point = rule.evidence
    soaked = executions.get((rule.operation, rule.method, point.nodes, point.ppn))
    if soaked is not None:
        said += f"; soaked {soaked} times" if soaked else "; not soaked"
    return said


def speed(point: Point) -> str:
    """Return the challenger's speed over the default's, with its interval; "" if unknown."""
    if point.ratio is None:
        return ""
    if point.ratio_low is None or point.ratio_high is None:
        return f"{multiple_text(1 / point.ratio)} x"
    low, high = multiple_text(1 / point.ratio_high), multiple_text(1 / point.ratio_low)
    return f"{multiple_text(1 / point.ratio)} x ({low} to {high})"


def table_document(table: Table) -> dict[str, Any]:
    """Return a table as a JSON object."""
    return {
        "provenance": asdict(table.provenance),
        "rules": [
            rule._asdict()
            | {"interpolated": rule.interpolated, "evidence": _point_document(rule.evidence)}
            for rule in table.rules
        ],
        "points": [_point_document(point) for point in table.points],
    }


def _point_document(point: Point) -> dict[str, Any]:
    return point._asdict() | {"ratios": dict(point.ratios)}


def _table_text(table: Table, model: SystemModel | None) -> str:
    from tuner.export.model_lines import model_lines

    return _render("table.j2", table, rules=table.rules, model=model_lines(model))


def _header_text(table: Table) -> str:
    return _render("header.h.j2", table, rules=table.rules)


def _openmpi_text(table: Table) -> str:
    return _render("openmpi.rules.j2", table, **openmpi.rules_file(table))


def _mpich_text(table: Table) -> str:
    return mpich.padded(_render("mpich.json.j2", table, **mpich.selection_file(table)))


def _intelmpi_text(table: Table) -> str:
    return _render("intelmpi.sh.j2", table, **intelmpi.settings(table))


def _json_text(table: Table, model: SystemModel | None) -> str:
    document = {"format": "switchpoint-table", "version": 1, **table_document(table)}
    if model is not None:
        from tuner.models.system import encode

        document["model"] = json.loads(encode(model))
    members = (f"{json.dumps(name)}: {_json_lines(value)}" for name, value in document.items())
    return "{" + ",\n".join(members) + "}\n"


def _json_lines(value: Any) -> str:
    """Return JSON with one rule or point per line, for line tools and for fast writing."""
    if not isinstance(value, list):
        return json.dumps(value)
    return "[\n" + ",\n".join(map(json.dumps, value)) + "\n]"


_TEXTS: dict[str, Callable[[Table], str]] = {
    "header": _header_text,
    "openmpi": _openmpi_text,
    "mpich": _mpich_text,
    "intelmpi": _intelmpi_text,
}

LIBRARIES = ("openmpi", "mpich", "intelmpi")
"""Forms that an MPI library reads to run its own algorithms."""

FORMS = ("table", "header", "json", *LIBRARIES)


def _render(template: str, table: Table, **context: Any) -> str:
    return (
        _environment()
        .get_template(template)
        .render(
            provenance=_provenance(table.provenance),
            notes=trust.notes(table.provenance) + soaks.notes(table),
            reason=partial(reason, executions=soaks.executions(table)),
            **context,
        )
    )


@cache
def _environment() -> jinja2.Environment:
    """Return the one environment, which keeps the templates that it compiled."""
    import jinja2  # here, because every command knows the forms, and few write one

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("templates", ""),
        undefined=jinja2.StrictUndefined,
        autoescape=False,  # noqa: S701  no form is HTML; the filters below escape
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {
        "c_string": _c_string,
        "c_real": _c_real,
        "c_whole": _c_whole,
        "comment": _comment,
        "line": _line,
        "range": _range,
    }
    return environment


def _provenance(provenance: Provenance) -> dict[str, Any]:
    """Return the provenance that the text forms show, in their order."""
    campaigns = provenance.campaigns
    named = " ".join(campaigns)
    if len(campaigns) > _NAMED_CAMPAIGNS:
        named = f"{campaigns[0]} to {campaigns[-1]} ({len(campaigns)})"
    return {
        "system": f"{provenance.name} {provenance.environment} ({provenance.system})",
        "mpi": provenance.mpi_library,
        "compiler": provenance.compiler,
        "cpu": f"{provenance.cpu_model}, {provenance.cores} cores",
        "campaign": named,
        "launches": provenance.launches,
        "commit": provenance.commit,
        "date": provenance.date,
        "switchpoint": provenance.version,
    }


_NAMED_CAMPAIGNS = 8


def _line(value: Any) -> str:
    """Return one printable line without quotes, no longer than readers take."""
    text = " ".join(str(value).replace('"', "'").split())
    return "".join(c for c in text if c.isprintable())[:1000]


def _comment(value: Any) -> str:
    return _line(value).replace("*/", "* /").replace("/*", "/ *")


def _c_string(value: str) -> str:
    return json.dumps(value)


def _number(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:.6f}".rstrip("0").rstrip(".")


def _range(low: float | None, high: float | None) -> str:
    """Return an interval in the table's grammar: both ends included."""
    if low is not None and low == high:
        return _number(low)
    return f"{_number(low or 0)}:{'*' if high is None else _number(high)}"


def _c_whole(low: int | None, high: int | None) -> str:
    """Return both ends in C. Unknown values are negative, and in the unbounded interval only."""
    first = "INT64_MIN" if low is None and high is None else f"INT64_C({low or 0})"
    return f"{first}, {'INT64_MAX' if high is None else f'INT64_C({high})'}"


def _c_real(low: float | None, high: float | None) -> str:
    first = "-DBL_MAX" if low is None and high is None else _number(low or 0)
    return f"{first}, {'DBL_MAX' if high is None else _number(high)}"
