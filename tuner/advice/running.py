"""Runs of an application: started, timed, and ended with all its processes."""

import os
import shlex
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO

from tuner.errors import SwitchpointError
from tuner.machine import mpi as this_machine
from tuner.machine import reaper
from tuner.machine.ending import end_with_parent
from tuner.machine.mpi import Mpi, preload_library, profiler
from tuner.machine.sites.schedulers import srun_type
from tuner.signals import exits_on, held

UNFINALIZED = "exiting improperly"
"""Open MPI's message, on one or two lines, where its launcher ends with 1 because a program exits
without MPI_Finalize."""

_ENDING = (signal.SIGTERM, signal.SIGHUP)


class RunError(SwitchpointError):
    """Error raised when a program cannot be started, or fails; the message says why."""


class LimitError(RunError):
    """Error raised when a program has not ended within its limit, and was ended."""


class ExitError(RunError):
    """Error raised when a program ends with another exit code than it should, after `seconds`."""

    def __init__(self, start: "Invocation", code: int, seconds: float) -> None:
        super().__init__(f"`{shlex.join(start.command)}` ended with {code}")
        self.code = code
        self.seconds = seconds


@dataclass(frozen=True)
class Application:
    """A program, and how its processes start: by mpiexec, or the words of another launcher."""

    mpi: Mpi
    build: Path
    procs: int
    command: Sequence[str]
    launcher: Sequence[str] = ()
    variables: Mapping[str, str] = field(default_factory=dict)  # where it has a table
    preloads: Sequence[Path] = ()  # by the launcher; those of the application join them
    code: int = 0  # with which its launcher ends; not 0 for some programs without MPI_Finalize

    @property
    def name(self) -> str:
        """Return the words that start the program, by which results know it."""
        return shlex.join([*self.launcher, "-n", str(self.procs), *self.command])

    def preloading(self, library: Path | None, **variables: str) -> "Invocation":
        """Return how the program starts, its processes with a library and these variables."""
        libraries = [library] if library else []
        if not self.launcher:
            start = this_machine.launch(self.mpi, self.procs, build=self.build, preload=libraries)
            return Invocation([*start.argv_prefix, *self.command], start.env | variables)
        words = [*self.launcher, "-n", str(self.procs)]
        # Launchers may not pass on their own, as Open MPI's to other nodes.
        own = this_machine.rank_variables([*self.preloads, *libraries]) | variables
        if own:
            words += ["env", *(f"{name}={value}" for name, value in own.items())]
        return Invocation([*words, *self.command], {})

    def dispatching(self, **variables: str) -> "Invocation":
        """Return how the program starts with the library that dispatches its collectives."""
        return self.preloading(_required(preload_library(self.build), self.build), **variables)

    def profiled(self, path: Path) -> "Invocation":
        """Return how the program starts to write a profile."""
        library = _required(profiler(self.build), self.build)
        return self.preloading(library, SWITCHPOINT_TABLE="", SWITCHPOINT_PROFILE=str(path))

    def tabled(self, table: Path) -> "Invocation":
        """Return how the program starts to use a table; it reports what was dispatched."""
        return self.dispatching(
            SWITCHPOINT_TABLE=str(table), SWITCHPOINT_REPORT="1", **self.variables
        )

    def untabled(self) -> "Invocation":
        """Return how the program starts without a table.

        Behind the preload, a profiling tool in LD_PRELOAD does not see MPI begin: its cost must not
        be a gain of the table.
        """
        if this_machine.of_the_user(this_machine.preloaded()):
            return self.dispatching(SWITCHPOINT_TABLE="")
        return self.preloading(None, SWITCHPOINT_TABLE="")

    def lines(self, table: Path) -> list[str]:
        """Return the lines for a shell that run the program with a table, the command last."""
        start = self.dispatching(SWITCHPOINT_TABLE=str(table), **self.variables)
        exports = " ".join(f"{name}={shlex.quote(value)}" for name, value in start.env.items())
        return [*[f"export {exports}"] * bool(exports), shlex.join(start.command)]

    def by_srun(self) -> str:
        """Return the last line in a job of Slurm, whose srun passes on what is exported."""
        kind = srun_type(self.mpi.family)
        srun = replace(self, launcher=["srun", *[f"--mpi={kind}"] * bool(kind)])
        return shlex.join(srun.dispatching().command)


@dataclass(frozen=True)
class Invocation:
    """A command, and the variables that join the environment."""

    command: list[str]
    env: Mapping[str, str]


def _required(library: Path | None, build: Path) -> Path:
    if library is None:
        raise RunError(
            f"{build} has no library to preload; run `switchpoint run` to build the kernels anew"
        )
    return library


def run(
    start: Invocation,
    stdout: IO[bytes] | int | None = None,
    stderr: IO[bytes] | int | None = None,
    cwd: Path | None = None,
    limit_s: float | None = None,
    code: int = 0,
    at_kill: signal.Signals = signal.SIGTERM,
) -> float:
    """Run a command to its end, and return the seconds; its standard input is empty.

    What interrupts this process ends the command with all that it started, and so do its limit and,
    on Linux, the end of this process: by the signal `at_kill`. One SIGINT does not end srun.

    Raises:
        RunError: the command cannot be started.
        ExitError: it ended with another exit code than `code`.
        LimitError: it did not end within `limit_s`.
        KeyboardInterrupt, SystemExit: interrupted, or terminated.
    """
    begun_s = time.monotonic()
    signals = signal.SIGINT, *_ENDING
    with exits_on(*_ENDING), held(*signals) as before, reaper.reaping() as announce:

        def prepare() -> None:
            signal.signal(signal.SIGPIPE, signal.SIG_IGN)  # the reaper may have been killed
            announce()
            signal.signal(signal.SIGPIPE, signal.SIG_DFL)
            end_with_parent(at_kill)
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

        try:
            process = subprocess.Popen(
                start.command,
                env=os.environ | start.env,
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=stderr,
                cwd=cwd,
                start_new_session=True,
                preexec_fn=prepare,
            )
        except OSError as error:
            raise RunError(f"{start.command[0]} cannot be started: {error}") from error
        try:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)  # no sooner: it can be ended now
            ended = process.wait(limit_s)
        except subprocess.TimeoutExpired as error:
            _end(process)
            words = shlex.join(start.command)
            raise LimitError(f"`{words}` did not end within {limit_s:.0f} s") from error
        except BaseException:
            _end(process)
            raise
    seconds = time.monotonic() - begun_s
    if ended != code:
        raise ExitError(start, ended, seconds)
    return seconds


def last_text(output: IO[bytes]) -> str:
    """Return the last 64 KiB that a program has printed to a file."""
    output.seek(0, 2)
    output.seek(max(output.tell() - (1 << 16), 0))
    return output.read().decode(errors="replace")


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a session, and wait for its launcher."""

    def has_ended(grace_s: float | None) -> bool:
        with suppress(subprocess.TimeoutExpired):
            process.wait(grace_s)
        return process.returncode is not None

    reaper.end_session(process.pid, has_ended)
    process.wait()
