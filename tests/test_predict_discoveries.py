"""Predictions of discoveries: the formulas on machines with round numbers."""

from dataclasses import replace

import pytest

from tests.halos import halo_of
from tests.round_machine import (
    ALPHA,
    COPYING,
    GAP,
    LAYOUT,
    OVERHEAD,
    PENALTY,
    PER_BYTE,
    UNKNOWN,
    exactly,
    machine,
    pair,
    pair_with,
)
from tuner.models import predict
from tuner.models.system import PairModel

HEADER = 16  # bytes of a part that a discovery forwards


def forwarded(parts_bytes: float, partners: int, factor: float = 1) -> float:
    """Return the time of a stage whose messages take `factor` as long as on the node."""
    moved = parts_bytes * partners / (partners + 1) * (factor * PER_BYTE + COPYING)
    return factor * (ALPHA + (partners - 1) * (GAP + OVERHEAD)) + moved


def test_discovery() -> None:
    ring = halo_of({(rank, (rank + 1) % 8): {0} for rank in range(8)}, 8)
    size, parts = 64, 64 + HEADER
    payload = ALPHA + size * PER_BYTE
    times = predict.of_discovery(machine(), ring, 8).times(size)
    barrier = 3 * (ALPHA + PER_BYTE)

    assert times == {
        "pex": payload + min(7 * GAP + ALPHA, 3 * ALPHA + 3 * 4 * 4 * PER_BYTE),
        "pcx": payload + 3 * ALPHA + (4 + 2 + 1) * 4 * PER_BYTE,
        "rsx": payload + 2 * barrier + ALPHA,
        "put": payload + barrier + ALPHA,
        "nbx": payload + PENALTY + barrier,
        "dense": payload + 6 * (GAP + OVERHEAD),
        "shared": ALPHA + 2 * size * COPYING,
        "nap": forwarded(parts, 7),
        "stfw:dims=2": forwarded(parts, 3) + forwarded(parts, 1),
        "stfw:radix=2": 3 * forwarded(parts, 1),
    }


def test_a_discovery_by_nodes_forwards_on_them_before_and_after_the_consensus() -> None:
    """Rank 0 sends to one rank of each of the other three nodes, which it has to deal with two."""
    halo = halo_of({(0, rank): {0} for rank in (2, 4, 6)}, 8)
    model = machine(on_node=pair(), off_node=pair(10))
    times = predict.of_discovery(model, halo, 2).times(16)
    parts = 3 * (16 + HEADER)
    on_node = ALPHA + parts / 2 * (PER_BYTE + COPYING)
    off_node = 10 * (ALPHA + GAP + OVERHEAD) + parts * 2 / 3 * (10 * PER_BYTE + COPYING)
    barrier = 3 * 10 * (ALPHA + PER_BYTE)
    assert times["nap"] == pytest.approx(2 * on_node + off_node + PENALTY + barrier)
    assert times["nap:find=dense"] == pytest.approx(2 * on_node + off_node)
    assert times["nap:find=put"] == pytest.approx(2 * on_node + off_node + barrier)
    by_memory = ALPHA + parts * COPYING
    assert times["nap:find=dense,node=shared"] == pytest.approx(2 * by_memory + off_node)
    assert "shared" not in times
    one_way = 10 * ALPHA + parts / 2 * (10 * PER_BYTE + COPYING)
    assert times["stfw:radix=2"] == pytest.approx(on_node + 2 * one_way)


@pytest.mark.parametrize(
    ("procs", "ppn", "letters"), [(4, 1, 3), (10, 2, 3), (7, 3, 2), (8, 3, 1), (18, 4, 2)]
)
def test_the_most_nodes_are_dealt_to_a_rank_of_a_small_node(
    procs: int, ppn: int, letters: int
) -> None:
    """Its own node is not dealt, so others of the node may have more."""
    model = machine(on_node=pair(), off_node=pair(10))
    halo = halo_of({(0, procs - 1): {0}}, procs)
    (time_s,) = predict.of_discovery(model, halo, ppn, ["nap:find=dense"]).times(16).values()
    on_node = forwarded(16 + HEADER, ppn - 1) if ppn > 1 else 0
    assert time_s == pytest.approx(2 * on_node + forwarded(16 + HEADER, letters, 10))


def test_a_rank_of_an_incomplete_grid_has_the_neighbours_of_two_positions() -> None:
    """Of 7 ranks on 3 x 3 positions: rank 4 is also at 7, and rank 6 is on another node."""
    model = machine(on_node=pair(), off_node=pair(10))
    halo = halo_of({(0, 1): {0}}, 7)
    (time_s,) = predict.of_discovery(model, halo, 3, ["stfw:dims=2"]).times(16).values()
    parts = 16 + HEADER
    assert time_s == pytest.approx(forwarded(parts, 3, 10) + forwarded(parts, 2, 10))


def test_empty_messages_of_dense_have_a_latency_if_there_are_no_others() -> None:
    times = [
        predict.of_discovery(machine(), halo_of(messages, 3), 3, ["dense"]).times(0)["dense"]
        for messages in ({}, {(0, 1): {0}}, {(0, 1): {0}, (0, 2): {0}})
    ]
    assert times[:2] == [ALPHA + GAP + OVERHEAD] * 2
    assert times[2] == ALPHA + GAP


def test_short_messages_are_put_before_the_fence() -> None:
    ring = halo_of({(rank, (rank + 1) % 8): {0} for rank in range(8)}, 8)
    predictor = predict.of_discovery(machine(), ring, 8, ["put"])
    fenced = 3 * (ALPHA + PER_BYTE) + ALPHA
    assert predictor.times(48) == {"put": fenced}
    assert predictor.times(49) == {"put": fenced + ALPHA + 49 * PER_BYTE}


def test_bruck_sends_the_blocks_whose_number_has_the_bit() -> None:
    silent = halo_of({}, 48)
    blocks = sum(number.bit_count() for number in range(48))
    assert predict.of_discovery(machine(), silent, 48, ["pex"]).times(8) == {
        "pex": 6 * ALPHA + blocks * 4 * PER_BYTE
    }


def test_fences_take_as_many_barriers_as_were_measured() -> None:
    ring = halo_of({(rank, (rank + 1) % 8): {0} for rank in range(8)}, 8)
    measured = replace(machine(), fence=exactly(3 * 2 * ALPHA), together=4)
    for model, barriers in ((machine(), 1), (measured, 3)):
        times = predict.of_discovery(model, ring, 8, ["rsx", "nbx"]).times(8)
        rounds = times["nbx"] - PENALTY - (ALPHA + 8 * PER_BYTE)
        assert times["rsx"] == ALPHA + 8 * PER_BYTE + 2 * barriers * rounds + ALPHA


def test_what_is_found_is_received_one_by_one() -> None:
    """Receives that are begun beforehand let messages overlap, as `pex` does."""
    funnel = halo_of({(a, 0): {0} for a in range(1, 5)}, 5)
    model = machine(on_node=pair_with(beta_s=0.5))
    times = predict.of_discovery(model, funnel, 5).times(1000)
    together = ALPHA + 3 * OVERHEAD + (0.5 + 3 * PER_BYTE) * 1000
    found = ALPHA + 3 * OVERHEAD + 4 * 0.5 * 1000
    barrier = 3 * (ALPHA + 0.5)
    assert times["nbx"] == found + PENALTY + barrier
    assert times["rsx"] == found + 2 * barrier + ALPHA
    assert times["pex"] == together + min(4 * GAP + ALPHA, 3 * ALPHA + (2 + 2 + 1) * 4 * 0.5)


def test_nbx_needs_synchronous_sends() -> None:
    silent = pair()
    silent = PairModel(LAYOUT, silent.loggp, silent.maxrate, UNKNOWN)
    ring = halo_of({(rank, (rank + 1) % 4): {0} for rank in range(4)}, 4)
    times = predict.of_discovery(machine(on_node=silent), ring, 4).times(8)
    assert list(times)[-1] == "nbx"
    assert times["nbx"] == UNKNOWN
