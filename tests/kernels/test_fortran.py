"""The Fortran module under every MPI: its own tests, the example, and an installation."""

import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import Require, by_day
from tuner.machine.mpi import launch
from tuner.paths import CHECKOUT

from .conftest import MPIS, Kernels, finish
from .test_fragments import fragments
from .test_library import run

KERNELS = CHECKOUT / "kernels"
MODULE = KERNELS / "fortran" / "switchpoint.f90"
HALO = KERNELS / "examples" / "halo.f90"
FRAME = Path(__file__).with_name("fragment.f90")
PROJECT = """cmake_minimum_required(VERSION 3.20)
project(user LANGUAGES C Fortran)
find_package(switchpoint REQUIRED COMPONENTS Fortran)
add_executable(halo {source})
target_link_libraries(halo PRIVATE switchpoint::switchpoint_fortran)
"""


@pytest.fixture
def fortran(kernels: Kernels, require: Require) -> Kernels:
    """Return kernels that have the module."""
    built = any((kernels.build / "fortran").glob("libswitchpoint_fortran.*"))
    require("fortran", built, f"no gfortran, or no mpifort with mpi_f08 beside {kernels.mpi.mpicc}")
    return kernels


def wrapper(kernels: Kernels) -> str:
    """Return the wrapper of the Fortran compiler beside mpicc."""
    mpicc = Path(kernels.mpi.mpicc)
    return str(mpicc.with_name(mpicc.name.replace("mpicc", "mpifort")))


def installed(kernels: Kernels, prefix: Path) -> dict[str, str]:
    """Install the build, and return the environment in which pkg-config and CMake find it."""
    subprocess.run(
        ["cmake", "--install", kernels.build, "--prefix", prefix], check=True, capture_output=True
    )
    (places,) = prefix.glob("lib*/pkgconfig")
    return os.environ | {"PKG_CONFIG_PATH": str(places), "CMAKE_PREFIX_PATH": str(prefix)}


def run_halo(kernels: Kernels, program: Path) -> str:
    """Return what a halo program prints on two ranks."""
    start = launch(kernels.mpi, 2, build=kernels.build)
    done = finish([*start.argv_prefix, str(program), "8", "1024"], os.environ | start.env, 60)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("procs", [1, 2, 3, 4])
@pytest.mark.parametrize("program", ["swp_module_f08", "swp_module_mpi"])
def test_the_module_does_what_the_library_does(
    fortran: Kernels, program: str, procs: int, tmp_path: Path
) -> None:
    assert run(fortran, program, procs, tmp_path / "module.table") > 70


@pytest.mark.parametrize("program", ["swp_module_f08", "swp_module_mpi"])
def test_an_error_that_nobody_looks_at_ends_the_job(fortran: Kernels, program: str) -> None:
    done = fortran.run(f"tests/{program}", ["abort"], 1)  # MPICH may lose the words of several
    assert done.returncode != 0
    assert re.search(r"switchpoint: unknown method.*: .*no_such", done.stderr)


@pytest.mark.parametrize("procs", [1, 2, 4, 7])
def test_the_example_prints_what_that_in_c_prints(
    fortran: Kernels, tmp_path: Path, procs: int
) -> None:
    table = tmp_path / "halo.table"
    table.write_text("switchpoint-table 1\nrule op=exchange bytes=100:* method=alltoallv\n")
    env = {"SWITCHPOINT_TABLE": str(table)}
    said = [
        fortran.run(f"examples/{program}", ["8", "1000"], procs, env)
        for program in ("swp_example_halo", "swp_example_halo_fortran")
    ]
    assert [each.returncode for each in said] == [0, 0], said
    assert said[0].stdout == said[1].stdout
    assert procs == 1 or "exchange alltoallv" in said[0].stdout


def test_the_example_measures_and_refuses_senseless_sizes(fortran: Kernels, tmp_path: Path) -> None:
    table = tmp_path / "user.table"
    env = {"SWITCHPOINT_USER_TABLE": str(table)}
    program = "examples/swp_example_halo_fortran"
    assert fortran.run(program, ["measure", "64"], 2, env).returncode == 0
    assert "rule op=exchange" in table.read_text()
    assert "usage: " in fortran.run(program, [], 2).stdout
    for size in ("0", "x", "1073741825"):
        done = fortran.run(program, [size], 1)
        assert done.returncode != 0
        assert f"'{size}' is not a number of bytes" in done.stderr


def compiler(kernels: Kernels, place: Path) -> Callable[[Path], Path]:
    """Install the build; return the function that compiles a program in place and returns it."""
    env = installed(kernels, place / "prefix")
    asked = ["pkg-config", "--cflags", "--libs", "switchpoint-fortran"]
    flags = subprocess.run(asked, env=env, capture_output=True, text=True, check=True).stdout

    def compiled(source: Path) -> Path:
        command = [wrapper(kernels), source, *flags.split(), "-I", place, "-o", place / "program"]
        done = subprocess.run(command, cwd=place, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return place / "program"

    return compiled


def test_programs_link_with_pkg_config(fortran: Kernels, tmp_path: Path) -> None:
    program = compiler(fortran, tmp_path)(HALO)
    assert run_halo(fortran, program).count("exchange direct") == 2


@pytest.mark.parametrize("kernels", by_day(["openmpi"], MPIS), indirect=True)
def test_fragments_of_the_documents_compile_and_run(fortran: Kernels, tmp_path: Path) -> None:
    compiled = compiler(fortran, tmp_path)
    found = fragments("fortran")
    assert len(found) >= 4
    for page, line, text in found:
        (tmp_path / "fragment.inc").write_text(text)
        done = fortran.run(str(compiled(FRAME)), [], 2)
        assert (done.returncode, done.stderr) == (0, ""), (page, line)


@pytest.mark.parametrize("kernels", by_day(["openmpi"], MPIS), indirect=True)
def test_programs_link_with_cmake(fortran: Kernels, tmp_path: Path) -> None:
    env = installed(fortran, tmp_path / "prefix")
    (tmp_path / "CMakeLists.txt").write_text(PROJECT.format(source=HALO))
    build = tmp_path / "build"
    wrappers = [
        f"-DMPI_C_COMPILER={fortran.mpi.mpicc}",
        f"-DMPI_Fortran_COMPILER={wrapper(fortran)}",
    ]
    for command in (["-S", tmp_path, "-B", build, *wrappers], ["--build", build]):
        done = subprocess.run(["cmake", *command], env=env, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
    assert run_halo(fortran, build / "halo").count("exchange direct") == 2


def test_the_modules_constants_are_those_of_the_header() -> None:
    """Enumerators count up from 0 on both sides; what else is named has a value."""
    header = (KERNELS / "include" / "switchpoint.h").read_text()
    operations = (KERNELS / "include" / "switchpoint_operations.def").read_text()
    module = MODULE.read_text()
    errors = re.search(r"enum swp_error \{(.*?)\};", header, re.DOTALL)
    assert errors is not None
    expected = [
        re.findall(r"\bSWP_\w+", re.sub(r"/\*.*?\*/", "", errors[1], flags=re.DOTALL)),
        [f"SWP_{name}" for name in re.findall(r"^OPERATION\((\w+),", operations, re.MULTILINE)],
    ]
    enums = re.findall(r"^  enum, bind\(C\)\n(.*?)^  end enum", module, re.DOTALL | re.MULTILINE)
    assert [re.findall(r"\bSWP_\w+", each) for each in enums] == expected
    flags = dict(re.findall(r"\b(SWP_\w+) = (\d)", module)) | {"SWP_EXCHANGE": "0"}
    for name, value in re.findall(
        r"^#define (SWP_(?:ESTIMATE|SAME_COMM|MEASURE)) (\d)u", header, re.M
    ):
        assert flags[name] == value
    for value, name in enumerate(re.findall(r"^  (SWP_PLACEMENT_\w+)", header, re.MULTILINE)):
        assert flags[name] == str(value)
