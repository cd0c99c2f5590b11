"""Common parts of the site configurations of this machine, with every MPI found."""

import os
from collections.abc import Sequence
from typing import Any

from tuner.machine.directories import scratch_directory, search_path
from tuner.machine.mpi import Mpi, find_mpis


def site(
    system: dict[str, Any], partitions: Sequence[dict[str, Any]], mpis: Sequence[Mpi] | None = None
) -> dict[str, Any]:
    """Return a configuration of partitions, each of which runs one job at a time.

    system, partitions: names and descriptions; of partitions also processor and extras.
    mpis: by default those of this machine.

    Raises:
        SystemExit: nothing can be measured on this machine.
    """
    mpis = find_mpis() if mpis is None else mpis
    if not mpis:
        raise SystemExit(
            "checks/config: no mpicc with a matching mpiexec on PATH or in this virtual "
            "environment; `switchpoint doctor` shows how to get one"
        )
    # CMake may come from the virtual environment. Not set in env_vars: ReFrame writes those without
    # quotes into the scripts of jobs, which inherit this environment anyway.
    os.environ["PATH"] = search_path()
    try:
        prefix = scratch_directory()
    except ValueError as error:
        raise SystemExit(f"checks/config: {error}") from error
    prefix.mkdir(parents=True, exist_ok=True)
    return {
        "systems": [
            {
                "hostnames": [".*"],
                "modules_system": "nomod",
                "prefix": str(prefix),
                **system,
                "partitions": [
                    {
                        "scheduler": "local",
                        "launcher": "mpiexec",
                        "max_jobs": 1,
                        "environs": [mpi.name for mpi in mpis],
                        "features": ["mpi"],
                        **partition,
                    }
                    for partition in partitions
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
                # If an environment names its launcher, the tuner starts the ranks of checks.
                "extras": {"mpiexec": mpi.mpiexec},
            }
            for mpi in mpis
        ],
        # By default ReFrame polls a long job only every ten seconds; polling more often than this
        # would disturb the measurements.
        "general": [{"resolve_module_conflicts": False, "poll_rate_min": 1}],
        "logging": [
            {
                "level": "verbose",  # at lower levels, every line is slow
                "handlers": [
                    {
                        "type": "file",
                        "name": str(prefix / "reframe.log"),
                        "level": "verbose",
                        "format": "[%(asctime)s] %(levelname)s: %(check_info)s: %(message)s",
                        "append": False,
                    }
                ],
            }
        ],
    }
