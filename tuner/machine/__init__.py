"""The places where ranks run: MPI installations, virtual nodes, simulated machines, sites."""
