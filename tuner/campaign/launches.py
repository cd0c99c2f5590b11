"""Launches of swpbench by races and studies: started, waited for, read back."""

import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from tuner.errors import SwitchpointError
from tuner.machine.mpi import LaunchCommand
from tuner.rawfile import reading

_TIMEOUT_S = 600
_GRACE_S = 10


class LaunchError(SwitchpointError):
    """Error raised when a launch failed or its file cannot be used; the message says why.

    `output` is what the launch printed as errors.
    """

    def __init__(self, message: str, output: str = "") -> None:
        super().__init__(message)
        self.output = output


def measure(start: LaunchCommand, swpbench: Path, options: Sequence[str]) -> reading.BenchFile:
    """Run `swpbench run` with these options, and return its raw file, which is not kept.

    Raises LaunchError.
    """
    with tempfile.TemporaryDirectory() as scratch:
        return run(start, swpbench, options, Path(scratch) / "launch.jsonl", _TIMEOUT_S)


def run(
    start: LaunchCommand,
    swpbench: Path,
    options: Sequence[str],
    out: Path,
    timeout_s: float,
    cwd: Path | None = None,
) -> reading.BenchFile:
    """Run the same with the raw file at `out`; `cwd` is where it runs, by default here.

    Raises LaunchError.
    """
    command = [*start.argv_prefix, str(swpbench), "run", *options, "--out", str(out)]
    if start.yield_setting:
        command += ["--yield", start.yield_setting]
    errors, code = _finish(command, os.environ | start.env, timeout_s, cwd)
    lines = [line for line in errors.splitlines() if line.strip()]
    said = [line for line in lines if line.startswith("swpbench: ")]
    # A simulator ends with success where the ranks fail.
    if code != 0 or not out.is_file():
        last = f": {lines[-1].strip()}" if lines else ""
        raise LaunchError(said[0] if said else f"swpbench ended with {code}{last}", errors)
    file = reading.read(out)
    if file.problems:
        unusable = f"a launch cannot be used: {file.problems[0]}"
        raise LaunchError(said[0] if said else unusable, errors)
    return file


def _finish(
    command: Sequence[str], env: Mapping[str, str], timeout_s: float, cwd: Path | None
) -> tuple[str, int]:
    """Run a command, and return its standard error and exit code.

    A launcher that is terminated ends its ranks, which one that is killed may leave behind.
    """
    with subprocess.Popen(
        command,
        env=env,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        cwd=cwd,
    ) as process:
        try:
            return process.communicate(timeout=timeout_s)[1], process.returncode
        except subprocess.TimeoutExpired as error:
            process.terminate()
            try:
                errors = process.communicate(timeout=_GRACE_S)[1]
            except subprocess.TimeoutExpired as late:
                process.kill()
                errors = (late.stderr or b"").decode(errors="replace")
            raise LaunchError(f"a launch did not end within {timeout_s:g} s", errors) from error
