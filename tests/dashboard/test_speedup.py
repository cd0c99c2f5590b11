"""Speed-up over the default."""

import numpy as np
import pytest

from dashboard.speedup import paired_speedups
from tuner.domain.cases import Case, CellKey, Layout
from tuner.domain.records import PART, Cell, Features


def cell(
    method: str, medians_s: dict[int, float], samples: int = 20, system: str = "local-cpu-mpich-0"
) -> Cell:
    """Return a cell with these medians by launch."""
    parts = np.zeros(len(medians_s), PART)
    parts["samples"] = samples
    parts["launch"], parts["median_s"] = list(medians_s), list(medians_s.values())
    case = Case("exchange", "p", Layout(2, 1, 2, False), "window", 8, 8)
    key = CellKey(system, "c", case, method)
    nothing = np.zeros(0)
    features = Features(1, 1.0, 8.0, 8, "{}")
    return Cell(key, features, parts, nothing.astype(np.uint16), nothing.astype(np.float32))


def test_drift_between_launches_cancels() -> None:
    drift = {1: 1.0, 2: 5.0, 3: 0.2}
    cells = [
        cell("direct", {launch: 2e-6 * factor for launch, factor in drift.items()}),
        cell("neighbor", {launch: 1e-6 * factor for launch, factor in drift.items()}),
    ]
    row = paired_speedups(cells, "direct").set_index("method").loc["neighbor"]
    assert row["speedup"] == pytest.approx(2)
    assert (row["speedup_low"], row["speedup_high"]) == pytest.approx((2, 2))


def test_only_launches_that_have_both_count() -> None:
    cells = [cell("direct", {1: 2e-6, 2: 2e-6}), cell("neighbor", {2: 1e-6, 3: 9e-6})]
    row = paired_speedups(cells, "direct").set_index("method").loc["neighbor"]
    assert row["speedup"] == pytest.approx(2)
    assert np.isnan(row["speedup_low"]) and np.isnan(row["speedup_high"])


def test_the_default_is_one_and_without_it_there_is_no_speedup() -> None:
    alone = paired_speedups([cell("neighbor", {1: 1e-6, 2: 1e-6})], "direct")
    assert alone["speedup"].isna().all()
    both = paired_speedups([cell("direct", {1: 1e-6, 2: 3e-6})], "direct")
    assert both[["speedup", "speedup_low", "speedup_high"]].eq(1).all(axis=None)


@pytest.mark.parametrize(
    ("system", "speedup"), [("local-cpu-mpich-0", np.nan), ("simulated-torus-2-simgrid-0", 2)]
)
def test_one_sample_is_enough_on_simulated_machines_only(system: str, speedup: float) -> None:
    cells = [cell("direct", {1: 2e-6}, 1, system), cell("neighbor", {1: 1e-6}, 1, system)]
    row = paired_speedups(cells, "direct").set_index("method")
    assert row["speedup"].get("neighbor") == pytest.approx(speedup, nan_ok=True)
