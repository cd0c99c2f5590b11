"""Overlap of communication and computation: methods with amounts of computation."""

from statistics import median
from typing import Annotated, NamedTuple

import msgspec

from tuner.domain.records import Header
from tuner.rawfile.kinds.kind import Kind, UnusableError
from tuner.rawfile.lines import NotNegative, Real, Seconds, Spec


class OverlapLine(msgspec.Struct, tag_field="record", tag="overlap"):
    """One method of overlap with one amount of computation."""

    method: Spec
    flops: NotNegative
    full_flops: NotNegative
    messages: NotNegative
    message_bytes: NotNegative
    samples_s: Annotated[list[Seconds], msgspec.Meta(min_length=1)]
    computation_s: list[Real]
    initiation_s: list[Real]
    wait_s: list[Real]
    barrier_s: list[Real]
    alone_s: list[Real]
    verified: Annotated[int, msgspec.Meta(ge=1)]


class BreakdownKey(NamedTuple):
    """A method with one amount of computation, in flops of one rank."""

    pattern: str
    method: str
    flops: int


class Breakdown(NamedTuple):
    """One launch's medians for one method of overlap with one amount of computation.

    The counts are of one rank: flops of full rows, messages to others with the bytes of the
    longest. The parts of the time are means over ranks; `alone_s` is the computation without
    communication.
    """

    key: BreakdownKey
    full_flops: int
    messages: int
    message_bytes: int
    samples: int
    total_s: float
    computation_s: float
    initiation_s: float
    wait_s: float
    barrier_s: float
    alone_s: float


def _breakdown(line: OverlapLine, header: Header) -> Breakdown:
    n = len(line.samples_s)
    parts = (line.computation_s, line.initiation_s, line.wait_s, line.barrier_s, line.alone_s)
    if any(len(each) != n for each in parts):
        raise UnusableError(f"{n} samples_s, but other numbers for its parts")
    return Breakdown(
        BreakdownKey(header.pattern, line.method, line.flops),
        *(line.full_flops, line.messages, line.message_bytes, n),
        *map(median, (line.samples_s, *parts)),
    )


KIND = Kind("overlap", OverlapLine, _breakdown, lambda breakdown: int(breakdown.samples))
