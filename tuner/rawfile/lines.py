"""The lines of any raw file (docs/reference/benchfile.md), as msgspec decodes them.

They have only the keys that the store keeps; others are ignored. tuner/rawfile/kinds/ has the lines
of launches that measure no cases. How lines depend on each other is checked in
tuner/rawfile/reading.py.
"""

from typing import Annotated

import msgspec

from tuner.domain.records import LONGEST_S, SHORTEST_S, SPEC

NotNegative = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
Real = Annotated[float, msgspec.Meta(ge=0, le=1e30)]
Time = Annotated[float, msgspec.Meta(ge=0, le=LONGEST_S)]
Seconds = Annotated[float, msgspec.Meta(ge=SHORTEST_S, le=LONGEST_S)]

Spec = Annotated[str, msgspec.Meta(pattern=rf"^{SPEC}\Z")]


class FeaturesOfCase(msgspec.Struct):
    """The features of a case's problem."""

    mmax: NotNegative
    mavg: Real
    vavg_bytes: Real
    vmax_bytes: NotNegative


class HeaderLine(msgspec.Struct, tag_field="record", tag="header"):
    """The first line, whose schema determines how to read the rest."""

    schema: int


class CaseLine(msgspec.Struct, tag_field="record", tag="case"):
    """One method at one size; the lists that are often repeated are decoded later."""

    method: Spec
    size_bytes: NotNegative
    bytes: NotNegative
    features: FeaturesOfCase
    statistics: msgspec.Raw
    samples_s: Annotated[list[Seconds], msgspec.Meta(min_length=1)]
    round: msgspec.Raw
    late: msgspec.Raw
    canary_s: msgspec.Raw
    plan_s: list[Time]
    verified: Annotated[int, msgspec.Meta(ge=1)]
    selected: str = ""
    described: str = ""
    communication_s: list[Real] = []
    local_s: list[Real] = []


class SkippedCase(msgspec.Struct):
    """A case that a launch did not measure."""

    reason: str


class EndLine(msgspec.Struct, tag_field="record", tag="end"):
    """The last line of a launch that ended well."""

    cases: int
    samples: int
    seconds: Real = 0.0  # of files made of PICO's results
    skipped: list[SkippedCase] = []
    others: Annotated[float, msgspec.Meta(ge=0, le=1)] | None = None


decode_rounds = msgspec.json.Decoder(list[Annotated[int, msgspec.Meta(ge=0, le=65535)]]).decode
decode_lates = msgspec.json.Decoder(list[Annotated[int, msgspec.Meta(ge=0, lt=2**31)]]).decode
decode_statistics = msgspec.json.Decoder(dict[str, Real]).decode
decode_seconds = msgspec.json.Decoder(list[Time]).decode
