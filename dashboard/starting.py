"""The lines that start an application with a system's table, as far as this machine knows them."""

import os
import shutil
from pathlib import Path
from typing import Any

from dashboard.choice import SIMULATED, VIRTUAL, unreal
from tuner.machine.mpi import build_root, shim

ELSEWHERE = Path("PREFIX/lib/libswitchpoint_pmpi.so")
"""The preload where this machine has none: PREFIX is where Switchpoint was installed."""


def preload(system: dict[str, Any]) -> Path:
    """Return the preloaded library of the newest installation for a system's MPI."""
    named = os.environ.get("SWITCHPOINT_KERNELS")
    places = [Path(named)] if named else build_root().glob(f"install/*-{system['environment']}")
    found = [library for place in places if (library := shim(place)) is not None]
    return max(found, key=lambda library: library.stat().st_mtime, default=ELSEWHERE)


def command(system: dict[str, Any], nodes: int, ppn: int, library: Path | None) -> str:
    """Return how the system's launcher starts the application, with a preload if it needs one."""
    preloading = ["env", f"LD_PRELOAD={library}"] if library else []  # of the ranks alone
    return " ".join([*_launcher(system, nodes, ppn), *preloading, "./app"])


def _launcher(system: dict[str, Any], nodes: int, ppn: int) -> list[str]:
    """Return that of virtual nodes, of Slurm where it is here, or of the MPI, with a layout."""
    environment, procs = system["environment"], ["-n", str(nodes * ppn)]
    kind = unreal(system["name"], system["cpu_model"])
    if kind == VIRTUAL:
        where = ["switchpoint", "nodes", "exec", "--environment", environment]
        return [*where, *procs, "--ppn", str(ppn)]
    is_site = ":" in system["name"] and not system["name"].startswith("local:")
    if is_site and kind != SIMULATED and shutil.which("srun"):
        return ["srun", *procs, f"--ntasks-per-node={ppn}"]
    own = f"mpiexec.{environment}"  # as Debian names them
    return [own if shutil.which(own) else "mpiexec", *procs]
