"""The memory of buffers, checked before C reads or writes it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from mpi4py import MPI

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer as Buffer


def memory(buffer: Buffer, least_bytes: int, name: str, *, writable: bool = False) -> MPI.buffer:
    """Return the memory of an object with the buffer protocol; it stays exported meanwhile.

    Raises:
        TypeError: the object has no buffer, as one on a device, or holds Python objects.
        ValueError: the buffer is not contiguous in C's order, too small, or read-only but to be
            written.
    """
    view = memoryview(buffer)
    writable = writable and least_bytes > 0
    if "O" in re.sub(":[^:]*:", "", view.format):  # without the names of fields
        raise TypeError(f"{name} holds Python objects")
    if not view.contiguous:
        raise ValueError(f"{name} is not contiguous")
    if not view.c_contiguous:
        raise ValueError(f"{name} is in Fortran's order: pass its transpose, of the same memory")
    if writable and view.readonly:
        raise ValueError(f"{name} is read-only")
    if view.nbytes < least_bytes:
        raise ValueError(f"{name} has {view.nbytes} bytes; the plan needs {least_bytes}")
    return MPI.buffer.frombuffer(view, readonly=not writable)


def span(datatype: MPI.Datatype, count: int, displ: int = 0) -> int:
    """Return the bytes from a buffer's start to the end of `count` items at a displacement.

    Raises:
        ValueError: items begin before the buffer.
    """
    if count <= 0:
        return 0
    low, true_extent = datatype.Get_true_extent()
    extent = datatype.Get_extent()[1]
    first, last = sorted((displ * extent, (displ + count - 1) * extent))
    if low + first < 0:
        raise ValueError("a displacement lies before the buffer")
    return low + last + true_extent
