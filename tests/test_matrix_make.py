"""Matrices that are made have what they are made for."""

import errno
import json
import os
import re
import resource
import subprocess
import sys
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyamg.gallery import diffusion_stencil_2d, stencil_grid
from scipy.io import mmread

from tests.cli import fail, succeed
from tests.conftest import Require
from tuner.inputs.matrices import amg, lookalike
from tuner.inputs.matrices.degree_sequence import Target, degree_sequence
from tuner.inputs.matrices.degrees import degrees
from tuner.inputs.matrices.market import MatrixError, read_pattern
from tuner.inputs.matrices.suitesparse import fetch
from tuner.inputs.matrices.symmetric import lower_triangle
from tuner.paths import CHECKOUT

TABLE = lookalike.originals()


def test_the_table_has_22_matrices() -> None:
    assert len(TABLE) == 22
    assert TABLE["gupta2"].target == Target(62064, 4248286, 8413, 5.2)
    assert TABLE["cbuckle"].tail > TABLE["gupta2"].tail


@pytest.mark.parametrize("name", ["cbuckle", "coAuthorsDBLP", "net125"])
def test_a_lookalike_has_the_numbers_of_its_original(tmp_path: Path, name: str) -> None:
    target = TABLE[name].target
    if target.nnz > 1_500_000:
        target = lookalike.scaled(target, 10_000)
    path = tmp_path / "a.mtx"
    made = lookalike.make(TABLE[name], target, path, seed=3)
    assert made.missed == ""
    found = degrees(read_pattern(path))
    assert found == made.achieved
    assert found.rows == target.rows
    assert found.nnz == pytest.approx(target.nnz, rel=0.1)
    assert found.max_degree == pytest.approx(target.max_degree, rel=0.1)
    assert found.cv == pytest.approx(target.cv, rel=0.1)


@pytest.mark.parametrize("name", ["gupta2", "fe_rotor"])
def test_a_smaller_lookalike_reports_what_it_misses(tmp_path: Path, name: str) -> None:
    target = lookalike.scaled(TABLE[name].target, 2000)
    made = lookalike.make(TABLE[name], target, tmp_path / "a.mtx", seed=1)
    close = abs(made.achieved.cv / target.cv - 1) <= 0.1
    assert made.achieved.nnz == pytest.approx(target.nnz, rel=0.1)
    assert made.achieved.max_degree == pytest.approx(target.max_degree, rel=0.1)
    assert bool(made.missed) != close


def test_a_lookalike_is_symmetric_with_a_full_diagonal_and_no_entry_twice(tmp_path: Path) -> None:
    target = lookalike.scaled(TABLE["gupta2"].target, 900)
    lookalike.make(TABLE["gupta2"], target, tmp_path / "a.mtx", seed=1)
    matrix = mmread(tmp_path / "a.mtx").tocsr()
    assert (matrix != matrix.T).nnz == 0
    assert matrix.diagonal().all()
    assert matrix.max() == 1


def test_a_seed_makes_the_same_file(tmp_path: Path) -> None:
    target = lookalike.scaled(TABLE["sparsine"].target, 500)
    files = []
    for number, seed in enumerate((1, 1, 2)):
        files.append(tmp_path / f"{number}.mtx.gz")
        lookalike.make(TABLE["sparsine"], target, files[-1], seed)
    first, second, third = (file.read_bytes() for file in files)
    assert first == second != third


def test_too_few_rows_for_a_lookalike() -> None:
    assert "use twice that" in fail("matrix", "make", "lookalike", "nd3k", "--rows", "300")
    assert "unknown: nd3" in fail("matrix", "make", "lookalike", "nd3")


@st.composite
def targets(draw: st.DrawFn) -> Target:
    rows = draw(st.integers(2, 300))
    most = draw(st.integers(1, rows))
    # One row has the most, the others at least one entry.
    nnz = draw(st.integers(most + rows - 1, rows * most))
    return Target(rows, nnz, most, draw(st.floats(0, 8)))


@settings(max_examples=40)
@given(targets(), st.integers(0, 5))
def test_degrees_add_up(target: Target, seed: int) -> None:
    rng = np.random.default_rng(seed)
    found = degree_sequence(target, rng)
    assert found.sum() == target.nnz
    assert found[0] == found.max() == target.max_degree
    assert found.min() >= 1
    rows, columns = lower_triangle(found, 1 + seed % 2, rng)
    assert len(np.unique(rows * target.rows + columns)) == len(rows)
    assert np.all(columns <= rows) and rows.max() < target.rows
    counts = np.bincount(rows, minlength=target.rows)
    counts += np.bincount(columns[columns < rows], minlength=target.rows)
    assert counts.max() <= target.max_degree and counts.min() >= 1


@pytest.mark.parametrize(
    ("rows", "nonzeros"), [(500, 25), (60, 50), (100, 100), (400, 100), (20_000, 3)]
)
def test_random_rows(tmp_path: Path, rows: int, nonzeros: int) -> None:
    path = tmp_path / "r.mtx.gz"
    succeed("matrix", "make", "random", path, "--rows", str(rows), "--nonzeros", str(nonzeros))
    pattern = read_pattern(path)
    positions = np.unique(pattern.rows * rows + pattern.columns)
    assert np.array_equal(np.bincount(positions // rows), np.full(rows, nonzeros))
    of_columns = np.bincount(pattern.columns, minlength=rows)
    assert abs(of_columns[: rows // 2].mean() - nonzeros) < 0.05 * nonzeros
    assert of_columns[0] < nonzeros + 6 * nonzeros**0.5


def test_a_row_cannot_have_more_entries_than_columns(tmp_path: Path) -> None:
    command = ("matrix", "make", "random", tmp_path / "r.mtx", "--rows", "9", "--nonzeros", "10")
    assert "no room" in fail(*command)
    assert not list(tmp_path.iterdir())


def test_the_levels_of_a_hierarchy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(amg, "_ENTRIES", 100)
    text = succeed(
        *("matrix", "make", "amg", "diffusion", "--rows", "150"),
        "--gzip",
        "--json",
        "--directory",
        tmp_path,
    )
    made = json.loads(text)
    assert made[0]["degrees"]["rows"] == 144
    assert all(a["degrees"]["rows"] > b["degrees"]["rows"] for a, b in pairwise(made))
    finest = mmread(made[0]["path"])
    stencil = diffusion_stencil_2d(type="FE", epsilon=0.001, theta=np.pi / 4)
    assert abs(finest - stencil_grid(stencil, (12, 12))).max() < 1e-12
    for level in made:
        assert degrees(read_pattern(Path(level["path"]))).nnz == level["degrees"]["nnz"]


def test_elasticity(tmp_path: Path) -> None:
    levels = list(amg.make("elasticity", 200, tmp_path, ".mtx"))
    assert levels[0].degrees.rows == 200
    assert len(levels) > 1
    before = [level.path.read_bytes() for level in levels]
    again = amg.make("elasticity", 200, tmp_path, ".mtx")
    assert [level.path.read_bytes() for level in again] == before


def test_fetching_without_a_network(tmp_path: Path, require: Require) -> None:
    require("ssgetpy", find_spec("ssgetpy") is not None, "this client is not installed")
    nowhere = {"HOME": str(tmp_path), "https_proxy": "http://127.0.0.1:9"}
    nowhere |= {"no_proxy": "", "NO_PROXY": ""}
    done = subprocess.run(
        [sys.executable, "-m", "tuner.cli", "matrix", "fetch", "HB/bcsstk01"],
        env=os.environ | nowhere,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert done.stderr.startswith(
        "Error: HB/bcsstk01: the SuiteSparse collection cannot be reached"
    )
    assert len(done.stderr.splitlines()) == 1


def test_fetching_with_an_index_that_cannot_be_used(tmp_path: Path, require: Require) -> None:
    require("ssgetpy", find_spec("ssgetpy") is not None, "this client is not installed")
    (tmp_path / ".ssgetpy").mkdir()
    (tmp_path / ".ssgetpy" / "index.db").write_text("<html>no index</html>\n" * 1000)
    done = subprocess.run(
        [sys.executable, "-m", "tuner.cli", "matrix", "fetch", "HB/bcsstk01"],
        env=os.environ | {"HOME": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert re.fullmatch("Error: HB/bcsstk01: the answer .* is broken: .*database.*\n", done.stderr)


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError(errno.ENOSPC, "No space left on device"), "Error: No space left on device"),
        (OSError("without a number, as of requests"), "collection cannot be reached"),
    ],
)
def test_only_an_error_of_the_network_is_called_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: OSError, said: str
) -> None:
    found = SimpleNamespace(group="HB", name="a", download=Mock(side_effect=error))
    client = Mock(search=Mock(return_value=[found]))
    monkeypatch.setitem(sys.modules, "ssgetpy", client)
    assert said in fail("matrix", "fetch", "a", "--directory", tmp_path)


def test_what_is_fetched_is_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def download(_form: str, scratch: str, **_: bool) -> None:
        Path(scratch, "a").mkdir()
        Path(scratch, "a", "a.mtx").write_text("content")

    found = SimpleNamespace(group="HB", name="a", download=download)
    monkeypatch.setitem(sys.modules, "ssgetpy", Mock(search=Mock(return_value=[found])))
    sync = Mock(wraps=os.fsync)
    monkeypatch.setattr(os, "fsync", sync)
    path = fetch("a", tmp_path)
    assert path.read_text() == "content"
    assert [*path.parent.iterdir()] == [path]
    assert sync.call_count == 2  # the file, and its name


def test_fetching_needs_a_name() -> None:
    assert "give NAME" in fail("matrix", "fetch", "../etc")


def test_too_many_rows_are_refused() -> None:
    with pytest.raises(MatrixError, match="do not fit"):
        degree_sequence(Target(10, 5, 3, 1.0), np.random.default_rng(1))


@pytest.mark.parametrize(
    "command",
    [
        ["make", "random", "m.mtx", "--rows", "20000", "--nonzeros", "3"],
        ["make", "random", "m.mtx.gz", "--rows", "20000", "--nonzeros", "3"],
        ["partition", "band.mtx", "--parts", "2", "--by", "strided"],
    ],
    ids=" ".join,
)
def test_a_file_without_room_is_named_and_nothing_is_left(
    tmp_path: Path, command: list[str]
) -> None:
    band = "".join(f"{row} {row}\n" for row in range(1, 20001))
    banner = "%%MatrixMarket matrix coordinate pattern general\n20000 20000 20000\n"
    (tmp_path / "band.mtx").write_text(banner + band)
    done = subprocess.run(
        [sys.executable, "-m", "tuner.cli", "matrix", *command],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(CHECKOUT)},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000)),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert re.fullmatch(r"Error: \S+: File too large", done.stderr.strip().splitlines()[-1])
    assert not list(tmp_path.glob(".*partial"))
