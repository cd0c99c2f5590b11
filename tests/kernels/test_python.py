"""The Python package under every MPI: its own tests, the example, and the library that it finds."""

import importlib.util
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.conftest import Require
from tests.foreign.programs import mpi_libraries
from tests.processes import TIMEOUT_S
from tuner.machine.mpi import launch
from tuner.paths import CHECKOUT

from .conftest import Kernels, build_kernels, finish
from .test_fragments import fragments
from .test_library import run

KERNELS = CHECKOUT / "kernels"
PACKAGE = KERNELS / "python" / "switchpoint_mpi"
FRAME = Path(__file__).with_name("fragment.py")
PARTS = ("BENCH", "EXAMPLES", "FORTRAN", "PMPI", "TESTS")
SHARED = ("-DBUILD_SHARED_LIBS=ON", *(f"-DSWITCHPOINT_{part}=OFF" for part in PARTS))


@dataclass(frozen=True)
class Python:
    """Python with mpi4py and the package, under one MPI."""

    kernels: Kernels
    library: Path

    def run(
        self,
        program: str | Path,
        *arguments: str | Path,
        procs: int,
        env: dict[str, str] | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Run a program on ranks; an exception on one ends the job."""
        start = launch(self.kernels.mpi, procs, build=self.kernels.build)
        command = [*start.argv_prefix, sys.executable, "-m", "mpi4py", program, *arguments]
        paths = [str(PACKAGE.parent), os.environ.get("PYTHONPATH", "")]
        own = {
            "MPI4PY_MPIABI": "openmpi" if self.kernels.mpi.family == "openmpi" else "mpich",
            "PYTHONPATH": os.pathsep.join(filter(None, paths)),
            "SWITCHPOINT_LIBRARY": str(self.library),
        }
        whole = os.environ | start.env | mpi_libraries(self.kernels) | own | (env or {})
        return finish([str(part) for part in command], whole, TIMEOUT_S)


def shared_library(kernels: Kernels) -> Path:
    return build_kernels(kernels.mpi, "shared", *SHARED) / "libswitchpoint.so"


@pytest.fixture
def python(kernels: Kernels, require: Require) -> Python:
    require("mpi4py", importlib.util.find_spec("mpi4py") is not None, "mpi4py is not installed")
    return Python(kernels, shared_library(kernels))


@pytest.mark.parametrize("procs", [1, 2, 3, 4])
def test_the_package_does_what_the_library_does(python: Python, procs: int, tmp_path: Path) -> None:
    program = KERNELS / "tests" / "python" / "plans.py"
    done = python.run(program, tmp_path / "plans.table", procs=procs)
    assert done.returncode == 0, done.stdout + done.stderr
    found = re.fullmatch(rf"plans\.py: (\d+) cases passed on {procs} ranks\n", done.stdout)
    assert found is not None and int(found[1]) > 80, done.stdout


@pytest.mark.parametrize("procs", [1, 2, 4, 7])
def test_the_example_prints_what_that_in_c_prints(
    python: Python, tmp_path: Path, procs: int
) -> None:
    table = tmp_path / "halo.table"
    table.write_text("switchpoint-table 1\nrule op=exchange bytes=100:* method=alltoallv\n")
    env = {"SWITCHPOINT_TABLE": str(table)}
    ours = python.run(KERNELS / "examples" / "halo.py", "8", "1000", procs=procs, env=env)
    of_c = python.kernels.run("examples/swp_example_halo", ["8", "1000"], procs, env)
    assert [ours.returncode, of_c.returncode] == [0, 0], ours.stderr + of_c.stderr
    assert ours.stdout == of_c.stdout
    assert procs == 1 or "exchange alltoallv" in ours.stdout


def test_the_example_measures_and_refuses_senseless_sizes(python: Python, tmp_path: Path) -> None:
    table = tmp_path / "user.table"
    env = {"SWITCHPOINT_USER_TABLE": str(table)}
    program = KERNELS / "examples" / "halo.py"
    assert python.run(program, "measure", "64", procs=2, env=env).returncode == 0
    assert "rule op=exchange" in table.read_text()
    assert "usage: " in python.run(program, procs=2).stdout
    for size in ("0", "x", "1073741825"):
        done = python.run(program, size, procs=1)
        assert done.returncode != 0
        assert f"'{size}' is not a number of bytes" in done.stderr


def test_fragments_of_the_documents_run(python: Python, tmp_path: Path) -> None:
    found = fragments("python")
    assert len(found) >= 5
    for page, line, text in found:
        fragment = tmp_path / "fragment.py"
        fragment.write_text(text)
        done = python.run(FRAME, fragment, page, str(line), procs=2)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", ""), (page, line)


def test_the_shared_library_outlives_a_plug_in(kernels: Kernels, tmp_path: Path) -> None:
    library, plug_in = shared_library(kernels), tmp_path / "plug_in.so"
    options = ["-shared", "-fPIC", f"-I{KERNELS / 'include'}", f"-Wl,-rpath,{library.parent}"]
    source = KERNELS / "tests" / "plug_in.c"
    subprocess.run([kernels.mpi.mpicc, *options, source, library, "-o", plug_in], check=True)
    assert run(kernels, "swp_unloaded", 2, plug_in) == 1


@pytest.mark.parametrize("kernels", ["mpich"], indirect=True)
def test_a_library_of_another_mpi_is_refused(python: Python, kernels_of) -> None:
    other = {"SWITCHPOINT_LIBRARY": str(shared_library(kernels_of("openmpi")))}
    program = KERNELS / "examples" / "halo.py"
    done = python.run(program, "8", procs=1, env=other)
    assert done.returncode != 0
    assert re.search(r"is built for Open MPI .*, but mpi4py uses MPICH .*: build it", done.stderr)
    for named, sought in {"no/such.so": "no/such.so", "": "libswitchpoint.so.1"}.items():
        done = python.run(program, "8", procs=1, env={"SWITCHPOINT_LIBRARY": named})
        message = rf"LibraryError: {re.escape(sought)}: .*-DBUILD_SHARED_LIBS=ON"
        assert re.search(message, done.stderr), done.stderr


def test_the_packages_names_are_those_of_the_header() -> None:
    header = (KERNELS / "include" / "switchpoint.h").read_text()
    bare = re.sub(r"/\*.*?\*/", "", header, flags=re.DOTALL)
    errors = re.search(r"enum swp_error \{(.*?)\};", bare, re.DOTALL)
    statistics = re.search(r"struct swp_statistics \{(.*?)\};", bare, re.DOTALL)
    assert errors is not None and statistics is not None
    library, plans, sides = (
        (PACKAGE / f"{name}.py").read_text() for name in ("library", "plans", "collectives")
    )
    codes = re.findall(r"^    ([A-Z_]+) = (\d+)$", library, re.MULTILINE)
    names = [name.removeprefix("ERR_") for name in re.findall(r"\bSWP_(\w+)", errors[1])]
    assert codes == [(name, str(value)) for value, name in enumerate(names)]
    fields = re.search(r"class Statistics\(NamedTuple\):(.*?)\n\n\n", plans, re.DOTALL)
    assert fields is not None
    members = re.findall(r"(\w+)[,;]", statistics[1])
    assert re.findall(r"^    (\w+): ", fields[1], re.MULTILINE) == members
    rows = (KERNELS / "include" / "switchpoint_operations.def").read_text()
    collectives = re.findall(r"^OPERATION\(\w+, (\w+), \"vendor\"", rows, re.MULTILINE)
    assert re.findall(r'^    "(\w+)": _Sides', sides, re.MULTILINE) == collectives
    functions = set(re.findall(r"\b(swp_\w+)\(", bare))
    assert set(re.findall(r'^    "(swp_\w+)":', library, re.MULTILINE)) <= functions
