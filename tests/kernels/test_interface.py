"""The binary interface of libswitchpoint changes only together with its number."""

import re
from itertools import pairwise

import pytest

from tests import abi

from .conftest import Kernels
from .shim import symbols
from .test_python import shared_library


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


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("  int placement;  ", "  long placement;  "),
        ("  int procs, nodes;\n", "  int nodes, procs;\n"),
        ("  SWP_ERR_MPI, ", "  SWP_ERR_NEW, SWP_ERR_MPI, "),
        ("SWP_MEASURE 2u", "SWP_MEASURE 4u"),
        ("int swp_wait(swp_plan *plan)", "int swp_wait(const swp_plan *plan)"),
        ("int swp_error_mpi(void);", ""),
    ],
)
def test_a_change_of_the_header_is_seen(old, new, tmp_path) -> None:
    text = abi.HEADER.read_text()
    assert text.count(old) == 1
    (tmp_path / "switchpoint.h").write_text(text.replace(old, new))
    definitions = abi.HEADER.with_name("switchpoint_operations.def")
    (tmp_path / definitions.name).write_text(definitions.read_text())
    assert abi.interface(tmp_path / "switchpoint.h") != abi.interface()


def test_the_library_exports_the_functions_of_the_map_in_their_versions(kernels: Kernels) -> None:
    wanted = set()
    for number, functions in abi.nodes().items():
        version = f"SWITCHPOINT_{number}"
        wanted |= {version, *(f"{function}@@{version}" for function in functions)}
    assert symbols("--dynamic", "--defined-only", shared_library(kernels)) == wanted
