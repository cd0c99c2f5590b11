"""Which violations of performance guidelines are reported."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests import probes, synthetic
from tests.cli import fail, succeed
from tuner.rawfile.ingest import ingest
from tuner.selection.guidelines import violations


def cell(operation: str, size: int, median_s: float, **fields: Any) -> dict[str, Any]:
    return {
        "operation": operation,
        "pattern": "blocks:root=0",
        "nodes": 1,
        "procs": 4,
        "ppn": 4,
        "oversubscribed": 0,
        "sync": "window",
        "method": "vendor",
        "size_bytes": size,
        "launches": 5,
        "median_s": median_s,
        "low_s": 0.97 * median_s,
        "high_s": 1.03 * median_s,
    } | fields


def test_a_collective_that_is_slower_than_its_emulation_is_reported() -> None:
    parts = [cell("reduce", 64, 2e-6), cell("bcast", 64, 3e-6)]
    assert violations([*parts, cell("allreduce", 64, 5.2e-6)]) == []
    (found,) = violations([*parts, cell("allreduce", 64, 7e-6)])
    assert (found.operation, found.than) == ("allreduce", "reduce and bcast")
    assert found.ratio == pytest.approx(1.4)


def test_blocks_of_an_emulation_grow_with_the_processes() -> None:
    (found,) = violations([cell("scatter", 64, 9e-6), cell("bcast", 256, 3e-6)])
    assert (found.operation, found.than) == ("scatter", "bcast")
    parts = [cell("scatter", 16, 1e-6), cell("allgather", 16, 1e-6)]
    (found,) = violations([*parts, cell("bcast", 64, 9e-6)])
    assert found.than == "scatter and allgather"
    assert violations([*parts, cell("bcast", 66, 9e-6)]) == []


def test_less_data_does_not_take_longer() -> None:
    sizes = [cell("exchange", 8, 4e-6), cell("exchange", 64, 2e-6), cell("exchange", 512, 3e-6)]
    (found,) = violations(sizes)
    assert (found.bytes, found.than, found.ratio) == (8, "itself at 64 B", 2)


def test_what_intervals_or_a_single_launch_leave_open_is_not_reported() -> None:
    wide = cell("exchange", 8, 4e-6, low_s=1e-6)
    assert violations([wide, cell("exchange", 64, 2e-6)]) == []
    single = cell("exchange", 8, 4e-6, launches=1)
    assert violations([single, cell("exchange", 64, 2e-6)]) == []


def test_layouts_and_schemes_are_not_mixed() -> None:
    for other in ({"ppn": 2}, {"sync": "barrier"}, {"oversubscribed": 1}):
        assert violations([cell("gather", 8, 4e-6), cell("allgather", 8, 2e-6, **other)]) == []


def test_the_command_prints_the_last_campaign(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SWITCHPOINT_RESULTS", str(tmp_path))
    good = synthetic.Campaign(name="good", samples=20)
    synthetic.write(tmp_path, good)
    succeed("ingest")
    assert "0 guideline violations in 20 cells of several" in succeed("check", "library")
    times = {8: 9e-6, 64: 4e-6}
    bad = synthetic.Campaign(
        name="later", samples=20, seed=2, times=lambda method, size: times.get(size, 1e-3)
    )
    paths = synthetic.write(tmp_path, bad)
    for path in paths:
        path.write_text(path.read_text().replace("2026-11-21T03", "2026-11-22T03"))
    succeed("ingest")
    text = succeed("check", "library")
    assert "campaign later: 4 guideline violations" in text
    assert "itself at 64 B" in text
    assert json.loads(succeed("check", "library", "--campaign", "good", "--json")) == []
    assert "no methods were measured in campaign other" in fail(
        "check", "library", "--campaign", "other"
    )


def test_a_system_without_methods_is_reported(tmp_path: Path) -> None:
    probes.write(tmp_path, probes.ProbeCampaign(probes.LAPTOP, launches=1, pairs=(1,)))
    database = tmp_path / "s.db"
    assert ingest(database, [tmp_path]).problems == []
    said = fail("check", "library", "--database", database)
    assert "no methods were measured in local-cpu-mpich-" in said


def test_cells_of_one_launch_do_not_count_as_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SWITCHPOINT_RESULTS", str(tmp_path))
    synthetic.write(tmp_path, synthetic.Campaign(samples=20, launches=1))
    succeed("ingest")
    assert "0 guideline violations in 0 cells of several" in succeed("check", "library")
