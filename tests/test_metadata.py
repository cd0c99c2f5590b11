"""Descriptions of the project agree with pyproject.toml; files of others are as published."""

import json
import os
import re
import subprocess
import tomllib
from hashlib import sha256
from pathlib import Path

import pytest
import yaml

from tuner.paths import CHECKOUT

PROJECT = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
PACKAGE = tomllib.loads((CHECKOUT / "kernels/python/pyproject.toml").read_text())["project"]
PLACES = [CHECKOUT / place for place in ("dashboard/assets", "docs/site")]
VENDORED = {
    place / name: facts
    for place in PLACES
    for name, facts in tomllib.loads((place / "vendored.toml").read_text()).items()
}
DEVELOPERS = "the Switchpoint developers"


def test_version_licence_keywords_and_authors_are_the_same_everywhere() -> None:
    citation = yaml.safe_load((CHECKOUT / "CITATION.cff").read_text())
    codemeta = json.loads((CHECKOUT / "codemeta.json").read_text())
    versions = {each["version"] for each in (PROJECT, PACKAGE, citation, codemeta)}
    assert versions == {PROJECT["version"]}
    assert citation["keywords"] == codemeta["keywords"] == PROJECT["keywords"]
    assert PACKAGE["license"] == citation["license"]
    assert PROJECT["license"] == f"{PACKAGE['license']} AND MIT"
    licences = [each.rpartition("/")[2] for each in codemeta["license"]]
    assert PROJECT["license"] == " AND ".join(licences)
    assert citation["abstract"] == codemeta["description"]
    authors = (
        *PROJECT["authors"],
        *PACKAGE["authors"],
        *citation["authors"],
        codemeta["author"][0],
    )
    assert {each["name"].lower() for each in authors} == {DEVELOPERS.lower()}


def test_the_package_for_python_has_licence_and_readme_of_its_own() -> None:
    place = CHECKOUT / "kernels" / "python"
    (licence,) = PACKAGE["license-files"]
    assert (place / licence).read_text() == (CHECKOUT / "LICENSE").read_text()
    assert (place / PACKAGE["readme"]).is_file()
    assert set(PACKAGE["classifiers"]) > {
        each for each in PROJECT["classifiers"] if each.startswith(("Development", "Operating"))
    }


def test_every_minified_file_is_listed_with_its_licence() -> None:
    assert set(VENDORED) == {path for place in PLACES for path in place.glob("*.min.*")}
    licences = tomllib.loads((CHECKOUT / "REUSE.toml").read_text())["annotations"]
    for file, facts in VENDORED.items():
        licence = file.with_name(facts["license"])
        paths = [str(path.relative_to(CHECKOUT)) for path in (file, licence)]
        (said,) = (each for each in licences if each["path"] == paths)
        assert said["SPDX-License-Identifier"] == "MIT"
        assert "Permission is hereby granted, free of charge" in licence.read_text()


@pytest.mark.parametrize("file", VENDORED, ids=lambda file: file.name)
def test_a_file_of_others_is_as_published(file: Path) -> None:
    facts = VENDORED[file]
    published = file.read_bytes() + facts["removed"].encode()
    assert sha256(published).hexdigest() == facts["sha256"]
    assert f"@{facts['version']}#" in facts["source"]


@pytest.mark.parametrize("file", [".github/workflows/ci.yml", ".gitlab-ci.yml"])
def test_continuous_integration_elsewhere_calls_the_same_script(file: str) -> None:
    jobs = yaml.safe_load((CHECKOUT / file).read_text())
    job = jobs["jobs"]["ci"] if "jobs" in jobs else jobs["ci"]
    steps = [step.get("run") for step in job["steps"]] if "steps" in job else job["script"]
    assert steps[-1] == ".ci/run"


def test_the_bare_machine_has_a_clone_of_another_users_checkout(tmp_path: Path) -> None:
    (clone,) = re.findall("^git .* clone .*", (CHECKOUT / ".ci" / "bare").read_text(), re.MULTILINE)
    others = {"GIT_TEST_ASSUME_DIFFERENT_OWNER": "1", "GIT_CONFIG_GLOBAL": os.devnull}
    env = os.environ | others | {"place": str(tmp_path)}
    subprocess.run(["sh", "-c", clone], cwd=CHECKOUT, env=env, check=True)
    assert (tmp_path / "switchpoint" / "Makefile").is_file()
