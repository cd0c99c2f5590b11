"""The kernels, built once per MPI and session with their tests, and started on ranks."""

import fcntl
import itertools
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import CORES, by_day
from tests.processes import TIMEOUT_S
from tuner.machine.directories import build_root
from tuner.machine.mpi import Mpi, find_mpis, launch
from tuner.paths import CHECKOUT

# Open MPI 4 gives the ranks of a failed job a second to end; here, that is two minutes of waiting.
os.environ.setdefault("OMPI_MCA_odls_base_sigkill_timeout", "0")
# It must not look for missing networks either: half of the time of a start, and a second in 5.
os.environ.setdefault("OMPI_MCA_pml", "ob1")
os.environ.setdefault("OMPI_MCA_btl", "^ofi")
os.environ.setdefault("OMPI_MCA_osc", "^ucx")  # docs/reference/mpi-faults.md


def finish(
    command: Sequence[str], env: Mapping[str, str], timeout_s: float, stderr: int = subprocess.PIPE
) -> subprocess.CompletedProcess[str]:
    """Wait for a launcher, and kill it with its ranks after the timeout.

    Raise subprocess.TimeoutExpired, with the output so far.
    """
    process = subprocess.Popen(
        command,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=stderr,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    try:
        out, err = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired as expired:
        os.killpg(process.pid, signal.SIGKILL)
        expired.output = process.communicate()[0]
        raise
    return subprocess.CompletedProcess(command, process.returncode, out, err)


@dataclass(frozen=True)
class Kernels:
    """A build of the kernels for one MPI."""

    mpi: Mpi
    build: Path

    def run(
        self,
        program: str,
        arguments: Sequence[str],
        procs: int,
        env: Mapping[str, str] | None = None,
        under: Sequence[str] = (),
    ) -> subprocess.CompletedProcess[str]:
        """Run a program of the build on `procs` ranks; `program` is its path in the build.

        Each rank is started by the command `under`.
        """
        start = launch(self.mpi, procs, build=self.build)
        command = [*start.argv_prefix, *under, str(self.build / program), *arguments]
        return finish(command, os.environ | start.env | (env or {}), TIMEOUT_S)

    def run_alone(self, program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Run a program that starts no MPI, without a launcher: MPICH 4's may die of its end."""
        return finish([str(self.build / program), *arguments], os.environ, TIMEOUT_S)


@cache  # a build without anything to do takes two seconds
def build_kernels(mpi: Mpi, purpose: str = "tests", *options: str, target: str = "all") -> Path:
    """Configure with CMake options and build; return the build directory of that purpose."""
    build = build_root() / f"{purpose}-{mpi.name}-{mpi.version}"
    configure = ["cmake", "-S", str(CHECKOUT / "kernels"), "-B", str(build), *options]
    mpicc = shutil.which(mpi.mpicc)
    configure += [f"-DMPI_C_COMPILER={mpicc}"]
    build.mkdir(parents=True, exist_ok=True)
    with (build / "lock").open("w") as lock:  # against other test processes
        fcntl.flock(lock, fcntl.LOCK_EX)
        _forget_unless_for(f"{CHECKOUT}\n{mpicc}\n", build)
        _run_all(configure, ["cmake", "--build", str(build), "--parallel", "2", "--target", target])
    return build


def _forget_unless_for(made_for: str, build: Path) -> None:
    """Delete what CMake has found for another checkout or MPI: it would use that, or refuse to."""
    note = build / "made-for"
    if not note.exists() or note.read_text() != made_for:
        (build / "CMakeCache.txt").unlink(missing_ok=True)
        note.write_text(made_for)


def _run_all(*commands: list[str]) -> None:
    """Run commands on all cores: other test processes may wait for what they build."""
    own = os.sched_getaffinity(0)
    os.sched_setaffinity(0, CORES)
    try:
        for command in commands:
            done = subprocess.run(command, capture_output=True, text=True)
            assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    finally:
        os.sched_setaffinity(0, own)


@pytest.fixture(scope="session")
def kernels_of(require: Callable[[str, bool, str], None]) -> Callable[[str], Kernels]:
    """Return a function that builds for the MPI of a name, or skips when this machine lacks it."""
    mpis = {mpi.name: mpi for mpi in find_mpis()}
    built: dict[str, Kernels] = {}

    def get(name: str) -> Kernels:
        require(name, name in mpis, "this MPI is not installed")
        require("cmake", shutil.which("cmake") is not None, "no cmake on the path")
        if name not in built:
            built[name] = Kernels(mpis[name], build_kernels(mpis[name]))
        return built[name]

    return get


MPIS = ("mpich", "openmpi")


def in_turn(cases: Iterable[Any]) -> Iterator[tuple[str, Any]]:
    """Return each case with the name of an MPI; the MPIs take turns."""
    return zip(itertools.cycle(MPIS), cases, strict=False)


FEW_RANKS = 4
"""How many ranks tests start by day: more, on two cores, take seconds, and are for `make check`."""


def crowded(procs: int) -> list[pytest.MarkDecorator]:
    """Return the marks of a test on so many ranks."""
    return [pytest.mark.check] * (procs > FEW_RANKS)


def on_ranks(counts: Iterable[int], more: Iterable[int] = ()) -> pytest.MarkDecorator:
    """Give a test its `kernels` and `procs`: the MPI alternates from count to count.

    By night every count runs under both, and those in `more` under one in turn.
    """
    cases = [
        pytest.param(mpi, procs, marks=crowded(procs) if turn == place % 2 else pytest.mark.nightly)
        for turn, mpi in enumerate(reversed(MPIS))
        for place, procs in enumerate(counts)
    ]
    cases += by_day([], in_turn(more))
    return pytest.mark.parametrize(("kernels", "procs"), cases, indirect=["kernels"])


@pytest.fixture(scope="session", params=MPIS)
def kernels(request: pytest.FixtureRequest, kernels_of: Callable[[str], Kernels]) -> Kernels:
    """Return the kernels under every MPI in turn."""
    return kernels_of(request.param)


# Each further MPI needs a build of its own. MPICH 5 is tested as the only MPI of a bare machine.
LIBRARIES = by_day(["openmpi4"], ["mpich5", "intelmpi2021"])
LIBRARIES += (pytest.param(name, marks=pytest.mark.check) for name in ("mpich4", "openmpi5"))


@pytest.fixture(scope="session", params=LIBRARIES)
def library_kernels(
    request: pytest.FixtureRequest,
    kernels_of: Callable[[str], Kernels],
    require: Callable[[str, bool, str], None],
) -> Kernels:
    """Return the kernels under the MPI of each family and version on the path in turn."""
    names = [mpi.name for mpi in find_mpis() if f"{mpi.family}{mpi.major}" == request.param]
    require(request.param.removesuffix("2021"), bool(names), "this MPI is not installed")
    return kernels_of(names[0])


@pytest.fixture(scope="session")
def any_kernels(
    kernels_of: Callable[[str], Kernels], require: Callable[[str, bool, str], None]
) -> Kernels:
    """Return the kernels under one MPI, for tests that work with any: MPICH starts in 0.05 s."""
    mpis = sorted(find_mpis(), key=lambda mpi: mpi.family != "mpich")
    require("mpi", bool(mpis), "no MPI is installed")
    return kernels_of(mpis[0].name)
