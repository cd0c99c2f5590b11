"""Fixtures of every MPI of this machine in turn, each with its kernels."""

from tests.kernels.conftest import kernels_of
from tests.kernels.conftest import library_kernels as kernels

__all__ = ["kernels", "kernels_of"]
