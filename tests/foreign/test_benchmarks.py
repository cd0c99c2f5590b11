"""The OSU and the Intel benchmarks under the preload with a table of every method."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.conftest import Require
from tests.kernels.conftest import Kernels

from . import programs
from .programs import PROCS, Program, run_dispatched

OSU = ["allgather", "allgatherv", "allreduce", "alltoall", "bcast", "gather", "reduce", "scatter"]
OSU_IN_PYTHON = ["allgather", "alltoall", "bcast", "gather", "scatter"]
IMB = ["Bcast", "Allgather", "Allgatherv", "Gather", "Scatter", "Alltoall"]
IMB += ["Reduce", "Allreduce", "Reduce_scatter"]

pytestmark = pytest.mark.nightly


def sizes(text: str) -> list[int]:
    """Return the first column of the lines that are figures."""
    return [int(size) for size in re.findall(r"^\s*(\d+)\s+\d.*$", text, re.MULTILINE)]


@pytest.mark.parametrize("procs", PROCS[1:])
def test_osu_benchmarks_in_python(
    kernels: Kernels, require: Require, tmp_path: Path, procs: int
) -> None:
    sources = programs.mpi4py(require)
    calls = "; ".join(
        f"import osu_{name}; osu_{name}.osu_{name}(skip=1, loop=10, skip_large=1, loop_large=5, "
        "MAX_MSG_SIZE=16384)"
        for name in OSU_IN_PYTHON
    )
    said = run_dispatched(kernels, programs.python(kernels, sources, "-c", calls), procs, tmp_path)
    assert sizes(said).count(16384) == len(OSU_IN_PYTHON), said


@pytest.mark.parametrize("procs", PROCS[1:])
def test_osu_benchmarks(kernels: Kernels, require: Require, tmp_path: Path, procs: int) -> None:
    for name in OSU:
        program = programs.compiled(kernels, f"osu_{name}")
        require("osu", program is not None, "SWITCHPOINT_FOREIGN has no OSU programs for this MPI")
        assert program is not None
        command = [program, "-m", "16384", "-i", "5", "-x", "1"]
        said = run_dispatched(kernels, Program(command), procs, tmp_path)
        assert sizes(said)[-1] == 16384, said


@pytest.mark.parametrize("procs", PROCS)
def test_intel_benchmarks(kernels: Kernels, require: Require, tmp_path: Path, procs: int) -> None:
    program = programs.intel_benchmarks(kernels, require)
    options = ["-iter", "10", "-msglog", "14", "-multi", "0", "-npmin", str(procs)]
    said = run_dispatched(kernels, Program([program, *options, *IMB]), procs, tmp_path)
    assert "All processes entering MPI_Finalize" in said
    assert sizes(said).count(16384) >= len(IMB), said
    if "defects" in said:  # compiled with CHECK: the last column counts wrong results
        rows = re.findall(r"^ *\d+(?: +[\d.]+){4,}$", said, re.MULTILINE)
        assert len(rows) > len(IMB), said
        assert all(float(row.split()[-1]) == 0 for row in rows), said
