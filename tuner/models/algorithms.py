"""The times of collective algorithms on P ranks, composed of messages alone (the postal model).

m is the block of a rank, for allgatherv and alltoallv the mean, or the vector of bcast, reduce and
allreduce; a barrier counts as one byte. There are lg = ceil(log2 P) steps. Hartmann, Kühnemann,
Rauber, Rünger, "Adaptive selection of communication methods"; Thakur, Rabenseifner, Gropp,
IJHPCA'05; others by function.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace

from tuner.models.costs import Costs

_RADIX, _SEGMENT_BYTES = 4, 65536  # where a spec has none
_CHAINS = 4  # that Open MPI's `chain` begins at the root
COUNT_BYTES = 4  # of a count in a message


def steps(procs: int) -> int:
    """Return ceil(log2 P)."""
    return (procs - 1).bit_length()


@dataclass(frozen=True)
class Group:
    """The ranks of a collective, with the costs of their messages and of bytes in memory.

    on_node: the costs within the nodes of `ppn` ranks each; absent where there is one node.
    """

    costs: Costs
    procs: int
    reduce_s_per_byte: float
    copy_s_per_byte: float = 0.0
    on_node: Costs | None = None
    ppn: int = 1

    @property
    def cube(self) -> int:
        """Return the largest power of two that is not above P."""
        return 1 << self.procs.bit_length() - 1

    def message_s(self, size_bytes: float) -> float:
        """Return alpha + beta m."""
        return self.costs.of(size_bytes).alone_s(size_bytes)

    def messages_s(self, sizes_bytes: Iterable[float]) -> float:
        """Return the time of messages one after the other."""
        return sum(map(self.message_s, sizes_bytes))

    def burst_s(self, messages: int, size_bytes: float, received: int = 1) -> float:
        """Return D of messages that a rank sends at once while it receives as many or one."""
        each = self.costs.of(size_bytes)
        ahead_s = each.alpha_s + max(each.beta_s - each.per_byte_s, 0) * size_bytes
        later_s = (messages - 1) * each.step_s + (received - 1) * each.receive_s
        return ahead_s + later_s + messages * size_bytes * each.per_byte_s

    def folded_s(self, *sizes_bytes: float) -> float:
        """Return the time of messages within pairs that act as one rank of a hypercube."""
        return 0.0 if self.procs == self.cube else self.messages_s(sizes_bytes)

    def part(self, procs: int, span: int) -> "Group":
        """Return so many of the ranks, which are among `span` ranks that follow each other."""
        local = self.on_node is not None and self.ppn % span == 0
        costs = self.on_node if local and self.on_node else self.costs
        return replace(self, costs=costs, procs=procs, on_node=None)


# ---- Trees ----


def bcast_binomial(group: Group, m: float) -> float:
    """Return the time of a broadcast of m bytes, whole at each of lg steps."""
    return steps(group.procs) * group.message_s(m)


def bcast_knomial(group: Group, m: float, radix: int = _RADIX) -> float:
    """Return the time of ceil(log_radix P) levels, each of radix - 1 messages at once.

    Wilkins et al., CLUSTER'23.
    """
    return _levels(group, radix) * group.burst_s(min(radix, group.procs) - 1, m)


def _levels(group: Group, radix: int) -> int:
    return next(n for n in range(1, group.procs + 1) if radix**n >= group.procs)


def bcast_linear(group: Group, m: float) -> float:
    """Return the time of a root that sends to all others at once."""
    return group.burst_s(group.procs - 1, m)


def bcast_binary(group: Group, m: float) -> float:
    """Return the time of levels of a binary tree, each of two messages at once."""
    return (group.procs.bit_length() - 1) * group.burst_s(min(2, group.procs - 1), m)


def bcast_split_binary(group: Group, m: float) -> float:
    """Return the time of halves along a binary tree, which pairs of ranks then exchange."""
    return bcast_binary(group, m / 2) + group.message_s(m / 2)


def star(group: Group, m: float) -> float:
    """Return the time of a root that exchanges m bytes with each other rank (gather, scatter)."""
    each = group.costs.of(m)
    overhead = each.receive_s + m * each.per_byte_s
    return (group.procs - 1) * max(each.step_s, overhead) + each.alpha_s


def tree_of_blocks(group: Group, m: float) -> float:
    """Return the time of binomial gather and scatter, and of an allgather that doubles blocks."""
    p = group.procs
    return group.messages_s(min(1 << i, p - (1 << i)) * m for i in range(steps(p)))


def blocks_knomial(group: Group, m: float, radix: int = _RADIX) -> float:
    """Return the time of gather and scatter along a tree: a level's blocks in radix - 1 messages.

    Wilkins et al., CLUSTER'23.
    """
    return _blocks_by_levels(group, m, radix, everyone=False)


def _blocks_by_levels(group: Group, m: float, radix: int, *, everyone: bool) -> float:
    """Return the time of levels of radix - 1 messages; a rank receives as many, or one."""
    total_s, below = 0.0, 1
    while below < group.procs:
        blocks = min((radix - 1) * below, group.procs - below)
        messages = -(-blocks // below)
        total_s += group.burst_s(messages, blocks * m / messages, messages if everyone else 1)
        below *= radix
    return total_s


def reduce_star(group: Group, m: float) -> float:
    """Return the time of a root that receives and combines the vectors of all others."""
    each = group.costs.of(m)
    per_byte = each.per_byte_s + group.reduce_s_per_byte
    return (group.procs - 1) * (each.receive_s + m * per_byte)


def reduce_binomial(group: Group, m: float) -> float:
    """Return the time of lg steps, each of which combines two vectors."""
    return steps(group.procs) * (group.message_s(m) + m * group.reduce_s_per_byte)


def reduce_knomial(group: Group, m: float, radix: int = _RADIX) -> float:
    """Return the time of levels that each combine radix vectors (Wilkins et al., CLUSTER'23)."""
    joined = _levels(group, radix) * (min(radix, group.procs) - 1)
    return bcast_knomial(group, m, radix) + joined * m * group.reduce_s_per_byte


def reduce_binary(group: Group, m: float) -> float:
    """Return the time of a reduction along a binary tree."""
    depth = group.procs.bit_length() - 1
    return bcast_binary(group, m) + depth * min(2, group.procs - 1) * m * group.reduce_s_per_byte


def allreduce_binomial(group: Group, m: float) -> float:
    """Return the time of a reduction and a broadcast, along binomial trees."""
    return reduce_binomial(group, m) + bcast_binomial(group, m)


def allreduce_linear(group: Group, m: float) -> float:
    """Return the time of a reduction and a broadcast by one root."""
    return reduce_star(group, m) + bcast_linear(group, m)


def barrier_binomial(group: Group, m: float) -> float:
    """Return the time of messages up a binomial tree, and down again."""
    return 2 * bcast_binomial(group, m)


def barrier_knomial(group: Group, m: float, radix: int = _RADIX) -> float:
    """Return the time of messages up a tree, radix - 1 to a rank at once, and down again."""
    return 2 * bcast_knomial(group, m, radix)


def barrier_linear(group: Group, m: float) -> float:
    """Return the time of messages to one root and from there."""
    return star(group, m) + bcast_linear(group, m)


def allgather_linear(group: Group, m: float) -> float:
    """Return the time of a gather and a broadcast by one root."""
    return star(group, m) + bcast_linear(group, group.procs * m)


# ---- Chains ----


def bcast_chain(group: Group, m: float, segment_bytes: int = _SEGMENT_BYTES) -> float:
    """Return the time of P - 2 + m / segment steps (Worringen, LCN'03)."""
    segments = max(math.ceil(m / segment_bytes), 1)
    return (group.procs - 2 + segments) * group.message_s(min(m, segment_bytes))


def bcast_chains(group: Group, m: float) -> float:
    """Return the time of chains of whole vectors that the root begins."""
    chains = min(_CHAINS, group.procs - 1)
    length = -(-(group.procs - 1) // chains)
    return group.burst_s(chains, m) + (length - 1) * group.message_s(m)


def reduce_chains(group: Group, m: float) -> float:
    """Return the time of chains backwards, whose results the root combines."""
    chains = min(_CHAINS, group.procs - 1)
    joined = -(-(group.procs - 1) // chains) - 1 + chains
    return bcast_chains(group, m) + joined * m * group.reduce_s_per_byte


# ---- Hypercubes ----


def _halves(group: Group, m: float) -> float:
    """Return the time of log2 steps with m / 2, m / 4, … bytes."""
    return group.messages_s(m / (1 << i) for i in range(1, group.cube.bit_length()))


def _doubled(group: Group, m: float) -> float:
    """Return the time of log2 steps with blocks that double until a position has all."""
    own = group.procs / group.cube * m
    return group.messages_s((1 << i) * own for i in range(group.cube.bit_length() - 1))


def bcast_scatter_allgather(group: Group, m: float) -> float:
    """Return the time of pieces scattered along a tree, and gathered along a hypercube.

    Chan, Heimlich, Purkayastha, van de Geijn, CLUSTER'04.
    """
    return 2 * _halves(group, m) + group.folded_s(m)


def reduce_rabenseifner(group: Group, m: float) -> float:
    """Return the time of a reduce-scatter by halves, whose pieces the root gathers.

    Rabenseifner, ICCS'04.
    """
    reduced = m * (1 - 1 / group.cube) + (m if group.procs != group.cube else 0)
    return 2 * _halves(group, m) + group.folded_s(m) + reduced * group.reduce_s_per_byte


def allreduce_rabenseifner(group: Group, m: float) -> float:
    """Return the time of the reduction, whose pieces all ranks gather."""
    return reduce_rabenseifner(group, m) + group.folded_s(m)


def allreduce_hypercube(group: Group, m: float) -> float:
    """Return the time of an exchange of whole vectors in each dimension."""
    return (
        (group.cube.bit_length() - 1) * group.message_s(m)
        + group.folded_s(m, m)
        + steps(group.procs) * m * group.reduce_s_per_byte
    )


def barrier_hypercube(group: Group, m: float) -> float:
    """Return the time of an exchange in each dimension."""
    return (group.cube.bit_length() - 1) * group.message_s(m) + group.folded_s(m, m)


def allgather_hypercube(group: Group, m: float) -> float:
    """Return the time of recursive doubling."""
    return _doubled(group, m) + group.folded_s(m, group.procs * m)


def reduce_scatter_hypercube(group: Group, m: float) -> float:
    """Return the time of recursive halving: an allgather backwards, which reduces."""
    p = group.procs
    reduced = (p - p / group.cube) * m + (p * m if p != group.cube else 0)
    return allgather_hypercube(group, m) + reduced * group.reduce_s_per_byte


def reduce_scatter_doubling(group: Group, m: float) -> float:
    """Return the time of recursive doubling: what a rank does not have yet, of all blocks."""
    blocks = [group.procs - min(1 << i, group.procs) for i in range(steps(group.procs))]
    return (
        group.messages_s(count * m for count in blocks) + sum(blocks) * m * group.reduce_s_per_byte
    )


# ---- Hypercubes with more than two ranks in a row ----


def _multiplied(group: Group, radix: int) -> tuple[int, list[tuple[int, int]]]:
    """Return how many positions there are, and by step their stride and others to exchange with."""
    power = 1
    while power <= group.procs // radix:
        power *= radix
    size = group.procs // power * power
    found, stride = [], 1
    while stride < size:
        found.append((stride, min(radix, size // stride) - 1))
        stride *= radix
    return size, found


def allreduce_multiplying(group: Group, m: float, radix: int = _RADIX) -> float:
    """Return the time of radix - 1 exchanges of whole vectors at once, in each step.

    Wilkins et al., CLUSTER'23.
    """
    size, exchanges = _multiplied(group, radix)
    reduce_s = m * group.reduce_s_per_byte
    folded_s = 2 * group.message_s(m) + reduce_s if size != group.procs else 0.0
    return folded_s + sum(
        group.burst_s(others, m, others) + others * reduce_s for _, others in exchanges
    )


def allgather_multiplying(group: Group, m: float, radix: int = _RADIX) -> float:
    """Return the time of radix - 1 exchanges of the blocks so far at once, in each step."""
    size, exchanges = _multiplied(group, radix)
    folded_s = group.messages_s((m, group.procs * m)) if size != group.procs else 0.0
    return folded_s + sum(
        group.burst_s(others, stride * group.procs / size * m, others)
        for stride, others in exchanges
    )


# ---- Rings, pairs, Bruck ----


def ring(group: Group, m: float) -> float:
    """Return the time of P - 1 steps of a ring, of pairs, or of a chain of whole vectors.

    Open MPI segments the vectors of its pipeline only if it is told to.
    """
    return (group.procs - 1) * group.message_s(m)


def ring_reduce_scatter(group: Group, m: float) -> float:
    """Return the time of P - 1 such steps, each of which combines two vectors."""
    return ring(group, m) + (group.procs - 1) * m * group.reduce_s_per_byte


def barrier_rings(group: Group, m: float) -> float:
    """Return the time of a message that goes round the ring twice."""
    return 2 * group.procs * group.message_s(m)


def ring_allreduce(group: Group, m: float) -> float:
    """Return the time of a reduce-scatter and an allgather of pieces around a ring."""
    piece = m / group.procs
    return ring_reduce_scatter(group, piece) + ring(group, piece)


def bcast_scatter_ring(group: Group, m: float) -> float:
    """Return the time of pieces scattered along a tree and gathered around a ring."""
    piece = m / group.procs
    return tree_of_blocks(group, piece) + ring(group, piece)


def allgather_neighbor(group: Group, m: float) -> float:
    """Return the time of an exchange of own blocks, then of two blocks in each step."""
    return group.message_s(m) + (group.procs - 1) // 2 * group.message_s(2 * m)


def allgather_bruck(group: Group, m: float) -> float:
    """Return the time of lg steps; blocks are packed in the order in which they are met.

    Bruck et al., 1997.
    """
    return tree_of_blocks(group, m) + group.procs * m * group.copy_s_per_byte


def alltoall_bruck(group: Group, m: float) -> float:
    """Return the time of lg steps, before and after each of which blocks are copied.

    Bruck et al., 1997; once more each way they are put in order.
    """
    p = group.procs
    blocks = [with_bit(i, p) for i in range(steps(p))]
    copied = 2 * (p + sum(blocks)) * m
    return group.messages_s(count * m for count in blocks) + copied * group.copy_s_per_byte


def allgather_bruck_by(group: Group, m: float, radix: int) -> float:
    """Return the time of a step for each digit of P - 1, of radix - 1 messages at once."""
    copied = group.procs * m
    return _blocks_by_levels(group, m, radix, everyone=True) + copied * group.copy_s_per_byte


def barrier_bruck_by(group: Group, m: float, radix: int) -> float:
    """Return the time of a turn for each digit of P - 1, of radix - 1 messages at once."""
    value, total_s = 1, 0.0
    while value < group.procs:
        messages = min(radix - 1, (group.procs - 1) // value)
        total_s += group.burst_s(messages, m, messages)
        value *= radix
    return total_s


def alltoall_bruck_by(group: Group, m: float, radix: int) -> float:
    """Return the time of turns that send on the blocks whose distance has not the digit 0."""
    turns_s, blocks = _turns(group, m, radix, 1)
    return turns_s + 2 * (group.procs + blocks) * m * group.copy_s_per_byte


def _turns(level: Group, block_bytes: float, radix: int, each: int) -> tuple[float, int]:
    """Return the time of turns along ranks with so many blocks for every one, and all blocks."""
    value, total_s, sent = 1, 0.0, 0
    while value < level.procs:
        whole, rest = divmod(level.procs, value * radix)
        blocks = (level.procs - whole * value - min(rest, value)) * each
        messages = min(radix - 1, (level.procs - 1) // value)
        total_s += level.burst_s(messages, blocks * block_bytes / messages, messages)
        sent += blocks
        value *= radix
    return total_s, sent


def uneven_bruck(group: Group, m: float, radix: int = 2, global_radix: int = 0) -> float:
    """Return the time of turns of radix - 1 messages that forward blocks with their sizes.

    Fan et al., HPDC'25; with a global radix on nodes first, then between their ranks.
    """
    p = group.procs
    levels = [(group, radix)]
    if global_radix:
        between = replace(group, procs=p // group.ppn, on_node=None)
        levels = [(group.part(group.ppn, group.ppn), radix), (between, global_radix)]
    copied, total_s = p, 0.0
    for level, base in levels:
        turns_s, blocks = _turns(level, m + COUNT_BYTES, base, p // level.procs)
        total_s += turns_s
        copied += blocks
    return total_s + 2 * copied * m * group.copy_s_per_byte


def with_bit(place: int, below: int) -> int:
    """Return how many of 0 … below - 1 have the bit, as sent in that round of Bruck's algorithm."""
    whole, rest = divmod(below, 2 << place)
    return (whole << place) + max(rest - (1 << place), 0)


def alltoall_linear(group: Group, m: float) -> float:
    """Return the time of all messages at once."""
    return group.burst_s(group.procs - 1, m, group.procs - 1)


# ---- Negabinary butterflies ----


def allgather_bine(group: Group, m: float) -> float:
    """Return the time of recursive doubling, and of putting blocks in order.

    De Sensi et al., SC'25.
    """
    return allgather_hypercube(group, m) + group.procs * m * group.copy_s_per_byte


def reduce_scatter_bine(group: Group, m: float) -> float:
    """Return the time of putting blocks in order, and of recursive halving."""
    return reduce_scatter_hypercube(group, m) + group.procs * m * group.copy_s_per_byte
