"""Launches of a study as jobs of a site (`studied` in checks/study.py)."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from tuner.campaign import reframe
from tuner.campaign.durations import SESSION_S
from tuner.campaign.order import STUDIES, STUDY, StudyOrder
from tuner.campaign.progress import progress
from tuner.campaign.reframe import Call, DispatchError
from tuner.domain.effort import START_S
from tuner.paths import new_campaign, results_directory
from tuner.rawfile import reading
from tuner.rawfile.reading import BenchFile


def run(wanted: StudyOrder, config: Path, stage: str, console: Console) -> list[list[BenchFile]]:
    """Run all launches by one session of ReFrame; return their files by job.

    `stage` is shown with the progress. The directory of the order must be seen by all nodes.

    Raises:
        DispatchError: ReFrame cannot run the jobs, one failed, or its file cannot be used.
        KeyboardInterrupt, SystemExit: interrupted.
    """
    name = new_campaign()
    path = STUDIES.path_of(name)
    STUDIES.save(wanted, path)
    call = Call(config, ["--name=^studied"], {"campaign": name}, {STUDY: str(path)}, "study.py")
    planned = reframe.dry_run(call).clear()

    def finished() -> int:
        return len(list(Path(wanted.directory).glob("*.jsonl")))

    log = results_directory() / "logs" / f"{name}.log"
    launches = sum(len(job.launches) for job in wanted.jobs)
    expected_s = SESSION_S + (START_S + wanted.budget_s) * launches
    shown = stage, launches, expected_s, False, finished, lambda: "", planned.waits, console
    with progress(*shown) as tick:
        session = reframe.run(call, planned, log, tick)
    if session.failures:
        raise DispatchError("\n  ".join([*session.failures, f"ReFrame's output is in {log}"]))
    session.clear()
    files = [
        [reading.read(wanted.raw_file(number, launch)) for launch in range(len(job.launches))]
        for number, job in enumerate(wanted.jobs)
    ]
    if problems := [each for of_job in files for file in of_job for each in file.problems]:
        raise DispatchError(f"a launch cannot be used: {problems[0]}; ReFrame's output is in {log}")
    for raw_file in Path(wanted.directory).glob("*.jsonl"):
        raw_file.unlink()
    return files
