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

from tuner.machine.ending import descendants, end_with_parent
from tuner.signals import exits_on

_PR_SET_CHILD_SUBREAPER = 36
GRACE_S = 60.0  # for the last output of an interrupted command


@dataclass(frozen=True)
class LimitedRun:
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
) -> LimitedRun:
    """Run a command; at the limit interrupt it, as Ctrl-C does, and then kill it.

    All that it started is killed at its end, also in sessions of their own, and also where this
    process is interrupted or terminated. The calling process must have no other children: they are
    killed too.
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
        preexec_fn=end_with_parent,
    )
    in_time = True
    with exits_on(signal.SIGTERM, signal.SIGHUP):
        try:
            try:
                _wait(process, limit_s)
            except subprocess.TimeoutExpired:
                in_time = False
                os.killpg(process.pid, signal.SIGINT)
                with suppress(subprocess.TimeoutExpired):
                    _wait(process, grace_s)
        finally:
            process.kill()
            process.wait()
            kill_descendants()
    return LimitedRun(process.returncode, time.monotonic() - started, in_time)


def _wait(process: subprocess.Popen[bytes], limit_s: float) -> None:
    """Wait for a process, and reap others: one that ended is there for them until it is reaped."""
    end_s = time.monotonic() + limit_s
    children = os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT
    while process.poll() is None:
        if time.monotonic() > end_s:
            raise subprocess.TimeoutExpired(process.args, limit_s)
        while (ended := os.waitid(*children)) is not None and ended.si_pid != process.pid:
            os.waitpid(ended.si_pid, 0)
        time.sleep(0.01)


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
