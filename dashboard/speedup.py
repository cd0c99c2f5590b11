"""Speed-up over the default, from the launches that have both: drift between launches cancels."""

from collections.abc import Iterable

import numpy as np
import pandas as pd

from tuner import stats
from tuner.records import Cell

_COLUMNS = ["size_bytes", "method", "speedup", "speedup_low", "speedup_high"]


def paired_speedups(cells: Iterable[Cell], default: str) -> pd.DataFrame:
    """time(default) / time(method) of each cell: the geometric mean over launches.

    cells: of one case, at any sizes. Launches with too few samples do not count. The interval is at
    95 %, and missing with one launch; a cell without the default beside it has no speed-up, and the
    default's own is 1.
    """
    logs = {}
    for cell in cells:
        parts = cell.parts[cell.parts["samples"] >= stats.MIN_SAMPLES]
        medians = zip(parts["launch"].tolist(), np.log(parts["median_s"]), strict=True)
        logs[cell.key.size_bytes, cell.key.method] = dict(medians)
    rows = []
    for (size, method), mine in logs.items():
        base = logs.get((size, default), {})
        gains = np.array([base[launch] - log for launch, log in mine.items() if launch in base])
        mean = low = high = np.nan
        if len(gains):
            mean = gains.mean()
        if len(gains) >= 2:
            low, high = stats.mean_interval(gains)
        rows.append((size, method, *np.exp([mean, low, high])))
    return pd.DataFrame(rows, columns=_COLUMNS)
