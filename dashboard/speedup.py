"""Speed-up over the default, from launches with both methods: drift between launches cancels."""

from collections import defaultdict
from collections.abc import Iterable

import numpy as np
import pandas as pd

from tuner import stats
from tuner.domain.records import Cell
from tuner.selection.changes import exact_in
from tuner.selection.ratios import logs_of, paired

_COLUMNS = ["size_bytes", "method", "speedup", "speedup_low", "speedup_high"]


def paired_speedups(cells: Iterable[Cell], default: str) -> pd.DataFrame:
    """Return time(default) / time(method) of each cell: the geometric mean over launches.

    cells: of one case, at any sizes. Launches with too few samples do not count. The interval is at
    `level`, 95 %; with one launch it is missing, unless the times are exact.
    """
    cells = list(cells)
    exact = exact_in(cells)
    logs = {(cell.key.case.size_bytes, cell.key.method): of for cell, of in logs_of(cells)}
    gains: dict[int, dict[tuple[int, str], list[float]]] = defaultdict(dict)  # by launch count
    for (size, method), mine in logs.items():
        found = paired(logs.get((size, default), {}), mine)
        gains[len(found)][size, method] = [log.value for log in found.values()]
    rows = []
    for count, of_cells in gains.items():
        figures = np.full((len(of_cells), 3), np.nan)
        values = np.array(list(of_cells.values()))
        if count:
            figures[:, 0] = values.mean(axis=1)
        if count >= 2:
            figures[:, 1:] = np.column_stack(stats.mean_interval(values))
        elif exact:
            figures[:, 1:] = figures[:, :1]
        rows += [(*key, *row) for key, row in zip(of_cells, np.exp(figures), strict=True)]
    return pd.DataFrame(rows, columns=_COLUMNS).assign(level=stats.LEVEL)
