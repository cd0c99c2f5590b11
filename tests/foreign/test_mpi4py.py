"""mpi4py's own tests of collectives and communicators, under a table of every method."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.conftest import Require
from tests.kernels.conftest import Kernels

from . import programs
from .programs import PROCS, run_dispatched

MODULES = ["test_cco_buf", "test_cco_vec", "test_cco_obj", "test_comm", "test_op"]
SHORT = ["test_cco_obj"]  # the others take minutes where many ranks share few cores

pytestmark = pytest.mark.nightly


@pytest.mark.parametrize("procs", PROCS)
def test_mpi4py_passes_its_tests(
    kernels: Kernels, require: Require, tmp_path: Path, procs: int
) -> None:
    sources = programs.mpi4py(require)
    names = MODULES if procs <= 4 else SHORT
    modules = [word for name in names for word in ("-i", name)]
    program = programs.python(kernels, sources, sources / "test" / "main.py", "-q", *modules)
    said = run_dispatched(kernels, program, procs, tmp_path)
    assert "FAILED" not in said, said  # lines of ranks may mix
    assert len(re.findall(r"Ran \d+ tests", said)) == procs, said
