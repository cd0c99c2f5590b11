"""The end of programs that a command has started: with it, and of all that is below them."""

from __future__ import annotations

import ctypes
import math
import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tuner.machine.processes import ENDED, PARENT, STATE, start_of, status

_PR_SET_PDEATHSIG = 1

_DEATH_S = 10.0
"""Seconds to wait for killed processes, which a file system that hangs may hold for ever."""

_POLL_S = 0.02


def end_with_parent(number: signal.Signals = signal.SIGINT) -> None:
    """Make a new process heed SIGINT, and get a signal when its parent is killed (Linux)."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, number)


@dataclass(frozen=True)
class Process:
    """A process that no later one of the same id is taken for (Linux).

    Its start tells them apart: Pythons built on old systems have no descriptors of processes.
    """

    pid: int
    start: str  # in ticks since the boot

    @classmethod
    def of(cls, pid: int) -> Process:
        """Return the process of an id. Raise ProcessLookupError if it has ended."""
        if start := start_of(pid):
            return cls(pid, start)
        raise ProcessLookupError(pid)

    def has_ended(self, most_s: float | None) -> bool:
        """Wait until the process has ended, but at most so long; return whether it has."""
        end_s = math.inf if most_s is None else time.monotonic() + most_s
        while self._is_running():
            if time.monotonic() >= end_s:
                return False
            time.sleep(_POLL_S)
        return True

    def kill(self) -> None:
        """Kill the process, unless it has ended."""
        if self._is_running():
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)

    def _is_running(self) -> bool:
        return start_of(self.pid) == self.start


@contextmanager
def all_below(pid: int) -> Iterator[None]:
    """Kill, at the end of the block, what ran below a process at its begin and still runs (Linux).

    A launcher's processes have sessions of their own, so that no signal to its group reaches them.
    The block ends when they have.
    """
    processes = []
    for each in descendants(pid):
        with suppress(OSError):  # it has ended
            processes.append(Process.of(each))
    try:
        yield
    finally:
        for process in processes:
            process.kill()
        end_s = time.monotonic() + _DEATH_S
        for process in processes:
            process.has_ended(end_s - time.monotonic())


def descendants(pid: int) -> dict[int, str]:
    """Return the processes below one that have not ended, with their states (Linux): T is stopped.

    A parent comes before its children.
    """
    children: dict[int, dict[int, str]] = {}
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            its = status(path.name)
            if its[STATE] not in ENDED:
                children.setdefault(int(its[PARENT]), {})[int(path.name)] = its[STATE]
    found: dict[int, str] = {}
    parents = [pid]
    for each in parents:
        found |= children.get(each, {})
        parents += children.get(each, {})
    return found
