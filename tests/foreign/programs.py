"""Programs of others, their places, and their runs under the preload.

None is in this repository: PyPI has mpi4py (with its tests, and OSU's benchmarks in Python) and a
binary of the Intel benchmarks, Debian has PETSc with its examples. SWITCHPOINT_FOREIGN names
directories of more: programs of OSU and Intel that were built with one of the MPIs here.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

from tests.conftest import Require
from tests.kernels.conftest import Kernels, finish
from tests.kernels.preloaded import dispatched, every_method, mpi_library, run_preloaded
from tests.processes import TIMEOUT_S
from tuner.machine import mpi
from tuner.machine.directories import build_root

HOME = build_root() / "foreign"  # downloads stay for the next night
MPI4PY = "mpi4py==4.1.2"
IMPI = "impi-rt==2021.18.1"
PROCS = (1, 2, 3, 4, 6, 7, 8, 12, 16)


@dataclass(frozen=True)
class Program:
    """A command of another project, and its environment variables."""

    command: Sequence[str | Path]
    env: Mapping[str, str] = field(default_factory=dict)


def run_alone(kernels: Kernels, program: Program, procs: int) -> str:
    """Return the output without the preload."""
    start = mpi.launch(kernels.mpi, procs, build=kernels.build)
    env = os.environ | start.env | mpi_libraries(kernels) | dict(program.env)
    done = finish([*start.argv_prefix, *map(str, program.command)], env, TIMEOUT_S)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout + done.stderr


def run_dispatched(kernels: Kernels, program: Program, procs: int, scratch: Path) -> str:
    """Return the output under the preload with a table of every method; some must be used."""
    done = run_preloaded(
        kernels,
        Path(program.command[0]),
        procs,
        *map(str, program.command[1:]),
        table=every_method(kernels, procs, scratch),
        env=mpi_libraries(kernels) | dict(program.env),
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    methods = set().union(*dispatched(done.stderr).values())
    assert procs == 1 or methods - {"vendor"}, done.stderr
    said = "".join(
        line for line in done.stderr.splitlines(True) if not line.startswith("switchpoint:")
    )
    return done.stdout + said


def mpi_libraries(kernels: Kernels) -> dict[str, str]:
    """Return variables with which programs linked with MPICH's ABI find this MPI.

    Debian has another name for its library.
    """
    library = mpi_library(kernels)
    directory = HOME / f"lib-{kernels.mpi.name}-{kernels.mpi.version}"
    directory.mkdir(parents=True, exist_ok=True)
    alias = directory / "libmpi.so.12"
    if library.name == "libmpich.so.12" and not alias.is_symlink():
        alias.symlink_to(library)
    paths = [str(directory), str(library.parent), os.environ.get("LD_LIBRARY_PATH", "")]
    return {"LD_LIBRARY_PATH": ":".join(filter(None, paths))}


def compiled(kernels: Kernels, name: str) -> Path | None:
    """Return a program in SWITCHPOINT_FOREIGN that is linked with this MPI's library, or None."""
    for directory in filter(None, os.environ.get("SWITCHPOINT_FOREIGN", "").split(os.pathsep)):
        for path in sorted(Path(directory).rglob(name)):
            if path.is_file() and f"[{mpi_library(kernels).name}]" in _needed(path):
                return path
    return None


def _needed(program: Path) -> str:
    return subprocess.run(["readelf", "-d", program], capture_output=True, text=True).stdout


def mpi4py(require: Require) -> Path:
    """Return the directory of its sources, with the package installed beside them."""
    place = HOME / "mpi4py"
    with _locked(place):
        if not (place / "done").exists():
            _pip(require, "mpi4py", "install", "--target", str(place / "installed"), MPI4PY)
            _pip(require, "mpi4py", "download", "--no-binary=mpi4py", "-d", str(place), MPI4PY)
            # Debian's Python 3.11.2 has no filter for members of archives.
            subprocess.run(["tar", "-xf", *place.glob("mpi4py-*.tar.gz"), "-C", place], check=True)
            (place / "done").touch()
    return next(path for path in place.glob("mpi4py-*") if path.is_dir())


def python(kernels: Kernels, sources: Path, *arguments: str | Path) -> Program:
    """Return a program of mpi4py's, under this MPI."""
    abi = "openmpi" if kernels.mpi.family == "openmpi" else "mpich"
    paths = [sources.parent / "installed", sources / "demo"]
    env = {"MPI4PY_MPIABI": abi, "PYTHONPATH": ":".join(map(str, paths))}
    return Program([sys.executable, *arguments], env)


def intel_benchmarks(kernels: Kernels, require: Require) -> Path:
    """Return this MPI's Intel benchmarks: SWITCHPOINT_FOREIGN's, or PyPI's for MPICH's ABI."""
    named = compiled(kernels, "IMB-MPI1")
    if named is not None:
        return named
    abi = kernels.mpi.family != "openmpi"
    require("imb", abi, "SWITCHPOINT_FOREIGN has no IMB-MPI1 for Open MPI, and PyPI neither")
    place = HOME / "imb"
    with _locked(place):
        if not (place / "bin" / "IMB-MPI1").exists():
            _pip(require, "imb", "install", "--target", str(place), IMPI)
    return place / "bin" / "IMB-MPI1"


def _locked(place: Path) -> TextIO:
    """Keep other test processes out of a directory until the returned file is closed."""
    place.mkdir(parents=True, exist_ok=True)
    lock = (place / "lock").open("w")
    fcntl.flock(lock, fcntl.LOCK_EX)
    return lock


def _pip(require: Require, part: str, *arguments: str) -> None:
    command = [sys.executable, "-m", "pip", *arguments[:1], "--no-deps", "--quiet", *arguments[1:]]
    done = subprocess.run(command, capture_output=True, text=True)
    require(part, done.returncode == 0, f"pip cannot get {arguments[-1]}")
