"""Statistics against known truth."""

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from scipy import special
from scipy import stats as reference

from tuner import stats

segments = st.lists(
    st.lists(st.floats(2.0**-60, 2.0**60, width=32), min_size=1, max_size=30),
    min_size=1,
    max_size=10,
)


def flat(lists: list[list[float]]) -> tuple[np.ndarray, np.ndarray]:
    values = np.array([value for values in lists for value in values], dtype=np.float32)
    return values, np.array([len(values) for values in lists])


@given(segments)
def test_segments_are_sorted_each_by_itself(lists: list[list[float]]) -> None:
    ordered = stats.sort_segments(*flat(lists))
    assert ordered.tolist() == [value for values in lists for value in sorted(values)]


@given(segments)
def test_a_summary_says_what_numpy_says(lists: list[list[float]]) -> None:
    summary = stats.summarise(*flat(lists))
    for i, values in enumerate(lists):
        assert summary.median[i] == pytest.approx(np.median(values), rel=1e-12)
        assert summary.p10[i] == pytest.approx(np.quantile(values, 0.1), rel=1e-9)
        assert summary.p90[i] == pytest.approx(np.quantile(values, 0.9), rel=1e-9)
        assert summary.low[i] <= summary.median[i] <= summary.high[i]
        above = np.mean(np.array(values) > 2 * summary.median[i])
        assert summary.above_2_medians[i] == pytest.approx(above)


@pytest.mark.parametrize(("n", "lower"), [(5, 0), (6, 0), (10, 1), (20, 5), (40, 13), (100, 39)])
def test_ranks_are_those_of_the_tables_for_the_sign_test(n: int, lower: int) -> None:
    low, high = stats.median_interval_ranks(np.array([n]))
    assert (low[0], high[0]) == (lower, n - 1 - lower)


@pytest.mark.parametrize("n", [6, 20, 50, 200])
def test_the_order_statistic_interval_covers_the_median(n: int) -> None:
    samples = np.random.default_rng(n).lognormal(0, 1, (4000, n)).astype(np.float32)
    summary = stats.summarise(samples.ravel(), np.full(4000, n))
    covered = np.mean((summary.low <= 1) & (summary.high >= 1))
    assert 0.94 < covered < 0.985  # at least 95 % but for the error of 4000 trials; discrete


@pytest.mark.parametrize("launches", [2, 5, 9, 10, 20])
@pytest.mark.parametrize("noise", ["normal", "skewed"])
def test_the_interval_over_launches_covers_the_mean(launches: int, noise: str) -> None:
    random = np.random.default_rng(launches)
    if noise == "normal":
        values = random.normal(3, 0.1, (2000, launches))
    else:
        values = 3 + 0.1 * (random.gamma(4, 0.5, (2000, launches)) - 2)
    low, high = stats.mean_interval(values)
    covered = np.mean((low <= 3) & (high >= 3))
    assert 0.92 < covered < 0.975


def test_correlated_samples_need_the_interval_over_launches() -> None:
    """With one bias a launch, an interval over pooled samples claims far too much."""
    random = np.random.default_rng(1)
    covered = {"pooled": 0, "launches": 0}
    for _ in range(300):
        biases = random.normal(0, 0.02, (5, 1))
        samples = np.exp(biases + random.normal(0, 0.02, (5, 40))).astype(np.float32)
        pooled = stats.summarise(samples.ravel(), np.array([200]))
        covered["pooled"] += bool(pooled.low[0] <= 1 <= pooled.high[0])
        low, high = stats.mean_interval(np.log(np.median(samples, axis=1)))
        covered["launches"] += bool(low <= 0 <= high)
    assert covered["pooled"] < 200
    assert covered["launches"] > 275


def test_intervals_do_not_depend_on_how_many_are_asked_for_at_once() -> None:
    """To the last digit: however files come in batches, the store has to be the same."""
    for launches in (5, 12):
        values = np.random.default_rng(3).normal(0, 1, (200, launches))
        low, high = stats.mean_interval(values)
        assert low[150] == stats.mean_interval(values[150])[0]
        assert high[199] == stats.mean_interval(values[199:])[1][0]


@pytest.mark.parametrize("launches", [5, 12])
def test_equal_launches_give_an_interval_of_one_point(launches: int) -> None:
    low, high = stats.mean_interval(np.full(launches, 0.25))
    assert (low, high) == pytest.approx((0.25, 0.25))


def test_the_quantiles_of_student_are_right() -> None:
    freedoms = np.arange(1, len(stats._STUDENT) + 1)
    assert pytest.approx(special.stdtrit(freedoms, 0.975), rel=1e-7) == stats._STUDENT


@given(st.floats(0.5, 1e6), st.floats(0.5, 1 - 1e-9))
def test_quantiles_of_student_are_those_of_scipy(freedom: float, probability: float) -> None:
    expected = reference.t.ppf(probability, freedom)
    assert stats.student(freedom, probability) == pytest.approx(expected, rel=1e-6, abs=1e-12)


@given(st.lists(st.floats(0, 1), max_size=40), st.floats(0.01, 0.5))
@example([0.041, 0.001, 0.9, 0.025, 0.011], 0.05)
@example([0.02, 0.02, 0.03], 0.03)
def test_discoveries_are_those_of_benjamini_and_hochberg(p: list[float], share: float) -> None:
    adjusted = reference.false_discovery_control(p) if p else np.empty(0)
    assume(not np.isclose(adjusted, share, rtol=1e-9).any())
    assert stats.discoveries(np.array(p), share).tolist() == (adjusted <= share).tolist()


@given(st.lists(st.integers(0, 1 << 20), min_size=6, max_size=60, unique=True))
def test_the_interval_of_the_median_is_that_of_the_quantile_test(values: list[int]) -> None:
    samples = np.array(values, np.float32)
    summary = stats.summarise(samples, np.array([len(values)]))
    expected = reference.quantile_test(samples, p=0.5).confidence_interval(stats.LEVEL)
    assert (summary.low[0], summary.high[0]) == (expected.low, expected.high)


@pytest.mark.parametrize("n", [1, 2, 19, 20, 200, 3001])
def test_ranks_are_exact(n: int) -> None:
    below = special.bdtr(np.arange(n // 2 + 1), n, 0.5)
    low, _ = stats.median_interval_ranks(np.array([n]))
    assert low[0] == max(np.count_nonzero(below <= 0.025) - 1, 0)
