"""What tables print on terminals of any width, whatever files say."""

import io
import json
from pathlib import Path

import pytest
from rich.console import Console

from tests import synthetic
from tests.cli import call
from tests.profiles import content, parse, tally
from tuner.advice import document, mix
from tuner.commands.printing import console as consoles
from tuner.commands.printing.advice import show_calls
from tuner.commands.printing.console import console
from tuner.commands.printing.grids import Columns
from tuner.commands.printing.results import show_table
from tuner.commands.study_simulated import show_rows
from tuner.machine import doctor
from tuner.rawfile.ingest import ingest
from tuner.rawfile.reading import read
from tuner.selection.tuning import tune
from tuner.store.store import Store

NAMES = ("20261121T094650Z", "sample-openmpi-9749d1", "vendor:algorithm=recursive_doubling")
HOSTILE = "Evil MPI\x1b]0;owned\x07\x9b31m\u202e " + "9" * 100_000


def printed(grid: Columns, width: int) -> list[str]:
    out = Console(file=io.StringIO(), width=width)
    out.print(grid)
    return out.file.getvalue().splitlines()


@pytest.mark.parametrize("width", [40, 60, 80, 100, 200])
@pytest.mark.parametrize("more", [0, 3])
def test_names_stay_whole_however_narrow_the_terminal_is(width: int, more: int) -> None:
    grid = Columns("campaign", "of system", "method", *["count"] * more, "verdict")
    words = ["binomial", "is", "1.26", "to", "1.30", "x", "faster", "than", "vendor,", "by", "size"]
    grid.add_row(*NAMES, *["161801"] * more, " ".join(words))
    lines = printed(grid, width)
    assert max(map(len, lines)) <= width
    said = " ".join(lines).split()
    assert {*NAMES, *words} <= {*said}
    assert said.count("161801") == more


def test_short_columns_keep_their_lines_and_long_ones_fold() -> None:
    grid = Columns("operation", "bytes", "verdict")
    grid.add_row("bcast", "up to 16 KiB", "word " * 30)
    assert "bcast      up to 16 KiB  word word" in printed(grid, 80)[2]


def test_what_follows_from_a_table_folds_between_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synthetic.write(tmp_path, synthetic.Campaign(launches=2))
    database = tmp_path / "switchpoint.db"
    ingest(database, [tmp_path])
    out = Console(file=io.StringIO(), width=80)
    with Store.open(database) as store:
        table = tune(store, store.systems()["system"][0])
    show_table(table, 0, out)
    show_calls(document.advice(mix.mix(parse(content(tally("Bcast", 64, 0.5))), table)), out)
    *lines, command = out.file.getvalue().splitlines()
    assert command.startswith("to measure their operations: switchpoint run ")  # one to copy
    assert max(map(len, lines)) <= 80
    assert any(line.startswith("settled: ") for line in lines)
    assert any(line.startswith("bound: ") for line in lines)


def test_columns_of_numbers_are_aligned_to_the_right() -> None:
    grid = Columns("method", "bytes", right=["bytes"])
    for row in (("direct", "8"), ("nap", "65536")):
        grid.add_row(*row)
    assert [line[8:] for line in printed(grid, 80)[2:]] == ["    8", "65536"]


def test_commands_keep_names_whole_on_a_narrow_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(consoles, "console", lambda stderr=False: Console(width=60, markup=False))
    path = f"/opt/{'software/' * 3}bin/mpicc,"
    found = [doctor.Prerequisite("openmpi", "measuring", f"4.1.4 ({path} {path})", True, "")]
    monkeypatch.setattr(doctor, "examine", lambda say: found)
    assert call("doctor").stdout.count(path) == 2
    matrix, method = tmp_path / "a.mtx", "stfw:grid=2x2x2x2x2x2"
    entries = [f"{row} {1 + row * 7 % 64} 1" for row in range(1, 65)]
    head = ["%%MatrixMarket matrix coordinate real general", "64 64 64"]
    matrix.write_text("\n".join([*head, *entries]))
    said = call("matrix", "messages", matrix, "--parts=64", f"--methods={method}")
    assert {method, method[10:]} <= {*said.stdout.split()}, said.output
    assert max(map(len, said.stdout.splitlines())) <= 60
    capsys.readouterr()
    show_rows(["study", "first method", "second method"], [["a", method, f"{method}x2x2x2"]])
    assert f"{method}x2x2x2" in capsys.readouterr().out.split()


def test_control_characters_are_printed_as_text(capsys: pytest.CaptureFixture[str]) -> None:
    grid = Columns("a\x1b[31mb", "c")
    grid.add_row("d\x07e", "f\u202eg")
    out = console()
    out.print("h\x9bi")
    out.print(Path("j\x1b[31mk"), soft_wrap=True)
    out.print("l\u061cm")
    out.print(grid)
    text = capsys.readouterr().out
    assert {r"h\x9bi", r"j\x1b[31mk", r"l\u061cm", r"a\x1b[31mb", r"d\x07e", r"f\u202eg"} <= {
        *text.split()
    }


def test_texts_of_a_header_are_bounded_lines(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SWITCHPOINT_RESULTS", str(tmp_path))
    for path in synthetic.write(tmp_path, synthetic.Campaign(sizes=(8,), launches=1)):
        path.write_text(path.read_text().replace('"MPICH Version: 5.0.2"', json.dumps(HOSTILE)))
        header = read(path).header
        assert header is not None
        assert len(header.mpi_library) == 255
        assert header.mpi_library.startswith(r"Evil MPI\x1b]0;owned\x07\x9b31m\u202e 999")
    for command in (("ingest",), ("tune",), ("show",), ("export",)):
        answer = call(*command)
        assert answer.exit_code == 0
        assert all(line.isprintable() for line in answer.output.splitlines())
    with Store.open(tmp_path / "switchpoint.db", readonly=True) as store:
        assert store.systems()["mpi_library"].str.len().max() == 255
