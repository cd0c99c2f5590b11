"""Where bytes of negabinary trees go; tests/kernels/test_library.py compares with the library."""

import json
from dataclasses import replace

import pytest
from click.testing import CliRunner

from tuner.commands.study import study
from tuner.studies import bine


def test_distances_are_sums_of_powers_of_minus_two() -> None:
    assert [bine.distance(step) for step in range(6)] == [1, -1, 3, -5, 11, -21]
    for place, (ranks, peers, _) in enumerate(bine.stages("allreduce", "bine", 64)[:6]):
        moved = (peers - ranks) % 64
        assert set(moved[::2]) == {bine.distance(place) % 64}
        assert list(peers[peers]) == list(ranks)


def test_the_root_of_a_tree_is_a_third_shorter_from_its_children_than_binomially() -> None:
    ((source, child, _),) = bine.stages("bcast", "bine", 64)
    distances = sorted(min(to % 64, -to % 64) for to in child[source == 0])
    assert distances == [abs(bine.distance(step)) for step in range(6)]


@pytest.mark.parametrize("procs", [1, 2, 3, 7, 12, 31, 64])
def test_a_tree_reaches_every_rank_once(procs: int) -> None:
    for root in {0, procs // 2, procs - 1}:
        ((sources, children, blocks),) = bine.stages("gather", "bine", procs, root)
        assert sorted([root, *sources]) == list(range(procs))
        to_root = blocks[children == root]
        assert to_root.sum() == procs - 1
        assert len(to_root) == (procs - 1).bit_length()


def test_aligned_groups_lose_and_others_gain() -> None:
    found = {
        (each.operation, each.placement): each for each in bine.on_groups(256, {"dragonfly": 32})
    }
    assert found["bcast", "aligned"].mean == 27 / 7  # binomially, one to each other group
    assert 2 < found["allreduce", "aligned"].mean < 4
    for operation in bine.RIVALS:
        assert found[operation, "fragmented"].mean < 1
        assert found[operation, "shifted"].mean < 1


def test_a_grid_takes_load_from_the_busiest_link_of_a_torus() -> None:
    cube, flat, grid = bine.on_torus([8, 8])
    assert [each.most for each in (cube, flat, grid)] == [2.5, 1.9375, 1.125]
    assert grid.in_turn < flat.in_turn < cube.in_turn


def test_placements_are_held_against_the_papers_conclusions() -> None:
    placed = list(bine.on_groups(256, {"dragonfly": 32, "fat tree": 64}))
    found = {each.statement.partition(":")[0]: each for each in bine.findings(placed, [])}
    assert {name: each.reproduced for name, each in found.items()} == {
        "dragonfly, aligned": False,
        "dragonfly, shifted": True,
        "dragonfly, fragmented": True,
        "fat tree, aligned": False,
        "fat tree, shifted": False,  # for broadcasts
        "fat tree, fragmented": True,
    }
    assert "bcast 1.03 of binomial's" in found["fat tree, shifted"].figures
    assert all("up to 33 % fewer" in each.statement for each in found.values())
    assert not any("allgather" in each.figures for each in found.values())
    every = [replace(each, mean=1.0 if each.operation == "bcast" else 0.5) for each in placed]
    assert not any(each.reproduced for each in bine.findings(every, []))


def test_loads_of_links_are_held_against_the_papers_conclusions() -> None:
    loaded = [load for sizes in ((8, 8), (4, 4, 4)) for load in bine.on_torus(sizes)]
    flat, cube = bine.findings([], loaded)
    assert flat.reproduced and cube.reproduced
    assert "up to 3 times the speed" in flat.statement
    assert flat.figures.startswith("rabenseifner 2.22 times as much, 1.64 times over its steps; ")
    assert cube.figures == (
        "rabenseifner 2.00 times as much, 1.33 times over its steps; "
        "bine 1.00 times as much, 1.11 times over its steps"
    )
    for worse in (replace(loaded[2], most=2.5), replace(loaded[2], in_turn=3.4)):
        (finding,) = bine.findings([], [*loaded[:2], worse])
        assert not finding.reproduced


def test_the_study_prints_ratios_and_loads_and_refuses_other_numbers() -> None:
    done = CliRunner().invoke(study, ["bine", "--procs", "128", "--torus", "8x8"])
    assert "bcast, binomial, dragonfly, aligned: mean " in done.output
    assert "8x8, bine:grid=8x8: 1.125, " in done.output
    assert "\nnot reproduced: dragonfly, aligned: " in done.output
    assert "\nreproduced: 8x8: by a grid " in done.output
    written = CliRunner().invoke(study, ["bine", "--procs", "128", "--torus", "8x8", "--json"])
    document = json.loads(written.output)
    assert [len(document[name]) for name in ("global", "torus", "findings")] == [36, 3, 7]
    assert CliRunner().invoke(study, ["bine", "--torus", "3x8"]).exit_code == 2
    for wrong in (["--procs", "12"], ["--procs", "64", "--fattree", "64"]):
        refused = CliRunner().invoke(study, ["bine", *wrong])
        assert isinstance(refused.exception, bine.BineStudyError)
