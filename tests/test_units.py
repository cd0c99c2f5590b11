"""Numbers as people read them, the same everywhere."""

import math

import pytest

from tuner.units import (
    bytes_text,
    change_text,
    degree_text,
    multiple_text,
    parse_sizes,
    share_text,
    size_text,
    span_text,
)


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (512, "512 B"),
        (1024, "1 KiB"),
        (1536, "1.5 KiB"),
        (1025, "1 KiB"),
        (3 * 2**20, "3 MiB"),
        (2**20 - 1, "1 MiB"),
        (1023 * 2**10, "1023 KiB"),
    ],
)
def test_sizes_have_binary_units(size: int, text: str) -> None:
    assert size_text(size) == text


def test_lists_of_sizes_are_those_of_swpbench() -> None:
    assert parse_sizes("3000,8:100:x2,64") == [8, 16, 32, 64, 3000]
    assert parse_sizes("1K:64K:x8") == [1024, 8192, 65536]
    for wrong in ("", "8,", "0:8:x2", "8:64", "8:64:x1", "64:8:x2", "8:64:2", "8k", "1K-64K", "٣"):
        with pytest.raises(ValueError, match="is neither SIZE nor FIRST:LAST:xFACTOR"):
            parse_sizes(wrong)


@pytest.mark.parametrize("open_end", [None, math.inf])
def test_intervals_of_sizes_are_said_in_words(open_end: float | None) -> None:
    before = None if open_end is None else -open_end
    assert bytes_text(before, 724) == bytes_text(0, 724) == "up to 724 B"
    assert bytes_text(725, 1024) == "above 724 B to 1 KiB"
    assert bytes_text(1025, open_end) == "above 1 KiB"
    assert bytes_text(before, open_end) == "all"


def test_degrees_are_said_in_words() -> None:
    assert degree_text((None, 8), (4.5, None)) == "degree up to 8, mean degree from 4.5"
    assert degree_text((4, 4), (-math.inf, math.inf)) == "degree 4"
    assert degree_text((3, 8), (None, None)) == "degree 3 to 8"
    assert degree_text((None, None), (None, None)) == ""


def test_numbers_from_one_to_another_are_said_once() -> None:
    assert (span_text(8, 8), span_text(5, 7)) == ("8", "5 to 7")


@pytest.mark.parametrize(
    ("share", "text"), [(0.085, "+8.5 %"), (-0.02, "-2.0 %"), (-0.0004, "0 %"), (math.nan, "–")]
)
def test_a_change_has_a_sign_unless_it_rounds_to_nothing(share: float, text: str) -> None:
    assert change_text(share) == text
    assert (change_text(0.004, 0), change_text(-0.2, 0)) == ("0 %", "-20 %")


def test_none_and_all_are_shares_without_digits() -> None:
    assert [share_text(share) for share in (0, 0.004, 1)] == ["0 %", "0.4 %", "100 %"]
    assert (share_text(0.154, 0), share_text(math.nan)) == ("15 %", "–")


def test_ratios_have_three_digits() -> None:
    texts = {2.0: "2.00", 0.0456: "0.0456", 12.34: "12.3", 1234.0: "over 1000", 0: "under 0.001"}
    assert {ratio: multiple_text(ratio) for ratio in texts} == texts
