"""The largest eigenvalue of a matrix whose rows are distributed: power.py SIDE STEPS."""

import sys

import numpy as np
from mpi4py import MPI

side, steps = int(sys.argv[1]), int(sys.argv[2])
world = MPI.COMM_WORLD
rows = side // world.size
matrix = np.random.default_rng(world.rank).random((rows, side))
vector, mine = np.ones(side), np.empty(rows)
for _ in range(steps):
    np.dot(matrix, vector, out=mine)
    largest = world.allreduce(float(mine.max()), op=MPI.MAX)
    mine /= largest
    world.Allgather(mine, vector)
if world.rank == 0:
    print(f"largest eigenvalue: {largest:.6g}")
