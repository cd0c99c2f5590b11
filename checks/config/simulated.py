"""A simulated torus, as ReFrame sees it: SimGrid's MPI is its only environment."""

from checks.machine import site
from tuner.mpi import identify
from tuner.simulated import SYSTEM, TORUS

mpi = identify("smpicc", "smpirun")
if mpi is None:
    raise SystemExit(
        "checks/config/simulated.py: no smpicc with its smpirun on PATH: install SimGrid "
        "(Debian: libsimgrid-dev)"
    )

site_configuration = site(
    {"name": SYSTEM, "descr": "machines that SimGrid simulates"},
    {
        "name": TORUS.name,
        "descr": f"{TORUS.nodes} nodes with {TORUS.cores} cores",
        "processor": {"num_cpus": TORUS.cores, "num_cpus_per_core": 1},
        "extras": {"max_nodes": TORUS.nodes},
        "features": ["mpi", "simulated"],
    },
    [mpi],
)
