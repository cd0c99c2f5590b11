"""The equations of overlap, against a processor and a network simulated event by event."""

from hypothesis import given
from hypothesis import strategies as st

from tuner.models import overlap
from tuner.models.overlap import COMPLEX_BYTES, REAL_BYTES, LogGPValues

times = st.floats(1e-7, 1e-4)
networks = st.builds(LogGPValues, times, times, times, st.floats(1e-11, 1e-8))
procs_and_rounds = st.tuples(st.integers(2, 32), st.integers(1, 40))


def simulated_ft(network: LogGPValues, procs: int, rounds: int, row_bytes: float, row_s: float):
    """Return when the processor has begun everything, and when the last byte has arrived.

    Of every `procs` rows, all but the last are sent when they are computed. The network takes a
    message `gap` after the one before, and carries one at a time.
    """
    now = accepts = carried = 0.0
    for _ in range(rounds):
        accepts = 0.0  # the model lets no gap reach from one round into the next
        for row in range(procs):
            now += row_s
            if row == procs - 1:
                continue
            now = max(now, accepts)
            accepts = now + network.gap_s
            now += network.overhead_s
            carried = max(now, carried) + row_bytes * network.per_byte_s
    return now, max(now, carried)


@given(networks, procs_and_rounds, st.integers(1, 10_000), times)
def test_initiation_of_a_fourier_transform(
    network: LogGPValues, shape: tuple[int, int], elements: int, row_s: float
) -> None:
    procs, rounds = shape
    found = overlap.ft(network, procs, procs * rounds, elements, row_s)
    begun, _ = simulated_ft(network, procs, rounds, COMPLEX_BYTES * elements, row_s)
    assert abs(found.initiation_s + found.computation_s - begun) <= 1e-9 * begun


@given(networks, procs_and_rounds, st.integers(1, 10_000), times)
def test_total_of_a_fourier_transform(
    network: LogGPValues, shape: tuple[int, int], elements: int, row_s: float
) -> None:
    """The network is idle only while the rows of a round are computed.

    The model leaves this out: it is never too long but for a first gap, and too short by at most
    the work of one round.
    """
    procs, rounds = shape
    row_bytes = COMPLEX_BYTES * elements
    found = overlap.ft(network, procs, procs * rounds, elements, row_s)
    _, end = simulated_ft(network, procs, rounds, row_bytes, row_s)
    one_round = (procs - 1) * row_bytes * network.per_byte_s
    one_round += procs * (row_s + max(network.gap_s, network.overhead_s + row_s))
    assert found.total_s <= end + network.gap_s + 1e-12
    assert end <= found.total_s + one_round + 1e-12


def simulated_spmv(network: LogGPValues, procs: int, block_bytes: float, block_s: float) -> float:
    """Simulate a product that gets each block while it computes with the one before it."""
    now = accepts = 0.0
    for _ in range(procs - 1):
        now = max(now, accepts)
        accepts = now + network.gap_s
        now += network.overhead_s
        arrived = now + 2 * network.latency_s + block_bytes * network.per_byte_s
        now = max(now + block_s, arrived)
    return now + block_s


@given(networks, st.integers(2, 64), st.integers(1, 1_000_000), times)
def test_total_of_a_sparse_product(
    network: LogGPValues, procs: int, columns: int, block_s: float
) -> None:
    """The model waits for a gap after each get, where it has long passed: too long by that."""
    found = overlap.spmv(network, procs, columns, block_s)
    end = simulated_spmv(network, procs, REAL_BYTES * columns / procs, block_s)
    spare = max(network.gap_s - network.overhead_s, 0) * (procs - 1)
    assert abs(found.total_s - end) <= spare + 1e-9 * end


def simulated_bulk(network: LogGPValues, procs: int, block_bytes: float, block_s: float) -> float:
    """Simulate asking for all blocks, then waiting for all; replies come one at a time."""
    now = accepts = arrived = 0.0
    for _ in range(procs - 1):
        now = max(now, accepts)
        accepts = now + network.gap_s
        now += network.overhead_s
        asked = now + 2 * network.latency_s
        arrived = max(arrived, asked) + block_bytes * network.per_byte_s
    return max(now, arrived) + procs * block_s


@given(networks, st.integers(2, 64), st.integers(1, 1_000_000), times)
def test_total_of_a_sparse_product_after_its_communication(
    network: LogGPValues, procs: int, columns: int, block_s: float
) -> None:
    found = overlap.spmv_bulk(network, procs, columns, block_s)
    end = simulated_bulk(network, procs, REAL_BYTES * columns / procs, block_s)
    assert abs(found.total_s - end) <= 1e-9 * end
    assert found.wait_s >= 0


def test_many_small_messages_carry_what_few_large_ones_do() -> None:
    free = LogGPValues(0.0, 0.0, 0.0, 1e-9)
    many, few = (overlap.ft(free, 8, rows, size, 0.0) for rows, size in ((8192, 512), (64, 65536)))
    assert many.total_s == few.total_s


def test_enough_computation_hides_the_transfer() -> None:
    network = LogGPValues(2e-6, 1e-6, 1.5e-6, 1e-9)
    short, long = (overlap.ft(network, 8, 64, 1000, row_s) for row_s in (0.0, 1e-3))
    assert short.wait_s > 0
    assert long.wait_s == 0
    assert long.initiation_s < short.initiation_s
