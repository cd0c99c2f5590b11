"""Spack itself, where it is on the path: concretizes the environment, and nightly installs it.

No source is fetched: what Spack would have to download is given as external, from this Python and
this machine. The environment is a copy, so that the checkout gets no lock file.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import pytest
import yaml

from tuner.mpi import CHECKOUT, find_mpis

from .recipes import read

PARTS = ("checks", "dashboard", "docs", "kernels", "spack", "templates", "tests/data", "tuner")
FILES = ("README.md", "pyproject.toml", "spack.yaml")
BUILDERS = ("py-pip", "py-setuptools", "py-wheel")
PROGRAMS = {"cmake": "cmake", "gmake": "make", "pkgconf": "pkgconf"}
LIBRARIES = {"hwloc": "hwloc", "zlib": "zlib"}  # by pkg-config's names
VARIANTS = {"py-pandas": "~performance"}  # else an external has Spack's defaults
PIP_NAMES = {"reframe": "reframe-hpc", "py-flask-compress": "flask-compress"}


@dataclass(frozen=True)
class Spack:
    """Spack in a copy of the checkout, with externals of this machine."""

    path: str
    checkout: Path
    env: dict[str, str]

    def __call__(self, *arguments: str) -> str:
        answer = subprocess.run(
            [self.path, "-e", self.checkout, *arguments],
            env=self.env,
            capture_output=True,
            text=True,
        )
        assert answer.returncode == 0, answer.stdout + answer.stderr
        return answer.stdout

    def prefix(self, package: str) -> Path:
        return Path(self("location", "--install-dir", package).strip())


@pytest.fixture(scope="module")
def spack(require, tmp_path_factory) -> Spack:
    path = shutil.which("spack")
    require("spack", path is not None, "no spack on the path")
    mpich = next((mpi for mpi in find_mpis() if mpi.family == "mpich"), None)
    require("mpich", mpich is not None, "no MPICH, which spack.yaml asks for")
    place = tmp_path_factory.mktemp("spack")
    checkout, site = place / "checkout", place / "site"
    for name in PARTS:
        shutil.copytree(CHECKOUT / name, checkout / name)
    for name in FILES:
        shutil.copy(CHECKOUT / name, checkout)
    site.mkdir()
    settings = {
        "packages": externals(mpich, place),
        "config": {"install_tree": {"root": str(place / "opt")}},
    }
    for name, content in settings.items():
        (site / f"{name}.yaml").write_text(yaml.safe_dump({name: content}))
    return Spack(path, checkout, os.environ | {"SWITCHPOINT_SPACK_SITE": str(site)})


def externals(mpich, place: Path) -> dict:
    """What is here already, as Spack's packages.yaml has it."""
    # Debian's MPICH has other names for its programs than Spack looks for.
    bin = place / "mpich" / "bin"
    bin.mkdir(parents=True)
    (bin / "mpicc").symlink_to(mpich.mpicc)
    (bin / "mpiexec").symlink_to(mpich.mpiexec)
    (bin / "hydra_pmi_proxy").symlink_to(Path(mpich.mpiexec).with_name("hydra_pmi_proxy"))
    found = {"mpich": (mpich.version, place / "mpich")}
    python = ".".join(map(str, sys.version_info[:3]))
    found["python"] = (python, Path(sys.base_prefix))
    specs = [*read("py_switchpoint").dependencies, *BUILDERS]
    for name in {spec.split("@")[0] for spec in specs} - {"python"}:
        try:
            version = metadata.version(PIP_NAMES.get(name, name.removeprefix("py-")))
        except metadata.PackageNotFoundError:
            continue
        found[name] = (version, Path(sys.prefix))
    found |= dict(of_this_machine())
    return {"zlib-api": {"buildable": False}} | {
        name: {
            # What builds packages may be too old here, and is then to be had otherwise.
            "buildable": name in BUILDERS,
            "externals": [
                {"spec": f"{name}@{version}{VARIANTS.get(name, '')}", "prefix": str(prefix)}
            ],
        }
        for name, (version, prefix) in found.items()
    }


def of_this_machine() -> Iterator[tuple[str, tuple[str, Path]]]:
    """Programs and libraries that Spack would build, with version and prefix."""
    for name, program in PROGRAMS.items():
        if path := shutil.which(program):
            version = re.search(r"\d+(\.\d+)+", said(program, "--version"))
            yield name, (version[0], Path(path).parent.parent)
    for name, module in LIBRARIES.items():
        if version := said("pkg-config", "--modversion", module):
            prefix = said("pkg-config", "--variable=prefix", module)
            yield name, (version, Path(prefix))


def said(*command: str) -> str:
    """What a program prints; nothing when there is none, or it fails."""
    if shutil.which(command[0]) is None:
        return ""
    return subprocess.run(command, capture_output=True, text=True).stdout.strip()


def test_the_environment_concretizes(spack):
    concretized = spack("concretize")
    for name in (
        "switchpoint@0.1.0",
        "py-switchpoint@0.1.0",
        "py-dash-bootstrap-components",
        "mpich@",
    ):
        assert name in concretized


@pytest.mark.nightly
def test_the_kernels_install_and_pass_their_tests(spack):
    spack("install", "--test=root", "switchpoint")
    assert (spack.prefix("switchpoint") / "bin" / "swpbench").is_file()


@pytest.mark.nightly
def test_the_command_installs_and_can_be_imported(spack, require):
    builders = {path.name.split("-")[0] for path in Path(sys.prefix).glob("lib/*/site-packages/*")}
    enough = "wheel" in builders and int(metadata.version("setuptools").split(".")[0]) >= 68
    require(
        "spack", enough, "Spack would fetch wheel and setuptools >= 68, which this Python lacks"
    )
    spack("install", "--test=root", "py-switchpoint")
    assert (spack.prefix("py-switchpoint") / "bin" / "switchpoint").is_file()
    # Building leaves nothing in the checkout, whose build/ is for campaigns.
    assert not (spack.checkout / "build").exists()
    # What is not installed does not matter.
    (spack.checkout / "results").mkdir()
    assert spack("install", "py-switchpoint").count("[+] ") == 0


@pytest.mark.nightly
def test_reframe_builds_by_spack(spack, tmp_path):
    environment = next(mpi.name for mpi in find_mpis() if mpi.family == "mpich")
    answer = subprocess.run(
        [
            *(Path(sys.executable).with_name("reframe"), "-r", "--nocolor"),
            *("-C", spack.checkout / "checks" / "config" / "local.py"),
            *("-c", spack.checkout / "checks", "--tag=smoke", "--name=^discovery"),
            *(f"--prgenv=^{environment}$", "-S", "build_kernels.builder=Spack"),
            *("-S", "launches=1", "-S", "budget_s=0.2", "-S", "sizes=8"),
        ],
        env=spack.env
        | {
            "PYTHONPATH": str(spack.checkout),
            "XDG_CACHE_HOME": str(tmp_path),
            "SWITCHPOINT_RESULTS": str(tmp_path / "results"),
        },
        capture_output=True,
        text=True,
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
    (installed,) = (spack.checkout / "build" / "install").glob("local-*")
    assert installed.is_symlink()
    assert list((tmp_path / "results").glob("**/*.jsonl"))


@pytest.mark.nightly
def test_the_kernels_install_for_simulations(spack, require):
    smpicc = shutil.which("smpicc")
    require("simgrid", smpicc is not None, "no smpicc on the path")
    version = re.search(r"SimGrid version (\d+(\.\d+)+)", said(smpicc, "--version"))[1]
    site = spack.checkout.parent / "site" / "packages.yaml"
    settings = yaml.safe_load(site.read_text())
    simgrid = {"spec": f"simgrid@{version}+smpi", "prefix": str(Path(smpicc).parent.parent)}
    settings["packages"]["simgrid"] = {"buildable": False, "externals": [simgrid]}
    site.write_text(yaml.safe_dump(settings))
    spack("remove", "switchpoint", "py-switchpoint")
    spack("add", "switchpoint+simgrid")
    spack("concretize", "--force")
    spack("install", "--test=root")
    assert (spack.prefix("switchpoint") / "bin" / "swpbench").is_file()
