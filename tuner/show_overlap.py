"""Presents measured overlap beside predictions."""

from __future__ import annotations

import json
from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING, Any

from rich.console import Console

from tuner.models.overlap import Overlap
from tuner.models.system import SystemModel
from tuner.overlaps import CASE, PARTS, predicted
from tuner.show import plain_grid
from tuner.units import significant

if TYPE_CHECKING:
    import pandas as pd

_COLUMNS = ("method", "flops", "total", "computation", "initiation", "wait", "barrier", "slowed")


def show_overlap(
    system: str, measured: pd.DataFrame, model: SystemModel | None, out: Console
) -> None:
    """Case by case where the time of a rank goes; microseconds.

    measured: of `tuner.overlaps.last_measured`.
    """
    for case, rows in measured.groupby(CASE):
        pattern, procs, nodes, ppn, oversubscribed = case
        crowded = ", oversubscribed" if oversubscribed else ""
        out.print(
            f"{system}: {pattern}, {procs} ranks on {nodes} x {ppn}{crowded}, "
            f"launches: {rows['launches'].max()}; medians in us, means over ranks",
            highlight=False,
        )
        table = plain_grid(*_COLUMNS, "predicted total", "initiation", "wait")
        for row in rows.to_dict("records"):
            table.add_row(*_measured_texts(row), *_predicted_texts(_prediction(model, row)))
        out.print(table)
    if model is None and not measured.empty:
        out.print("no predictions: no parameters are fitted; `switchpoint fit`", highlight=False)


def overlap_json(measured: dict[str, pd.DataFrame], models: dict[str, SystemModel | None]) -> str:
    """The same as JSON; what is not predicted is null."""
    document: list[Mapping[Any, Any]] = []
    for system, rows in measured.items():
        for row in rows.to_dict("records"):
            found = _prediction(models[system], row)
            told = found and {
                "total_s": found.total_s,
                "initiation_s": found.initiation_s,
                "wait_s": found.wait_s,
            }
            document.append({"system": system, **row, "predicted": told})
    return json.dumps(document, indent=1)


def _prediction(model: SystemModel | None, row: Mapping[Hashable, Any]) -> Overlap | None:
    if model is None:
        return None
    names = ("pattern", "procs", "ppn", "method", "alone_s")
    return predicted(model, *(row[name] for name in names))


def _measured_texts(row: Mapping[Hashable, Any]) -> list[str]:
    share = row["flops"] / row["full_flops"] if row["full_flops"] else 0
    slowed = f"{row['computation_s'] / row['alone_s']:.2f}" if row["alone_s"] else "-"
    times = (significant(1e6 * row[name]) for name in ("total_s", *PARTS))
    return [row["method"], f"{share:.0%}", *times, slowed]


def _predicted_texts(found: Overlap | None) -> list[str]:
    if found is None:
        return ["-", "-", "-"]
    return [significant(1e6 * each) for each in (found.total_s, found.initiation_s, found.wait_s)]
