"""The binary interface of libswitchpoint changes only together with its number."""

import re
import subprocess
from itertools import pairwise
from pathlib import Path

import pytest

from tests import abi

from .conftest import Kernels
from .preloaded import symbols
from .test_python import shared_library

RECORDED_ANEW = {"1.0": "ef51db87", "1.1": "5bd6258e"}
"""Commits that replaced a record, when no release and no other project had it."""


def git(*arguments: str | Path) -> str:
    """Return what git prints about the records; nothing where there is no checkout."""
    command = ["git", "-C", abi.ABI, *arguments]
    return subprocess.run(command, capture_output=True, text=True).stdout


def test_the_interface_is_the_recorded_one() -> None:
    reason = "the header differs from its record: kernels/abi/switchpoint.map says what to do"
    assert abi.interface() == abi.record(abi.number()).read_text(), reason


def test_every_node_has_a_record_which_only_adds_to_that_of_the_node_before() -> None:
    records = {number: abi.record(number).read_text() for number in abi.nodes()}
    for (number, functions), text in zip(abi.nodes().items(), records.values(), strict=True):
        assert number.partition(".")[0] == abi.number().partition(".")[0]
        assert all(re.search(rf"\b{function}\(", text) for function in functions)
    for before, after in pairwise(records.values()):
        assert set(before.splitlines()) < set(after.splitlines())


def test_no_record_was_replaced() -> None:
    if git("rev-parse", "--is-shallow-repository") != "false\n":
        pytest.skip("no checkout of git with its whole history")
    for number in abi.nodes():
        record = abi.record(number)
        first = RECORDED_ANEW.get(number) or git("log", "--diff-filter=A", "--format=%h", record)
        committed = first.strip()
        assert not committed or git("show", f"{committed}:./{record.name}") == record.read_text()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("  int placement;  ", "  long placement;  "),
        ("  int procs, nodes;\n", "  int nodes, procs;\n"),
        ("  int placement;  ", "  int placement[1];  "),
        ("  SWP_ERR_MPI, ", "  SWP_ERR_NEW, SWP_ERR_MPI, "),
        ("SWP_MEASURE 2u", "SWP_MEASURE 4u"),
        ("int swp_wait(swp_plan *plan)", "int swp_wait(const swp_plan *plan)"),
        ("int swp_error_mpi(void);", ""),
    ],
)
def test_a_change_of_the_header_is_seen(old, new, tmp_path) -> None:
    assert abi.interface(changed(tmp_path, old, new)) != abi.interface()


def changed(place: Path, old: str, new: str) -> Path:
    """Return a copy of the header with a change."""
    text = abi.HEADER.read_text()
    assert text.count(old) == 1
    definitions = abi.HEADER.with_name("switchpoint_operations.def")
    (place / definitions.name).write_text(definitions.read_text())
    header = place / "switchpoint.h"
    header.write_text(text.replace(old, new))
    return header


def test_an_array_has_its_length(tmp_path: Path) -> None:
    header = changed(tmp_path, "  int placement;  ", "  const char *last, *spare[2][3];  ")
    layout = abi.interface(header)
    assert "swp_hints.last: const char * at 48, 8 bytes\n" in layout
    assert "swp_hints.spare: const char *[2][3] at 56, 48 bytes\n" in layout


@pytest.mark.parametrize(
    "member", ["int (*compare)(int, int)", "int flag : 1", "struct { int a; } inner"]
)
def test_a_member_that_cannot_be_recorded_is_refused(member: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="cannot be recorded"):
        abi.interface(changed(tmp_path, "  int placement;  ", f"  {member};  "))


def test_the_library_exports_the_functions_of_the_map_in_their_versions(kernels: Kernels) -> None:
    wanted = set()
    for number, functions in abi.nodes().items():
        version = f"SWITCHPOINT_{number}"
        wanted |= {version, *(f"{function}@@{version}" for function in functions)}
    assert symbols("--dynamic", "--defined-only", shared_library(kernels)) == wanted
