"""What a killed command has started is ended by its reaper."""

import io
import os
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import replace

import pytest

from tests.processes import is_running, wait_for
from tuner.machine import reaper
from tuner.machine.ending import Process, descendants
from tuner.paths import CHECKOUT

STUBBORN = """
import signal, subprocess, sys
signal.signal(signal.SIGTERM, signal.SIG_IGN)
own = dict(stdin=subprocess.PIPE, start_new_session=True)
rank = subprocess.Popen([sys.executable, "-c", "input()"], **own)
print(rank.pid, flush=True)
rank.wait()
"""
"""A launcher that takes no notice of SIGTERM, with a rank in a session of its own."""


COMMAND = """
import subprocess, time
from tuner.machine import reaper
reaper._PATIENCE_S = 0.1
with reaper.reaping() as announce:
    launcher = subprocess.Popen(["sleep", "600"], start_new_session=True, preexec_fn=announce)
    print(launcher.pid, flush=True)
    time.sleep(600)
"""
"""A command that runs a launcher."""

OLD = """
import fcntl, os, subprocess, tempfile
for module in (os, fcntl):
    for name in ("pidfd_open", "F_OFD_SETLK", "F_OFD_SETLKW"):
        vars(module).pop(name, None)
from pathlib import Path
from tuner import atomic
from tuner.machine.ending import all_below
with tempfile.TemporaryDirectory() as place:
    for text in "ab":
        atomic.write(Path(place, "file"), text)
with subprocess.Popen(["sleep", "600"]) as process:
    with all_below(os.getpid()):
        pass
    print(process.wait())
"""


@pytest.mark.parametrize("is_over", [False, True])
def test_a_launcher_that_outlives_its_command_is_ended(
    is_over: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["reaper", "0.1"])
    monkeypatch.setattr(reaper, "_GRACE_S", 0.1)
    command = [sys.executable, "-c", STUBBORN]
    with subprocess.Popen(command, stdout=subprocess.PIPE, start_new_session=True) as launcher:
        assert launcher.stdout is not None
        rank = int(launcher.stdout.readline())
        monkeypatch.setattr(sys, "stdin", io.StringIO(f"{launcher.pid}\n" + "0\n" * is_over))
        reaper.main()
        assert (launcher.poll() is None) == is_over
        assert is_running(rank) == is_over
        launcher.kill()
        with suppress(ProcessLookupError):
            os.kill(rank, signal.SIGKILL)


def test_the_reaper_knows_what_runs_when_its_command_is_killed() -> None:
    with subprocess.Popen([sys.executable, "-c", COMMAND], stdout=subprocess.PIPE) as command:
        assert command.stdout is not None
        pid = int(command.stdout.readline())
        assert is_running(pid)
        command.kill()
    wait_for(lambda: not is_running(pid))


def test_the_reaper_finds_its_parts_where_a_wheel_has_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python does not look into that directory by itself."""
    monkeypatch.delenv("PYTHONPATH", raising=False)
    started = []
    monkeypatch.setattr(subprocess, "Popen", lambda command, env, **_: started.append(env))
    reaper._reaper.__wrapped__()
    assert started[0]["PYTHONPATH"] == str(CHECKOUT)


def test_a_process_whose_name_was_cut_within_a_letter_is_found() -> None:
    """The kernel keeps fifteen bytes of a name."""
    named = "open('/proc/self/comm', 'wb').write(b'caf\\xc3'); print(flush=True); input()"
    command = [sys.executable, "-c", named]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert process.pid in descendants(os.getpid())
        process.kill()


def test_a_process_is_not_taken_for_a_later_one_of_its_id() -> None:
    with subprocess.Popen(["sleep", "600"]) as process:
        later = Process.of(process.pid)
        earlier = replace(later, start="1")
        earlier.kill()
        assert earlier.has_ended(0)
        assert not later.has_ended(0)
        later.kill()
        assert later.has_ended(None)
        assert process.wait() == -signal.SIGKILL


def test_pythons_of_old_systems_end_processes_and_lock_files() -> None:
    """They have neither descriptors of processes nor names of the locks."""
    command = [sys.executable, "-c", OLD]
    assert subprocess.run(command, capture_output=True, text=True).stdout == "-9\n"
