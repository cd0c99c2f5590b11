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


def test_the_environment_of_another_checkout_is_made_anew(tmp_path):
    python, pip = tmp_path / "python", tmp_path / ".venv" / "bin" / "pip"
    python.write_text('#!/bin/sh\n[ "$1" = -c ] || { echo "$*"; exit 1; }\n')
    shutil.copy2(CHECKOUT / "bootstrap.sh", tmp_path)
    pip.parent.mkdir(parents=True)
    env = os.environ | {"PYTHON": str(python)}
    for place, is_made in ((tmp_path, False), (CHECKOUT, True)):
        version = f"pip 26 from {place}/.venv/lib/python3.11/site-packages/pip (python 3.11)"
        pip.write_text(f'#!/bin/sh\n[ "$1" = --version ] && echo "{version}"\n')
        for program in (python, pip):
            program.chmod(0o700)
        said = subprocess.run(["sh", "bootstrap.sh"], cwd=tmp_path, env=env, stdout=subprocess.PIPE)
        assert said.returncode == 1  # as neither can install
        assert (b"-m venv --clear .venv" in said.stdout) == is_made


def test_a_copied_checkout_is_bootstrapped(tmp_path):
    for name in ("Makefile", "bootstrap.sh", "pyproject.toml"):
        shutil.copy2(CHECKOUT / name, tmp_path / name)
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv" / "ready-run").touch()
    for place, is_made in ((tmp_path.resolve(), False), (CHECKOUT, True)):
        (tmp_path / ".venv" / "place").write_text(f"{place}\n")
        said = subprocess.run(
            ["make", "-n", "run"], cwd=tmp_path, capture_output=True, text=True, check=True
        )
        assert ("./bootstrap.sh run" in said.stdout) == is_made
