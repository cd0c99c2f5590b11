"""Files that users name: with any bytes in their names, and of any kind."""

import json
import os
import socket
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests import synthetic
from tests.cli import call
from tests.processes import TIMEOUT_S
from tuner import atomic
from tuner.catalogue import shelf
from tuner.files import read_json, shown
from tuner.paths import CHECKOUT

NOT_REGULAR = "not a regular file; save its contents to a file first"
MATRIX = "a\x7f\x1b[31m\x9b\u202e.mtx"


def test_directories_may_be_deeper_than_calls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SWITCHPOINT_RESULTS", str(tmp_path / "results"))
    monkeypatch.chdir(tmp_path)
    subprocess.run(["mkdir", "-p", "d/" * 1500], check=True)
    deepest = Path("d/" * 1500)
    made, *_ = synthetic.write(tmp_path / "raw", synthetic.Campaign(launches=1))
    try:
        made.rename(deepest / made.name)
        (deepest / "x.bundle").touch()
        assert call("ingest", "d").exit_code == 0
        assert len(shelf.files([Path("d")])) == 1
    finally:
        subprocess.run(["rm", "-r", "d"], check=True)


def name(place: Path, content: bytes) -> Path:
    """Return a file whose name is bytes."""
    return place / os.fsdecode(content)


def switchpoint(*arguments: str | Path, place: Path) -> subprocess.CompletedProcess[str]:
    """Run the command as users call it, in a terminal that shows UTF-8 only."""
    return subprocess.run(
        [sys.executable, "-m", "tuner.cli", *arguments],
        env=os.environ
        | {
            "PYTHONPATH": str(CHECKOUT),
            "PYTHONIOENCODING": "utf-8:strict",
            "SWITCHPOINT_RESULTS": str(place),
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        timeout=TIMEOUT_S,
    )


@pytest.fixture
def raw(tmp_path: Path) -> list[Path]:
    return synthetic.write(tmp_path / "raw", synthetic.Campaign(launches=2, sizes=(8,), samples=5))


@pytest.fixture
def fifo(tmp_path: Path) -> Path:
    path = tmp_path / "fifo"
    os.mkfifo(path)
    return path


@pytest.fixture
def specials(tmp_path: Path, fifo: Path) -> Iterator[list[Path]]:
    """Yield what may never end when it is read."""
    device = tmp_path / "device"
    device.symlink_to("/dev/zero")
    with (
        TemporaryDirectory(prefix="swp") as short,  # names of sockets are short
        socket.socket(socket.AF_UNIX) as listening,
    ):
        listening.bind(f"{short}/socket")
        yield [device, fifo, Path(short, "socket")]


def test_a_json_file_that_is_too_large_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "order.json"
    path.touch()
    os.truncate(path, 1 << 27)
    with pytest.raises(OSError, match="larger than 64 MiB"):
        read_json(path, dict[str, int])


def test_a_name_that_is_not_utf8_is_ingested_and_printed(tmp_path: Path, raw: list[Path]) -> None:
    raw[0].rename(name(raw[0].parent, b"good \xff.jsonl"))
    name(raw[0].parent, b"bad \xfe.jsonl").write_text("{}\n")
    database = name(tmp_path, b"store \xfd.db")
    said = switchpoint("ingest", tmp_path / "raw", "--database", database, place=tmp_path)
    assert said.returncode == 0
    (warning,) = said.stderr.splitlines()
    assert f"{raw[0].parent}/bad \\xfe.jsonl:1: not a valid record" in warning
    assert "2 launches with 40 samples from 3 files" in said.stdout
    with sqlite3.connect(os.fsencode(database)) as connection:
        paths = [path for (path,) in connection.execute("SELECT path FROM launch ORDER BY path")]
    connection.close()
    assert paths == [str(raw[1]), f"{raw[0].parent}/good \\xff.jsonl"]
    again = switchpoint("ingest", tmp_path / "raw", "--json", place=tmp_path)
    assert json.loads(again.stdout)["problems"][0]["path"].endswith("bad \\xfe.jsonl")
    shows = switchpoint("show", "--database", database, place=tmp_path)
    assert (shows.returncode, shows.stderr) == (0, "")


def test_what_is_no_regular_file_is_reported_and_the_rest_ingested(
    tmp_path: Path, raw: list[Path], specials: list[Path]
) -> None:
    beside = raw[0].parent / "special.jsonl"
    beside.symlink_to(specials[0])
    said = switchpoint("ingest", *specials, tmp_path / "raw", place=tmp_path)
    assert said.returncode == 1
    assert said.stderr.splitlines() == [
        *(f"warning: {path}:1: cannot be read: {NOT_REGULAR}" for path in (*specials, beside)),
        f"Error: no launch in {', '.join(map(str, specials))}",
    ]
    assert "2 launches" in said.stdout


@pytest.mark.parametrize(
    "command",
    [
        ["check", "table"],
        ["show", "plan"],
        ["matrix", "info"],
        ["matrix", "partition", "--parts=2", "--by=contiguous"],
        ["matrix", "messages", "--parts=2"],
        ["doctor", "--config"],
        ["run", "--config"],
        ["soak", "--config"],
        ["study", "applications", "--procs=2", "--table"],
        ["ingest", "raw", "--database"],
    ],
    ids=" ".join,
)
def test_commands_refuse_what_is_no_regular_file(
    tmp_path: Path, command: list[str], fifo: Path
) -> None:
    words = [str(tmp_path) if word == "raw" else word for word in command]
    said = switchpoint(*words, fifo, place=tmp_path)
    assert said.returncode == 1
    (line,) = said.stderr.splitlines()
    assert line.startswith(f"Error: {fifo}: ")
    assert line.endswith(NOT_REGULAR)


def test_a_partition_that_is_no_regular_file_is_refused(tmp_path: Path, fifo: Path) -> None:
    matrix = tmp_path / "a.mtx"
    atomic.write(matrix, "%%MatrixMarket matrix coordinate pattern general\n2 2 1\n1 2\n")
    said = switchpoint(
        *("matrix", "messages", matrix, "--parts", "2", "--by", fifo), place=tmp_path
    )
    assert said.returncode == 1
    assert said.stderr == f"Error: {fifo}: cannot be read: {NOT_REGULAR}\n"


def test_a_store_that_cannot_be_written_is_shown_without_tables(
    tmp_path: Path, raw: list[Path]
) -> None:
    store = tmp_path / "ours" / "s.db"
    switchpoint("ingest", raw[0].parent, "--database", store, place=tmp_path)
    heeding = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]  # permissions
    bound = heeding if os.geteuid() == 0 else []
    for path in (store.parent, store):
        path.chmod(0o555 if path.is_dir() else 0o444)
        said = subprocess.run(
            [*bound, sys.executable, "-m", "tuner.cli", "show", "--database", store],
            env=os.environ | {"PYTHONPATH": str(CHECKOUT), "SWITCHPOINT_RESULTS": str(tmp_path)},
            capture_output=True,
            encoding="utf-8",
        )
        assert (said.returncode, said.stderr) == (0, "")
        assert "Synthetic CPU" in said.stdout
        assert f"has no table; run `switchpoint tune`, with --database on a copy where {store}" in (
            said.stdout
        )
    store.parent.chmod(0o755)


def test_control_characters_of_files_are_escaped(tmp_path: Path, raw: list[Path]) -> None:
    network = tmp_path / "networks" / "a.json"
    atomic.write(network, '{"\x7f\x9b31m": 1, "\\u001b[31m": 2}')
    matrix = name(tmp_path, b"a\x1b[31m.mtx")
    atomic.write(matrix, "no banner\n")
    atomic.write(raw[0].parent / "bad\x1b[31m.jsonl", '{"record": "\\u001b[31m"}\n')
    for command in (("network", "list"), ("matrix", "info", matrix), ("ingest", tmp_path / "raw")):
        said = switchpoint(*command, place=tmp_path)
        (line,) = said.stderr.splitlines()
        assert line.isprintable(), command
        assert "\\x" in line


@pytest.mark.parametrize(
    "command",
    [
        ["matrix", "info", MATRIX],
        ["matrix", "info", MATRIX, "--parts"],
        ["matrix", "partition", MATRIX, "--parts=2", "--by=contiguous"],
        ["matrix", "partition", MATRIX, "--parts=2", "--by=contiguous", "--json"],
        ["matrix", "make", "random", MATRIX, "--rows=2", "--nonzeros=1"],
    ],
    ids=" ".join,
)
def test_control_characters_of_names_are_escaped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    atomic.write(Path(MATRIX), "%%MatrixMarket matrix coordinate pattern general\n2 2 1\n1 2\n")
    said = call(*command).output
    assert "a" in said and all(line.isprintable() for line in said.splitlines())
    if "--json" in command:
        assert json.loads(said)["file"].startswith(MATRIX.removesuffix(".mtx"))


def test_names_are_shown_as_they_are_where_they_can_be() -> None:
    assert shown(Path("ä\n")) == "ä\n"
    assert shown(name(Path("b"), b"\xc3\xff")) == "b/\\xc3\\xff"


def test_standard_output_as_a_file_gets_the_content_alone(tmp_path: Path) -> None:
    command = ("matrix", "make", "random", "/dev/stdout", "--rows=9", "--nonzeros=2")
    said = switchpoint(*command, place=tmp_path)
    assert said.stderr == "/dev/stdout: 9 rows, 18 entries\n"
    assert said.stdout.splitlines()[2:3] == ["9 9 18"]
    assert len(said.stdout.splitlines()) == 3 + 18
