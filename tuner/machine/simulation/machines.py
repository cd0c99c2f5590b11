"""Simulated machines, named after their topology and network: dragonfly-8x1x8x1-aries."""

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass

from tuner.machine.simulation.networks import GENERIC, Network, NetworkError, network
from tuner.machine.simulation.topologies import KINDS, Topology

SIMULATED_MACHINES = "simulated"  # ReFrame's name of all simulated machines
CORES = 16  # of a node
VARIABLE = "SWITCHPOINT_SIMULATE"
DEFAULT = "torus-4x4x2 dragonfly-4x1x4x2 fattree-8x4"  # of 32 nodes each


def is_simulated(system: str) -> bool:
    """Return whether a system is a simulated machine, by ReFrame's name or by its id."""
    return system.startswith((f"{SIMULATED_MACHINES}:", f"{SIMULATED_MACHINES}-"))


@dataclass(frozen=True)
class Machine:
    """A topology and its network; a simulation has `CORES` ranks at most on each node."""

    name: str
    topology: Topology
    network: Network

    @property
    def nodes(self) -> int:
        """Return the number of nodes."""
        return self.topology.nodes

    @property
    def link_latency_s(self) -> float:
        """Return the latency of one link for messages of the first protocol."""
        return self.network.protocols[0].latency_s / self.topology.mean_links

    @property
    def system(self) -> str:
        """Return ReFrame's name: simulated:torus-4x4x2."""
        return f"{SIMULATED_MACHINES}:{self.name}"

    def require_room(self, procs: int, ppn: int) -> None:
        """Raise NetworkError where the machine has no room for `procs` ranks, `ppn` per node."""
        if procs < 1 or ppn < 1 or -(-procs // ppn) > self.nodes:
            raise NetworkError(f"{self.name} has no room for {procs} processes, {ppn} per node")


def machine(name: str) -> Machine:
    """Return the machine of a name, KIND-SIZES or KIND-SIZES-NETWORK. Raise NetworkError."""
    found = re.fullmatch(r"([a-z]+)-([0-9]{1,5}(?:x[0-9]{1,5})*)(?:-([a-z0-9]+))?", name)
    if not found or found[1] not in KINDS:
        raise NetworkError(
            f"no simulated machine {name!r}; write {', '.join(KINDS)} with sizes, and a network's "
            "name if wanted: torus-4x4x2-bluewaters"
        )
    topology = KINDS[found[1]](tuple(map(int, found[2].split("x"))))
    if reason := topology.check():
        raise NetworkError(f"{name}: {reason}")
    return Machine(name, topology, network(found[3] or GENERIC))


def naming(systems: Iterable[str]) -> dict[str, str]:
    """Return the variable with which the simulated ones of ReFrame's systems are configured."""
    names = [
        system.removeprefix(f"{SIMULATED_MACHINES}:") for system in systems if is_simulated(system)
    ]
    return {VARIABLE: " ".join(names)} if names else {}


def configured() -> list[Machine]:
    """Return the machines of SWITCHPOINT_SIMULATE, or of DEFAULT. Raise NetworkError."""
    return [machine(name) for name in (os.environ.get(VARIABLE) or DEFAULT).split()]
