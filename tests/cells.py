"""Cells whose truth is known, and what was chosen of their points."""

import math
from collections.abc import Callable, Sequence

import numpy as np

from tuner.domain.cases import Case, CellKey, Layout
from tuner.domain.records import PART, Cell, Features
from tuner.domain.tables import Point

Truth = dict[str, Callable[[int], float]]

CONSTANT: Truth = {"direct": lambda size: 1e-5}


def make_cells(
    truth: Truth,
    sizes: Sequence[int] = (8, 64, 512, 4096),
    *,
    launches: int = 5,
    samples: int = 40,
    launch_noise: float = 0.01,
    sample_noise: float = 0.05,
    drift: float = 0.0,
    operation: str = "exchange",
    pattern: str = "random:degree=6,seed=1",
    degree: tuple[int, float] = (6, 5.5),
    layout: tuple[int, int] = (1, 2),
    sync: str = "window",
    oversubscribed: bool = False,
    campaign: str = "A",
    seed: int = 1,
    first_id: int = 1000,
) -> list[Cell]:
    """Return cells as rounds in random order give them, drifting through each launch."""
    random = np.random.default_rng(seed)
    cells = []
    for size in sizes:
        place = random.random((launches, samples, len(truth))).argsort(axis=2)
        for index, (method, time) in enumerate(truth.items()):
            position = np.arange(samples) + place[:, :, index] / len(truth)
            level = time(size) * random.lognormal(0, launch_noise, (launches, 1))
            noise = random.lognormal(0, sample_noise, (launches, samples))
            values = (level * noise * (1 + drift * position / samples)).astype(np.float32)
            medians = np.median(values, axis=1)
            parts = [(i, first_id + i, samples, 0, m, 1e-5, 1e-6) for i, m in enumerate(medians)]
            key = CellKey(
                "local-cpu-mpich-000000",
                campaign,
                Case(
                    *(operation, pattern, Layout(math.prod(layout), *layout, oversubscribed)),
                    *(sync, size, size),
                ),
                method,
            )
            features = Features(*degree, degree[1] * size, degree[0] * size, "{}")
            rounds = np.tile(np.arange(samples, dtype=np.uint16), launches)
            cells.append(Cell(key, features, np.array(parts, PART), rounds, values.ravel()))
    return cells


def scaled(factor: float) -> Callable[[int], float]:
    return lambda size: 1e-5 * factor


def chosen(points: list[Point]) -> set[tuple[str, str]]:
    return {(point.method, point.status) for point in points}
