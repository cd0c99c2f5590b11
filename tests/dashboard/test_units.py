"""Numbers as people read them."""

import math

import pytest

from dashboard import units


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (512, "512 B"),
        (1024, "1 KiB"),
        (1536, "1.5 KiB"),
        (1025, "1 KiB"),
        (3 * 2**20, "3 MiB"),
    ],
)
def test_sizes_have_binary_units(size: int, text: str) -> None:
    assert units.size_text(size) == text


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


def test_open_intervals_are_said_in_words() -> None:
    assert units.bytes_range_text(-math.inf, 724) == "to 724 B"
    assert units.bytes_range_text(1025, math.inf) == "over 1 KiB"
    assert units.bytes_range_text(-math.inf, math.inf) == "any"
    assert units.bytes_range_text(725, 1024) == "over 724 B to 1 KiB"


def test_a_missing_interval_is_empty() -> None:
    assert units.interval_text(math.nan, 2.0, units.ratio_text) == ""
    assert units.interval_text(1.5, 2.0, units.ratio_text) == "1.50× – 2.00×"
