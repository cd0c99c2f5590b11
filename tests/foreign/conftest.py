"""Every MPI of this machine in turn, each with its kernels."""

from collections.abc import Callable

import pytest

from tests.conftest import Require
from tests.kernels.conftest import Kernels, kernels_of
from tuner.mpi import find_mpis

__all__ = ["kernels", "kernels_of"]

LIBRARIES = [("mpich", 4), ("openmpi", 4), ("mpich", 5), ("openmpi", 5), ("intelmpi", 2021)]


@pytest.fixture(scope="session", params=LIBRARIES, ids=lambda library: "{}{}".format(*library))
def kernels(
    request: pytest.FixtureRequest, kernels_of: Callable[[str], Kernels], require: Require
) -> Kernels:
    """The kernels under the MPI of a family and version."""
    family, major = request.param
    names = [mpi.name for mpi in find_mpis() if (mpi.family, mpi.major) == (family, major)]
    part = "intelmpi" if family == "intelmpi" else f"{family}{major}"
    require(part, bool(names), "this MPI is not installed")
    return kernels_of(names[0])
