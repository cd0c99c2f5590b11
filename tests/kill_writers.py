"""Commands that are killed at any moment while they change a store, with a reader beside.

Nothing is lost, and the command repeated leaves what it leaves without a kill, byte for byte.
Run from the checkout:
python -m tests.kill_writers [--kills 200] [--seed 1] ingest|tune|export|older
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.context import ForkProcess
from multiprocessing.synchronize import Event
from pathlib import Path
from random import Random
from typing import Any

from tests import synthetic
from tests.faults import dump, in_memory
from tuner.cli import main as switchpoint
from tuner.store.database import VERSION, MissingStoreError, StoreError
from tuner.store.store import Store

COMMANDS = ("ingest", "tune", "export", "older")
"""The last one is an ingest into a store of an earlier version, which is brought up to date."""

FORK = get_context("fork")  # children have all modules at once
TUNE = ("tune", "--require-soak", "0")
STORE = "switchpoint.db"
DATA = Path(__file__).parent / "data"

Content = dict[Path, list[str] | bytes]
"""The lines of the dumps of stores, and the bytes of other files."""


def start(results: Path, words: Sequence[str]) -> ForkProcess:
    """Start a command in a child."""
    process = FORK.Process(target=_command, args=(results, words))
    process.start()
    return process


def _command(results: Path, words: Sequence[str]) -> None:
    os.environ["SWITCHPOINT_RESULTS"] = str(results)
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 1)
    switchpoint(words, "switchpoint")


def run(results: Path, words: Sequence[str]) -> None:
    """Run a command to its end, which must be a good one."""
    process = start(results, words)
    process.join()
    assert process.exitcode == 0, words


def kill_after(seconds: float, process: ForkProcess) -> bool:
    """Kill a command at a moment, unless it has ended well before."""
    process.join(seconds)
    process.kill()
    process.join()
    assert process.exitcode in (0, -signal.SIGKILL)
    return process.exitcode != 0


@contextmanager
def alongside(function: Callable[..., None], *arguments: Any) -> Iterator[None]:
    """Let another process do something meanwhile: it gets an event that ends it first."""
    ends = FORK.Event()
    process = FORK.Process(target=function, args=(ends, *arguments))
    process.start()
    try:
        yield
    finally:
        ends.set()
        process.join()
    assert process.exitcode == 0, f"{function.__name__} failed"


def read(ends: Event, database: Path) -> None:
    """Read the store all the time; it may be locked, missing or old."""
    most = 0
    while not ends.is_set():
        try:
            with Store.open(database, readonly=True) as store:
                launches = len(store.launches())
                store.cells()
        except MissingStoreError:
            assert most == 0
            continue
        except StoreError as error:
            assert "locked by another process" in str(error) or "older version" in str(error), error
            continue
        assert launches >= most
        most = launches


def content(results: Path) -> Content:
    """Return all that the results hold: of a store that is sound its dump, else the bytes."""
    return {
        path.relative_to(results): dump(path) if path.suffix == ".db" else path.read_bytes()
        for path in sorted(results.rglob("*"))
        if path.is_file() and not path.name.endswith(("-journal", "-wal", "-shm"))
    }


def check_left(old: Content, left: Content, new: Content) -> None:
    """Check that a kill leaves each file as it was or as it is to be, and all rows that stay."""
    for path, lines in old.items():
        if isinstance(lines, list):
            assert {*lines} & {*new[path]} <= {*left[path]}, path
        else:
            assert left[path] in (lines, new[path]), path


def make(place: Path, command: str, version: int) -> tuple[Path, list[str]]:
    """Return the results before a command, and its words."""
    before = place / f"before-{version}"
    if not before.exists():
        if command == "older":
            before.mkdir()
            shutil.copy(DATA / f"store-v{version}.db", before / STORE)
        else:
            run(before, ["ingest", *_raw(place / "first", 1)])
        if command == "export":
            run(before, TUNE)
            (before / "own.table").write_text("an earlier table\n")
    if command == "tune":
        return before, [*TUNE]
    if command == "export":
        return before, ["export", "--output", "own.table"]
    return before, ["ingest", *_raw(place / "second", 2)]


def _raw(place: Path, number: int) -> list[str]:
    its = synthetic.Campaign(name=f"2026010{number}T000000Z", launches=10, seed=number)
    return [str(path) for path in synthetic.write(place, its)]


def kill_often(place: Path, command: str, kills: int, seed: int) -> dict[str, int]:
    """Kill a command so often; return how often it was killed, and how often it ended before."""
    chance, ends = Random(seed), Counter[str]()
    whole: dict[int, tuple[Content, float]] = {}
    while ends["killed"] < kills:
        version = chance.randrange(1, VERSION) if command == "older" else VERSION
        before, words = make(place, command, version)
        results = place / "results"
        words = [word.replace("own.table", str(results / "own.table")) for word in words]
        if version not in whole:
            shutil.copytree(before, results)
            begin_s = time.monotonic()
            run(results, words)
            whole[version] = content(results), time.monotonic() - begin_s
            shutil.rmtree(results)
        expected, takes_s = whole[version]
        shutil.copytree(before, results)
        with alongside(read, results / STORE):
            is_killed = kill_after(chance.uniform(0, takes_s), start(results, words))
            ends["killed" if is_killed else "ended"] += 1
            check_left(content(before), content(results), expected)
            run(results, words)
        assert content(results) == expected
        shutil.rmtree(results)
    return {"killed": ends["killed"], "ended": ends["ended"]}


def main() -> None:
    """Kill a command very often; print how often."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kills", type=int, default=200, help="how often (default: 200)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("command", choices=COMMANDS)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as otherwise, in_memory(Path(otherwise)) as place:
        figures = kill_often(place, options.command, options.kills, options.seed)
    print(json.dumps({"command": options.command} | figures))


if __name__ == "__main__":
    main()
