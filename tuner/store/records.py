"""The tables of records that are not cells: one for each kind (tuner/rawfile/kinds)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from tuner.domain.cases import ProbeLaunch
from tuner.domain.flat import columns, values
from tuner.store.database import Database, equal_to

if TYPE_CHECKING:
    import pandas as pd


class Records(Database):
    """The records of launches that are not cells."""

    def put_records(self, table: str, where: ProbeLaunch, records: Sequence[NamedTuple]) -> None:
        """Add the records of a launch."""
        if records:
            names = (*columns(ProbeLaunch), *columns(type(records[0])))
            rows = ((*values(where), *values(record)) for record in records)
            self._insert(table, names, rows)

    def delete_of_launch(self, launch: int) -> None:
        """Delete the records of a launch."""
        tables = self._query(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND EXISTS "
            "(SELECT 1 FROM pragma_table_info(sqlite_master.name) AS its WHERE its.name = 'launch')"
        )
        for (name,) in tables:
            self._execute(f"DELETE FROM {name} WHERE launch = ?", [launch])  # noqa: S608

    def count_of_launch(self, table: str, launch: int) -> int:
        """Return how many records of a launch a table has."""
        ((count,),) = self._query(f"SELECT count(*) FROM {table} WHERE launch = ?", [launch])  # noqa: S608
        return int(count)

    def records(self, table: str, system: str, campaign: str | None = None) -> pd.DataFrame:
        """Return a system's or campaign's records by key, with launch `date` and `commit`."""
        where, given = equal_to(**{f"{table}.system": system, f"{table}.campaign": campaign})
        key = self._query("SELECT name FROM pragma_table_info(?) WHERE pk ORDER BY pk", [table])
        order = ", ".join(f"{table}.{name}" for (name,) in key)
        return self._frame(
            f'SELECT {table}.*, date, "commit" FROM {table} '  # noqa: S608
            f"JOIN launch ON launch.id = {table}.launch AND launch.system = {table}.system "
            f"AND launch.campaign = {table}.campaign WHERE {where} ORDER BY {order}",
            given,
        )
