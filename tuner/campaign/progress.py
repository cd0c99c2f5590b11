"""The progress of a batch: a bar on a terminal, otherwise a line now and then."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from tuner.campaign.durations import BAR_S, LINE_S
from tuner.units import counted


@contextmanager
def progress(
    title: str,
    launches: int | None,
    expected_s: float,
    built: bool,
    count: Callable[[], int],
    settled: Callable[[], str],
    pending: Callable[[], str],
    console: Console,
) -> Iterator[Callable[[], None]]:
    """Yield a function that shows the number of finished launches, if enough time has passed.

    `count` returns their number; until there is one, the kernels are being built unless they are
    `built`. What `settled` returns follows it, and why a job waits, which `pending` returns. Where
    the launches are not known beforehand, the bar shows the time.
    """
    period_s = BAR_S if console.is_terminal else LINE_S
    started_s, next_s, next_asked_s, waits = time.monotonic(), 0.0, 0.0, ""
    bar = Progress(
        *(TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()),
        console=console,
        refresh_per_second=1 / BAR_S,
        disable=not console.is_terminal,
    )
    shown = bar.add_task(title, total=launches or expected_s)

    def tick() -> None:
        nonlocal next_s, next_asked_s, waits
        elapsed_s = time.monotonic() - started_s
        if elapsed_s < next_s:
            return
        next_s = elapsed_s + period_s
        what, whole, done = f"{title}: building the kernels or in the first launch", "", count()
        if done or built:
            finished = f"{done} of " * bool(launches)
            finished += counted(launches or done, "launch", "launches")
            what, whole = f"{title}: {finished}{settled()}", f" of about {expected_s:.0f} s"
        if elapsed_s >= next_asked_s:
            waits, next_asked_s = pending(), elapsed_s + LINE_S
        what += f"; {waits}" if waits else ""
        bar.update(shown, completed=done if launches else elapsed_s, description=what)
        if not console.is_terminal:
            console.print(f"{what}, {elapsed_s:.0f} s{whole}")

    with bar:
        yield tick
