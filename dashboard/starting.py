"""The lines that start an application with a system's table, as far as this machine knows them."""

import os
import re
import shlex
import shutil
from pathlib import Path
from typing import Any, NamedTuple

from tuner.domain.operations import known_cores
from tuner.machine.directories import build_root, installation_directory
from tuner.machine.mpi import LABELS, preload_library, preload_variables
from tuner.machine.systems import SIMULATED, VIRTUAL, named_kernels, unreal

_LIBRARY = "lib/libswitchpoint_pmpi.so"
_PROGRAM = re.compile(r"[\w.+-]+")


class Preload(NamedTuple):
    """A preloaded library. prefix: what PREFIX in its path stands for; "" if it is here."""

    library: Path
    prefix: str


def preload(system: dict[str, Any], is_last: bool = True) -> Preload:
    """Return the preloaded library for a system's MPI.

    is_last: whether it is the last measured of its name and environment. The installation of
    these is for the last one's MPI.
    """
    if named := named_kernels():
        places = {"": named}
        own, is_last = "", True
    else:
        places = {place.name: place for place in (build_root() / "install").glob("*")}
        name = system["name"].partition("+")[0]  # without the placement on virtual nodes
        own = installation_directory(name, system["environment"]).name
    found = {name: library for name, place in places.items() if (library := preload_library(place))}
    if own in found and is_last:
        return Preload(found[own], "")
    prefix = f"where Switchpoint is installed for {system['mpi_library'].partition(',')[0]}"
    alike = sorted(name for name in found if name.endswith(f"-{system['environment']}"))
    if alike:
        prefix += f"; here, {', '.join(alike)} may be for another MPI"
    return Preload(Path("PREFIX") / _LIBRARY, prefix)


def command(
    system: dict[str, Any], procs: int, ppn: int, library: Path | None, launcher: str = ""
) -> str:
    """Return how an application starts on a system, with a preload if it needs one.

    launcher: the program that started the system's launches; "" if it is not known.
    """
    variables = preload_variables([library] if library else []).items()
    preloading = [f"{name}={value}" for name, value in variables]
    env = ["env", *preloading] if preloading else []  # for the ranks alone
    return shlex.join([*_launcher(system, procs, ppn, launcher), *env, "./app"])


def _launcher(system: dict[str, Any], procs: int, ppn: int, launcher: str) -> list[str]:
    """Return the launcher and its options for a layout."""
    environment, number = system["environment"], ["-n", str(procs)]
    kind = unreal(system["name"], system["cpu_model"])
    if kind == VIRTUAL:
        where = ["switchpoint", "nodes", "exec", "--environment", environment]
        return [*where, *number, "--ppn", str(ppn)]
    is_site = ":" in system["name"] and not system["name"].startswith("local:")
    if kind == SIMULATED or not _PROGRAM.fullmatch(launcher):  # which also becomes a shell's word
        own = f"mpiexec.{environment}"  # as Debian names them
        launcher = own if shutil.which(own) else "mpiexec"
        if is_site and kind != SIMULATED and shutil.which("srun"):
            launcher = "srun"
    if launcher == "srun":
        return [launcher, *number, f"--ntasks-per-node={ppn}"]
    options = []
    if system["mpi_library"].startswith(LABELS["openmpi"]):
        cores = known_cores(system["name"], int(system["cores"]))
        options += ["--oversubscribe"] * (cores is not None and ppn > cores)
        options += ["--allow-run-as-root"] * (not is_site and os.geteuid() == 0)
        options += ["-x", "SWITCHPOINT_TABLE"]  # ranks on other nodes would lack it
    return [launcher, *options, *number]
