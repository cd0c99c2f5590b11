"""Recipes for other packagers have the project's versions, and the archive that they name."""

import re
import subprocess
import tarfile
from hashlib import sha256
from pathlib import Path

import pytest
import yaml

from templates.packages.__main__ import PINNED, TEMPLATES, facts, write
from tests.recipes import CHECKOUT
from tests.test_spack import CMAKE, PROJECT

VERSION = PROJECT["version"]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a directory with the recipes and the archive; the archive needs git."""
    place = tmp_path_factory.mktemp("packages")
    write(place)
    return place


def recipe(written: Path, template: str) -> str:
    return (written / TEMPLATES[template].format(**facts())).read_text()


def numbers(version: str) -> list[int]:
    return [int(each) for each in version.split(".")]


@pytest.mark.parametrize("template", [each for each in TEMPLATES if "mpi" not in each])
def test_a_recipe_names_the_archive_and_says_what_was_tried(template: str, written: Path) -> None:
    text = recipe(written, template)
    archive = written / f"switchpoint-{VERSION}.tar.gz"
    assert archive.name in text
    assert sha256(archive.read_bytes()).hexdigest() in text
    assert re.match(r"(# .*\n)*# Tried: \S+", text)
    assert "{{" not in text.replace("${{", "")


def test_the_archive_has_the_tree(written: Path) -> None:
    with tarfile.open(written / f"switchpoint-{VERSION}.tar.gz") as archive:
        names = set(archive.getnames())
    for file in ("kernels/CMakeLists.txt", "pyproject.toml", "LICENSE"):
        assert f"switchpoint-{VERSION}/{file}" in names


def test_kernels_of_the_archive_name_its_commit(written: Path, tmp_path: Path) -> None:
    archive = written / f"switchpoint-{VERSION}.tar.gz"
    subprocess.run(["tar", "-xzf", archive, "-C", tmp_path], check=True)
    source, header = (
        tmp_path / f"switchpoint-{VERSION}" / "kernels" / "cmake",
        tmp_path / "commit.h",
    )
    options = [f"-DSOURCE={source}", f"-DOUTPUT={header}", "-P", source / "commit.cmake"]
    subprocess.run(["cmake", *options], check=True)
    head = subprocess.run(
        ["git", "rev-parse", "HEAD"], cwd=CHECKOUT, capture_output=True, text=True, check=True
    )
    assert header.read_text() == f'#define BUILD_COMMIT "{head.stdout[:12]}"\n'


def test_the_easyconfig_is_python_with_the_parameters_that_are_mandatory(written: Path) -> None:
    values: dict[str, object] = {"SHLIB_EXT": "so"}
    exec(recipe(written, "easybuild.eb.j2"), values)
    assert (values["name"], values["version"]) == ("switchpoint", VERSION)
    for parameter in ("homepage", "description", "toolchain", "sources", "checksums"):
        assert values[parameter]
    needed = dict([*values["builddependencies"], *values["dependencies"]])
    assert needed.items() <= PINNED.items()
    for name in ("CMake", "hwloc"):
        assert numbers(needed[name]) >= numbers(facts()[name.lower()])
    options = set(re.findall(r"-D(SWITCHPOINT_\w+)", str(values["configopts"])))
    assert options <= set(re.findall(r"option\((\w+)", CMAKE))


def test_the_conda_recipe_needs_what_pyproject_needs(written: Path) -> None:
    text = yaml.safe_load(recipe(written, "conda.yaml.j2"))
    kernels, python = (each["requirements"] for each in text["outputs"])
    needed = {re.split(r"[\[>]", each)[0] for each in PROJECT["dependencies"]}
    assert {each.split()[0] for each in python["run"]} == needed | {"python", "flask-compress"}
    assert text["context"]["python_min"] == PROJECT["requires-python"].removeprefix(">=")
    least = re.search(r"cmake_minimum_required\(VERSION ([\d.]+)\)", CMAKE)
    assert least
    assert f"cmake >={least[1]}" in kernels["build"]
    assert yaml.safe_load(recipe(written, "conda-mpi.yaml.j2")) == {"mpi": ["mpich", "openmpi"]}


def test_the_container_runs_a_script_that_a_shell_can_read(written: Path) -> None:
    sections = re.split(r"^%(\w+)\n", recipe(written, "apptainer.def.j2"), flags=re.MULTILINE)
    found = dict(zip(sections[1::2], sections[2::2], strict=True))
    assert set(found) == {"files", "post", "environment", "help", "runscript", "test", "labels"}
    for name in ("post", "environment", "runscript", "test"):
        subprocess.run(["sh", "-n"], input=found[name], text=True, check=True)
