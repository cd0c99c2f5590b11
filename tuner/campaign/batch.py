"""Batches of launches: each is run by one call of ReFrame, for each kind of campaign."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console

from tuner.campaign import reframe
from tuner.campaign.order import keep_finished, state
from tuner.campaign.progress import progress
from tuner.campaign.reframe import Call, DispatchError, Session
from tuner.paths import results_directory
from tuner.rawfile import keeping, reading


class Queue:
    """A queue that is asked why a job waits; `waited_s` sums the time that one was seen to wait."""

    def __init__(self, ask: Callable[[], str]) -> None:
        self.waited_s, self._ask = 0.0, ask
        self._since_s: float | None = None

    def __call__(self) -> str:
        """Ask again."""
        now_s = time.monotonic()
        if self._since_s is not None:
            self.waited_s += now_s - self._since_s
        why = self._ask()
        self._since_s = now_s if why else None
        return why


@dataclass(frozen=True)
class Batch:
    """The launches of a campaign or of one of its batches; ReFrame runs the missing ones.

    Where `launches` is None, the job decides how many it makes.
    """

    campaign: str
    title: str  # shown with the progress
    call: Call
    planned: Session  # by a dry run
    launches: int | None  # some may have finished already
    expected_s: float
    built: bool = False  # the kernels, before this batch
    resumed_by: str = ""  # command; empty for `switchpoint run --resume`
    others: int = 0  # launches of the campaign's other batches
    settled: Callable[[], str] = lambda: ""  # shown after the number of launches

    @property
    def log(self) -> Path:
        """Return the path of ReFrame's output."""
        return results_directory() / "logs" / f"{self.campaign}.log"

    def run(self, console: Console) -> Session:
        """Run the batch and show its progress; the finished launches are kept whatever happens.

        Raises:
            DispatchError: ReFrame did not run what was planned.
            KeyboardInterrupt, SystemExit: interrupted, or terminated.
        """
        try:
            return self._run_and_keep(console)
        except (KeyboardInterrupt, SystemExit):
            console.print(f"interrupted: {self}", soft_wrap=True)
            raise

    def _run_and_keep(self, console: Console) -> Session:
        shown = self.title, self.launches, self.expected_s, self.built, self._counter()
        queue = Queue(self.planned.waits)
        try:
            with progress(*shown, self.settled, queue, console) as tick:
                session = reframe.run(self.call, self.planned, self.log, tick)
            return replace(session, waited_s=queue.waited_s)
        finally:
            keep_finished(self.campaign, str(self.planned.stage))

    def require_all(self, session: Session) -> None:
        """Raise DispatchError when a job of the run failed, or a launch left no raw file."""
        if session.failures:
            failures = "\n  ".join(session.failures)
            several = "failed:\n  " if len(session.failures) > 1 else ""
            raise DispatchError(
                f"{several}{failures}\n{self}; `switchpoint tune` uses the finished launches\n"
                f"ReFrame's output is in {self.log}"
            )
        if self.launches not in (None, self._done()):
            raise DispatchError(f"{self}; see {self.log}")

    def __str__(self) -> str:
        return state(self.campaign, self._done(), self.launches, self.resumed_by)

    def _done(self) -> int:
        return len(keeping.of_campaign(self.campaign)) - self.others

    def _counter(self) -> Callable[[], int]:
        """Return a function that counts the finished launches, and opens their files only once.

        Launches are identified by their headers, as a file exists twice while it is copied.
        """
        headers: dict[Path, bytes] = {}

        def count() -> int:
            paths = {*keeping.of_campaign(self.campaign), *reading.below(self.planned.stage)}
            for path in paths - headers.keys():
                if keeping.is_complete(path, self.campaign) and (line := keeping.header_line(path)):
                    headers[path] = line
            return len({*headers.values()}) - self.others

        return count
