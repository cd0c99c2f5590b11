"""The fastest and the slowest layout of processes for each collective, against the MPI library.

The figures are those of Hartmann, Kuehnemann, Rauber, Ruenger (2005): a collective along the
dimensions of a grid of processes, for all grids of two and three dimensions.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tuner.campaign.launches import measure
from tuner.domain.operations import method_word
from tuner.machine.mpi import launch
from tuner.models.collectives import grid_of
from tuner.stats import Floats
from tuner.studies.applications import CHOOSING, SHOWN, Build, Improvement, improvement

OPERATIONS = ("bcast", "gather", "scatter", "reduce", "allreduce", "allgather")
"""The operations of the paper."""

DEFAULT, LAYOUTS = "vendor", "orthogonal"


@dataclass(frozen=True)
class Extremes:
    """The layouts that save most and least time for one operation, on average over sizes."""

    operation: str
    fastest: str
    fastest_saves: Improvement
    slowest: str
    slowest_saves: Improvement


def extremes(
    build: Build, procs: int, sizes: str, launches: int, budget_s: float
) -> list[Extremes]:
    """Measure all layouts of every operation; `sizes` as swpbench takes them.

    The list is empty when no grid has that many processes. Raise LaunchError when swpbench fails.
    """
    found = []
    for operation in OPERATIONS:
        measured = [
            _measure(build, procs, operation, sizes, number, budget_s) for number in range(launches)
        ]
        logs = mean_logs(measured)
        if logs:
            found.append(extremes_of(operation, procs, logs))
    return found


def _measure(
    build: Build, procs: int, operation: str, sizes: str, number: int, budget_s: float
) -> dict[tuple[str, int], float]:
    """Measure one launch, and return log(time / time of the MPI library) by layout and size."""
    start = launch(build.mpi, procs, build=build.root)
    options = ["--op", operation, "--pattern", "blocks", "--sizes", sizes, "--quiet"]
    options += ["--methods", f"{method_word(DEFAULT)} {LAYOUTS}", "--launch", str(number)]
    medians_s = measure(start, build.programs["swpbench"], options, budget_s).medians_s()
    return {
        (method, size): math.log(time_s / medians_s[DEFAULT, size])
        for (method, size), time_s in medians_s.items()
        if method != DEFAULT and (DEFAULT, size) in medians_s
    }


def mean_logs(measured: Sequence[Mapping[tuple[str, int], float]]) -> dict[str, Floats]:
    """Return each layout's mean over sizes in every launch.

    Where time is short, launches leave out sizes: those that all have, of all layouts, count.
    """
    common = set.intersection(*map(set, measured))
    layouts = sorted({method for method, _ in common})
    sizes = [
        size
        for size in sorted({size for _, size in common})
        if all((method, size) in common for method in layouts)
    ]
    return {
        method: np.array([np.mean([each[method, size] for size in sizes]) for each in measured])
        for method in layouts
        if sizes
    }


def extremes_of(operation: str, procs: int, logs: dict[str, Floats]) -> Extremes:
    """Return the extremes of the mean logarithms of each layout, one for each launch."""
    ordered = sorted(logs, key=lambda method: float(logs[method][CHOOSING].mean()))
    fastest, slowest = ordered[0], ordered[-1]
    return Extremes(
        operation,
        grid_text(fastest, procs),
        improvement(logs[fastest][SHOWN], None),
        grid_text(slowest, procs),
        improvement(logs[slowest][SHOWN], None),
    )


def grid_text(method: str, procs: int) -> str:
    """Return the grid of a layout, as 8x4."""
    return "x".join(map(str, grid_of(method, procs) or ()))
