"""The status of processes, which Linux lists in /proc."""

from pathlib import Path

STATE, PARENT, START = 0, 1, 19
"""Places in a status (proc_pid_stat(5))."""

ENDED = "ZX"


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
