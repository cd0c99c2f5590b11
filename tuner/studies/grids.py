"""Collectives along grids of ranks: Hartmann, Kuehnemann, Rauber, Ruenger, 2005, figures 1 and 4.

At every size the fastest layout of two and three dimensions is compared with the MPI library, here
SMPI, which is set to choose as Open MPI does.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tuner.studies.findings import Finding
from tuner.studies.layouts import DEFAULT, LAYOUTS, OPERATIONS, grid_text
from tuner.studies.simulator import Simulator, StudyError
from tuner.units import share_text

_LEAST = 0.005  # least saving that counts as one


@dataclass(frozen=True)
class GridsRow:
    """Shares of the library's time that the fastest layout saves, over sizes; and its name.

    `best` is the layout that saves most at the size where most is saved, `most_lost` the saving of
    the slowest layout at the worst size, which is negative.
    """

    operation: str
    procs: int
    layouts: int
    least: float
    mean: float
    greatest: float
    best: str
    best_bytes: int
    most_lost: float


def study(simulator: Simulator, procs: Sequence[int], sizes: str) -> Iterator[GridsRow]:
    """Yield a row for every operation of the paper and number of ranks.

    Raise StudyError, NetworkError, LaunchError, RawFileError.
    """
    for count in procs:
        simulator.require_room(count)
        if all(count % size for size in range(2, math.isqrt(count) + 1)):
            raise StudyError(f"{count} ranks form no grid: take a product of two numbers")
    methods = f"{DEFAULT}:;{LAYOUTS}"
    cases = [(each, "blocks", count, methods, sizes) for each in OPERATIONS for count in procs]
    for (operation, _, count, *_), found in zip(cases, simulator.run_all(cases), strict=True):
        times = {(each.size_bytes, each.method): each.time_s for each in found}
        yield row_of(operation, count, times)


def row_of(operation: str, procs: int, times: dict[tuple[int, str], float]) -> GridsRow:
    """Return the row from the times by size and method."""
    saved = {
        (size, method): 1 - time_s / times[size, DEFAULT]
        for (size, method), time_s in times.items()
        if method != DEFAULT
    }
    sizes = sorted({size for size, _ in saved})
    best = {size: max(value for (s, _), value in saved.items() if s == size) for size in sizes}
    where = max(saved, key=saved.__getitem__)
    return GridsRow(
        *(operation, procs, len({method for _, method in saved})),
        *(min(best.values()), sum(best.values()) / len(best), max(best.values())),
        *(grid_text(where[1], procs), where[0], min(saved.values())),
    )


def findings(rows: Sequence[GridsRow]) -> Iterator[Finding]:
    """Yield the paper's conclusions."""
    gaining = sorted({row.operation for row in rows if row.mean > _LEAST})
    yield Finding(
        "layouts save time for every collective, on average over sizes",
        len(gaining) == len(OPERATIONS),
        f"for {', '.join(gaining) or 'none'}",
    )
    at_all = sorted({row.operation for row in rows if row.greatest > _LEAST})
    yield Finding(
        "layouts save time for every collective at some size",
        len(at_all) == len(OPERATIONS),
        f"for {', '.join(at_all) or 'none'}",
    )
    most = max(rows, key=lambda row: row.greatest)
    yield Finding(
        "they save 40 to 70 % in the best case",
        most.greatest >= 0.4,
        f"{share_text(most.greatest, 0)} for {most.operation} on {most.procs} ranks as {most.best}",
    )
    worst = min(rows, key=lambda row: row.most_lost)
    yield Finding(
        "the choice of layout matters",
        worst.most_lost < -0.4,
        f"the slowest takes {1 - worst.most_lost:.1f} times as long, for {worst.operation} on "
        f"{worst.procs} ranks",
    )
