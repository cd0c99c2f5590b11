"""Soaks: methods that a launch executed very often."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, NamedTuple

import msgspec

from tuner.domain.operations import DEFAULT_METHODS
from tuner.domain.records import PATTERN_SPEC, Header
from tuner.files import one_line
from tuner.rawfile.kinds.kind import Kind, UnusableError
from tuner.rawfile.lines import NotNegative, Spec

if TYPE_CHECKING:
    import pandas as pd

    from tuner.store.store import Store


_REASON_LETTERS = 1000  # swpbench writes fewer


class SoakLine(msgspec.Struct, tag_field="record", tag="soak"):
    """One method at one size."""

    operation: str
    method: Spec
    pattern: Annotated[str, msgspec.Meta(pattern=rf"^{PATTERN_SPEC}\Z")]
    size_bytes: NotNegative
    executions: Annotated[int, msgspec.Meta(ge=0, le=2**60 - 1)]  # the most of swpbench
    passed: bool
    reason: str


class SoakKey(NamedTuple):
    """A method at one size."""

    operation: str
    pattern: str
    method: str
    size_bytes: int


class Soak(NamedTuple):
    """The result of executing one method at one size very often."""

    key: SoakKey
    executions: int  # complete and verified
    passed: bool
    reason: str  # what was found


def _soak(line: SoakLine, header: Header) -> Soak:
    if line.operation not in DEFAULT_METHODS:
        raise UnusableError(f"operation {line.operation} is not known here")
    key = SoakKey(line.operation, line.pattern, line.method, line.size_bytes)
    return Soak(key, line.executions, line.passed, one_line(line.reason, _REASON_LETTERS))


KIND = Kind("soak", SoakLine, _soak)


def stored(store: Store, system: str) -> pd.DataFrame:
    """Return one row per soak of a system, by date, with the `date` and `commit` of its launch."""
    return store.records(KIND.name, system).sort_values("date", kind="stable", ignore_index=True)
