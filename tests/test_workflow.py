"""`switchpoint run`: what it would do, and that it does it."""

import json

import pytest
from click.testing import CliRunner

from tuner.cli import main
from tuner.mpi import find_mpis


@pytest.fixture
def results(tmp_path, monkeypatch):
    monkeypatch.setenv("SWITCHPOINT_RESULTS", str(tmp_path))
    return tmp_path


def switchpoint(*arguments: str) -> str:
    result = CliRunner().invoke(main, arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def test_a_dry_run_tells_the_jobs_and_the_time_and_runs_nothing(results):
    said = switchpoint("run", "--dry-run", "--minutes", "3", "--", "--name=exchange")
    assert "matrix:bar" in said
    assert "discovery" not in said
    assert "expected time: 3.0 min" in said
    assert list(results.iterdir()) == []


def test_launches_share_the_time(results):
    def plan(minutes: str) -> dict:
        options = ["--dry-run", "--json", "--minutes", minutes, "--", "--name=discovery"]
        return json.loads(switchpoint("run", *options))

    short, long = plan("3"), plan("30")
    assert short["launches"] == long["launches"]
    assert long["budget_s"] > 5 * short["budget_s"]
    assert long["expected_s"] == pytest.approx(1800, rel=0.02)


def test_a_run_measures_tunes_exports_and_tells_where(results):
    selection = [f"--prgenv={find_mpis()[0].name}", "--tag=smoke", "--name=exchange"]
    options = ["--minutes", "0.5", "--json", "--anonymous-as", "published"]
    said = switchpoint("run", *options, "--", *selection, f"--prefix={results / 'reframe'}")
    told = json.loads(said)
    assert told["launches"] == 6
    (system,) = results.glob("published-*")
    raw_files = list(system.glob(f"{told['campaign']}/*.jsonl"))
    assert len(raw_files) == 6
    for path in raw_files:
        header = json.loads(path.read_text().splitlines()[0])
        assert (header["system"], header["hostnames"]) == ("published", ["node0"])
    assert "rule op=exchange" in (system / "switchpoint.table").read_text()
    assert json.loads((system / "table.json").read_text())["rules"]
    assert all(path in said for path in map(str, system.glob("*table*")))
