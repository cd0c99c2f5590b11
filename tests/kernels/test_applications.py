"""The study of whole applications under the preloaded library."""

import json
import re
from pathlib import Path
from typing import NoReturn

import numpy as np
import pytest

from tests.cli import call, fail, succeed
from tests.conftest import by_day
from tests.kernels.conftest import MPIS, Kernels
from tests.kernels.preloaded import write_rules
from tuner.campaign.launches import LaunchError
from tuner.studies import applications, layouts
from tuner.studies.applications import ApplicationError, _agree, _ApplicationRun, gain
from tuner.studies.layouts import OPERATIONS, extremes_of, mean_logs

SLOW_RULES = """switchpoint-table 1
rule op=allgather method=ring
rule op=allgatherv method=ring
rule op=bcast method=binomial
"""


def test_improvements_are_over_sizes_and_launches() -> None:
    halved, slower = np.log(0.5), np.log(1.25)
    logs = np.array([[halved, slower], [halved, slower], [halved, slower]])
    found = gain("jacobi rows", (240, 480), logs, identical=True)
    assert (found.least.size, found.greatest.size, found.mean.size) == (480, 240, None)
    assert found.least.middle == pytest.approx(-0.25)
    assert found.greatest.middle == pytest.approx(0.5)
    assert found.mean.middle == pytest.approx(1 - np.sqrt(0.5 * 1.25))


def test_an_interval_holds_what_launches_scatter() -> None:
    logs = np.array([[0.1], [-0.1], [0.05], [-0.05], [0.0]])
    found = gain("adams pab", (240,), logs, identical=False)
    assert found.mean.low < found.mean.middle < found.mean.high
    assert found.mean.low < 0 < found.mean.high


def test_equal_sizes_and_layouts_save_nothing_though_the_extreme_ones_are_shown() -> None:
    """As often as a level of 95 % says."""
    random, right = np.random.default_rng(1), []
    for _ in range(400):
        logs = random.normal(0, 0.1, (6, 12))
        found = gain("jacobi rows", tuple(range(12)), logs, identical=True)
        layouts = {f"orthogonal:grid=2x{place}": logs[:, place] for place in range(12)}
        extremes = extremes_of("bcast", 2, layouts)
        shown = found.least, found.greatest, extremes.fastest_saves, extremes.slowest_saves
        right += [each.low < 0 < each.high for each in shown]
    assert np.mean(right) == pytest.approx(0.95, abs=0.02)


def test_layouts_are_compared_over_the_sizes_that_all_launches_have() -> None:
    whole = {("a", 8): 0.1, ("a", 64): 0.9, ("b", 8): 0.3, ("b", 64): 0.5, ("b", 512): 0.7}
    short = {("a", 8): 0.2, ("b", 8): 0.4, ("b", 64): 0.6}
    found = mean_logs([whole, short])
    assert {layout: logs.tolist() for layout, logs in found.items()} == {
        "a": [0.1, 0.2],
        "b": [0.3, 0.4],
    }
    assert mean_logs([whole, {}]) == {}


@pytest.mark.parametrize("norm", [1.1, np.nan, np.inf])
def test_a_wrong_result_ends_the_study(norm: float) -> None:
    right = _ApplicationRun(1.0, "0", 1.0)
    assert not _agree("jacobi", right, _ApplicationRun(1.0, "1", 1.0 + 1e-15))
    with pytest.raises(ApplicationError, match="the norm of the result"):
        _agree("jacobi", right, _ApplicationRun(1.0, "1", norm))


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_layouts_that_fail_lose_no_gains(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: list[str]
) -> None:
    def failing(*_: object) -> NoReturn:
        raise LaunchError("swpbench failed")

    saved = gain("jacobi rows", (240, 480), np.log([[0.5, 0.8]] * 3), identical=True)
    monkeypatch.setattr(applications, "find_build", lambda environment: None)
    monkeypatch.setattr(applications, "study", lambda *_: [saved])
    monkeypatch.setattr(layouts, "extremes", failing)
    table = tmp_path / "slow.table"
    table.write_text(SLOW_RULES)
    answer = call("study", "applications", "--table", table, "--procs", "2", *options)
    assert answer.exit_code == 1
    assert "jacobi rows" in answer.stdout
    assert "Error: swpbench failed" in answer.stderr


@pytest.mark.parametrize("kernels", by_day(["mpich"], MPIS), indirect=True)
def test_results_agree_bit_for_bit_where_nothing_is_added(
    kernels: Kernels, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SWITCHPOINT_KERNELS", str(kernels.build))
    table = tmp_path / "slow.table"
    table.write_text(SLOW_RULES)
    command = ("study", "applications", "--table", table, "--procs", "2", "--sizes", "48")
    options = ("--iterations", "3", "--launches", "4", "--environment", kernels.mpi.name)
    document = json.loads(succeed(*command, *options, "--layout-sizes", "", "--json"))
    gains = document["applications"]
    assert document["layouts"] == []
    assert [each["name"] for each in gains] == [
        "jacobi rows",
        "jacobi columns-all",
        "jacobi columns-root",
        "adams pab",
        "adams pabm",
    ]
    assert all(each["identical"] for each in gains)


@pytest.mark.check
def test_a_reduction_by_another_method_agrees_within_rounding(
    any_kernels: Kernels, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SWITCHPOINT_KERNELS", str(any_kernels.build))
    table = write_rules(tmp_path, "op=allreduce method=ring")
    command = ("study", "applications", "--table", table, "--procs", "3", "--sizes", "96")
    options = ("--iterations", "3", "--launches", "4", "--environment", any_kernels.mpi.name)
    document = json.loads(succeed(*command, *options, "--layout-sizes", "1K", "--json"))
    assert len(document["applications"]) == 5
    assert document["layouts"] == []  # three processes make no grid


@pytest.mark.check
def test_the_fastest_and_slowest_layouts_are_reported(
    any_kernels: Kernels, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SWITCHPOINT_KERNELS", str(any_kernels.build))
    table = write_rules(tmp_path, "op=bcast method=binomial")
    command = ("study", "applications", "--table", table, "--procs", "6", "--sizes", "48")
    options = ("--iterations", "2", "--launches", "4", "--environment", any_kernels.mpi.name)
    text = succeed(*command, *options, "--layout-sizes", "1K", "--budget", "0.1")
    assert text.count("time saved: least") == 5
    for operation in OPERATIONS:
        assert re.search(rf"{operation}: fastest layout (2x3|3x2) saves", text)


def test_what_cannot_be_studied_is_reported(
    any_kernels: Kernels, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SWITCHPOINT_KERNELS", str(any_kernels.build))
    table = write_rules(tmp_path, "op=bcast method=nonsense")
    command = ("study", "applications", "--table", table, "--environment", any_kernels.mpi.name)
    assert "not a multiple" in fail(*command, "--procs", "3", "--sizes", "16")
    assert "nonsense" in fail(*command, "--procs", "2", "--sizes", "16", "--launches", "4")
    monkeypatch.setenv("SWITCHPOINT_KERNELS", str(tmp_path))
    assert "no built applications" in fail(*command, "--procs", "2")
