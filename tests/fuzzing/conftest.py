"""The kernels, as their own tests have them."""

from tests.kernels.conftest import any_kernels, kernels_of

__all__ = ["any_kernels", "kernels_of"]
