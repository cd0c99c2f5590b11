"""The end of programs that a command has started: with it, and of all that is below them."""

import ctypes
import os
import select
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

_PR_SET_PDEATHSIG = 1

_DEATH_S = 10.0
"""Seconds to wait for killed processes, which a file system that hangs may hold for ever."""


def end_with_parent(number: signal.Signals = signal.SIGINT) -> None:
    """Make a new process heed SIGINT, and get a signal when its parent is killed (Linux)."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number)


@contextmanager
def all_below(pid: int) -> Iterator[None]:
    """Kill, at the end of the block, what ran below a process at its begin and still runs (Linux).

    A launcher's processes have sessions of their own, so that no signal to its group reaches them.
    The block ends when they have.
    """
    with ExitStack() as stack:
        numbers = []
        for each in descendants(pid):
            with suppress(OSError):  # it has ended
                number = os.pidfd_open(each)
                stack.callback(os.close, number)
                numbers.append(number)
        stack.callback(_kill, numbers)
        yield


def _kill(numbers: Sequence[int]) -> None:
    """Kill processes, and wait until they have ended."""
    for number in numbers:
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(number, signal.SIGKILL)
    end_s = time.monotonic() + _DEATH_S
    for number in numbers:
        select.select([number], [], [], max(end_s - time.monotonic(), 0))


def descendants(pid: int) -> dict[int, str]:
    """Return the processes below one that have not ended, with their states (Linux): T is stopped.

    A parent comes before its children.
    """
    children: dict[int, dict[int, str]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            # A name may have been cut within a letter.
            state, parent = path.read_bytes().rpartition(b")")[2].decode().split()[:2]
            if state != "Z":
                children.setdefault(int(parent), {})[int(path.parent.name)] = state
    found: dict[int, str] = {}
    parents = [pid]
    for each in parents:
        found |= children.get(each, {})
        parents += children.get(each, {})
    return found
