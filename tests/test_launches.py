"""What is said of a launch that did not end well."""

import subprocess
from pathlib import Path

import pytest

from tests.processes import is_running, wait_for
from tuner.campaign.launches import LaunchError, run
from tuner.machine.ending import descendants
from tuner.machine.mpi import LaunchCommand


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("swpbench: no such method\nrank 3 aborts", "^swpbench: no such method$"),
        ("terminate called\n what(): no room\n", r"^swpbench ended with 134: what\(\): no room$"),
        ("", "^swpbench ended with 134$"),
    ],
)
def test_a_launch_that_dies_is_reported_with_its_words(
    tmp_path: Path, words: str, message: str
) -> None:
    program = tmp_path / "swpbench"
    program.write_text(f"#!/bin/sh\nprintf '%s' '{words}' >&2\nexit 134\n")
    program.chmod(0o755)
    with pytest.raises(LaunchError, match=message):
        run(LaunchCommand([]), program, [], tmp_path / "a.jsonl", 60)


def test_a_launch_that_does_not_end_is_terminated_and_its_words_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program, noted = tmp_path / "swpbench", tmp_path / "rank"
    stops = f"echo $$ > {noted}; kill -STOP $$"
    program.write_text(f"#!/bin/sh\necho waits >&2\nPMI_RANK=1 sh -c '{stops}' &\nwait\n")
    program.chmod(0o755)
    communicate = subprocess.Popen.communicate

    def communicate_late(process: subprocess.Popen[str], timeout: float) -> tuple[str, str]:
        monkeypatch.setattr(subprocess.Popen, "communicate", communicate)
        wait_for(lambda: "T" in descendants(process.pid).values())
        return process.communicate(timeout=0)

    monkeypatch.setattr(subprocess.Popen, "communicate", communicate_late)
    with pytest.raises(LaunchError) as raised:
        run(LaunchCommand([]), program, [], tmp_path / "a.jsonl", 1)
    rank = int(noted.read_text())
    message = f"a launch did not end within 1 s; rank 1 (process {rank}) is stopped"
    assert (str(raised.value), raised.value.output) == (message, "waits\n")
    wait_for(lambda: not is_running(rank))
