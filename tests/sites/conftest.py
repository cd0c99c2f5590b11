"""Schedulers that only answer, and configurations made from that."""

import os

import pytest
from click.testing import CliRunner

from tests.sites.answers import ANSWERS
from tuner.cli import main
from tuner.machine.directories import search_path


@pytest.fixture
def answering(tmp_path, monkeypatch):
    """Put the commands of a scheduler on the path."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))

    def put(scheduler: str) -> None:
        bin = tmp_path / f"{scheduler}-bin"
        bin.mkdir()
        for name, answer in ANSWERS[scheduler].items():
            script = answer if answer.startswith("case") else f"cat <<'END'\n{answer.rstrip()}\nEND"
            (bin / name).write_text(f"#!/bin/sh\n{script}\n")
            (bin / name).chmod(0o755)
        monkeypatch.setenv("PATH", f"{bin}{os.pathsep}{search_path()}")

    return put


def init(*options: str, code: int = 0) -> str:
    answer = CliRunner().invoke(main, ["site", "init", *options])
    assert answer.exit_code == code, answer.output
    return answer.output
