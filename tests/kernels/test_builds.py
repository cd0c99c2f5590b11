"""What make check and make nightly add: strict builds, sanitizers, long runs, valgrind."""

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest

from tests import abi
from tests.conftest import Require, by_day
from tests.kernels.benchrun import SEVEN
from tuner.machine.mpi import Mpi, find_mpis
from tuner.paths import CHECKOUT

from .conftest import MPIS, Kernels, build_kernels, in_turn
from .test_fragments import do
from .test_library import BY_NODE, TESTS, VALGRIND, run

# Hooks of UCX that crash under the thread sanitizer are off.
THREADED = {"UCX_MEM_EVENTS": "no", "UCX_MEM_MMAP_HOOK_MODE": "none", "SWP_TEST_TIMEOUT": "240"}
TABLES = str(TESTS / "tables" / "broken")
STRICT = ("-DSWITCHPOINT_WERROR=ON", "-DCMAKE_BUILD_TYPE=Debug")
VARIANTS = [("Debug", "OFF", "ON"), ("Release", "ON", "OFF")]  # build type, shared, hwloc
SANITIZED = (*STRICT, "-DSWITCHPOINT_SANITIZE=address,undefined")
# Leaks are valgrind's task: the MPI libraries keep memory until the end, as its suppressions say.
SANITIZER_OPTIONS = {
    "ASAN_OPTIONS": "detect_leaks=0",
    "UBSAN_OPTIONS": "print_stacktrace=1",
    "SWP_TEST_TIMEOUT": "240",
}


# By day builds with sanitizers show the warnings of the first.
@pytest.mark.parametrize(
    ("kernels", "variant"),
    by_day(
        [pytest.param("openmpi", VARIANTS[1], marks=pytest.mark.check)], product(MPIS, VARIANTS)
    ),
    indirect=["kernels"],
)
def test_kernels_compile_without_a_warning(kernels: Kernels, variant: tuple[str, ...]) -> None:
    build_type, shared, hwloc = variant
    options = (f"-DCMAKE_BUILD_TYPE={build_type}", f"-DBUILD_SHARED_LIBS={shared}")
    build = build_kernels(kernels.mpi, "strict", *STRICT, *options, f"-DSWITCHPOINT_HWLOC={hwloc}")
    if hwloc == "OFF":
        run(Kernels(kernels.mpi, build), "swp_sockets", 2, "none")
    libraries = {path.name for path in build.rglob("libswitchpoint*.so*")}
    for name in libraries & {"libswitchpoint.so", "libswitchpoint_fortran.so"}:
        assert f"{name}.{abi.number().partition('.')[0]}" in libraries


SUBPROJECT = f"""cmake_minimum_required(VERSION 3.24)
project(app LANGUAGES C)
add_subdirectory({CHECKOUT / "kernels"} switchpoint)
if(CMAKE_BUILD_TYPE OR CMAKE_INSTALL_RPATH OR TARGET swpbench OR TARGET swp_oracle)
  message(FATAL_ERROR "more than the library")
endif()
add_executable(app {CHECKOUT / "kernels" / "examples" / "halo.c"})
target_link_libraries(app PRIVATE switchpoint::switchpoint)
"""


@pytest.mark.check
def test_a_project_includes_the_library_alone(any_kernels: Kernels, tmp_path: Path) -> None:
    (tmp_path / "CMakeLists.txt").write_text(SUBPROJECT)
    build = tmp_path / "build"
    do("cmake", "-S", tmp_path, "-B", build, f"-DMPI_C_COMPILER={any_kernels.mpi.mpicc}")
    do("cmake", "--build", build, "--parallel", "2", "--target", "app")
    done = any_kernels.run(str(build / "app"), ["8"], 2)
    assert done.returncode == 0, done.stderr


FINDS_MPI = """cmake_minimum_required(VERSION 3.20)
project(kernels LANGUAGES NONE)
cmake_path(GET MPI_C_COMPILER PARENT_PATH prefix)
find_file(MPI_HEADER mpi.h PATHS ${prefix} NO_DEFAULT_PATH)
file(WRITE ${CMAKE_BINARY_DIR}/found ${MPI_HEADER})
"""


def test_a_build_for_another_mpi_or_checkout_is_configured_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, require: Require
) -> None:
    require("cmake", shutil.which("cmake") is not None, "no cmake on the path")
    here, moved = tmp_path / "here", tmp_path / "moved"
    (here / "kernels").mkdir(parents=True)
    (here / "kernels" / "CMakeLists.txt").write_text(FINDS_MPI)
    for place, prefix in ((here, "one"), (here, "two"), (moved, "two")):
        if place == moved:
            here.rename(moved)
        header, mpicc = (tmp_path / prefix / name for name in ("mpi.h", "mpicc"))
        header.parent.mkdir(exist_ok=True)
        header.touch()
        mpicc.touch(0o700)
        monkeypatch.setattr("tests.kernels.conftest.CHECKOUT", place)
        monkeypatch.setattr("tests.kernels.conftest.build_root", (place / "build").absolute)
        build = build_kernels.__wrapped__(Mpi("mpich", "mpich", "4", str(mpicc), ""))
        assert (build / "found").read_text() == str(header)


@pytest.fixture
def sanitized(kernels: Kernels) -> Kernels:
    """Return a build with sanitizers, which the preload by which MPICH 4 yields would disturb."""
    mpi = max((m for m in find_mpis() if m.family == kernels.mpi.family), key=_is_mpich5)
    return Kernels(mpi, build_kernels(mpi, "sanitized", *SANITIZED))


def _is_mpich5(mpi: Mpi) -> bool:
    return (mpi.family, mpi.major) == ("mpich", 5)


@pytest.mark.parametrize(
    "target", by_day([pytest.param("switchpoint_planning", marks=pytest.mark.check)], ["all"])
)
def test_the_analyzer_of_gcc_finds_nothing(any_kernels: Kernels, target: str) -> None:
    options = ("-DSWITCHPOINT_ANALYZE=ON", "-DSWITCHPOINT_TESTS=OFF", "-DSWITCHPOINT_EXAMPLES=OFF")
    build_kernels(any_kernels.mpi, "analyzed", *STRICT, *options, target=target)


@pytest.fixture
def tidy(any_kernels: Kernels, require: Require) -> Callable[..., int]:
    """Return a function that runs clang-tidy on sources, and returns their number."""
    require("clang-tidy", shutil.which("clang-tidy") is not None, "no clang-tidy on the path")
    commands = json.loads((any_kernels.build / "compile_commands.json").read_text())
    paths = {Path(command["file"]) for command in commands}
    others = {"tests", "examples", "fortran"}  # gfortran's options are not clang's

    def run_tidy(pattern: str, *options: str) -> int:
        files = [str(path) for path in paths if not others & {*path.parts} and path.match(pattern)]
        command = ["xargs", "-P", "2", "-n", "20", "clang-tidy", "--quiet", *options]
        command += ["-p", str(any_kernels.build)]
        listed = "\n".join(sorted(files))
        done = subprocess.run(command, input=listed, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout
        return len(files)

    return run_tidy


@pytest.mark.check
def test_clang_tidy_finds_nothing(tidy: Callable[..., int]) -> None:
    assert tidy("*.c", "--checks=-clang-analyzer-*") > 100


# By day files that pass only where it is seen what an error implies: kernels/src/base/error.h.
@pytest.mark.parametrize(
    "pattern", by_day([pytest.param("shared.c", marks=pytest.mark.check)], ["*.c"])
)
def test_the_analyzer_of_clang_finds_nothing(tidy: Callable[..., int], pattern: str) -> None:
    assert tidy(pattern) >= 3


SANITIZED_PROGRAMS: dict[str, list[str]] = {
    "swp_oracle": [],
    "swp_collectives": [],
    "swp_refusals": [],
    "swp_counts": [],
    "swp_collective_counts": [],
    "swp_phases": [],
    "swp_nap": [],
    "swp_parts": [],
    "swp_grid": [],
    "swp_transfer": [],
    "swp_failures": [],
    "swp_fields": [],
    "swp_faults": [],
    "swp_node_memory": [],
    "swp_no_memory": [],
    "swp_slots": [],
    "swp_free": [],
    "swp_tables": [TABLES],
    "swp_selector": [],
    "swp_measure": [],
    "swp_threads": [],
    "swp_spmv": ["--vectors", "2", "--ppn", "2", str(SEVEN), "strided", os.devnull],
    "swp_graphs": [],
    "swp_clocks": [],
    "swp_verify": [],
}
SANITIZED_BY_DAY = [
    *product(MPIS, ["swp_oracle", "swp_collectives"], [2, 4]),
    *((mpi, *case) for mpi, case in in_turn(product([*SANITIZED_PROGRAMS][2:], [4, 2]))),
]


@pytest.mark.parametrize(
    ("kernels", "program", "procs"),
    by_day(
        [pytest.param(*case, marks=pytest.mark.check) for case in SANITIZED_BY_DAY],
        product(MPIS, SANITIZED_PROGRAMS, [1, 2, 4]),
    ),
    indirect=["kernels"],
)
def test_sanitizers_find_nothing(sanitized: Kernels, require: Require, program, procs) -> None:
    can_yield = sanitized.mpi.family != "mpich" or _is_mpich5(sanitized.mpi)
    require("mpich5", procs <= 2 or can_yield, "only MPICH 5 yields without a preload")
    run(sanitized, program, procs, *SANITIZED_PROGRAMS[program], env=SANITIZER_OPTIONS)


def threaded(mpi: Mpi, program: str) -> Kernels:
    """Return a build with the thread sanitizer that has a program."""
    options = (*STRICT, "-DSWITCHPOINT_SANITIZE=thread")
    return Kernels(mpi, build_kernels(mpi, "threaded", *options, target=program))


@pytest.mark.check
def test_threads_that_are_ranks_do_not_race_on_boards(any_kernels: Kernels) -> None:
    assert run(threaded(any_kernels.mpi, "swp_boards"), "swp_boards", 1, env=THREADED) == 39


# Not the threads of Open MPI: it orders them where the sanitizer does not see it.
BY_THREADS = [
    *product(MPIS, ["swp_oracle", "swp_collectives"], [1, 2]),
    *product(["mpich"], ["swp_threads"], [1, 2]),
]
LEAST = pytest.param("mpich", "swp_threads", 2, marks=pytest.mark.check)


@pytest.mark.parametrize(
    ("kernels", "program", "procs"), by_day([LEAST], BY_THREADS), indirect=["kernels"]
)
def test_the_thread_sanitizer_finds_nothing(kernels: Kernels, program: str, procs: int) -> None:
    run(threaded(kernels.mpi, program), program, procs, env=THREADED)


@pytest.mark.check
@pytest.mark.parametrize(
    ("program", "procs", "arguments"),
    [
        ("swp_oracle", 4, ["--brief"]),
        ("swp_oracle", 3, ["--brief", "--ppn", "2", "--only", *BY_NODE]),
        ("swp_collectives", 3, ["--brief"]),
        ("swp_refusals", 2, []),
        ("swp_failures", 2, []),
        ("swp_faults", 2, []),
        ("swp_node_memory", 2, []),
        ("swp_tables", 2, [TABLES]),
        ("swp_selector", 2, []),
    ],
)
def test_valgrind_finds_nothing(any_kernels, require, program, procs, arguments) -> None:
    require("valgrind", shutil.which("valgrind") is not None, "no valgrind on the path")
    run(any_kernels, program, procs, *arguments, before=VALGRIND, env={"SWP_TEST_TIMEOUT": "240"})


WHOLE = [
    *("swp_oracle", "swp_collectives"),
    *("swp_failures", "swp_faults", "swp_node_memory", "swp_no_memory"),
]


@pytest.mark.parametrize(
    ("program", "procs"),
    [
        pytest.param("swp_no_memory", 1, marks=pytest.mark.check),
        *by_day([], product(WHOLE, (1, 2, 3, 4))),
    ],
)
def test_valgrind_finds_nothing_in_the_whole(kernels: Kernels, require, program, procs) -> None:
    require("valgrind", shutil.which("valgrind") is not None, "no valgrind on the path")
    before = VALGRIND
    if (program, procs) == ("swp_faults", 4):  # on fewer, nothing is kept
        before = (*VALGRIND, f"--suppressions={TESTS / 'kept.supp'}")
    env = {"SWP_TEST_TIMEOUT": "1200"}
    run(kernels, program, procs, before=before, env=env, timeout_s=7200)
