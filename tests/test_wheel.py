"""The wheel: what is in it, and a campaign by it where there is no checkout."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests import abi
from tests.conftest import TIMEOUT_S
from tests.test_metadata import PROJECT
from tuner.machine.mpi import CHECKOUT, find_mpis

PARTS = ("checks", "dashboard", "kernels", "switchpoint", "templates", "tuner")
LEFT_OUT = ("kernels/tests/", "templates/packages/")
PROGRAM = """
#include <stdio.h>
#include <switchpoint.h>
int main(void) {
  MPI_Init(NULL, NULL);
  swp_plan *plan;
  int error = swp_discovery_plan(MPI_COMM_WORLD, "auto", NULL, &plan) || swp_plan_free(&plan);
  puts(swp_version());
  MPI_Finalize();
  return error;
}
"""
SET_HERE = ("PYTHONPATH", "SWITCHPOINT_RESULTS", "XDG_CACHE_HOME", "XDG_STATE_HOME")


def build(place: Path, **environment: str) -> Path:
    """Build the wheel by what pyproject.toml names."""
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", CHECKOUT]
    subprocess.run([*command, "--wheel-dir", place], check=True, env=os.environ | environment)
    (wheel,) = place.glob("*.whl")
    return wheel


@pytest.mark.check
def test_all_of_the_wheel_is_one_package(tmp_path: Path) -> None:
    wheel = build(tmp_path)
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


def without_tools(place: Path) -> str:
    """A PATH with what this machine has, but nothing to build with."""
    place.mkdir()
    for directory in reversed(os.environ["PATH"].split(os.pathsep)):
        for program in Path(directory).glob("*"):
            if program.name not in ("cc", "cmake", "make"):
                (place / program.name).unlink(missing_ok=True)
                (place / program.name).symlink_to(program)
    return str(place)


def preloaded(installed: Path, environment: Path, program: Path) -> str:
    """What a program by the MPI's own handles says under the preload of an installation."""
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


def links_and_loads(prefix: Path, environment: Path, program: Path) -> None:
    """A C program and Python use the shared library of a wheel, with the MPI of an environment."""
    name = f"libswitchpoint.so.{abi.number().partition('.')[0]}"
    library = prefix / "lib" / name
    facts = subprocess.run(["readelf", "-d", library], capture_output=True, text=True, check=True)
    assert f"soname: [{name}]" in facts.stdout
    assert "[$ORIGIN/../lib:$ORIGIN/../lib/mpi]" in facts.stdout
    assert library.with_suffix("").read_text() == f"INPUT({name})\n"
    program.with_suffix(".c").write_text(PROGRAM)
    options = ["-I", prefix / "include", "-L", library.parent, f"-Wl,-rpath,{library.parent}"]
    compiler = [environment / "bin" / "mpicc_abi", program.with_suffix(".c"), "-o", program]
    subprocess.run([*compiler, *options, "-lswitchpoint"], check=True)
    code = "import ctypes, sys\nfor each in sys.argv[1:]: loaded = ctypes.CDLL(each)\n"
    code += "loaded.swp_version.restype = ctypes.c_char_p; print(loaded.swp_version().decode())"
    python = [sys.executable, "-c", code, environment / "lib" / "libmpi_abi.so.1", library]
    for command in ([environment / "bin" / "mpiexec", "-n", "1", program], python):
        said = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S)
        assert (said.returncode, said.stdout) == (0, f"{PROJECT['version']}\n"), said.stderr


@pytest.mark.nightly
@pytest.mark.parametrize("prebuilt", [False, True], ids=["sources", "prebuilt"])
def test_a_wheel_measures_without_a_checkout(
    prebuilt: bool, require, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in SET_HERE:
        monkeypatch.delenv(name, raising=False)
    if prebuilt:
        require("abi", shutil.which("mpicc_abi") is not None, "no mpicc_abi on the path")
    wheel = build(tmp_path, SWITCHPOINT_PREBUILT=str(int(prebuilt)))
    environment, home = tmp_path / "venv", tmp_path / "home"
    home.mkdir()
    subprocess.run([sys.executable, "-m", "venv", environment], check=True)
    needed = ["mpich"] if prebuilt else []
    pip = [environment / "bin" / "pip", "install", "--quiet"]
    subprocess.run([*pip, wheel, *needed], check=True)
    path = without_tools(tmp_path / "bin") if prebuilt else os.environ["PATH"]
    options = ["--name=collective.*kind=bcast", "--tag=smoke"]
    mpi = "mpich" if prebuilt else find_mpis()[0].name
    arguments = ["--minutes", "0.6", "--json", "--environment", mpi, "--", *options]
    answer = subprocess.run(
        [environment / "bin" / "switchpoint", "run", *arguments],
        cwd=home,
        env=os.environ | {"HOME": str(home), "PATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=TIMEOUT_S,
    )
    assert answer.returncode == 0, answer.stdout
    raw_files = list(home.glob(".local/state/switchpoint/results/*/*/*.jsonl"))
    assert raw_files
    header = json.loads(raw_files[0].read_text().splitlines()[0])
    assert header["commit"] != "unknown"
    (installed,) = home.glob(".cache/switchpoint/install/*")
    assert (installed / "lib" / "mpi").is_symlink() == prebuilt
    package = next(environment.glob("lib/*/site-packages/switchpoint"))
    if prebuilt:
        assert "built for the standard ABI" in preloaded(installed, environment, tmp_path / "app")
        links_and_loads(package / "prebuilt", environment, tmp_path / "linked")
    else:  # the user's own build of all, and the package for Python
        configure = ["cmake", "-S", package / "kernels", "-B", tmp_path / "build"]
        subprocess.run([*configure, f"-DMPI_C_COMPILER={find_mpis()[0].mpicc}"], check=True)
        python = package / "kernels" / "python"
        subprocess.run([*pip, "--no-deps", python], check=True)
        assert {path.name for path in python.iterdir()} == {
            *("LICENSE", "README.md", "pyproject.toml", "switchpoint_mpi")
        }
    assert {path.name for path in package.iterdir()} - {"__pycache__"} == {
        *("__init__.py", "__main__.py", "checks", "dashboard", "kernels", "templates", "tuner"),
        *(["prebuilt"] if prebuilt else []),
    }
