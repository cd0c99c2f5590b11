"""The ReFrame configuration of the virtual nodes that `switchpoint nodes up` created.

The nodes share the machine's cores, but each has at least two ranks, even with too few.
"""

from checks.machine import site
from tuner.machine.mpi import available_cores
from tuner.machine.nodes.launch import VIRTUAL_NODES
from tuner.machine.nodes.namespaces import NodesError, meant

try:
    nodes = meant()
except NodesError as error:
    raise SystemExit(f"checks/config/nodes.py: {error}") from error

site_configuration = site(
    {"name": VIRTUAL_NODES, "descr": "network namespaces of this machine"},
    [
        {
            "name": nodes.partition,
            "descr": f"{nodes.count} nodes connected by TCP",
            "processor": {
                "num_cpus": max(2, available_cores() // nodes.count),
                "num_cpus_per_core": 1,
            },
            "extras": {"max_nodes": nodes.count},
        }
    ],
)
