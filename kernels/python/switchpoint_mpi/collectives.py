"""Plans of collectives."""

from __future__ import annotations

import ctypes
from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from mpi4py import MPI

from .buffers import memory, span
from .hints import Hints
from .library import Handle, array_of, call, handle, operations
from .plans import Plan

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer as Buffer


class _Collective(ctypes.Structure):
    _fields_ = (
        ("operation", ctypes.c_int),
        ("send_count", ctypes.c_int),
        ("send_type", Handle),
        ("recv_count", ctypes.c_int),
        ("recv_type", Handle),
        ("recv_counts", ctypes.c_void_p),
        ("displs", ctypes.c_void_p),
        ("op", Handle),
        ("root", ctypes.c_int),
        ("send_counts", ctypes.c_void_p),
        ("send_displs", ctypes.c_void_p),
    )


class _Sides(NamedTuple):
    """How many blocks the buffers hold: at every rank, and at the root."""

    send: tuple[str, str]
    recv: tuple[str, str]


_SIDES = {
    "bcast": _Sides(("", ""), ("one", "one")),
    "gather": _Sides(("one", "one"), ("", "all")),
    "scatter": _Sides(("", "all"), ("one", "one")),
    "reduce": _Sides(("one", "one"), ("", "one")),
    "allreduce": _Sides(("one", "one"), ("one", "one")),
    "allgather": _Sides(("one", "one"), ("all", "all")),
    "allgatherv": _Sides(("one", "one"), ("all", "all")),
    "alltoall": _Sides(("all", "all"), ("all", "all")),
    "reduce_scatter_block": _Sides(("all", "all"), ("one", "one")),
    "alltoallv": _Sides(("all", "all"), ("all", "all")),
    "barrier": _Sides(("", ""), ("", "")),
}
_IN_PLACE = int(MPI.IN_PLACE)
_REDUCTIONS = ("reduce", "allreduce", "reduce_scatter_block")


class Collective(Plan):
    """A collective, planned from the arguments of the MPI function. Collective.

    `operation` is a name such as "allreduce". What the operation does not read may be left out:
    a reduction reads `recv_count`, `recv_type` and `op`; struct swp_collective lists the others.

    Raises:
        ValueError: there is no such operation, a list is too short, or a number exceeds 32 bits.
        SwitchpointError: the plan cannot be made, on every rank.
    """

    def __init__(
        self,
        comm: MPI.Comm,
        operation: str,
        *,
        send_count: int = -1,
        send_type: MPI.Datatype = MPI.DATATYPE_NULL,
        recv_count: int = -1,
        recv_type: MPI.Datatype = MPI.DATATYPE_NULL,
        recv_counts: Sequence[int] | None = None,
        displs: Sequence[int] | None = None,
        op: MPI.Op = MPI.OP_NULL,
        root: int = -1,
        send_counts: Sequence[int] | None = None,
        send_displs: Sequence[int] | None = None,
        method: str = "auto",
        hints: Hints | None = None,
    ) -> None:
        super().__init__()
        if operation not in _SIDES:
            raise ValueError(
                f"{operation}: there is no such collective; there are {', '.join(_SIDES)}"
            )
        self._operation, self._rank, self._procs = operation, comm.Get_rank(), comm.Get_size()
        lists = _Lists(*map(_list, (recv_counts, displs, send_counts, send_displs)))
        numbers = array_of("i", (send_count, recv_count, root))
        given = _Call(numbers[0], send_type, numbers[1], recv_type, lists, op, numbers[2])
        problem = given.problem(operation, self._procs)
        self._call = given
        self._plan("swp_collective_plan", comm, [ctypes.byref(problem)], method, hints)

    def set(
        self,
        *,
        send_count: int = -1,
        send_type: MPI.Datatype = MPI.DATATYPE_NULL,
        recv_count: int = -1,
        recv_type: MPI.Datatype = MPI.DATATYPE_NULL,
        recv_counts: Sequence[int] | None = None,
        displs: Sequence[int] | None = None,
        op: MPI.Op = MPI.OP_NULL,
        root: int = -1,
        send_counts: Sequence[int] | None = None,
        send_displs: Sequence[int] | None = None,
    ) -> None:
        """Give the plan another call of its operation; every rank must do so."""
        lists = _Lists(*map(_list, (recv_counts, displs, send_counts, send_displs)))
        numbers = array_of("i", (send_count, recv_count, root))
        given = _Call(numbers[0], send_type, numbers[1], recv_type, lists, op, numbers[2])
        problem = given.problem(self._operation, self._procs)
        call("swp_collective_set", self._handle, ctypes.byref(problem))
        self._call = given

    def execute(
        self, send: Buffer | MPI.InPlaceType | None, recv: Buffer | MPI.InPlaceType | None
    ) -> None:
        """Do the call: `send` or `recv` may be MPI.IN_PLACE where MPI allows it. Collective.

        None is for a buffer that this rank does not have.
        """
        sides = _SIDES[self._operation]
        at_root = self._rank == self._call.root
        in_place = isinstance(send, MPI.InPlaceType)  # then recv holds what is sent
        blocks = (sides.send if in_place and sides.send[at_root] == "all" else sides.recv)[at_root]
        send_bytes = recv_bytes = 0  # MPI ignores what describes a side in place
        if not in_place:
            send_bytes = self._call.send_bytes(self._operation, sides.send[at_root], self._procs)
        if not isinstance(recv, MPI.InPlaceType):
            recv_bytes = self._call.recv_bytes(self._operation, blocks, self._procs)
        source = _place(send, send_bytes, "send", writable=False)
        receives = not (self._operation == "bcast" and at_root)
        target = _place(recv, recv_bytes, "recv", writable=receives)
        memories = source, target
        addresses = (each if isinstance(each, int | None) else each.address for each in memories)
        self._execute("swp_collective_execute", memories, *addresses)


class _Lists(NamedTuple):
    """The counts and displacements of each rank's blocks, copied."""

    recv_counts: array[int] | None
    displs: array[int] | None
    send_counts: array[int] | None
    send_displs: array[int] | None


@dataclass(frozen=True)
class _Call:
    """The arguments of a collective; the types and the operation must live as long as plans."""

    send_count: int
    send_type: MPI.Datatype
    recv_count: int
    recv_type: MPI.Datatype
    lists: _Lists
    op: MPI.Op
    root: int

    def problem(self, operation: str, procs: int) -> _Collective:
        """Return it for C; it must not outlive this call, which holds the lists."""
        for first, names in ((0, "recv_counts and displs"), (2, "send_counts and send_displs")):
            lists = self.lists[first : first + 2]
            if any(each is not None and len(each) < procs for each in lists):
                raise ValueError(f"{names} need an element for each of {procs} ranks")
        recv_counts, displs, send_counts, send_displs = (
            None if each is None else each.buffer_info()[0] for each in self.lists
        )
        return _Collective(
            operations()[operation],
            self.send_count,
            handle(self.send_type),
            self.recv_count,
            handle(self.recv_type),
            recv_counts,
            displs,
            handle(self.op),
            self.root,
            send_counts,
            send_displs,
        )

    def send_bytes(self, operation: str, blocks: str, procs: int) -> int:
        """Return the bytes that the send buffer of this rank must have."""
        if operation in _REDUCTIONS:
            return _bytes(self.recv_type, self.recv_count, blocks, procs)
        if operation == "alltoallv":
            return _listed_bytes(self.send_type, self.lists.send_counts, self.lists.send_displs)
        return _bytes(self.send_type, self.send_count, blocks, procs)

    def recv_bytes(self, operation: str, blocks: str, procs: int) -> int:
        """Return the bytes that the receive buffer of this rank must have."""
        if operation in ("allgatherv", "alltoallv"):
            return _listed_bytes(self.recv_type, self.lists.recv_counts, self.lists.displs)
        return _bytes(self.recv_type, self.recv_count, blocks, procs)


def _list(numbers: Sequence[int] | None) -> array[int] | None:
    return None if numbers is None else array_of("i", numbers)


def _listed_bytes(
    datatype: MPI.Datatype, counts: array[int] | None, displs: array[int] | None
) -> int:
    if datatype == MPI.DATATYPE_NULL:
        return 0
    blocks = zip(counts or (), displs or (), strict=False)
    return max((span(datatype, count, displ) for count, displ in blocks), default=0)


def _bytes(datatype: MPI.Datatype, count: int, blocks: str, procs: int) -> int:
    if not blocks or datatype == MPI.DATATYPE_NULL:
        return 0
    return span(datatype, count * procs if blocks == "all" else count)


def _place(
    buffer: Buffer | MPI.InPlaceType | None, least_bytes: int, name: str, *, writable: bool
) -> MPI.buffer | int | None:
    if isinstance(buffer, MPI.InPlaceType):
        return _IN_PLACE
    if buffer is None:
        if least_bytes:
            raise ValueError(f"{name} is None; the plan needs {least_bytes} bytes")
        return None
    return memory(buffer, least_bytes, name, writable=writable)
