"""Measured overlap of communication and computation, with predictions by the equations."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from tuner.models import overlap
from tuner.models.overlap import COMPLEX_BYTES, REAL_BYTES, LogGPValues, Overlap
from tuner.models.parameter import ModelError
from tuner.models.predict import network_of
from tuner.models.system import SystemModel

if TYPE_CHECKING:
    import pandas as pd

    from tuner.store.store import Store

CASE = ["pattern", "procs", "nodes", "ppn", "oversubscribed"]
PARTS = ["computation_s", "initiation_s", "wait_s", "barrier_s"]
_SPMV = {"bulk:by=get": overlap.spmv_bulk, "gather:prefetch=1,by=get": overlap.spmv}
_SOURCES = {
    "exchange": "Nishtala, equations 2, 4, 6 to 9, after all computation",
    "bulk": "ours, as Nishtala's equations assume",
    "gather": "Nishtala, equations 10 to 13",
}
_OF_ROWS = "Nishtala, equations 2, 4, 6 to 9"
_CONSTANT = ["full_flops", "messages", "message_bytes"]


class FtShape(NamedTuple):
    """An exchange of a Fourier transform, on one rank: rows for each rank, and their elements."""

    rows: int
    elements: int

    @classmethod
    def of(cls, pattern: str) -> FtShape | None:
        """Return the shape of a pattern as its launch names it; None for others."""
        numbers = _numbers("ft:rows=N,elements=N", pattern)
        return cls(*numbers) if numbers else None


class SpmvShape(NamedTuple):
    """A sparse product, on one rank: rows, and nonzeros of each."""

    rows: int
    nonzeros: int

    @classmethod
    def of(cls, pattern: str) -> SpmvShape | None:
        """Return the shape of a pattern as its launch names it; None for others."""
        numbers = _numbers("spmv:rows=N,nonzeros=N", pattern)
        return cls(*numbers) if numbers else None


def _numbers(form: str, pattern: str) -> list[int]:
    """Return the numbers where the form has N; none for a pattern of another form."""
    found = re.fullmatch(form.replace("N", r"([1-9][0-9]{0,8})"), pattern)
    return [int(number) for number in found.groups()] if found else []


def last_measured(store: Store, system: str) -> pd.DataFrame:
    """Return the last campaign of overlap of a system: medians over launches, and `launches`.

    There is a row for each case, method and amount of computation. Raise StoreError.
    """
    rows = store.records("overlap", system)
    if rows.empty:
        return rows
    dates = store.campaigns(system).set_index("campaign")["last_date"]
    last = max((dates[name], name) for name in set(rows["campaign"]))[1]
    each = rows[rows["campaign"] == last].groupby([*CASE, "method", "flops"])
    times = each[["total_s", *PARTS, "alone_s"]].median()
    found: pd.DataFrame = times.join(each[_CONSTANT].first()).join(each.size().rename("launches"))
    return found.reset_index()


def methods(pattern: str) -> list[str]:
    """Return a pattern's methods that have an equation. Raise ModelError for another pattern."""
    if ft := FtShape.of(pattern):
        chunks = [f"chunks:rows={4**n}" for n in range(1, 16) if 4**n < ft.rows]
        return ["exchange", "slabs", *chunks, "pencils"]
    if SpmvShape.of(pattern):
        return list(_SPMV)
    raise ModelError(
        f"{pattern or 'no pattern'}: overlap is predicted for ft:rows=N,elements=N and "
        "spmv:rows=N,nonzeros=N"
    )


def source(method: str) -> str:
    """Return the source of a method's equation."""
    return _SOURCES.get(method.partition(":")[0], _OF_ROWS)


def predicted(
    model: SystemModel, pattern: str, procs: int, ppn: int, method: str, alone_s: float
) -> Overlap | None:
    """Return the times by the equations, given the computation alone; None where there is none.

    Raise ModelError when parameters are missing.
    """
    family, _, rest = method.partition(":")
    if procs < 2:
        return None
    if ft := FtShape.of(pattern):
        return _ft(model, ft, procs, ppn, family, rest, alone_s)
    formula = _SPMV.get(method)
    spmv = SpmvShape.of(pattern)
    if formula is None or spmv is None:
        return None
    network = _values(model, procs, ppn, REAL_BYTES * spmv.rows)
    return formula(network, procs, spmv.rows * procs, alone_s / procs)


def _ft(
    model: SystemModel,
    shape: FtShape,
    procs: int,
    ppn: int,
    family: str,
    parameters: str,
    alone_s: float,
) -> Overlap | None:
    chunk = re.match(r"rows=([0-9]+)", parameters)
    at_once = 1 if family == "pencils" else int(chunk[1]) if chunk else shape.rows
    if not 1 <= at_once <= shape.rows:
        return None
    network = _values(model, procs, ppn, COMPLEX_BYTES * at_once * shape.elements)
    rows = shape.rows * procs
    if family == "exchange":
        return overlap.ft_exchange(network, procs, rows, shape.elements, alone_s / rows)
    units = rows / at_once
    return overlap.ft(network, procs, units, at_once * shape.elements, alone_s / units)


def _values(model: SystemModel, procs: int, ppn: int, message_bytes: int) -> LogGPValues:
    message = network_of(model, procs, ppn).slowest.of(message_bytes)
    return LogGPValues(message.latency_s, message.send_s, message.gap_s, message.per_byte_s)
