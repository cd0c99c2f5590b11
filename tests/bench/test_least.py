"""Every bench runs in its smallest case, without its bars."""

import json
import lzma
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.bench.__main__ import PARTS
from tests.bench.collectives import place
from tests.conftest import Require
from tests.kernels.conftest import build_kernels
from tuner.machine.mpi import find_mpis
from tuner.machine.nodes.launch import VIRTUAL_NODES
from tuner.paths import CHECKOUT

FIGURES = {  # one of each part
    "tuner_speed": "ingest",
    "store_growth": "time of ingest, last tenth / first",
    "collectives": "2 ranks, local:cpu: some with data but alltoallv, up to 1 KiB",
    "dashboard_speed": "views, p95",
    "planning": "few: cost",
    "decisions": "split halves",
    "comparisons": "B: shared",
    "unmeasured": "table / nearest",
    "larger_sizes": "other methods, at up to 8 times the size: slower",
    "borrowing": "borrowed / default",
    "profiling": "with a profile / without",
    "same_names": "same names that pass, at most",
    "winners": "slowest winner / default",
    "node_layers": "exchange by nap, node=shared / mpi",
}


def _are_nodes_possible() -> bool:
    with place(1) as (system, _):
        return system.startswith(VIRTUAL_NODES)


@pytest.mark.check
@pytest.mark.parametrize("part", PARTS)
def test_the_smallest_case_of_each_part_runs(part: str, tmp_path: Path, require: Require) -> None:
    if part in ("collectives", "comparisons", "profiling", "winners", "same_names", "node_layers"):
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


@pytest.mark.check
def test_times_of_layouts_join_those_of_other_systems(tmp_path: Path, require: Require) -> None:
    require("mpi", bool(find_mpis()), "no MPI is installed")
    data = tmp_path / "held-out.json.xz"
    other = ["other:cpu", "mpich", "bcast", "blocks", 1, 2, False, 0, 0.0, 8, {"vendor": [1.0]}]
    data.write_bytes(lzma.compress(json.dumps([other]).encode()))
    words = ["--system=local:cpu", "--layouts=1x2", "--operations=bcast", "--sizes=8"]
    words += ["--launches=2", "--budget=0.2", f"--data={data}"]
    env = os.environ | {"SWITCHPOINT_KERNELS": str(build_kernels(find_mpis()[0]))}
    for _ in range(2):  # the second in place of the first
        subprocess.run(
            [sys.executable, "-m", "tests.bench.held_out", *words],
            cwd=CHECKOUT,
            env=env,
            check=True,
        )
    mine, kept = json.loads(lzma.decompress(data.read_bytes()))
    assert kept == other
    assert mine[:1] + mine[2:6] == ["local:cpu", "bcast", "blocks", 1, 2]
    assert len(mine[-1]["vendor"]) == 2
