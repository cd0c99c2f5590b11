"""The rooms of the bench: CMake's include paths say which sees which; nothing goes round them."""

import re

import pytest

from tuner.paths import CHECKOUT

KERNELS = CHECKOUT / "kernels"


@pytest.mark.parametrize("part", ["bench", "studies", "swpbench"])
def test_an_include_names_a_header_without_a_way_to_it(part: str) -> None:
    sources = [path for path in (KERNELS / part).rglob("*") if path.suffix in {".c", ".h"}]
    ways = {
        f"{path.relative_to(KERNELS)}: {way}"
        for path in sources
        for way in re.findall(r'^#include "(.*/.*)"', path.read_text(), re.MULTILINE)
    }
    assert sources
    assert ways == set()
