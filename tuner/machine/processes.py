"""Programs that answer a question, and the status of processes, which Linux lists in /proc."""

import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tuner.errors import SwitchpointError

STATE, PARENT, START = 0, 1, 19
"""Places in a status (proc_pid_stat(5))."""

ENDED = "ZX"


class UnansweredError(SwitchpointError):
    """Error raised when a program cannot be started, or takes too long; the message says which."""


def answer(
    command: Sequence[str | Path],
    limit_s: float | None,
    failure: Callable[[str], SwitchpointError] = UnansweredError,
    *,
    what: str = "",
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> subprocess.CompletedProcess[str]:
    """Return how a program ended, and what it printed.

    Raise `failure` where it cannot be started, or takes longer; `what` is its name in the message.
    """
    what = what or str(command[0])
    try:
        return subprocess.run(
            command,
            env=env,
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="backslashreplace",
            timeout=limit_s,
        )
    except OSError as error:
        raise failure(f"{what} cannot be started: {error}") from error
    except subprocess.TimeoutExpired as error:
        raise failure(f"{what} did not end within {error.timeout:g} s") from error


def status(pid: int | str) -> list[str]:
    """Return the status of a process after its name, which may have been cut within a letter.

    Raise OSError if there is no such process.
    """
    return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].decode().split()


def start_of(pid: int) -> str:
    """Return the start time of a process in ticks since boot; "" when it has ended."""
    try:
        found = status(pid)
    except (FileNotFoundError, ProcessLookupError):
        return ""
    return "" if found[STATE] in ENDED else found[START]
