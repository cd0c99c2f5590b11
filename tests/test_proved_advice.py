"""Runs of a program with and without a table: what they prove, and what is said of it."""

import re
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from tests.profiles import LINE, parse
from tuner.advice import document, mix, saved
from tuner.advice.paired_runs import PairedRuns
from tuner.advice.proof import ERROR_LEVEL, LEAST_PAIRS, Proof
from tuner.advice.running import Application
from tuner.machine.mpi import Mpi


def pairs(ratio: float, noise: float, count: int, seed: int = 1) -> list[tuple[float, float]]:
    """Return runs with a table that take `ratio` times as long."""
    random = np.random.default_rng(seed)
    return [(1.0, ratio * float(np.exp(noise * random.normal()))) for _ in range(count)]


@pytest.mark.parametrize(
    ("ratio", "noise", "count", "outcome"),
    [
        (0.8, 0.01, 3, "gain"),
        (1.2, 0.01, 3, "loss"),
        (1.0, 0.001, 8, "none"),
        (0.98, 0.05, 4, "open"),
        (0.5, 0.001, LEAST_PAIRS - 1, "open"),
    ],
)
def test_a_difference_is_resolved(ratio: float, noise: float, count: int, outcome: str) -> None:
    proof = Proof.of(pairs(ratio, noise, count))
    assert proof.outcome == outcome
    assert proof.low < proof.ratio < proof.high


def test_a_table_with_which_the_program_fails_is_not_recommended() -> None:
    its = document.proved(document.advice(mix.mix(parse(LINE), None)), Proof.of([(1.0, 0.5)] * 3))
    failed = replace(its, outcome="failed", ended="with the table, it hung", lines=["export A=1"])
    said = [*document.outcome(failed)]
    assert said[0] == "the table is not recommended: with the table, it hung"
    assert "before that, the table saved 50 %" in said[1] and document.use(failed) == []
    again = replace(its, failed_before=document.failure_of(failed))
    assert "caution: an earlier start failed: with the table, it hung" in document.outcome(again)
    assert document.failure_of(again) == document.failure_of(failed)


def test_a_failure_is_not_forgotten_after_a_start_that_was_resolved(tmp_path: Path) -> None:
    its = replace(document.advice(mix.mix(parse(LINE), None)), identity="one", pairs=[(1.0, 0.5)])
    (tmp_path / "profiles").mkdir()
    failed = replace(its, outcome="failed", ended="it hung")
    for number, (outcome, pairs_left) in enumerate({"open": its.pairs, "gain": []}.items()):
        later = replace(its, outcome=outcome, failed_before=document.failure_of(failed))
        saved.save(saved.profile_path(tmp_path, str(number)), later)
        assert saved.before(tmp_path, "one") == (pairs_left, "it hung")
    assert saved.before(tmp_path, "other") == ([], "")


@pytest.mark.parametrize(
    ("reported", "unchanged"),
    [
        (["alltoallv not by bruck: 3 calls"], True),
        (["alltoallv by vendor: 3 calls"], True),
        (["alltoallv by bruck: 3 calls", "alltoallv not by bruck: 1 call"], False),
        ([], False),  # as where the program's errors go to a file
    ],
)
def test_calls_are_unchanged_only_where_that_is_reported(
    reported: list[str], unchanged: bool
) -> None:
    mpi = Mpi("mpich", "mpich", "4.0.2", "mpicc", "mpiexec")
    app = Application(mpi, Path(), 2, ["true"])
    assert PairedRuns(app, Path(), 1.0, 1.0, dispatched=reported).unchanged == unchanged


def test_the_cost_of_recording_is_that_of_the_untouched_runs() -> None:
    its = document.proved(document.advice(mix.mix(parse(LINE), None)), Proof.of([(2.0, 1.0)] * 3))
    for recorded_s, said in ((2.02, "1.0 % longer"), (1.9, "5.0 % less"), (None, "")):
        lines = [*document.outcome(replace(its, recorded_s=recorded_s))]
        assert any(f"the recorded run took {said} than" in line for line in lines) == bool(said)
    known = document.proved(its, Proof.of([(2.0, 1.0), (2.1, 1.0), (2.2, 1.0)]))
    for recorded_s, said in ((2.01, "costs less"), (2.15, "below their diff"), (2.3, "may cost")):
        assert said in " ".join(document.outcome(replace(known, recorded_s=recorded_s)))


def test_a_table_that_slows_down_does_not_save() -> None:
    its = document.advice(mix.mix(parse(LINE), None))
    slower = document.proved(its, Proof.of([(1.0, 1.05)] * (LEAST_PAIRS - 1)))
    said = next(document.outcome(slower))
    assert "so far the table takes 5.0 % longer (no interval: three pairs are needed" in said
    assert (slower.outcome, slower.low, slower.high) == ("open", None, None)
    loss = next(document.outcome(document.proved(its, Proof.of(pairs(1.2, 0.01, 8)))))
    ends = re.search(r"slower with the table \(([\d.]+) % to ([\d.]+) %,", loss)
    assert ends and float(ends[1]) < 20 < float(ends[2])
    faster = document.proved(its, Proof.of(pairs(0.8, 0.01, 3)))
    assert faster.high is not None and faster.high < 1


def test_what_is_not_measured_is_not_called_no_gain() -> None:
    its = document.advice(mix.mix(parse(LINE), None))
    said = [next(document.outcome(replace(its, outcome=outcome))) for outcome in ("open", "none")]
    assert [text.partition(":")[0] for text in said] == ["not resolved", "no gain"]


def test_runs_that_may_stop_at_any_pair_are_seldom_wrong() -> None:
    wrong = 0
    for seed in range(400):
        runs = pairs(1.0, 0.05, 12, seed)
        looks = (Proof.of(runs[:count]).outcome for count in range(LEAST_PAIRS, 13))
        wrong += any(look in ("gain", "loss") for look in looks)
    assert wrong <= 1.5 * ERROR_LEVEL * 400
