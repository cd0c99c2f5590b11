"""Finished launches in the stage of a campaign, which are kept among the results."""

import os
from pathlib import Path

import pytest

from tests import synthetic
from tuner.campaign.order import keep_finished
from tuner.rawfile import keeping

NAME = "20261121T034500Z"


def test_a_stage_that_cannot_be_looked_for_holds_nothing_to_keep(results: Path) -> None:
    """As one in the home of another user, which is closed to others: here by its name's length."""
    keep_finished(NAME, f"/{'n' * 300}")


def test_a_launch_that_another_process_has_kept_is_no_error(
    results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (path,) = synthetic.write(tmp_path / "stage", synthetic.Campaign(name=NAME, launches=1))
    listed = [[tmp_path / "cleared.jsonl", path], [path]]
    monkeypatch.setattr(keeping, "complete_of_campaign", lambda *_: listed.pop(0))
    keep_finished(NAME, str(tmp_path))
    assert [its.name for its in keeping.of_campaign(NAME)] == [path.name]


def test_of_a_job_that_is_retried_the_last_launches_are_kept(results: Path, tmp_path: Path) -> None:
    """A failed attempt leaves its stage directory, with complete raw files of the same names."""
    stages = tmp_path / "stage" / "exchange", tmp_path / "stage" / "exchange_retry1"
    for seed, stage in enumerate(stages):
        synthetic.write(stage, synthetic.Campaign(name=NAME, launches=2, seed=seed))
    first, last = (sorted(stage.rglob("*.jsonl")) for stage in stages)
    for seconds, paths in enumerate((first, last)):
        for path in paths:
            os.utime(path, (seconds, seconds))
    last.pop().unlink()
    for _ in range(2):
        keep_finished(NAME, str(tmp_path / "stage"))
    kept = [path.read_bytes() for path in keeping.of_campaign(NAME)]
    assert kept == [last[0].read_bytes(), first[1].read_bytes()]


@pytest.mark.parametrize(("ppn", "kept"), [(2, 2), (1, 0)])
def test_launches_on_another_layout_are_not_kept(
    ppn: int, kept: int, results: Path, tmp_path: Path
) -> None:
    """Whoever keeps the finished launches of a campaign keeps those of interrupted jobs too."""
    stage = tmp_path / "stage"
    paths = synthetic.write(stage, synthetic.Campaign(name=NAME, procs=(2,), launches=2))
    keeping.expect(paths[0].parent, {path.name: (2, ppn) for path in paths})
    keeping.expect(paths[0].parent, {"of-another-job.jsonl": (4, 4)})
    keep_finished(NAME, str(stage))
    assert len(keeping.of_campaign(NAME)) == kept
