"""A process beside a command: if the command is killed, it ends what the command has started.

The signal at its end reaches a launcher alone, and MPICH's takes no notice of one in its first
milliseconds. Started by `reaping`: python -m tuner.machine.reaper SECONDS
"""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache

from tuner.machine.directories import python_path
from tuner.machine.ending import Process, all_below

_GRACE_S = 10.0
_PATIENCE_S = 20.0
"""Seconds in which a launcher must end by the signal that it gets when its parent ends."""

_NOTHING = 0


def end_session(pid: int, has_ended: Callable[[float | None], bool]) -> None:
    """End the session of a launcher, which is asked first: one that is killed may leave its ranks.

    `has_ended` waits so many seconds for the launcher, and returns whether it has ended.
    """
    for number, grace_s in ((signal.SIGTERM, _GRACE_S), (signal.SIGKILL, None)):
        with all_below(pid), suppress(ProcessLookupError):
            os.killpg(pid, number)
            if has_ended(grace_s):
                os.killpg(pid, signal.SIGKILL)  # those that outlive the launcher
                return


@contextmanager
def reaping() -> Iterator[Callable[[], None]]:
    """Have the session of a launcher ended, should this process be killed in the block (Linux).

    Yield what the launcher has to call before it is executed, as it may be too late afterwards.
    """
    _watch(_NOTHING)  # the reaper is there before the launcher
    try:
        yield lambda: _watch(os.getpid())
    finally:
        _watch(_NOTHING)


def _watch(pid: int) -> None:
    """Pass the reaper the process that it has to end."""
    if sys.platform == "linux" and (pipe := _reaper().stdin) is not None:
        with suppress(BrokenPipeError):  # the reaper itself was killed
            pipe.write(b"%d\n" % pid)


@cache
def _reaper() -> subprocess.Popen[bytes]:
    """Start the reaper of this process, which belongs to no results."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("SWITCHPOINT_")}
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "tuner.machine.reaper", str(_PATIENCE_S)],
        bufsize=0,
        env=env | {"PYTHONPATH": python_path()},
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def main() -> None:
    """Read process ids until their writer ends; then end the last one's session.

    It is first given the seconds of the argument to end by itself.
    """
    patience_s = float(sys.argv[1])
    launcher: Process | None = None
    for line in sys.stdin:
        launcher, pid = None, int(line)
        if pid != _NOTHING:
            with suppress(OSError):  # it has ended
                launcher = Process.of(pid)
    if launcher and not launcher.has_ended(patience_s):
        end_session(launcher.pid, launcher.has_ended)


if __name__ == "__main__":
    main()
