"""The shapes of simulated networks: torus, dragonfly and fat tree, as SimGrid routes in them."""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

from tuner.domain.cases import MOST_NODES


@dataclass(frozen=True)
class Topology(ABC):
    """Nodes and the links between them; the meaning of `sizes` depends on the kind."""

    sizes: tuple[int, ...]

    @property
    def nodes(self) -> int:
        """Return the number of nodes."""
        return math.prod(self.sizes)

    @property
    @abstractmethod
    def mean_links(self) -> float:
        """Return the number of links between two different nodes, averaged over all pairs."""

    @property
    def node_links(self) -> int:
        """Return the number of links that leave a node."""
        return 1

    @property
    @abstractmethod
    def simgrid(self) -> tuple[str, str]:
        """Return SimGrid's name of the topology, and its parameters."""

    def check(self) -> str:
        """Return why no such network can exist; empty when one can."""
        if not self.sizes or 0 in self.sizes:
            return "a size is 0"
        if self.nodes > MOST_NODES:
            return f"more than {MOST_NODES} nodes"
        return self._check()

    def _check(self) -> str:
        """Return why none of this kind has these sizes."""
        return ""

    def _of_pairs(self, links: float) -> float:
        """Return the mean over pairs of different nodes, from the mean over all pairs."""
        return links * self.nodes / (self.nodes - 1) if self.nodes > 1 else 1.0


@dataclass(frozen=True)
class Torus(Topology):
    """A torus of any dimension; `sizes` are the nodes along each."""

    @property
    def mean_links(self) -> float:
        """Return the mean, going the shorter way round in each dimension."""
        rings = (sum(min(i, size - i) for i in range(size)) / size for size in self.sizes)
        return self._of_pairs(sum(rings))

    @property
    def node_links(self) -> int:
        """Return two links for each dimension, one for a ring of two nodes."""
        return sum(min(size - 1, 2) for size in self.sizes)

    @property
    def simgrid(self) -> tuple[str, str]:
        """Return SimGrid's name, and the sizes."""
        return "TORUS", ",".join(map(str, self.sizes))

    def _check(self) -> str:
        """Return an error for a ring of one node, which SimGrid does not accept."""
        return "a torus has at least 2 nodes in each dimension" if min(self.sizes) < 2 else ""


@dataclass(frozen=True)
class Dragonfly(Topology):
    """Groups, chassis per group, blades per chassis, nodes per blade.

    Blades of a chassis are joined pairwise, as are those in the same place of a group's chassis;
    the blade of place g in the first chassis of a group leads to group g.
    """

    @property
    def mean_links(self) -> float:
        """Return the mean of links to the blade, in and between both groups, and to the node."""
        groups, chassis, blades, _ = self.sizes
        within = (1 - 1 / chassis) + (1 - 1 / blades)
        other = 1 - 1 / groups
        to_self = 2 / self.nodes
        return self._of_pairs(2 + other * (1 + 2 * within) + (1 - other) * within - to_self)

    @property
    def simgrid(self) -> tuple[str, str]:
        """Return SimGrid's name, and the sizes, each level with single links."""
        groups, chassis, blades, nodes = self.sizes
        return "DRAGONFLY", f"{groups},1;{chassis},1;{blades},1;{nodes}"

    def _check(self) -> str:
        """Return an error unless there are four sizes and a way from each group to every other."""
        if len(self.sizes) != 4:
            return "a dragonfly has four sizes: groups, chassis, blades, nodes of a blade"
        groups, _, blades, _ = self.sizes
        if not 2 <= groups <= blades:
            return f"{groups} groups: a dragonfly has at least 2, and a blade of a chassis for each"
        return ""


@dataclass(frozen=True)
class FatTree(Topology):
    """Nodes per leaf switch, then switches below a switch of each further level.

    Every switch has as many links up as down: full bisection.
    """

    @property
    def mean_links(self) -> float:
        """Return the mean, with as many links up as down, to the first switch above both."""
        below = [math.prod(self.sizes[:level]) for level in range(len(self.sizes) + 1)]
        levels = range(1, len(self.sizes) + 1)
        links = sum(2 * level * (below[level] - below[level - 1]) for level in levels)
        return self._of_pairs(links / self.nodes)

    @property
    def simgrid(self) -> tuple[str, str]:
        """Return SimGrid's name; and levels, links down, links up, and single links of switches."""
        up = (1, *self.sizes[:-1])
        lists = (self.sizes, up, (1,) * len(self.sizes))
        words = [",".join(map(str, numbers)) for numbers in lists]
        return "FAT_TREE", ";".join([str(len(self.sizes)), *words])


KINDS: dict[str, type[Topology]] = {"torus": Torus, "dragonfly": Dragonfly, "fattree": FatTree}
