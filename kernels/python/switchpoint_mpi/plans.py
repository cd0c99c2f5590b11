"""Plans of exchanges and discoveries, and what all plans share."""

from __future__ import annotations

import ctypes
import weakref
from array import array
from collections.abc import Iterable, Mapping, Sequence
from operator import index
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple, Self

from mpi4py import MPI

from .buffers import memory
from .hints import Hints
from .library import ErrorCode, Inbox, SwitchpointError, array_of, call, exact, handle, library

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer as Buffer

_DESCRIPTION_BYTES = 4096


class Statistics(NamedTuple):
    """What a plan does at each execution, as in struct swp_statistics."""

    procs: int
    nodes: int
    ppn: int
    stages: int
    mmax: int
    mavg: float
    vavg_bytes: float
    vmax_bytes: int
    buffer_bytes: int
    copied_bytes: int
    hop_bytes: int
    plan_bytes: int
    on_node_messages: int
    off_node_messages: int
    on_node_bytes: int
    off_node_bytes: int
    off_node_mmax: int
    off_node_vmax_bytes: int
    sockets: int
    on_socket_messages: int
    on_socket_bytes: int


class _Statistics(ctypes.Structure):
    _fields_ = tuple(
        (
            name,
            ctypes.c_int
            if name in ("procs", "nodes", "ppn", "stages", "sockets")
            else ctypes.c_double
            if name in ("mavg", "vavg_bytes")
            else ctypes.c_int64,
        )
        for name in Statistics._fields
    )


class Stage(NamedTuple):
    """Messages and bytes of one stage: over all ranks, and the most of one rank."""

    messages: int
    messages_max: int
    bytes: int
    bytes_max: int


def _leave(memories: Sequence[object]) -> None:
    """Keep the memory of an exchange that was started and dropped, or in which MPI failed.

    MPI may use it until it ends, which is after Python has deleted all modules.
    """
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(memories))


class Plan:
    """A method that is prepared on a communicator. Free it, or use it in `with`.

    When an exception leaves the `with`, the plan is kept: other ranks may not come to free theirs.
    """

    def __init__(self) -> None:
        self._handle = ctypes.c_void_p()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, _: object, __: TracebackType | None
    ) -> None:
        if kind is None:
            self.free()

    def free(self) -> None:
        """Free the plan; collective. It may be done twice.

        Raises:
            SwitchpointError: an exchange is started but not waited for, or MPI failed.
        """
        call("swp_plan_free", ctypes.byref(self._handle))

    @property
    def method(self) -> str:
        """Return the spec of the method; "" after the plan is freed."""
        spec: bytes = library().swp_plan_method(self._handle)
        return spec.decode()

    @property
    def passed(self) -> tuple[str, str] | None:
        """Return the spec of the first rule, and why it was passed over; None if it was not."""
        why = ctypes.c_char_p()
        spec: bytes | None = library().swp_plan_passed(self._handle, ctypes.byref(why))
        return (
            None if spec is None else (spec.decode(), (why.value or b"").decode(errors="replace"))
        )

    def describe(self) -> str:
        """Return method, arrangement, and how it was chosen, in one line."""
        text = ctypes.create_string_buffer(_DESCRIPTION_BYTES)
        call("swp_plan_describe", self._handle, text, len(text))
        return text.value.decode(errors="replace")  # a path may be cut

    def statistics(self) -> tuple[Statistics, Statistics]:
        """Return those of the problem, which are what `direct` does, and those of the method."""
        both = _Statistics(), _Statistics()
        call("swp_plan_statistics", self._handle, *map(ctypes.byref, both))
        problem, method = (
            Statistics(*(getattr(each, name) for name in Statistics._fields)) for each in both
        )
        return problem, method

    def stage(self, number: int) -> Stage:
        """Return messages and bytes of a stage of an exchange, from 0."""
        values = [ctypes.c_int64() for _ in Stage._fields]
        which = exact(ctypes.c_int, number)
        call("swp_plan_stage", self._handle, which, *map(ctypes.byref, values))
        return Stage(*(each.value for each in values))

    def _plan(
        self,
        function: str,
        comm: MPI.Comm,
        problem: Sequence[object],
        method: str,
        hints: Hints | None,
    ) -> None:
        known = None if hints is None else ctypes.byref(hints._as_parameter())
        result = ctypes.byref(self._handle)
        call(function, handle(comm), *problem, method.encode(), known, result)

    def _execute(self, function: str, memories: Sequence[object], *arguments: object) -> None:
        """Call a function that executes the plan, or starts to, with these memories."""
        try:
            call(function, self._handle, *arguments)
        except SwitchpointError as error:
            if error.code in (ErrorCode.MPI, ErrorCode.MEMORY):
                _leave(memories)
            raise


class _Exchange(ctypes.Structure):
    _fields_ = (
        ("item_bytes", ctypes.c_int64),
        ("nitems", ctypes.c_int64),
        ("nsends", ctypes.c_int),
        ("send_ranks", ctypes.c_void_p),
        ("send_offsets", ctypes.c_void_p),
        ("send_items", ctypes.c_void_p),
        ("nrecvs", ctypes.c_int),
        ("recv_ranks", ctypes.c_void_p),
        ("recv_offsets", ctypes.c_void_p),
    )


class _Lasting(Plan):
    """A plan whose execution may be under way."""

    def __init__(self) -> None:
        super().__init__()
        self._started: Sequence[object] | None = None  # memory that must stay where it is

    def __del__(self) -> None:
        if (started := getattr(self, "_started", None)) is not None:
            _leave(started)

    def test(self) -> bool:
        """Progress a started exchange, and return whether it is complete; then do not wait."""
        done = ctypes.c_int()
        call("swp_test", self._handle, ctypes.byref(done))
        if done.value:
            self._started = None
        return bool(done.value)

    def wait(self) -> None:
        """Complete a started exchange.

        Waits for senders, and may wait for receivers, to start it.
        """
        call("swp_wait", self._handle)
        self._started = None

    def _describe(
        self,
        item_bytes: int,
        nitems: int,
        send_ranks: Iterable[int],
        send_offsets: Iterable[int],
        recv_ranks: Iterable[int],
        recv_offsets: Iterable[int],
        send_items: Iterable[int] | None,
    ) -> _Exchange:
        """Return the problem for C, and set the items of both buffers."""
        item_bytes, nitems = (exact(ctypes.c_int64, each) for each in (item_bytes, nitems))
        ranks, offsets = array_of("i", send_ranks), array_of("q", send_offsets)
        sources, places = array_of("i", recv_ranks), array_of("q", recv_offsets)
        items = None if send_items is None else array_of("q", send_items)
        for name, each, ends in (("send", ranks, offsets), ("recv", sources, places)):
            if each and len(ends) != len(each) + 1:
                raise ValueError(f"{name}_offsets must have one element more than {name}_ranks")
        if items is not None and ranks and len(items) < offsets[-1]:
            raise ValueError(f"send_items has {len(items)} elements; send_offsets name more")
        self._send_items, self._recv_items = nitems, places[-1] if sources else 0
        self._idle = not ranks and not sources
        problem = _Exchange(
            item_bytes,
            nitems,
            len(ranks),
            _start(ranks),
            _start(offsets),
            None if items is None else _start(items),
            len(sources),
            _start(sources),
            _start(places),
        )
        problem.arrays = (ranks, offsets, items, sources, places)  # alive as long as the problem
        return problem


class Exchange(_Lasting):
    """An exchange between ranks that know their partners, as struct swp_exchange describes it.

    Message i goes to `send_ranks[i]` with the items `send_offsets[i]` to `send_offsets[i + 1]` of
    the send buffer, or of the list `send_items` of positions in it. What `recv_ranks[j]` sends
    lands at the items from `recv_offsets[j]` on. Collective.

    Raises:
        ValueError: lists do not belong together, or a number exceeds 64 bits; other ranks then
            wait for this one.
        SwitchpointError: the plan cannot be made, on every rank.
    """

    def __init__(
        self,
        comm: MPI.Comm,
        item_bytes: int,
        nitems: int,
        send_ranks: Iterable[int],
        send_offsets: Iterable[int],
        recv_ranks: Iterable[int],
        recv_offsets: Iterable[int],
        send_items: Iterable[int] | None = None,
        *,
        method: str = "auto",
        hints: Hints | None = None,
    ) -> None:
        super().__init__()
        problem = self._describe(
            item_bytes, nitems, send_ranks, send_offsets, recv_ranks, recv_offsets, send_items
        )
        self._item_bytes = index(item_bytes)
        self._plan("swp_exchange_plan", comm, [ctypes.byref(problem)], method, hints)

    def buffer(self) -> memoryview:
        """Return memory for what the next execution sends, of bytes; call this before each.

        Where the method is `lent`, what is written there is not copied before receivers read it,
        which may be after the execution: do not write it again until this returns it again. May
        wait for receivers. The view must not be used after the plan was freed.
        """
        address = ctypes.c_void_p()
        call("swp_exchange_buffer", self._handle, ctypes.byref(address))
        size_bytes = self._send_items * self._item_bytes
        if self._idle:  # the plan's memory is for items of the other ranks
            return memoryview(bytearray(size_bytes))
        return _view(address.value, size_bytes, self)

    def execute(self, send: Buffer, recv: Buffer) -> None:
        """Exchange the items of `send` for those of `recv`. Collective."""
        memories = self._memories(send, recv)
        self._execute("swp_exchange_execute", memories, *(each.address for each in memories))

    def start(self, send: Buffer, recv: Buffer) -> None:
        """Start an exchange; until it is complete, write neither buffer and do not read `recv`.

        Collective. May wait until receivers have completed the execution before the last.
        """
        memories = self._memories(send, recv)
        self._execute("swp_exchange_start", memories, *(each.address for each in memories))
        self._started = memories

    def _memories(self, send: Buffer, recv: Buffer) -> tuple[MPI.buffer, MPI.buffer]:
        return (
            memory(send, self._send_items * self._item_bytes, "send"),
            memory(recv, self._recv_items * self._item_bytes, "recv", writable=True),
        )


class Fields(_Lasting):
    """An exchange of several fields by one message to a neighbour, as swp_fields_plan has it.

    `field_bytes` has the bytes of an item of each field; all else is as for Exchange. Collective.

    Raises:
        ValueError: lists do not belong together, or a number exceeds 64 bits; other ranks then
            wait for this one.
        SwitchpointError: the plan cannot be made, on every rank.
    """

    def __init__(
        self,
        comm: MPI.Comm,
        field_bytes: Iterable[int],
        nitems: int,
        send_ranks: Iterable[int],
        send_offsets: Iterable[int],
        recv_ranks: Iterable[int],
        recv_offsets: Iterable[int],
        send_items: Iterable[int] | None = None,
        *,
        method: str = "auto",
        hints: Hints | None = None,
    ) -> None:
        super().__init__()
        sizes = array_of("q", field_bytes)
        problem = self._describe(
            0, nitems, send_ranks, send_offsets, recv_ranks, recv_offsets, send_items
        )
        self._field_bytes = sizes
        described = [ctypes.byref(problem), len(sizes), _start(sizes)]
        self._plan("swp_fields_plan", comm, described, method, hints)

    def execute(self, send: Sequence[Buffer], recv: Sequence[Buffer]) -> None:
        """Exchange the items of each field in `send` for those in `recv`. Collective."""
        memories = self._memories(send, recv)
        self._execute("swp_fields_execute", memories, *map(_addresses, memories))

    def start(self, send: Sequence[Buffer], recv: Sequence[Buffer]) -> None:
        """Start an exchange; until it is complete, write no buffer and do not read `recv`.

        Collective. May wait until receivers have completed the execution before the last.
        """
        memories = self._memories(send, recv)
        self._execute("swp_fields_start", memories, *map(_addresses, memories))
        self._started = memories

    def _memories(
        self, send: Sequence[Buffer], recv: Sequence[Buffer]
    ) -> tuple[list[MPI.buffer], list[MPI.buffer]]:
        for name, buffers in (("send", send), ("recv", recv)):
            if len(buffers) != len(self._field_bytes):
                needed = len(self._field_bytes)
                raise ValueError(f"{name} has {len(buffers)} buffers; the plan has {needed} fields")
        sources = [
            memory(buffer, self._send_items * size, f"send[{f}]")
            for f, (buffer, size) in enumerate(zip(send, self._field_bytes, strict=True))
        ]
        targets = [
            memory(buffer, self._recv_items * size, f"recv[{f}]", writable=True)
            for f, (buffer, size) in enumerate(zip(recv, self._field_bytes, strict=True))
        ]
        return sources, targets


class Discovery(Plan):
    """A sparse exchange in which no rank knows who will send to it. Collective."""

    def __init__(self, comm: MPI.Comm, *, method: str = "auto", hints: Hints | None = None) -> None:
        super().__init__()
        self._plan("swp_discovery_plan", comm, [], method, hints)

    def execute(self, messages: Mapping[int, Buffer]) -> dict[int, memoryview]:
        """Send each buffer to its rank; return what arrives, by source. Collective.

        The views own what they show: they stay valid when the plan is freed.
        """
        parts = [memory(each, 0, f"message to {rank}") for rank, each in messages.items()]
        ranks = array_of("i", messages)
        sizes = array_of("q", (part.nbytes for part in parts))
        # An empty buffer may have no address; a message has one.
        data = (ctypes.c_void_p * len(parts))(*(part.address or 1 for part in parts))
        inbox = ctypes.POINTER(Inbox)()
        owner = _InboxOwner(inbox)
        self._execute(
            "swp_discovery_execute",
            parts,
            len(parts),
            _start(ranks),
            _start(sizes),
            data,
            ctypes.byref(inbox),
        )
        return owner.messages()


class _InboxOwner:
    """Frees an inbox when nothing shows it any more."""

    def __init__(self, inbox: ctypes._Pointer[Inbox]) -> None:
        self._inbox = inbox
        finalizer = weakref.finalize(self, library().swp_inbox_free, ctypes.byref(inbox))
        finalizer.atexit = False  # when views may still be used

    def messages(self) -> dict[int, memoryview]:
        """Return a view of each message."""
        found = self._inbox.contents
        return {
            found.sources[i]: _view(found.data[i], found.bytes[i], self)
            for i in range(found.nsources)
        }


def _view(address: int | None, size_bytes: int, owner: object) -> memoryview:
    """Return a view of memory that lives as long as its owner, which it keeps alive."""
    if size_bytes == 0:
        return memoryview(b"")
    shown = (ctypes.c_ubyte * size_bytes).from_address(address or 0)
    shown.owner = owner  # type: ignore[attr-defined]
    return memoryview(shown).cast("B")


def _addresses(memories: Sequence[MPI.buffer]) -> ctypes.Array[ctypes.c_void_p]:
    return (ctypes.c_void_p * len(memories))(*(each.address for each in memories))


def _start(numbers: array[int]) -> int:
    """Return the address of an array, which must stay alive meanwhile."""
    return numbers.buffer_info()[0]
