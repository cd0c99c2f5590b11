"""The virtual nodes that are up on this machine; `switchpoint nodes up` makes them.

The rate of their network cards names the partition, because another rate is another network. The
nodes share the machine's cores, but have at least two ranks each, even if the cores do not suffice.
"""

from checks.machine import site
from tuner.machine.mpi import available_cores
from tuner.machine.nodes.launch import SYSTEM
from tuner.machine.nodes.namespaces import NodesError, meant

try:
    nodes = meant()
except NodesError as error:
    raise SystemExit(f"checks/config/nodes.py: {error}") from error

site_configuration = site(
    {"name": SYSTEM, "descr": "network namespaces of this machine"},
    [
        {
            "name": f"tcp-{nodes.rate}",
            "descr": f"{nodes.count} nodes that talk TCP",
            "processor": {
                "num_cpus": max(2, available_cores() // nodes.count),
                "num_cpus_per_core": 1,
            },
            "extras": {"max_nodes": nodes.count},
        }
    ],
)
