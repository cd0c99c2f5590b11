"""The store: one SQLite file. The SQL of its tables is here and in schema.sql."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from tuner.domain.records import (
    PART,
    Breakdown,
    Cell,
    CellKey,
    CellSummary,
    Features,
    Launch,
    Probe,
    ProbeKey,
    ProbeLaunch,
    Product,
    Soak,
    System,
)
from tuner.domain.tables import Point, Provenance, Rule, Soaked, Table
from tuner.store.database import APPLICATION_ID, VERSION, Database, MissingStoreError, StoreError

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "APPLICATION_ID",
    "VERSION",
    "CellRow",
    "MissingStoreError",
    "Store",
    "StoreError",
    "cell_of",
    "cell_row",
]

_CELL = (*CellKey._fields, *Features._fields, *CellSummary._fields, "parts", "rounds", "samples")
_OVERSUBSCRIBED = CellKey._fields.index("oversubscribed")
_POINT_OVERSUBSCRIBED = Point._fields.index("oversubscribed")
_POINT_RATIOS = Point._fields.index("ratios")
_PRODUCT = (*CellKey._fields, *Product._fields[1:])
_PROBE = (*ProbeLaunch._fields, *ProbeKey._fields, "samples")
_OVERLAP = (*ProbeLaunch._fields, *Breakdown._fields)
_SOAK = (*ProbeLaunch._fields, *Soak._fields)
_CASE = CellKey._fields[: CellKey._fields.index("size_bytes")]
_RULE = (*Rule._fields[:-1], *(name for name in Point._fields if name not in Rule._fields))

CellRow = tuple[Any, ...]
"""A cell with its summary, flat, and so quick to pass between processes."""


class Store(Database):
    """An open store with its tables. Use it as a context manager, or close it."""

    # ---- Writing ----

    def put_launch(self, system: System, launch: Launch) -> None:
        """Add a launch and its system; replace what is kept of the same launch."""
        row = {"id": system.id, **asdict(system)}
        self._insert("system", row, [list(row.values())])
        row = asdict(launch)
        self._insert("launch", row, [list(row.values())])

    def put_cells(self, rows: Iterable[CellRow]) -> None:
        """Add cells; replace those of the same key."""
        self._insert("cell", _CELL, rows)

    def put_products(self, products: Iterable[Product]) -> None:
        """Add what launches of spmv measured beside whole products."""
        rows = ((*product.key, *product[1:]) for product in products)
        self._insert("product", _PRODUCT, rows)

    def put_probes(self, where: ProbeLaunch, probes: Iterable[Probe]) -> None:
        """Add what a launch of probes measured."""
        rows = ((*where, *probe.key, probe.samples_s.tobytes()) for probe in probes)
        self._insert("probe", _PROBE, rows)

    def put_overlap(self, where: ProbeLaunch, breakdowns: Iterable[Breakdown]) -> None:
        """Add what a launch of overlap measured."""
        self._insert("overlap", _OVERLAP, ((*where, *each) for each in breakdowns))

    def put_soaks(self, where: ProbeLaunch, soaks: Iterable[Soak]) -> None:
        """Add the results of the methods that a launch soaked."""
        self._insert("soak", _SOAK, ((*where, *each) for each in soaks))

    def delete_of_launch(self, launch: int) -> None:
        """Delete what a launch has beside cells: of products, by probes, of overlap, soaks."""
        for name in ("product", "probe", "overlap", "soak"):
            self._execute(f"DELETE FROM {name} WHERE launch = ?", [launch])  # noqa: S608

    def put_model(self, system: str, parameters: str) -> None:
        """Replace a system's fitted parameters, which are JSON."""
        self._insert("model", ("system", "parameters"), [(system, parameters)])

    def delete_cell(self, key: CellKey) -> None:
        """Delete a cell, if there is one."""
        self._execute(f"DELETE FROM cell WHERE {_where(CellKey._fields)}", key)  # noqa: S608

    def put_table(self, table: Table) -> None:
        """Replace a system's table."""
        system = table.provenance.system
        for name in ("rule", "point", "tuned"):
            self._execute(f"DELETE FROM {name} WHERE system = ?", [system])  # noqa: S608
        provenance = json.dumps(asdict(table.provenance))
        self._insert("tuned", ("system", "provenance"), [(system, provenance)])
        points = ((system, *_point_row(point)) for point in table.points)
        self._insert("point", ("system", *Point._fields), points)
        rules = []
        for rank, rule in enumerate(table.rules):
            evidence = dict(zip(Point._fields, _point_row(rule.evidence), strict=True))
            fields = evidence | rule._asdict()
            rules.append((system, rank, *(fields[name] for name in _RULE)))
        self._insert("rule", ("system", "rank", *_RULE), rules)

    def put_decisions(self, system: str, campaign: str, points: Iterable[Point]) -> None:
        """Replace what a campaign alone decides."""
        key = (system, campaign)
        self._execute("DELETE FROM decision WHERE system = ? AND campaign = ?", key)
        rows = ((system, *_point_row(point)) for point in points)
        self._insert("decision", ("system", *Point._fields), rows)
        self._execute("UPDATE launch SET decided = 1 WHERE system = ? AND campaign = ?", key)

    # ---- Reading ----

    def launches(self) -> dict[int, Launch]:
        """Return every launch by its id."""
        names = ", ".join(f'"{field.name}"' for field in fields(Launch))
        rows = self._query(f"SELECT {names} FROM launch ORDER BY id")  # noqa: S608
        return {row[0]: Launch(*row) for row in rows}

    def systems(self) -> pd.DataFrame:
        """Return one row per system: `system`, its description, and what the store has of it."""
        return self._frame(
            """
            SELECT system.id AS system, name, environment, mpi_library, mpi_standard, compiler,
                   cpu_model, cores, count(DISTINCT campaign) AS campaigns,
                   count(*) AS launches, sum(samples) AS samples,
                   min(date) AS first_date, max(date) AS last_date
            FROM system JOIN launch ON launch.system = system.id
            GROUP BY system.id ORDER BY system.id
            """
        )

    def campaigns(self, system: str | None = None) -> pd.DataFrame:
        """Return one row per campaign of a system, or of all; `complete` counts launches.

        `executions` are those of soaks, which have no samples.
        """
        where, values = _filter(system=system)
        return self._frame(
            f"""
            SELECT system, campaign, count(*) AS launches, sum(complete) AS complete,
                   sum(samples) AS samples, min(date) AS first_date, max(date) AS last_date,
                   max("commit") AS "commit",
                   (SELECT coalesce(sum(executions), 0) FROM soak
                    WHERE soak.system = launch.system AND soak.campaign = launch.campaign)
                   AS executions
            FROM launch WHERE {where} GROUP BY system, campaign ORDER BY system, campaign
            """,  # noqa: S608
            values,
        )

    def systems_with_cells(self) -> list[str]:
        """Return the systems that measured methods; others have probes."""
        rows = self._query(
            "SELECT id FROM system WHERE EXISTS (SELECT 1 FROM cell WHERE system = id) ORDER BY id"
        )
        return [row[0] for row in rows]

    def campaigns_with_cells(self, system: str, operation: str | None = None) -> list[str]:
        """Return a system's campaigns that measured an operation's or any methods, newest first."""
        where, values = _filter(system=system, operation=operation)
        rows = self._query(
            f"""
            SELECT campaign
            FROM (
              SELECT campaign, max(date) AS last_date FROM launch WHERE system = ? GROUP BY campaign
            ) AS measured
            WHERE EXISTS (SELECT 1 FROM cell WHERE {where} AND campaign = measured.campaign)
            ORDER BY last_date DESC, campaign DESC
            """,  # noqa: S608
            [system, *values],
        )
        return [row[0] for row in rows]

    def cases(self, system: str, campaign: str) -> pd.DataFrame:
        """Return one row per case of a campaign: what its cells share but size and method."""
        columns = ", ".join(_CASE)
        return self._frame(
            f"SELECT DISTINCT {columns} FROM cell "  # noqa: S608
            f"WHERE system = ? AND campaign = ? ORDER BY {columns}",
            [system, campaign],
        )

    def cells(
        self,
        system: str | None = None,
        campaign: str | None = None,
        operation: str | None = None,
        pattern: str | None = None,
        procs: int | None = None,
    ) -> pd.DataFrame:
        """Return one row per cell, all of its columns but the blobs, in the order of the key."""
        where, values = _filter(
            system=system, campaign=campaign, operation=operation, pattern=pattern, procs=procs
        )
        columns = ", ".join(_CELL[:-3])
        order = ", ".join(CellKey._fields)
        return self._frame(
            f"SELECT {columns} FROM cell WHERE {where} ORDER BY {order}",  # noqa: S608
            values,
        )

    def steadiness(self, system: str, campaign: str) -> pd.DataFrame:
        """Return one row per cell: its place, `n`, `canary_median_s`, `above_2_medians`, `late`."""
        return self._frame(
            "SELECT operation, procs, nodes, ppn, sync, oversubscribed, "
            "n, canary_median_s, above_2_medians, late FROM cell "
            "WHERE system = ? AND campaign = ? ORDER BY procs, nodes",
            [system, campaign],
        )

    def contents(self, prefix: Sequence[str | int], samples: bool = True) -> list[Cell]:
        """Return the cells whose key begins with the given values, with their samples.

        Without samples, only the summaries of launches are read: a tenth of the bytes.
        """
        where = _where(CellKey._fields[: len(prefix)])
        columns = ", ".join(_CELL if samples else (*_CELL[:-2], "x''", "x''"))
        rows = self._query(
            f"SELECT {columns} FROM cell WHERE {where} "  # noqa: S608
            f"ORDER BY {', '.join(CellKey._fields)}",
            prefix,
        )
        return [cell_of(row) for row in rows]

    def samples(self, key: CellKey) -> NDArray[np.float32]:
        """Return a cell's samples in seconds, launch after launch; none when there is no cell."""
        rows = self._query(
            f"SELECT samples FROM cell WHERE {_where(CellKey._fields)}",  # noqa: S608
            key,
        )
        return np.frombuffer(rows[0][0] if rows else b"", np.float32)

    def products(self, system: str, campaign: str | None = None) -> pd.DataFrame:
        """Return medians of `communication_s` and `local_s`, a row per cell of spmv and launch."""
        where, values = _filter(system=system, campaign=campaign)
        columns = ", ".join(_PRODUCT)
        return self._frame(
            f"SELECT {columns} FROM product WHERE {where} ORDER BY {columns}",  # noqa: S608
            values,
        )

    def probes(
        self, system: str, campaign: str | None = None
    ) -> dict[ProbeLaunch, dict[ProbeKey, NDArray[np.float32]]]:
        """Return the samples in seconds of all probes of a system or campaign, launch by launch."""
        where, values = _filter(system=system, campaign=campaign)
        columns = ", ".join(_PROBE)
        split = len(ProbeLaunch._fields)
        found: dict[ProbeLaunch, dict[ProbeKey, NDArray[np.float32]]] = {}
        for row in self._query(
            f"SELECT {columns} FROM probe WHERE {where} ORDER BY {columns}",  # noqa: S608
            values,
        ):
            launch = ProbeLaunch(*row[:split])
            launch = launch._replace(oversubscribed=bool(launch.oversubscribed))
            samples = np.frombuffer(row[-1], np.float32)
            found.setdefault(launch, {})[ProbeKey(*row[split:-1])] = samples
        return found

    def overlap(self, system: str) -> pd.DataFrame:
        """Return one row per launch, pattern, method and amount of computation of overlap."""
        columns = ", ".join(_OVERLAP)
        return self._frame(
            f"SELECT {columns} FROM overlap WHERE system = ? ORDER BY {columns}",  # noqa: S608
            [system],
        )

    def soaks(self, system: str) -> pd.DataFrame:
        """Return one row per soak, by date, with the `date` and the `commit` of its launch."""
        columns = ", ".join(f"soak.{name}" for name in _SOAK)
        frame = self._frame(
            f'SELECT {columns}, date, "commit" FROM soak JOIN launch ON launch.id = launch '  # noqa: S608
            f"WHERE soak.system = ? ORDER BY date, {columns}",
            [system],
        )
        frame["passed"] = frame["passed"].astype(bool)
        return frame

    def probed(self) -> list[str]:
        """Return the systems that have probes."""
        return [row[0] for row in self._query("SELECT DISTINCT system FROM probe ORDER BY system")]

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

    def undecided(self, system: str) -> list[str]:
        """Return a system's campaigns that were never decided, or got launches since."""
        rows = self._query(
            "SELECT DISTINCT campaign FROM launch WHERE system = ? AND NOT decided", [system]
        )
        return [str(row[0]) for row in rows]

    def decisions(self, system: str, campaign: str, operation: str) -> list[Point]:
        """Return what a campaign alone decides of an operation."""
        rows = self._query(
            f"SELECT {', '.join(Point._fields)} FROM decision "  # noqa: S608
            "WHERE system = ? AND campaign = ? AND operation = ? ORDER BY rowid",
            [system, campaign, operation],
        )
        return [_point(row) for row in rows]

    def untuned(self) -> list[str]:
        """Return the systems that have no table: all, for a store that was rebuilt."""
        rows = self._query(
            "SELECT DISTINCT system FROM launch EXCEPT SELECT system FROM tuned ORDER BY system"
        )
        return [str(row[0]) for row in rows]

    def provenance(self, system: str) -> Provenance | None:
        """Return the provenance of a system's table, None when it has none."""
        rows = self._query("SELECT provenance FROM tuned WHERE system = ?", [system])
        if not rows:
            return None
        fields = json.loads(rows[0][0])
        fields["soaks"] = msgspec.convert(fields.get("soaks", []), list[Soaked])
        return Provenance(**fields)

    def table(self, system: str) -> Table | None:
        """Return the table of a system as `tune` stored it, None when it did not."""
        provenance = self.provenance(system)
        if provenance is None:
            return None
        points = self._query(
            f"SELECT {', '.join(Point._fields)} FROM point {_OF_SYSTEM}",  # noqa: S608
            [system],
        )
        rules = self._query(
            f"SELECT {', '.join(_RULE)} FROM rule WHERE system = ? ORDER BY rank",  # noqa: S608
            [system],
        )
        return Table(
            provenance,
            [_rule(row) for row in rules],
            [_point(row) for row in points],
        )


_OF_SYSTEM = "WHERE system = ? ORDER BY operation, nodes, ppn, mmax, mavg, bytes"


def _where(columns: Iterable[str]) -> str:
    return " AND ".join(f"{column} = ?" for column in columns) or "TRUE"


def _filter(**equal: str | int | None) -> tuple[str, list[str | int]]:
    """Return a condition and its values; a value of None sets no condition."""
    given = {column: value for column, value in equal.items() if value is not None}
    return _where(given), list(given.values())


def cell_row(cell: Cell, summary: CellSummary) -> CellRow:
    """Return a cell in the form of the store."""
    blobs = (cell.parts.tobytes(), cell.rounds.tobytes(), cell.samples_s.tobytes())
    return (*cell.key, *cell.features, *summary, *blobs)


def cell_of(row: CellRow) -> Cell:
    """Return the cell that a row holds."""
    key = list(row[: len(CellKey._fields)])
    key[_OVERSUBSCRIBED] = bool(key[_OVERSUBSCRIBED])
    *features, parts, rounds, samples = row[len(CellKey._fields) :]
    return Cell(
        CellKey(*key),
        Features(*features[: len(Features._fields)]),
        np.frombuffer(parts, PART),
        np.frombuffer(rounds, np.uint16),
        np.frombuffer(samples, np.float32),
    )


def _point_row(point: Point) -> list[Any]:
    fields: list[Any] = list(point)
    fields[_POINT_RATIOS] = json.dumps(dict(point.ratios))
    return fields


def _point(row: Iterable[Any]) -> Point:
    fields = list(row)
    fields[_POINT_OVERSUBSCRIBED] = bool(fields[_POINT_OVERSUBSCRIBED])
    fields[_POINT_RATIOS] = tuple(json.loads(fields[_POINT_RATIOS]).items())
    return Point._make(fields)


def _rule(row: Sequence[Any]) -> Rule:
    fields = dict(zip(_RULE, row, strict=True))
    evidence = _point(fields[name] for name in Point._fields)
    return Rule(**{name: fields[name] for name in Rule._fields[:-1]}, evidence=evidence)
