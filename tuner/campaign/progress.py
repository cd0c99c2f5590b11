"""The progress of a batch: a bar on a terminal, otherwise a line now and then."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from tuner.campaign.times import BAR_S, LINE_S


@contextmanager
def progress(
    stage: str, launches: int, expected_s: float, count: Callable[[], int], console: Console
) -> Iterator[Callable[[], None]]:
    """Yield a function that shows how many launches have finished, if enough time has passed.

    `count` returns their number; as long as it does not grow, the kernels are being built.
    """
    period_s = BAR_S if console.is_terminal else LINE_S
    first, started_s, next_s = count(), time.monotonic(), 0.0
    columns = TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn()
    with Progress(
        *columns, console=console, refresh_per_second=1 / BAR_S, disable=not console.is_terminal
    ) as bar:
        shown = bar.add_task(f"{stage}: building the kernels", total=launches)

        def tick() -> None:
            nonlocal next_s
            elapsed_s = time.monotonic() - started_s
            if elapsed_s < next_s:
                return
            next_s = elapsed_s + period_s
            done = count()
            what, whole = f"{stage}: building the kernels", ""
            if done > first:
                what = f"{stage}: {done} of {launches} launches"
                whole = f" of about {expected_s:.0f} s"
            if console.is_terminal:
                bar.update(shown, completed=done, description=what)
            else:
                console.print(f"{what}, {elapsed_s:.0f} s{whole}", highlight=False)

        yield tick
