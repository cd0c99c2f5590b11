"""Named scales: numbers of processes and nodes, resolved for the processors of a system."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Scale:
    """Nodes and ranks per core; with more than one, the cores are oversubscribed."""

    nodes: int
    ranks_per_core: float = 1.0


@dataclass(frozen=True)
class ScaleLayout:
    """The nodes, and the processes on each, of a scale on a system."""

    nodes: int
    ppn: int

    @property
    def procs(self) -> int:
        """Return the number of processes on all nodes."""
        return self.nodes * self.ppn


class ScaleError(ValueError):
    """Error raised when a scale cannot be used on a system; the message says why."""


OVERSUBSCRIBED = "1_node_oversubscribed"
SCALES = {
    "half_node": Scale(1, 0.5),
    "1_node": Scale(1),
    OVERSUBSCRIBED: Scale(1, 4.0),
    "2_nodes": Scale(2),
    "4_nodes": Scale(4),
    "8_nodes": Scale(8),
    "16_nodes": Scale(16),
    "32_nodes": Scale(32),
}
# Beyond this, switching between ranks takes most of the time, and hides that of methods.
MOST_OVERSUBSCRIBED_PROCS = 32


def resolve(name: str, cores_per_node: int, max_nodes: int) -> ScaleLayout:
    """Return the layout of scale `name` on at most `max_nodes` nodes of `cores_per_node` cores.

    Raises:
        ScaleError: the scale needs more nodes than there are, or is too small or large to use.
    """
    if cores_per_node < 1:
        raise ScaleError("the configuration of the partition states no processors")
    scale = SCALES[name]
    layout = ScaleLayout(scale.nodes, int(cores_per_node * scale.ranks_per_core))
    if scale.nodes > max_nodes:
        raise ScaleError(f"needs {scale.nodes} nodes; the partition has {max_nodes}")
    if layout.procs < 2:
        raise ScaleError(f"{layout.procs} process on {cores_per_node} cores: nothing to exchange")
    if scale.ranks_per_core > 1 and layout.procs > MOST_OVERSUBSCRIBED_PROCS:
        raise ScaleError(
            f"{layout.procs} processes on {cores_per_node} cores, "
            f"but at most {MOST_OVERSUBSCRIBED_PROCS} may be oversubscribed"
        )
    return layout
