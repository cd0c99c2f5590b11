"""`switchpoint advise` that is ended: nothing is left running, and what was measured is kept."""

import signal
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path

import pytest

from tests import synthetic
from tests.conftest import by_day
from tests.kill_commands import end, launches, lost
from tuner.advice.running import Application
from tuner.campaign.order import PLANS, SOAKINGS
from tuner.campaign.plans import PlannedCase, RacePlan
from tuner.machine.mpi import available_cores
from tuner.machine.systems import LOCAL, processor
from tuner.rawfile import keeping
from tuner.store.store import Store

from .advice import ALLTOALL, command, kept, tabled_results
from .conftest import MPIS, Kernels, in_turn

pytestmark = pytest.mark.check

KILLS = {signal.SIGTERM: 143, signal.SIGKILL: -9, signal.SIGINT: 1}
"""The exit codes of a command that is ended by these signals."""


def test_a_command_that_fails_by_itself_was_not_signalled(tmp_path: Path) -> None:
    assert end(["false"], tmp_path, signal.SIGKILL, lambda: False) == (1, "", False)
    assert end(["sleep", "99"], tmp_path, signal.SIGKILL, lambda: True) == (-9, "", True)


@pytest.mark.parametrize(
    ("kernels", "number"), by_day([*in_turn(KILLS)], product(MPIS, KILLS)), indirect=["kernels"]
)
def test_nothing_is_left_running(
    kernels: Kernels, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    monkeypatch.setenv("SWITCHPOINT_KERNELS", str(kernels.build))
    words = command(kernels.build / "tests/swp_mix", "1000000", "64", "1000")
    code, said, _ = end(words, tmp_path, number, lambda: any(tmp_path.glob("profiles/*.profile/*")))
    assert code == KILLS[number], said


@pytest.mark.parametrize("number", by_day([signal.SIGKILL], KILLS))
def test_a_killed_run_keeps_what_it_has_measured(
    any_kernels: Kernels, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    monkeypatch.setenv("SWITCHPOINT_KERNELS", str(any_kernels.build))
    program = any_kernels.build / "tests/swp_mix"
    words = command(program, "500", "64", "10", options=["--budget", "60s"])
    for each in range(10):  # a race takes a second, so on a busy machine a signal may come late
        results = tmp_path / str(each)
        monkeypatch.setenv("SWITCHPOINT_RESULTS", str(results))
        code, said, _ = end(words, results, number, partial(lost, results))
        (name,) = PLANS.campaigns()
        if PLANS.load(PLANS.path_of(name)).advises:
            break
    assert code == KILLS[number], said
    assert launches(results) and not lost(results)
    code, said, _ = end(
        words, results, signal.SIGTERM, lambda: any(results.glob("*/switchpoint.table"))
    )
    assert "continuing with what an interrupted start has measured" in said
    assert PLANS.campaigns() == [name], said  # whose race goes on


@pytest.mark.parametrize("number", by_day([signal.SIGKILL], KILLS))
def test_the_pairs_of_a_killed_comparison_are_continued(
    any_kernels: Kernels, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    monkeypatch.setenv("SWITCHPOINT_KERNELS", str(any_kernels.build))
    tabled = tabled_results(any_kernels, tmp_path)
    with Store.open(tabled / "switchpoint.db") as store:
        system = str(store.systems()["system"].iloc[0])
    options = ["--system", system, "--budget", "40s"]  # too little to measure, which takes long
    words = command(any_kernels.build / "tests/swp_mix", "200", "64", "10", options=options)
    code, said, _ = end(words, tabled, number, lambda: any(its.pairs for its in kept(tabled)))
    assert code in (KILLS[number], -number), said  # between two runs, it dies of the signal
    (killed,) = kept(tabled)
    assert (killed.ended, killed.outcome) == ("interrupted", "open")
    code, said, _ = end(
        words, tabled, signal.SIGTERM, lambda: any(its.earlier for its in kept(tabled))
    )
    assert f"going on with {len(killed.pairs)} pairs of runs" in said
    last = kept(tabled)[0]
    assert last.earlier == len(killed.pairs) < len(last.pairs)
    assert last.pairs[: last.earlier] == killed.pairs


def soaked(results: Path) -> set[bytes]:
    """Return the finished soaks that are kept."""
    return {path.read_bytes() for path in results.glob("*-*/*/soak-*.jsonl")}


def finished_soaks() -> set[bytes]:
    """Return the finished soaks that are where they ran."""
    orders = [(name, SOAKINGS.load(SOAKINGS.path_of(name))) for name in SOAKINGS.campaigns()]
    found = [keeping.complete_of_campaign(Path(its.stage), name) for name, its in orders]
    return {path.read_bytes() for paths in found for path in paths}


@pytest.mark.parametrize(
    ("kernels", "number"),
    by_day([("mpich", signal.SIGKILL)], product(MPIS, KILLS)),
    indirect=["kernels"],
)
def test_a_killed_soak_keeps_what_was_soaked(
    kernels: Kernels, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    monkeypatch.setenv("SWITCHPOINT_KERNELS", str(kernels.build))
    monkeypatch.setenv("SWITCHPOINT_RESULTS", str(tmp_path))
    options = ["-n", "1", "--require-soak", "20000"]
    words = command(kernels.build / "tests/swp_mix", "10", "64", "0", options=options)
    here = {"cpu_model": processor(), "cores": available_cores()}
    spec = replace(ALLTOALL, environment=kernels.mpi.name, **here)
    gather = replace(spec, name="20261121T034501Z", operation="allgather")
    for its in (spec, gather):
        keeping.keep(synthetic.write(tmp_path / "measured", its))
    app = Application(kernels.mpi, kernels.build, 1, words[words.index("--") + 1 :])
    case = PlannedCase(LOCAL, kernels.mpi.name, "alltoall", "blocks", "2_on_1_node", 2, 2, [64])
    unused = RacePlan(spec.name, "local.py", 0.0, [case], advises=app.name)
    PLANS.save(unused, PLANS.path_of(unused.campaign))
    done: set[bytes] = set()
    code, said, _ = end(words, tmp_path, number, lambda: done.update(finished_soaks()) or done)
    assert code == KILLS[number], said
    assert "soaking winners" in said and len(done) == 1
    if number == signal.SIGKILL:  # the next start keeps them
        code, said, _ = end(words, tmp_path, signal.SIGTERM, lambda: done <= soaked(tmp_path))
        assert "continuing with what an interrupted start has measured" in said
    assert done <= soaked(tmp_path)
