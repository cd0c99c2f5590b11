"""The table of methods at one size."""

import numpy as np
import pytest

from dashboard.pages.explore import _cell_table
from tests.dashboard.frames import cells


@pytest.mark.parametrize(
    ("low", "high", "grey"),
    [(0.9, 1.1, True), (1.1, 1.3, False), (0.7, 0.9, False), (np.nan, np.nan, True)],
)
def test_grey_is_what_is_not_told_apart_from_the_default(
    low: float, high: float, grey: bool
) -> None:
    cell = cells().query("bytes == 8 and method in ['direct', 'neighbor']")
    other = cell["method"] == "neighbor"
    cell = cell.assign(
        speedup_low=np.where(other, low, 1),
        speedup_high=np.where(other, high, 1),
        plan_median_s=1e-5,
    )
    table = _cell_table(cell, "direct").children
    rows = {row.children[0].children.children[1].strip(): row for row in table.children[2].children}
    assert getattr(rows["neighbor"], "className", None) == ("even" if grey else None)
    assert getattr(rows["direct"], "className", None) is None
