"""Fixtures of all tests."""

import os
from collections import Counter
from collections.abc import Callable

import pytest
from hypothesis import settings
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

# A loaded machine is no failure.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

LOADING = (
    "tests/dashboard/test_browser.py",  # Chromium takes the priority that it likes
    "tests/kernels/",
    "tests/nodes/",
    "tests/simulated/",
    "tests/slurm/",
    "tests/test_checks.py",
    "tests/test_doctor.py",
    "tests/test_mpi.py",
    "tests/test_regret.py",
    "tests/test_sites.py",
    "tests/test_spack",
    "tests/test_vendor.py",
    "tests/test_workflow.py",
)
"""Tests that start ranks, builds or Chromium: one at a time, as ranks wait for each other."""

Require = Callable[[str, bool, str], None]

PARTS = {
    "mpi",
    "mpich",
    "mpich4",
    "mpich5",
    "openmpi",
    "cmake",
    "c++",
    "sessions",
    "large_counts",
    "persistent",
    "fortran",
    "zlib",
    "hwloc",
    "fftw",
    "intelmpi",
    "valgrind",
    "objcopy",
    "chromium",
    "ipv6",
    "namespaces",
    "pymetis",
    "mtkahypar",
    "simgrid",
    "ssgetpy",
    "spack",
    "modules",
    "slurm",
    "slurmdbd",
    "abi",
}
"""What tests may need and a machine may lack: the names that SWITCHPOINT_REQUIRE takes."""


def required_parts() -> set[str]:
    """The parts that must not be missing here. Raises UsageError for a name that nobody knows."""
    named = os.environ.get("SWITCHPOINT_REQUIRE", "").split(",")
    required = {name.strip() for name in named} - {""}
    if unknown := sorted(required - PARTS):
        raise pytest.UsageError(
            f"SWITCHPOINT_REQUIRE names {unknown[0]}; known are {', '.join(sorted(PARTS))}"
        )
    return required


def pytest_configure(config: pytest.Config) -> None:
    """Fails at once when SWITCHPOINT_REQUIRE is misspelt."""
    required_parts()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What starts ranks comes last: whatever runs beside them gets the time that they yield."""
    items.sort(key=lambda item: item.nodeid.startswith(LOADING))


class RanksApart(LoadScopeScheduling):
    """Where several processes test: one takes all that starts ranks, the others file by file."""

    def _split_scope(self, nodeid: str) -> str:
        return "ranks" if nodeid.startswith(LOADING) else nodeid.split("::")[0]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling:
    """Called for `--numprocesses`."""
    config.option.loadscopereorder = False  # scopes in the order of their tests
    return RanksApart(config, log)


@pytest.fixture(scope="session")
def require() -> Require:
    """The rule for what a test needs and a bare machine lacks: skip, with one reason.

    `require("chromium", path is not None, "no chromium on the path")` skips when the second
    argument is false, or fails when the environment's SWITCHPOINT_REQUIRE, a comma list of
    such names, says that this machine must have the part.
    """
    required = required_parts()

    def check(part: str, available: bool, reason: str) -> None:
        assert part in PARTS
        if available:
            return
        if part in required:
            pytest.fail(f"{part} is named in SWITCHPOINT_REQUIRE: {reason}", pytrace=False)
        pytest.skip(f"{part}: {reason}")

    return check


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Ends with what was not tested on this machine: every reason once."""
    skipped = terminalreporter.stats.get("skipped", [])
    reasons = Counter(report.longrepr[2].removeprefix("Skipped: ") for report in skipped)
    if reasons:
        terminalreporter.section("not tested here")
    for reason, count in sorted(reasons.items()):
        terminalreporter.write_line(f"{count:4} tests   {reason}")
