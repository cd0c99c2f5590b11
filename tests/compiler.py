"""The C compiler of this machine, whatever its name is."""

import os
import shutil
import subprocess
from pathlib import Path

from tuner.machine.doctor import c_compilers

COMPILER = [
    next(filter(None, map(shutil.which, c_compilers())), "cc"),
    *os.environ.get("CC", "").split()[1:],
]
"""The program, and its arguments in CC."""


def build_preload(source: Path, library: Path) -> None:
    """Build a source into a library that a process may preload."""
    subprocess.run([*COMPILER, "-shared", "-fPIC", source, "-o", library, "-ldl"], check=True)
