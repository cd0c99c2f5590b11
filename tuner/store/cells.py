"""The tables of cells, and of the parts of products that launches of spmv measured."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from tuner.domain.cases import CellKey, LaunchKey
from tuner.domain.flat import columns, flat, take, values
from tuner.domain.records import LONGEST_S, PART, SHORTEST_S, Cell, CellSummary, Features, Product
from tuner.store.database import Database, equal_to

if TYPE_CHECKING:
    import pandas as pd

KEY = columns(CellKey)
"""The columns of a cell's key."""

_CONTENT = (*KEY, *Features._fields)
_ROW = (*_CONTENT, *CellSummary._fields)
_BLOBS = ("parts", "rounds", "samples")
_CASE = ", ".join(columns(LaunchKey))
_IN_ORDER = f"ORDER BY {', '.join(KEY)}"

CellRow = tuple[Any, ...]
"""A cell with its summary, flat, and so quick to pass between processes."""


def cell_row(cell: Cell, summary: CellSummary) -> CellRow:
    """Return a cell in the form of the store."""
    blobs = (cell.parts.tobytes(), cell.rounds.tobytes(), cell.samples_s.tobytes())
    return (*values(cell.key), *cell.features, *summary, *blobs)


def cell_of(row: CellRow) -> Cell:
    """Return the cell that a row holds. Raise ValueError when it holds none."""
    fields = iter(row)
    key, features = take(CellKey, fields), take(Features, fields)
    parts, rounds, samples = row[-len(_BLOBS) :]
    return Cell(
        key,
        features,
        np.frombuffer(parts, PART),
        np.frombuffer(rounds, np.uint16),
        _seconds(samples),
    )


def _seconds(samples: bytes) -> NDArray[np.float32]:
    """Return samples. Raise ValueError where some are not times: they could have no ratios."""
    found = np.frombuffer(samples, np.float32)
    if len(found) and not (found.min() >= SHORTEST_S and found.max() <= LONGEST_S):
        raise ValueError(f"samples are not times of {SHORTEST_S:.3g} to {LONGEST_S:.3g} s")
    return found


def _check_parts(cells: Sequence[Cell], *, whole: bool) -> None:
    """Raise ValueError where no launches can have left these parts; `whole` cells have samples."""
    if not cells:
        return
    launches = np.array([len(cell.parts) for cell in cells])
    parts = np.concatenate([cell.parts for cell in cells])
    times_s = (parts["median_s"], parts["plan_s"], parts["canary_s"])
    counts = parts["samples"].astype(np.int64)
    if not (
        launches.all()
        and (counts > 0).all()
        and ((parts["late"] >= 0) & (parts["late"] <= counts)).all()
        and all(((each >= 0) & (each <= LONGEST_S)).all() for each in times_s)
        and parts["median_s"].min() >= SHORTEST_S
    ):
        raise ValueError("launches with impossible counts or times")
    totals = np.add.reduceat(counts, launches.cumsum() - launches).tolist()
    if whole and not all(
        total == len(cell.samples_s) == len(cell.rounds)
        for total, cell in zip(totals, cells, strict=True)
    ):
        raise ValueError("launches with other counts of samples than there are")


class Cells(Database):
    """The cells of all systems, and the parts of sparse products."""

    def put_cells(self, rows: Iterable[CellRow]) -> None:
        """Add cells; replace those of the same key."""
        self._insert("cell", (*_ROW, *_BLOBS), rows)

    def delete_cell(self, key: CellKey) -> None:
        """Delete a cell, if there is one."""
        where, equal = equal_to(**flat(key))
        self._execute(f"DELETE FROM cell WHERE {where}", equal)  # noqa: S608

    def put_products(self, products: Iterable[Product]) -> None:
        """Add the parts of products that launches of spmv measured."""
        self._insert("product", columns(Product), map(tuple, map(values, products)))

    def campaigns_with_cells(self, system: str, operation: str | None = None) -> list[str]:
        """Return a system's campaigns that measured an operation, or any methods, newest first."""
        where, values = equal_to(system=system, operation=operation)
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
        """Return one row per case of a campaign: the key of its cells without size and method."""
        return self._frame(
            f"SELECT DISTINCT {_CASE} FROM cell "  # noqa: S608
            f"WHERE system = ? AND campaign = ? ORDER BY {_CASE}",
            [system, campaign],
        )

    def methods(self, system: str, campaign: str) -> set[tuple[str, str]]:
        """Return the operations and methods that a campaign measured."""
        rows = self._query(
            "SELECT DISTINCT operation, method FROM cell WHERE system = ? AND campaign = ?",
            [system, campaign],
        )
        return {(str(operation), str(method)) for operation, method in rows}

    def cells(self, system: str | None = None, **equal: str | int | None) -> pd.DataFrame:
        """Return one row per cell, all of its columns but the blobs, in the order of the key.

        equal: the values of columns; None takes all.
        """
        where, given = equal_to(system=system, **equal)
        return self._frame(
            f"SELECT {', '.join(_ROW)} FROM cell WHERE {where} {_IN_ORDER}",  # noqa: S608
            given,
        )

    def steadiness(self, system: str, campaign: str, operation: str | None = None) -> pd.DataFrame:
        """Return one row per cell: its place, `n`, `canary_median_s`, `above_2_medians`, `late`."""
        where, given = equal_to(system=system, campaign=campaign, operation=operation)
        return self._frame(
            "SELECT operation, pattern, procs, nodes, ppn, sync, oversubscribed, "  # noqa: S608
            "n, canary_median_s, above_2_medians, late FROM cell "
            f"WHERE {where} ORDER BY procs, nodes",
            given,
        )

    def contents(
        self, system: str, *, samples: bool = True, **equal: str | int | None
    ) -> list[Cell]:
        """Return the cells with these values in columns of the key, with their samples.

        Without samples, only the summaries of launches are read: a tenth of the bytes.
        """
        where, given = equal_to(system=system, **equal)
        blobs = _BLOBS if samples else ("parts", "x''", "x''")
        rows = self._query(
            f"SELECT {', '.join((*_CONTENT, *blobs))} FROM cell WHERE {where} {_IN_ORDER}",  # noqa: S608
            given,
        )
        with self.decoding():
            cells = [cell_of(row) for row in rows]
            _check_parts(cells, whole=samples)
        return cells

    def samples(self, key: CellKey) -> NDArray[np.float32]:
        """Return a cell's samples in seconds, launch after launch; none when there is no cell."""
        where, given = equal_to(**flat(key))
        rows = self._query(f"SELECT samples FROM cell WHERE {where}", given)  # noqa: S608
        with self.decoding():
            return _seconds(rows[0][0] if rows else b"")

    def products(self, system: str, campaign: str | None = None) -> pd.DataFrame:
        """Return medians of `communication_s` and `local_s`, a row per cell of spmv and launch."""
        where, given = equal_to(system=system, campaign=campaign)
        names = ", ".join(columns(Product))
        return self._frame(
            f"SELECT {names} FROM product WHERE {where} ORDER BY {names}",  # noqa: S608
            given,
        )
