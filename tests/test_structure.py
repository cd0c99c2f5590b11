"""What a pattern makes each method send: properties, and the values of the papers."""

from collections import defaultdict
from itertools import combinations_with_replacement, product
from math import prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.halos import Messages, halo_of, halos
from tuner.inputs.structure.grid import Grid, choose, from_sizes
from tuner.inputs.structure.halo import Halo
from tuner.inputs.structure.methods import MethodError, method, standard_specs


def coordinates(grid: Grid, rank: int) -> list[int]:
    """Return those of a process; the first varies fastest."""
    return [rank // stride % size for size, stride in zip(grid.sizes, grid.strides, strict=False)]


@given(halos())
def test_a_halo_brings_each_element_that_is_needed_once(case: tuple[Halo, Messages]) -> None:
    found, messages = case
    for i, (source, destination) in enumerate(zip(found.source, found.destination, strict=True)):
        elements = found.slots[found.first[i] : found.first[i + 1]].tolist()
        assert len(elements) == found.items[i]
        assert set(elements) == messages.pop((source, destination))
    assert not messages


@given(halos())
def test_direct_sends_each_message_once(case: tuple[Halo, Messages]) -> None:
    found, messages = case
    sent: dict[int, list[int]] = defaultdict(list)
    for (source, _), items in messages.items():
        sent[source].append(len(items))
    counts = method("direct", found.procs).count(found, 1).statistics(8)
    assert counts.mmax == max(map(len, sent.values()), default=0)
    assert counts.vmax_bytes == 8 * max(map(sum, sent.values()), default=0)
    assert counts.mavg * found.procs == pytest.approx(len(messages))
    assert counts.hop_bytes == 8 * sum(map(len, messages.values()))
    held = [0] * found.procs
    for pair, items in messages.items():
        for rank in pair:
            held[rank] += len(items)
    assert counts.buffer_bytes == 8 * max(held)


@given(halos(), st.data())
def test_store_and_forward_sends_a_message_once_for_each_coordinate_that_differs(
    case: tuple[Halo, Messages], data: st.DataObject
) -> None:
    found, messages = case
    specs = standard_specs(found.procs)[1:-1] or [f"stfw:grid={found.procs}"]
    counted = method(data.draw(st.sampled_from(specs)), found.procs)
    grid = from_sizes(found.procs, tuple(map(int, counted.layout.split()[0].split("x"))))
    assert grid is not None
    counts = counted.count(found, 3).statistics(8)
    assert counted.message_bound is not None and counts.mmax <= counted.message_bound
    hops = sum(
        len(items)
        * sum(a != b for a, b in zip(*(coordinates(grid, rank) for rank in pair), strict=True))
        for pair, items in messages.items()
    )
    # Where a position is hosted, a hop may stay on its process, and a first or last one be added.
    if grid.complete:
        assert counts.hop_bytes == 8 * hops
    direct = method("direct", found.procs).count(found, 3).statistics(8)
    assert counts.hop_bytes >= direct.hop_bytes
    assert counts.on_node_bytes + counts.off_node_bytes == counts.hop_bytes
    assert counts.on_node_messages + counts.off_node_messages == round(counts.mavg * found.procs)


@given(halos(), st.integers(1, 20))
def test_what_leaves_a_node_is_counted_apart(case: tuple[Halo, Messages], ppn: int) -> None:
    found, messages = case
    counts = method("direct", found.procs).count(found, ppn).statistics(1)
    off = {pair: items for pair, items in messages.items() if pair[0] // ppn != pair[1] // ppn}
    assert counts.off_node_messages == len(off)
    assert counts.off_node_bytes == sum(map(len, off.values()))


BOUNDS = {
    64: [14, 9, 8, 7, 6],
    256: [30, 17, 12, 11, 10, 9, 8],
    512: [46, 21, 16, 13, 12, 11, 10, 9],
    16384: [254, 77, 44, 31, 26, 21, 20, 19, 18, 17, 16, 15, 14],
}


@pytest.mark.parametrize(("procs", "bounds"), BOUNDS.items())
def test_bounds_of_powers_of_two(procs: int, bounds: list[int]) -> None:
    for dims, bound in enumerate(bounds, start=2):
        grid = choose(procs, dims)
        assert grid is not None
        assert grid.message_bound == bound
        low, larger = divmod(procs.bit_length() - 1, dims)
        assert grid.sizes == (2 ** (low + 1),) * larger + (2**low,) * (dims - larger)


@pytest.mark.parametrize(
    ("procs", "dims", "sizes"),
    [(12, 2, (4, 3)), (48, 3, (4, 4, 3)), (360, 3, (9, 8, 5)), (1, 1, (1,))],
)
def test_grids_of_other_numbers(procs: int, dims: int, sizes: tuple[int, ...]) -> None:
    grid = choose(procs, dims)
    assert grid is not None and grid.sizes == sizes


def neighbors(grid: Grid, rank: int, stage: int) -> set[int]:
    """Return who a rank may send to, from its position and from the one that it hosts."""
    stride, size, layer = grid.strides[stage - 1], grid.sizes[stage - 1], grid.strides[-2]
    hosted = [rank + layer] if grid.procs <= rank + layer < grid.strides[-1] else []
    positions = {
        at + (there - at // stride % size) * stride
        for at in (rank, *hosted)
        for there in range(size)
    }
    return {at if at < grid.procs else at - layer for at in positions} - {rank}


def test_no_process_has_more_neighbours() -> None:
    for procs, sizes in product(range(1, 65), product(range(1, 5), repeat=3)):
        grid = from_sizes(procs, sizes)
        for stage in range(1, 4) if grid else ():
            most = max(len(neighbors(grid, rank, stage)) for rank in range(procs))
            assert grid.most_neighbors(stage) == most


def test_the_best_grid_is_found() -> None:
    for procs, dims in product(range(2, 80), range(1, 5)):
        grid = choose(procs, dims)
        if procs < 2**dims:
            assert grid is None
            continue
        assert grid is not None
        most = -(-procs // 2 ** (dims - 1))  # where all others are 2
        rising = combinations_with_replacement(range(2, most + 1), dims)
        fitting = [sizes for sizes in rising if prod(sizes) >= procs]
        exact = [sizes for sizes in fitting if prod(sizes) == procs] or fitting
        assert grid.sizes[::-1] in exact
        assert sum(grid.sizes) == min(map(sum, exact))


@pytest.mark.parametrize("sizes", [(16, 16), (4, 4, 4, 4), (2,) * 8, (12, 5), (7, 3, 2)])
def test_volume_of_a_complete_exchange(sizes: tuple[int, ...]) -> None:
    procs = prod(sizes)
    everybody = {(a, b): {0} for a, b in product(range(procs), repeat=2) if a != b}
    spec = f"stfw:grid={'x'.join(map(str, sizes))}"
    counts = method(spec, procs).count(halo_of(everybody, procs), 1).statistics(1)
    assert counts.vavg_bytes == counts.vmax_bytes == sum((k - 1) * procs // k for k in sizes)
    assert counts.mmax == counts.mavg == sum(k - 1 for k in sizes)
    # A byte is passed on by whoever gets it but the last.
    passed_on = sum((k - 1) * procs // k for k in sizes) - (procs - 1)
    assert counts.buffer_bytes == 2 * (procs - 1) + passed_on


@pytest.mark.parametrize("sizes", [(16, 16), (2,) * 8, (12, 5), (7, 3, 2)])
def test_a_rank_never_holds_more_messages_than_there_are_other_ranks(
    sizes: tuple[int, ...],
) -> None:
    procs = prod(sizes)
    source, destination = np.divmod(np.arange(procs**2), procs)
    away = source != destination
    for stage in range(len(sizes) + 1):
        holder = Grid(procs, sizes).route(source[away], destination[away], stage)
        assert np.bincount(holder).tolist() == [procs - 1] * procs


def test_example_of_the_paper() -> None:
    """Figure 4: T_3(4, 4, 4), coordinates from high to low and from 1."""
    a, b, c, d, e, f = (
        (x - 1) * 16 + (y - 1) * 4 + z - 1
        for x, y, z in [(2, 2, 1), (2, 1, 4), (1, 2, 3), (3, 2, 3), (2, 4, 3), (4, 1, 3)]
    )
    sends = [*product([a], [c, d, e]), *product([b], [c, d, f])]
    example = halo_of({pair: {0} for pair in sends}, 64)
    counts = method("stfw:grid=4x4x4", 64).count(example, 64).statistics(1)
    assert (counts.on_node_messages, counts.hop_bytes) == (7, 14)
    assert method("direct", 64).count(example, 64).statistics(1).on_node_messages == 6


@pytest.mark.parametrize(
    "spec",
    ["stfw:dims=4", "stfw:radix=4", "stfw:radix=1", "stfw:grid=3x3", "stfw:dims=0", "ring", ""],
)
def test_what_cannot_be_counted_is_refused(spec: str) -> None:
    with pytest.raises(MethodError):
        method(spec, 15)
