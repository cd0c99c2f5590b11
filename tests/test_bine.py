"""Where bytes of negabinary trees go; tests/kernels/test_library.py compares with the library."""

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


def test_the_study_prints_ratios_and_loads_and_refuses_other_numbers() -> None:
    done = CliRunner().invoke(study, ["bine", "--procs", "128", "--torus", "8x8"])
    assert "bcast, binomial, dragonfly, aligned: mean " in done.output
    assert "8x8, bine:grid=8x8: 1.125, " in done.output
    assert CliRunner().invoke(study, ["bine", "--torus", "3x8"]).exit_code == 2
    for wrong in (["--procs", "12"], ["--procs", "64", "--fattree", "64"]):
        refused = CliRunner().invoke(study, ["bine", *wrong])
        assert isinstance(refused.exception, bine.BineStudyError)
