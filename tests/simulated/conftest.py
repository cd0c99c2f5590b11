"""Fixtures of SimGrid, and of the kernels built for it once."""

import shutil
from pathlib import Path

import pytest

from tests.kernels.conftest import build_kernels
from tuner.machine.mpi import Mpi
from tuner.machine.simulation.launch import NO_SIMGRID, TOOLCHAIN, find_simgrid
from tuner.paths import CHECKOUT


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave to make check what needs the kernels built for SimGrid, which takes half a minute."""
    for item in items:
        if "simgrid_build" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.check)


@pytest.fixture(scope="session")
def simgrid(require) -> Mpi:
    """Return SimGrid's MPI, or skip."""
    found = find_simgrid()
    require("simgrid", found is not None, NO_SIMGRID)
    require("cmake", shutil.which("cmake") is not None, "no cmake on the path")
    assert found is not None
    return found


@pytest.fixture(scope="session")
def simgrid_build(simgrid) -> Path:
    """Return the build for it."""
    toolchain = CHECKOUT / "kernels" / "cmake" / TOOLCHAIN
    options = [f"-DCMAKE_TOOLCHAIN_FILE={toolchain}", "-DSWITCHPOINT_TESTS=OFF"]
    return build_kernels(simgrid, "tests", *options)


@pytest.fixture(scope="session")
def swpbench(simgrid_build) -> Path:
    """Return the program of that build."""
    return simgrid_build / "bench" / "swpbench"
