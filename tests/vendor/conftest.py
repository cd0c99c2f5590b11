"""The MPI libraries for which files are exported."""

from __future__ import annotations

import pytest

from tests.conftest import Require
from tuner.machine.mpi import Mpi, find_mpis

VERSIONS = ("mpich4", "openmpi4", "mpich5", "openmpi5")


def installed(name: str, require: Require) -> Mpi:
    """Return the MPI of a family, or of a family and major version as mpich4; or skip."""
    found = {key: its for its in find_mpis() for key in (its.family, f"{its.family}{its.major}")}
    require(name.removesuffix("2021"), name in found, "this MPI is not installed")
    return found[name]


@pytest.fixture(params=[*VERSIONS[:-1], pytest.param(VERSIONS[-1], marks=pytest.mark.check)])
def mpi(request: pytest.FixtureRequest, require: Require) -> Mpi:
    return installed(request.param, require)
