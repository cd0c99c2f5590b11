"""Random problems of a table's operations, which were not used to make it."""

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise

import numpy as np

from tuner.domain.operations import COLLECTIVES, NO_DATA, NO_DATA_BYTES
from tuner.domain.tables import Table
from tuner.errors import SwitchpointError

SMALLEST_BYTES, LARGEST_BYTES = 8, 131072


class RegretError(SwitchpointError):
    """Error raised when the regret cannot be measured; the message says why."""


@dataclass(frozen=True, slots=True)
class RegretProblem:
    """A problem to measure anew. `seen` says whether such processes were tuned.

    `number` distinguishes it from others that were drawn alike, as those of barriers are.
    """

    operation: str
    pattern: str
    nodes: int
    ppn: int
    sizes: tuple[int, ...]
    seen: bool
    number: int = 0

    @property
    def procs(self) -> int:
        """Return the processes on all nodes."""
        return self.nodes * self.ppn


def problems(
    table: Table, count: int, seed: int, procs: Sequence[int] = (), patterns: Sequence[str] = ()
) -> Iterator[RegretProblem]:
    """Yield random problems of a table's operations, on layouts that were tuned or lie between.

    Those between have as many processes per node as two tuned ones, or as many nodes. With `procs`
    only layouts of so many processes count, and with `patterns` exchanges have these; both in turn,
    so that in time each layout has each pattern. Raise RegretError where no layout has one of the
    numbers of processes.
    """
    random = np.random.default_rng(seed)
    layouts: dict[str, set[tuple[int, int]]] = defaultdict(set)
    for point in table.points:
        layout = point.case.layout
        if layout.procs > 1:  # a process alone has nothing to choose
            layouts[point.case.operation].add((layout.nodes, layout.ppn))
    asked = {name: _asked(_neighbours(tuned), procs) for name, tuned in sorted(layouts.items())}
    if not asked:
        raise RegretError("no layout of several processes was tuned")
    had = {nodes * ppn for places in asked.values() for nodes, ppn in places}
    if missing := [number for number in procs if number not in had]:
        raise RegretError(
            f"no tuned layout has {' or '.join(map(str, missing))} processes, nor any between two"
        )
    operations = [name for name, places in asked.items() if places or not procs]
    for number in range(count):
        rounds, place = divmod(number, len(operations))
        operation, turn = operations[place], rounds + place  # few problems have all turns too
        if procs:
            here = asked[operation]
            nodes, ppn = here[turn % len(here)]
            # Once their turns would repeat together, patterns go one ahead of layouts.
            turn += rounds // math.lcm(len(here), len(patterns) or 1)
        else:
            pairs = _neighbours(layouts[operation])
            first, last = pairs[int(random.integers(len(pairs)))]
            nodes, ppn = (
                round(math.exp(random.uniform(math.log(low), math.log(high))))
                for low, high in zip(first, last, strict=True)
            )
        logs = random.uniform(math.log(SMALLEST_BYTES), math.log(LARGEST_BYTES), 3)
        sizes = sorted({max(8, round(math.exp(log) / 8) * 8) for log in logs})
        if operation in NO_DATA:
            sizes = [NO_DATA_BYTES]
        pattern = _pattern(operation, nodes * ppn, random)
        if patterns and operation not in COLLECTIVES:
            pattern = patterns[turn % len(patterns)]
        seen = (nodes, ppn) in layouts[operation]
        yield RegretProblem(operation, pattern, nodes, ppn, tuple(sizes), seen, number)


def _asked(
    pairs: Sequence[tuple[tuple[int, int], tuple[int, int]]], procs: Sequence[int]
) -> list[tuple[int, int]]:
    """Return the layouts of or between pairs that have one of the numbers of processes."""
    found = {
        (nodes, number // nodes)
        for (low, high) in pairs
        for number in procs
        for nodes in range(low[0], min(high[0], number) + 1)
        if number % nodes == 0 and low[1] <= number // nodes <= high[1]
    }
    return sorted(found, key=lambda layout: (layout[0] * layout[1], layout))


def _neighbours(layouts: set[tuple[int, int]]) -> list[tuple[tuple[int, int], tuple[int, int]]]:
    """Return pairs next to each other in nodes or processes per node.

    A layout without a neighbour is paired with itself.
    """
    by_nodes, by_ppn = sorted(layouts), sorted(layouts, key=lambda layout: layout[::-1])
    pairs = [(a, b) for a, b in pairwise(by_nodes) if a[0] == b[0]]
    pairs += [(a, b) for a, b in pairwise(by_ppn) if a[1] == b[1]]
    paired = set(chain.from_iterable(pairs))
    return pairs + [(layout, layout) for layout in by_nodes if layout not in paired]


def _pattern(operation: str, procs: int, random: np.random.Generator) -> str:
    """Return a pattern that no campaign has: seeds start at a thousand."""
    if operation in COLLECTIVES:
        return "blocks"
    seed = int(random.integers(1000, 1_000_000))
    if random.random() < 0.3:
        return f"hub:hubs={int(random.integers(1, procs))},seed={seed}"
    return f"random:degree={int(random.integers(1, min(procs, 12)))},seed={seed}"
