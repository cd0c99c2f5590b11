"""Figures beside their bars, and the exit status of a bench."""

import json
import math
import re
from argparse import Namespace
from pathlib import Path

import pytest

from tests.bench.__main__ import kept, rows_of
from tests.bench.comparisons import bars_of, lost_bars, ratios
from tests.bench.report import UNKNOWN, Figure, commit, conclude
from tests.limited import LimitedRun
from tuner.machine.mpi import Mpi

MET = Figure("one", 1.0, "s", most=2)
MISSED = Figure("two", 1.0, "times", least=2)
BARE = Figure("three", 1.0, "s")
SAID = """\
exchange, 2 ranks, hub:hubs=1,seed=1, 8 B, 20 rounds
                          median  ratio to the one by hand, 95 % interval
  by hand              10.00 us   1.000 [1.000, 1.000]
  by hand              11.00 us   1.100 [1.000, 1.200]
  direct               12.00 us   1.200 [1.100, 1.300]  plan 7 us, 64 B here
discovery, 8 ranks, 3 message(s) a rank, 8 B, 20 rounds
  known senders        10.00 us   1.000 [1.000, 1.000]
  nbx:barrier=ibarrier 15.00 us   1.500 [1.000, 2.000]
  nbx:barrier=ibarrier / known senders: 1.500 [1.000, 2.000]
"""


def options(path: Path, least: bool = False) -> Namespace:
    """Return the options of a part that begins now."""
    return Namespace(least=least, json=path, began=commit())


@pytest.mark.parametrize(
    ("figures", "least", "status"),
    [
        ([MET, BARE], False, 0),
        ([MET, MISSED], False, 1),
        ([MET, MISSED], True, 0),  # nothing is judged
        ([Figure("four", math.nan, "s", most=2)], False, 1),
        ([], True, 1),
    ],
)
def test_a_missed_bar_or_no_figure_is_a_failure(
    figures: list[Figure], least: bool, status: int, tmp_path: Path
) -> None:
    assert conclude("part", figures, options(tmp_path / "x.json", least)) == status


def test_figures_are_kept_with_commit_and_machine(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "new" / "x.json"
    conclude("part", [MET, MISSED, BARE], options(path))
    document = json.loads(path.read_text())
    assert document["figures"][1] == {
        "name": "two",
        "figure": 1.0,
        "unit": "times",
        "bar": ">= 2",
        "met": False,
    }
    assert document["figures"][2]["met"] is None
    assert {"commit", "dirty", "machine", "date"} <= document.keys()
    assert capsys.readouterr().out.splitlines() == [
        "one    1 s      <= 2  ok",
        "two    1 times  >= 2  MISSED",
        "three  1 s",
    ]


@pytest.mark.parametrize(
    ("status", "in_time", "figure", "results"),
    [
        (0, True, MET, ["ok", "ran"]),
        (1, True, MISSED, ["MISSED", "ran"]),
        (1, True, MET, ["ok", "FAILED: exit status 1"]),
        (1, True, None, ["FAILED: exit status 1"]),
        (2, True, MISSED, ["MISSED", "FAILED: exit status 2"]),
        (-9, False, None, ["FAILED: over its limit of 240 min"]),
    ],
)
def test_the_table_separates_missed_bars_from_failures(
    status: int, in_time: bool, figure: Figure | None, results: list[str]
) -> None:
    figures = [] if figure is None else [figure.as_json()]
    rows = rows_of("part", figures, LimitedRun(status, 3.0, in_time), least=False)
    assert [row[-1] for row in rows] == results


def test_a_part_is_kept_until_the_commit_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = {"commit": "a" * 40, "dirty": False}
    monkeypatch.setattr("tests.bench.__main__.commit", lambda: now)
    path = tmp_path / "part.json"
    whole = ["--json", str(path)]
    monkeypatch.setattr("sys.argv", ["part", *whole])
    assert kept("part", tmp_path) == []
    conclude("part", [MET, MISSED], options(path))
    document = json.loads(path.read_text())
    for changed, results in (
        ({}, ["ok", "MISSED", "kept"]),
        ({"commit": "b" * 40}, []),
        ({"dirty": True}, []),
        ({"skipped": "no valgrind"}, []),
        ({"machine": document["machine"] | {"load": 99.0}}, ["ok", "MISSED", "kept"]),
        ({"machine": document["machine"] | {"cores": 0}}, []),
        ({"commit": UNKNOWN}, []),
        ({"command": ["--seconds=1", *whole]}, []),
    ):
        path.write_text(json.dumps(document | now | changed))
        if changed.get("commit") == UNKNOWN:
            now["commit"] = UNKNOWN
        assert [row[-1] for row in kept("part", tmp_path)] == results


def test_figures_of_a_part_during_which_the_checkout_changed_are_of_no_commit(
    tmp_path: Path,
) -> None:
    began = {"commit": "a" * 40, "dirty": False}
    path = tmp_path / "part.json"
    conclude("part", [MET], Namespace(least=False, json=path, began=began))
    assert json.loads(path.read_text()).items() >= {"commit": "a" * 40, "dirty": True}.items()


def test_a_part_for_which_the_machine_lacks_something_is_no_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is tried again at the same commit."""
    now = {"commit": "a" * 40, "dirty": False}
    monkeypatch.setattr("tests.bench.__main__.commit", lambda: now)
    path = tmp_path / "part.json"
    monkeypatch.setattr("sys.argv", ["part", "--json", str(path)])
    assert conclude("part", [], options(path), "no virtual nodes") == 0
    document = json.loads(path.read_text())
    assert (document["figures"], document["skipped"]) == ([], "no virtual nodes")
    ((*_, result),) = rows_of("part", [], LimitedRun(0, 3.0, True), False, document["skipped"])
    assert result == "skipped: no virtual nodes"
    path.write_text(json.dumps(document | now))
    assert kept("part", tmp_path) == []


def test_a_bar_is_lost_with_the_figure_that_it_is_for() -> None:
    mpi = Mpi("mpich", "mpich", "4", "mpicc", "mpiexec")
    figures = [Figure("mpich: a, 8 B", 1.0, "", most=2), Figure("mpich: b", 1.0, "")]
    figures += [Figure("openmpi: b", 1.0, "", most=2)]
    assert [*lost_bars(figures, mpi, ["a, .* B$", "b$"])] == ["mpich: no figure of b$"]


@pytest.mark.parametrize(
    ("family", "version", "device", "most"),
    [
        ("mpich", "4.0.2", "ch4:ofi", 0.9),
        ("mpich", "4.0.2", "ch4:ucx", 1.0),
        ("mpich", "5.0.2", "ch4:ofi", 1.0),
        ("openmpi", "4.1.4", "", 1.0),
    ],
)
def test_lent_memory_is_judged_beside_as_many_copies_as_the_library_makes(
    family: str, version: str, device: str, most: float
) -> None:
    bars = bars_of(Mpi(family, family, version, "mpicc", "mpiexec", device), on_nodes=False)
    assert {bar: bars[bar] for bar in bars if bar.endswith(": lent$")} == {
        "exchange, 2 ranks, random.*, 65536 B, back to back: lent$": most
    }


@pytest.mark.parametrize(("size_bytes", "most"), [(8, 0.55), (1024, 0.55), (65536, 1.0)])
def test_discovery_by_the_memory_of_two_ranks_has_a_bar_at_each_size(
    size_bytes: int, most: float
) -> None:
    name = f"discovery, 2 ranks, 1 message(s) a rank, {size_bytes} B: shared"
    bars = bars_of(Mpi("mpich", "mpich", "4", "mpicc", "mpiexec"), on_nodes=False)
    assert [bar for pattern, bar in bars.items() if re.match(pattern, name)] == [most]


def test_ratios_are_read_from_what_comparisons_print() -> None:
    first, second = "exchange, 2 ranks, hub:hubs=1,seed=1, 8 B", "discovery, 8 ranks"
    assert list(ratios(SAID)) == [
        (f"{first}: by hand again", 1.1, "times by hand"),
        (f"{first}: direct", 1.2, "times by hand"),
        (f"{second}, 3 message(s) a rank, 8 B: nbx:barrier=ibarrier", 1.5, "times known senders"),
        (
            f"{second}, 3 message(s) a rank, 8 B: nbx:barrier=ibarrier / known senders, "
            "the fastest of each",
            1.5,
            "times",
        ),
    ]
