"""Predictions: the formulas on machines with round numbers, and what the stages make of them."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest

from tests.test_structure import halo_of
from tests.test_structure_nap import example
from tuner.commands.printing.models import show_prediction
from tuner.commands.printing.results import console
from tuner.export.model_lines import model_lines
from tuner.inputs.structure.halo import Halo
from tuner.inputs.structure.methods import method
from tuner.inputs.structure.patterns import pattern
from tuner.inputs.structure.stages import MessageStage, stages
from tuner.models import closed_forms, collectives, predict
from tuner.models.algorithms import Group
from tuner.models.costs import costs
from tuner.models.delivery import RankNetwork
from tuner.models.loggp import LogGP
from tuner.models.loggp import LogGPProtocol as LogGPProtocol
from tuner.models.maxrate import MaxRate, Rates
from tuner.models.maxrate import RateProtocol as MaxRateProtocol
from tuner.models.parameter import Estimate, ModelError, NotIdentified, Parameter
from tuner.models.system import Links, PairModel, ProbedLayout, SystemModel, decode, encode

LAYOUT = ProbedLayout(nodes=1, ppn=16, oversubscribed=False, launches=1)
UNKNOWN = NotIdentified("not measured")
LATENCY, OVERHEAD, GAP, PER_BYTE = 3.0, 1.0, 2.0, 0.125
ALPHA = LATENCY + 2 * OVERHEAD
COPYING, REDUCING, PENALTY = 0.25, 0.5, 7.0
HEADER = 16  # bytes of a part that a discovery forwards


def exactly(value: float) -> Parameter:
    return Estimate(value, value, value)


def pair(factor: float = 1, rates: Rates | None = None, ends: Sequence[int] = ()) -> PairModel:
    """A network whose times are `factor` as long, of protocols that each double alpha."""
    bounds = [0, *ends]
    protocols = [
        LogGPProtocol(
            from_bytes=begin + 1,
            up_to_bytes=end,
            alpha=exactly(factor * ALPHA * 2**number),
            beta=exactly(factor * PER_BYTE),
            latency=exactly(factor * LATENCY),
            overhead_send=exactly(factor * OVERHEAD),
            overhead_receive=exactly(factor * OVERHEAD),
            gap=exactly(factor * GAP),
            gap_per_byte=exactly(factor * PER_BYTE),
            alpha_s=factor * ALPHA * 2**number,
            beta_s=factor * PER_BYTE,
        )
        for number, (begin, end) in enumerate(zip(bounds, [*ends, None], strict=True))
    ]
    swept: MaxRate | NotIdentified = UNKNOWN
    if rates:
        swept = MaxRate([MaxRateProtocol(1, None, *(UNKNOWN,) * 4, rates)], 0.01)
    return PairModel(LAYOUT, LogGP(protocols, 0.01), swept, exactly(PENALTY))


def machine(**pairs: PairModel) -> SystemModel:
    pairs = pairs or {"on_node": pair()}
    return SystemModel(*("a-system", "a-campaign"), 1, pairs, exactly(COPYING), exactly(REDUCING))


def delivery_s(network: RankNetwork, stage: MessageStage, item_bytes: float) -> float:
    return float(network.ended_s(stage, item_bytes, np.zeros(network.procs)).max())


def everybody(procs: int) -> Halo:
    pairs = ((a, b) for a in range(procs) for b in range(procs) if a != b)
    return halo_of({(a, b): {b} for a, b in pairs}, procs)


def test_direct_is_the_delivery_of_its_messages() -> None:
    star = halo_of({(0, b): {b} for b in range(1, 5)} | {(1, 0): {0}}, 5)
    (time_s,) = predict.of_exchange(machine(), star, 5, ["direct"]).times(16).values()
    assert time_s == ALPHA + 3 * max(OVERHEAD, GAP) + PER_BYTE * 4 * 16


def test_the_bytes_that_a_rank_receives_take_their_time() -> None:
    funnel = halo_of({(a, 0): {0} for a in range(1, 5)} | {(0, 1): {0}}, 5)
    (time_s,) = predict.of_exchange(machine(), funnel, 5, ["direct"]).times(16).values()
    assert time_s == ALPHA + 3 * OVERHEAD + PER_BYTE * 4 * 16
    silent = halo_of({(a, 0): {0} for a in range(1, 5)}, 5)
    (time_s,) = predict.of_exchange(machine(), silent, 5, ["direct"]).times(16).values()
    assert time_s == ALPHA + 3 * OVERHEAD + PER_BYTE * 4 * 16


def test_a_pattern_without_messages_takes_no_time() -> None:
    empty = halo_of({}, 4)
    times = predict.of_exchange(machine(), empty, 4).times(8)
    assert times.pop("shared") == NotIdentified("no message is of 8192 bytes or less")
    assert set(times.values()) == {0.0}


def test_messages_cost_what_their_protocol_does() -> None:
    one = halo_of({(0, 1): {0}}, 2)
    predictor = predict.of_exchange(machine(on_node=pair(ends=(64,))), one, 2, ["direct"])
    assert predictor.times(64)["direct"] == ALPHA + 64 * PER_BYTE
    assert predictor.times(65)["direct"] == 2 * ALPHA + 65 * PER_BYTE


def test_on_and_off_the_node_have_their_own_parameters() -> None:
    both = halo_of({(0, 1): {0}, (0, 2): {1}}, 4)
    model = machine(on_node=pair(), off_node=pair(10))
    (time_s,) = predict.of_exchange(model, both, 2, ["direct"]).times(8).values()
    assert time_s == 10 * ALPHA + (GAP + 10 * GAP) - 10 * GAP + (1 + 10) * 8 * PER_BYTE


def test_on_a_node_messages_cost_what_they_do_while_all_ranks_communicate() -> None:
    """A loaded gap is of a message sent and one received, a loaded G of the bytes of both."""
    ring = halo_of({(a, (a + by) % 4): {0} for a in range(4) for by in (1, 2, 3)}, 4)
    its = pair()
    assert isinstance(its.loggp, LogGP)
    (protocol,) = its.loggp.protocols
    loaded = replace(protocol, loaded_gap=exactly(5), loaded_gap_per_byte=exactly(0.5))
    model = machine(on_node=replace(its, loggp=LogGP([loaded], 0.01)))
    (time_s,) = predict.of_exchange(model, ring, 4, ["direct"]).times(16).values()
    assert time_s == ALPHA + 2 * 5 + 0.5 * 3 * 16
    crossing = replace(loaded, loaded_alpha=exactly(9), loaded_beta=exactly(0.75))
    model = machine(on_node=replace(its, loggp=LogGP([crossing], 0.01)))
    (time_s,) = predict.of_exchange(model, ring, 4, ["direct"]).times(16).values()
    assert time_s == 9 + 0.25 * 16 + 2 * 5 + 0.5 * 3 * 16
    star = predict.of_collective(model, "gather", 4, 4, ["star"]).times(16)
    assert star == predict.of_collective(machine(), "gather", 4, 4, ["star"]).times(16)


def test_a_message_alone_takes_half_a_round_trip() -> None:
    """Its bytes may take longer than those of a flood, in which messages overlap."""
    its = pair()
    assert isinstance(its.loggp, LogGP)
    (protocol,) = its.loggp.protocols
    model = machine(on_node=replace(its, loggp=LogGP([replace(protocol, beta_s=0.5)], 0.01)))
    for halo, messages in ((halo_of({(0, 1): {0}}, 2), 1), (everybody(3), 2)):
        (time_s,) = predict.of_exchange(model, halo, halo.procs, ["direct"]).times(16).values()
        more = (messages - 1) * (GAP + OVERHEAD + PER_BYTE * 16)
        assert time_s == ALPHA + 0.5 * 16 + more


def test_a_node_sends_no_faster_than_its_rate() -> None:
    across = halo_of({(rank, rank + 4): {0} for rank in range(4)}, 8)
    rates = Rates(1.0, b_max=4.0, b_inj=4.0, b_node=10.0, most_processes=16)
    size = 1000
    for its, seconds in (
        (rates, 4 * size / 10),
        (Rates(1.0, 4.0, -1.0, None, 16), 4 * size / (4 - 3)),
        (Rates(1.0, 4.0, -1.0, None, 2), 4 * size / (4 - 1)),
        (Rates(1.0, 1e9, 0.0, None, 16), PER_BYTE * size),
        (Rates(1.0, None, 0.0, None, 16), PER_BYTE * size),
    ):
        model = machine(on_node=pair(), off_node=pair(rates=its))
        (time_s,) = predict.of_exchange(model, across, 4, ["direct"]).times(size).values()
        assert time_s == pytest.approx(ALPHA + seconds)


def test_messages_share_the_links_on_their_way() -> None:
    """Nodes 0 and 1 of a ring send to node 2: four messages take the link between 1 and 2.

    Two come to a rank at the same time, which handles them one after the other.
    """
    across = halo_of({(0, 4): {0}, (1, 5): {0}, (2, 4): {0}, (3, 5): {0}, (6, 8): {0}}, 10)
    model = replace(machine(on_node=pair(), off_node=pair()), links=Links("torus", (5,)))
    (time_s,) = predict.of_exchange(model, across, 2, ["direct"]).times(16).values()
    assert time_s == ALPHA + 4 * 16 * PER_BYTE + OVERHEAD
    assert decode(encode(model)) == model


def test_ranks_of_a_simulated_machine_wait_for_their_own_messages_only() -> None:
    """Elsewhere a stage is taken to begin when the one before has ended for all."""
    messages = ((0, 1, 100), (2, 3, 1), (1, 2, 1))
    heavy, light, last = (
        MessageStage(*(np.array([each]) for each in message)) for message in messages
    )
    simulated = replace(machine(), links=Links("torus", (2,)))
    for model, before in ((simulated, 0), (machine(), 1)):
        network = predict.network_of(model, 4, 4)
        of_heavy, of_light = (delivery_s(network, stage, 8) for stage in (heavy, light))
        assert (of_heavy, of_light) == (ALPHA + 800 * PER_BYTE, ALPHA + 8 * PER_BYTE)
        ended = np.zeros(4)
        for stage in (heavy, light):
            ended = network.ended_s(stage, 8, ended)
        assert ended.max() == of_heavy + before * of_light
        ended = network.ended_s(last, 8, ended)
        assert ended.max() == of_heavy + (1 + before) * of_light


def test_processors_of_a_simulated_machine_work_while_links_carry() -> None:
    """Node 0 sends ten messages to node 1: their link is busy for longer than the processors."""
    across = halo_of({(a, b): {b} for a in (0, 1) for b in range(5, 10)}, 10)
    model = replace(machine(on_node=pair(), off_node=pair()), links=Links("torus", (2,)))
    few, many = (
        predict.of_exchange(model, across, 5, ["direct"]).times(size)["direct"]
        for size in (4, 1000)
    )
    assert few == ALPHA + 4 * GAP + OVERHEAD + 4 * PER_BYTE
    assert many == ALPHA + 10 * 1000 * PER_BYTE + OVERHEAD


def test_ranks_of_a_simulated_machine_handle_messages_as_they_come() -> None:
    """Rank 3 gets three of rank 0, 1 and 2, the first two of which come while it waits."""
    times = {(0, 3): 0.0, (1, 3): 3.0, (2, 3): 3.5}
    halo = halo_of({pair: {0} for pair in times}, 4)
    model = replace(machine(), links=Links("torus", (2,)))
    network = predict.network_of(model, 4, 4)
    (stage,) = stages(method("direct", 4), halo, 4)
    ended = network.ended_s(stage, 0, np.array([*times.values(), 0.0]))
    assert ended.max() == ended[3] == 3.0 + ALPHA + OVERHEAD


@pytest.mark.parametrize(("dims", "size"), [(2, 4), (3, 4), (2, 8)])
def test_stfw_of_dense_patterns_is_below_its_postal_bound(dims: int, size: int) -> None:
    procs, message = size**dims, 24
    spec = f"stfw:dims={dims}"
    (time_s,) = (
        predict.of_exchange(machine(), everybody(procs), procs, [spec]).times(message).values()
    )

    def message_s(size_bytes: float) -> float:
        return ALPHA + (PER_BYTE + COPYING) * size_bytes

    bound = closed_forms.stfw_dense_s((size,) * dims, message, message_s)
    assert isinstance(time_s, float)
    assert time_s <= bound
    moved = dims * (size - 1) * size ** (dims - 1) * message
    assert time_s - moved * (PER_BYTE + COPYING) == pytest.approx(
        dims * (ALPHA + (size - 2) * (GAP + OVERHEAD))
    )


@pytest.mark.parametrize("sizes", [(16, 16), (4, 4, 4, 4), (8, 8, 4)])
def test_dense_stfw_and_direct_cross_where_the_formula_says(sizes: tuple[int, ...]) -> None:
    at = closed_forms.dense_switch_point_bytes(sizes, ALPHA, PER_BYTE)
    ranks = math.prod(sizes)
    direct = (ranks - 1) * (ALPHA + at * PER_BYTE)
    volume = sum((size - 1) * ranks / size for size in sizes) * at
    stfw = sum(size - 1 for size in sizes) * ALPHA + volume * PER_BYTE
    assert stfw == pytest.approx(direct)


def test_nap_is_the_sum_of_its_stages() -> None:
    model = machine(on_node=pair(), off_node=pair(10))
    network = predict.network_of(model, 6, 2)
    planned = stages(method("nap", 6), example(), 2)
    parts = [delivery_s(network, stage, 8) for stage in planned]
    (time_s,) = predict.of_exchange(model, example(), 2, ["nap"]).times(8).values()
    assert time_s == sum(parts)
    assert len(parts) == 3
    assert parts[1] > 10 * ALPHA > parts[0]


def test_the_papers_bound_of_nap() -> None:
    off = Rates(10.0, b_max=4.0, b_inj=2.0, b_node=5.0, most_processes=16)
    time_s = closed_forms.nap_max_rate_s((1.0, 0.125), off, 4, 3, (80.0, 100.0, 25.0))
    assert time_s == 2 * (1 * 3 + 80 / 8) + 10 * 3 + max(100 / 5, 25 / ((4 + 3 * 2) / 4))


def test_closed_forms_are_of_the_patterns_that_they_hold_for() -> None:
    """On 16 ranks of a node with postal messages: `direct` loses to 4 x 4 below the point told."""
    (two, four) = predict.closed_forms_of(machine(), everybody(16), 16)[::2]
    assert (two.method, four.method) == ("stfw:dims=2", "stfw:radix=2")
    messages, submessages = 6, 6 * 4
    each = ALPHA * messages + 100 * submessages * (PER_BYTE + COPYING)
    assert two.time_s(100) == pytest.approx(each)
    assert two.beats_direct_below_bytes == pytest.approx(ALPHA / PER_BYTE * (15 - 6) / (24 - 15))
    assert predict.closed_forms_of(machine(), example(), 6) == []
    (nap,) = predict.closed_forms_of(machine(on_node=pair(), off_node=pair(10)), example(), 2)
    assert nap.method == "nap"
    # A rank sends one message of two values off its node, and one gets two from its neighbour.
    gathered = 2 * (ALPHA + 2 * 8 * PER_BYTE)
    assert nap.time_s(8) == pytest.approx(gathered + 10 * ALPHA + 2 * 8 * 10 * PER_BYTE)


def test_stages_are_those_that_statistics_count() -> None:
    found = pattern("random:degree=5,seed=3", 24)
    for spec in ("direct", "stfw:dims=3", "nap"):
        counted = method(spec, 24)
        statistics = counted.count(found, 4).statistics(1)
        planned = stages(counted, found, 4)
        assert len(planned) == statistics.stages
        assert sum(int(stage.items.sum()) for stage in planned) == statistics.hop_bytes


def test_discovery() -> None:
    ring = halo_of({(rank, (rank + 1) % 8): {0} for rank in range(8)}, 8)
    size = 64
    payload = ALPHA + size * PER_BYTE
    times = predict.of_discovery(machine(), ring, 8).times(size)
    barrier = 3 * (ALPHA + PER_BYTE)

    def forwarded(partners: int) -> float:
        moved = (size + HEADER) * partners / (partners + 1) * (PER_BYTE + COPYING)
        return ALPHA + (partners - 1) * (GAP + OVERHEAD) + moved

    assert times == {
        "pex": payload + min(7 * GAP + ALPHA, 3 * ALPHA + 3 * 4 * 4 * PER_BYTE),
        "pcx": payload + 3 * ALPHA + (4 + 2 + 1) * 4 * PER_BYTE,
        "rsx": payload + 2 * barrier + ALPHA,
        "put": payload + barrier + ALPHA,
        "nbx": payload + PENALTY + barrier,
        "dense": payload + 6 * (GAP + OVERHEAD),
        "shared": ALPHA + 2 * size * COPYING,
        "nap": forwarded(7),
        "stfw:dims=2": forwarded(3) + forwarded(1),
        "stfw:radix=2": 3 * forwarded(1),
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


def test_large_messages_of_shared_are_sent() -> None:
    both = halo_of({(0, 1): {0}, (1, 0): {0}}, 2)
    (small,) = predict.of_discovery(machine(), both, 2, ["shared"]).times(8192).values()
    (large,) = predict.of_discovery(machine(), both, 2, ["shared"]).times(8193).values()
    assert small == ALPHA + 2 * 8192 * COPYING
    assert large == ALPHA + ALPHA + 8193 * PER_BYTE
    exchange = predict.of_exchange(machine(), both, 2, ["shared"])
    assert exchange.times(8192) == {"shared": ALPHA + 2 * 8192 * COPYING}
    assert exchange.best(8193) is None


def test_lent_copies_each_item_once_and_what_is_received() -> None:
    halo = halo_of({(0, 1): {0, 1}, (0, 2): {1, 2}, (1, 0): {0}}, 4)
    (time_s,) = predict.of_exchange(machine(), halo, 4, ["lent"]).times(10000).values()
    assert time_s == ALPHA + (3 + 1) * 10000 * COPYING
    assert "lent" not in predict.of_exchange(
        machine(on_node=pair(), off_node=pair()), halo, 2
    ).times(8)


def test_nap_by_memory_copies_what_stays_on_a_node() -> None:
    """Rank 0 sends to its neighbour, and by rank 3 of the other node, which passes it on."""
    model = machine(on_node=pair(), off_node=pair(10))
    halo = halo_of({(0, 1): {0, 1}, (0, 2): {2}}, 4)
    by_memory = predict.of_exchange(model, halo, 2, ["nap:node=shared"])
    off_node = 10 * (ALPHA + 8 * PER_BYTE)
    seen_and_copied = ALPHA + 16 * COPYING + ALPHA + 8 * COPYING
    assert by_memory.times(8) == pytest.approx({"nap:node=shared": off_node + seen_and_copied})
    gather, cross, _ = stages(method("nap", 4), halo, 2)
    assert not len(gather.sender)
    sent = delivery_s(predict.network_of(model, 4, 2), cross, 5000)  # now both from rank 0
    (time_s,) = by_memory.times(5000).values()
    assert time_s == pytest.approx(sent + ALPHA + 5000 * COPYING)
    assert by_memory.best(8193) is None


def test_nap_by_memory_is_for_several_nodes_of_several_ranks() -> None:
    model = machine(on_node=pair(), off_node=pair(10))
    found = {
        ppn: predict.of_exchange(model, everybody(4), ppn).times(8).keys() for ppn in (1, 2, 4)
    }
    assert [ppn for ppn, specs in found.items() if "nap:node=shared" in specs] == [2]
    shares, one = (
        predict.of_exchange(model, everybody(4), 2, [spec]).times(8)[spec]
        for spec in ("nap:node=shared", "nap:sharing=no,node=shared")
    )
    assert shares != one
    (of_mpi,) = predict.of_exchange(model, everybody(4), 2, ["nap:node=mpi"]).times(8).values()
    assert of_mpi == predict.of_exchange(model, everybody(4), 2, ["nap"]).times(8)["nap"]


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


def test_a_fence_without_messages_to_compare_it_with_counts_as_a_barrier() -> None:
    silent = PairModel(LAYOUT, UNKNOWN, UNKNOWN, UNKNOWN)
    model = machine(on_node=pair(), off_node=silent)
    model = replace(model, fence=exactly(9), together=4)
    assert "model fence barriers=1" in model_lines(model)


def test_scattered_items_are_packed_first() -> None:
    """Rank 0 packs three items of four; rank 1's lie one after the other."""
    halo = halo_of({(0, 1): {0, 2, 3}, (0, 2): {1}, (1, 0): {0, 1, 2}, (2, 0): {1}}, 3)
    apart, together = (
        predict.of_exchange(replace(machine(), copying=exactly(each)), halo, 3).times(8)
        for each in (COPYING, 0)
    )
    assert apart["direct"] - together["direct"] == 3 * 8 * COPYING
    assert apart["nap"] - together["nap"] == 3 * 8 * COPYING


def test_what_is_found_is_received_one_by_one() -> None:
    """Receives that are begun beforehand let messages overlap, as `pex` does."""
    funnel = halo_of({(a, 0): {0} for a in range(1, 5)}, 5)
    its = pair()
    assert isinstance(its.loggp, LogGP)
    (protocol,) = its.loggp.protocols
    model = machine(on_node=replace(its, loggp=LogGP([replace(protocol, beta_s=0.5)], 0.01)))
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


def test_of_methods_that_cannot_be_told_none_is_the_fastest(
    capsys: pytest.CaptureFixture[str],
) -> None:
    silent = PairModel(LAYOUT, pair().loggp, UNKNOWN, UNKNOWN)
    ring = halo_of({(rank, (rank + 1) % 4): {0} for rank in range(4)}, 4)
    predictor = predict.of_discovery(machine(on_node=silent), ring, 4, ["nbx"])
    assert predictor.best(8) is None
    sizes = (8, 1024)
    crossovers = predictor.crossovers(sizes)
    assert crossovers == []
    show_prediction(sizes, [predictor.times(size) for size in sizes], crossovers, console())
    printed = capsys.readouterr().out
    assert "nbx is not predicted: not measured" in printed
    assert "no method can be predicted\n" in printed
    assert "fastest" not in printed


M = 64.0
SEND = ALPHA + M * PER_BYTE


@pytest.mark.parametrize(
    ("operation", "name", "seconds"),
    [
        ("bcast", "binomial", 3 * SEND),
        ("bcast", "scatter_allgather", 2 * 3 * ALPHA + 2 * 7 / 8 * M * PER_BYTE),
        ("bcast", "scatter_allgather:allgather=ring", (3 + 7) * ALPHA + 2 * 7 / 8 * M * PER_BYTE),
        ("bcast", "knomial:radix=3", 2 * (ALPHA + GAP + 2 * M * PER_BYTE)),
        ("bcast", "knomial:radix=64", ALPHA + 6 * GAP + 7 * M * PER_BYTE),
        ("bcast", "chain:segment=16", (6 + 4) * (ALPHA + 16 * PER_BYTE)),
        ("bcast", "chain", 7 * SEND),
        ("bcast", "vendor:algorithm=binary_tree", 3 * (ALPHA + GAP + 2 * M * PER_BYTE)),
        ("reduce", "rabenseifner", 6 * ALPHA + 7 / 8 * M * (2 * PER_BYTE + REDUCING)),
        ("allreduce", "rabenseifner", 6 * ALPHA + 7 / 8 * M * (2 * PER_BYTE + REDUCING)),
        ("allreduce", "ring", 14 * ALPHA + 7 / 8 * M * (2 * PER_BYTE + REDUCING)),
        ("allgather", "bruck", 3 * ALPHA + 7 * M * PER_BYTE + 8 * M * COPYING),
        ("allgatherv", "ring", 7 * SEND),
        ("alltoall", "pairwise", 7 * SEND),
        ("alltoall", "bruck", 3 * ALPHA + 12 * M * PER_BYTE + 2 * (8 + 12) * M * COPYING),
        ("alltoallv", "pairwise", 7 * SEND),
        ("alltoallv", "bruck", 3 * ALPHA + 12 * (M + 4) * PER_BYTE + 2 * (8 + 12) * M * COPYING),
        (
            "alltoallv",
            "bruck:radix=4",
            2 * (ALPHA + GAP + OVERHEAD) + 10 * (M + 4) * PER_BYTE + 2 * (8 + 10) * M * COPYING,
        ),
        ("barrier", "binomial", 2 * 3 * SEND),
        ("barrier", "knomial:radix=3", 2 * 2 * (ALPHA + GAP + 2 * M * PER_BYTE)),
        ("barrier", "bruck", 3 * SEND),
        ("barrier", "bruck:radix=4", SEND + ALPHA + 2 * (GAP + OVERHEAD) + 3 * M * PER_BYTE),
        ("barrier", "vendor:algorithm=recursive_doubling", 3 * SEND),
        ("barrier", "vendor:algorithm=double_ring", 16 * SEND),
        ("alltoall", "vendor:algorithm=linear", ALPHA + 6 * (GAP + OVERHEAD) + 7 * M * PER_BYTE),
        ("reduce_scatter_block", "hypercube", 3 * ALPHA + 7 * M * (PER_BYTE + REDUCING)),
        ("reduce_scatter_block", "pairwise", 7 * (SEND + M * REDUCING)),
        (
            "reduce_scatter_block",
            "vendor:algorithm=recursive_doubling",
            3 * ALPHA + (7 + 6 + 4) * M * (PER_BYTE + REDUCING),
        ),
        ("gather", "star", 7 * max(GAP, OVERHEAD + M * PER_BYTE) + ALPHA),
        ("scatter", "binomial", 3 * ALPHA + 7 * M * PER_BYTE),
        ("reduce", "star", 7 * (OVERHEAD + M * PER_BYTE + M * REDUCING)),
        ("reduce", "binomial", 3 * (SEND + M * REDUCING)),
        ("allreduce", "binomial", 2 * 3 * SEND + 3 * M * REDUCING),
        ("allreduce", "hypercube", 3 * (SEND + M * REDUCING)),
        ("allgather", "ring", 7 * SEND),
        ("allgather", "hypercube", 3 * ALPHA + 7 * M * PER_BYTE),
        (
            "allreduce",
            "orthogonal:grid=2x4",
            6 * ALPHA + 5 / 2 * M * PER_BYTE + 5 / 4 * M * REDUCING,
        ),
        ("allgather", "orthogonal:grid=2x4", SEND + 2 * ALPHA + 3 * 2 * M * PER_BYTE),
        ("allgather", "orthogonal:dims=2", SEND + 2 * ALPHA + 3 * 2 * M * PER_BYTE),
    ],
)
def test_collectives(operation: str, name: str, seconds: float) -> None:
    assert collectives.time_s(operation, name, ranks(8), M) == pytest.approx(seconds)


def ranks(procs: int) -> Group:
    return Group(costs(machine(), on_node=True), procs, REDUCING, COPYING)


@pytest.mark.parametrize(
    ("operation", "name", "seconds"),
    [
        ("bcast", "scatter_allgather", 2 * (2 * ALPHA + 3 / 4 * M * PER_BYTE) + SEND),
        ("allreduce", "hypercube", 4 * SEND + 3 * M * REDUCING),
        ("reduce", "rabenseifner", 4 * ALPHA + 3 / 2 * M * PER_BYTE + SEND + 7 / 4 * M * REDUCING),
        (
            "allgather",
            "hypercube",
            2 * ALPHA + 4.5 * M * PER_BYTE + SEND + ALPHA + 6 * M * PER_BYTE,
        ),
        (
            "reduce_scatter_block",
            "hypercube",
            2 * ALPHA + 4.5 * M * PER_BYTE + SEND + ALPHA + 6 * M * PER_BYTE + 10.5 * M * REDUCING,
        ),
        ("allgather", "bruck", 3 * ALPHA + 5 * M * PER_BYTE + 6 * M * COPYING),
        ("alltoall", "bruck", 3 * ALPHA + 7 * M * PER_BYTE + 2 * (6 + 7) * M * COPYING),
    ],
)
def test_two_ranks_act_as_one_where_their_number_is_no_power_of_two(
    operation: str, name: str, seconds: float
) -> None:
    assert collectives.time_s(operation, name, ranks(6), M) == pytest.approx(seconds)


@pytest.mark.parametrize("operation", collectives.FORMULAS)
@pytest.mark.parametrize("procs", [2, 5, 8])
def test_the_library_is_as_fast_as_the_fastest_textbook_algorithm(
    operation: str, procs: int
) -> None:
    for size in (1.0, 1e3, 1e6):

        def time_s(spec: str, size: float = size) -> float:
            return collectives.time_s(operation, spec, ranks(procs), size)

        assert time_s("vendor") <= min(map(time_s, collectives.FORMULAS[operation]))
        assert time_s("vendor:algorithm=magic") == time_s("vendor")
        assert time_s("vendor:environment=3") == time_s("vendor")


@pytest.mark.parametrize(
    ("operation", "seconds"),
    [
        ("bcast", lambda on, off: on("bcast", M) + off("bcast", M)),
        ("gather", lambda on, off: on("gather", M) + off("gather", 4 * M)),
        ("scatter", lambda on, off: on("scatter", M) + off("scatter", 4 * M)),
        ("reduce", lambda on, off: on("reduce", M) + off("reduce", M)),
        ("allreduce", lambda on, off: on("reduce", M) + off("allreduce", M) + on("bcast", M)),
        (
            "allgather",
            lambda on, off: on("gather", M) + off("allgather", 4 * M) + on("bcast", 12 * M),
        ),
    ],
)
def test_levels_are_the_librarys_own_on_nodes_and_between_leaders(
    operation: str, seconds: Callable[[Callable[..., float], Callable[..., float]], float]
) -> None:
    def by(group: Group, spec: str) -> Callable[[str, float], float]:
        return lambda operation, size: collectives.time_s(operation, spec, group, size)

    model = machine(on_node=pair(), off_node=pair(10))
    specs = {"twolevel": "vendor", "twolevel:node=shared": "shared"}
    found = predict.of_collective(model, operation, 12, 4, list(specs)).times(int(M))
    leaders = Group(costs(model, on_node=False), 3, REDUCING, COPYING)
    assert found == pytest.approx(
        {
            spec: seconds(by(ranks(4), on_node), by(leaders, "vendor"))
            for spec, on_node in specs.items()
        }
    )


def test_a_dimension_within_nodes_costs_what_messages_cost_there() -> None:
    model = machine(on_node=pair(), off_node=pair(10))
    times = predict.of_collective(model, "allgather", 12, 4).times(int(M))
    leaders = Group(costs(model, on_node=False), 3, REDUCING, COPYING)
    on_node = collectives.time_s("allgather", "vendor", ranks(4), M)
    off_node = collectives.time_s("allgather", "vendor", leaders, 4 * M)
    assert times["orthogonal:grid=4x3"] == pytest.approx(on_node + off_node)
    assert times["orthogonal:dims=2"] > times["orthogonal:grid=4x3"]  # that of 3x4
    assert "twolevel" in times


@pytest.mark.parametrize("operation", collectives.FORMULAS)
def test_one_rank_has_nothing_to_do(operation: str) -> None:
    for spec in collectives.methods(operation, 1, 1):
        assert collectives.time_s(operation, spec, ranks(1), M) == 0


def test_what_the_library_does_not_do_has_no_formula() -> None:
    for operation, spec in (
        ("bcast", "ring"),
        ("allreduce", "knomial:radix=4"),
        ("bcast", "knomial:radix=x"),
        ("bcast", "chain:segment=0"),
        ("bcast", "scatter_allgather:allgather=star"),
        ("bcast", "orthogonal:grid=3x3"),
        ("bcast", "orthogonal:dims=4"),
        ("bcast", "orthogonal:dims=1"),
        ("alltoall", "twolevel"),
        ("allgatherv", "twolevel:node=shared"),
        ("alltoallv", "bruck:radix=x"),
    ):
        assert collectives.formula(operation, spec, 8) is None


def test_methods_come_in_their_order_and_cross_where_they_are_equal() -> None:
    predictor = predict.of_exchange(machine(), everybody(64), 64)
    found = predictor.crossovers([1, 8, 64, 1024])
    assert found
    for each in found:
        below, at = predictor.times(each.size_bytes - 1), predictor.times(each.size_bytes)
        assert next(iter(at)) == each.after
        assert each.before in list(below)[:2]
    for times in (predictor.times(8), predictor.times(1024)):
        assert list(times.values()) == sorted(times.values(), key=float)


def test_missing_parameters_are_told() -> None:
    with pytest.raises(ModelError, match="no parameters for messages between nodes"):
        predict.of_exchange(machine(), everybody(4), 2)
    with pytest.raises(ModelError, match="no parameters for messages on a node"):
        predict.of_exchange(machine(off_node=pair()), everybody(4), 2)
    with pytest.raises(ModelError, match="hypercube has no formula for bcast"):
        predict.of_collective(machine(), "bcast", 4, 4, ["hypercube"])


def test_a_model_comes_back_from_json_as_it_was() -> None:
    rates = Rates(1.0, 2.0, -0.5, None, 16)
    model = machine(on_node=pair(ends=(64, 512)), off_node=pair(3, rates))
    assert decode(encode(model)) == model
    assert np.isfinite(predict.of_exchange(decode(encode(model)), everybody(4), 2).times(8)["nap"])
