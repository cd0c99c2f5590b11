"""The wheel: what is in it, and a campaign by it where there is no checkout."""

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

from tests import abi
from tests.conftest import Require, by_day
from tests.kernels.conftest import finish
from tests.kernels.test_abi import libraries
from tests.processes import TIMEOUT_S
from tests.test_metadata import PROJECT
from tuner.machine.directories import search_path
from tuner.machine.mpi import Mpi, find_mpis, identify, launch
from tuner.paths import CHECKOUT

PARTS = ("checks", "dashboard", "kernels", "switchpoint", "templates", "tuner")
LEFT_OUT = ("kernels/tests/", "templates/packages/")
PROGRAM = """
#include <stdio.h>
#include <switchpoint.h>
int main(void) {
  MPI_Init(NULL, NULL);
  swp_plan *plan;
  int error = swp_discovery_plan(MPI_COMM_WORLD, "auto", NULL, &plan) || swp_plan_free(&plan);
  int one = 1, sum = 0;
  MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  puts(swp_version());
  MPI_Finalize();
  return error || sum != 1;
}
"""
TABLE = "switchpoint-table 1\nrule op=allreduce method=hypercube\n"
SET_HERE = ("PYTHONPATH", "SWITCHPOINT_RESULTS", "XDG_CACHE_HOME", "XDG_STATE_HOME")


def build(place: Path, **environment: str) -> Path:
    """Build the wheel by what pyproject.toml names."""
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", CHECKOUT]
    subprocess.run([*command, "--wheel-dir", place], check=True, env=os.environ | environment)
    (wheel,) = place.glob("*.whl")
    return wheel


@pytest.mark.check
def test_all_of_the_wheel_is_one_package(tmp_path: Path) -> None:
    """Also where git takes the checkout for another user's."""
    wheel = build(tmp_path, GIT_TEST_ASSUME_DIFFERENT_OWNER="1", GIT_CONFIG_GLOBAL=os.devnull)
    name = f"switchpoint-{PROJECT['version']}"
    assert wheel.name == f"{name}-py3-none-any.whl"
    with ZipFile(wheel) as archive:
        names = set(archive.namelist())
        metadata = archive.read(f"{name}.dist-info/METADATA").decode()
        commit = archive.read("switchpoint/kernels/commit.txt").decode()
    assert {file.split("/")[0] for file in names} == {"switchpoint", f"{name}.dist-info"}
    assert f"License-Expression: {PROJECT['license']}\n" in metadata
    listed = subprocess.run(
        ["git", "ls-files", *PARTS], cwd=CHECKOUT, capture_output=True, text=True, check=True
    )
    wanted = {file for file in listed.stdout.split() if not file.startswith(LEFT_OUT)}
    assert wanted <= {f.removeprefix("switchpoint/") for f in names} | names
    described = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=CHECKOUT, capture_output=True, text=True, check=True
    )
    assert described.stdout.startswith(commit.removesuffix("-dirty"))


@pytest.mark.check
def test_make_wheel_fetches_nothing() -> None:
    """What builds it is in .venv since that was made."""
    command = ["make", "--old-file=.venv/ready-run", "wheel"]
    subprocess.run(command, cwd=CHECKOUT, check=True, env=os.environ | {"PIP_NO_INDEX": "1"})


def without_tools(place: Path) -> str:
    """Return a PATH with what this machine has, but nothing to build with."""
    copies = []
    for number, directory in enumerate(os.environ["PATH"].split(os.pathsep)):
        copies.append(place / str(number))
        copies[-1].mkdir(parents=True)
        for program in Path(directory).glob("*"):
            if program.name not in ("cc", "cmake", "make"):
                (copies[-1] / program.name).symlink_to(program)
    return os.pathsep.join(map(str, copies))


def preloaded(installed: Path, environment: Path, program: Path) -> str:
    """Return what a program by the MPI's own handles says under an installation's preload."""
    source = CHECKOUT / "kernels" / "examples" / "jacobi.c"
    options = ["-I", source.parent, source.with_name("result.c"), "-lm", "-o", program]
    subprocess.run([environment / "bin" / "mpicc", source, *options], check=True)
    preload = installed / "lib" / "libswitchpoint_pmpi.so"
    answer = subprocess.run(
        [environment / "bin" / "mpiexec", "-genv", "LD_PRELOAD", preload, "-n", "2", program],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
    )
    assert answer.returncode != 0
    return answer.stderr


def links(prefix: Path, installed: Path, mpi: Mpi, compiler: str, program: Path) -> None:
    """Run a C program of the standard ABI with a wheel's library, and its preload, under an MPI."""
    name = abi.soname()
    library = prefix / "lib" / name
    facts = subprocess.run(["readelf", "-d", library], capture_output=True, text=True, check=True)
    assert f"soname: [{name}]" in facts.stdout
    assert "[$ORIGIN/../lib:$ORIGIN/../lib/mpi]" in facts.stdout
    assert library.with_suffix("").read_text() == f"INPUT({name})\n"
    program.with_suffix(".c").write_text(PROGRAM)
    options = ["-I", prefix / "include", "-L", library.parent, f"-Wl,-rpath,{library.parent}"]
    command = [compiler, program.with_suffix(".c"), "-o", program, *options, "-lswitchpoint"]
    subprocess.run(command, check=True)
    table = program.with_suffix(".table")
    table.write_text(TABLE)
    preload = installed / "lib" / "libswitchpoint_pmpi.so"
    settings = {"SWITCHPOINT_TABLE": str(table), "SWITCHPOINT_REPORT": "1"}
    for preloads, env in (([], {}), ([preload], settings)):
        start = launch(mpi, 1, preload=preloads)
        whole = os.environ | start.env | {"LD_LIBRARY_PATH": str(libraries(mpi))} | env
        done = finish([*start.argv_prefix, str(program)], whole, TIMEOUT_S)
        assert (done.returncode, done.stdout) == (0, f"{PROJECT['version']}\n"), done.stderr
        assert ("allreduce by hypercube: " in done.stderr) == bool(preloads), done.stderr


def loads(library: Path, mpi: Mpi) -> None:
    """Load the library of a wheel into Python after that of an MPI."""
    code = "import ctypes, sys\nfor each in sys.argv[1:]: loaded = ctypes.CDLL(each)\n"
    code += "loaded.swp_version.restype = ctypes.c_char_p; print(loaded.swp_version().decode())"
    python = [sys.executable, "-c", code, libraries(mpi) / "libmpi_abi.so.1", library]
    said = subprocess.run(python, capture_output=True, text=True, timeout=TIMEOUT_S)
    assert (said.returncode, said.stdout) == (0, f"{PROJECT['version']}\n"), said.stderr


def installed_in(environment: Path, wheel: Path, *needed: str) -> Path:
    """Install a wheel, and what is needed beside it, in a new environment; return its package."""
    subprocess.run([sys.executable, "-m", "venv", environment], check=True)
    pip = [environment / "bin" / "pip", "install", "--quiet"]
    subprocess.run([*pip, wheel, *needed], check=True)
    return next(environment.glob("lib/*/site-packages/switchpoint"))


def run(environment: Path, home: Path, mpi: str, path: str, *arguments: str) -> dict[str, Any]:
    """Run a campaign at home; return what it says as JSON."""
    home.mkdir()
    options = ["--name=collective.*kind=bcast", "--tag=smoke"]
    answer = subprocess.run(
        [
            *(environment / "bin" / "switchpoint", "run", "--minutes", "0.6", "--json"),
            *("--environment", mpi, *arguments, "--", *options),
        ],
        cwd=home,
        env=os.environ | {"HOME": str(home), "PATH": path},
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
    )
    assert answer.returncode == 0, answer.stderr + answer.stdout
    document: dict[str, Any] = json.loads(answer.stdout)
    return document


def measure(environment: Path, home: Path, mpi: str, path: str) -> tuple[dict[str, str], Path]:
    """Measure a campaign at home; return the header of a raw file, and the installation."""
    run(environment, home, mpi, path)
    raw_files = list(home.glob(".local/state/switchpoint/results/*/*/*.jsonl"))
    assert raw_files
    (installed,) = home.glob(".cache/switchpoint/install/*")
    return json.loads(raw_files[0].read_text().splitlines()[0]), installed


def assert_untouched(package: Path, *more: str) -> None:
    """Assert that a package has its parts and nothing else."""
    files = {path.name for path in package.iterdir()} - {"__pycache__"}
    assert files == {"__init__.py", "__main__.py", *PARTS, *more} - {"switchpoint"}


@pytest.fixture
def nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in SET_HERE:
        monkeypatch.delenv(name, raising=False)


@pytest.mark.usefixtures("nothing_set")
@pytest.mark.parametrize(
    "does", by_day([pytest.param("plans", marks=pytest.mark.check)], ["plans", "measures"])
)
def test_a_wheel_measures_without_a_checkout(does: str, require: Require, tmp_path: Path) -> None:
    """By day it plans only, beside the packages of this environment."""
    require("mpi", bool(find_mpis()), "no MPI is installed")
    environment = tmp_path / "venv"
    no_others = ["--no-deps"] * (does == "plans")
    package = installed_in(environment, build(tmp_path, SWITCHPOINT_PREBUILT="0"), *no_others)
    mpi = find_mpis()[0]
    if does == "plans":
        package.with_name("others.pth").write_text(sysconfig.get_path("purelib"))
        planned = run(environment, tmp_path / "home", mpi.name, search_path(), "--dry-run")
        assert {case["operation"] for case in planned["cases"]} == {"bcast"}
        assert_untouched(package)
        return
    header, installed = measure(environment, tmp_path / "home", mpi.name, search_path())
    assert header["commit"] != "unknown"
    assert not (installed / "lib" / "mpi").exists()
    # The user's own build of all, and the package for Python.
    configure = ["cmake", "-S", package / "kernels", "-B", tmp_path / "build"]
    subprocess.run([*configure, f"-DMPI_C_COMPILER={mpi.mpicc}"], check=True)
    python = package / "kernels" / "python"
    pip = [environment / "bin" / "pip", "install", "--quiet"]
    subprocess.run([*pip, "--no-deps", python], check=True)
    assert {path.name for path in python.iterdir()} == {
        *("LICENSE", "README.md", "pyproject.toml", "switchpoint_mpi")
    }
    assert_untouched(package)


@pytest.mark.nightly
@pytest.mark.usefixtures("nothing_set")
@pytest.mark.parametrize(
    ("family", "library"),
    [("mpich", "MPICH"), ("intelmpi", "Intel(R) MPI")],
    ids=["mpich", "intelmpi"],
)
def test_a_prebuilt_wheel_measures_without_a_compiler(
    family: str, library: str, require: Require, tmp_path: Path
) -> None:
    compiler = shutil.which("mpicc_abi")
    require("abi", compiler is not None, "no mpicc_abi on the path")
    environment = tmp_path / "venv"
    needed = ["mpich"] if family == "mpich" else []  # Intel's is on the path
    package = installed_in(environment, build(tmp_path, SWITCHPOINT_PREBUILT="1"), *needed)
    own = identify(*(str(environment / "bin" / name) for name in ("mpicc", "mpiexec")))
    mpi = own or next((each for each in find_mpis() if each.family == family), None)
    require(family, mpi is not None, f"no {library} on the path")
    path = without_tools(tmp_path / "bin")
    header, installed = measure(environment, tmp_path / "home", family, path)
    assert header["commit"] != "unknown"
    assert library in header["mpi_library"]
    assert (installed / "lib" / "mpi").is_symlink()
    if own:
        assert "built for the standard ABI" in preloaded(installed, environment, tmp_path / "app")
    links(package / "prebuilt", installed, mpi, compiler, tmp_path / "linked")
    loads(package / "prebuilt" / "lib" / abi.soname(), mpi)
    assert_untouched(package, "prebuilt")
