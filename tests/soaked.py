"""Soak methods under one MPI, with the kernels of the tests, as parts of `make endurance` do.

Run from the checkout: python -m tests.soaked MPI RANKS OPTION...
"""

import os
import sys

from tests.kernels.conftest import build_kernels
from tuner.machine.mpi import find_mpis, launch


def main() -> None:
    """Build the kernels and become the launcher. The options are those of `swpbench soak`."""
    name, procs, *options = sys.argv[1:]
    (mpi,) = (mpi for mpi in find_mpis() if mpi.name == name)
    build = build_kernels(mpi)
    start = launch(mpi, int(procs), build=build)
    swpbench = [str(build / "bench" / "swpbench"), "soak", "--out=/dev/null", *options]
    command = [*start.argv_prefix, *swpbench]
    os.execvpe(command[0], command, os.environ | start.env)


if __name__ == "__main__":
    main()
