"""The keys that measurements and rules share: layouts, cases and cells."""

from typing import NamedTuple

MOST_NODES = 1 << 20
MOST_PPN = 1 << 12
"""The largest layouts taken from files: tables take time for the layouts between them."""


class Layout(NamedTuple):
    """Processes and their distribution over nodes; `ppn` are the most on one node."""

    procs: int
    nodes: int
    ppn: int
    oversubscribed: bool  # more processes on a node than cores


class NodeCores(NamedTuple):
    """The cores of a node, None where they are not known; virtual nodes share the machine's."""

    number: int | None
    shared: bool = False


UNKNOWN_CORES = NodeCores(None)


class DegreeClass(NamedTuple):
    """A case as rules match it, without its size. `mmax` and `mavg` are negative where unknown."""

    operation: str
    nodes: int
    ppn: int
    mmax: int = -1
    mavg: float = -1.0


COLD = "-cold"
"""Part of `sync` where the caches were filled with other memory before each sample."""

STAGGERED = "-staggered"
"""The end of `sync` where ranks did not start together, but up to an execution's time apart."""


class Case(NamedTuple):
    """What a method is measured for. `bytes` is the mean payload of a message."""

    operation: str
    pattern: str
    layout: Layout
    sync: str
    size_bytes: int
    bytes: int

    @property
    def staggered(self) -> bool:
        """Return whether ranks arrived apart."""
        return self.sync.endswith(STAGGERED)

    @property
    def cold(self) -> bool:
        """Return whether caches were cold."""
        return self.sync.removesuffix(STAGGERED).endswith(COLD)

    @property
    def of_any_degree(self) -> DegreeClass:
        """Return the degree class whose degrees are unknown."""
        return DegreeClass(self.operation, self.layout.nodes, self.layout.ppn)


class CellKey(NamedTuple):
    """The key that all samples of a cell share."""

    system: str
    campaign: str
    case: Case
    method: str


class LaunchKey(NamedTuple):
    """The fields of a cell's key that are the same for all cells of a launch."""

    system: str
    campaign: str
    operation: str
    pattern: str
    layout: Layout
    sync: str

    def cell(self, size_bytes: int, message_bytes: int, method: str) -> CellKey:
        """Return the key of a cell."""
        case = Case(
            *(self.operation, self.pattern, self.layout, self.sync, size_bytes, message_bytes)
        )
        return CellKey(self.system, self.campaign, case, method)


class ProbeLaunch(NamedTuple):
    """A launch whose records are not cells: probes, methods of overlap, or soaks."""

    system: str
    campaign: str
    layout: Layout
    launch: int


SCOPES = ("on_socket", "on_node", "off_node")
"""Pairs of ranks: on one socket; on one node, but not known to share a socket; on two nodes."""


class ProbeKey(NamedTuple):
    """The key of a probe in a launch; docs/reference/benchfile.md explains the fields."""

    quantity: str
    scope: str  # one of SCOPES, "" where there is no pair
    pairs: int  # at once
    messages: int
    delay_s: float
    size_bytes: int
