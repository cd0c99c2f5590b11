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

from tuner.machine.mpi import find_mpis
from tuner.paths import CHECKOUT
from tuner.rawfile import reading

from .recipes import read

PARTS = (
    "checks",
    "dashboard",
    "docs",
    "kernels",
    "spack",
    "switchpoint",
    "templates",
    "tests/data",
    "tuner",
)
FILES = ("LICENSE", "README.md", "hatch_build.py", "pyproject.toml", "spack.yaml")
BUILDERS = ("py-pip", "py-hatchling")
PROGRAMS = {"cmake": "cmake", "gmake": "make", "pkgconf": "pkgconf"}
LIBRARIES = {"hwloc": "hwloc", "zlib": "zlib"}  # by pkg-config's names
VARIANTS = {"py-pandas": "~performance"}  # else an external has Spack's defaults
SMALL_MPICH = "@4 device=ch3 netmod=tcp ~fortran~libxml2~pci~romio"
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


@pytest.fixture(scope="session")
def executable(require) -> str:
    path = shutil.which("spack")
    require("spack", path is not None, "no spack on the path")
    return path


@pytest.fixture(scope="module")
def packages(require, tmp_path_factory) -> dict[str, dict]:
    """Return what is here already, an MPICH among it."""
    mpich = next((mpi for mpi in find_mpis() if mpi.family == "mpich"), None)
    require("mpich", mpich is not None, "no MPICH, which spack.yaml asks for")
    prefix = tmp_path_factory.mktemp("mpich")
    # Debian's MPICH has other names for its programs than Spack looks for.
    (prefix / "bin").mkdir()
    (prefix / "bin" / "mpicc").symlink_to(mpich.mpicc)
    (prefix / "bin" / "mpiexec").symlink_to(mpich.mpiexec)
    proxy = Path(mpich.mpiexec).with_name("hydra_pmi_proxy")
    (prefix / "bin" / "hydra_pmi_proxy").symlink_to(proxy)
    return externals() | {"mpich": external("mpich", mpich.version, prefix)}


@pytest.fixture(scope="module")
def spack(executable, packages, tmp_path_factory) -> Spack:
    return set_up(executable, tmp_path_factory.mktemp("spack"), packages)


def set_up(path: str, place: Path, packages: dict[str, dict]) -> Spack:
    """Set Spack up in a copy of the checkout, with `packages` as the site's."""
    checkout, site = place / "checkout", place / "site"
    for name in PARTS:
        shutil.copytree(CHECKOUT / name, checkout / name)
    for name in FILES:
        shutil.copy(CHECKOUT / name, checkout)
    site.mkdir()
    settings = {"packages": packages, "config": {"install_tree": {"root": str(place / "opt")}}}
    for name, content in settings.items():
        (site / f"{name}.yaml").write_text(yaml.safe_dump({name: content}))
    return Spack(path, checkout, os.environ | {"SWITCHPOINT_SPACK_SITE": str(site)})


def externals() -> dict[str, dict]:
    """Return what is in this Python and on this machine, as Spack's packages.yaml has it."""
    python = ".".join(map(str, sys.version_info[:3]))
    found = {"python": (python, Path(sys.base_prefix))}
    specs = [*read("py_switchpoint").dependencies, *BUILDERS]
    for name in {spec.split("@")[0] for spec in specs} - {"python"}:
        try:
            version = metadata.version(PIP_NAMES.get(name, name.removeprefix("py-")))
        except metadata.PackageNotFoundError:
            continue
        found[name] = (version, Path(sys.prefix))
    found |= dict(of_this_machine())
    return {"zlib-api": {"buildable": False}} | {
        name: external(name, version, prefix) for name, (version, prefix) in found.items()
    }


def external(name: str, version: str, prefix: Path, variants: str = "") -> dict:
    spec = f"{name}@{version}{variants or VARIANTS.get(name, '')}"
    return {
        # What builds packages may be too old here, and is then to be had otherwise.
        "buildable": name in BUILDERS,
        "externals": [{"spec": spec, "prefix": str(prefix)}],
    }


def of_this_machine() -> Iterator[tuple[str, tuple[str, Path]]]:
    """Yield programs and libraries that Spack would build, with version and prefix."""
    for name, program in PROGRAMS.items():
        if path := shutil.which(program):
            version = re.search(r"\d+(\.\d+)+", said(program, "--version"))
            yield name, (version[0], Path(path).parent.parent)
    for name, module in LIBRARIES.items():
        if version := said("pkg-config", "--modversion", module):
            prefix = said("pkg-config", "--variable=prefix", module)
            yield name, (version, Path(prefix))


def said(*command: str) -> str:
    """Return what a program prints; nothing when there is none, or it fails."""
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


def test_the_environment_concretizes_where_all_is_to_be_built(executable, tmp_path):
    # The colon hides what the user's own configuration says of MPICH.
    spack = set_up(executable, tmp_path, {"mpich:": {"buildable": True}})
    assert re.search(r"^ - .*\^mpich@", spack("concretize"), re.MULTILINE)


@pytest.mark.nightly
def test_the_kernels_install_and_pass_their_tests(spack):
    spack("install", "switchpoint")
    assert (spack.prefix("switchpoint") / "bin" / "swpbench").is_file()
    # Built again in the same place, which so far was without tests.
    sources = spack.checkout / "kernels"
    (sources / "CMakeLists.txt").touch()
    spack("install", "--test=root", "switchpoint")
    (log,) = sources.glob("build-*/spack-build-*/Testing/Temporary/LastTest.log")
    assert "swp_oracle_4" in log.read_text()


@pytest.mark.nightly
def test_the_kernels_run_with_an_mpich_that_spack_builds(executable, tmp_path, require):
    spack = set_up(executable, tmp_path, externals() | {"mpich": {"require": SMALL_MPICH}})
    spack("concretize")
    sources = ("fetch", "--missing", "--dependencies", "switchpoint")
    fetched = subprocess.run(
        [executable, "-e", spack.checkout, *sources], env=spack.env, capture_output=True
    )
    require("spack", fetched.returncode == 0, "Spack cannot fetch the sources of MPICH")
    spack("install", "switchpoint")
    out = tmp_path / "exchange.jsonl"
    measured = subprocess.run(
        [
            *(spack.prefix("mpich") / "bin" / "mpiexec", "-n", "4"),
            *(spack.prefix("switchpoint") / "bin" / "swpbench", "run", "--op=exchange"),
            *("--pattern=random:degree=2", "--sizes=8,64K", "--max-samples=2", f"--out={out}"),
        ],
        capture_output=True,
        text=True,
    )
    assert measured.returncode == 0, measured.stdout + measured.stderr
    assert reading.read(out).complete


@pytest.mark.nightly
def test_the_command_installs_and_can_be_imported(spack, require):
    builders = {path.name.split("-")[0] for path in Path(sys.prefix).glob("lib/*/site-packages/*")}
    require("spack", "hatchling" in builders, "Spack would fetch hatchling")
    spack("install", "--test=root", "py-switchpoint")
    assert (spack.prefix("py-switchpoint") / "bin" / "switchpoint").is_file()
    # Building leaves nothing in the checkout, whose build/ is for campaigns.
    assert not (spack.checkout / "build").exists()
    # What is not installed does not matter, and what is does.
    installed = spack.prefix("py-switchpoint") / ".spack" / "spec.json"
    written_ns = installed.stat().st_mtime_ns
    (spack.checkout / "results").mkdir()
    spack("install", "py-switchpoint")
    assert installed.stat().st_mtime_ns == written_ns
    (spack.checkout / "tuner" / "cli.py").touch()
    spack("install", "py-switchpoint")
    assert installed.stat().st_mtime_ns > written_ns


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
def test_the_kernels_install_for_simulations(executable, packages, tmp_path, require):
    smpicc = shutil.which("smpicc")
    require("simgrid", smpicc is not None, "no smpicc on the path")
    version = re.search(r"SimGrid version (\d+(\.\d+)+)", said(smpicc, "--version"))[1]
    simgrid = external("simgrid", version, Path(smpicc).parent.parent, "+smpi")
    spack = set_up(executable, tmp_path, packages | {"simgrid": simgrid})
    spack("remove", "switchpoint", "py-switchpoint")
    spack("add", "switchpoint+simgrid")
    spack("concretize")
    spack("install", "--test=root")
    assert (spack.prefix("switchpoint") / "bin" / "swpbench").is_file()
