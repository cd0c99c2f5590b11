"""An application in miniature, as halo.c: every rank exchanges a halo on a ring.

Switchpoint chooses the method for each message size:

  SWITCHPOINT_TABLE=switchpoint.table mpiexec -n 8 python -m mpi4py halo.py 8 1024 65536
  SWITCHPOINT_USER_TABLE=halo.table mpiexec -n 8 python -m mpi4py halo.py measure 8 1024 65536
"""

import sys

import switchpoint_mpi as swp
from mpi4py import MPI

REACH, STEPS = 3, 10
COMM = MPI.COMM_WORLD


def find_neighbors(rank: int, procs: int) -> list[int]:
    """Return up to three neighbours on either side, each once however few ranks there are."""
    found: list[int] = []
    for distance in range(1, REACH + 1):
        if 2 * distance <= procs:
            found.append((rank + distance) % procs)
        if 2 * distance < procs:
            found.append((rank - distance) % procs)
    return found


def exchange_halo(neighbors: list[int], size_bytes: int, hints: swp.Hints) -> None:
    """Plan the exchange, execute it some times, and look at every byte."""
    offsets = [i * size_bytes for i in range(len(neighbors) + 1)]
    halo = (neighbors, offsets, neighbors, offsets)
    with swp.Exchange(COMM, 1, offsets[-1], *halo, hints=hints) as plan:
        if COMM.rank == 0:
            text = f"{size_bytes} bytes to each of {len(neighbors)} neighbours: {plan.describe()}"
            print(text, flush=True)
        recv = bytearray(offsets[-1])
        for step in range(STEPS):
            plan.execute(bytes([(COMM.rank + step) % 256]) * offsets[-1], recv)
            for neighbor, begin in zip(neighbors, offsets, strict=False):
                expected = bytes([(neighbor + step) % 256]) * size_bytes
                if recv[begin : begin + size_bytes] != expected:
                    sys.exit(f"halo: rank {COMM.rank} got a wrong byte from rank {neighbor}")


def main() -> None:
    """Exchange halos of all sizes that the command line names."""
    measures = sys.argv[1:2] == ["measure"]
    sizes = sys.argv[1 + measures :]
    if not sizes and COMM.rank == 0:
        print("usage: halo.py [measure] BYTES...: the sizes of a message to each neighbour")
    neighbors = find_neighbors(COMM.rank, COMM.size)
    for text in sizes:
        if not text.isdecimal() or not 1 <= int(text) <= 2**30:
            sys.exit(f"halo: '{text}' is not a number of bytes from 1 to 2^30")
        exchange_halo(neighbors, int(text), swp.Hints(measure=measures, budget_s=2))


main()
