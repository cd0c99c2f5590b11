"""Predictions: the formulas on machines with round numbers, and what the stages make of them.

Those of discoveries and collectives have files of their own.
"""

import math
import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from tests.halos import halo_of
from tests.round_machine import (
    ALPHA,
    COPYING,
    GAP,
    LAYOUT,
    OVERHEAD,
    PER_BYTE,
    UNKNOWN,
    everybody,
    exactly,
    machine,
    pair,
    pair_with,
)
from tests.test_structure_nap import example
from tuner.commands.printing.console import console
from tuner.commands.printing.models import show_prediction
from tuner.export.model_lines import model_lines
from tuner.inputs.structure.methods import method
from tuner.inputs.structure.patterns import pattern
from tuner.inputs.structure.traffic import MessageStage
from tuner.models import closed_forms, predict, predicting
from tuner.models.costs import costs
from tuner.models.delivery import RankNetwork
from tuner.models.loggp import LogGPProtocol as LogGPProtocol
from tuner.models.maxrate import Rates
from tuner.models.parameter import NOT_SIGNIFICANT, ModelError, NotIdentified
from tuner.models.system import Links, PairModel, decode, encode


def delivery_s(network: RankNetwork, stage: MessageStage, item_bytes: float) -> float:
    return float(network.ended_s(stage, item_bytes, np.zeros(network.procs)).max())


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
    loaded = {"loaded_gap": exactly(5), "loaded_gap_per_byte": exactly(0.5)}
    model = machine(on_node=pair_with(**loaded))
    (time_s,) = predict.of_exchange(model, ring, 4, ["direct"]).times(16).values()
    assert time_s == ALPHA + 2 * 5 + 0.5 * 3 * 16
    crossing = loaded | {"loaded_alpha": exactly(9), "loaded_beta": exactly(0.75)}
    model = machine(on_node=pair_with(**crossing))
    (time_s,) = predict.of_exchange(model, ring, 4, ["direct"]).times(16).values()
    assert time_s == 9 + 0.25 * 16 + 2 * 5 + 0.5 * 3 * 16
    star = predict.of_collective(model, "gather", 4, 4, ["star"]).times(16)
    assert star == predict.of_collective(machine(), "gather", 4, 4, ["star"]).times(16)


def test_a_message_alone_takes_half_a_round_trip() -> None:
    """Its bytes may take longer than those of a flood, in which messages overlap."""
    model = machine(on_node=pair_with(beta_s=0.5))
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
    (stage,) = method("direct", 4).stages(halo, 4)
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


@pytest.mark.parametrize("ends", [(), (4,), (20,), (112,)])
@pytest.mark.parametrize("sizes", [(16, 16), (4, 4, 4, 4), (8, 8, 4)])
def test_dense_stfw_and_direct_cross_where_the_formula_says(
    sizes: tuple[int, ...], ends: tuple[int, ...]
) -> None:
    """Messages of the two may have different protocols, and change them at the switch point."""
    given = costs(machine(on_node=pair(ends=ends)), on_node=True)

    def lost_s(size: float) -> float:
        direct = (math.prod(sizes) - 1) * given.of(size).alone_s(size)
        return closed_forms.stfw_dense_s(sizes, size, copied_s) - direct

    def copied_s(size: float) -> float:
        return given.of(size).alone_s(size) + COPYING * size

    at = closed_forms.dense_switch_point_bytes(sizes, given, COPYING)
    assert at is not None
    assert all(lost_s(at * share) < 0 for share in np.linspace(0.001, 0.999, 100))
    assert lost_s(at * 1.001) > 0


def test_costs_need_no_memory_of_each_rank() -> None:
    """Raw files of overlap may name any number of ranks."""
    network = predict.network_of(machine(on_node=pair(), off_node=pair(10)), 1 << 50, 2)
    assert network.slowest.of(8).latency_s > ALPHA


def test_nap_is_the_sum_of_its_stages() -> None:
    model = machine(on_node=pair(), off_node=pair(10))
    network = predict.network_of(model, 6, 2)
    planned = method("nap", 6).stages(example(), 2)
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
    """On 16 ranks of a node with postal messages: `direct` loses to 4 x 4 below a point."""
    (two, four) = predict.closed_forms_of(machine(), everybody(16), 16)[::2]
    assert (two.method, four.method) == ("stfw:dims=2", "stfw:radix=2")
    messages, submessages = 6, 6 * 4
    each = ALPHA * messages + 100 * submessages * (PER_BYTE + COPYING)
    assert two.time_s(100) == pytest.approx(each)
    at = two.beats_direct_below_bytes
    assert at == pytest.approx(ALPHA * (15 - 6) / ((PER_BYTE + COPYING) * 24 - PER_BYTE * 15))
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
        planned = list(counted.stages(found, 4))
        assert len(planned) == statistics.stages
        assert sum(int(stage.items.sum()) for stage in planned) == statistics.hop_bytes


def test_large_messages_of_shared_are_sent() -> None:
    both = halo_of({(0, 1): {0}, (1, 0): {0}}, 2)
    (small,) = predict.of_discovery(machine(), both, 2, ["shared"]).times(8192).values()
    (large,) = predict.of_discovery(machine(), both, 2, ["shared"]).times(8193).values()
    assert small == ALPHA + 2 * 8192 * COPYING
    assert large == ALPHA + ALPHA + 8193 * PER_BYTE
    exchange = predict.of_exchange(machine(), both, 2, ["shared"])
    assert exchange.times(8192) == {"shared": ALPHA + 2 * 8192 * COPYING}
    assert exchange.best(8193) is None


def test_shared_sends_what_leaves_a_node() -> None:
    """Rank 0 packs what it sends to another node, as its items are scattered."""
    model = machine(on_node=pair(), off_node=pair(10))
    halo = halo_of({(0, 1): {0, 2}, (0, 2): {1, 3}}, 4)
    by_memory = predict.of_exchange(model, halo, 2, ["shared"])
    off_node = 10 * (ALPHA + 2 * 8 * PER_BYTE)
    seen_copied_and_packed = ALPHA + 16 * COPYING + 16 * COPYING
    assert by_memory.times(8) == pytest.approx({"shared": off_node + seen_copied_and_packed})
    none = NotIdentified("no message on a node is of 8192 bytes or less")
    assert by_memory.times(4097) == {"shared": none}


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
    gather, cross, _ = method("nap", 4).stages(halo, 2)
    assert not len(gather.sender)
    sent = delivery_s(predict.network_of(model, 4, 2), cross, 5000)  # now both from rank 0
    (time_s,) = by_memory.times(5000).values()
    assert time_s == pytest.approx(sent + ALPHA + 5000 * COPYING)
    assert by_memory.best(8193) is None


@pytest.mark.parametrize(("item_bytes", "packed_bytes"), [(8, 0), (4096, 0), (4097, 2 * 4097)])
def test_nap_by_memory_packs_only_large_messages(item_bytes: int, packed_bytes: int) -> None:
    """What rank 0 sends to the other node is scattered, or not."""
    model = machine(on_node=pair(), off_node=pair(10))
    scattered, contiguous = (
        predict.of_exchange(
            model, halo_of({(0, 1): {0}, (0, 2): items}, 4), 2, ["nap:node=shared"]
        ).times(item_bytes)["nap:node=shared"]
        for items in ({1, 3}, {1, 2})
    )
    assert scattered - contiguous == pytest.approx(packed_bytes * COPYING)


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


def test_what_simgrid_cannot_run_is_not_predicted_for_a_simulated_machine() -> None:
    real = machine(on_node=pair(), off_node=pair(10))
    simulated = replace(real, links=Links("torus", (4,)))
    refused = r"neighbor|shared|lent|(nap|twolevel):.*node=shared.*"
    of: dict[str, Callable[..., predict.Predictor]] = {
        "exchange": lambda model, *at: predict.of_exchange(model, everybody(8), *at),
        "discovery": lambda model, *at: predict.of_discovery(model, everybody(8), *at),
        "bcast": lambda model, *at: predict.of_collective(model, "bcast", 8, *at),
    }
    for predictor in of.values():
        for ppn in (4, 8):
            every, able = (predictor(each, ppn).times(8).keys() for each in (real, simulated))
            left_out = every - able
            assert left_out
            assert {spec for spec in every if re.fullmatch(refused, spec)} == left_out
            with pytest.raises(ModelError, match="cannot run on the simulated machine a-system"):
                predictor(simulated, ppn, [*able, *left_out])


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


def test_of_methods_that_cannot_be_predicted_none_is_the_fastest(
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


def test_missing_parameters_are_reported() -> None:
    with pytest.raises(ModelError, match="no parameters for messages between nodes"):
        predict.of_exchange(machine(), everybody(4), 2)
    with pytest.raises(ModelError, match="no parameters for messages on a node"):
        predict.of_exchange(machine(off_node=pair()), everybody(4), 2)
    with pytest.raises(ModelError, match="hypercube has no formula for bcast"):
        predict.of_collective(machine(), "bcast", 4, 4, ["hypercube"])


def test_a_model_comes_back_from_json_as_it_was() -> None:
    rates = Rates(1.0, 2.0, -0.5, None, 4)
    model = machine(on_node=pair(ends=(64, 512)), off_node=pair(3, rates))
    assert decode(encode(model)) == model
    assert np.isfinite(predict.of_exchange(decode(encode(model)), everybody(4), 2).times(8)["nap"])


def test_models_stored_with_the_former_reason_are_read() -> None:
    model = machine(on_node=replace(pair(), synchronous=NotIdentified(NOT_SIGNIFICANT)))
    former = encode(model).replace(NOT_SIGNIFICANT, "not told from zero by these data")
    assert decode(former) == model


@pytest.mark.parametrize(
    ("operation", "ppn", "specs"),
    [
        ("exchange", 8, "direct nap shared lent"),
        ("exchange", 4, "direct nap nap:node=shared shared"),
        ("exchange", 1, "direct nap"),
        ("discovery", 8, "pex nap shared"),
        ("discovery", 4, "pex nap nap:find=put nap:find=dense,node=shared"),
        ("discovery", 1, "pex nap nap:find=put"),
    ],
)
def test_methods_that_cannot_run_on_a_layout_are_not_predicted(
    operation: str, ppn: int, specs: str
) -> None:
    known = {
        "exchange": "direct nap nap:node=shared shared lent stfw:grid=9x9",
        "discovery": "pex nap nap:find=put nap:find=dense,node=shared shared stfw:grid=9x9",
    }
    case = predicting.PatternCase(operation, "random:degree=2", 8, ppn)
    found = predicting.predictable(case, known[operation].split())
    assert sorted(found) == sorted(specs.split())
