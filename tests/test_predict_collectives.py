"""Predictions of collectives: the formulas on machines with round numbers."""

from collections.abc import Callable

import pytest

from tests.round_machine import ALPHA, COPYING, GAP, OVERHEAD, PER_BYTE, REDUCING, machine, pair
from tuner.models import collectives, predict
from tuner.models.algorithms import Group
from tuner.models.costs import costs
from tuner.models.parameter import ModelError

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
    return Group(costs(machine(), on_node=True), procs, REDUCING, COPYING, ppn=procs)


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


@pytest.mark.parametrize(
    ("operation", "parts"),
    [
        ("bcast", [("scatter", 2, M / 2), ("bcast", 0, M / 2), ("allgather", 4, M / 4)]),
        (
            "allreduce",
            [("reduce_scatter_block", 4, M / 4), ("allreduce", 0, M / 2), ("allgather", 4, M / 4)],
        ),
        ("allgather", [("gather", 2, M), ("allgather", 0, 2 * M), ("allgather", 4, 3 * M)]),
        ("alltoall", [("gather", 2, 12 * M), ("alltoall", 0, 8 * M), ("alltoall", 4, 6 * M)]),
    ],
)
def test_leaders_have_shares(operation: str, parts: list[tuple[str, int, float]]) -> None:
    """On three nodes of four ranks; 0 stands for the peers of a leader."""
    copied = {"allgather": 12, "alltoall": 2 * (1 + 2) * 12}.get(operation, 0) * M * COPYING
    model = machine(on_node=pair(), off_node=pair(10))
    peers = Group(costs(model, on_node=False), 3, REDUCING, COPYING)
    expected = sum(
        collectives.time_s(part, "vendor", ranks(procs) if procs else peers, size)
        for part, procs, size in parts
    )
    times = predict.of_collective(model, operation, 12, 4).times(int(M))
    assert times["twolevel:leaders=2"] == pytest.approx(expected + copied)
    first = {"bcast": [("bcast", 4, M)], "allreduce": [("reduce", 4, M / 2)] * 2}
    by_memory = [*first.get(operation, parts[:1]), *parts[1:]]
    expected = sum(
        collectives.time_s(
            part, "shared" if procs else "vendor", ranks(procs) if procs else peers, size
        )
        for part, procs, size in by_memory
    )
    assert times["twolevel:node=shared,leaders=2"] == pytest.approx(expected + copied)
    assert "twolevel:leaders=4" in times
    others = predict.of_collective(model, operation, 10, 4).times(int(M))
    assert not any("leaders" in spec for spec in others)


def test_ranks_of_a_node_share_the_steps_of_a_bruck_of_two_levels() -> None:
    """Seven nodes of two ranks: what a node knows doubles, and the last step has three nodes."""
    model = machine(on_node=pair(), off_node=pair(10))
    far = Group(costs(model, on_node=False), 7, REDUCING, COPYING)
    across = sum(far.message_s(nodes * 2 * M) for nodes in (1, 2, 3))
    on_node = sum(
        collectives.time_s("allgather", "vendor", ranks(2), nodes * M) for nodes in (1, 1, 2, 3)
    )
    found = predict.of_collective(model, "allgather", 14, 2).times(int(M))["bruck:levels=2"]
    assert found == pytest.approx(across + on_node + 14 * M * COPYING)


@pytest.mark.parametrize(
    ("operation", "spec", "procs", "ppn"),
    [
        ("allgather", "bruck:levels=2", 4, 1),  # a radix of one would never reach all nodes
        ("allgather", "bruck:levels=2", 7, 2),
        ("bcast", "twolevel:leaders=4", 4, 2),
        ("bcast", "twolevel:leaders=2", 7, 2),
        ("alltoallv", "bruck:radix=2,global=2", 7, 2),
        ("alltoallv", "bruck:radix=2,global=2", 4, 4),
        ("bcast", "twolevel", 4, 4),
        ("bcast", "twolevel:node=shared", 4, 1),
        ("bcast", "shared", 4, 2),
    ],
)
def test_methods_have_no_formula_on_layouts_where_they_cannot_run(
    operation: str, spec: str, procs: int, ppn: int
) -> None:
    model = machine(on_node=pair(), off_node=pair(10))
    with pytest.raises(ModelError, match=spec):
        predict.of_collective(model, operation, procs, ppn, [spec]).times(int(M))


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
        ("reduce", "twolevel:leaders=2"),
        ("alltoall", "twolevel:leaders=x"),
        ("alltoall", "bruck:levels=2"),
        ("allgather", "bruck:levels=3"),
        ("allgatherv", "twolevel:node=shared"),
        ("alltoallv", "bruck:radix=x"),
        ("alltoallv", "bruck:radix=1"),
        ("alltoallv", "bruck:radix=1025"),
        ("alltoallv", "bruck:global=1"),
        ("alltoallv", "bruck:radix=2global=2"),
        ("alltoallv", "orthogonal:dims=2"),
        ("alltoall", "bruck:radix=65"),
        ("bcast", "knomial:radix=2"),
        ("allreduce", "multiplying:radix=65"),
        ("bcast", "chain:segment=15"),
        ("bcast", "bine:grid=2x4"),
        ("allreduce", "bine:grid=3x4"),
        ("bcast", "orthogonal:grid=1x8"),
        ("barrier", "vendor:algorithm=two_proc"),
        ("bcast", "vendor:algorithm=linear,environment=linear"),
        ("bcast", "vendor:algorithm="),
        ("bcast", "twolevel:"),
        ("bcast", "twolevel:leaders=2,leaders=4"),
        ("bcast", "twolevel:node=disk"),
        ("allgatherv", "twolevel:node=mpi,leaders=2"),
        ("alltoallv", "bruck:radix=2,radix=8"),
    ):
        assert collectives.formula(operation, spec, 8, 4) is None
    assert collectives.formula("alltoall", "bine", 12, 4) is None


@pytest.mark.parametrize("by_mpi", ["twolevel:node=mpi", "twolevel:node=mpi,leaders=2"])
def test_mpi_within_nodes_is_what_twolevel_does_by_itself(by_mpi: str) -> None:
    model = machine(on_node=pair(), off_node=pair(10))
    default = by_mpi.replace("node=mpi", "").replace(":,", ":").rstrip(":")
    times = predict.of_collective(model, "bcast", 8, 4, [by_mpi, default]).times(int(M))
    assert times[by_mpi] == times[default]
