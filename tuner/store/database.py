"""The file of the store: opened, brought up to date by migrations, locked, written and read.

Writers work in transactions, so that a killed one leaves the store as it was. Readers open it
read-only, with attaching disabled. Schemas with views, triggers or expressions are refused: in a
foreign store these could run without end.
"""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from functools import cache
from importlib import resources
from pathlib import Path
from shlex import quote
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from tuner.errors import SwitchpointError
from tuner.files import one_line, open_file, require_regular
from tuner.paths import database_path, has_locks
from tuner.store.values import TRUTHS, column

if TYPE_CHECKING:
    import pandas as pd

APPLICATION_ID = 0x53575054  # "SWPT"
VERSION = 12
BUSY_TIMEOUT_S = 30
_REMADE = "delete it and run `switchpoint ingest`"
_NAME = r'(?:\w+|"\w+")'
_NAMES = rf"\( ?{_NAME}(?:, ?{_NAME})* ?\)"
_COLUMN = (
    rf"{_NAME}(?: (?:BLOB|INTEGER|REAL|TEXT))?(?: PRIMARY KEY)?(?: NOT NULL)?"
    rf"(?: DEFAULT (?:0|'{{}}'))?(?: REFERENCES {_NAME} ?{_NAMES})?"
)
_PART = rf"(?:{_COLUMN}|PRIMARY KEY ?{_NAMES})"
_PLAIN = re.compile(
    rf"CREATE TABLE {_NAME} ?\( ?{_PART}(?: ?, ?{_PART})* ?\)(?: WITHOUT ROWID)?"
    rf"|CREATE INDEX {_NAME} ON {_NAME} ?{_NAMES}".encode(),
    re.IGNORECASE,
)
"""The statements of a schema that computes nothing, as stores of all versions have."""

_TABLES_AND_INDEXES = """
SELECT its.name, group_concat(field.name || ' ' || field.type || ' ' || field.pk)
FROM sqlite_master AS its JOIN pragma_table_info(its.name) AS field GROUP BY its.name
UNION ALL
SELECT name, sql FROM sqlite_master WHERE type = 'index' AND sql IS NOT NULL
"""
"""Names with the columns of a table, or the statement of an index."""

_ENDS_WITH_NAME = bytes.fromhex("d9d505f920a163d7")
"""The end of a journal that names another; SQLite deletes the file of that name with it."""


class StoreError(SwitchpointError):
    """Error raised when the store cannot be used; the message says why and what to do."""


class MissingStoreError(StoreError):
    """Error raised when there is no store at the path, or the store is still empty."""

    def __init__(self, path: Path, found: str = "no store there") -> None:
        super().__init__(
            f"{path}: {found}; make it with `switchpoint run`, or `switchpoint ingest`"
        )


class Database:
    """An open file. Use as a context manager, or close it.

    `inode` is that of a reader's file, which stays open where another file takes its place.
    """

    def __init__(self, path: Path, connection: sqlite3.Connection, inode: int = 0) -> None:
        self.path = path
        self.inode = inode
        self._connection = connection

    @classmethod
    def open(
        cls, path: Path, readonly: bool = False, busy_timeout_s: float = BUSY_TIMEOUT_S
    ) -> Self:
        """Open a store; a writer makes it when it is missing, and brings an older one up to date.

        busy_timeout_s: how long to wait for another process's lock. Raise MissingStoreError or
        StoreError: no store, older (readers only), newer, damaged, or locked.
        """
        if readonly:
            return cls._open_reader(path, busy_timeout_s)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            if path.exists():
                require_regular(path)
        except OSError as error:
            raise StoreError(f"{path}: cannot be opened for writing: {error.strerror}") from error
        store = cls(path, _connect(path, "rwc", busy_timeout_s))
        try:
            with store.transaction():
                store._bring_up_to_date()
        except BaseException:
            store.close()
            raise
        return store

    @classmethod
    def _open_reader(cls, path: Path, busy_timeout_s: float) -> Self:
        try:
            if not path.is_file():
                raise MissingStoreError(path)
            inode = path.stat().st_ino
        except OSError as error:
            raise StoreError(f"{path}: cannot be read: {error.strerror}") from error
        store = cls(path, _connect(path, "ro", busy_timeout_s), inode)
        store._connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
        try:
            with store.moment():
                version = store._version()
                if version == 0:  # a first ingest is on its way, or was killed
                    raise MissingStoreError(path, "an empty store")
                if version < VERSION:
                    named = "" if path == database_path() else f" --database {quote(str(path))}"
                    raise StoreError(
                        f"{path}: older version {version}; run `switchpoint tune{named}` to bring "
                        "it up to date"
                    )
                store._require_complete()
        except BaseException:
            store.close()
            raise
        return store

    def close(self) -> None:
        """Close the file; the store cannot be used any more."""
        self._connection.close()

    def __enter__(self) -> Self:
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
        """Return the version of the schema, 0 for an empty database; within a moment.

        Raise StoreError for a file that is not a store, a newer one, or one whose schema computes.
        """
        # Not from pragma_user_version: a foreign store may have a view of that name.
        ((application,),) = self._query("PRAGMA application_id")
        ((version,),) = self._query("PRAGMA user_version")
        ((schema,),) = self._query("SELECT count(*) FROM sqlite_master")
        one_byte = self.path.stat().st_size == 1  # SQLite takes it for empty
        if (application, version, schema) == (0, 0, 0) and not one_byte:
            return 0
        if application != APPLICATION_ID:
            raise StoreError(f"{self.path}: not a Switchpoint store; name another file")
        if version > VERSION:
            raise StoreError(
                f"{self.path}: version {version} is newer than {VERSION}, which this Switchpoint "
                "reads; use the newer Switchpoint, or delete the file and run `switchpoint ingest`"
            )
        if version < 1:
            raise StoreError(f"{self.path}: damaged: version {version}; {_REMADE}")
        self._require_plain()
        return int(version)

    def _require_plain(self) -> None:
        rows = self._query(
            "SELECT CAST(name AS TEXT), CAST(sql AS BLOB) FROM sqlite_master WHERE sql IS NOT NULL"
        )
        for name, sql in rows:
            words = re.sub(rb"--.*", b"", sql).split()
            if not _PLAIN.fullmatch(b" ".join(words)):
                raise StoreError(
                    f"{self.path}: not as Switchpoint made it: {one_line(str(name))} is not a "
                    "plain table or index; delete the file and run `switchpoint ingest`"
                )

    def _require_complete(self) -> None:
        """Raise StoreError where a table or an index of the schema is missing, or is another.

        Without an index, reading a foreign store could take much longer than it is large.
        """
        if lacking := _complete() - set(self._query(_TABLES_AND_INDEXES)):
            name, _ = min(lacking)
            raise StoreError(
                f"{self.path}: damaged: {name} is missing or has other columns; {_REMADE}"
            )

    def _bring_up_to_date(self) -> None:
        before = self._version()
        if before != VERSION:
            lacking = [f"migrations/{version}.sql" for version in range(before + 1, VERSION + 1)]
            for name in lacking if before else ["schema.sql"]:
                self._run(_script(name))
            self._execute(f"PRAGMA application_id = {APPLICATION_ID}")
            self._execute(f"PRAGMA user_version = {VERSION}")
        self._require_complete()

    def _run(self, script: str) -> None:
        """Execute the statements of a script inside the current transaction."""
        statement = ""
        for line in script.splitlines(keepends=True):
            statement += line
            if sqlite3.complete_statement(statement):
                self._execute(statement)
                statement = ""

    # ---- Statements ----

    def _execute(self, sql: str, values: Sequence[Any] = ()) -> sqlite3.Cursor:
        try:
            try:
                return self._connection.execute(sql, values)
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode != sqlite3.SQLITE_READONLY_ROLLBACK:
                    raise
                self._take_back_unfinished()
                return self._connection.execute(sql, values)
        except sqlite3.Error as error:
            raise self._explained(error) from error

    def _take_back_unfinished(self) -> None:
        """Undo what a killed writer left half done: a reader could not read beside its journal.

        Raise StoreError or sqlite3.Error where the store may not be written either.
        """
        with closing(_connect(self.path, "rw")) as writer:
            writer.execute("PRAGMA application_id")  # whoever may write rolls back first

    def _query(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        return self._fetch(sql, values)[1]

    def _fetch(self, sql: str, values: Sequence[Any]) -> tuple[list[str], list[tuple[Any, ...]]]:
        """Return the names of the columns, and the rows, with values that they may have."""
        with closing(self._execute(sql, values)) as cursor:  # else an error would keep a lock
            names = [name for name, *_ in cursor.description]
            try:
                rows = cursor.fetchall()
            except sqlite3.Error as error:
                raise self._explained(error) from error
        tables = re.findall(r"\b(?:FROM|JOIN) (\w+)", sql)
        with self.decoding():
            for name, its in zip(names, zip(*rows, strict=True), strict=False):  # none without rows
                if known := column(tables, name):
                    known.check(its)
        return names, rows

    def _insert(self, table: str, columns: Iterable[str], rows: Iterable[Sequence[Any]]) -> None:
        """Insert rows; a row of the same key is replaced."""
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
        for name in TRUTHS & set(names):
            frame[name] = frame[name].astype(bool)
        return frame

    def _explained(self, error: sqlite3.Error) -> StoreError:
        lock = Path(f"{os.path.realpath(self.path)}.lock")
        reasons = {
            sqlite3.SQLITE_ERROR: f"damaged: {one_line(str(error))}; {_REMADE}",
            sqlite3.SQLITE_NOTADB: "not a Switchpoint store; name another file",
            sqlite3.SQLITE_CORRUPT: f"damaged; {_REMADE}",
            sqlite3.SQLITE_BUSY: "locked by another process; try again"
            + f", or delete {lock} of one that was killed" * lock.exists(),
            sqlite3.SQLITE_READONLY: "cannot be written: check its permissions, and run "
            "`switchpoint ingest` again if one was interrupted",
            sqlite3.SQLITE_FULL: "the disk is full",
        }
        # Python's own errors have no code: a text is not UTF-8.
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF
        return StoreError(f"{self.path}: {reasons.get(code, error)}")

    @contextmanager
    def decoding(self) -> Iterator[None]:
        """Raise StoreError where what was read cannot be decoded, as in a damaged store."""
        try:
            yield
        except (ValueError, TypeError, LookupError, RecursionError) as error:
            raise StoreError(f"{self.path}: damaged: {one_line(str(error))}; {_REMADE}") from error

    @contextmanager
    def moment(self) -> Iterator[None]:
        """Read all that is read inside as it is at one moment; not within a transaction."""
        with self._within("BEGIN"):
            yield

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Commit everything that is written inside, or nothing."""
        with self._within("BEGIN IMMEDIATE"):
            yield

    @contextmanager
    def _within(self, begin: str) -> Iterator[None]:
        self._execute(begin)
        try:
            yield
            self._execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise


def equal_to(**equal: str | int | None) -> tuple[str, list[str | int]]:
    """Return a condition on columns and its values; a value of None sets no condition."""
    given = {column: value for column, value in equal.items() if value is not None}
    return " AND ".join(f"{column} = ?" for column in given) or "TRUE", list(given.values())


def _script(name: str) -> str:
    return resources.files("tuner.store").joinpath(name).read_text()


@cache
def _complete() -> set[tuple[str, str]]:
    """Return the tables and indexes of the schema."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(_script("schema.sql"))
        return set(connection.execute(_TABLES_AND_INDEXES))


def _connect(path: Path, mode: str, busy_timeout_s: float = BUSY_TIMEOUT_S) -> sqlite3.Connection:
    """Open the file; `mode` is that of SQLite's URIs. Raise StoreError.

    Where files cannot be locked, a directory beside the store is the lock: PATH.lock, of a
    symbolic link's target. A reader that cannot make it opens the store without locks.
    """
    try:
        _require_own_journal(path)
        target = Path(os.path.realpath(path))  # whose directory all agree on
        locking = ""
        if not has_locks(target):
            alone = mode == "ro" and not os.access(target.parent, os.W_OK)
            locking = "&nolock=1" if alone else "&vfs=unix-dotfile"
        connection = sqlite3.connect(
            f"{target.as_uri()}?mode={mode}{locking}",
            uri=True,
            timeout=busy_timeout_s,
            isolation_level=None,
            check_same_thread=False,
        )
        connection.execute("PRAGMA trusted_schema = OFF")
        return connection
    except (OSError, sqlite3.Error) as error:
        what = "reading" if mode == "ro" else "writing"
        raise StoreError(f"{path}: cannot be opened for {what}: {error}") from error


def _require_own_journal(path: Path) -> None:
    """Raise StoreError for a journal that names a second file: no writer of ours has a second."""
    journal = Path(f"{os.path.realpath(path)}-journal")
    try:
        with open_file(journal) as file:
            file.seek(max(file.seek(0, os.SEEK_END) - len(_ENDS_WITH_NAME), 0))
            is_own = file.read() != _ENDS_WITH_NAME
    except FileNotFoundError:
        return
    if not is_own:
        raise StoreError(
            f"{path}: not as Switchpoint made it: {journal} would delete another file; delete both "
            "and run `switchpoint ingest`"
        )
