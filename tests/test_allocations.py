"""What batch systems' allocations of nodes change of decisions."""

import json
import math
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from tests import synthetic
from tests.cells import CONSTANT, Truth, chosen, make_cells, scaled
from tuner.domain.records import Cell, Header
from tuner.rawfile.reading import read_header
from tuner.selection.contrasts import contrasts_of
from tuner.selection.decisions import ERROR_LEVEL, decide
from tuner.selection.evidence import verdict
from tuner.selection.trust import Trust

SIZES = (8, 64, 512, 4096)
SLOWER: Truth = {"alltoallv": scaled(1.1), "nap": scaled(1.2), "lent": scaled(1.3)}


def measured(
    factors: Sequence[float],
    apart: timedelta,
    name: str = "job",
    launches: int = 4,
    others: Truth = SLOWER,
) -> tuple[list[Cell], Trust]:
    """Return launches in as many allocations as factors: those of `neighbor`'s times in each."""
    header = read_header(json.dumps(synthetic.header(synthetic.Campaign(), 0, "hub", 2)).encode())
    assert header is not None
    cells: list[Cell] = []
    headers: dict[int, Header] = {}
    for number, factor in enumerate(factors):
        truth, first_id = CONSTANT | {"neighbor": scaled(factor)} | others, 1000 * (number + 1)
        of_one = make_cells(
            truth, SIZES, launches=launches, campaign=str(number), seed=number, first_id=first_id
        )
        date = (datetime(2026, 11, 21, tzinfo=UTC) + number * apart).isoformat()
        numbers = range(first_id, first_id + launches)
        of_job = replace(header, allocation=name and f"{name}{number}", date=date)
        headers |= dict.fromkeys(numbers, of_job)
        cells += of_one
    return cells, Trust(cells, headers)


@pytest.mark.parametrize(
    ("allocations", "apart", "name", "status"),
    [
        (1, timedelta(hours=1), "job", "faster in this allocation"),
        (2, timedelta(hours=1), "job", "faster in this allocation"),
        (3, timedelta(minutes=29), "job", "faster in this allocation"),
        (3, timedelta(hours=1), "job", "faster"),
        (1, timedelta(hours=1), "", "faster"),
    ],
)
def test_a_method_is_faster_once_three_allocations_agree(
    allocations: int, apart: timedelta, name: str, status: str
) -> None:
    points = decide(*measured([0.7] * allocations, apart, name))
    assert chosen(points) == {("neighbor", status)}
    said = {verdict(point).partition("; ")[2] for point in points}
    expected = "3 allocations an hour apart would confirm it" * (status != "faster")
    assert said == {expected}


def test_what_differs_between_allocations_is_not_faster() -> None:
    """Though every launch is precise, and their mean is below that of the default."""
    factors = [0.6, 1.2, 0.7, 1.1]
    cells, trust = measured(factors, timedelta(hours=1))
    assert {point.method for point in decide(cells, trust)} == {"direct"}
    assert {
        point.method for point in decide(*measured([0.6, 0.65, 0.7, 0.6], timedelta(hours=1)))
    } == {"neighbor"}


@pytest.mark.parametrize(
    ("factors", "apart", "expected"),
    [
        ([0.5] * 10, timedelta(hours=1), ("neighbor", "faster")),
        ([0.5] * 10, timedelta(minutes=1), ("neighbor", "faster in this allocation")),
        ([0.6, 1.2, 0.7, 1.1] * 2, timedelta(hours=1), ("direct", "open")),
    ],
)
def test_jobs_of_one_launch_each_decide_by_what_differs_between_them(
    factors: Sequence[float], apart: timedelta, expected: tuple[str, str]
) -> None:
    """As in batches of jobs, each of which has a launch of a case."""
    assert chosen(decide(*measured(factors, apart, launches=1))) == {expected}


def test_an_allocation_that_disagrees_does_not_count() -> None:
    factors = [0.5, 0.5, 1.02]
    points = decide(*measured(factors, timedelta(hours=1)))
    assert not any(point.status == "faster" for point in points)


@pytest.mark.parametrize("allocations", [2, 3])
def test_bounds_hold_though_few_allocations_show_what_differs_between_them(
    allocations: int,
) -> None:
    """Two often look alike by chance, and many sizes of a method say no more than one."""
    random = np.random.default_rng(1)
    inside = []
    for _ in range(60):
        factors = random.lognormal(0, 0.1, allocations).tolist()
        found = contrasts_of(*measured(factors, timedelta(hours=1), others={}))
        bounds = [contrast.bounds(ERROR_LEVEL) for contrast in found.values()]
        assert all(math.isfinite(low) for low, _ in bounds)
        inside += [low < 0 < high for low, high in bounds]
    assert np.mean(inside) >= 1 - 2 * ERROR_LEVEL - 0.02
