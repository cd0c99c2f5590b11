"""The MPI installations of this machine, and how each starts a number of ranks.

Nothing is compiled to find them: compiler wrapper and launcher are asked for their versions, and
count only as a pair of one family. With more ranks than cores, a launch makes waiting ranks yield
their core, each family in its own way; that setting is named, so that results can record it.
"""

import os
import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from tuner.errors import SwitchpointError
from tuner.machine.directories import search_path
from tuner.machine.processes import UnansweredError, answer

YIELD_LIBRARY = "libswp_yield.so"
PRELOAD_LIBRARY = "libswitchpoint_pmpi.so"
PROFILE_LIBRARY = "libswitchpoint_profile.so"
FINALIZE_LIBRARY = "libswp_finalize.so"  # lets MPICH 4 over UCX end where ranks talk TCP

# Plain names come first: the user's choice on PATH wins over the names that Debian gives to MPIs
# installed side by side.
SUFFIXES = ("", ".mpich", ".openmpi")
LABELS = {"mpich": "MPICH", "openmpi": "Open MPI", "intelmpi": "Intel MPI", "simgrid": "SimGrid"}
ANSWER_S = 20.0  # for which a program is asked for its version
LIBRARY_VERSION = """
import ctypes, sys
text, length = ctypes.create_string_buffer(8192), ctypes.c_int()
ctypes.CDLL(sys.argv[1]).MPI_Get_library_version(text, ctypes.byref(length))
print(text.value.decode(errors="replace"))
"""
_INTEL_MPI = r"Intel\(R\) MPI Library.*? ([0-9][\w.]+)"
_BANNERS = {
    "mpich": r"MPICH Version:\s*([0-9][\w.]*)",
    "openmpi": r"Open MPI v([0-9][\w.]*)",
    "intelmpi": _INTEL_MPI,
}
DYNAMIC_RULES = {"OMPI_MCA_coll_tuned_use_dynamic_rules": "1"}  # of Open MPI
MPICH_THROTTLE = {
    "MPIR_CVAR_CH4_PROGRESS_THROTTLE": "1",
    "MPIR_CVAR_CH4_PROGRESS_THROTTLE_NO_PROGRESS_COUNT": "1",
}


class MpiError(SwitchpointError):
    """Error raised when an MPI installation is not there; the message names those that are."""


@dataclass(frozen=True)
class Mpi:
    """One MPI installation. `name` is that of the programming environment: "mpich", "openmpi4"."""

    name: str
    family: str
    version: str
    mpicc: str
    mpiexec: str
    device: str = ""  # MPICH's communication device, as "ch4:ucx"

    @property
    def major(self) -> int:
        """Return the major version."""
        return int(self.version.split(".")[0])

    @property
    def unlocking(self) -> dict[str, str]:
        """Return variables without which its algorithms cannot be set, as in Open MPI 4."""
        return DYNAMIC_RULES if self.family == "openmpi" else {}

    def __str__(self) -> str:
        return f"{LABELS[self.family]} {self.version} ({self.mpicc}, {self.mpiexec})"


@dataclass(frozen=True)
class LaunchCommand:
    """The start of a program: its command goes after `argv_prefix`, `env` joins the environment."""

    argv_prefix: list[str]
    env: dict[str, str] = field(default_factory=dict)
    yield_setting: str = ""  # "" when ranks fit on the cores, or when nothing makes this MPI yield


def find_mpis() -> list[Mpi]:
    """Return the installations in this virtual environment and on PATH, one of each major version.

    The first of a family has the family's name; the names of others also hold the major version.
    """
    return [first for first, *_ in find_all_mpis()]


def find_all_mpis() -> list[list[Mpi]]:
    """Return each installation of `find_mpis`, followed by those passed over for it."""
    found: dict[tuple[str, int], list[Mpi]] = {}
    for mpicc, mpiexec in _pairs():
        mpi = identify(mpicc, mpiexec)
        if mpi is None:
            continue
        if any(family == mpi.family and major != mpi.major for family, major in found):
            mpi = replace(mpi, name=f"{mpi.family}{mpi.major}")
        alike = found.setdefault((mpi.family, mpi.major), [])
        if not any(Path(mpicc).samefile(other.mpicc) for other in alike):  # by another name
            alike.append(mpi)
    return list(found.values())


def mpis_named(environment: str = "") -> list[Mpi]:
    """Return the named installation alone, or all of them if no name is given. Raise MpiError."""
    mpis = find_mpis()
    if not mpis:
        raise MpiError("no MPI found; `switchpoint doctor` shows how to install one")
    named = [mpi for mpi in mpis if environment in ("", mpi.name)]
    if not named:
        there = ", ".join(mpi.name for mpi in mpis)
        raise MpiError(f"no environment {environment} here; there are: {there}")
    return named


def mpi_named(name: str) -> Mpi | None:
    """Return the installation of that name, None if there is none."""
    return next((mpi for mpi in find_mpis() if mpi.name == name), None)


def why_first(mpi: Mpi) -> str:
    """Return why the first installation of `find_mpis` comes before the others."""
    if Path(mpi.mpicc).parent == Path(sys.prefix, "bin"):
        return "it is in this virtual environment, which is searched before PATH"
    return "its mpicc is the first on PATH that has an mpiexec of its family beside it"


def identify(mpicc: str, mpiexec: str) -> Mpi | None:
    """Ask both programs for their versions; None when one fails or their families differ."""
    family, version = _compiler_identity(mpicc)
    text = _ask([mpiexec, "--version"])
    if not family or family != _launcher_family(text):
        return None
    device = re.search(r"--with-device=([\w:]+)", text)
    return Mpi(family, family, version, mpicc, mpiexec, device.group(1) if device else "")


def mpi_of(program: str, mpis: Sequence[Mpi]) -> Mpi | None:
    """Return the first MPI whose library a program is linked with; None if that is unknown."""
    path = shutil.which(program)
    if path is None:
        return None
    needed = _ask(["ldd", path])
    families = {"libmpi.so.40": ["openmpi"], "libmpich.so": ["mpich"]}
    families |= {"libmpi.so.12": ["intelmpi", "mpich"]}
    found = next((its for name, its in families.items() if name in needed), [])
    return next((mpi for family in found for mpi in mpis if mpi.family == family), None)


def is_linked_with(program: str, mpi: Mpi) -> bool:
    """Return whether a program's library is of an MPI's family and version; False if unknown."""
    library = re.search(r"libmpi\S* => (\S+)", _ask(["ldd", program]))
    if library is None or mpi_of(program, [mpi]) is None:
        return False
    return _has_version(mpi, _ask([sys.executable, "-c", LIBRARY_VERSION, library.group(1)]))


def is_of(mpi: Mpi, launcher: str) -> bool:
    """Return whether a launcher is of an MPI's family and version."""
    text = _ask([launcher, "--version"])
    return _launcher_family(text) == mpi.family and _has_version(mpi, text)


def library_of(banner: str) -> tuple[str, str]:
    """Return the family and version in MPI_Get_library_version's text; ("", "") if unknown."""
    for family, pattern in _BANNERS.items():
        if found := re.search(pattern, banner):
            return family, found.group(1)
    return "", ""


def _has_version(mpi: Mpi, text: str) -> bool:
    return re.search(rf"(?<![0-9.]){re.escape(mpi.version)}(?![0-9])", text) is not None


def available_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0))


def launch(
    mpi: Mpi,
    procs: int,
    cores: int | None = None,
    build: Path | None = None,
    over_tcp: bool = False,
    preload: Sequence[Path] = (),
) -> LaunchCommand:
    """Return how to start `procs` ranks on this machine.

    `cores` are those that the ranks share (default: all that this process may use). `build` is the
    build or installation directory of the kernels, which is searched for the libraries that make
    MPICH 4 yield and, `over_tcp`, end; without it there are none. `preload` are further libraries
    that the ranks preload, but not the launcher; see `rank_variables`.

    Raises:
        ValueError: `procs` is less than 1.
    """
    if procs < 1:
        raise ValueError(f"cannot launch {procs} processes: at least 1 is needed")
    oversubscribed = procs > (available_cores() if cores is None else cores)
    argv = [mpi.mpiexec]
    env: dict[str, str] = {}
    setting = ""
    libraries = list(preload)
    if mpi.family == "openmpi":
        # MPICH binds no rank, so neither does this: the two stay comparable.
        argv += ["--oversubscribe", "--bind-to", "none"]
        if os.geteuid() == 0:
            argv.append("--allow-run-as-root")
        if oversubscribed:
            env["OMPI_MCA_mpi_yield_when_idle"] = "1"
            setting = "mpi_yield_when_idle=1"
    elif mpi.family == "intelmpi":
        env["I_MPI_PIN"] = "0"
        if oversubscribed:
            env["I_MPI_THREAD_YIELD"] = "3"
            setting = "I_MPI_THREAD_YIELD=3"
    elif oversubscribed and mpi.major >= 5:
        env |= MPICH_THROTTLE
        setting = " ".join(f"{name}={value}" for name, value in MPICH_THROTTLE.items())
    else:
        libraries += needed(mpi, build, oversubscribed=oversubscribed, over_tcp=over_tcp)
        if any(path.name == YIELD_LIBRARY for path in libraries):
            setting = f"LD_PRELOAD={YIELD_LIBRARY}"
    # Given to the ranks only: the launcher itself needs no preload.
    for name, value in rank_variables(libraries).items():
        argv += ["-x", f"{name}={value}"] if mpi.family == "openmpi" else ["-genv", name, value]
    return LaunchCommand([*argv, "-n", str(procs)], env, setting)


def needed(
    mpi: Mpi, build: Path | None, *, oversubscribed: bool = False, over_tcp: bool = False
) -> list[Path]:
    """Return the libraries that MPICH 4 needs to yield and, over TCP, to end; [] for others."""
    if mpi.major >= 5:
        return []
    wanted = [YIELD_LIBRARY] * oversubscribed + [FINALIZE_LIBRARY] * over_tcp
    return [path for name in wanted if (path := _library(name, mpi, build)) is not None]


def preload_library(build: Path) -> Path | None:
    """Return a build's or installation's library that dispatches an application's collectives."""
    return _find(PRELOAD_LIBRARY, build)


def profiler(build: Path) -> Path | None:
    """Return a build's or installation's library that records the calls of an application."""
    return _find(PROFILE_LIBRARY, build)


def has_workarounds(build: Path) -> bool:
    """Return whether a build or installation has the libraries that MPICH 4 needs."""
    return _find(FINALIZE_LIBRARY, build) is not None


def preload_variables(libraries: Sequence[Path]) -> dict[str, str]:
    """Return variables that make ranks preload libraries; all are in one directory of one build."""
    if not libraries:
        return {}
    # LD_PRELOAD splits at spaces, the search path does not.
    if not any(" " in str(library) for library in libraries):
        return {"LD_PRELOAD": ":".join(str(library) for library in libraries)}
    places = [str(libraries[0].parent), *filter(None, [os.environ.get("LD_LIBRARY_PATH")])]
    return {
        "LD_PRELOAD": ":".join(library.name for library in libraries),
        "LD_LIBRARY_PATH": ":".join(places),
    }


def of_the_user(libraries: Sequence[str]) -> list[str]:
    """Return preloaded libraries without Switchpoint's own."""
    return [its for its in libraries if not Path(its).name.startswith("libswitchpoint_")]


def preloaded() -> list[str]:
    """Return the libraries in LD_PRELOAD."""
    return re.findall(r"[^: ]+", os.environ.get("LD_PRELOAD", ""))


def rank_variables(libraries: Sequence[Path]) -> dict[str, str]:
    """Return variables that make ranks preload libraries, and behind them the user's.

    Switchpoint's own would dispatch where no table is meant. {} where ranks inherit what is right.
    """
    variables = preload_variables(libraries)
    inherited = preloaded()
    kept = of_the_user(inherited)
    if not variables and kept == inherited:
        return {}
    named = [*filter(None, variables.get("LD_PRELOAD", "").split(":")), *kept]
    return variables | {"LD_PRELOAD": ":".join(dict.fromkeys(named))}


def last_line(output: str) -> str:
    """Return the last line that a launched program printed, or its launcher if that is all.

    Open MPI's launchers frame what they say of a program's end by lines of dashes.
    """
    own = re.sub(r"^-{40,}$.*?(^-{40,}$|\Z)", "", output, flags=re.MULTILINE | re.DOTALL)
    lines = own.split("\n") if own.strip() else output.split("\n")
    return next((line.strip() for line in reversed(lines) if line.strip(" \r-")), "")


def _library(name: str, mpi: Mpi, build: Path | None) -> Path | None:
    """Return a workaround for MPICH over UCX. A sanitizer build has none: preloads disturb it."""
    if build is None or not mpi.device.endswith("ucx"):
        return None
    return _find(name, build)


def _find(name: str, build: Path) -> Path | None:
    candidates = [build / name, *build.glob(f"lib*/{name}")]
    # Both lists split at a colon: no preload is better than one that is named and has no effect.
    return next((path for path in candidates if path.is_file() and ":" not in str(path)), None)


def _pairs() -> Iterator[tuple[str, str]]:
    """Yield compiler wrapper and launcher of one directory: the virtual environment, then PATH."""
    for directory in dict.fromkeys(filter(None, search_path().split(os.pathsep))):
        for suffix in SUFFIXES:
            mpicc = shutil.which(f"mpicc{suffix}", path=directory)
            mpiexec = shutil.which(f"mpiexec{suffix}", path=directory)
            if mpicc and mpiexec:
                yield mpicc, mpiexec


def _compiler_identity(mpicc: str) -> tuple[str, str]:
    """Return family and version of a compiler wrapper; both are empty for an unknown one."""
    simgrid = re.search(r"^SimGrid version ([0-9]+[\w.]*)", _ask([mpicc, "--version"]))
    if simgrid:  # with -v, it would compile
        return "simgrid", simgrid.group(1)
    said = _ask([mpicc, "-v"])
    mpich = re.search(r"for MPICH version ([0-9]+[\w.]*)", said)
    if mpich:
        return "mpich", mpich.group(1)
    intel = re.search(_INTEL_MPI, said)
    if intel:
        return "intelmpi", intel.group(1)
    openmpi = re.search(r"Open MPI ([0-9]+[\w.]*)", _ask([mpicc, "--showme:version"]))
    return ("openmpi", openmpi.group(1)) if openmpi else ("", "")


def _launcher_family(text: str) -> str:
    """Return the family of a launcher from what it prints as its version; "" when unknown."""
    if "HYDRA build details" in text:
        return "mpich"
    if text.startswith("SimGrid version"):
        return "simgrid"
    if re.match(_INTEL_MPI, text):
        return "intelmpi"
    return "openmpi" if "(OpenRTE)" in text or "(Open MPI)" in text else ""


def _ask(command: list[str]) -> str:
    """Return what a program prints on both streams, "" when it cannot be run."""
    try:
        its = answer(command, ANSWER_S)
    except UnansweredError:
        return ""
    return its.stdout + its.stderr
