"""A regression by stochastic gradients over distributed samples: regression.py FEATURES STEPS."""

import sys

import numpy as np
from mpi4py import MPI

BATCH = 4  # samples of each process in a step

features, steps = int(sys.argv[1]), int(sys.argv[2])
world = MPI.COMM_WORLD
truth = np.random.default_rng(0).standard_normal(features)
random = np.random.default_rng(1 + world.rank)
samples = random.standard_normal((64, BATCH, features))
labels = samples @ truth > 0
weights, gradient, total = np.zeros(features), np.empty(features), np.empty(features)
for step in range(steps):
    batch = samples[step % len(samples)]
    error = 1 / (1 + np.exp(-(batch @ weights))) - labels[step % len(samples)]
    np.dot(error, batch, out=gradient)
    world.Allreduce(gradient, total)
    total *= 1 / (BATCH * world.size * features**0.5)
    weights -= total
if world.rank == 0:
    cosine = weights @ truth / np.linalg.norm(weights) / np.linalg.norm(truth)
    print(f"cosine of the angle to the truth: {cosine:.6g}")
