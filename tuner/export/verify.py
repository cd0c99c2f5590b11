"""Checks of a method table by the library itself, with `swpbench table`.

For the file of an MPI library the check is whether exactly that version is installed, because other
versions misread the file.
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
    """Error raised when the table is wrong, or when there is no library to check it."""


def find_swpbench() -> Path:
    """Return the newest swpbench below SWITCHPOINT_KERNELS, or else below campaigns' installations.

    Raises VerifyError if there is none.
    """
    named = os.environ.get("SWITCHPOINT_KERNELS")
    root = Path(named) if named else build_root()
    programs = [path for path in _below(root) if path.is_file() and os.access(path, os.X_OK)]
    if not programs:
        raise VerifyError(
            f"no built swpbench below {root}: build the kernels with `switchpoint run`, or set "
            "SWITCHPOINT_KERNELS to a build or installation"
        )
    return max(programs, key=lambda path: path.stat().st_mtime)


def _below(root: Path) -> list[Path]:
    """Return the paths of swpbench in an installation, a build, and campaigns' installations."""
    patterns = ("bin/swpbench", "bench/swpbench", "install/*/bin/swpbench")
    return [path for pattern in patterns for path in root.glob(pattern)]


def verify_table(path: Path) -> str:
    """Return the library's answer for a valid table, `FILE: N rules`. Raise VerifyError for others.

    Raises VendorError for a file of an MPI library that is not installed.
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
        raise VerifyError(f"cannot run {program}: {error}") from error
    if answer.returncode != 0:
        said = (answer.stderr or answer.stdout).strip().splitlines()
        reason = next((line for line in said if line.startswith("swpbench:")), "\n".join(said[:1]))
        raise VerifyError(
            reason.removeprefix("swpbench: ") or f"{program} failed without a message"
        )
    return answer.stdout.strip()
