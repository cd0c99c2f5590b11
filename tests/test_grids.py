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
from tuner.commands.printing.advice import show_calls
from tuner.commands.printing.grids import Columns
from tuner.commands.printing.results import console, show_table
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


def test_control_characters_are_printed_as_text(capsys: pytest.CaptureFixture[str]) -> None:
    grid = Columns("a\x1b[31mb", "c")
    grid.add_row("d\x07e", "f\u202eg")
    out = console()
    out.print("h\x9bi")
    out.print(grid)
    text = capsys.readouterr().out
    assert {r"h\x9bi", r"a\x1b[31mb", r"d\x07e", r"f\u202eg"} <= {*text.split()}


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
