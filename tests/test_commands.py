"""The command groups about inputs, as users call them."""

import json
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from tests.cli import call, fail, succeed
from tests.synthetic import Campaign, write
from tuner.commands.advise import system_of
from tuner.commands.finish import tune_systems
from tuner.store.store import Store

GOOD = Path(__file__).parent / "data" / "matrix" / "good"
RECTANGULAR = GOOD.parent / "broken" / "rectangular.mtx"  # for products
MATRIX = GOOD / "symmetric-integer.mtx"


def test_the_structure_of_a_matrix() -> None:
    document = json.loads(succeed("matrix", "messages", MATRIX, "--parts", "2,8", "--json"))
    assert [(row["procs"], row["method"], row["layout"]) for row in document] == [
        (2, "direct", ""),
        (2, "nap", ""),
        (8, "direct", ""),
        (8, "stfw:dims=2", "4x2"),
        (8, "stfw:radix=2", "2x2x2"),
        (8, "nap", ""),
    ]
    for row in document:
        if row["message_bound"] is not None:
            assert row["statistics"]["mmax"] <= row["message_bound"]


def test_the_structure_as_a_table() -> None:
    text = succeed(
        *("matrix", "messages", MATRIX, "--parts", "5", "--by", "strided", "--ppn", "2"),
        *("--methods", "direct stfw:grid=3x2", "--item-bytes", "4"),
    )
    assert "3x2 incomplete" in text
    assert len([line for line in text.splitlines() if line.split()[:1] == ["5"]]) == 2


@pytest.mark.parametrize("number", ["\u0663", "\u00b2", "9" * 5000])
def test_numbers_have_ascii_digits(tmp_path: Path, number: str) -> None:
    table = tmp_path / "a.table"
    table.touch()
    for command in (
        ("study", "applications", "--procs", "2", "--table", table, "--sizes", number),
        ("matrix", "messages", MATRIX, "--parts", number),
    ):
        said = call(*command)
        assert said.exit_code == 2
        assert "is not a" in said.stderr


@pytest.mark.parametrize("number", ["\u0663", "\u00b2", "1_0", " 3", "nan"])
@pytest.mark.parametrize(
    ("option", "form"),
    [
        ("soak --minutes", "{}"),
        ("serve --port", "{}"),
        ("tune --require-soak", "{}"),
        ("run --budget", "{}m"),
        ("predict --op overlap --computation", "{}"),
    ],
)
def test_options_take_numbers_of_ascii_digits(option: str, form: str, number: str) -> None:
    command = option.split()
    said = call(*command, form.format(number))
    assert said.exit_code == 2
    assert f"Invalid value for '{command[-1]}'" in said.stderr


@pytest.mark.parametrize(
    ("study", "few"), [("stfw", "3"), ("nap", "1"), ("dsde", "1")], ids=["stfw", "nap", "dsde"]
)
def test_studies_need_enough_ranks(study: str, few: str) -> None:
    said = call("study", study, "--procs", f"64,{few}")
    assert said.exit_code == 2
    assert f"{few} is too few; at least " in said.stderr


def test_structure_refuses_what_it_cannot_count(tmp_path: Path) -> None:
    command = ("matrix", "messages")
    assert "nap:x" in fail(*command, MATRIX, "--parts", "2", "--methods", "nap:x")
    assert "dims=\u0663" in fail(*command, MATRIX, "--parts", "9", "--methods", "stfw:dims=\u0663")
    assert "no grid for 3" in fail(*command, MATRIX, "--parts", "3", "--methods", "stfw:dims=2")
    assert "cannot be read" in fail(*command, tmp_path / "none.mtx", "--parts", "2")


@pytest.mark.parametrize("parts", ["0", "-1", "2,", "a", "", "9" * 20])
def test_parts_are_whole_numbers(parts: str) -> None:
    result = call("matrix", "messages", MATRIX, "--parts", parts)
    assert result.exit_code == 2
    assert "comma-separated list" in result.stderr


def test_matrix_info_prints_its_size() -> None:
    assert "9 x 9, 22 entries" in succeed("matrix", "info", MATRIX)
    assert json.loads(succeed("matrix", "info", RECTANGULAR, "--json"))["columns"] == 8


@pytest.mark.parametrize("rows", [2**61 - 1, 2**20 + 65])
@pytest.mark.parametrize(
    ("command", "options"),
    [
        ("info", ()),
        ("messages", ("--parts", "2")),
        ("partition", ("--parts", "2", "--by", "strided")),
        ("partition", ("--parts", "2", "--by", "graph")),
    ],
)
def test_a_matrix_of_too_many_rows_is_refused(
    tmp_path: Path, command: str, options: tuple[str, ...], rows: int
) -> None:
    path = tmp_path / "m.mtx"
    path.write_text(f"%%MatrixMarket matrix coordinate pattern general\n{rows} {rows} 1\n1 1\n")
    assert "m.mtx:2: more rows than 1048576" in fail("matrix", command, path, *options)


def test_a_matrix_is_partitioned_and_reported_on(tmp_path: Path) -> None:
    copy = tmp_path / "m.mtx"
    copy.write_bytes(MATRIX.read_bytes())
    command = ("matrix", "partition", copy, "--parts", "3", "--by", "strided")
    document = json.loads(succeed(*command, "--json"))
    assert not document["reused"]
    assert "reused" in succeed(*command)
    counted = json.loads(
        succeed("matrix", "messages", copy, "--parts", "3", "--by", document["file"], "--json")
    )[0]["statistics"]
    assert counted["mmax"] == document["mmax"]
    assert counted["hop_bytes"] == 8 * document["volume"]


def test_a_system_without_its_default_keeps_no_other_from_a_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SWITCHPOINT_RESULTS", str(tmp_path))
    few = Campaign(samples=20, sizes=(8,))
    write(tmp_path, few)
    write(tmp_path, replace(few, environment="other", methods=("neighbor", "alltoallv"), seed=2))
    succeed("ingest")
    with Store.open(tmp_path / "switchpoint.db") as store:
        systems = store.systems().sort_values("environment", ascending=False)["system"].tolist()
    said = StringIO()
    (tuned,) = tune_systems(systems, Console(file=said, width=200))
    assert tuned.table.provenance.environment == "mpich"
    assert f"{systems[0]}: no table, as the default was not measured" in said.getvalue()


@pytest.mark.usefixtures("synthetic_machine")
def test_of_several_versions_of_an_mpi_advice_takes_the_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SWITCHPOINT_RESULTS", str(tmp_path))
    few = Campaign(samples=20, sizes=(8,), launches=2)
    for number, version in enumerate(("5.0.2", "5.0.3")):
        its = replace(few, name=f"2026110{number}T000000Z", day=f"2026-11-0{number + 1}")
        write(tmp_path, replace(its, mpi_library=f"MPICH Version: {version}", seed=number))
    succeed("ingest")
    with Store.open(tmp_path / "switchpoint.db") as store:
        last = str(store.systems().sort_values("last_date")["system"].iloc[-1])
    write(tmp_path, replace(few, name="other", day="2026-11-03", cores=9999))
    succeed("ingest")
    assert system_of(None, "mpich") == system_of(None, "mpich", "local:cpu") == last
    assert system_of(None, "openmpi", "local:cpu") is None
