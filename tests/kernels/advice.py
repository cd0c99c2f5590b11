"""Starts of `switchpoint advise`, and results for it."""

import os
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tests import synthetic
from tuner.advice import saved
from tuner.advice.document import Advice
from tuner.machine.systems import processor
from tuner.rawfile.ingest import ingest
from tuner.selection.tuning import tune
from tuner.store.store import Store

from .conftest import Kernels


def command(program: Path, *arguments: str, options: Sequence[str] = ()) -> list[str]:
    """Return the command that advises on a program, by default of two processes."""
    advise = [sys.executable, "-m", "tuner.cli", "advise", "-n", "2", *options]
    return [*advise, "--", str(program), *arguments]


ALLTOALL = synthetic.Campaign(
    operation="alltoall",
    patterns=[synthetic.BLOCKS],
    sizes=(64,),
    methods=("vendor", "bruck"),
    times=lambda method, size: 2e-6 if method == "bruck" else 4e-6,
    cores=os.cpu_count() or 1,
    cpu_model=processor(),
)
"""A campaign of this machine."""


def tabled_results(kernels: Kernels, results: Path) -> Path:
    """Write results with a table, of MPI_Alltoall at 64 bytes, by bruck; return their place."""
    spec = replace(ALLTOALL, environment=kernels.mpi.name)
    ingest(results / "switchpoint.db", synthetic.write(results, spec))
    with Store.open(results / "switchpoint.db") as store:
        tune(store, str(store.systems()["system"].iloc[0]), required_executions=0)
    return results


def kept(results: Path) -> list[Advice]:
    """Return the advice that is kept, the newest first."""
    return [*saved.newest(results).values()]
