"""Which layout to measure next: where another choice may gain most. No input or output."""

import math
from collections import defaultdict
from collections.abc import Iterable
from statistics import NormalDist
from typing import NamedTuple

from tuner.domain.operations import DEFAULT_METHODS
from tuner.domain.tables import Point
from tuner.selection.unmeasured import Inference, MeasuredLayouts, alike, asked, choice, estimated


class Worth(NamedTuple):
    """A layout, and what is expected to be lost there by not measuring it, as a share of the time.

    The loss is the mean over operations and sizes; `operation` has the largest.
    """

    nodes: int
    ppn: int
    loss: float
    operation: str


def worths(points: Iterable[Point], cores: int | None, most_procs: int | None) -> list[Worth]:
    """Return the layouts that were not measured, of at most so many processes, the worthiest first.

    Of layouts with the same estimates, that in their middle stands for all.
    """
    of_operations, spread = MeasuredLayouts.of(points, cores)
    losses: dict[tuple[int, int], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for operation, measured in of_operations.items():
        for _, middle, near in asked(measured, spread):
            nodes, ppn = (round(number) for number in middle)
            if most_procs is not None and nodes * ppn > most_procs:
                continue
            for _, means in near[next(iter(near))]:
                for _, its in means:
                    losses[nodes, ppn][operation] += [
                        _loss(choice(point, estimates), point, estimates)
                        for point, estimates in estimated(middle, alike(near, its), spread)
                    ]
    found = []
    for (nodes, ppn), of_layout in losses.items():
        means_of = {name: sum(its) / len(its) for name, its in of_layout.items()}
        worst = max(means_of, key=lambda name: means_of[name])
        found.append(Worth(nodes, ppn, sum(means_of.values()) / len(of_operations), worst))
    return sorted(found, key=lambda worth: (-worth.loss, worth.nodes * worth.ppn, worth))


def _loss(chosen: str, point: Point, estimates: dict[str, Inference]) -> float:
    """Return the most that is expected to be gained over the choice by knowing another's time."""
    known = estimates | {DEFAULT_METHODS[point.case.operation]: Inference(0.0, 0.0)}
    mine = known[chosen]
    return max(
        (
            _expected_gain(mine.mean - its.mean, math.sqrt(mine.variance + its.variance))
            for name, its in known.items()
            if name != chosen
        ),
        default=0.0,
    )


def _expected_gain(mean: float, deviation: float) -> float:
    """Return the mean of a normal distribution's positive part."""
    normal = NormalDist()
    return deviation * normal.pdf(mean / deviation) + mean * normal.cdf(mean / deviation)
