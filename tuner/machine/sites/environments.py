"""The MPIs of a site as programming environments: from its modules, or from the path."""

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from tuner.errors import SwitchpointError
from tuner.machine.mpi import Mpi, find_mpis, is_of
from tuner.machine.processes import answer
from tuner.machine.sites.schedulers import srun_type

# As sites, EasyBuild, Spack, OpenHPC, Red Hat, Intel and Cray name them, by their families.
_MPI_MODULE = re.compile(
    r"(?:^|/)(?:(?P<openmpi>openmpi[0-9]?|hpcx)|(?P<mpich>mpich|mvapich2?)|(?P<cray>cray-mpich(?:-abi|-ucx)?)"
    r"|(?P<intelmpi>intel-?mpi|intel-oneapi-mpi|impi|mpi(?=/(?:latest|20[0-9]{2}))))"
    r"(?:-mt|-x86_64|-aarch64)?(?=/|$)",
    re.IGNORECASE,
)


OF_MPIS = ("mpiexec", "mpirun")
"""ReFrame's launchers that each MPI has of its own: a job gets the first on PATH."""


class ModulesError(SwitchpointError):
    """Error raised when the modules system does not answer; the message says why."""


@dataclass(frozen=True)
class Environment:
    """The modules that a job loads, and the compiler wrapper that they provide."""

    name: str
    cc: str
    modules: list[str] = field(default_factory=list)
    mpiexec: str = ""  # where the checks start ranks themselves
    variables: dict[str, str] = field(default_factory=dict)


def modules_system() -> str:
    """Return ReFrame's name of the site's modules system: "lmod", "tmod4", or "nomod"."""
    if os.environ.get("LMOD_CMD"):
        return "lmod"
    return "tmod4" if os.environ.get("MODULES_CMD") else "nomod"


def of_modules(sets: Iterable[str], launcher: str) -> list[Environment]:
    """Return an environment for each set of modules that are loaded together: "gcc/13 openmpi/5".

    launcher: ReFrame's, which starts the ranks.

    Raises:
        ModulesError: this machine has no modules system.
    """
    named = [each.split() for each in sets]
    if named and modules_system() == "nomod":
        raise ModulesError(
            f"no module command here to load {' '.join(named[0])}: run a login shell"
        )
    return [_of_modules(modules, launcher) for modules in named]


def mpi_modules() -> list[str]:
    """Return the modules of MPI libraries that can be loaded at once, the last version of each.

    Raises:
        ModulesError: the modules system fails.
    """
    command = {
        "lmod": [os.environ.get("LMOD_CMD", ""), "bash", "--terse", "avail"],
        "tmod4": [os.environ.get("MODULES_CMD", ""), "bash", "avail", "--terse"],
    }.get(modules_system())
    if command is None:
        return []
    env = os.environ | {"LMOD_REDIRECT": "no"}  # Lmod then lists them where the other does
    listed = answer(command, 120, ModulesError, env=env).stderr
    latest: dict[str, str] = {}
    for line in listed.splitlines():
        module = re.sub(r"\(.*\)$", "", line.strip()).strip()
        match = _MPI_MODULE.search(module)
        if match and not module.endswith(("/", ":")):
            library = module[: match.end()]
            latest[library] = max(latest.get(library, module), module, key=_version)
    return list(latest.values())


def of_path(launcher: str) -> tuple[list[Environment], list[Mpi]]:
    """Return the MPIs on PATH as environments, and those that the launcher does not start.

    launcher: ReFrame's; "" where the checks start ranks, each MPI's by its own.
    """
    mpis = find_mpis()
    started = [mpi for mpi in mpis if launcher not in OF_MPIS or is_of(mpi, launcher)]
    return [_of_path(mpi, launcher) for mpi in started], [mpi for mpi in mpis if mpi not in started]


def _of_path(mpi: Mpi, launcher: str) -> Environment:
    variables = _variables(mpi.family, launcher)
    return Environment(mpi.name, mpi.mpicc, [], "" if launcher else mpi.mpiexec, variables)


def _of_modules(modules: list[str], launcher: str) -> Environment:
    matches = [match for module in modules if (match := _MPI_MODULE.search(module))]
    family = str(matches[-1].lastgroup) if matches else ""
    cc = "cc" if family == "cray" else "mpicc"  # its wrapper has no "mpi" in its name
    name = reframe_name("-".join(modules))
    return Environment(name, cc, modules, variables=_variables(family, launcher))


def _variables(family: str, launcher: str) -> dict[str, str]:
    kind = srun_type(family) if launcher == "srun" else ""
    return {"SLURM_MPI_TYPE": kind} if kind else {}


def reframe_name(text: str) -> str:
    """Return a name that ReFrame accepts for a system, a partition or an environment."""
    name = re.sub(r"[^A-Za-z0-9_]+", "-", text).strip("-")
    return name if re.match("[A-Za-z_]", name) else f"_{name}"


def _version(module: str) -> list[int]:
    return [int(number) for number in re.findall(r"[0-9]+", module)]
