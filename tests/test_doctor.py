"""The doctor reports what a machine lacks, and how to get it."""

import os
import shutil
import subprocess
import sys
from types import SimpleNamespace

import pytest

from checks.kernels import build_kernels
from tuner.machine import doctor
from tuner.machine.mpi import find_mpis
from tuner.paths import CHECKOUT


def found() -> dict[str, str]:
    return {part.name: part.found for part in doctor.examine()}


def test_what_is_here_is_named_with_its_version():
    parts = found()
    for mpi in find_mpis():
        assert mpi.version in parts[mpi.name]
        assert mpi.mpicc in parts[mpi.name]
    assert doctor.missing(doctor.examine()) == []


def test_hwloc_is_what_pkg_config_finds(tmp_path, monkeypatch, require):
    require("hwloc", shutil.which("pkg-config") is not None, "no pkg-config on the path")
    (tmp_path / "hwloc.pc").write_text("Name: hwloc\nDescription: a\nVersion: 2.99\n")
    monkeypatch.setenv("PKG_CONFIG_PATH", str(tmp_path))
    assert found()["hwloc"] == "2.99"
    monkeypatch.setenv("PKG_CONFIG_LIBDIR", "/nowhere")
    monkeypatch.setenv("PKG_CONFIG_PATH", "")
    assert found()["hwloc"] == ""


def test_programs_that_do_not_end_are_left(tmp_path, monkeypatch):
    for name in ("pkg-config", "make"):
        (tmp_path / name).write_text("#!/bin/sh\nexec sleep 600\n")
        (tmp_path / name).chmod(0o700)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(sys, "prefix", sys.base_prefix)
    monkeypatch.setattr(doctor, "ANSWER_S", 0.2)
    monkeypatch.setattr(doctor, "find_mpis", list)
    said: list[str] = []
    parts = {part.name: part.found for part in doctor.examine(said.append)}
    assert parts["make"].startswith("does not run")
    assert parts["hwloc"] == parts["fftw3"] == ""
    assert said == ["looking for MPIs, programs and libraries, for 0.2 s each at most"]


def test_a_bare_machine_gets_advice(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setattr(sys, "prefix", sys.base_prefix)
    parts = doctor.examine()
    assert doctor.missing(parts) == ["an MPI", "C compiler", "make", "cmake", "reframe"]
    assert all(part.advice for part in parts if part.required and not part.found)
    (tmp_path / "swpbench").touch(0o755)  # built elsewhere, as by Spack
    assert doctor.missing(doctor.examine()) == ["an MPI", "reframe"]


@pytest.mark.parametrize(
    ("named", "here", "found"),
    [("", "clang", True), ("own-cc -m64", "own-cc", True), ("own-cc", "cc", False)],
)
def test_the_c_compiler_is_that_of_cmake(named, here, found, tmp_path, monkeypatch):
    (tmp_path / here).write_text("#!/bin/sh\n")
    (tmp_path / here).chmod(0o700)
    monkeypatch.setenv("CC", named)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "prefix", sys.base_prefix)
    assert ("C compiler" in doctor.missing(doctor.examine())) != found


@pytest.mark.parametrize(("version", "found"), [("3.18.4", False), ("3.20.0", True), ("4.1", True)])
def test_a_cmake_that_cannot_build_the_kernels_is_missing(version, found, tmp_path, monkeypatch):
    cmake = tmp_path / "cmake"
    cmake.write_text(f"#!/bin/sh\necho cmake version {version}\n")
    cmake.chmod(0o700)
    for program in ("mpicc", "cc", "make"):
        (tmp_path / program).touch(0o755)
    monkeypatch.delenv("CC", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "prefix", sys.base_prefix)
    (part,) = (part for part in doctor.examine() if part.name == "cmake")
    line = f"cmake version {version} ({cmake})"
    assert part.found == (line if found else "")
    assert (part.advice == f"{line} is too old: pip install cmake") != found
    check = SimpleNamespace(current_environ=SimpleNamespace(cc="mpicc"))
    lacking = build_kernels.find_lacking(check)
    assert lacking == [] if found else lacking == ["cmake 3.20 or later"]
    (later := tmp_path / "later").mkdir()
    (later / "cmake").write_text("#!/bin/sh\necho cmake version 3.31\n")
    (later / "cmake").chmod(0o700)
    behind = f"{tmp_path}{os.pathsep}{later}"
    assert doctor.find_cmake(behind) == str((tmp_path if found else later) / "cmake")


def test_the_cmake_that_is_asked_for_is_the_one_that_the_kernels_require():
    lines = (CHECKOUT / "kernels" / "CMakeLists.txt").read_text().splitlines()
    assert lines[0] == f"cmake_minimum_required(VERSION {doctor.OLDEST_CMAKE})"


def test_one_mpi_is_enough(monkeypatch):
    mpi = find_mpis()[0]
    monkeypatch.setattr(doctor, "find_mpis", lambda: [mpi])
    assert "an MPI" not in doctor.missing(doctor.examine())


def test_the_setup_takes_no_packages_of_modules_for_installed(tmp_path):
    python = tmp_path / "python"
    python.write_text('#!/bin/sh\necho "PYTHONPATH is ${PYTHONPATH-unset}"\nexit 1\n')
    python.chmod(0o700)
    env = os.environ | {"PYTHONPATH": "/modules", "PYTHON": str(python)}
    said = subprocess.run(["sh", CHECKOUT / "bootstrap.sh"], env=env, stdout=subprocess.PIPE)
    assert (said.returncode, said.stdout) == (1, b"PYTHONPATH is unset\n")


def write_script(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o700)


@pytest.mark.parametrize(
    ("place", "its_python", "is_made"),
    [(".", "same", False), (CHECKOUT, "same", True), (".", "other", True)],
)
def test_an_environment_of_another_place_or_python_is_made_anew(
    place, its_python, is_made, tmp_path
):
    python, programs = tmp_path / "python", tmp_path / ".venv" / "bin"
    write_script(python, '[ "$1" = -c ] && echo same || { echo "$*"; exit 1; }')
    write_script(programs / "python", f"echo {its_python}")
    version = f"pip 26 from {tmp_path / place}/.venv/lib/python3.11/site-packages/pip (python 3.11)"
    write_script(programs / "pip", f'[ "$1" = --version ] && echo "{version}"')
    shutil.copy2(CHECKOUT / "bootstrap.sh", tmp_path)
    env = os.environ | {"PYTHON": str(python)}
    said = subprocess.run(["sh", "bootstrap.sh"], cwd=tmp_path, env=env, stdout=subprocess.PIPE)
    assert said.returncode == 1  # as neither can install
    assert (b"-m venv --clear .venv" in said.stdout) == is_made


def test_a_python_that_does_not_start_hides_no_other(tmp_path):
    write_script(tmp_path / ".venv" / "bin" / "python", "exit 127")
    (tmp_path / ".venv" / "bin" / "python3").symlink_to("python")
    write_script(tmp_path / "python3", "echo started; exit 1")
    shutil.copy2(CHECKOUT / "bootstrap.sh", tmp_path)
    env = os.environ | {"PYTHON": "", "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    said = subprocess.run(["sh", "bootstrap.sh"], cwd=tmp_path, env=env, stdout=subprocess.PIPE)
    assert (said.returncode, said.stdout) == (1, b"started\n")


def test_the_setup_installs_what_is_here_into_its_environment(tmp_path):
    python, programs = tmp_path / "python", tmp_path / ".venv" / "bin"
    for path in (python, programs / "python"):
        write_script(path, "echo same")
    version = f"pip 26 from {tmp_path}/.venv/lib/python3.11/site-packages/pip (python 3.11)"
    asked = '[ "$PIP_USER$PIP_UPGRADE" = 00 ] && echo "$@" >>asked'
    write_script(programs / "pip", f'[ "$1" != --version ] || echo "{version}"; {asked}')
    write_script(programs / "cmake", "")
    (tmp_path / "kernels").mkdir()
    for name in ("bootstrap.sh", "kernels/CMakeLists.txt"):
        shutil.copy2(CHECKOUT / name, tmp_path / name)
    env = os.environ | {"PYTHON": str(python), "PIP_USER": "1", "PIP_UPGRADE": "1"}
    subprocess.run(["sh", "bootstrap.sh", "test"], cwd=tmp_path, env=env, check=True)
    _, tools, own, all_else = (tmp_path / "asked").read_text().splitlines()
    assert "switchpoint" not in tools
    assert own.endswith("--no-build-isolation --no-deps --editable .")
    assert all_else.endswith(" switchpoint[test]") and "--no-build-isolation" not in all_else


@pytest.mark.parametrize(
    ("place", "python", "is_made"), [(".", "", False), (CHECKOUT, "", True), (".", "python3", True)]
)
def test_make_sets_up_again_for_another_place_or_python(
    place, python, is_made, tmp_path, monkeypatch
):
    for name in ("Makefile", "bootstrap.sh", "pyproject.toml"):
        shutil.copy2(CHECKOUT / name, tmp_path / name)
    write_script(tmp_path / ".venv" / "bin" / "python", f"echo {tmp_path / place}")
    (tmp_path / ".venv" / "ready-run").touch()
    monkeypatch.setenv("PYTHON", python)
    monkeypatch.delenv("MAKEFLAGS", raising=False)  # of a make that tests
    said = subprocess.run(
        ["make", "-n", "run"], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert ("./bootstrap.sh run" in said.stdout) == is_made
