"""Probes, which measure parameters of the models."""

from typing import Annotated, NamedTuple

import msgspec
import numpy as np

from tuner.domain.cases import SCOPES, ProbeKey
from tuner.domain.records import Header
from tuner.models.system import QUANTITIES
from tuner.rawfile.kinds.kind import Kind, UnusableError
from tuner.rawfile.lines import NotNegative, Real, Seconds


class ProbeLine(msgspec.Struct, tag_field="record", tag="probe"):
    """One parameter's measurement at one size."""

    quantity: str
    samples_s: Annotated[list[Seconds], msgspec.Meta(min_length=1)]
    scope: str = ""
    pairs: Annotated[int, msgspec.Meta(ge=1, le=2**31)] = 1
    messages: Annotated[int, msgspec.Meta(ge=1, le=2**31)] = 1
    delay_s: Real = 0.0
    size_bytes: NotNegative = 0


class Probe(NamedTuple):
    """The samples of a probe in one launch: bytes of float32, in seconds."""

    key: ProbeKey
    samples: bytes


def _probe(line: ProbeLine, header: Header) -> Probe:
    paired = QUANTITIES.get(line.quantity)
    if paired is None:
        raise UnusableError(f"quantity {line.quantity} is not known here")
    if line.scope not in (SCOPES if paired else ("",)):
        raise UnusableError(f"{line.quantity} has no scope {line.scope!r}")
    key = ProbeKey(
        *(line.quantity, line.scope, line.pairs, line.messages, line.delay_s, line.size_bytes)
    )
    return Probe(key, np.array(line.samples_s, np.float32).tobytes())


KIND = Kind("probe", ProbeLine, _probe, lambda probe: len(probe.samples) // 4)
