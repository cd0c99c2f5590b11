"""Virtual process topologies T_n(k_1, …, k_n) (Selvitopi & Aykanat, SC'19).

Rank r has the coordinates c_1 = r mod k_1, c_2 = r / k_1 mod k_2, …. When no grid has exactly the
number of processes, the last layer (greatest c_n) is incomplete, and a position without a process
is hosted by the one a layer below.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property

from tuner.inputs.matrices.market import Indices


@dataclass(frozen=True)
class Grid:
    """A topology of `procs` processes; coordinate d + 1 has sizes[d] values."""

    procs: int
    sizes: tuple[int, ...]

    @cached_property
    def strides(self) -> tuple[int, ...]:
        """Return the product of the sizes before each, and last the number of positions."""
        return tuple(math.prod(self.sizes[:d]) for d in range(len(self.sizes) + 1))

    @property
    def complete(self) -> bool:
        """Return whether every position has a process."""
        return self.strides[-1] == self.procs

    @property
    def message_bound(self) -> int:
        """Return the most messages that a process sends in all stages.

        That is Σ(k_d - 1), and in an incomplete grid the same again for all stages but the last,
        because a process may also act for the position that it hosts.
        """
        steps = [size - 1 for size in self.sizes]
        return sum(steps) + (0 if self.complete else sum(steps[:-1]))

    def most_neighbors(self, stage: int) -> int:
        """Return the most processes that one may send to in a stage.

        That is k_d - 1 and, for a position that it hosts, the part of that position's line which
        the last layer has.
        """
        stride, others = self.strides[stage - 1], self.sizes[stage - 1] - 1
        cut = self.procs % self.strides[-2] % self.strides[stage]
        return others + (min(-(-cut // stride), others) if stage < len(self.sizes) else 0)

    def __str__(self) -> str:
        return "x".join(map(str, self.sizes))

    def route(self, source: Indices, destination: Indices, stage: int) -> Indices:
        """Return who holds each message after stages 1 … `stage`; 0 is before the first."""
        stride = self.strides[stage]
        # Floor division by a scalar is several times as fast as a remainder.
        position = (source // stride - destination // stride) * stride + destination
        if not self.complete:
            position[position >= self.procs] -= self.strides[-2]
        return position

    def steps(self, at: Indices, after: Indices, stage: int) -> Indices:
        """Return numbers of the steps between processes in `stage`, distinct at each place."""
        stride, size = self.strides[stage - 1], self.sizes[stage - 1]
        coordinate = after // stride
        coordinate -= coordinate // size * size
        if self.complete or stage == len(self.sizes):
            return coordinate
        # Hosting can bring a message a layer down, or back up.
        layer = self.strides[-2]
        return coordinate * 3 + after // layer - at // layer + 1


def choose(procs: int, dims: int) -> Grid | None:
    """Return the grid of that many dimensions with the least Σ(k_d - 1); None when there is none.

    Ties go to the smallest largest size, and larger sizes come first; the grid is exact where one
    exists. A dimension has at least two values, so `dims` is at most ⌊lg procs⌋.
    """
    if procs == 1:
        return Grid(1, (1,)) if dims == 1 else None
    if dims < 1 or procs >> dims == 0:
        return None
    sizes = _Search(procs, dims, exact=True).best or _Search(procs, dims, exact=False).best
    return Grid(procs, sizes) if sizes else None


def of_radix(procs: int, radix: int) -> Grid | None:
    """Return the grid of the most dimensions of which each can have `radix` values.

    None where these are fewer than two.
    """
    dims, product = 0, radix
    while 1 < product <= procs:
        dims, product = dims + 1, product * radix
    return choose(procs, dims) if dims > 1 else None


def from_sizes(procs: int, sizes: tuple[int, ...]) -> Grid | None:
    """Return the grid of the given sizes.

    None when a process has no position, or the last layer has no process.
    """
    grid = Grid(procs, sizes)
    below = grid.strides[-1] - grid.strides[-2]
    if not sizes or min(sizes) < 1 or grid.strides[-1] < procs:
        return None
    return grid if grid.complete or 0 < below < procs else None


@dataclass
class _Search:
    """A depth-first search of sizes that never increase; the first found of equal sums is kept."""

    procs: int
    dims: int
    exact: bool
    best: tuple[int, ...] = ()
    best_sum: float = field(default=math.inf)

    def __post_init__(self) -> None:
        self._descend((), 1, self.procs)

    def _descend(self, sizes: tuple[int, ...], product: int, limit: int) -> None:
        left = -(-self.procs // product)  # the rest must multiply to at least this
        if len(sizes) < self.dims - 1:
            for size in self._next_sizes(sizes, product, limit):
                self._descend((*sizes, size), product * size, size)
        elif 2 <= left <= limit and not (self.exact and product * left != self.procs):
            total = sum(sizes) + left
            if total < self.best_sum:
                self.best_sum = total
                self.best = (*sizes, left)

    def _next_sizes(self, sizes: tuple[int, ...], product: int, limit: int) -> Iterator[int]:
        rest = self.dims - len(sizes) - 1
        for size in range(2, limit + 1):
            reached = sum(sizes) + size
            if product * size >= self.procs or reached + 2 * rest > self.best_sum:
                return
            # The rest is least when all are equal.
            least = rest * (self.procs / (product * size)) ** (1 / rest)
            if reached + least > self.best_sum - 1 + 1e-6:
                continue
            if not self.exact or self.procs % (product * size) == 0:
                yield size
