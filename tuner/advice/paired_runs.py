"""The application with a table and without, and why calls were not dispatched."""

import hashlib
import json
import os
import platform
import re
import shutil
import tempfile
import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from stat import S_ISREG

from tuner.advice.proof import Proof, prove
from tuner.advice.running import Application, Invocation, LimitError, RunError, last_text, run
from tuner.files import one_line
from tuner.machine.mpi import available_cores, last_line, preload_library

HANG_RATIO, HANG_S = 10.0, 30.0
"""A run counts as hung after this multiple of the longest run without the table, plus these
seconds."""

SLOW_RATIO = 2.0
"""A run with the table that the budget ended after this multiple of that run may hang."""

_MATTER = ("OMP_", "OMPI_", "MPICH_", "I_MPI_", "UCX_", "FI_")
"""Prefixes of the variables that change how a program runs."""

_SAID = re.compile(r"^switchpoint: (\w+ (?:(?:not )?by|left to) .*)$", re.MULTILINE)


class TableError(RunError):
    """Error raised when the application fails or hangs with the table."""


class BudgetError(RunError):
    """Error raised when a run would have gone on after the end of the time for all."""


@dataclass
class PairedRuns:
    """Runs of an application with a table and without; output is shown only where one fails."""

    app: Application
    table: Path
    usual_s: float  # of the longest run without the table so far
    end_s: float  # of the monotonic clock
    begun_ns: int = 0  # of the clock of files: when this start began, before its first run
    dispatched: list[str] = field(default_factory=list)  # by rank 0, in the last run with the table

    def identity(self, operations: Collection[str]) -> str:
        """Return a digest of what is compared: two comparisons with the same are one.

        It changes with the command, its program, the environment, the machine, the methods, the
        rules for the operations, and the files that the command names and runs do not write.
        """
        start = self.app.dispatching()
        rules = [line.partition(" evidence=")[0] for line in self.table.read_text().splitlines()]
        own = [f"rule op={operation} " for operation in operations]
        named = [path for path in map(Path, self.app.command[1:]) if self._is_input(path)]
        files = [shutil.which(self.app.command[0]), preload_library(self.app.build), *named]
        environment = {key: its for key, its in os.environ.items() if key.startswith(_MATTER)}
        parts = [
            [platform.node(), available_cores()],
            sorted(environment.items()),
            str(Path.cwd()),
            start.command,
            sorted(self.app.variables.items()),
            [line for line in rules if line.startswith(tuple(own))],
            [[its.st_size, its.st_mtime_ns] for its in map(_status, files) if its],
        ]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()  # variables may be no UTF-8

    def _is_input(self, path: Path) -> bool:
        its = _status(path)
        return its is not None and S_ISREG(its.st_mode) and its.st_mtime_ns < self.begun_ns

    def proofs(self, earlier: Sequence[tuple[float, float]] = ()) -> Iterator[Proof]:
        """Yield the proof after each pair of runs, until the difference is resolved or time is up.

        `earlier` are pairs of a comparison that was ended.

        Raises:
            TableError: the application failed, or hung, with the table.
            BudgetError: the time was up during a run, which was ended.
            RunError: the application failed without the table.
        """
        return prove(self._without, self._with_table, self.end_s, self.usual_s, earlier)

    @property
    def unchanged(self) -> bool:
        """Return whether rank 0 has reported calls, all by the MPI library's own methods."""
        other = (re.match(r"\w+ by (?!vendor: )", line) for line in self.dispatched)
        return bool(self.dispatched) and not any(other)

    def _without(self) -> float:
        seconds = self._timed(self.app.untabled())
        self.usual_s = max(self.usual_s, seconds)
        return seconds

    def _with_table(self) -> float:
        left_s = self.end_s - time.monotonic()
        try:
            return self._timed(self.app.tabled(self.table))
        except BudgetError as error:
            if left_s <= SLOW_RATIO * self.usual_s:
                raise
            raise BudgetError(f"{error}; it may hang with the table") from error
        except RunError as error:
            raise TableError(f"with the table, {error}") from error

    def _timed(self, start: Invocation) -> float:
        hung_s, left_s = HANG_RATIO * self.usual_s + HANG_S, self.end_s - time.monotonic()
        usual = f"{self.usual_s:.1f} s without the table"
        with tempfile.TemporaryFile() as output:
            try:
                limit_s = max(min(hung_s, left_s), 0.0)
                return run(start, output, output, limit_s=limit_s, code=self.app.code)
            except LimitError as error:
                if left_s < hung_s:
                    raise BudgetError(f"a run was ended after {left_s:.0f} s; {usual}") from error
                raise RunError(f"{error}; {usual}") from error
            except RunError as error:
                said = one_line(last_line(last_text(output))) or "it printed nothing"
                raise RunError(f"{error}: {said}") from error
            finally:
                if found := _SAID.findall(last_text(output)):
                    self.dispatched = [one_line(line) for line in found]


def _status(path: str | Path | None) -> os.stat_result | None:
    try:
        return Path(path).stat() if path else None
    except (OSError, ValueError):
        return None
