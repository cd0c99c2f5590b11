"""Files that are written whole."""

import errno
import fcntl
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.conftest import Require
from tuner import atomic
from tuner.paths import CHECKOUT

KILLED = """
import os, pathlib, signal
from tuner import atomic
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # ignored below nohup
with atomic.replacing(pathlib.Path({path!r})) as aside:
    aside.write_text("part")
    os.kill(os.getpid(), signal.{signal})
"""


def test_a_file_is_written_with_its_directory(tmp_path: Path) -> None:
    atomic.write(tmp_path / "a" / "b", "ü")
    assert (tmp_path / "a" / "b").read_bytes() == "ü".encode()


@pytest.mark.parametrize("name", ["n" * 255, "\N{GREEK SMALL LETTER MU}" * 127])
def test_a_name_may_be_as_long_as_names_are(tmp_path: Path, name: str) -> None:
    atomic.write(tmp_path / name, "content")
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_who_fails_leaves_what_was_there_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    with pytest.raises(KeyboardInterrupt), atomic.replacing(path) as aside:
        aside.write_text("new")
        raise KeyboardInterrupt
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_threads_write_the_same_file(tmp_path: Path) -> None:
    path, both = tmp_path / "file", threading.Barrier(2)

    def write(text: str) -> None:
        with atomic.replacing(path) as aside:
            aside.write_text(text)
            both.wait(60)

    with ThreadPoolExecutor(2) as threads:
        list(threads.map(write, ["whole", "other"]))
    assert path.read_text() in ("whole", "other")
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_stays_and_its_file_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("file")
    for content in ("first", "second"):
        atomic.write(tmp_path / "link", content)
        assert (tmp_path / "link").is_symlink()
        assert (tmp_path / "file").read_text() == content


def test_what_is_no_file_is_written_as_it_is(tmp_path: Path) -> None:
    """As /dev/stdout: what took its place would be in the way of all others."""
    pipe, said = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: said.append(pipe.read_text()))
    reader.start()
    atomic.write(pipe, "text")
    reader.join()
    assert said == ["text"]
    assert pipe.is_fifo()


def test_a_file_that_is_printed_to_keeps_what_it_has(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    notes.write_text("old, ")
    code = "import pathlib, tuner.atomic as it; it.write(pathlib.Path('/dev/stdout'), 'new')"
    with notes.open("a") as file:
        env = os.environ | {"PYTHONPATH": str(CHECKOUT)}
        subprocess.run([sys.executable, "-c", code], env=env, stdout=file, check=True)
    assert notes.read_text() == "old, new"
    assert list(tmp_path.iterdir()) == [notes]


@pytest.mark.parametrize("name", ["directory", "file/below"])
def test_what_cannot_be_written_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / "directory").mkdir()
    (tmp_path / "file").touch()
    with pytest.raises(OSError) as caught:
        atomic.write(tmp_path / name, "text")
    assert caught.value.filename == str(tmp_path / name)


def test_a_file_and_its_name_are_on_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, synced, fsync = tmp_path / "file", [], os.fsync
    path.write_text("old")

    def spied(number: int) -> None:
        synced.append((Path(f"/proc/self/fd/{number}").readlink(), path.read_text()))
        fsync(number)

    monkeypatch.setattr(os, "fsync", spied)
    with atomic.replacing(path) as aside:
        aside.write_text("new")
    assert synced == [(aside, "old"), (tmp_path, "new")]


def writer(path: Path, ending: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", KILLED.format(path=str(path), signal=ending)],
        env=os.environ | {"PYTHONPATH": str(CHECKOUT)},
    )


def test_the_next_write_deletes_what_a_killed_one_left(tmp_path: Path) -> None:
    path, other = tmp_path / "file[1]", tmp_path / "other"
    for each in (path, other):
        assert writer(each, "SIGKILL").wait() == -signal.SIGKILL
    assert len(list(tmp_path.iterdir())) == 2
    atomic.write(path, "whole")
    names = sorted(each.name for each in tmp_path.iterdir())
    assert [name.split(".")[1] for name in names[:-1]] == ["other"]
    assert names[-1] == path.name


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGHUP])
def test_who_is_terminated_leaves_nothing(tmp_path: Path, ending: signal.Signals) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    assert writer(path, ending.name).wait() == 128 + ending
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_what_others_are_writing_stays(tmp_path: Path) -> None:
    path = tmp_path / "file"
    elsewhere = tmp_path / ".file.another-host.00.partial"  # whose locks may not be seen here
    elsewhere.touch()
    running = writer(path, "SIGSTOP")
    try:
        os.waitpid(running.pid, os.WUNTRACED)
        atomic.write(path, "mine")
        assert len(list(tmp_path.iterdir())) == 3
        running.send_signal(signal.SIGCONT)
        assert running.wait() == 0
    finally:
        running.kill()
        running.wait()
    assert path.read_text() == "part"
    assert sorted(tmp_path.iterdir()) == [elsewhere, path]


HALVES = """
import pathlib, sys
from tuner import atomic
with atomic.replacing(pathlib.Path(sys.argv[1])) as aside, aside.open("w") as file:
    for half in "first", "second":
        print(file=file, end=half, flush=True)
        print(flush=True)
        input()
"""


def test_containers_of_one_host_name_do_not_write_each_others_files(
    tmp_path: Path, require: Require
) -> None:
    """Each has the process 1, and sees none of the other's."""
    alone = ["unshare", "--map-root-user", "--pid", "--fork", "--kill-child"]
    works = (
        shutil.which("unshare")
        and subprocess.call([*alone, "true"], stderr=subprocess.DEVNULL) == 0
    )
    require("namespaces", bool(works), "unshare --pid does not work here")
    path = tmp_path / "file"
    environment = os.environ | {"PYTHONPATH": str(CHECKOUT)}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    command = [*alone, sys.executable, "-c", HALVES, path]
    with subprocess.Popen(command, env=environment, **pipes) as first:
        first.stdout.readline()
        done = subprocess.run(command, env=environment, input=b"\n\n", stdout=subprocess.DEVNULL)
        assert done.returncode == 0
        path.unlink()
        first.communicate(b"\n\n")
    assert first.returncode == 0
    assert path.read_text() == "firstsecond"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_was_deleted_before_it_was_locked_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, lock = tmp_path / "file", fcntl.fcntl

    def late(number: int, command: int, mark: bytes) -> None:
        monkeypatch.setattr(fcntl, "fcntl", lock)
        atomic.write(path, "other")
        lock(number, command, mark)

    monkeypatch.setattr(fcntl, "fcntl", late)
    with atomic.replacing(path) as aside:
        assert aside.exists()
        atomic.write(path, "another")
        aside.write_text("mine")
    assert path.read_text() == "mine"


def test_without_locks_only_what_is_old_is_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(number: int, command: int, mark: bytes) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "fcntl", refuse)
    path = tmp_path / "file"
    assert writer(path, "SIGKILL").wait() == -signal.SIGKILL
    (left,) = tmp_path.iterdir()
    atomic.write(path, "whole")
    assert sorted(tmp_path.iterdir()) == [left, path]
    os.utime(left, (0, time.time() - 90000))
    atomic.write(path, "whole")
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_has_the_mode_that_the_umask_leaves(tmp_path: Path) -> None:
    before = os.umask(0o027)
    try:
        atomic.write(tmp_path / "file", "text")
    finally:
        os.umask(before)
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o640
