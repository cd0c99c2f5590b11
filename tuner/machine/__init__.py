"""What runs ranks: MPI installations, virtual nodes, simulated machines, sites."""
