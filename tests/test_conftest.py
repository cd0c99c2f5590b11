"""The rule for what a machine lacks."""

import pytest

from tests.conftest import Require, required_parts


def test_a_part_that_nobody_knows_is_not_required_in_silence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SWITCHPOINT_REQUIRE", "mpich, chromum")
    with pytest.raises(pytest.UsageError, match="names chromum; known are"):
        required_parts()


def test_a_missing_part_skips(require: Require) -> None:
    with pytest.raises(pytest.skip.Exception, match="ssgetpy: not here"):
        require("ssgetpy", False, "not here")
