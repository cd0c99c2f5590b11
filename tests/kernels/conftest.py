"""The kernels, built for each MPI of this machine, and how a test runs their programs."""

import os
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from tuner.mpi import Mpi, build_directory, find_mpis, launch

CHECKOUT = Path(__file__).resolve().parents[2]
MPIS = ["mpich", "openmpi"]


@dataclass(frozen=True)
class Kernels:
    """A build of the kernels."""

    mpi: Mpi
    build: Path

    def run(
        self,
        program: str,
        procs: int,
        *arguments: str | Path,
        before: tuple[str, ...] = (),
        env: dict[str, str] | None = None,
        timeout_s: int = 300,
    ) -> str:
        """What a test program prints; a failure or hang fails the test with the program's words.

        `before` goes between launcher and program. A program names the case in which it hangs
        after SWP_TEST_TIMEOUT seconds itself; `timeout_s` is for one that cannot even do that.
        """
        start = launch(self.mpi, procs, build=self.build)
        command = [*start.argv_prefix, *before, self.build / "tests" / program, *arguments]
        process = subprocess.Popen(
            [str(part) for part in command],
            env=os.environ | start.env | (env or {}),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        try:
            output, _ = process.communicate(timeout=timeout_s)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            output, _ = process.communicate()
            output += f"killed after {timeout_s} s"
        if process.returncode != 0:
            words = "\n".join(output.splitlines()[:40])
            pytest.fail(f"{program}, {procs} ranks, {self.mpi}:\n{words}", pytrace=False)
        return output


def build_kernels(mpi: Mpi) -> Kernels:
    """Configures and builds in the checkout's build directory of this MPI."""
    build = build_directory(mpi)
    options = [f"-DMPI_C_COMPILER={mpi.mpicc}", f"-DMPIEXEC_EXECUTABLE={mpi.mpiexec}"]
    for command in (
        ["cmake", "-S", str(CHECKOUT / "kernels"), "-B", str(build), *options],
        ["cmake", "--build", str(build), "--parallel", "2"],
    ):
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode != 0:
            pytest.fail(f"{' '.join(command)}:\n{done.stdout}{done.stderr}", pytrace=False)
    return Kernels(mpi, build)


@pytest.fixture(scope="session", params=MPIS)
def kernels(request, require) -> Kernels:
    found = {mpi.name: mpi for mpi in find_mpis()}
    require(request.param, request.param in found, "no mpicc and mpiexec of this family found")
    return build_kernels(found[request.param])
