"""The study of when partitioning pays."""

import json
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from pyamg.gallery import poisson
from scipy.io import mmwrite

from tests.cli import fail, succeed
from tests.conftest import Require
from tests.kernels.conftest import Kernels
from tuner.machine.nodes.namespaces import Nodes
from tuner.studies.crossover import crossover


def test_products_that_make_good_the_partitioner() -> None:
    strided_s = np.array([3.0e-3, 3.1e-3, 2.9e-3, 3.0e-3, 3.0e-3])
    found = crossover("nap", strided_s, strided_s / 3, partition_s=1.0)
    assert found.products == pytest.approx(500, rel=0.02)
    assert found.ratio == pytest.approx((1 / 3,) * 3)


def test_no_gain_is_reported_where_none_is_shown() -> None:
    strided_s = np.array([3.0e-3, 3.2e-3, 2.9e-3, 3.0e-3, 3.1e-3])
    noise = np.array([0.8, 1.3, 0.9, 1.2, 0.7])
    assert crossover("nap", strided_s, strided_s * noise, partition_s=1.0).products is None
    assert crossover("nap", strided_s, strided_s * 2, partition_s=1.0).products is None


def test_a_study_is_measured_and_stored(
    kernels: Kernels, require: Require, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    require("pymetis", find_spec("pymetis") is not None, "this partitioner is not installed")
    monkeypatch.setenv("SWITCHPOINT_KERNELS", str(kernels.build))
    monkeypatch.setenv("SWITCHPOINT_RESULTS", str(tmp_path / "results"))
    matrix = tmp_path / "mesh.mtx"
    mmwrite(matrix, poisson((40, 40)))
    command = ("study", "crossover", matrix, "--procs", "2", "--launches", "2", "--budget", "0.5")
    chosen = ("--methods", "direct alltoallv", "--environment", kernels.mpi.name)
    document = json.loads(succeed(*command, *chosen, "--json"))
    assert [each["method"] for each in document["methods"]] == ["direct", "alltoallv"]
    assert document["partition_s"] > 0
    assert all(each["balanced_s"] > 0 for each in document["methods"])
    stored = Path(document.pop("file"))
    assert stored.parent == tmp_path / "results" / "studies"
    assert json.loads(stored.read_text()) == document
    assert "unknown" in fail(*command, "--methods", "none", "--environment", kernels.mpi.name)


def test_a_study_needs_kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWITCHPOINT_KERNELS", str(tmp_path))
    assert "no built swpbench" in fail("study", "crossover", tmp_path / "a.mtx", "--procs", "2")


def test_a_study_on_virtual_nodes_takes_their_kernels(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SWITCHPOINT_KERNELS", raising=False)
    monkeypatch.setattr("tuner.machine.directories.build_root", lambda: tmp_path)
    nodes = Nodes("a", 3, "1gbit", 1, "")
    monkeypatch.setattr("tuner.studies.crossover.meant", lambda: nodes)
    options = ["--procs", "2", "--system", "nodes"]
    said = fail("study", "crossover", tmp_path / "a.mtx", *options)
    assert f"{tmp_path}/install/virtual-nodes-tcp-1gbit-" in said
