"""Signals that end this process: held back, or heeded as exceptions so that it can clean up."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def held(*signals: signal.Signals) -> Iterator[set[int]]:
    """Hold signals back within the block; yield the mask from before, for new processes too."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    try:
        yield {*before}
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def exits_on(*signals: signal.Signals) -> Iterator[None]:
    """Make signals raise SystemExit, unless they are ignored, as under nohup.

    The main thread gets them; in others nothing changes.
    """

    def leave(number: int, frame: FrameType | None) -> None:
        raise SystemExit(128 + number)

    is_main = threading.current_thread() is threading.main_thread()
    before = {number: signal.getsignal(number) for number in signals if is_main}
    heeded = [number for number, handler in before.items() if handler != signal.SIG_IGN]
    try:
        for number in heeded:
            signal.signal(number, leave)
        yield
    finally:
        for number in heeded:
            signal.signal(number, before[number])
