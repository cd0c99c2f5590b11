"""Checks of a method table by the library itself, with `swpbench table`.

For a file of an MPI library the check is whether that very version is here, as another misreads it.
"""

import os
import subprocess
from pathlib import Path

from tuner.errors import SwitchpointError
from tuner.export.mpi_library import FAMILIES, launcher, made_for
from tuner.files import open_file
from tuner.machine.mpi import build_root

_TIMEOUT_S = 60
_HEAD_BYTES = 4096


class VerifyError(SwitchpointError):
    """Error raised when the table is wrong, or when there is no library to ask."""


def find_swpbench() -> Path:
    """Return the newest benchmark program below SWITCHPOINT_KERNELS, or that a campaign installed.

    Raises VerifyError when there is none.
    """
    named = os.environ.get("SWITCHPOINT_KERNELS")
    root = Path(named) if named else build_root()
    programs = [path for path in _below(root) if path.is_file() and os.access(path, os.X_OK)]
    if not programs:
        raise VerifyError(
            f"no built swpbench below {root}; `switchpoint run` builds the kernels, or name a "
            "build or installation by SWITCHPOINT_KERNELS"
        )
    return max(programs, key=lambda path: path.stat().st_mtime)


def _below(root: Path) -> list[Path]:
    """Return swpbench's places in an installation, a build, and all campaigns' installations."""
    patterns = ("bin/swpbench", "bench/swpbench", "install/*/bin/swpbench")
    return [path for pattern in patterns for path in root.glob(pattern)]


def verify_table(path: Path) -> str:
    """Return the library's answer on a good table, `FILE: N rules`. Raise VerifyError for others.

    Raises VendorError for a file that is for an MPI library which is not here.
    """
    with open_file(path) as file:
        reader = made_for(file.read(_HEAD_BYTES).decode(errors="replace"))
    if reader is not None:
        family, version = reader
        return f"{path}: for {FAMILIES[family]} {version}: {launcher(family, version)}"
    program = find_swpbench()
    try:
        answer = subprocess.run(
            [program, "table", path], capture_output=True, text=True, timeout=_TIMEOUT_S
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise VerifyError(f"{program} does not run: {error}") from error
    if answer.returncode != 0:
        said = (answer.stderr or answer.stdout).strip().splitlines()
        reason = next((line for line in said if line.startswith("swpbench:")), "\n".join(said[:1]))
        raise VerifyError(reason.removeprefix("swpbench: ") or f"{program} failed without a word")
    return answer.stdout.strip()
