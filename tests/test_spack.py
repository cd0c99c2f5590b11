"""The Spack packages say what CMake and pyproject.toml say.

Needs no Spack, but pytest and PyYAML: python -m pytest --noconftest tests/test_spack.py
"""

import re
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from tests.recipes import CHECKOUT, REPOSITORY, read

PACKAGES = sorted(path.parent.name for path in REPOSITORY.glob("packages/*/package.py"))
OURS = ("switchpoint", "py_switchpoint")
TOOLCHAIN = str(CHECKOUT / "kernels" / "cmake" / "simgrid.cmake")
CMAKE = (CHECKOUT / "kernels" / "CMakeLists.txt").read_text()
PYPROJECT = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())
PROJECT, BUILD = PYPROJECT["project"], PYPROJECT["build-system"]
MANIFEST = yaml.safe_load((CHECKOUT / "spack.yaml").read_text())["spack"]
DASHBOARD = {"py-dash", "py-dash-bootstrap-components", "py-flask-compress", "py-waitress"}


def spec_name(package: str) -> str:
    return package.replace("_", "-")


def python_dependencies() -> dict[str, str]:
    """Return those of pyproject.toml as Spack writes them: {py-numpy: 1.26}."""
    found = {}
    for requirement in PROJECT["dependencies"]:
        least_of = r"([\w-]+)(?:\[(\w+)\])?>=([\d.]+)(?:,!=[\d.]+)*"
        name, extra, least = re.fullmatch(least_of, requirement).groups()
        found["reframe" if name == "reframe-hpc" else f"py-{name}"] = least
        if extra:
            assert (name, extra) == ("dash", "compress")
            found["py-flask-compress"] = ""
    return found


def least_versions(specs) -> dict[str, str]:
    return {
        name: least
        for name, _, least in (spec.split(" ")[0].rstrip(":").partition("@") for spec in specs)
    }


def test_the_repository_is_laid_out_as_spack_1_wants_it():
    described = yaml.safe_load((REPOSITORY / "repo.yaml").read_text())["repo"]
    assert described == {"namespace": REPOSITORY.name, "api": "v2.0"}
    assert REPOSITORY.parent.name == "spack_repo"
    assert set(OURS) <= set(PACKAGES)
    assert {path.name for path in (REPOSITORY / "packages").iterdir()} == set(PACKAGES)


@pytest.mark.parametrize("package", PACKAGES)
def test_a_recipe_has_the_name_of_its_directory_and_pinned_sources(package):
    recipe = read(package)
    assert recipe.cls.__name__ == "".join(word.capitalize() for word in package.split("_"))
    assert recipe.base == ("PythonPackage" if package.startswith("py_") else "CMakePackage")
    assert recipe.licenses
    for facts in recipe.versions.values():
        # Ours are developed in the checkout, others come from PyPI.
        assert not facts if package in OURS else re.fullmatch("[0-9a-f]{64}", facts["sha256"])
    if package not in OURS:
        (version,) = recipe.versions
        assert recipe.cls.pypi.endswith(f"-{version}.tar.gz")


def test_all_versions_are_one():
    version = PROJECT["version"]
    assert f"project(switchpoint VERSION {version} " in CMAKE
    for package in OURS:
        assert list(read(package).versions) == [version]
        developed = MANIFEST["develop"][spec_name(package)]
        assert developed["spec"] == f"{spec_name(package)}@{version}"


def test_the_python_package_needs_what_pyproject_needs():
    facts = read("py_switchpoint").dependencies
    wanted = python_dependencies() | {
        "python": PROJECT["requires-python"].removeprefix(">="),
        "py-hatchling": BUILD["requires"][0].removeprefix("hatchling>="),
    }
    assert least_versions(facts) == wanted
    for spec, each in facts.items():
        name = spec.split("@")[0]
        assert each.get("when") == ("+dashboard" if name in DASHBOARD else None)
        assert "run" in each["type"] or name == "py-hatchling"


def test_versions_that_pyproject_excludes_conflict():
    excluded = [re.findall(r"!=([\d.]+)", each) for each in PROJECT["dependencies"]]
    (versions,) = filter(None, excluded)
    conflicting = {f"^reframe@{versions[0]}:{versions[-1]}": ""}
    assert read("py_switchpoint").conflicting == conflicting


def test_recipes_of_our_own_satisfy_what_is_asked():
    wanted = python_dependencies()
    for package in set(PACKAGES) - set(OURS):
        (version,) = read(package).versions
        least = wanted[spec_name(package)]
        assert [int(n) for n in version.split(".")] >= [int(n) for n in least.split(".")]


def test_the_kernels_need_what_cmake_needs():
    facts = read("switchpoint").dependencies
    least = least_versions(facts)
    assert f"cmake_minimum_required(VERSION {least['cmake']})" in CMAKE
    assert f"find_package(MPI {least['mpi']} " in CMAKE
    assert f"hwloc>={least['hwloc']}." in CMAKE
    assert facts["mpi@3.1:"]["when"] == "~simgrid"
    assert all(each["when"] == "+hwloc" for spec, each in facts.items() if "hwloc" in spec)


class FakeSpec(set):
    """The variants of a spec, and the compiler wrappers of the packages that it may depend on."""

    def __getitem__(self, name: str) -> SimpleNamespace:
        return SimpleNamespace(mpicc=f"/{name}/mpicc", mpifc=f"/{name}/mpifc")


@pytest.mark.parametrize(
    ("variants", "run_tests", "expected"),
    [
        ({"+hwloc", "+shared"}, False, {"SWITCHPOINT_TESTS": False, "BUILD_SHARED_LIBS": True}),
        ({"+hwloc", "+tests"}, False, {"SWITCHPOINT_TESTS": True}),
        (set(), True, {"SWITCHPOINT_TESTS": True, "MPI_C_COMPILER": "/mpi/mpicc"}),
        ({"+fortran"}, False, {"MPI_Fortran_COMPILER": "/mpi/mpifc"}),
        ({"+simgrid"}, True, {"SWITCHPOINT_TESTS": False, "CMAKE_TOOLCHAIN_FILE": TOOLCHAIN}),
        ({"+simgrid", "+shared"}, False, {"BUILD_SHARED_LIBS": False}),
    ],
)
def test_variants_set_options_that_cmake_has(variants, run_tests, expected):
    recipe = read("switchpoint")
    package = recipe.cls()
    package.spec, package.run_tests = FakeSpec(variants), run_tests
    package.stage = SimpleNamespace(source_path=str(CHECKOUT / "kernels"))
    package.define = lambda name, value: (name, value)
    package.define_from_variant = lambda name, variant: (name, f"+{variant}" in variants)
    assert set(recipe.variants) == {"shared", "tests", "fortran", "hwloc", "fftw", "simgrid"}
    options = dict(package.cmake_args())
    known = {"BUILD_SHARED_LIBS", "CMAKE_TOOLCHAIN_FILE"}
    known |= {"MPI_C_COMPILER", "MPI_Fortran_COMPILER"}
    assert set(options) <= known | set(re.findall(r"option\((\w+)", CMAKE))
    assert options["SWITCHPOINT_HWLOC"] == ("+hwloc" in variants)
    assert options.items() >= expected.items()


@pytest.mark.parametrize("run_tests", [False, True])
def test_what_was_configured_without_tests_is_configured_again_for_them(run_tests, tmp_path):
    makefile = tmp_path / "Makefile"
    makefile.touch()
    package = read("switchpoint").cls()
    package.run_tests, package.build_directory = run_tests, str(tmp_path)
    package.configure_again()
    assert makefile.exists() != run_tests


def test_a_simulated_build_has_no_tests_and_a_toolchain_that_is_there():
    conflicting = {"+tests": "+simgrid", "+fortran": "+simgrid", "^mpich ~fortran": "+fortran"}
    assert read("switchpoint").conflicting == conflicting
    assert Path(TOOLCHAIN).is_file()


def test_the_environment_names_what_there_is():
    assert [spec_name(package) for package in OURS] == MANIFEST["specs"]
    for each in MANIFEST["develop"].values():
        assert (CHECKOUT / each["path"]).is_dir()
    site, defaults = MANIFEST["include"]
    assert site["path"] == "$SWITCHPOINT_SPACK_SITE"
    settings = yaml.safe_load((CHECKOUT / defaults["path"] / "packages.yaml").read_text())
    assert set(settings["packages"]) == {"mpi", "py-pandas"}
    for name, path in MANIFEST["repos"].items():
        assert (CHECKOUT / path.removeprefix("$env/") / "repo.yaml").is_file()
        assert name == REPOSITORY.name
