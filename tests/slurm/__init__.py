"""A Slurm of several virtual nodes on this machine, and the tests that use it."""
