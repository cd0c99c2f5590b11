"""The ReFrame configuration of simulated machines; SimGrid's MPI is their only environment."""

from checks.machine import site
from tuner.machine.simulation.launch import NO_SIMGRID, find_simgrid
from tuner.machine.simulation.machines import CORES, SIMULATED_MACHINES, configured
from tuner.machine.simulation.networks import NetworkError

mpi = find_simgrid()
if mpi is None:
    raise SystemExit(f"checks/config/simulated.py: {NO_SIMGRID}")
try:
    machines = configured()
except NetworkError as error:
    raise SystemExit(f"checks/config/simulated.py: {error}") from error

site_configuration = site(
    {"name": SIMULATED_MACHINES, "descr": "machines that SimGrid simulates"},
    [
        {
            "name": machine.name,
            "descr": f"{machine.nodes} nodes with {CORES} cores",
            "processor": {"num_cpus": CORES, "num_cpus_per_core": 1},
            "extras": {"max_nodes": machine.nodes},
            "features": ["mpi", "simulated"],
        }
        for machine in machines
    ],
    [mpi],
)
