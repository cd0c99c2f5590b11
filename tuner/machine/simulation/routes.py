"""The links that messages between nodes take, as SimGrid routes on each kind of topology.

A route function yields for each hop which of the pairs of nodes take a link, and the link's number.
"""

import math
from collections.abc import Callable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from tuner.stats import Floats, Integers

NodeNumbers = Integers
Hop = tuple[NodeNumbers, NodeNumbers]


def torus(sizes: Sequence[int], source: NodeNumbers, target: NodeNumbers) -> Iterator[Hop]:
    """Yield hops by dimension, the shorter way round; of two equal ways, the one without a wrap."""
    here, stride = source.copy(), 1
    for dimension, size in enumerate(sizes):
        end = target // stride % size
        while len(moving := np.flatnonzero(here // stride % size != end)):
            at, to = here[moving] // stride % size, end[moving]
            half = size // 2
            up = ((to > at) & (to <= at + half)) | ((at > half) & ((at + half) % size >= to))
            there = here[moving] + ((at + np.where(up, 1, -1)) % size - at) * stride
            lower = np.where(up, here[moving], there)
            yield moving, 2 * (lower * len(sizes) + dimension) + up
            here[moving] = there
        stride *= size


def fat_tree(sizes: Sequence[int], source: NodeNumbers, target: NodeNumbers) -> Iterator[Hop]:
    """Yield hops up by the target's digits to the first switch above both, and down from it."""
    nodes = math.prod(sizes)
    for level in range(len(sizes)):
        below = math.prod(sizes[:level])
        moving = np.flatnonzero(source // below != target // below)
        leads_up = source[moving] // below * below + target[moving] % below
        yield moving, 2 * (level * nodes + leads_up)
        yield moving, 2 * (level * nodes + target[moving]) + 1


def dragonfly(sizes: Sequence[int], source: NodeNumbers, target: NodeNumbers) -> Iterator[Hop]:
    """Yield hops to the blade that leads to the other group, and from that group's entry."""
    groups, chassis, blades, of_blade = sizes
    here, end = source // of_blade, target // of_blade
    of_group = chassis * blades
    group, to_group, to_blade = here // of_group, end // of_group, end % blades
    nodes, routers, most = math.prod(sizes), groups * of_group, max(groups, chassis, blades)
    everyone = np.flatnonzero(source != target)
    yield everyone, source[everyone]
    yield everyone, nodes + target[everyone]

    def hop(kind: int, chosen: NDArray[np.bool_], there: NodeNumbers, place: NodeNumbers) -> Hop:
        """Return a hop to a place of the link's kind: 0 for blades, 1 for chassis, 2 for groups."""
        moving = np.flatnonzero(chosen)
        link = 2 * nodes + (kind * routers + here[moving]) * most + place[moving]
        here[moving] = there[moving]
        return moving, link

    leaves, first = group != to_group, group * of_group + to_group
    yield hop(0, leaves & (here % blades != to_group), here - here % blades + to_group, to_group)
    yield hop(1, leaves & (here != first), first, np.zeros_like(group))
    yield hop(2, leaves, to_group * of_group + group, to_group)
    # SimGrid goes on in the first chassis, whichever chassis the blade is in.
    yield hop(0, here % blades != to_blade, to_group * of_group + to_blade, to_blade)
    yield hop(1, here != end, end, end // blades % chassis)


ROUTES: dict[str, Callable[[Sequence[int], NodeNumbers, NodeNumbers], Iterator[Hop]]] = {
    "torus": torus,
    "dragonfly": dragonfly,
    "fattree": fat_tree,
}


def carried(
    kind: str,
    sizes: Sequence[int],
    source: NodeNumbers,
    target: NodeNumbers,
    turn: NodeNumbers,
    taking: Floats,
) -> Floats:
    """Return the time until which a link on its way holds up each message between two nodes.

    taking: the time that each message takes alone on a link. Messages of earlier turns go first;
    those of one turn share the link evenly, so that one ends when each other has had as much time
    as it, or all that it needs.
    """
    hops = list(ROUTES[kind](sizes, source, target))
    message = np.concatenate([moving for moving, _ in hops])
    link = np.concatenate([links for _, links in hops])
    order = np.lexsort((taking[message], turn[message], link))
    message, link = message[order], link[order]
    takes, place = taking[message], np.arange(len(order))
    sums = np.cumsum(takes)
    new_link = np.diff(link, prepend=-1) != 0
    new_turn = new_link | (np.diff(turn[message], prepend=-1) != 0)
    before = np.maximum.accumulate(np.where(new_link, sums - takes, 0))
    end_of_turn = np.append(np.flatnonzero(new_turn), len(order))[np.cumsum(new_turn)]
    most = np.zeros(len(source))
    np.maximum.at(most, message, sums - before + (end_of_turn - place - 1) * takes)
    return most
