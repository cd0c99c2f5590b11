"""What switchpoint_mpi must do on any number of ranks; prints how many cases passed.

Argument: the path of a table that it writes.
"""

import gc
import pickle
import sys
from array import array
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import switchpoint_mpi as swp
from mpi4py import MPI
from switchpoint_mpi import plans

COMM = MPI.COMM_WORLD.Dup()
RANK, PROCS = COMM.rank, COMM.size
NEXT, PREVIOUS = (RANK + 1) % PROCS, (RANK - 1) % PROCS
cases = 0


def expect(condition: bool, name: str) -> None:
    global cases
    cases += 1
    assert condition, f"rank {RANK}: {name}"


def refused(kind: type[Exception], words: str, function: Callable[[], object]) -> None:
    """Expect an exception of the package, with these words, and for the library's, this code."""
    global cases
    cases += 1
    try:
        function()
    except kind as error:
        assert words in str(error), f"rank {RANK}: {error!r}, expected {words}"
    else:
        raise AssertionError(f"rank {RANK}: no {kind.__name__} with {words!r}")


def failed(code: swp.ErrorCode, words: str, function: Callable[[], object]) -> None:
    """Expect an error of the library."""
    try:
        function()
    except swp.SwitchpointError as error:
        expect(error.code == code and words in str(error), f"{error.code}: {error}")
        expect(error.mpi_code == 0, "MPI's code")
    else:
        raise AssertionError(f"rank {RANK}: no error {code.name}")


def ring(method: str = "auto", hints: swp.Hints | None = None) -> swp.Exchange:
    """Plan to send items 2 and 0 to the next rank, behind an item that is left alone."""
    return swp.Exchange(
        COMM, 4, 3, [NEXT], [0, 2], [PREVIOUS], [1, 3], [2, 0], method=method, hints=hints
    )


def exchanges() -> None:
    with ring("alltoallv", swp.Hints(executions=7)) as plan:
        expect(plan.method == "alltoallv", "method")
        expect(plan.describe().startswith("exchange alltoallv, chosen by caller"), "description")
        expect(plan.passed is None, "passed rule")
        problem, method = plan.statistics()
        expect((problem.procs, problem.nodes, problem.ppn) == (PROCS, 1, PROCS), "layout")
        expect(problem.mmax == (PROCS > 1) and problem.vavg_bytes == 8 * (PROCS > 1), "statistics")
        expect(method.on_node_bytes == plan.stage(0).bytes == 8 * PROCS * (PROCS > 1), "bytes")
        failed(swp.ErrorCode.ARGUMENT, "no stage", lambda: plan.stage(method.stages))

        expected = [-1, 10 * PREVIOUS + 2, 10 * PREVIOUS]
        send = np.arange(3, dtype=np.int32) + 10 * RANK
        recv = np.full(3, -1, np.int32)
        plan.execute(send, recv)
        expect(recv.tolist() == expected, "exchange of arrays")
        target = array("i", [-1] * 3)
        plan.execute(send.tobytes(), target)
        expect(target.tolist() == expected, "exchange of bytes")
        whole = np.full((3, 1), -1, np.int32, order="F")
        plan.execute(memoryview(send), whole)
        expect(whole.ravel().tolist() == expected, "exchange of a matrix")

        recv[:] = -1
        plan.start(send, recv)
        failed(swp.ErrorCode.STATE, "", plan.free)
        plan.wait()
        expect(recv.tolist() == expected, "started exchange")
        recv[:] = -1
        plan.start(bytes(send), recv)  # only the plan keeps these bytes
        gc.collect()
        while not plan.test():
            pass
        expect(recv.tolist() == expected, "tested exchange")

        for method in ("alltoallv", "lent"):
            with ring(method) as lending:
                for add in (0, 5, 7):
                    recv[:] = -1
                    lent = np.frombuffer(lending.buffer(), np.int32)
                    lent[:] = send + add
                    lending.execute(lent, recv)
                    due = [-1, *(item + add for item in expected[1:])]
                    expect(recv.tolist() == due, f"exchange from memory of {method}")

        refused(ValueError, "send is not contiguous", lambda: plan.execute(np.arange(6)[::2], recv))
        columns = np.zeros((3, 2), order="F")
        refused(ValueError, "send is in Fortran's order", lambda: plan.execute(columns, recv))
        refused(
            ValueError, "send has 8 bytes; the plan needs 12", lambda: plan.execute(send[:2], recv)
        )
        refused(ValueError, "recv has 8 bytes", lambda: plan.start(send, recv[:2]))
        refused(ValueError, "recv is read-only", lambda: plan.execute(send, bytes(12)))
        refused(TypeError, "", lambda: plan.execute([1, 2, 3], recv))
        objects = np.empty(3, object)
        refused(TypeError, "recv holds Python objects", lambda: plan.execute(send, objects))
        refused(TypeError, "", lambda: plan.execute(None, recv))
        failed(swp.ErrorCode.STATE, "swp_wait", plan.wait)
    expect(plan.method == "", "method of a freed plan")
    plan.free()
    failed(swp.ErrorCode.ARGUMENT, "plan is NULL", lambda: plan.execute(send, recv))


def fields() -> None:
    """Exchange items 2 and 0 of a pressure and a velocity, behind an item that is left alone."""
    lists = (3, [NEXT], [0, 2], [PREVIOUS], [1, 3], [2, 0])
    pressure = np.arange(3.0) + 10 * RANK
    velocity = (np.arange(9, dtype=np.float32) + 100 * RANK).reshape(3, 3)
    got = [np.full(3, -1.0), np.full((3, 3), -1, np.float32)]
    with swp.Fields(COMM, [8, 12], *lists, method="alltoallv") as plan:

        def expect_fields(name: str) -> None:
            expect(got[0].tolist() == [-1, 10 * PREVIOUS + 2, 10 * PREVIOUS], f"pressure, {name}")
            expected = [[-1, -1, -1], [6, 7, 8], [0, 1, 2]] + np.array([[0], [1], [1]]) * (
                100 * PREVIOUS
            )
            expect(got[1].tolist() == expected.tolist(), f"velocity, {name}")
            got[0][:], got[1][:] = -1, -1

        problem, _ = plan.statistics()
        expect(problem.mmax == (PROCS > 1) and problem.vavg_bytes == 40 * (PROCS > 1), "statistics")
        plan.execute([pressure, velocity], got)
        expect_fields("executed")
        plan.start([bytes(pressure), bytes(velocity)], got)  # only the plan keeps these bytes
        gc.collect()
        failed(swp.ErrorCode.STATE, "", plan.free)
        plan.wait()
        expect_fields("started")
        plan.start([pressure, velocity], got)
        while not plan.test():
            pass
        expect_fields("tested")
        refused(ValueError, "send has 1 buffers", lambda: plan.execute([pressure], got))
        refused(ValueError, "recv has 3 buffers", lambda: plan.start(got, [*got, pressure]))
        refused(ValueError, "recv[1] has 24 bytes", lambda: plan.execute(got, [got[0]] * 2))
    sizes = [8, 4] if RANK == PROCS - 1 else [4, 8]
    if PROCS > 1:
        failed(swp.ErrorCode.MISMATCH, "fields", lambda: swp.Fields(COMM, sizes, *lists))
    failed(swp.ErrorCode.ARGUMENT, "field_bytes[1]", lambda: swp.Fields(COMM, [8, 0], *lists))
    failed(swp.ErrorCode.ARGUMENT, "nfields", lambda: swp.Fields(COMM, [], *lists))


def errors_of_exchanges() -> None:
    one = ([NEXT], [0, 1], [PREVIOUS], [0, 1])
    failed(swp.ErrorCode.METHOD, "no_such", lambda: ring("no_such"))
    failed(swp.ErrorCode.MISMATCH, "", lambda: swp.Exchange(COMM, 4, 1, [NEXT], [0, 1], [], []))
    failed(
        swp.ErrorCode.ARGUMENT, "send_ranks", lambda: swp.Exchange(COMM, 4, 1, [PROCS], *one[1:])
    )
    failed(swp.ErrorCode.ARGUMENT, "hints.ppn", lambda: ring(hints=swp.Hints(ppn=-1)))
    failed(swp.ErrorCode.ARGUMENT, "MPI_COMM_NULL", lambda: swp.Exchange(MPI.COMM_NULL, 4, 1, *one))
    refused(ValueError, "send_offsets", lambda: swp.Exchange(COMM, 4, 1, [NEXT], [0], *one[2:]))
    refused(ValueError, "recv_offsets", lambda: swp.Exchange(COMM, 4, 1, *one[:3], [0]))
    refused(ValueError, "send_items", lambda: swp.Exchange(COMM, 4, 1, *one, []))
    refused(ValueError, "64 bits", lambda: swp.Exchange(COMM, 2**64 + 4, 1, *one))
    refused(ValueError, "64 bits", lambda: swp.Exchange(COMM, 4, 2**64 + 1, *one))
    refused(ValueError, "64 bits", lambda: swp.Exchange(COMM, 4, 1, [NEXT], [0, 2**64], *one[2:]))
    refused(ValueError, "64 bits", lambda: ring(hints=swp.Hints(executions=2**64)))
    refused(ValueError, "32 bits", lambda: ring(hints=swp.Hints(ppn=2**32)))
    with swp.Exchange(COMM, 8, 0, [], [], [], []) as plan:
        plan.execute(b"", bytearray())
        refused(ValueError, "32 bits", lambda: plan.stage(2**32))
    to_itself = ([0], [0, 1], [0], [0, 1]) if RANK == 0 else ([], [], [], [])
    with swp.Exchange(COMM, 4 if RANK == 0 else 1 << 20, 64, *to_itself) as plan:
        view = plan.buffer()
        view[:] = bytes(len(view))
        expect(
            len(view) == (4 << 6 if RANK == 0 else 64 << 20), "buffer of a rank without messages"
        )
    try:
        with ring() as plan:
            raise KeyError
    except KeyError:
        expect(plan.method == "direct", "a plan after an exception is kept")
    plan.free()


def discoveries() -> None:
    with swp.Discovery(COMM, method="nbx") as plan:
        kept = []
        for turn in range(3):
            messages = {RANK: b"", NEXT: np.arange(RANK + 1) + 100 * RANK + turn}
            found = plan.execute(messages)
            expect(list(found) == sorted({RANK, PREVIOUS}), "senders")
            expect(PROCS == 1 or found[RANK] == b"", "empty message")
            kept.append(found[PREVIOUS])
            del found
        expect(plan.execute({}) == {}, "nothing to send")
        failed(swp.ErrorCode.ARGUMENT, "ranks[0]", lambda: plan.execute({PROCS: b"x"}))
        refused(TypeError, "", lambda: plan.execute({NEXT: 1}))
    gc.collect()
    for turn, view in enumerate(kept):  # the plan and its inboxes are gone
        numbers = np.frombuffer(view, int) - 100 * PREVIOUS - turn
        expect(numbers.tolist() == list(range(PREVIOUS + 1)), "data")


def collectives() -> None:
    total = PROCS * (PROCS - 1) // 2
    value, result = np.array([RANK, -RANK]), np.zeros(2, int)
    number = {"recv_type": MPI.INT64_T}
    with swp.Collective(
        COMM, "allreduce", recv_count=2, **number, op=MPI.SUM, method="ring"
    ) as plan:
        plan.execute(value, result)
        expect(result.tolist() == [total, -total], "allreduce")
        plan.set(recv_count=1, **number, op=MPI.MAX)
        place = np.array([RANK, 7])
        plan.execute(MPI.IN_PLACE, place)
        expect(place.tolist() == [PROCS - 1, 7], "allreduce in place")
        refused(ValueError, "send has 4 bytes", lambda: plan.execute(bytes(4), result))
        refused(ValueError, "recv is None", lambda: plan.execute(value, None))
    last = {"root": PROCS - 1}
    with swp.Collective(COMM, "bcast", recv_count=2, **number, **last) as plan:
        data = value.copy()
        plan.execute(None, data)
        expect(data.tolist() == [PROCS - 1, 1 - PROCS], "bcast")
        got = np.zeros(2, int)
        plan.execute(None, value.tobytes() if last["root"] == RANK else got)
        expect(last["root"] == RANK or got.tolist() == data.tolist(), "bcast of bytes")
    counts = {"recv_count": np.int64(2), "root": np.int32(0)}
    hints = swp.Hints(executions=np.int64(7))
    with swp.Collective(COMM, "bcast", **counts, **number, hints=hints) as plan:
        plan.execute(None, got)
        expect(plan.method != "", "numbers of NumPy")
    both = {"send_count": 2, "send_type": MPI.INT64_T, "recv_count": 2} | number
    with swp.Collective(COMM, "gather", **both, **last, method="star") as plan:
        gathered = np.zeros((PROCS, 2), int) if last["root"] == RANK else None
        plan.execute(value, gathered)
        expect(gathered is None or gathered[:, 0].tolist() == list(range(PROCS)), "gather")
    with swp.Collective(COMM, "scatter", **both, **last) as plan:
        plan.execute(gathered, result)
        expect(result.tolist() == value.tolist(), "scatter")
    with swp.Collective(COMM, "reduce", recv_count=2, **number, **last, op=MPI.SUM) as plan:
        plan.execute(value, result if last["root"] == RANK else None)
        expect(last["root"] != RANK or result.tolist() == [total, -total], "reduce")
    with swp.Collective(COMM, "alltoall", **both | {"send_count": 1, "recv_count": 1}) as plan:
        crossed = np.zeros(PROCS, int)
        plan.execute(np.arange(PROCS) + 10 * RANK, crossed)
        expect(crossed.tolist() == [10 * each + RANK for each in range(PROCS)], "alltoall")
        if PROCS > 1:
            refused(ValueError, "send has 8 bytes", lambda: plan.execute(crossed[:1], crossed))
    with swp.Collective(COMM, "reduce_scatter_block", recv_count=1, **number, op=MPI.SUM) as plan:
        plan.execute(np.arange(PROCS), result)
        expect(result[0] == RANK * PROCS, "reduce_scatter_block")
        everything = np.arange(PROCS)
        plan.execute(MPI.IN_PLACE, everything)
        expect(everything[0] == RANK * PROCS, "reduce_scatter_block in place")
        if PROCS > 1:
            words = f"the plan needs {8 * PROCS}"
            refused(ValueError, words, lambda: plan.execute(MPI.IN_PLACE, result[:1]))
    of_first = {"recv_counts": [1] + [0] * (PROCS - 1), "displs": [0] + [100] * (PROCS - 1)}
    sides = {"send_count": int(RANK == 0), "send_type": MPI.INT64_T}
    with swp.Collective(COMM, "allgatherv", **sides, **number, **of_first) as plan:
        plan.execute(value, result)
        expect(result[0] == 0, "allgatherv of one block")
    pair = MPI.INT64_T.Create_contiguous(2).Commit()
    reverse = {"recv_counts": [1] * PROCS, "displs": list(range(PROCS))[::-1]}
    sides = {"send_count": 1, "send_type": pair, "recv_type": pair}
    with swp.Collective(COMM, "allgatherv", **sides, **reverse, method="ring") as plan:
        everything = np.zeros(2 * PROCS, int)
        plan.execute(value, everything)
        expect(everything[::2].tolist() == list(range(PROCS))[::-1], "allgatherv of pairs")
        plan.set(**sides, **{name: np.array(numbers) for name, numbers in reverse.items()})
        plan.execute(value, everything)
        expect(everything[::2].tolist() == list(range(PROCS))[::-1], "lists that are arrays")
        refused(ValueError, "recv has", lambda: plan.execute(value, everything[:-1]))
    reverse |= {"send_counts": reverse["recv_counts"], "send_displs": reverse["displs"]}
    with swp.Collective(COMM, "alltoallv", **sides, **reverse, method="bruck") as plan:
        plan.execute(np.arange(2 * PROCS) + 100 * RANK, everything)
        crossed = [2 * (PROCS - 1 - RANK) + 100 * each for each in range(PROCS)]
        expect(everything[::2].tolist() == crossed[::-1], "alltoallv of pairs")
        plan.set(**sides, **reverse)
        refused(ValueError, "send has", lambda: plan.execute(everything[:-1], everything))
        before = reverse | {"send_displs": [-1, *range(PROCS - 1)]}
        plan.set(**sides, **before)
        refused(ValueError, "lies before", lambda: plan.execute(everything, everything))
        plan.execute(MPI.IN_PLACE, everything)  # which ignores what describes the send side
        expect(plan.method == "bruck", "displacements that are ignored")
        before = reverse | {"displs": before["send_displs"]}
        plan.set(**sides, **before)
        refused(ValueError, "lies before", lambda: plan.execute(everything, everything))
    pair.Free()
    early = MPI.INT64_T.Create_hindexed_block(1, [-8]).Commit()
    with swp.Collective(COMM, "bcast", recv_count=2, recv_type=early, **last) as plan:
        refused(ValueError, "lies before", lambda: plan.execute(None, result))
    early.Free()
    with swp.Collective(COMM, "barrier", method="bruck") as plan:
        plan.execute(None, None)
        expect(plan.method == "bruck", "barrier")


def errors_of_collectives() -> None:
    def plan(operation: str, **arguments: object) -> Callable[[], object]:
        return lambda: swp.Collective(COMM, operation, **arguments)

    number = {"recv_type": MPI.INT}
    refused(ValueError, "no such collective", plan("exchange"))
    refused(ValueError, "no such collective", plan("scan", recv_count=1, **number))
    argument = swp.ErrorCode.ARGUMENT
    failed(argument, "MPI_OP_NULL", plan("allreduce", recv_count=1, **number))
    failed(argument, "recv_count is -1", plan("allreduce", **number, op=MPI.SUM))
    failed(argument, "MPI_DATATYPE_NULL", plan("allreduce", recv_count=1, op=MPI.SUM))
    failed(argument, "root is -1", plan("bcast", recv_count=1, **number))
    both = {"send_count": 1, "send_type": MPI.INT} | number
    failed(argument, "recv_counts and displs", plan("allgatherv", **both))
    refused(ValueError, "recv_counts and displs", plan("allgatherv", **both, recv_counts=[]))
    lists = {"recv_counts": [1] * PROCS, "displs": range(PROCS)}
    failed(argument, "send_counts and send_displs", plan("alltoallv", **both, **lists))
    refused(ValueError, "send_counts", plan("alltoallv", **both, **lists, send_counts=[]))
    refused(ValueError, "32 bits", plan("bcast", recv_count=2**32, **number, root=0))
    refused(ValueError, "32 bits", plan("bcast", recv_count=1, **number, root=2**32))
    far = lists | {"displs": [0] * (PROCS - 1) + [3_000_000_000]}
    refused(ValueError, "32 bits", plan("allgatherv", **both, **far))
    wrong = both | {"send_count": 2**32 + 1}
    with swp.Collective(COMM, "allgatherv", **both, **lists) as gather:
        refused(ValueError, "32 bits", lambda: gather.set(**wrong, **lists))


def failures() -> None:
    """Expect that buffers stay where they are after MPI has failed, which may still use them."""

    def fail(name: str, *_: object) -> None:
        raise swp.SwitchpointError(swp.ErrorCode.MPI, name, 0)

    alone = (1, [RANK], [0, 1], [RANK], [0, 1])
    number = {"recv_count": 1, "recv_type": MPI.DOUBLE, "op": MPI.SUM}
    with (
        swp.Exchange(COMM, 8, *alone) as exchange,
        swp.Fields(COMM, [8], *alone) as pair,
        swp.Discovery(COMM) as discovery,
        swp.Collective(COMM, "allreduce", **number) as collective,
    ):
        for execute in (
            exchange.execute,
            exchange.start,
            lambda send, recv: pair.execute([send], [recv]),
            lambda send, recv: pair.start([send], [recv]),
            lambda send, _: discovery.execute({RANK: send}),
            collective.execute,
        ):
            send = bytearray(8)
            call, plans.call = plans.call, fail
            failed(swp.ErrorCode.MPI, "swp_", partial(execute, send, bytearray(8)))
            plans.call = call
            gc.collect()
            refused(BufferError, "", partial(send.append, 1))


def tables(path: Path) -> None:
    if RANK == 0:
        rules = ("op=discovery method=rsx", "op=bcast method=vendor:algorithm=no_such")
        lines = ["switchpoint-table 1", *(f"rule {rule}" for rule in rules), ""]
        path.write_text("\n".join(lines))
    with swp.Table(COMM, str(path)) as table:
        expect(table.rules == 2, "rules")
        expect(table.has("discovery") and not table.has("exchange"), "operations of a table")
        refused(KeyError, "no_such", lambda: table.has("no_such"))
        hints = swp.Hints(table=table)
        with swp.Discovery(COMM, hints=hints) as plan:
            expect(plan.method == "rsx", "choice by a table")
        call = {"recv_count": 1, "recv_type": MPI.INT, "root": 0}
        with swp.Collective(COMM, "bcast", **call, hints=hints) as plan:
            spec, why = plan.passed or ("", "")
            expect(spec == "vendor:algorithm=no_such" and "no such algorithm" in why, "passed rule")
    expect(table.rules == 0, "rules of a freed table")
    refused(ValueError, "is freed", lambda: swp.Discovery(COMM, hints=hints))
    error = swp.SwitchpointError(swp.ErrorCode.MPI, "no such rank", 6)
    again = pickle.loads(pickle.dumps(error))
    expect((again.code, str(again), again.mpi_code) == (error.code, str(error), 6), "pickled error")
    failed(swp.ErrorCode.TABLE, "no/such.table", lambda: swp.Table(COMM, "no/such.table"))


expect(swp.version() == "0.1.0", "version")
exchanges()
fields()
errors_of_exchanges()
discoveries()
collectives()
errors_of_collectives()
failures()
tables(Path(sys.argv[1]))
COMM.Barrier()
if RANK == 0:
    print(f"plans.py: {cases} cases passed on {PROCS} ranks")
