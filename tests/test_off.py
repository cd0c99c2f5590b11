"""Methods that are off at a site are out of every table that is made."""

from pathlib import Path

import pytest

from tests import synthetic
from tests.cli import fail, succeed
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


@pytest.mark.parametrize(
    ("listed", "word"),
    [
        ("nbx direct", "direct"),
        ("pex", "pex"),
        ("nbx,stfw:dims=2", "nbx,stfw"),
        ("stfw:2", "stfw:2"),
    ],
)
def test_fallbacks_and_what_is_no_spec_are_errors(
    listed: str, word: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SWITCHPOINT_RESULTS", str(tmp_path))
    synthetic.write(tmp_path, synthetic.Campaign(samples=20))
    succeed("ingest")
    monkeypatch.setenv(off.VARIABLE, "nbx; node-memory;stfw:dims=2 nap:find=put,node=shared")
    succeed("tune")
    succeed("export")
    monkeypatch.setenv(off.VARIABLE, listed)
    for command in ("tune", "export"):
        assert f"{off.VARIABLE}: " in (said := fail(command))
        assert word in said
