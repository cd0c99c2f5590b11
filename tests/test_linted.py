"""Nothing that runs lies outside the linters' sight, or needs what is installed later."""

import re
import subprocess
import sys
import tomllib

from tuner.paths import CHECKOUT


def test_scripts_are_where_linters_look() -> None:
    """Ruff reads *.py, and .ci/check gives shellcheck *.sh and .ci."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=CHECKOUT, capture_output=True, text=True, check=True
    )
    unseen = []
    for name in listed.stdout.split("\0"):
        path = CHECKOUT / name
        if path.is_file() and path.read_bytes().startswith(b"#!") and path.suffix != ".py":
            shell = path.read_bytes().partition(b"\n")[0].split(b"/")[-1] in (b"sh", b"bash")
            if not shell or not (path.suffix == ".sh" or name.startswith(".ci/")):
                unseen.append(name)
    assert unseen == []


def test_programs_are_where_mypy_looks() -> None:
    command = ["git", "grep", "-l", "^if __name__ ==", "--", "*.py"]
    listed = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, check=True)
    modules = [name.removesuffix(".py").replace("/", ".") for name in listed.stdout.split()]
    settings = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["tool"]["mypy"]
    seen = tuple(f"{name}." for name in settings["packages"] + settings["modules"])
    assert [module for module in modules if not f"{module}.".startswith(seen)] == []


def test_rooms_are_where_mypy_looks() -> None:
    tools = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["tool"]
    assert {*tools["importlinter"]["root_packages"]} <= {*tools["mypy"]["packages"]}


def test_what_continuous_integration_starts_first_needs_python_alone() -> None:
    modules = set(re.findall(r"python3 -m (\S+)", (CHECKOUT / ".ci/run").read_text()))
    assert modules
    for module in modules:
        command = [sys.executable, "-S", "-m", module, "--help"]
        done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
