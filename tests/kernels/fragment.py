"""What the documents' fragments of Python take as given, on any number of ranks in a ring.

The arguments are the file of one, its page, and the line there at which it begins.
"""

import ast
import sys
from pathlib import Path

import numpy as np
import switchpoint_mpi
from mpi4py import MPI

COMM = MPI.COMM_WORLD
FOLLOWING, BEFORE = ((COMM.rank + step) % COMM.size for step in (1, -1))
GIVEN = {
    "MPI": MPI,
    "swp": switchpoint_mpi,
    "comm": COMM,
    "steps": 2,
    "nitems": 1,
    "send_ranks": [FOLLOWING],
    "send_offsets": [0, 1],
    "recv_ranks": [BEFORE],
    "recv_offsets": [0, 1],
    "send": np.full(1, float(COMM.rank)),
    "recv": np.zeros(1),
    "pressure": np.zeros(1),
    "velocity": np.zeros(3),
    "halo_pressure": np.zeros(1),
    "halo_velocity": np.zeros(3),
    "outgoing": {FOLLOWING: np.zeros(1)},
}

fragment, page, line = sys.argv[1:]
tree = ast.increment_lineno(ast.parse(Path(fragment).read_text("utf-8"), page), int(line) - 1)
exec(compile(tree, page, "exec"), GIVEN)
