"""Programs that know nothing of Switchpoint, started with its library preloaded."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from tuner import mpi
from tuner.operations import COLLECTIVES

from .conftest import TIMEOUT_S, Kernels, finish

INSTRUCTIONS = 150  # a call may cost so many more where the table leaves it to the MPI library

REPORTED = re.compile(r"switchpoint: (\w+) by (\S+): (\d+) calls")


def run_shimmed(
    kernels: Kernels,
    program: Path | str,
    procs: int,
    *arguments: str,
    table: Path | None,
    before: Sequence[str] = (),
    ahead: Sequence[Path] = (),
    env: Mapping[str, str] | None = None,
    timeout_s: float = TIMEOUT_S,
) -> subprocess.CompletedProcess[str]:
    """Runs a program of the build, or a path, on ranks that preload the library and read `table`.

    `before` goes between launcher and program, `ahead` are libraries to be preloaded before this
    one. Raises subprocess.TimeoutExpired when it hangs.
    """
    library = mpi.shim(kernels.build)
    assert library is not None
    start = mpi.launch(kernels.mpi, procs, build=kernels.build, preload=[*ahead, library])
    command = [*start.argv_prefix, *before, str(kernels.build / "tests" / program), *arguments]
    settings = {"SWITCHPOINT_REPORT": "1"} | (
        {} if table is None else {"SWITCHPOINT_TABLE": str(table)}
    )
    environment = os.environ | start.env | settings | dict(env or {})
    return finish(command, environment, timeout_s)


def every_method(kernels: Kernels, procs: int, directory: Path) -> Path:
    """A table that uses every method on so many ranks."""
    path = directory / f"every-{procs}.table"
    program = kernels.build / "tests" / "swp_pmpi"
    with path.open("w") as table:
        subprocess.run([program, "--table", str(procs)], stdout=table, check=True)
    return path


def vendor_table(directory: Path) -> Path:
    """A table with rules for every collective, of which none is for calls of 64 bytes."""
    path = directory / "vendor.table"
    methods = {"allgather": "ring", "allgatherv": "ring", "alltoall": "bruck"}
    methods["reduce_scatter_block"] = "hypercube"
    lines = ["switchpoint-table 1"]
    for operation in COLLECTIVES:
        for bytes_ in ("0:7", "1000:1999"):
            method = methods.get(operation, "binomial")
            lines.append(f"rule op={operation} bytes={bytes_} method={method}")
        lines.append(f"rule op={operation} bytes=8:99 method=vendor")
    path.write_text("\n".join(lines) + "\n")
    return path


def mpi_library(kernels: Kernels) -> Path:
    """The library of this MPI that programs are linked with."""
    shim = mpi.shim(kernels.build)
    assert shim is not None
    listing = subprocess.run(["ldd", shim], capture_output=True, text=True, check=True)
    return Path(next(re.finditer(r"libmpi\S* => (\S+)", listing.stdout))[1])


def symbols(*arguments: str | Path) -> set[str]:
    """The symbols that nm lists."""
    listing = subprocess.run(["nm", *arguments], capture_output=True, text=True, check=True)
    return {line.split()[-1] for line in listing.stdout.splitlines() if len(line.split()) > 1}


def dispatched(report: str) -> dict[str, set[str]]:
    """The methods that rank 0 used, by operation, from what the library reported."""
    found: dict[str, set[str]] = {}
    for operation, method, _ in REPORTED.findall(report):
        found.setdefault(operation, set()).add(method)
    return found


def instructions_over_pmpi(kernels: Kernels, operation: str, table: Path) -> float:
    """Instructions of the preloaded library in a call, counted by callgrind.

    Those of the MPI library below it do not count: they differ with what its heap went through.
    """
    few, many = 1000, 3000
    counts = [_instructions(kernels, operation, calls, table) for calls in (few, many)]
    return (counts[1] - counts[0]) / (many - few)


def _instructions(kernels: Kernels, operation: str, calls: int, table: Path) -> int:
    with tempfile.TemporaryDirectory() as scratch:
        out = Path(scratch) / "callgrind.out"
        options = [f"--callgrind-out-file={out}", "--toggle-collect=call_mpi"]
        done = run_shimmed(
            kernels,
            "swp_calls",
            1,
            *["mpi", operation, str(calls)],
            table=table,
            before=["valgrind", "--tool=callgrind", *options],
            env={"SWITCHPOINT_REPORT": "0"},
        )
        assert done.returncode == 0, done.stderr[-2000:]
        return _own_cost(out.read_text(), "libswitchpoint_pmpi.so")


def _own_cost(profile: str, library: str) -> int:
    """What callgrind counted in a library, without what that called."""
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
