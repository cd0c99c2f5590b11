"""Node-aware counts, against sets and the example of the paper."""

from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.halos import Messages, halo_of, halos
from tuner.inputs.structure.halo import Halo
from tuner.inputs.structure.methods import method
from tuner.inputs.structure.nap_deal import Parts, deal

Volumes = dict[tuple[int, int], int]  # by sender and receiver

# Example 2.1 of Bienz, Gropp, Olson, 2019: the columns of each row, one row a process, two a node.
ROWS = [{0, 1, 3, 5}, {1, 4}, {2, 3}, {0, 1, 2, 3}, {0, 2, 4}, {0, 5}]
NODE_DATA = {(0, 1): {0, 1}, (0, 2): {0}, (1, 0): {3}, (1, 2): {2}, (2, 0): {4, 5}}


def example() -> Halo:
    messages: Messages = {
        (column, row): {0}
        for row, columns in enumerate(ROWS)
        for column in columns
        if row != column
    }
    return halo_of(messages, 6)


def example_parts(sharing: bool) -> Parts:
    origin, target = np.array(list(NODE_DATA)).T
    volumes = np.array([len(data) for data in NODE_DATA.values()])
    return deal(origin, target, volumes, procs=6, ppn=2, sharing=sharing)


def test_the_example_is_that_of_the_paper() -> None:
    sends: dict[int, set[int]] = defaultdict(set)
    found = example()
    for source, destination in zip(found.source.tolist(), found.destination.tolist(), strict=True):
        sends[source].add(destination)
    assert sends == {0: {3, 4, 5}, 1: {0, 3}, 2: {3, 4}, 3: {0, 2}, 4: {1}, 5: {0}}
    data: dict[tuple[int, int], set[int]] = defaultdict(set)
    for source, destinations in sends.items():
        for destination in destinations:
            if source // 2 != destination // 2:
                data[source // 2, destination // 2].add(source)
    assert data == NODE_DATA


def test_who_sends_to_whom_in_the_example() -> None:
    parts = example_parts(sharing=False)
    pairs = dict(zip(parts.sender.tolist(), parts.receiver.tolist(), strict=True))
    assert pairs == {0: 3, 1: 5, 2: 0, 3: 4, 4: 1}
    assert parts.items.tolist() == [2, 1, 1, 1, 2]


def test_a_shared_node_in_the_example() -> None:
    parts = example_parts(sharing=True)
    assert list(zip(parts.origin.tolist(), parts.items.tolist(), strict=True))[-2:] == [
        (2, 1),
        (2, 1),
    ]
    assert parts.sender.tolist() == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("spec", "messages", "values"),
    [("direct", 8, 8), ("nap:sharing=no", 5, 7), ("nap", 6, 7), ("nap:sharing=yes", 6, 7)],
)
def test_inter_node_traffic_of_the_example(spec: str, messages: int, values: int) -> None:
    counts = method(spec, 6).count(example(), 2).statistics(8)
    assert counts.off_node_messages == messages
    assert counts.off_node_bytes == 8 * values


def simulated(
    messages: Messages, procs: int, ppn: int
) -> tuple[Volumes, Volumes, Volumes, list[int]]:
    """Return what is gathered, crosses nodes and is distributed without sharing, and by whom."""
    wants: dict[tuple[int, int], dict[tuple[int, int], set[int]]] = defaultdict(
        lambda: defaultdict(set)
    )
    for (source, destination), items in messages.items():
        nodes = source // ppn, destination // ppn
        for item in items if nodes[0] != nodes[1] else ():
            wants[nodes][source, item].add(destination)
    sender, receiver = {}, {}
    for node in range(-(-procs // ppn)):
        size = min(ppn, procs - node * ppn)
        out = sorted((pair for pair in wants if pair[0] == node), key=lambda p: (-len(wants[p]), p))
        into = sorted(
            (pair for pair in wants if pair[1] == node), key=lambda p: (-len(wants[p]), p)
        )
        sender |= {pair: node * ppn + i % size for i, pair in enumerate(out)}
        receiver |= {pair: node * ppn + size - 1 - i % size for i, pair in enumerate(into)}
    gathered: dict[tuple[int, int], set[int]] = defaultdict(set)  # once, also for several nodes
    crossing, distributed = (defaultdict(int) for _ in range(2))
    passed_on = [0] * procs
    for pair, elements in wants.items():
        crossing[sender[pair], receiver[pair]] += len(elements)
        for (source, item), destinations in elements.items():
            if source != sender[pair]:
                gathered[source, sender[pair]].add(item)
            for destination in destinations - {receiver[pair]}:
                distributed[receiver[pair], destination] += 1
            passed_on[receiver[pair]] += bool(destinations - {receiver[pair]})
    for (_, receiver_here), items in gathered.items():
        passed_on[receiver_here] += len(items)
    return {pair: len(items) for pair, items in gathered.items()}, crossing, distributed, passed_on


@given(halos(), st.integers(1, 8))
def test_messages_and_volumes_are_those_of_sets(case: tuple[Halo, Messages], ppn: int) -> None:
    found, messages = case
    counts = method("nap:sharing=no", found.procs).count(found, ppn).statistics(1)
    gathered, crossing, distributed, held = simulated(messages, found.procs, ppn)
    direct = {p: len(items) for p, items in messages.items() if p[0] // ppn == p[1] // ppn}
    sent, volume, off_sent = np.zeros((3, found.procs), dtype=int)
    for stage in (gathered, crossing, distributed, direct):
        for (sender, receiver), items in stage.items():
            sent[sender] += items > 0
            volume[sender] += items
            off_sent[sender] += sender // ppn != receiver // ppn
    assert counts.mmax == sent.max()
    assert counts.mavg * found.procs == pytest.approx(sent.sum())
    assert counts.vmax_bytes == volume.max()
    assert counts.hop_bytes == volume.sum()
    assert counts.off_node_mmax == off_sent.max()
    assert counts.off_node_bytes == sum(crossing.values())
    for pair, items in messages.items():
        for rank in pair:
            held[rank] += len(items)
    assert counts.buffer_bytes == max(held)


@given(halos(), st.integers(1, 8))
def test_sharing_moves_the_same_between_nodes(case: tuple[Halo, Messages], ppn: int) -> None:
    found, _ = case
    alone = method("nap:sharing=no", found.procs).count(found, ppn).statistics(1)
    shared = method("nap", found.procs).count(found, ppn).statistics(1)
    assert shared.off_node_bytes == alone.off_node_bytes
    assert shared.off_node_vmax_bytes <= alone.off_node_vmax_bytes
    assert shared.off_node_messages >= alone.off_node_messages


@given(halos())
def test_one_node_is_direct(case: tuple[Halo, Messages]) -> None:
    found, _ = case
    node_aware = method("nap", found.procs).count(found, found.procs).statistics(1)
    direct = method("direct", found.procs).count(found, found.procs).statistics(1)
    assert node_aware.stages == 3
    assert (node_aware.mmax, node_aware.hop_bytes, node_aware.buffer_bytes) == (
        direct.mmax,
        direct.hop_bytes,
        direct.buffer_bytes,
    )
