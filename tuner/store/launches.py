"""The tables of systems and launches."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

from tuner.domain.records import Launch, System
from tuner.files import one_line
from tuner.store.database import Database, equal_to

if TYPE_CHECKING:
    import pandas as pd

_TEXTS = [field.name for field in fields(System) if field.name != "cores"]
"""Stores of earlier versions have them as raw files did: of any length."""


class Launches(Database):
    """Systems, their campaigns, and the launches of these.

    Integers are added by `total`: `sum` fails where they leave 64 bits.
    """

    def put_launch(self, system: System, launch: Launch) -> None:
        """Add a launch and its system; replace an earlier record of the same launch."""
        row = {"id": system.id, **asdict(system)}
        self._insert("system", row, [list(row.values())])
        row = asdict(launch)
        self._insert("launch", row, [list(row.values())])

    def launches(self, system: str | None = None) -> dict[int, Launch]:
        """Return the launches of a system, or of all, by their ids."""
        names = ", ".join(f'"{field.name}"' for field in fields(Launch))
        where, values = equal_to(system=system)
        sql = f"SELECT {names} FROM launch WHERE {where} ORDER BY id"  # noqa: S608
        rows = self._query(sql, values)
        return {row[0]: Launch(*row) for row in rows}

    def systems(self) -> pd.DataFrame:
        """Return one row per system: `system`, its description, and counts of its contents."""
        frame = self._frame(
            """
            SELECT system.id AS system, name, environment, mpi_library, mpi_standard, compiler,
                   cpu_model, cores, count(DISTINCT campaign) AS campaigns,
                   count(*) AS launches, CAST(total(samples) AS INTEGER) AS samples,
                   min(date) AS first_date, max(date) AS last_date
            FROM system JOIN launch ON launch.system = system.id
            GROUP BY system.id ORDER BY system.id
            """
        )
        for name in _TEXTS:
            frame[name] = frame[name].map(one_line)
        return frame

    def named(self, name: str, environment: str, with_virtual: bool = False) -> list[str]:
        """Return the systems of a name and an environment, the last measured one last.

        With `with_virtual`, also those of virtual nodes there, whose names have a placement too.
        """
        rows = self.systems().sort_values("last_date")
        names = rows["name"].str.split("+").str[0] if with_virtual else rows["name"]
        return list(rows["system"][(names == name) & (rows["environment"] == environment)])

    def campaigns(self, system: str | None = None) -> pd.DataFrame:
        """Return one row per campaign of a system, or of all; `complete` counts launches.

        `executions` are those of soaks, which have no samples.
        """
        where, values = equal_to(system=system)
        frame = self._frame(
            f"""
            SELECT system, campaign, count(*) AS launches,
                   CAST(total(complete) AS INTEGER) AS complete,
                   CAST(total(samples) AS INTEGER) AS samples,
                   min(date) AS first_date, max(date) AS last_date,
                   (SELECT "commit" FROM launch AS its
                    WHERE its.system = launch.system AND its.campaign = launch.campaign
                    ORDER BY date DESC, id DESC LIMIT 1) AS "commit",
                   (SELECT CAST(total(executions) AS INTEGER) FROM soak
                    WHERE soak.system = launch.system AND soak.campaign = launch.campaign)
                   AS executions
            FROM launch WHERE {where} GROUP BY system, campaign ORDER BY system, campaign
            """,  # noqa: S608
            values,
        )
        frame["commit"] = frame["commit"].map(one_line)  # older stores have it as long as it came
        return frame

    def loads(self, system: str) -> dict[str, tuple[float, float]]:
        """Return the least and the most load average before the launches of each campaign."""
        rows = self._query(
            "SELECT campaign, min(json_extract(header, '$.load[0]')), "
            "max(json_extract(header, '$.load[0]')) FROM launch WHERE system = ? GROUP BY campaign",
            [system],
        )
        with self.decoding():
            return {campaign: (float(low), float(high)) for campaign, low, high in rows}

    def sources(self, system: str) -> str:
        """Return the commit of the sources of a system's newest launch; "" if it has none."""
        rows = self._query(
            'SELECT "commit" FROM launch WHERE system = ? ORDER BY date DESC, id DESC LIMIT 1',
            [system],
        )
        return str(rows[0][0]) if rows else ""

    def launcher(self, system: str) -> str:
        """Return the program that started the last launch that names one; "" if none does."""
        rows = self._query(
            "SELECT json_extract(header, '$.launcher') FROM launch WHERE system = ? "
            "AND json_extract(header, '$.launcher') <> '' ORDER BY date DESC, id LIMIT 1",
            [system],
        )
        return one_line(str(rows[0][0])) if rows else ""

    def hosts(self, system: str) -> set[str]:
        """Return the names of the hosts on which a system was measured."""
        rows = self._query(
            "SELECT DISTINCT host.value FROM launch, json_each(header, '$.hostnames') AS host "
            "WHERE system = ?",
            [system],
        )
        return {str(row[0]) for row in rows}

    def description(self, system: str) -> dict[Any, Any]:
        """Return a system's row of `systems`. Raise KeyError without one."""
        return self.systems().set_index("system").loc[system].to_dict()

    def systems_with(self, table: str) -> list[str]:
        """Return the systems that have rows in a table: `cell`, or that of a kind of records."""
        rows = self._query(
            f"SELECT id FROM system WHERE EXISTS (SELECT 1 FROM {table} WHERE system = id) "  # noqa: S608
            "ORDER BY id"
        )
        return [row[0] for row in rows]

    def undecided(self, system: str) -> list[str]:
        """Return a system's campaigns without decisions, or with launches added since."""
        rows = self._query(
            "SELECT DISTINCT campaign FROM launch WHERE system = ? AND NOT decided", [system]
        )
        return [str(row[0]) for row in rows]

    def untuned(self) -> list[str]:
        """Return the systems that have no table: all, for a store that was rebuilt."""
        rows = self._query(
            "SELECT DISTINCT system FROM launch EXCEPT SELECT system FROM tuned ORDER BY system"
        )
        return [str(row[0]) for row in rows]
