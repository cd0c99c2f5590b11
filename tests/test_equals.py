"""Races between methods that are equal: none may win, whatever else the machine does."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from rich.console import Console
from scipy.stats import binom

from tests.conftest import by_day
from tests.test_race_job import CAMPAIGN, starts_of
from tuner.campaign.plans import PlannedCase, RacePlan
from tuner.campaign.race_job import race
from tuner.commands.finish import tune_systems
from tuner.domain.tables import Table
from tuner.machine.mpi import available_cores, find_mpis
from tuner.rawfile import keeping
from tuner.selection import trust
from tuner.selection.decisions import ERROR_LEVEL

pytestmark = pytest.mark.check

SPINNING = """\
import time
while True:
    began = time.monotonic()
    while time.monotonic() - began < 0.01:
        pass
    time.sleep(0.02)
"""

ENOUGH_S = 3600.0  # launches end the races
FEW = 3, ("random:degree=1,seed=1",)
MANY = 12, ("random:degree=1,seed=1", "hub:hubs=1,seed=1")


def raced(
    launches: int, patterns: tuple[str, ...], sizes: tuple[int, ...] = (8, 64, 512, 4096)
) -> Table:
    """Return the table of a race between `direct` and its twin."""
    mpi = find_mpis()[0]
    cases = [
        PlannedCase(
            *("local:cpu", mpi.name, "exchange", pattern, "1_node", 2, 2),
            sizes=list(sizes),
            methods=["twin"],
        )
        for pattern in patterns
    ]
    plan = RacePlan(CAMPAIGN, "", ENOUGH_S, cases, launches=launches, in_job=True)
    assert race(starts_of(plan, mpi, "swpbench_twin")) == []
    systems = {path.parent.parent.name for path in keeping.of_campaign(CAMPAIGN)}
    ((table, _),) = tune_systems(sorted(systems), Console(), required=0)
    return table


def require_no_winner(table: Table) -> None:
    """Require that the twin won at most as often as chance lets it, once in a thousand tests."""
    compared = [point for point in table.points if point.launches > 1]
    assert len(compared) > 1  # one could win by chance
    assert all([ratio.method for ratio in point.ratios] == ["twin"] for point in compared)
    won = sum(point.method == "twin" for point in compared)
    assert won <= binom.isf(1e-3, len(compared), ERROR_LEVEL)


@pytest.fixture(autouse=True)
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWITCHPOINT_RESULTS", str(tmp_path))
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(("launches", "patterns"), by_day([FEW], [MANY]))
def test_a_method_does_not_win_over_itself(launches: int, patterns: tuple[str, ...]) -> None:
    require_no_winner(raced(launches, patterns))


@pytest.mark.parametrize("launches", by_day([6], [12]))
def test_a_twin_that_is_faster_wins(launches: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SWP_TWIN_US", "20000")
    assert {point.method for point in raced(launches, FEW[1], (8,)).points} == {"twin"}


@contextmanager
def spinning() -> Iterator[None]:
    """Keep each core busy for a third of the time."""
    loops = [subprocess.Popen([sys.executable, "-c", SPINNING]) for _ in range(available_cores())]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


@pytest.mark.parametrize(("launches", "patterns"), by_day([FEW], [MANY]))
def test_a_race_beside_other_work_is_marked_and_has_no_winner(
    launches: int, patterns: tuple[str, ...]
) -> None:
    with spinning():
        table = raced(launches, patterns)
    assert any(note.startswith(("noisy", "contaminated")) for note in trust.notes(table.provenance))
    require_no_winner(table)
