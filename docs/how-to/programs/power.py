"""The largest eigenvalue of a matrix whose rows are distributed: power.py SIDE STEPS."""

import sys

import numpy as np
from mpi4py import MPI

side, steps = int(sys.argv[1]), int(sys.argv[2])
world = MPI.COMM_WORLD
rows = side // world.size
matrix = np.random.default_rng(world.rank).random((rows, side))
vector, mine = np.ones(side), np.empty(rows)
largest, largest_here = np.empty(1), np.empty(1)
for _ in range(steps):
    np.dot(matrix, vector, out=mine)
    largest_here[0] = mine.max()
    world.Allreduce(largest_here, largest, op=MPI.MAX)
    mine /= largest
    world.Allgather(mine, vector)
if world.rank == 0:
    print(f"largest eigenvalue: {largest[0]:.6g}")
