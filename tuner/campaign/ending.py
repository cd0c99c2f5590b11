"""The end of programs that a command has started: with it, and by the signals that it gets."""

import ctypes
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
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
