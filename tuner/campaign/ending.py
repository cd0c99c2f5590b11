"""The end of programs that a command has started: with it, and by the signals that it gets."""

import ctypes
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType

_PR_SET_PDEATHSIG = 1


def end_with_parent() -> None:
    """Make a new process heed SIGINT, and get one when its parent is killed (Linux)."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGINT)


@contextmanager
def exits_on(*signals: signal.Signals) -> Iterator[None]:
    """Make signals raise SystemExit, unless they are ignored, as under nohup."""

    def leave(number: int, frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    before = {number: signal.getsignal(number) for number in signals}
    heeded = [number for number, handler in before.items() if handler != signal.SIG_IGN]
    try:
        for number in heeded:
            signal.signal(number, leave)
        yield
    finally:
        for number in heeded:
            signal.signal(number, before[number])


def descendants(pid: int) -> dict[int, str]:
    """Return the processes below one that have not ended, with their states (Linux): T is stopped.

    A parent comes before its children.
    """
    children: dict[int, dict[int, str]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, parent = path.read_text().rpartition(")")[2].split()[:2]
            if state != "Z":
                children.setdefault(int(parent), {})[int(path.parent.name)] = state
    found: dict[int, str] = {}
    parents = [pid]
    for each in parents:
        found |= children.get(each, {})
        parents += children.get(each, {})
    return found
