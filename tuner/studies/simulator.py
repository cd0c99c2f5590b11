"""Launches of swpbench on a simulated machine, which are kept as one campaign."""

import re
import shutil
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from tuner.campaign.launches import run
from tuner.errors import SwitchpointError
from tuner.machine.directories import objects_directory, search_path
from tuner.machine.mpi import Mpi, available_cores
from tuner.machine.processes import answer
from tuner.machine.simulation.launch import NO_SIMGRID, TOOLCHAIN, find_simgrid, launch
from tuner.machine.simulation.machines import Machine
from tuner.machine.systems import named_kernels, program_in
from tuner.paths import CHECKOUT, new_campaign
from tuner.rawfile import keeping

LogFunction = Callable[[str], None]
"""A function that takes a line about progress."""

_TIMEOUT_S = 3600


class StudyError(SwitchpointError):
    """Error raised when the study cannot be made; the message says why."""


@dataclass(frozen=True)
class Simulated:
    """A method's time at one size, which has no noise."""

    method: str
    size_bytes: int
    time_s: float


@dataclass(frozen=True)
class Simulator:
    """The swpbench for SimGrid, and the machine to simulate, with ppn ranks on a node."""

    mpi: Mpi
    machine: Machine
    ppn: int
    campaign: str
    log: LogFunction = field(default=lambda line: None)

    @cached_property
    def swpbench(self) -> Path:
        """Return swpbench of the build that SWITCHPOINT_KERNELS names, otherwise built here.

        The variable may name an installation too. Raise StudyError.
        """
        root = named_kernels() or _build(self.mpi.version, self.log)
        if program := program_in(root):
            return program
        raise StudyError(f"{root}: no swpbench in this build")

    def require_room(self, procs: int) -> None:
        """Raise NetworkError if the machine has no room for `procs` ranks."""
        self.machine.require_room(procs, self.ppn)

    def run(
        self, operation: str, pattern: str, procs: int, methods: str, sizes: str
    ) -> list[Simulated]:
        """Simulate one launch, and keep its raw file; a pattern's matrix has an absolute path.

        Raise StudyError, LaunchError, RawFileError, NetworkError.
        """
        if " " in f"{self.swpbench}{pattern}":
            raise StudyError(
                f"{pattern}: SimGrid's launcher splits paths at spaces; set SWITCHPOINT_RESULTS "
                "and SWITCHPOINT_KERNELS to paths without spaces"
            )
        self.log(f"{self.machine.name}: {operation} of {pattern} on {procs} ranks")
        start = launch(self.machine, self.mpi, procs, self.ppn, operation)
        options = ["--op", operation, "--pattern", pattern, "--sizes", sizes, "--quiet"]
        options += ["--methods", methods, "--campaign", self.campaign]
        options += ["--system", self.machine.system, "--environment", self.mpi.name]
        words = re.sub(r"[^A-Za-z0-9]+", "-", f"{operation}-{Path(pattern).name}-{procs}-{methods}")
        with tempfile.TemporaryDirectory() as scratch:
            out = Path(scratch) / f"{words[:150].strip('-')}.jsonl"
            file = run(start, self.swpbench, options, out, _TIMEOUT_S, cwd=Path(scratch))
            keeping.keep([out])
        cases = zip(file.cases, file.samples_s.tolist(), strict=True)
        return [Simulated(case.method, case.size_bytes, time_s) for case, time_s in cases]

    def run_all(self, cases: Sequence[tuple[str, str, int, str, str]]) -> Iterator[list[Simulated]]:
        """Yield several such launches' results in the order of the cases; one runs on each core."""
        _ = self.swpbench  # built before the threads begin, and once
        with ThreadPoolExecutor(available_cores()) as executor:
            yield from executor.map(self.run, *zip(*cases, strict=True))


def simulator(machine: Machine, ppn: int, study: str, log: LogFunction) -> Simulator:
    """Return a simulator of the machine here, with a campaign of its own. Raise StudyError."""
    mpi = find_simgrid()
    if mpi is None:
        raise StudyError(NO_SIMGRID)
    campaign = new_campaign(f"{study}-")
    return Simulator(mpi, machine, ppn, campaign, log)


def _build(version: str, log: LogFunction) -> Path:
    sources, build = CHECKOUT / "kernels", objects_directory("studies", f"simgrid-{version}")
    if not sources.is_dir():
        raise StudyError(
            f"no kernel sources in {sources}: use a checkout, or name a build for SimGrid by "
            "SWITCHPOINT_KERNELS"
        )
    cmake = shutil.which("cmake", path=search_path())
    if cmake is None:
        raise StudyError("no cmake on the path to build the kernels with")
    log("building the kernels for SimGrid")
    configure = [cmake, "-S", str(sources), "-B", str(build), "-DSWITCHPOINT_TESTS=OFF"]
    configure.append(f"-DCMAKE_TOOLCHAIN_FILE={sources / 'cmake' / TOOLCHAIN}")
    make = [cmake, "--build", str(build), "--target", "swpbench"]
    for command in (configure, [*make, "--parallel", str(available_cores())]):
        done = answer(command, None, StudyError)
        if done.returncode:
            last = (done.stderr or done.stdout).strip().splitlines()[-1:]
            raise StudyError(f"the kernels cannot be built for SimGrid: {' '.join(last)}")
    return build
