"""Sparse products of the store: whole, and their exchange and local part on their own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from tuner import stats
from tuner.domain.flat import values
from tuner.domain.records import Cell
from tuner.store.cells import KEY

if TYPE_CHECKING:
    import pandas as pd

    from tuner.store.store import Store

PARTS = ("communication_s", "local_s")
_LEAST_S = 1e-9  # time of a part that took none, so that it has a logarithm
_KEY = list(KEY)
_SUMMARY = ["size_bytes", "bytes", "method", "median_s", "low_s", "high_s"]


def last_measured(store: Store, system: str) -> pd.DataFrame:
    """Return a system's products: `with_parts` of the last campaign that measured each case.

    Those without parts are left out. Raise StoreError.
    """
    cells = store.cells(system, operation="spmv")
    case = [name for name in KEY if name not in ("campaign", "method")]
    newest_last = store.campaigns_with_cells(system)[::-1]
    # A store of others may have cells of campaigns without launches: these are the oldest.
    age = cells["campaign"].map({name: age for age, name in enumerate(newest_last)}).fillna(-1)
    last = age.groupby([cells[name] for name in case]).transform("max")
    return with_parts(cells[age == last], store.products(system)).dropna(subset=list(PARTS))


def with_parts(cells: pd.DataFrame, products: pd.DataFrame) -> pd.DataFrame:
    """Return the cells of products, with the medians over launches of PARTS; nan without any.

    cells: those of `Store.cells`. products: those of `Store.products`.
    """
    parts = products.groupby(_KEY, sort=False)[list(PARTS)].median().reset_index()
    return cells.merge(parts, on=_KEY, how="left")


def of_part(cells: Iterable[Cell], products: pd.DataFrame, part: str) -> Iterator[Cell]:
    """Yield the cells as if only one of PARTS had been measured: its medians replace the launches'.

    The samples stay those of the whole. Launches without the part are left out, as stores of others
    may have them. products: those of `Store.products` for the cells' campaign.
    """
    seconds = products.set_index([*_KEY, "launch"])[part].to_dict()
    for cell in cells:
        keys = [(*values(cell.key), launch) for launch in cell.parts["launch"].tolist()]
        medians = [seconds[key] for key in keys if key in seconds]
        if medians:
            parts = cell.parts[[key in seconds for key in keys]]
            parts["median_s"] = np.maximum(medians, _LEAST_S)
            yield replace(cell, parts=parts)


def summaries(cells: Iterable[Cell]) -> pd.DataFrame:
    """Return the median over launches of each cell of `of_part`, and the launches' interval.

    There is a row for each cell: `size_bytes`, `bytes`, `method`, `median_s`, `low_s`, `high_s`.
    """
    import pandas as pd

    rows = [
        (case.size_bytes, case.bytes, cell.key.method, *stats.of_launches(cell.parts["median_s"]))
        for cell in cells
        for case in [cell.key.case]
    ]
    return pd.DataFrame(rows, columns=_SUMMARY)
