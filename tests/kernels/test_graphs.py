"""Workloads whose ranks do not know who will send: breadth-first search, moving particles."""

import re
from pathlib import Path

import pytest

from .benchrun import CORRUPT, SWPBENCH, bench
from .conftest import Kernels
from .test_library import run


@pytest.mark.parametrize("procs", [1, 2, 3, 5, 8])
def test_searches_and_bisections_are_those_of_one_process(kernels: Kernels, procs: int) -> None:
    assert run(kernels, "swp_graphs", procs) > 20


@pytest.mark.parametrize("procs", [1, 4])
def test_searches_of_the_bench_are_verified_for_every_method(
    any_kernels: Kernels, procs: int
) -> None:
    done = any_kernels.run(
        SWPBENCH, ["bfs", "vertices=2000,degree=8,clusters=5", "pex dense"], procs
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert re.fullmatch(r"10 searches, [\d.]+ levels each; .* at most \d+", lines[0])
    assert [line.split()[0] for line in lines[1:3]] == ["pex", "dense"]
    assert lines[3] == "swpbench: distances ok, as found serially"


def test_a_search_that_loses_a_message_is_noticed(any_kernels: Kernels) -> None:
    env = {"SWP_CORRUPT": "lost", "SWP_CORRUPT_RANK": "1"}
    done = any_kernels.run(CORRUPT, ["bfs", "vertices=500,clusters=2", "pex"], 2, env)
    assert done.returncode != 0
    assert "wrong distance by pex" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["vertices=0"], "vertices must be an integer from 1"),
        (["inside=101"], "inside must be an integer from 0 to 100"),
        (["edges=3"], "edges=3"),
        (["degree=2", "direct"], "direct"),
        (["degree=2", "pex", "dense"], "swpbench bfs"),
    ],
)
def test_what_cannot_be_searched_is_refused(
    any_kernels: Kernels, arguments: list[str], words: str
) -> None:
    done = any_kernels.run(SWPBENCH, ["bfs", *arguments], 2)
    assert done.returncode != 0
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("swpbench: ")]
    assert words in line


@pytest.mark.parametrize("operation", ["exchange", "discovery"])
def test_particles_go_to_a_few_ranks(any_kernels: Kernels, tmp_path: Path, operation: str) -> None:
    options = {"op": operation, "sizes": "48", "max_samples": 1}
    result = bench(any_kernels, tmp_path / "o", 12, pattern="orb:particles=500", **options)
    assert result.status == 0, result.stderr
    assert result.header["pattern"] == "orb:particles=500,step=10,seed=1"
    features = result.cases[0]["features"]
    assert 1 <= features["mavg"] <= features["mmax"] < 11
    assert features["vmax_bytes"] < 500 * 48  # most particles stay


def test_particles_that_do_not_move_stay(any_kernels: Kernels, tmp_path: Path) -> None:
    result = bench(any_kernels, tmp_path / "o", 5, pattern="orb:step=0", methods="direct")
    assert result.cases[0]["features"]["mmax"] == 0
