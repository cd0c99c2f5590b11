"""Programs that do not use Switchpoint, started with its library preloaded."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.conftest import Require
from tests.processes import TIMEOUT_S
from tuner.domain.operations import COLLECTIVES
from tuner.machine import mpi
from tuner.paths import CHECKOUT

from .conftest import Kernels, finish

INSTRUCTIONS = 100  # bound on a call's extra cost if the table leaves it to the MPI library

FORTRAN = CHECKOUT / "kernels" / "tests" / "fortran"

REPORTED = re.compile(r"switchpoint: (\w+) by (\S+): (\d+) calls")

CASES_PASSED = re.compile(r": ([1-9]\d*) cases passed on \d+ ranks")


def run_preloaded(
    kernels: Kernels,
    program: Path | str,
    procs: int,
    *arguments: str,
    table: Path | None,
    before: Sequence[str] = (),
    ahead: Sequence[Path] = (),
    behind: Sequence[Path] = (),
    env: Mapping[str, str] | None = None,
    timeout_s: float = TIMEOUT_S,
) -> subprocess.CompletedProcess[str]:
    """Run a program of the build, or a path, on ranks that preload the library and read `table`.

    `before` goes between launcher and program, `ahead` and `behind` are libraries to be preloaded
    before and after this one. Raise subprocess.TimeoutExpired when it hangs.
    """
    library = mpi.preload_library(kernels.build)
    assert library is not None
    start = mpi.launch(kernels.mpi, procs, build=kernels.build, preload=[*ahead, library, *behind])
    command = [*start.argv_prefix, *before, str(kernels.build / "tests" / program), *arguments]
    settings = {"SWITCHPOINT_REPORT": "1"} | (
        {} if table is None else {"SWITCHPOINT_TABLE": str(table)}
    )
    environment = os.environ | start.env | settings | dict(env or {})
    return finish(command, environment, timeout_s)


def assert_cases_passed(done: subprocess.CompletedProcess[str]) -> None:
    """Fail with the words of a test program unless it passed cases, and failed in none."""
    passed = CASES_PASSED.search(done.stdout)
    assert done.returncode == 0 and passed, done.stdout + done.stderr


def build_fortran(
    kernels: Kernels, require: Require, name: str, directory: Path, *, loaded: bool = False
) -> list[str]:
    """Build a Fortran program; return how it is run, or how Python loads it (RTLD_LOCAL)."""
    wrapper = Path(shutil.which(kernels.mpi.mpicc) or kernels.mpi.mpicc)
    compiler = wrapper.with_name(wrapper.name.replace("mpicc", "mpif90"))
    works = compiler.exists() and shutil.which("gfortran") is not None
    require("fortran", works, "no gfortran, or no mpif90 beside mpicc")
    program = directory / (f"{name}.so" if loaded else name)
    source = FORTRAN / f"{name}.f90"
    options = ["-fPIC", "-shared"] if loaded else []
    subprocess.run([compiler, "-I", FORTRAN, source, *options, "-o", program], check=True)
    if not loaded:
        return [str(program)]
    return [sys.executable, "-c", f"import ctypes; ctypes.CDLL('{program}').main(0, None)"]


def add_device_code(kernels: Kernels, require: Require, name: str, directory: Path) -> Path:
    """Copy a program of the build, with a section as of code for accelerators; return its path."""
    require("objcopy", shutil.which("objcopy") is not None, "no objcopy on the path")
    program = directory / name
    section = f".nv_fatbin={Path(__file__)}"
    plain = kernels.build / "tests" / name
    subprocess.run(["objcopy", "--add-section", section, plain, program], check=True)
    return program


def every_method(kernels: Kernels, procs: int, directory: Path) -> Path:
    """Write a table that uses every method on so many ranks; return its path."""
    path = directory / f"every-{procs}.table"
    program = kernels.build / "tests" / "swp_pmpi"
    with path.open("w") as table:
        subprocess.run([program, "--table", str(procs)], stdout=table, check=True)
    return path


def vendor_table(directory: Path) -> Path:
    """Write a table whose rules for every collective leave calls of 1 to 99 bytes to the vendor."""
    elsewhere = ["0", *(f"{1000 << i}:{1999 << i}" for i in range(0, 16, 2))]
    rules = ["bytes=1:99 method=vendor", *(f"bytes={bytes_} method=METHOD" for bytes_ in elsewhere)]
    return rules_for_all(directory / "vendor.table", rules)


def exchange_table(directory: Path) -> Path:
    """Write a table with rules for exchanges: forwarding, node-aware, and the dense collective."""
    return write_rules(
        directory,
        "op=exchange bytes=0:40 method=stfw:dims=2",
        "op=exchange bytes=0:55 method=nap",
        "op=exchange method=alltoallv",
    )


def write_rules(directory: Path, *rules: str) -> Path:
    """Write a table with the rules; return its path."""
    path = directory / "one.table"
    path.write_text("\n".join(["switchpoint-table 1", *(f"rule {rule}" for rule in rules), ""]))
    return path


def rules_for_all(path: Path, rules: Sequence[str]) -> Path:
    """Write a table with the rules for every collective; METHOD stands for one that it has."""
    methods = {"allgather": "ring", "allgatherv": "ring", "alltoall": "bruck", "alltoallv": "bruck"}
    methods["reduce_scatter_block"] = "hypercube"
    lines = ["switchpoint-table 1"]
    for operation in COLLECTIVES:
        method = methods.get(operation, "binomial")
        lines += [f"rule op={operation} {rule}".replace("METHOD", method) for rule in rules]
    path.write_text("\n".join(lines) + "\n")
    return path


def mpi_library(kernels: Kernels) -> Path:
    """Return the library of this MPI that programs are linked with."""
    library = mpi.preload_library(kernels.build)
    assert library is not None
    listing = subprocess.run(["ldd", library], capture_output=True, text=True, check=True)
    return Path(next(re.finditer(r"libmpi\S* => (\S+)", listing.stdout))[1])


def symbols(*arguments: str | Path) -> set[str]:
    """Return the symbols that nm lists."""
    listing = subprocess.run(["nm", *arguments], capture_output=True, text=True, check=True)
    return {line.split()[-1] for line in listing.stdout.splitlines() if len(line.split()) > 1}


FUNCTIONS = {
    "sessions": "MPI_Session_init",
    "persistent": "MPI_Neighbor_alltoallv_init",
    "large_counts": "MPI_Bcast_c",
}
"""What the MPI library has of each part that tests may need of it."""


def require_of_mpi(part: str, kernels: Kernels, require: Require) -> None:
    """Skip where the MPI library lacks a part, whatever the build has found out about it."""
    offered = symbols("--dynamic", "--defined-only", mpi_library(kernels))
    require(part, FUNCTIONS[part] in offered, f"{kernels.mpi} has no {FUNCTIONS[part]}")


def dispatched(report: str) -> dict[str, set[str]]:
    """Return the methods that rank 0 used, by operation, from the library's report."""
    found: dict[str, set[str]] = {}
    for operation, method, _ in REPORTED.findall(report):
        found.setdefault(operation, set()).add(method)
    return found


def instructions_over_pmpi(kernels: Kernels, table: Path) -> dict[str, float]:
    """Return the preloaded library's instructions per 64-byte call of each collective.

    Callgrind counts them. Those of the MPI library below do not count: they vary with its heap.
    """
    calls = 100
    first = [word for operation in COLLECTIVES for word in (operation, "1")]
    then = [word for operation in COLLECTIVES for word in (operation, str(calls))]
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch) / "callgrind.out"
        options = [
            f"--callgrind-out-file={out}",
            "--toggle-collect=call_mpi",
            "--dump-after=repeat",
        ]
        done = run_preloaded(
            kernels,
            "swp_calls",
            1,
            *["mpi", *first, *then],
            table=table,
            before=["valgrind", "--tool=callgrind", *options],
            env={"SWITCHPOINT_REPORT": "0"},
        )
        assert done.returncode == 0, done.stderr[-2000:]
        profiles = [Path(f"{out}.{len(COLLECTIVES) + i + 1}") for i in range(len(COLLECTIVES))]
        costs = [_own_cost(path.read_text(), "libswitchpoint_pmpi.so") for path in profiles]
    return {operation: cost / calls for operation, cost in zip(COLLECTIVES, costs, strict=True)}


def _own_cost(profile: str, library: str) -> int:
    """Return callgrind's count in a library, without the functions that it called."""
    names: dict[str, str] = {}
    cost, inside, called = 0, False, False
    for line in profile.splitlines():
        if found := re.match(r"ob=\((\d+)\)(?: (.*))?", line):
            names[found[1]] = found[2] or names[found[1]]
            inside = names[found[1]].endswith(library)
        elif found := re.match(r"[*+\-\d]\d* (\d+)$", line):
            cost += int(found[1]) * (inside and not called)
            called = False
        elif found := re.match(r"cob=\((\d+)\) (.*)", line):
            names[found[1]] = found[2]
        else:
            called = line.startswith("calls=") or called
    return cost
