"""The tables of choices: method tables with their points, decisions of campaigns, and models."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import msgspec

from tuner.domain.flat import columns, flat, take
from tuner.domain.tables import Point, Provenance, Ratio, Rule, Table
from tuner.files import one_line
from tuner.store.database import Database, equal_to

if TYPE_CHECKING:
    import pandas as pd

_POINT = columns(Point)
_BOUNDS = [name for name in Rule._fields if name != "evidence"]
_RULE = (*_BOUNDS, *(name for name in _POINT if name not in _BOUNDS))
_OF_SYSTEM = "WHERE system = ? ORDER BY operation, nodes, ppn, mmax, mavg, bytes"


class Tables(Database):
    """The choices of systems and campaigns, and the fitted parameters of systems."""

    def put_model(self, system: str, parameters: str) -> None:
        """Replace a system's fitted parameters, which are JSON."""
        self._insert("model", ("system", "parameters"), [(system, parameters)])

    def put_table(self, table: Table) -> None:
        """Replace a system's table."""
        system = table.provenance.system
        for name in ("rule", "point", "tuned"):
            self._execute(f"DELETE FROM {name} WHERE system = ?", [system])  # noqa: S608
        provenance = json.dumps(asdict(table.provenance))
        self._insert("tuned", ("system", "provenance"), [(system, provenance)])
        self._put_points("point", system, table.points)
        rules = []
        for rank, rule in enumerate(table.rules):
            fields = _point_row(rule.evidence) | rule._asdict()
            rules.append((system, rank, *(fields[name] for name in _RULE)))
        self._insert("rule", ("system", "rank", *_RULE), rules)

    def put_decisions(self, system: str, campaign: str, points: Iterable[Point]) -> None:
        """Replace the decisions from one campaign alone."""
        key = (system, campaign)
        self._execute("DELETE FROM decision WHERE system = ? AND campaign = ?", key)
        self._put_points("decision", system, points)
        self._execute("UPDATE launch SET decided = 1 WHERE system = ? AND campaign = ?", key)

    def _put_points(self, table: str, system: str, points: Iterable[Point]) -> None:
        rows = ((system, *_point_row(point).values()) for point in points)
        self._insert(table, ("system", *_POINT), rows)

    def model(self, system: str) -> str | None:
        """Return the fitted parameters of a system as JSON, None when there are none."""
        rows = self._query("SELECT parameters FROM model WHERE system = ?", [system])
        return str(rows[0][0]) if rows else None

    def rules(self, system: str) -> pd.DataFrame:
        """Return a system's rules by rank, with the weakest point of each; empty before `tune`."""
        return self._frame("SELECT * FROM rule WHERE system = ? ORDER BY rank", [system])

    def points(self, system: str) -> pd.DataFrame:
        """Return the decision at each measured size of a system; empty before `tune`."""
        return self._frame(f"SELECT * FROM point {_OF_SYSTEM}", [system])  # noqa: S608

    def decisions(self, system: str, campaign: str, operation: str | None = None) -> list[Point]:
        """Return the decisions on an operation, or on all, from one campaign alone."""
        where, values = equal_to(system=system, campaign=campaign, operation=operation)
        rows = self._query(
            f"SELECT {', '.join(_POINT)} FROM decision WHERE {where} ORDER BY rowid",  # noqa: S608
            values,
        )
        with self.decoding():
            return [_point(row) for row in rows]

    def provenance(self, system: str) -> Provenance | None:
        """Return the provenance of a system's table, None when it has none."""
        rows = self._query("SELECT provenance FROM tuned WHERE system = ?", [system])
        if not rows:
            return None
        with self.decoding():
            fields = msgspec.json.decode(rows[0][0], type=dict[str, Any])
            for name, value in fields.items():  # of any length in stores of earlier versions
                fields[name] = one_line(value) if isinstance(value, str) else value
            found = msgspec.convert(fields, Provenance)
            if found.system != system or found.cores < 1:
                raise ValueError("provenance has an impossible value")
            return found

    def table(self, system: str) -> Table | None:
        """Return the table of a system as `tune` stored it, None when it did not."""
        with self.moment():
            provenance = self.provenance(system)
            points = self._query(
                f"SELECT {', '.join(_POINT)} FROM point {_OF_SYSTEM}",  # noqa: S608
                [system],
            )
            rules = self._query(
                f"SELECT {', '.join(_RULE)} FROM rule WHERE system = ? ORDER BY rank",  # noqa: S608
                [system],
            )
        if provenance is None:
            return None
        with self.decoding():
            return Table(provenance, [_rule(row) for row in rules], [_point(row) for row in points])


def _point_row(point: Point) -> dict[str, Any]:
    return flat(point) | {"ratios": json.dumps({name: ends for name, *ends in point.ratios})}


def _point(row: Iterable[Any]) -> Point:
    point = take(Point, iter(row))
    ratios = msgspec.json.decode(str(point.ratios), type=dict[str, list[Any]])
    checked = tuple(msgspec.convert([name, *ends], Ratio) for name, ends in ratios.items())
    if any(end is not None and end <= 0 for its in checked for end in its[1:4]):
        raise ValueError("ratios has an impossible value")
    return point._replace(ratios=checked)


def _rule(row: Sequence[Any]) -> Rule:
    fields = dict(zip(_RULE, row, strict=True))
    evidence = _point(fields[name] for name in _POINT)
    return Rule(**{name: fields[name] for name in _BOUNDS}, evidence=evidence)
