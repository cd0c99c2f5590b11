"""The processes of this machine, as Linux lists them in /proc."""

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

TIMEOUT_S = 600  # far beyond a run on a busy machine: one that reaches it hangs


def wait_for(condition: Callable[[], object], timeout_s: float = TIMEOUT_S) -> None:
    """Return when a condition holds. Raise TimeoutError."""
    end_s = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > end_s:
            raise TimeoutError
        time.sleep(0.02)


def is_running(pid: int) -> bool:
    """Return whether a process has not ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def command_lines() -> Iterator[tuple[int, list[str]]]:
    """Yield the number of each process, and its words."""
    return _strings("cmdline")


def environments() -> Iterator[tuple[int, dict[str, str]]]:
    """Yield the number of each process whose variables may be read, and these."""
    for pid, assignments in _strings("environ"):
        pairs = (assignment.partition("=") for assignment in assignments)
        yield pid, {name: value for name, _, value in pairs}


def processes_below(directory: Path) -> list[list[str]]:
    """Return command lines that name a directory."""
    return [words for _, words in command_lines() if any(str(directory) in word for word in words)]


def _strings(name: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the strings of a file of each process but those that end meanwhile."""
    for path in Path("/proc").glob(f"[0-9]*/{name}"):
        try:
            text = os.fsdecode(path.read_bytes())
        except OSError:
            continue
        yield int(path.parent.name), text.removesuffix("\0").split("\0")
