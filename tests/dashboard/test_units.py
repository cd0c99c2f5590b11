"""Numbers as people read them."""

import math

import pytest

from dashboard import units


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (8.5e-7, "850 ns"),
        (1.234e-5, "12.3 µs"),
        (9.999e-4, "1.00 ms"),
        (1.2, "1.20 s"),
        (123.4, "123 s"),
        (5e-10, "0.500 ns"),
        (math.nan, "–"),
    ],
)
def test_times_have_three_digits_and_a_unit(seconds: float, text: str) -> None:
    assert units.time_text(seconds) == text


def test_a_missing_interval_is_empty() -> None:
    assert units.interval_text(math.nan, 2.0, units.ratio_text) == ""
    assert units.interval_text(1.5, 2.0, units.ratio_text) == "1.50× – 2.00×"


def test_ratios_have_three_digits_after_rounding_too() -> None:
    assert [units.ratio_text(ratio) for ratio in (0.9994, 0.9996, 1.0)] == [
        "0.999×",
        "1.00×",
        "1.00×",
    ]
