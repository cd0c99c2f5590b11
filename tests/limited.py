"""Commands with a time limit that leave nothing running."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

_PR_SET_CHILD_SUBREAPER = 36
GRACE_S = 60.0  # for the last output of an interrupted command


@dataclass(frozen=True)
class Ended:
    """The end of a command."""

    status: int
    seconds: float
    in_time: bool


def run_limited(
    command: Sequence[str | Path],
    limit_s: float,
    env: Mapping[str, str] | None = None,
    output: IO[bytes] | None = None,
    grace_s: float = GRACE_S,
) -> Ended:
    """Run a command; at the limit interrupt it, as Ctrl-C does, and then kill it.

    All that it started is killed at its end, also in sessions of their own. The calling process
    must have no other children: they are killed too.
    """
    # Processes whose parent has ended become children of this one, and are found below.
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1)
    started = time.monotonic()
    process = subprocess.Popen(
        list(map(str, command)),
        env=env,
        stdout=output,
        stderr=output,
        start_new_session=True,
        preexec_fn=_heed_interrupts,
    )
    in_time = True
    try:
        try:
            process.wait(limit_s)
        except subprocess.TimeoutExpired:
            in_time = False
            os.killpg(process.pid, signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                process.wait(grace_s)
    finally:
        process.kill()
        process.wait()
        kill_descendants()
    return Ended(process.returncode, time.monotonic() - started, in_time)


def _heed_interrupts() -> None:
    """Make a new process heed SIGINT, which what a shell started in its background ignores."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def kill_descendants() -> None:
    """Kill all processes below this one, until there are none."""
    while below := descendants(os.getpid()):
        for pid in below:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        time.sleep(0.01)


def descendants(pid: int) -> list[int]:
    """Return the processes below one that still run."""
    children: dict[int, list[int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            state, parent = path.read_text().rpartition(")")[2].split()[:2]
            if state != "Z":
                children.setdefault(int(parent), []).append(int(path.parent.name))
    found = list(children.get(pid, []))
    for each in found:
        found += children.get(each, [])
    return found
