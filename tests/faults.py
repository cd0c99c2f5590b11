"""Commands whose n-th change of a file or allocation fails, or kills them (faults.c, preloaded)."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests import synthetic
from tests.compiler import build_preload
from tuner.paths import CHECKOUT

KILLED = 9  # as faults.c exits

# Runs commands in children, as importing takes longer than most of them.
DRIVER = """
import ctypes, json, os, sys, tempfile
from pathlib import Path
import click
from tuner.cli import main
from tuner.rawfile import keeping

@main.command()
@click.argument("paths", nargs=-1, type=Path)
def keep(paths):
    keeping.keep(paths)

for line in sys.stdin:
    job = json.loads(line)
    os.environ["SWITCHPOINT_RESULTS"] = job["results"]
    with tempfile.TemporaryFile("w+") as output:
        child = 0 if job["here"] else os.fork()
        if not child:
            kept = os.dup(1), os.dup(2)
            os.dup2(output.fileno(), 1), os.dup2(output.fileno(), 2)
            if job["nth"]:
                fault = ctypes.c_long(job["nth"]), job["error"], ctypes.c_bool(job["torn"])
                ctypes.CDLL(None).fault_at(os.fsencode(job["results"]), *fault)
            if job["record"]:
                record = os.open(job["record"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
                ctypes.CDLL(None).record_changes(os.fsencode(job["results"]), record)
            fired = ctypes.CDLL(None).fault_fired
            if job["allocation"]:
                ctypes.CDLL(None).allocation_fault_at(ctypes.c_long(job["allocation"]))
            try:
                main(job["words"], "switchpoint")
            except SystemExit as ended:
                code = ended.code
            except BaseException:
                sys.excepthook(*sys.exc_info())
                code = 70
            sys.stdout.flush(), sys.stderr.flush()
            if not job["here"]:
                print(fired(), flush=True)
                os._exit(code or 0)
            os.dup2(kept[0], 1), os.dup2(kept[1], 2)
        else:
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        output.seek(0)
        print(json.dumps([code or 0, output.read()]), flush=True)
"""


@dataclass(frozen=True)
class DriverAnswer:
    """How a command of the driver ended."""

    code: int
    said: str
    met: bool  # the fault: its last line says so


class Driver:
    """A process that runs commands of `switchpoint`, and `keep`, each in a child."""

    def __init__(self, library: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", DRIVER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=os.environ | {"LD_PRELOAD": str(library), "PYTHONPATH": str(CHECKOUT)},
            text=True,
        )

    def warm_up(self, results: Path, *words: str) -> DriverAnswer:
        """Run a command in the process itself, which has its modules from then on."""
        return self._ask(results, words, here=True)

    def run(
        self, results: Path, *words: str, nth: int = 0, error: int = 0, torn: bool = False
    ) -> DriverAnswer:
        """Run a command whose n-th change below the results fails, or with error 0 kills it."""
        return self._ask(results, words, nth=nth, error=error, torn=torn)

    def run_without_memory(self, results: Path, *words: str, nth: int) -> DriverAnswer:
        """Run a command whose n-th allocation fails."""
        return self._ask(results, words, allocation=nth)

    def record(self, results: Path, record: Path, *words: str) -> DriverAnswer:
        """Run a command; append each change below the results to a file."""
        return self._ask(results, words, record=str(record))

    def _ask(self, results: Path, words: tuple[str, ...], **more: Any) -> DriverAnswer:
        job: dict[str, Any] = {"results": str(results), "words": words, "here": False, "nth": 0}
        job |= {"error": 0, "torn": False, "allocation": 0, "record": ""} | more
        assert self._process.stdin is not None and self._process.stdout is not None
        print(json.dumps(job), file=self._process.stdin, flush=True)
        code, said = json.loads(self._process.stdout.readline())
        return DriverAnswer(code, said, code == KILLED or said.splitlines()[-1:] == ["1"])

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


def build_library(directory: Path) -> Path:
    """Build faults.c; return the library."""
    path = directory / "faults.so"
    build_preload(Path(__file__).with_name("faults.c"), path)
    return path


@contextmanager
def in_memory(otherwise: Path) -> Iterator[Path]:
    """Yield a directory in memory where there is one: it would be flushed to a disk very often."""
    memory = Path("/dev/shm")
    with TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else otherwise) as place:
        yield Path(place)


def dump(database: Path) -> list[str]:
    """Return the whole content of a store that is sound."""
    connection = sqlite3.connect(database)
    try:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        return list(connection.iterdump())
    finally:
        connection.close()


def campaign(number: int) -> synthetic.Campaign:
    """Return a small campaign."""
    name = f"2026010{number}T000000Z"
    return synthetic.Campaign(name=name, launches=3, sizes=(8,), samples=20, seed=number)


def words_of(command: str, place: Path) -> list[str]:
    """Return the words of a command, whose results are in `results`."""
    if command in ("ingest", "keep"):
        return [command, *map(str, synthetic.write(place / "raw", campaign(2)))]
    if command == "tune":
        return ["tune", "--require-soak", "0"]
    return ["export", "--output", str(place / "results" / "own.table")]


def files(results: Path) -> dict[Path, set[object]]:
    """Return all that the results hold: of each store its rows, of other files the content."""
    return {
        path.relative_to(results): {*dump(path)} if path.suffix == ".db" else {path.read_bytes()}
        for path in results.rglob("*")
        if path.is_file() and not path.name.endswith(("-wal", "-shm"))
    }


class Repeated:
    """A command that goes wrong on results of an earlier campaign, again and again."""

    def __init__(self, driver: Driver, place: Path, command: str) -> None:
        self._driver, self._before = driver, place / "before"
        self.results, self.words = place / "results", words_of(command, place)
        first = map(str, synthetic.write(place / "first", campaign(1)))
        driver.warm_up(self._before, "ingest", *first)
        if command == "export":
            driver.warm_up(self._before, "tune", "--require-soak", "0")
            (self._before / "own.table").write_text("an earlier table\n")
        shutil.copytree(self._before, self.results)
        ended = driver.warm_up(self.results, *self.words)
        assert ended.code == 0, ended.said
        self.whole, self.old = files(self.results), files(self._before)
        self.begin_again()

    def begin_again(self) -> None:
        """Give the results what they had before the command."""
        shutil.rmtree(self.results)
        shutil.copytree(self._before, self.results)

    def check(self, *earlier: dict[Path, set[object]]) -> None:
        """Check that nothing was lost, and that the command, repeated, leaves what it should."""
        left = files(self.results)
        for kept in self.old, *earlier:
            assert all(content & self.whole[path] <= left[path] for path, content in kept.items())
        again = self._driver.run(self.results, *self.words)
        assert again.code == 0, again.said
        assert files(self.results) == self.whole
