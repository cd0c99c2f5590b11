"""Commands of which one allocation fails: nothing is lost, nobody hangs, and one line says why.

Run from the checkout: python -m tests.starved [--every 10] ingest|keep|tune|export
"""

from __future__ import annotations

import argparse
import signal
import tempfile
from collections.abc import Sequence
from itertools import count
from pathlib import Path

from tests.faults import Driver, DriverAnswer, Repeated, build_library, in_memory

COMMANDS = ("ingest", "keep", "tune", "export")
OF_LIBRARIES = (
    "MemoryError",
    "SystemError: ",
    "RuntimeError: can't allocate ",
    "ValueError: [digital ",
)
"""Errors of Python, NumPy and OpenSSL: that there is no memory, or that something failed."""


def check_end(ended: DriverAnswer) -> None:
    """Check that a command ended well, by a line that says why not, or by a library's error."""
    lines = ended.said.splitlines()
    if ended.code == 1:
        assert lines[-2].startswith("Error: ") and "Traceback" not in ended.said, ended.said
    elif ended.code == 70:
        assert lines[-2].startswith(OF_LIBRARIES), ended.said
    else:
        assert ended.code in (0, -signal.SIGSEGV), ended.said  # NumPy's


def starve(driver: Driver, place: Path, command: str, every: int) -> int:
    """Let each allocation, or one in so many, fail once; return the number of them."""
    tried = Repeated(driver, place, command)
    for nth in count(1, every):
        tried.begin_again()
        ended = driver.run_without_memory(tried.results, *tried.words, nth=nth)
        check_end(ended)
        if ended.code == 0 and not ended.met:
            return nth // every
        tried.check()
    raise AssertionError


def main(argv: Sequence[str] | None = None) -> None:
    """Run the program."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--every", type=int, default=1, help="one allocation in so many fails")
    parser.add_argument("commands", nargs="+", choices=COMMANDS)
    options = parser.parse_args(argv)
    for command in options.commands:
        with tempfile.TemporaryDirectory() as library, in_memory(Path(library)) as place:
            driver = Driver(build_library(Path(library)))
            failed = starve(driver, place, command, options.every)
            driver.close()
            print(f"{command}: {failed} allocations failed, one at a time; nothing was lost")


if __name__ == "__main__":
    main()
