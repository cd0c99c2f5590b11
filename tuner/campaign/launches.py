"""Launches of swpbench by races and studies: started, waited for, read back."""

import os
import re
import signal
import subprocess
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from tuner.errors import SwitchpointError
from tuner.machine.ending import descendants
from tuner.machine.mpi import LaunchCommand, last_line
from tuner.rawfile import reading

_TIMEOUT_S = 600
_GRACE_S = 10
_MOST_NAMED = 4
_MOST_WAIT_S = 1e6  # more is too much for Python
_RANK = re.compile(rb"(?:^|\0)(?:OMPI_COMM_WORLD_RANK|PMI_RANK|SLURM_PROCID)=(\d+)")


class LaunchError(SwitchpointError):
    """Error raised when a launch failed or its file cannot be used; the message says why.

    `output` is what the launch printed as errors.
    """

    def __init__(self, message: str, output: str = "") -> None:
        super().__init__(message)
        self.output = output


def measure(
    start: LaunchCommand, swpbench: Path, options: Sequence[str], budget_s: float
) -> reading.BenchFile:
    """Run `swpbench run` with these options and budget, and return its raw file, which is not kept.

    Raise LaunchError.
    """
    words, timeout_s = [*options, "--budget", f"{budget_s:g}"], budget_s + _TIMEOUT_S
    with tempfile.TemporaryDirectory() as scratch:
        return run(start, swpbench, words, Path(scratch) / "launch.jsonl", timeout_s)


def run(
    start: LaunchCommand,
    swpbench: Path,
    options: Sequence[str],
    out: Path,
    timeout_s: float,
    cwd: Path | None = None,
    command: str = "run",
) -> reading.BenchFile:
    """Run a command, with the raw file at `out`; `cwd` is where it runs, by default here.

    Raise LaunchError.
    """
    return run_each(start, swpbench, [(options, out)], timeout_s, cwd, command)[0]


def run_each(
    start: LaunchCommand,
    swpbench: Path,
    wanted: Sequence[tuple[Sequence[str], Path]],
    timeout_s: float,
    cwd: Path | None = None,
    command: str = "run",
) -> list[reading.BenchFile]:
    """Run a command once for several launches, given by their options and raw files.

    Raise LaunchError: the raw files of the launches before the one that failed may be complete.
    """
    words = [str(swpbench), command]
    for number, (options, out) in enumerate(wanted):
        words += [*["--then"] * (number > 0), *options, "--out", str(out)]
        words += ["--yield", start.yield_setting] if start.yield_setting else []
    ended = finish([*start.argv_prefix, *words], os.environ | start.env, timeout_s, cwd)
    # A simulator ends with success where the ranks fail.
    if ended.code != 0 or not all(out.is_file() for _, out in wanted):
        raise ended.error()
    files = [reading.read(out) for _, out in wanted]
    if problems := [problem for file in files for problem in file.problems]:
        unusable = f"a launch cannot be used: {problems[0]}"
        raise LaunchError(next(iter(ended.said), unusable), ended.errors)
    return files


def is_usable(out: Path) -> bool:
    """Return whether a launch that ended, or failed, left a raw file without problems."""
    return out.is_file() and not reading.read(out).problems


def specs(
    start: LaunchCommand, swpbench: Path, procs: Iterable[int], cwd: Path | None = None
) -> dict[tuple[str, int], list[str]]:
    """Return all methods that launches measure, by operation and number of processes.

    `cwd` is as for `run`. Raise LaunchError.
    """
    words = [*start.argv_prefix, str(swpbench), "list", *map(str, sorted(procs))]
    ended = finish(words, os.environ | start.env, _TIMEOUT_S, cwd)
    if ended.code != 0:
        raise ended.error()
    found: dict[tuple[str, int], list[str]] = defaultdict(list)
    for number, operation, spec in re.findall(r"^([0-9]+)\t(\w+)\t(\S+)$", ended.output, re.M):
        found[operation, int(number)].append(spec)
    return found


def words_of(
    options: Mapping[str, str],
    campaign: str,
    place: tuple[str, str],
    launcher: str,
    cores: int | None = None,
) -> list[str]:
    """Return swpbench's words for options with a value, and for those that all launches have.

    place: the system and the environment. launcher: the program that starts the ranks. cores: those
    of a node, where ranks may be bound to fewer.
    """
    common = {"--campaign": campaign, "--system": place[0], "--environment": place[1]}
    named = {**options, **common, "--launcher": launcher, "--cores": str(cores or "")}
    return [word for option in named.items() if option[1] for word in option]


class Ended(NamedTuple):
    """What a command printed, and its exit code."""

    output: str
    errors: str
    code: int

    @property
    def said(self) -> list[str]:
        """Return the lines in which swpbench says what is wrong."""
        return [line for line in self.errors.splitlines() if line.startswith("swpbench: ")]

    def error(self) -> LaunchError:
        """Return why the launch failed."""
        last = last_line(self.errors)
        what = f"swpbench ended with {self.code}{last and ': '}{last}"
        return LaunchError(next(iter(self.said), what), self.errors)


def _name(pid: int) -> str:
    """Return a process of a launch as messages name it: by its rank, where the launcher set it."""
    with suppress(OSError):
        variables = Path(f"/proc/{pid}/environ").read_bytes()
        if found := _RANK.search(variables):
            return f"rank {found[1].decode()} (process {pid})"
    return f"process {pid}"


def finish(
    command: Sequence[str], env: Mapping[str, str], timeout_s: float, cwd: Path | None = None
) -> Ended:
    """Run a command to its end. Raise LaunchError when it takes longer; it names stopped processes.

    A launcher that is terminated ends its ranks, which one that is killed may leave behind.
    """
    with subprocess.Popen(
        command,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        cwd=cwd,
    ) as process:
        try:
            output, errors = process.communicate(timeout=min(timeout_s, _MOST_WAIT_S))
            return Ended(output, errors, process.returncode)
        except subprocess.TimeoutExpired as error:
            stopped = [pid for pid, state in descendants(process.pid).items() if state == "T"]
            names = "".join(f"; {_name(pid)} is stopped" for pid in stopped[:_MOST_NAMED])
            process.terminate()
            for pid in stopped:  # which no other signal ends
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            try:
                errors = process.communicate(timeout=_GRACE_S)[1]
            except subprocess.TimeoutExpired as late:
                process.kill()
                errors = (late.stderr or b"").decode(errors="replace")
            what = f"a launch did not end within {timeout_s:g} s{names}"
            raise LaunchError(what, errors) from error
        except BaseException:  # interrupted
            process.terminate()
            raise
