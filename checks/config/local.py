"""This machine, as ReFrame sees it: one node, and every MPI that tuner.mpi finds here."""

import os

from tuner.mpi import available_cores, find_mpis, scratch_directory, search_path

mpis = find_mpis()
if not mpis:
    raise SystemExit(
        "checks/config/local.py: no mpicc with a matching mpiexec on PATH or in this virtual "
        "environment; `switchpoint doctor` tells how to get one"
    )

# CMake may be the virtual environment's. Not by env_vars: ReFrame writes those without quotes into
# the scripts of jobs, which inherit this environment anyway.
os.environ["PATH"] = search_path()

try:
    prefix = scratch_directory()
except ValueError as error:
    raise SystemExit(f"checks/config/local.py: {error}") from error
prefix.mkdir(parents=True, exist_ok=True)

site_configuration = {
    "systems": [
        {
            "name": "local",
            "descr": "this machine",
            "hostnames": [".*"],
            "modules_system": "nomod",
            "prefix": str(prefix),
            "partitions": [
                {
                    "name": "cpu",
                    "descr": "one node, one job at a time",
                    "scheduler": "local",
                    "launcher": "mpiexec",
                    "max_jobs": 1,
                    "environs": [mpi.name for mpi in mpis],
                    "features": ["mpi"],
                    "processor": {"num_cpus": available_cores(), "num_cpus_per_core": 1},
                    "extras": {"max_nodes": 1},
                }
            ],
        }
    ],
    "environments": [
        {
            "name": mpi.name,
            "cc": mpi.mpicc,
            "cxx": "",
            "ftn": "",
            "features": ["mpi"],
            # The checks start ranks by tuner.mpi where an environment names its launcher.
            "extras": {"mpiexec": mpi.mpiexec},
        }
        for mpi in mpis
    ],
    "general": [{"resolve_module_conflicts": False}],
    "logging": [
        {
            "handlers": [
                {
                    "type": "file",
                    "name": str(prefix / "reframe.log"),
                    "level": "debug2",
                    "format": "[%(asctime)s] %(levelname)s: %(check_info)s: %(message)s",
                    "append": False,
                }
            ]
        }
    ],
}
