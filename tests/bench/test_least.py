"""Every bench runs in its smallest case, without its bars."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.bench.__main__ import PARTS
from tests.bench.collectives import place
from tests.conftest import Require
from tuner.machine.mpi import CHECKOUT, find_mpis
from tuner.machine.nodes.launch import SYSTEM

FIGURES = {  # one of each part
    "tuner_speed": "ingest",
    "collectives": "all operations",
    "dashboard_speed": "views, p95",
    "planning": "few: cost",
    "decisions": "split halves",
    "comparisons": "direct again",
    "unmeasured": "table / nearest",
    "borrowing": "borrowed / default",
    "profiling": "with a profile / without",
    "winners": "slowest winner / default",
    "node_layers": "exchange by nap, node=shared / mpi",
}


def _are_nodes_possible() -> bool:
    with place(1) as (system, _):
        return system.startswith(SYSTEM)


@pytest.mark.check
@pytest.mark.parametrize("part", PARTS)
def test_the_smallest_case_of_each_part_runs(part: str, tmp_path: Path, require: Require) -> None:
    if part in ("collectives", "comparisons", "profiling", "winners", "node_layers"):
        require("mpi", bool(find_mpis()), "no MPI is installed")
    if part == "node_layers":
        require("namespaces", _are_nodes_possible(), "virtual nodes cannot be made")
    command = [sys.executable, "-m", "tests.bench", "--least", f"--directory={tmp_path}", part]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    document = json.loads((tmp_path / f"{part}.json").read_text())
    assert FIGURES[part] in " ".join(figure["name"] for figure in document["figures"])
    assert not document["judged"]
    assert len(document["commit"]) == 40
    assert document["machine"]["cores"] > 0
