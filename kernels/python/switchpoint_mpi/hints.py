"""What callers know beyond the problem, and the tables that choose methods."""

from __future__ import annotations

import ctypes
import os
from dataclasses import dataclass
from typing import Self

from mpi4py import MPI

from .library import call, exact, handle, library, operations

_SAME_COMM, _MEASURE = 1, 2


class Table:
    """A method table. Collective; free it, or use it in `with`, where no plan is made with it."""

    def __init__(self, comm: MPI.Comm, path: str) -> None:
        self._handle = ctypes.c_void_p()
        call("swp_table_read", handle(comm), os.fsencode(path), ctypes.byref(self._handle))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.free()

    @property
    def rules(self) -> int:
        """Return the number of rules."""
        return int(library().swp_table_rules(self._handle))

    def has(self, operation: str) -> bool:
        """Return whether there is a rule for an operation, as "allreduce". Raise KeyError."""
        return bool(library().swp_table_has(self._handle, operations()[operation]))

    def free(self) -> None:
        """Free the table; it may be done twice."""
        library().swp_table_free(ctypes.byref(self._handle))


class _Hints(ctypes.Structure):
    _fields_ = (
        ("flags", ctypes.c_uint),
        ("executions", ctypes.c_int64),
        ("degree", ctypes.c_int64),
        ("bytes", ctypes.c_int64),
        ("table", ctypes.c_void_p),
        ("ppn", ctypes.c_int),
        ("placement", ctypes.c_int),
        ("budget_s", ctypes.c_double),
    )


@dataclass(frozen=True)
class Hints:
    """What the caller knows beyond the problem, as in struct swp_hints; equal on every rank."""

    measure: bool = False  # SWP_MEASURE: race the methods on this very problem
    same_comm: bool = False  # SWP_SAME_COMM, for collectives
    executions: int = 0  # 0: unknown, assumed to be many
    degree: int = -1  # of a discovery: the most messages of a rank; -1: unknown
    bytes: int = -1  # of a discovery: the mean of its messages; -1: unknown
    table: Table | None = None  # instead of that of SWITCHPOINT_TABLE
    ppn: int = 0  # ranks on each virtual node; 0: real nodes
    cyclic: bool = False  # how ranks are placed on virtual nodes: in turn, or else in blocks
    budget_s: float = 0  # for measuring; 0: one second

    def _as_parameter(self) -> _Hints:
        flags = _MEASURE * self.measure | _SAME_COMM * self.same_comm
        table = None if self.table is None else self.table._handle
        if table is not None and not table:
            raise ValueError("the table of the hints is freed")
        return _Hints(
            flags,
            exact(ctypes.c_int64, self.executions),
            exact(ctypes.c_int64, self.degree),
            exact(ctypes.c_int64, self.bytes),
            table,
            exact(ctypes.c_int, self.ppn),
            int(self.cyclic),
            self.budget_s,
        )
