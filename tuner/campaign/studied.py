"""Launches of a study as jobs of a site (`studied` in checks/study.py)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from tuner.campaign import reframe
from tuner.campaign.durations import SESSION_S
from tuner.campaign.order import STUDIES, STUDY, StudyOrder
from tuner.campaign.progress import progress
from tuner.campaign.reframe import Call
from tuner.domain.effort import START_S
from tuner.paths import new_campaign, results_directory
from tuner.rawfile import reading
from tuner.rawfile.reading import BenchFile


def run(
    wanted: StudyOrder, config: Path, options: Sequence[str], title: str, console: Console
) -> list[list[BenchFile]]:
    """Run all launches by one session of ReFrame with its options; return their files by job.

    `title` is shown with the progress. The directory of the order must be seen by all nodes. Why
    a job failed is printed; it has no files.

    Raises:
        DispatchError: ReFrame cannot run the jobs.
        KeyboardInterrupt, SystemExit: interrupted.
    """
    name = new_campaign()
    path = STUDIES.path_of(name).absolute()
    STUDIES.save(wanted, path)
    selection = ["--name=^studied", *options]
    call = Call(config, selection, {"campaign": name}, {STUDY: str(path)}, "study.py")
    planned = reframe.dry_run(call).clear()

    def finished() -> int:
        return len(list(Path(wanted.directory).glob("*.jsonl")))

    log = results_directory() / "logs" / f"{name}.log"
    launches = sum(len(job.launches) for job in wanted.jobs)
    expected_s = SESSION_S + (START_S + wanted.budget_s) * launches
    shown = title, launches, expected_s, False, finished, lambda: "", planned.waits, console
    with progress(*shown) as tick:
        session = reframe.run(call, planned, log, tick)
    failures, files = [*session.failures], []
    for number, job in enumerate(wanted.jobs):
        paths = [wanted.raw_file(number, launch) for launch in range(len(job.launches))]
        its = [reading.read(path) for path in paths if path.is_file()]
        problems = [each for file in its for each in file.problems]
        failures += [f"a launch cannot be used: {problem}" for problem in problems[:1]]
        files.append(its if len(its) == len(paths) and not problems else [])
    for failure in failures:
        console.print(f"failed: {failure}; ReFrame's output is in {log}", soft_wrap=True)
    session.clear()
    for raw_file in Path(wanted.directory).glob("*.jsonl"):
        raw_file.unlink()
    return files
