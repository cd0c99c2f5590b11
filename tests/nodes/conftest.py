"""Fixtures of four virtual nodes for the session; they end with it, however it ends."""

import os
from collections.abc import Iterator

import pytest

from tests.conftest import Require
from tests.kernels.conftest import any_kernels, kernels, kernels_of
from tests.vendor.conftest import mpi
from tuner.machine.nodes import namespaces
from tuner.machine.nodes.namespaces import UNLIMITED, Nodes, NodesError

__all__ = ["any_kernels", "kernels", "kernels_of", "mpi", "nodes", "set_name"]


@pytest.fixture(scope="session")
def nodes(require: Require) -> Iterator[Nodes]:
    """Yield nodes of this process alone: beside those of the user and of other test processes."""
    try:
        context = namespaces.temporary(f"tests-{os.getpid()}", 4, UNLIMITED)
        made = context.__enter__()
    except NodesError as error:
        require("namespaces", False, str(error))
        raise
    yield made
    context.__exit__(None, None, None)


@pytest.fixture
def set_name(nodes: Nodes) -> Iterator[str]:
    """Yield the name of a set that a test may make; it is ended afterwards."""
    name = f"test-{os.getpid()}"
    yield name
    namespaces.down(name)
