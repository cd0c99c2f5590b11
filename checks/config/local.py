"""The ReFrame configuration of this machine: one node, and every MPI found on it."""

from checks.machine import site
from tuner.machine.mpi import available_cores

site_configuration = site(
    {"name": "local", "descr": "this machine"},
    [
        {
            "name": "cpu",
            "descr": "one node, one job at a time",
            "processor": {"num_cpus": available_cores(), "num_cpus_per_core": 1},
            "extras": {"max_nodes": 1, "oversubscribed": True},
        }
    ],
)
