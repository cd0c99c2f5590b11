"""Virtual nodes: several nodes on one machine, made of Linux namespaces.

Each has its own network, host name, shared memory and process numbers, so that an MPI library takes
it for a node: ranks on it share memory, ranks on different ones talk TCP over a switch.
"""
