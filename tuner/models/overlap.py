"""The communication time that hides behind computation (Nishtala, sections 7 and 8).

T is the computation of one row or block, N rows or columns, P processes, R elements per row. Rows
that are sent together are one row of as many elements. P is at least 2.
"""

from dataclasses import dataclass

COMPLEX_BYTES = 16
REAL_BYTES = 8


@dataclass(frozen=True, slots=True)
class LogGPValues:
    """L, o, g in seconds, G in seconds per byte."""

    latency_s: float
    overhead_s: float
    gap_s: float
    per_byte_s: float


@dataclass(frozen=True, slots=True)
class Overlap:
    """The seconds of a process by use. The visible communication is initiation and wait."""

    total_s: float
    computation_s: float
    initiation_s: float
    wait_s: float


def ft(network: LogGPValues, procs: int, rows: float, row_elements: int, row_s: float) -> Overlap:
    """Return the times of the exchange of a Fourier transform row by row.

    In each of rows/P rounds a process computes P rows, of which P - 1 go to the others while the
    next are computed (equations 2, 4 and 6 to 9).
    """
    o, g = network.overhead_s, network.gap_s
    rounds = rows / procs
    init = (2 * row_s + o + max(g, row_s + o) * (procs - 2)) * rounds
    transfer = COMPLEX_BYTES * (procs - 1) * row_elements * network.per_byte_s * rounds
    total = max(init, row_s + max(o, g) + transfer)
    return Overlap(total, rows * row_s, init - rows * row_s, total - init)


def ft_exchange(
    network: LogGPValues, procs: int, rows: int, row_elements: int, row_s: float
) -> Overlap:
    """Return the times of the same exchange after computing, one message to each other process."""
    computation_s = rows * row_s
    after = ft(network, procs, procs, row_elements * rows // procs, 0.0)
    return Overlap(computation_s + after.total_s, computation_s, after.initiation_s, after.wait_s)


def spmv(network: LogGPValues, procs: int, columns: int, block_s: float) -> Overlap:
    """Return the times of a sparse product that gets each block while it uses the one before.

    Equations 10 to 13; a get is one round trip, 2L.
    """
    o, g = network.overhead_s, network.gap_s
    get = 2 * network.latency_s + REAL_BYTES * network.per_byte_s * columns / procs
    computing = (o + block_s) * (procs - 1) + block_s
    communicating = o + get + (max(o, g) + get) * (procs - 2) + block_s
    total = max(computing, communicating)
    initiation = o * (procs - 1)
    return Overlap(total, procs * block_s, initiation, total - procs * block_s - initiation)


def spmv_bulk(network: LogGPValues, procs: int, columns: int, block_s: float) -> Overlap:
    """Return the times of the same product after all blocks are there, all requested at once.

    The form is ours, by the same assumptions: replies come one after the other, as fast as the
    network takes the requests or carries the blocks.
    """
    step = max(network.overhead_s, network.gap_s)
    carry = REAL_BYTES * network.per_byte_s * columns / procs
    initiation = network.overhead_s + step * (procs - 2)
    arrived = network.overhead_s + max(step, carry) * (procs - 2) + 2 * network.latency_s + carry
    wait = arrived - initiation
    return Overlap(arrived + procs * block_s, procs * block_s, initiation, wait)
