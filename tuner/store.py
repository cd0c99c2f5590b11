"""The store: one SQLite file. All SQL is here and in schema.sql.

Writers work in transactions, so that a killed one leaves the store as it was. Readers open it
read-only, with attaching disabled.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, fields
from importlib import resources
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tuner.errors import SwitchpointError
from tuner.places import has_locks
from tuner.records import (
    PART,
    Breakdown,
    Cell,
    CellKey,
    CellSummary,
    Features,
    Launch,
    Point,
    Probe,
    ProbeKey,
    ProbeLaunch,
    Product,
    Provenance,
    Rule,
    System,
    Table,
)

if TYPE_CHECKING:
    import pandas as pd

APPLICATION_ID = 0x53575054  # "SWPT"
VERSION = 5
BUSY_TIMEOUT_S = 30

_CELL = (*CellKey._fields, *Features._fields, *CellSummary._fields, "parts", "rounds", "samples")
_PRODUCT = (*CellKey._fields, *Product._fields[1:])
_PROBE = (*ProbeLaunch._fields, *ProbeKey._fields, "samples")
_OVERLAP = (*ProbeLaunch._fields, *Breakdown._fields)
_CASE = CellKey._fields[: CellKey._fields.index("size_bytes")]
_RULE = (*Rule._fields[:-1], *(name for name in Point._fields if name not in Rule._fields))


CellRow = tuple[Any, ...]
"""A cell with its summary, flat: quick to hand from process to process."""


class StoreError(SwitchpointError):
    """The store cannot be used; the text says why and what to do."""


class MissingStoreError(StoreError):
    """There is no store at the path."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"{path}: no store there; make it with `switchpoint ingest`")


class Store:
    """An open store. Use as a context manager, or close it."""

    def __init__(self, path: Path, connection: sqlite3.Connection) -> None:
        self.path = path
        self._connection = connection

    @classmethod
    def open(
        cls, path: Path, readonly: bool = False, busy_timeout_s: float = BUSY_TIMEOUT_S
    ) -> Store:
        """Opens a store; a writer makes it when it is missing, and brings an older one up to date.

        busy_timeout_s: how long to wait for another process's lock. Raises MissingStoreError or
        StoreError: no store, older (readers only), newer, damaged, or locked.
        """
        if readonly:
            return cls._open_reader(path, busy_timeout_s)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(f"{path}: cannot be opened for writing: {error}") from error
        store = cls(path, _connect(path, "rwc", busy_timeout_s))
        try:
            with store.transaction():
                store._bring_up_to_date()
        except BaseException:
            store.close()
            raise
        return store

    @classmethod
    def _open_reader(cls, path: Path, busy_timeout_s: float) -> Store:
        if not path.is_file():
            raise MissingStoreError(path)
        store = cls(path, _connect(path, "ro", busy_timeout_s))
        store._connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
        try:
            store._execute("PRAGMA trusted_schema = OFF")
            store._take_back_unfinished()
            version = store._version()
            if version < VERSION:
                raise StoreError(
                    f"{path}: of the older version {version}; run `switchpoint ingest`, which "
                    "brings it up to date"
                )
        except BaseException:
            store.close()
            raise
        return store

    def _take_back_unfinished(self) -> None:
        """Undoes what a killed writer left half done: a reader could not read beside its journal.

        Raises StoreError where the store may not be written either.
        """
        try:
            self._connection.execute("PRAGMA application_id")
        except sqlite3.Error as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_READONLY_ROLLBACK:
                raise self._explained(error) from error
            writer = Store(self.path, _connect(self.path, "rw"))
            try:
                with writer.transaction():
                    pass  # whoever takes the lock for writing rolls back first
            finally:
                writer.close()

    def close(self) -> None:
        """Closes the file; the store cannot be used any more."""
        self._connection.close()

    def __enter__(self) -> Store:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    # ---- Versions ----

    def _version(self) -> int:
        """The version of the schema. Raises StoreError for what is not a store, or a newer one."""
        ((application,),) = self._execute("PRAGMA application_id")
        ((version,),) = self._execute("PRAGMA user_version")
        if application != APPLICATION_ID:
            if self.path.stat().st_size == 0:  # a first ingest is on its way, or was killed
                raise MissingStoreError(self.path)
            raise StoreError(f"{self.path}: not a Switchpoint store; name another file")
        if version > VERSION:
            raise StoreError(
                f"{self.path}: of version {version}, newer than {VERSION}, which this Switchpoint "
                "knows; use the newer Switchpoint, or delete the file and run `switchpoint ingest`"
            )
        return int(version)

    def _bring_up_to_date(self) -> None:
        schema = resources.files("tuner").joinpath("schema.sql").read_text()
        versions = schema.split("\n-- version ")[1:]
        before = self._version() if self.path.stat().st_size else 0
        if before == VERSION:
            return
        for version in versions[before:]:
            self._run(version.partition("\n")[2])
        self._execute(f"PRAGMA application_id = {APPLICATION_ID}")
        self._execute(f"PRAGMA user_version = {VERSION}")

    def _run(self, script: str) -> None:
        """Executes the statements of a script inside the current transaction."""
        statement = ""
        for line in script.splitlines(keepends=True):
            statement += line
            if sqlite3.complete_statement(statement):
                self._execute(statement)
                statement = ""

    # ---- Statements ----

    def _execute(self, sql: str, values: Sequence[Any] = ()) -> sqlite3.Cursor:
        try:
            return self._connection.execute(sql, values)
        except sqlite3.Error as error:
            raise self._explained(error) from error

    def _query(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        return self._fetch(sql, values)[1]

    def _fetch(self, sql: str, values: Sequence[Any]) -> tuple[list[str], list[tuple[Any, ...]]]:
        """Names of the columns, and the rows."""
        cursor = self._execute(sql, values)
        try:
            return [name for name, *_ in cursor.description], cursor.fetchall()
        except sqlite3.Error as error:
            raise self._explained(error) from error

    def _insert(self, table: str, columns: Iterable[str], rows: Iterable[Sequence[Any]]) -> None:
        """Inserts rows; a row of the same key is replaced."""
        names = ", ".join(f'"{column}"' for column in columns)
        marks = ", ".join("?" for _ in columns)
        sql = f"INSERT OR REPLACE INTO {table} ({names}) VALUES ({marks})"  # noqa: S608
        try:
            self._connection.executemany(sql, rows)
        except sqlite3.Error as error:
            raise self._explained(error) from error

    def _frame(self, sql: str, values: Sequence[Any] = ()) -> pd.DataFrame:
        import pandas as pd  # here, because ingest is faster to start without it

        names, rows = self._fetch(sql, values)
        frame = pd.DataFrame.from_records(rows, columns=names)
        return frame.astype({"oversubscribed": bool} if "oversubscribed" in names else {})

    def _explained(self, error: sqlite3.Error) -> StoreError:
        lock = self.path.with_name(f"{self.path.name}.lock")
        reasons = {
            sqlite3.SQLITE_NOTADB: "not a Switchpoint store; name another file",
            sqlite3.SQLITE_CORRUPT: "damaged; delete it and run `switchpoint ingest`",
            sqlite3.SQLITE_BUSY: "locked by another process; try again"
            + f", or delete {lock} of one that was killed" * lock.exists(),
            sqlite3.SQLITE_READONLY: "cannot be written: check its permissions, and run "
            "`switchpoint ingest` again when one was cut off",
            sqlite3.SQLITE_FULL: "the disk is full",
        }
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        return StoreError(f"{self.path}: {reasons.get(code, error)}")

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing of what is written inside."""
        self._execute("BEGIN IMMEDIATE")
        try:
            yield
            self._execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise

    # ---- Writing ----

    def put_launch(self, system: System, launch: Launch) -> None:
        """Adds a launch and its system; replaces what is kept of the same launch."""
        row = {"id": system.id, **asdict(system)}
        self._insert("system", row, [list(row.values())])
        row = asdict(launch)
        self._insert("launch", row, [list(row.values())])

    def put_cells(self, rows: Iterable[CellRow]) -> None:
        """Adds cells; replaces those of the same key."""
        self._insert("cell", _CELL, rows)

    def put_products(self, products: Iterable[Product]) -> None:
        """Adds what launches of spmv measured beside whole products."""
        rows = ((*product.key, *product[1:]) for product in products)
        self._insert("product", _PRODUCT, rows)

    def put_probes(self, where: ProbeLaunch, probes: Iterable[Probe]) -> None:
        """Adds what a launch of probes measured."""
        rows = ((*where, *probe.key, probe.samples_s.tobytes()) for probe in probes)
        self._insert("probe", _PROBE, rows)

    def put_overlap(self, where: ProbeLaunch, breakdowns: Iterable[Breakdown]) -> None:
        """Adds what a launch of overlap measured."""
        self._insert("overlap", _OVERLAP, ((*where, *each) for each in breakdowns))

    def delete_of_launch(self, launch: int) -> None:
        """Forgets what a launch measured beside cells: of products, by probes, of overlap."""
        for name in ("product", "probe", "overlap"):
            self._execute(f"DELETE FROM {name} WHERE launch = ?", [launch])  # noqa: S608

    def put_model(self, system: str, parameters: str) -> None:
        """Puts a system's fitted parameters, as JSON, in the place of the earlier ones."""
        self._insert("model", ("system", "parameters"), [(system, parameters)])

    def delete_cell(self, key: CellKey) -> None:
        """Forgets a cell, if there is one."""
        self._execute(f"DELETE FROM cell WHERE {_where(CellKey._fields)}", key)  # noqa: S608

    def put_table(self, table: Table) -> None:
        """Puts a system's table in the place of its earlier one."""
        system = table.provenance.system
        for name in ("rule", "point", "tuned"):
            self._execute(f"DELETE FROM {name} WHERE system = ?", [system])  # noqa: S608
        provenance = json.dumps(asdict(table.provenance))
        self._insert("tuned", ("system", "provenance"), [(system, provenance)])
        points = ((system, *point) for point in table.points)
        self._insert("point", ("system", *Point._fields), points)
        rules = []
        for rank, rule in enumerate(table.rules):
            fields = {**rule.evidence._asdict(), **rule._asdict()}
            rules.append((system, rank, *(fields[name] for name in _RULE)))
        self._insert("rule", ("system", "rank", *_RULE), rules)

    # ---- Reading ----

    def launches(self) -> dict[int, Launch]:
        """Every launch by its id."""
        names = ", ".join(f'"{field.name}"' for field in fields(Launch))
        rows = self._query(f"SELECT {names} FROM launch ORDER BY id")  # noqa: S608
        return {row[0]: Launch(*row) for row in rows}

    def systems(self) -> pd.DataFrame:
        """One row a system: `system`, its description, and what is there of it."""
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
        """One row a campaign of a system, or of all; `complete` counts launches."""
        where, values = _filter(system=system)
        return self._frame(
            f"""
            SELECT system, campaign, count(*) AS launches, sum(complete) AS complete,
                   sum(samples) AS samples, min(date) AS first_date, max(date) AS last_date,
                   max("commit") AS "commit"
            FROM launch WHERE {where} GROUP BY system, campaign ORDER BY system, campaign
            """,  # noqa: S608
            values,
        )

    def campaigns_with_cells(self, system: str) -> list[str]:
        """The campaigns of a system that measured methods, the newest first; others have probes."""
        rows = self._query(
            """
            SELECT campaign FROM launch WHERE system = ? AND EXISTS (
              SELECT 1 FROM cell
              WHERE cell.system = launch.system AND cell.campaign = launch.campaign
            ) GROUP BY campaign ORDER BY max(date) DESC, campaign DESC
            """,
            [system],
        )
        return [row[0] for row in rows]

    def cases(self, system: str, campaign: str) -> pd.DataFrame:
        """One row a case of a campaign: what all its cells have in common but size and method."""
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
        """One row a cell, all of its columns but the blobs, in the order of the key."""
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
        """One row a cell of a campaign: `n`, `canary_median_s`, `above_2_medians`, `late`."""
        return self._frame(
            "SELECT n, canary_median_s, above_2_medians, late FROM cell "
            "WHERE system = ? AND campaign = ?",
            [system, campaign],
        )

    def contents(self, prefix: Sequence[str | int], samples: bool = True) -> list[Cell]:
        """The cells whose key begins with the given values, with their samples.

        Without samples, what launches summarised alone is read: a tenth of the bytes.
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
        """The samples of a cell in seconds, launch after launch; none when there is no cell."""
        rows = self._query(
            f"SELECT samples FROM cell WHERE {_where(CellKey._fields)}",  # noqa: S608
            key,
        )
        return np.frombuffer(rows[0][0] if rows else b"", np.float32)

    def products(self, system: str, campaign: str | None = None) -> pd.DataFrame:
        """One row a cell of spmv and launch: medians of `communication_s` and `local_s`."""
        where, values = _filter(system=system, campaign=campaign)
        columns = ", ".join(_PRODUCT)
        return self._frame(
            f"SELECT {columns} FROM product WHERE {where} ORDER BY {columns}",  # noqa: S608
            values,
        )

    def probes(
        self, system: str, campaign: str | None = None
    ) -> dict[ProbeLaunch, dict[ProbeKey, NDArray[np.float32]]]:
        """The samples in seconds of all probes of a system or campaign, launch by launch."""
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
        """One row a launch, pattern, method and amount of computation of overlap."""
        columns = ", ".join(_OVERLAP)
        return self._frame(
            f"SELECT {columns} FROM overlap WHERE system = ? ORDER BY {columns}",  # noqa: S608
            [system],
        )

    def probed(self) -> list[str]:
        """The systems that have probes."""
        return [row[0] for row in self._query("SELECT DISTINCT system FROM probe ORDER BY system")]

    def model(self, system: str) -> str | None:
        """The fitted parameters of a system as JSON, None when there are none."""
        rows = self._query("SELECT parameters FROM model WHERE system = ?", [system])
        return str(rows[0][0]) if rows else None

    def rules(self, system: str) -> pd.DataFrame:
        """The rules of a system by rank, with the weakest point of each; empty before `tune`."""
        return self._frame("SELECT * FROM rule WHERE system = ? ORDER BY rank", [system])

    def points(self, system: str) -> pd.DataFrame:
        """What was decided at each measured size of a system; empty before `tune`."""
        return self._frame(f"SELECT * FROM point {_OF_SYSTEM}", [system])  # noqa: S608

    def untuned(self) -> list[str]:
        """The systems that have no table: of a store that was rebuilt, all."""
        rows = self._query(
            "SELECT DISTINCT system FROM launch EXCEPT SELECT system FROM tuned ORDER BY system"
        )
        return [str(row[0]) for row in rows]

    def table(self, system: str) -> Table | None:
        """The table of a system as `tune` stored it, None when it did not."""
        provenance = self._query("SELECT provenance FROM tuned WHERE system = ?", [system])
        if not provenance:
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
            Provenance(**json.loads(provenance[0][0])),
            [_rule(row) for row in rules],
            [_point(dict(zip(Point._fields, row, strict=True))) for row in points],
        )


def _connect(path: Path, mode: str, busy_timeout_s: float = BUSY_TIMEOUT_S) -> sqlite3.Connection:
    """Opens the file; `mode` is of SQLite's URIs. Raises StoreError.

    Where files cannot be locked, a directory beside the store is the lock: PATH.lock.
    """
    try:
        path = path.resolve()
        locking = "" if has_locks(path.parent) else "&vfs=unix-dotfile"
        return sqlite3.connect(
            f"{path.as_uri()}?mode={mode}{locking}",
            uri=True,
            timeout=busy_timeout_s,
            isolation_level=None,
            check_same_thread=False,
        )
    except (OSError, sqlite3.Error) as error:
        what = "reading" if mode == "ro" else "writing"
        raise StoreError(f"{path}: cannot be opened for {what}: {error}") from error


_OF_SYSTEM = "WHERE system = ? ORDER BY operation, nodes, ppn, mmax, mavg, bytes"


def _where(columns: Iterable[str]) -> str:
    return " AND ".join(f"{column} = ?" for column in columns) or "TRUE"


def _filter(**equal: str | int | None) -> tuple[str, list[str | int]]:
    """A condition and its values; what is None is not asked for."""
    given = {column: value for column, value in equal.items() if value is not None}
    return _where(given), list(given.values())


def cell_row(cell: Cell, summary: CellSummary) -> CellRow:
    """A cell as the store takes it."""
    blobs = (cell.parts.tobytes(), cell.rounds.tobytes(), cell.samples_s.tobytes())
    return (*cell.key, *cell.features, *summary, *blobs)


def cell_of(row: CellRow) -> Cell:
    """The cell that a row holds."""
    key = CellKey(*row[: len(CellKey._fields)])
    *features, parts, rounds, samples = row[len(CellKey._fields) :]
    return Cell(
        key._replace(oversubscribed=bool(key.oversubscribed)),
        Features(*features[: len(Features._fields)]),
        np.frombuffer(parts, PART),
        np.frombuffer(rounds, np.uint16),
        np.frombuffer(samples, np.float32),
    )


def _point(fields: dict[str, Any]) -> Point:
    return Point(**{**fields, "oversubscribed": bool(fields["oversubscribed"])})


def _rule(row: Sequence[Any]) -> Rule:
    fields = dict(zip(_RULE, row, strict=True))
    evidence = _point({name: fields[name] for name in Point._fields})
    return Rule(**{name: fields[name] for name in Rule._fields[:-1]}, evidence=evidence)
