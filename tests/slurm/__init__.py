"""A Slurm of several virtual nodes on this machine, and what goes through it."""
