"""Methods that are off at a site are out of every table that is made."""

import pytest

from tuner.selection import off


@pytest.mark.parametrize(
    ("listed", "method", "expected"),
    [
        ("", "nbx", False),
        ("nbx", "nbx", True),
        ("stfw; nbx", "stfw:dims=2", True),
        ("stfw:dims=2", "stfw:dims=2", True),
        ("stfw:dims=2", "stfw:dims=3", False),
        ("nb", "nbx", False),
        ("node-memory", "shared", True),
        ("nbx;node-memory", "lent", True),
        ("node-memory", "nap:node=shared", True),
        ("node-memory", "twolevel:node=shared,leaders=3", True),
        ("node-memory", "nap:find=put,node=shared", True),
        ("node-memory", "nap:sharing=no,node=mpi", False),
        ("node-memory", "nap", False),
        ("node-memory", "vendor:algorithm=shared", False),
        ("nbx", "shared", False),
    ],
)
def test_names_and_specs_are_off(listed: str, method: str, expected: bool) -> None:
    assert off.is_off(method, listed) is expected
