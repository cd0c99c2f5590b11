"""The lines of a raw file (docs/reference/benchfile.md), as msgspec decodes them.

They have only what the store keeps; other keys are ignored. How lines depend on each other is
checked in tuner/rawfile/reading.py.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

_NotNegative = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
_Real = Annotated[float, msgspec.Meta(ge=0, le=1e30)]
_Seconds = Annotated[float, msgspec.Meta(ge=1e-30, le=1e30)]  # what float32 can hold
_Spec = Annotated[str, msgspec.Meta(pattern=r"^[a-z][a-z0-9_]*(:[^\s\"]+)?\Z")]


class FeaturesOfCase(msgspec.Struct):
    """The features of a case's problem."""

    mmax: _NotNegative
    mavg: _Real
    vavg_bytes: _Real
    vmax_bytes: _NotNegative


class HeaderLine(msgspec.Struct, tag_field="record", tag="header"):
    """The first line, whose schema determines how to read the rest."""

    schema: int


class CaseLine(msgspec.Struct, tag_field="record", tag="case"):
    """One method at one size; the lists that are often repeated are decoded later."""

    method: _Spec
    size_bytes: _NotNegative
    bytes: _NotNegative
    features: FeaturesOfCase
    statistics: msgspec.Raw
    samples_s: Annotated[list[_Seconds], msgspec.Meta(min_length=1)]
    round: msgspec.Raw
    late: msgspec.Raw
    canary_s: msgspec.Raw
    plan_s: list[_Real]
    verified: Annotated[int, msgspec.Meta(ge=1)]
    selected: str = ""
    described: str = ""
    communication_s: list[_Real] = []
    local_s: list[_Real] = []


class ProbeLine(msgspec.Struct, tag_field="record", tag="probe"):
    """One parameter's measurement at one size."""

    quantity: str
    samples_s: Annotated[list[_Seconds], msgspec.Meta(min_length=1)]
    scope: str = ""
    pairs: Annotated[int, msgspec.Meta(ge=1, le=2**31)] = 1
    messages: Annotated[int, msgspec.Meta(ge=1, le=2**31)] = 1
    delay_s: _Real = 0.0
    size_bytes: _NotNegative = 0


class OverlapLine(msgspec.Struct, tag_field="record", tag="overlap"):
    """One method of overlap with one amount of computation."""

    method: _Spec
    flops: _NotNegative
    full_flops: _NotNegative
    messages: _NotNegative
    message_bytes: _NotNegative
    samples_s: Annotated[list[_Seconds], msgspec.Meta(min_length=1)]
    computation_s: list[_Real]
    initiation_s: list[_Real]
    wait_s: list[_Real]
    barrier_s: list[_Real]
    alone_s: list[_Real]
    verified: Annotated[int, msgspec.Meta(ge=1)]


class SoakLine(msgspec.Struct, tag_field="record", tag="soak"):
    """One method at one size that was executed very often."""

    operation: str
    method: _Spec
    pattern: str
    size_bytes: _NotNegative
    executions: _NotNegative
    passed: bool
    reason: str


class EndLine(msgspec.Struct, tag_field="record", tag="end"):
    """The last line of a launch that ended well."""

    cases: int
    samples: int


decode_line = msgspec.json.Decoder(
    HeaderLine | CaseLine | ProbeLine | OverlapLine | SoakLine | EndLine
).decode
decode_integers = msgspec.json.Decoder(list[Annotated[int, msgspec.Meta(ge=0, le=65535)]]).decode
decode_seconds = msgspec.json.Decoder(list[_Real]).decode
