"""The answers of the HTTP API as types, and their schemas for openapi.json."""

from __future__ import annotations

import inspect
from types import NoneType, UnionType
from typing import Any, NamedTuple, TypedDict, get_args, get_origin, get_type_hints

import msgspec

from tuner.domain.cases import Case, CellKey
from tuner.domain.flat import is_record
from tuner.domain.records import CellSummary, Features
from tuner.domain.tables import Point, Provenance, Rule
from tuner.models.system import SystemModel
from tuner.selection.changes import Change
from tuner.selection.comparison import Replaced, Subject
from tuner.selection.next_step import NextStep

Schema = dict[str, Any]

_NAMES = {bool: "boolean", int: "integer", float: "number", str: "string", NoneType: "null"}
_NAMES[dict] = "object"
_PLACE = "#/components/schemas/{name}"


class MeasuredSystem(TypedDict):
    """A measured system: a machine with one MPI library."""

    system: str
    name: str
    environment: str
    mpi_library: str
    mpi_standard: str
    compiler: str
    cpu_model: str
    cores: int
    campaigns: int
    launches: int
    samples: int
    first_date: str
    last_date: str


class Systems(TypedDict):
    """All measured systems."""

    systems: list[MeasuredSystem]


class MeasuredCampaign(TypedDict):
    """A campaign of a system. `executions` are those in soaks; `complete` counts launches."""

    campaign: str
    launches: int
    complete: int
    samples: int
    executions: int
    first_date: str
    last_date: str
    commit: str


class SystemWithCampaigns(MeasuredSystem):
    """A measured system, and its campaigns."""

    campaigns_measured: list[MeasuredCampaign]


class ListedCell(NamedTuple):
    """The summary of one method in one case, times in seconds, and the statistics of its plan."""

    key: CellKey
    features: Features
    summary: CellSummary


class CellPage(TypedDict):
    """The cells from `offset` on, of `total`."""

    total: int
    offset: int
    cells: list[ListedCell]


class OperationShift(TypedDict):
    """The change of an operation. `ratio` is time in B / time in A, the geometric mean.

    `effect` is that of the factors, up or down, by which cells changed; unchanged ones count as 1.
    """

    operation: str
    compared: int
    changed: int
    ratio: float
    effect: float


class ComparisonDocument(TypedDict):
    """A comparison of A and B; operations and changes are in order, the largest first.

    `measured` chooses by the times alone, `deployable` as exported tables do; both are null while
    `undecided` names a campaign that `switchpoint tune` has not decided.
    """

    a: Subject
    b: Subject
    compared: int
    common_ratio: float | None
    operations: list[OperationShift]
    changes: list[Change]
    measured: Replaced | None
    deployable: Replaced | None
    undecided: str


class ExportedPoint(NamedTuple):
    """A decision with its evidence, and the verdict on it in words."""

    point: Point
    verdict: str


_OF_RULE = {"inferred": bool, "filled": bool, "borrowed": bool, "evidence": ExportedPoint}
# mypy takes only literal fields.
ExportedRule = TypedDict("ExportedRule", {**get_type_hints(Rule), **_OF_RULE})  # type: ignore[misc]
ExportedRule.__doc__ = Rule.__doc__


class Settled(TypedDict):
    """The sizes of a table that are settled, and what the others may lose: most at `worst`."""

    points: int
    settled: int
    filled: int
    may_lose: float | None
    worst: Case | None
    more_s: float


class _Decisions(TypedDict):
    format: str
    version: int
    provenance: Provenance
    rules: list[ExportedRule]
    points: list[ExportedPoint]
    settlement: Settled
    next_step: NextStep


class TableDocument(_Decisions, total=False):
    """A table with every decided point, and the parameters if they were fitted."""

    model: SystemModel


class Failure(TypedDict):
    """The reason of a failure."""

    error: str


def schemas() -> dict[str, Schema]:
    """Return the schemas of all answers and of their parts, by name."""
    # What documents have as it is; in other records, keys are flat.
    _, found = msgspec.json.schema_components([Provenance, SystemModel], ref_template=_PLACE)
    answers = (Systems, SystemWithCampaigns, TableDocument, CellPage, ComparisonDocument, Failure)
    for answer in answers:
        _schema(answer, found)
    statistics = msgspec.json.schema(dict[str, float])  # which the store has as text
    found["ListedCell"]["properties"]["statistics"] = statistics
    return found


def _schema(kind: Any, found: dict[str, Schema]) -> Schema:
    """Return the schema of a type; those of records are added to `found`."""
    if kind in _NAMES:
        return {"type": _NAMES[kind]}
    if get_origin(kind) is UnionType:
        return {"anyOf": [_schema(each, found) for each in get_args(kind)]}
    if get_origin(kind) in (list, tuple):
        return {"type": "array", "items": _schema(get_args(kind)[0], found)}
    if kind.__name__ not in found:
        found[kind.__name__] = {}
        properties = _properties(kind, found)
        found[kind.__name__] |= {
            "type": "object",
            "description": " ".join((inspect.getdoc(kind) or "").split()),
            "required": [
                name for name in properties if name not in getattr(kind, "__optional_keys__", ())
            ],
            "properties": properties,
        }
    return {"$ref": _PLACE.format(name=kind.__name__)}


def _properties(kind: Any, found: dict[str, Schema]) -> dict[str, Schema]:
    """Return the members of a record; keys, which are named tuples, are flat in documents."""
    properties: dict[str, Schema] = {}
    for name, its in get_type_hints(kind).items():
        if is_record(kind) and is_record(its):
            properties |= _properties(its, found)
        else:
            properties[name] = _schema(its, found)
    return properties
