"""Where files lie, on machines that have no home for them, or file systems without locks."""

import os
import pwd
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests import synthetic
from tests.compiler import build_preload
from tuner.machine import directories
from tuner.machine.simulation.launch import TOOLCHAIN
from tuner.paths import CHECKOUT, new_campaign, only_here, own_directory
from tuner.studies import simulator

NO_LOCKS = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
int fcntl64(int fd, int command, ...) {
  va_list list;
  va_start(list, command);
  void *argument = va_arg(list, void *);
  va_end(list);
  if (command == F_SETLK || command == F_SETLKW) {
    errno = ENOLCK;
    return -1;
  }
  return ((int (*)(int, int, ...))dlsym(RTLD_NEXT, "fcntl64"))(fd, command, argument);
}
"""


def switchpoint(*arguments, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tuner.cli", *map(str, arguments)],
        env=os.environ | {"PYTHONPATH": str(CHECKOUT)} | environment,
        capture_output=True,
        text=True,
    )


def test_a_store_works_where_files_cannot_be_locked(tmp_path):
    source, library = tmp_path / "nolocks.c", tmp_path / "nolocks.so"
    source.write_text(NO_LOCKS + 'int fcntl(int, int, ...) __attribute__((alias("fcntl64")));\n')
    build_preload(source, library)
    raw = synthetic.write(tmp_path / "raw", synthetic.Campaign(launches=2, samples=5))
    store = tmp_path / "s.db"
    said = switchpoint("ingest", raw[0].parent, "--database", store, LD_PRELOAD=str(library))
    assert "2 launches" in said.stdout, said.stderr
    said = switchpoint("show", "--database", store, LD_PRELOAD=str(library))
    assert said.returncode == 0, said.stderr
    # A killed writer's lock is named, as nobody takes it away.
    lock = tmp_path / "s.db.lock"
    lock.mkdir()
    program = (
        "import pathlib, tuner.store.store;"
        f"tuner.store.store.Store.open(pathlib.Path({str(store)!r}), busy_timeout_s=0.1)"
    )
    said = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"PYTHONPATH": str(CHECKOUT), "LD_PRELOAD": str(library)},
        capture_output=True,
        text=True,
    )
    assert f"or delete {lock} of one that was killed" in said.stderr
    # A reader that may not write there can make no lock, and reads without one.
    reading = (
        "import os, pathlib, tuner.store.store; os.access = lambda *_: False;"
        f"store = tuner.store.store.Store.open(pathlib.Path({str(store)!r}), readonly=True);"
        "print(len(store.systems()))"
    )
    env = os.environ | {"PYTHONPATH": str(CHECKOUT), "LD_PRELOAD": str(library)}
    assert subprocess.check_output([sys.executable, "-c", reading], env=env) == b"1\n"


def test_a_user_without_name_and_home_has_places(monkeypatch):
    def nobody(number: int) -> None:
        raise KeyError(number)

    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(pwd, "getpwuid", nobody)
    place = own_directory("XDG_CACHE_HOME", ".cache")
    assert place.name == ".cache"
    assert str(os.getuid()) in str(place)
    monkeypatch.setenv("XDG_CACHE_HOME", "/elsewhere")
    assert own_directory("XDG_CACHE_HOME", ".cache") == Path("/elsewhere/switchpoint")


def test_campaigns_of_one_second_have_names_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether their results are there, as those of other programs, or they only begin."""
    monkeypatch.setenv("SWITCHPOINT_RESULTS", str(tmp_path))
    with ThreadPoolExecutor(2) as both:
        names = list(both.map(new_campaign, ["study-"] * 2))
    assert len(set(names)) == 2
    now = datetime.now(UTC)
    there = [f"{now + timedelta(seconds=second):%Y%m%dT%H%M%SZ}" for second in range(2)]
    for name in there:
        (tmp_path / "system" / name).mkdir(parents=True)
    assert new_campaign() not in there


def test_a_lock_that_is_a_pipe_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Opening it would wait for a reader; here it has one, that a failure ends."""
    monkeypatch.setenv("SWITCHPOINT_RESULTS", str(tmp_path))
    pipe = tmp_path / "campaigns" / "mine"
    pipe.parent.mkdir()
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDWR)
    refused = pytest.raises(OSError, match=r"not a regular file; delete it.*campaigns/mine")
    with refused, only_here("mine"):
        pass
    os.close(reader)
    pipe.unlink()
    with only_here("mine") as is_free:
        assert is_free


@pytest.mark.parametrize("closed", ["", "build"])
def test_builds_go_to_the_cache_where_the_checkouts_cannot_be_written(
    tmp_path, monkeypatch, closed
):
    monkeypatch.setattr(directories, "CHECKOUT", tmp_path)
    monkeypatch.setattr(directories, "is_checkout", lambda: True)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert directories.build_root() == tmp_path / "build"
    (tmp_path / closed).mkdir(exist_ok=True)
    monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != tmp_path / closed)
    assert directories.build_root() == tmp_path / "cache" / "switchpoint"


def test_a_moved_checkout_builds_for_simgrid_again(tmp_path, monkeypatch, require):
    """CMake refuses the build of another place."""
    require("cmake", shutil.which("cmake") is not None, "no cmake on the path")
    here, moved = tmp_path / "here", tmp_path / "moved"
    toolchain = here / "kernels" / "cmake" / TOOLCHAIN
    toolchain.parent.mkdir(parents=True)
    toolchain.touch()
    (here / "kernels" / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.20)\nproject(kernels LANGUAGES NONE)\n"
        "add_custom_target(swpbench)\n"
    )
    monkeypatch.setattr(directories, "is_checkout", lambda: True)
    for place in (here, moved):
        if place == moved:
            here.rename(moved)
        monkeypatch.setattr(directories, "CHECKOUT", place)
        monkeypatch.setattr(simulator, "CHECKOUT", place)
        assert simulator._build("4.1", print).is_relative_to(place)
