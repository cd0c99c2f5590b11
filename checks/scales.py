"""Named scales: numbers of processes and nodes, resolved for the processors of a system."""

from collections.abc import Callable
from dataclasses import dataclass


def _all(cores: int) -> int:
    return cores


@dataclass(frozen=True)
class Scale:
    """Nodes, and the ranks on each, which follow from its cores."""

    nodes: int
    ppn: Callable[[int], int] = _all
    oversubscribed: bool = False


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


SCALES = {
    "half_node": Scale(1, lambda cores: cores // 2),
    "1_node": Scale(1),
    "2_nodes": Scale(2),
    "4_nodes": Scale(4),
    "8_nodes": Scale(8),
    "16_nodes": Scale(16),
    "32_nodes": Scale(32),
    "1_node_oversubscribed_by_1": Scale(1, lambda cores: cores + 1, oversubscribed=True),
    # Even, and no power of two.
    "1_node_oversubscribed_3x": Scale(1, lambda cores: 3 * (cores + cores % 2), True),
    "1_node_oversubscribed": Scale(1, lambda cores: 4 * cores, oversubscribed=True),
}
WORTHIEST = "worthiest"
"""The scale of the layout from whose measurement most is expected."""

# Beyond this, switching between ranks takes most of the time, and hides that of methods.
MOST_OVERSUBSCRIBED_PROCS = 32


def resolve(
    name: str, cores_per_node: int, max_nodes: int, *, oversubscribed: bool = False
) -> ScaleLayout:
    """Return the layout of scale `name` on at most `max_nodes` nodes of `cores_per_node` cores.

    Raises:
        ScaleError: the scale needs more nodes than there are, is too small or large to use, or is
            oversubscribed where that is not wanted.
    """
    if cores_per_node < 1:
        raise ScaleError("the configuration of the partition states no processors")
    scale = SCALES[name]
    layout = ScaleLayout(scale.nodes, scale.ppn(cores_per_node))
    if scale.nodes > max_nodes:
        raise ScaleError(f"needs {scale.nodes} nodes; the partition has {max_nodes}")
    if layout.procs < 2:
        raise ScaleError(f"{layout.procs} process on {cores_per_node} cores: nothing to exchange")
    if scale.oversubscribed and not oversubscribed:
        raise ScaleError(
            'oversubscribed; the extras of the partition must have "oversubscribed": True'
        )
    if name == "1_node_oversubscribed_3x" and layout.ppn == 4 * cores_per_node:
        raise ScaleError("as many processes as 1_node_oversubscribed")
    if scale.oversubscribed and layout.procs > MOST_OVERSUBSCRIBED_PROCS:
        raise ScaleError(
            f"{layout.procs} processes on {cores_per_node} cores, "
            f"but at most {MOST_OVERSUBSCRIBED_PROCS} may be oversubscribed"
        )
    return layout
