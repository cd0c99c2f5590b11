"""One launch of swpbench for a study: started, waited for, read back."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tuner import benchfile
from tuner.errors import SwitchpointError
from tuner.mpi import Launch

_TIMEOUT_S = 600


class LaunchError(SwitchpointError):
    """A launch failed, or what it wrote cannot be used; the text says why."""


def measure(start: Launch, swpbench: Path, options: Sequence[str]) -> benchfile.BenchFile:
    """What `swpbench run` with these options measures; the raw file does not stay.

    Raises LaunchError.
    """
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch) / "launch.jsonl"
        command = [*start.argv_prefix, str(swpbench), "run", *options, "--out", str(out)]
        if start.yield_setting:
            command += ["--yield", start.yield_setting]
        try:
            answer = subprocess.run(
                command,
                env=os.environ | start.env,
                capture_output=True,
                text=True,
                timeout=_TIMEOUT_S,
            )
        except subprocess.TimeoutExpired as error:
            raise LaunchError(f"a launch did not end within {_TIMEOUT_S} s") from error
        if answer.returncode != 0:
            said = [line for line in answer.stderr.splitlines() if line.startswith("swpbench: ")]
            raise LaunchError(said[0] if said else f"swpbench ended with {answer.returncode}")
        file = benchfile.read(out)
    if file.problems:
        raise LaunchError(f"a launch cannot be used: {file.problems[0]}")
    return file
