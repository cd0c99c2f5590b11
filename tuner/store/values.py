"""The values that columns of the store may have: a store may come from anybody.

SQLite itself keeps values of any type in any column.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Sequence
from functools import cache
from importlib import resources
from types import NoneType
from typing import Any, NamedTuple

import numpy as np

from tuner.domain.cases import MOST_NODES, MOST_PPN, SCOPES
from tuner.domain.operations import DEFAULT_METHODS
from tuner.domain.records import DATE, LONGEST_S, NAME, PATTERN_SPEC, SHORTEST_S, SPEC, SYNC
from tuner.domain.tables import STATUSES

TRUTHS = {"filled", "oversubscribed", "passed", "staggered"}
"""The columns of truth values, which SQLite keeps as numbers."""

_BOUNDS = ("nodes_low", "nodes_high", "ppn_low", "ppn_high")
"""Columns that are never NULL, though the schema allows it."""

_TYPES: dict[str, type] = {"BLOB": bytes, "INTEGER": int, "REAL": float, "TEXT": str}

_RANGES: dict[str, tuple[float, float]] = {
    "INTEGER": (0, 2**63 - 1),
    "REAL": (0.0, 1e30),
    "level": (0.5, 1 - 1e-9),
    **dict.fromkeys(TRUTHS, (0, 1)),
    **dict.fromkeys(("launch", "launch.id"), (-(2**63), 2**63 - 1)),  # hashes
    **dict.fromkeys(("n", "probe.messages", "probe.pairs"), (1, 2**31)),
    **dict.fromkeys(("cores", "procs"), (1, 2**31 - 1)),
    **dict.fromkeys(("nodes", "nodes_low", "nodes_high"), (1, MOST_NODES)),
    **dict.fromkeys(("ppn", "ppn_low", "ppn_high"), (1, MOST_PPN)),
    **dict.fromkeys(("median_s", "p10_s", "p90_s", "total_s"), (SHORTEST_S, LONGEST_S)),
    **dict.fromkeys(("high_s", "low_s", "ratio", "ratio_high", "ratio_low"), (1e-305, 1e305)),
    "may_lose": (0.0, 1e305),
}
"""The least and the greatest number of a column, or else of its type."""

_FORMS = {
    **dict.fromkeys(("campaign", "system", "system.id"), NAME),
    **dict.fromkeys(("challenger", "method"), SPEC),
    "date": DATE,
    "operation": "|".join(DEFAULT_METHODS),
    "pattern": PATTERN_SPEC,
    "scope": "|".join(("", *SCOPES)),
    "status": "|".join(STATUSES),
    "sync": SYNC,
}
"""The forms of the texts of columns; other texts are free."""


class Column(NamedTuple):
    """The values that a column may hold: of these types, numbers in a range, texts of a form."""

    name: str
    types: set[type]
    range: tuple[float, float] | None = None
    form: re.Pattern[str] | None = None

    def check(self, values: Sequence[Any]) -> None:
        """Raise TypeError or ValueError if one of at least one value cannot be of the column."""
        if self.types == {float}:  # most differ, and numpy is faster
            try:
                reals = np.array(array("d", values))
            except TypeError as error:
                raise TypeError(f"{self.name} has a value of another type") from error
            possible = self._covers(reals.min(), reals.max())
        elif not set(map(type, values)) <= self.types:
            raise TypeError(f"{self.name} has a value of another type")
        elif (self.range or self.form) and (distinct := set(values) - {None}):
            possible = (
                all(map(self.form.fullmatch, distinct))
                if self.form
                else self._covers(min(distinct), max(distinct))
            )
        else:
            possible = True
        if not possible:
            raise ValueError(f"{self.name} has an impossible value")

    def _covers(self, least: float, greatest: float) -> bool:
        return not self.range or bool(self.range[0] <= least and greatest <= self.range[1])


def column(tables: Sequence[str], name: str) -> Column | None:
    """Return the column of the first of some tables that has one of this name."""
    known = _columns()
    return next((known[table, name] for table in tables if (table, name) in known), None)


@cache
def _columns() -> dict[tuple[str, str], Column]:
    """Return the columns of the schema by table and name."""
    found: dict[tuple[str, str], Column] = {}
    schema = resources.files("tuner.store").joinpath("schema.sql").read_text()
    for table, body in re.findall(r"^CREATE TABLE (\w+) \($(.*?)^\)", schema, re.M | re.S):
        columns = rf'^  "?(\w+)"? ({"|".join(_TYPES)})( NOT NULL| PRIMARY KEY)?'
        for name, kind, required in re.findall(columns, body, re.M):
            types = {_TYPES[kind]} if required or name in _BOUNDS else {_TYPES[kind], NoneType}
            keys = (f"{table}.{name}", name, kind)
            if kind == "TEXT":
                form = next((_FORMS[key] for key in keys if key in _FORMS), None)
                found[table, name] = Column(name, types, form=re.compile(form) if form else None)
            else:
                ends = next((_RANGES[key] for key in keys if key in _RANGES), None)
                found[table, name] = Column(name, types, ends)
    for name in ("first_date", "last_date"):
        found["launch", name] = found["launch", "date"]
    return found
