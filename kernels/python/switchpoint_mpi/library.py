"""The C library: found, loaded, and held to the MPI library of mpi4py."""

from __future__ import annotations

import ctypes
import os
from array import array
from collections.abc import Iterable
from enum import IntEnum
from functools import cache
from operator import index
from typing import SupportsIndex

from mpi4py import MPI

NAME = "libswitchpoint.so.1"

# Handles are integers in MPICH, and pointers in Open MPI.
Handle = ctypes.c_int if MPI._sizeof(MPI.Comm) == ctypes.sizeof(ctypes.c_int) else ctypes.c_void_p


class ErrorCode(IntEnum):
    """The errors of the library, as in enum swp_error."""

    SUCCESS = 0
    ARGUMENT = 1
    MEMORY = 2
    MPI = 3
    METHOD = 4
    NOT_APPLICABLE = 5
    MISMATCH = 6
    TABLE = 7
    TOO_LARGE = 8
    STATE = 9
    POISONED = 10


class SwitchpointError(Exception):
    """An error of the library, with its message; `mpi_code` is 0 if no MPI call failed."""

    def __init__(self, code: ErrorCode, message: str, mpi_code: int) -> None:
        super().__init__(message)
        self.code = code
        self.mpi_code = mpi_code

    def __reduce__(self) -> tuple[type[SwitchpointError], tuple[ErrorCode, str, int]]:
        return type(self), (self.code, str(self), self.mpi_code)


class LibraryError(ImportError):
    """The library cannot be loaded, or belongs to another MPI library than mpi4py."""


class Inbox(ctypes.Structure):
    """struct swp_inbox."""

    _fields_ = (
        ("nsources", ctypes.c_int),
        ("sources", ctypes.POINTER(ctypes.c_int)),
        ("bytes", ctypes.POINTER(ctypes.c_int64)),
        ("data", ctypes.POINTER(ctypes.c_void_p)),
    )


_INT, _INT64, _TEXT, _ADDRESS = ctypes.c_int, ctypes.c_int64, ctypes.c_char_p, ctypes.c_void_p
_INTS = ctypes.POINTER(ctypes.c_int64)
_PLANNING = (_TEXT, _ADDRESS, ctypes.POINTER(_ADDRESS))  # method, hints, plan
_INBOX = ctypes.POINTER(ctypes.POINTER(Inbox))
_PROTOTYPES = {
    "swp_version": (_TEXT,),
    "swp_error_message": (_TEXT,),
    "swp_error_mpi": (_INT,),
    "swp_operation_name": (_TEXT, _INT),
    "swp_table_read": (_INT, Handle, _TEXT, ctypes.POINTER(_ADDRESS)),
    "swp_table_rules": (_INT, _ADDRESS),
    "swp_table_has": (_INT, _ADDRESS, _INT),
    "swp_table_free": (None, ctypes.POINTER(_ADDRESS)),
    "swp_exchange_plan": (_INT, Handle, _ADDRESS, *_PLANNING),
    "swp_fields_plan": (_INT, Handle, _ADDRESS, _INT, _ADDRESS, *_PLANNING),
    "swp_discovery_plan": (_INT, Handle, *_PLANNING),
    "swp_collective_plan": (_INT, Handle, _ADDRESS, *_PLANNING),
    "swp_collective_set": (_INT, _ADDRESS, _ADDRESS),
    "swp_exchange_buffer": (_INT, _ADDRESS, ctypes.POINTER(_ADDRESS)),
    "swp_exchange_execute": (_INT, _ADDRESS, _ADDRESS, _ADDRESS),
    "swp_exchange_start": (_INT, _ADDRESS, _ADDRESS, _ADDRESS),
    "swp_fields_execute": (_INT, _ADDRESS, _ADDRESS, _ADDRESS),
    "swp_fields_start": (_INT, _ADDRESS, _ADDRESS, _ADDRESS),
    "swp_test": (_INT, _ADDRESS, ctypes.POINTER(_INT)),
    "swp_wait": (_INT, _ADDRESS),
    "swp_collective_execute": (_INT, _ADDRESS, _ADDRESS, _ADDRESS),
    "swp_discovery_execute": (_INT, _ADDRESS, _INT, _ADDRESS, _ADDRESS, _ADDRESS, _INBOX),
    "swp_inbox_free": (None, _INBOX),
    "swp_plan_describe": (_INT, _ADDRESS, _TEXT, ctypes.c_size_t),
    "swp_plan_method": (_TEXT, _ADDRESS),
    "swp_plan_passed": (_TEXT, _ADDRESS, ctypes.POINTER(_TEXT)),
    "swp_plan_statistics": (_INT, _ADDRESS, _ADDRESS, _ADDRESS),
    "swp_plan_stage": (_INT, _ADDRESS, _INT, _INTS, _INTS, _INTS, _INTS),
    "swp_plan_free": (_INT, ctypes.POINTER(_ADDRESS)),
}


@cache
def library() -> ctypes.CDLL:
    """Return the library that SWITCHPOINT_LIBRARY names, or that the loader finds.

    Raises:
        LibraryError: it cannot be loaded, is older than this package, or is built for another MPI
            library than mpi4py.
    """
    path = os.environ.get("SWITCHPOINT_LIBRARY") or NAME  # an empty one: the interpreter itself
    try:
        loaded = ctypes.CDLL(path)
    except OSError as error:
        raise LibraryError(
            f"{error}; build libswitchpoint with -DBUILD_SHARED_LIBS=ON, and name the file with "
            "SWITCHPOINT_LIBRARY, or its directory with LD_LIBRARY_PATH"
        ) from error
    _check_mpi(path, loaded)
    for name, (result, *arguments) in _PROTOTYPES.items():
        try:
            function = getattr(loaded, name)
        except AttributeError as error:
            raise LibraryError(f"{path} has no {name}: it is older than this package") from error
        function.restype, function.argtypes = result, arguments
    return loaded


def _check_mpi(path: str, loaded: ctypes.CDLL) -> None:
    """Compare the MPI function that the library reaches with that of mpi4py."""
    theirs = ctypes.CDLL(MPI.__file__).MPI_Get_library_version
    try:
        ours = loaded.MPI_Get_library_version
    except AttributeError:
        raise LibraryError(f"{path} is not linked with an MPI library") from None
    if _address(ours) != _address(theirs):
        text = ctypes.create_string_buffer(MPI.MAX_LIBRARY_VERSION_STRING + 8192)
        ours(text, ctypes.byref(ctypes.c_int()))
        raise LibraryError(
            f"{path} is built for {_first_line(text.value.decode(errors='replace'))}, but mpi4py "
            f"uses {_first_line(MPI.Get_library_version())}: build it with the same MPI"
        )


def _address(function: object) -> int | None:
    return ctypes.cast(function, ctypes.c_void_p).value  # type: ignore[arg-type]


def _first_line(text: str) -> str:
    return " ".join(text.splitlines()[0].split()).rstrip("\0")


def call(name: str, *arguments: object) -> None:
    """Call a function that returns an error code.

    Raises:
        SwitchpointError: the call failed.
    """
    code = getattr(library(), name)(*arguments)
    if code != ErrorCode.SUCCESS:
        message = library().swp_error_message().decode(errors="replace")
        raise SwitchpointError(ErrorCode(code), message, library().swp_error_mpi())


def version() -> str:
    """Return the library's version, "major.minor.patch"."""
    text: bytes = library().swp_version()
    return text.decode()


@cache
def operations() -> dict[str, int]:
    """Return the number of each operation, by the name that tables use."""
    numbers: dict[str, int] = {}
    while name := library().swp_operation_name(len(numbers)):
        numbers[name.decode()] = len(numbers)
    return numbers


def handle(thing: MPI.Comm | MPI.Datatype | MPI.Op) -> ctypes.c_int | ctypes.c_void_p:
    """Return what C calls a communicator, a type or an operation."""
    return Handle(MPI._handleof(thing))


def exact(kind: type[ctypes._SimpleCData[int]], value: SupportsIndex) -> int:
    """Return an integer of a C type. Raise ValueError for one that ctypes would cut."""
    number = index(value)  # NumPy's would overflow
    if kind(number).value != number:
        raise ValueError(f"{number} exceeds {8 * ctypes.sizeof(kind)} bits")
    return number


def array_of(code: str, numbers: Iterable[int]) -> array[int]:
    """Return integers as an array of C. Raise ValueError for one that its type cannot have."""
    try:
        return array(code, [*numbers])
    except OverflowError as error:
        bits = 8 * array(code).itemsize
        raise ValueError(f"a number of a list exceeds {bits} bits") from error
