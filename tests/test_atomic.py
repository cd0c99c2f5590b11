"""Files that are written whole."""

import os
import threading
from pathlib import Path

import pytest

from tuner import atomic


def test_a_file_is_written_with_its_directory(tmp_path: Path) -> None:
    atomic.write(tmp_path / "a" / "b", "ü")
    assert (tmp_path / "a" / "b").read_bytes() == "ü".encode()


def test_who_fails_leaves_what_was_there_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old")
    with pytest.raises(KeyboardInterrupt), atomic.replacing(path) as aside:
        aside.write_text("new")
        raise KeyboardInterrupt
    assert path.read_text() == "old"
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


@pytest.mark.parametrize("name", ["directory", "file/below"])
def test_what_cannot_be_written_is_named(tmp_path: Path, name: str) -> None:
    (tmp_path / "directory").mkdir()
    (tmp_path / "file").touch()
    with pytest.raises(OSError) as caught:
        atomic.write(tmp_path / name, "text")
    assert caught.value.filename == str(tmp_path / name)
