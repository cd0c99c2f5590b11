"""The traffic of virtual nodes' network cards, as the kernel counts it."""

import json
from dataclasses import dataclass

from tuner.machine.nodes.namespaces import Nodes, NodesError
from tuner.machine.processes import answer


@dataclass(frozen=True)
class NodeTraffic:
    """The traffic of one node since it came up."""

    host: str
    sent_bytes: int
    received_bytes: int


def traffic(nodes: Nodes, device: str = "eth0") -> list[NodeTraffic]:
    """Return the counts of every node's network card, or of its loopback device "lo".

    Raises:
        NodesError: a node does not answer.
    """
    return [_count(nodes, host, device) for host in nodes.hosts]


def _count(nodes: Nodes, host: str, device: str) -> NodeTraffic:
    ask = f"PATH=$PATH:/usr/sbin:/sbin ip -statistics -json link show {device}"
    its = answer([*nodes.on_node(host), ask], None, NodesError)
    if its.returncode != 0:
        raise NodesError(f"{host} does not answer: {its.stderr.strip()}")
    try:
        (link,) = json.loads(its.stdout)
        counts = link["stats64"]
        return NodeTraffic(host, counts["tx"]["bytes"], counts["rx"]["bytes"])
    except (ValueError, LookupError, TypeError) as error:
        raise NodesError(f"{host} does not answer with the counts of {device}") from error
