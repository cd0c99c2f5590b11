"""MPI exchanges and collectives by the fastest known method, for mpi4py.

Plan once, execute often; the C library libswitchpoint does the work, and switchpoint.h describes
it. Planning, executing and freeing a plan are collective, as calls of MPI: an exception on one
rank leaves the others waiting, unless it ends the job (python -m mpi4py).
"""

from .collectives import Collective
from .hints import Hints, Table
from .library import ErrorCode, LibraryError, SwitchpointError, version
from .plans import Discovery, Exchange, Fields, Plan, Stage, Statistics

__all__ = [
    "Collective",
    "Discovery",
    "ErrorCode",
    "Exchange",
    "Fields",
    "Hints",
    "LibraryError",
    "Plan",
    "Stage",
    "Statistics",
    "SwitchpointError",
    "Table",
    "version",
]
