"""Fixtures of all tests."""

import os
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests import synthetic
from tuner.machine.directories import build_root
from tuner.paths import CHECKOUT
from tuner.rawfile.ingest import ingest

# A loaded machine is no failure, and tests repeat their examples. New ones are for the night.
UNTIMED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("same", UNTIMED, derandomize=True)
settings.register_profile("new", UNTIMED)
settings.load_profile("same")

RUNS = (
    "tests/bench/test_least.py",
    "tests/dashboard/test_browser.py",
    "tests/foreign/",
    "tests/kernels/test_sockets.py",
    "tests/nodes/",
    "tests/simulated/",
    "tests/sites/",
    "tests/slurm/",
    "tests/test_checks.py",
    "tests/test_doctor.py",
    "tests/test_mpi.py",
    "tests/test_regret.py",
    "tests/test_soaking.py",
    "tests/test_spack",
    "tests/vendor/test_runs.py",
    "tests/test_wheel.py",
    "tests/test_workflow.py",
)
"""Files that use the machine as a whole: its cores, builds, ReFrame, Chromium."""

CORES = sorted(os.sched_getaffinity(0))

# The kernels are compiled by several tests, each in a directory of its own. Paths are relative to
# the checkout, so that what one has compiled serves the next, and a copy that names itself so.
if shutil.which("ccache"):
    os.environ.setdefault("CMAKE_C_COMPILER_LAUNCHER", "ccache")
    os.environ.setdefault("CCACHE_DIR", str(build_root() / "ccache"))
    os.environ.setdefault("CCACHE_BASEDIR", str(CHECKOUT))
    os.environ.setdefault("CCACHE_NOHASHDIR", "1")

Require = Callable[[str, bool, str], None]

# Soaks take seconds, and synthetic machines cannot be soaked: tests of soaks ask for them.
os.environ.setdefault("SWITCHPOINT_REQUIRE_SOAK", "0")

PARTS = {
    "mpi",
    "mpich",
    "mpich4",
    "mpich5",
    "openmpi",
    "openmpi4",
    "openmpi5",
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
    "mpi4py",
    "osu",
    "imb",
    "petsc",
    "clang",
    "clang-tidy",
    "atheris",
    "valgrind",
    "strace",
    "spin",
    "objcopy",
    "chromium",
    "ipv6",
    "namespaces",
    "cgroups",
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
"""Parts that tests may need and a machine may lack: the names that SWITCHPOINT_REQUIRE takes."""


def by_day(day: Sequence[Any], every: Iterable[Any]) -> list[Any]:
    """Return cases for parametrize: `day` runs by day, the others of `every` by night.

    Cases of `day` may be marked.
    """

    def values(case: Any) -> tuple[Any, ...]:
        return getattr(case, "values", case if isinstance(case, tuple) else (case,))

    known = [*map(values, day)]
    others = [each for each in map(values, every) if each not in known]
    return [*day, *(pytest.param(*each, marks=pytest.mark.nightly) for each in others)]


def packaged(package: str) -> bool:
    """Return whether pkg-config is installed and finds the package, as `hwloc >= 2.0`."""
    program = shutil.which("pkg-config")
    return program is not None and subprocess.call([program, "--exists", package]) == 0


def required_parts() -> set[str]:
    """Return the parts that must not be missing here. Raise UsageError for an unknown name."""
    named = os.environ.get("SWITCHPOINT_REQUIRE", "").split(",")
    required = {name.strip() for name in named} - {""}
    if unknown := sorted(required - PARTS):
        raise pytest.UsageError(
            f"SWITCHPOINT_REQUIRE names {unknown[0]}; known are {', '.join(sorted(PARTS))}"
        )
    return required


def pytest_configure(config: pytest.Config) -> None:
    """Fail at once when SWITCHPOINT_REQUIRE is misspelt."""
    required_parts()


COLLECTED = pytest.StashKey[list[pytest.Item]]()
"""All tests of the session, including those that its options leave out."""


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Put runs first, all together."""
    config.stash[COLLECTED] = list(items)
    items.sort(key=lambda item: not item.nodeid.startswith(RUNS))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Keep each of several test processes on a core of its own, except for runs.

    Ranks wait for each other by giving their core away, and a computation on it takes all of that:
    five times their time, at whatever priority.
    """
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    if worker is None or item.nodeid.startswith(RUNS):
        os.sched_setaffinity(0, CORES)
    else:
        os.sched_setaffinity(0, [CORES[int(worker.removeprefix("gw")) % len(CORES)]])


@pytest.fixture(scope="session")
def require() -> Require:
    """Return the check for parts that a bare machine lacks: it skips, with one reason.

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


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """Return a store with a small campaign, which is not tuned."""
    path = tmp_path / "switchpoint.db"
    synthetic.write(tmp_path, synthetic.Campaign(launches=2, sizes=(8, 64)))
    ingest(path, [tmp_path])
    return path


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the test's directory, which is that of the results."""
    monkeypatch.setenv("SWITCHPOINT_RESULTS", str(tmp_path))
    return tmp_path


@pytest.fixture
def two_systems(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write two systems, measured but not ingested; return the directory of results."""
    directory = tmp_path / "results"
    monkeypatch.setenv("SWITCHPOINT_RESULTS", str(directory))
    its = synthetic.Campaign(samples=20)
    synthetic.write(directory, its)
    synthetic.write(directory, synthetic.of_discovery(replace(its, environment="openmpi")))
    return directory


SHOWN = 0.01  # of the whole time: files below it are summed up


def show_times(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the seconds of each file's tests, those that took longest first."""
    times_s: Counter[str] = Counter()
    for reports in terminalreporter.stats.values():
        for report in reports:
            if isinstance(report, pytest.TestReport):
                times_s[report.nodeid.partition("::")[0]] += report.duration
    total_s = times_s.total()
    shown = [each for each in times_s.most_common() if each[1] >= SHOWN * total_s]
    rest_s = total_s - sum(time_s for _, time_s in shown)
    terminalreporter.section("where the time went, of all processes that tested")
    for name, time_s in [*shown, ("all other files", rest_s), ("together", total_s)]:
        terminalreporter.write_line(f"{time_s:8.1f} s   {name}")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the times of files, and every reason why tests were skipped on this machine, once."""
    show_times(terminalreporter)
    skipped = terminalreporter.stats.get("skipped", [])
    reasons = Counter(report.longrepr[2].removeprefix("Skipped: ") for report in skipped)
    if reasons:
        terminalreporter.section("not tested here")
    for reason, count in sorted(reasons.items()):
        terminalreporter.write_line(f"{count:4} tests   {reason}")


@pytest.fixture
def synthetic_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make this the machine of tests/synthetic.py."""
    monkeypatch.setattr("tuner.machine.systems.processor", lambda: "Synthetic CPU")
    monkeypatch.setattr("tuner.machine.systems.available_cores", lambda: 2)
