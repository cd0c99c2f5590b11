"""Output of measured overlap beside predictions."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rich.console import Console

from tuner.commands.printing.grids import Columns
from tuner.models.breakdowns import CASE, PARTS, predicted, source
from tuner.models.overlap import Overlap
from tuner.models.parameter import ModelError, NotIdentified
from tuner.models.system import SystemModel
from tuner.units import share_text, us_text

if TYPE_CHECKING:
    import pandas as pd

_PREDICTED = ("predicted: total", "its initiation", "its wait")
_OF_PREDICTION = ("total_s", "initiation_s", "wait_s")
_COLUMNS = ("method", "flops", "total", "computation", "initiation", "wait", "barrier", "slowed")


def show_overlap(
    system: str, measured: pd.DataFrame, model: SystemModel | None, out: Console
) -> None:
    """Print how the time of a rank is spent, case by case, in microseconds.

    measured: a frame from `tuner.models.breakdowns.last_measured`.
    """
    for case, rows in measured.groupby(CASE):
        pattern, procs, nodes, ppn, oversubscribed = case
        mark = ", oversubscribed" if oversubscribed else ""
        out.print(
            f"{system}: {pattern}, {procs} ranks on {nodes} x {ppn}{mark}, "
            f"launches: {rows['launches'].max()}; medians in us, means over ranks"
        )
        table = Columns(*_COLUMNS, *_PREDICTED)
        missing = ""
        for row in rows.to_dict("records"):
            found = _prediction(model, row)
            if isinstance(found, NotIdentified):
                missing = found.reason
            table.add_row(*_measured_texts(row), *_predicted_texts(found))
        out.print(table)
        if missing:
            out.print(f"no predictions: {missing}")


def overlap_document(
    measured: dict[str, pd.DataFrame], models: dict[str, SystemModel | None]
) -> Any:
    """Return the overlap as a document; `predicted` is null where there is no equation."""
    document: list[Mapping[Any, Any]] = []
    for system, rows in measured.items():
        for row in rows.to_dict("records"):
            found = _prediction(models[system], row)
            predicted: dict[str, float | str] | None = None
            if isinstance(found, NotIdentified):
                predicted = {"not_predicted": found.reason}
            elif found:
                predicted = {name: getattr(found, name) for name in _OF_PREDICTION}
            document.append({"system": system, **row, "predicted": predicted})
    return document


def show_equations(rows: Sequence[tuple[str, Overlap]], out: Console) -> None:
    """Print the equations' times of methods by amounts of computation, in microseconds."""
    table = Columns("method", "computation", "total", "initiation", "wait", "source")
    for method, found in rows:
        times = (found.computation_s, found.total_s, found.initiation_s, found.wait_s)
        table.add_row(method, *(us_text(each) for each in times), source(method))
    out.print(table)


def equations_document(rows: Sequence[tuple[str, Overlap]]) -> Any:
    """Return the times of `show_equations` as a document, in seconds."""
    document = [
        {"method": method, **asdict(found), "source": source(method)} for method, found in rows
    ]
    return document


def _prediction(
    model: SystemModel | None, row: Mapping[Hashable, Any]
) -> Overlap | NotIdentified | None:
    if model is None:
        return NotIdentified("no parameters have been fitted; run `switchpoint fit`")
    names = ("pattern", "procs", "ppn", "method", "alone_s")
    try:
        return predicted(model, *(row[name] for name in names))
    except ModelError as error:
        return NotIdentified(str(error))


def _measured_texts(row: Mapping[Hashable, Any]) -> list[str]:
    share = row["flops"] / row["full_flops"] if row["full_flops"] else 0
    slowed = f"{row['computation_s'] / row['alone_s']:.2f}" if row["alone_s"] else "-"
    times = (us_text(row[name]) for name in ("total_s", *PARTS))
    return [row["method"], share_text(share, 0), *times, slowed]


def _predicted_texts(found: Overlap | NotIdentified | None) -> list[str]:
    if not isinstance(found, Overlap):
        return ["-"] * len(_OF_PREDICTION)
    return [us_text(getattr(found, name)) for name in _OF_PREDICTION]
