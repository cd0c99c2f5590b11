"""The rule for what a machine lacks."""

import pytest

from tests.conftest import COLLECTED, Require, required_parts

PACKAGES_OF_OTHERS = (
    "tests/foreign/test_benchmarks.py",
    "tests/foreign/test_mpi4py.py",
    "tests/foreign/test_petsc.py",
    "tests/test_spack_real.py",
    "tests/test_wheel.py::test_a_prebuilt_wheel_measures_without_a_compiler",
)
"""Tests for which a machine lacks what they need until a night fetches it."""


def test_what_runs_by_night_has_a_smallest_case_by_day(request: pytest.FixtureRequest) -> None:
    by_night, by_day = set(), set()
    for item in request.config.stash[COLLECTED]:
        kind = by_day if item.get_closest_marker("nightly") is None else by_night
        kind.add(item.nodeid.partition("[")[0])
    lacking = {name for name in by_night - by_day if not name.startswith(PACKAGES_OF_OTHERS)}
    assert lacking == set()


def test_no_value_of_a_case_is_a_marked_one(request: pytest.FixtureRequest) -> None:
    """A product of marked values makes such cases, which fail by night."""
    cases = (getattr(item, "callspec", None) for item in request.config.stash[COLLECTED])
    values = (value for case in cases if case is not None for value in case.params.values())
    assert not any(isinstance(value, type(pytest.param())) for value in values)


def test_a_part_that_nobody_knows_is_not_required_in_silence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SWITCHPOINT_REQUIRE", "mpich, chromum")
    with pytest.raises(pytest.UsageError, match="names chromum; known are"):
        required_parts()


def test_a_missing_part_skips(require: Require) -> None:
    with pytest.raises(pytest.skip.Exception, match="ssgetpy: not here"):
        require("ssgetpy", False, "not here")
