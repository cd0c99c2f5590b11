"""The reader of a launch's raw file (docs/reference/benchfile.md), line by line.

A line that cannot be used becomes a Problem with file and line, and reading goes on. What the store
does not keep is ignored.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from io import BufferedReader
from pathlib import Path
from statistics import median
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray

from tuner.domain.operations import (
    DEFAULT_METHODS,
    OVERLAP_OPERATION,
    PROBE_OPERATION,
    SOAK_OPERATION,
)
from tuner.domain.records import (
    NAME,
    PATTERN_SPEC,
    QUANTITIES,
    SCOPES,
    SYNC,
    Breakdown,
    Case,
    Features,
    Header,
    Probe,
    ProbeKey,
    Problem,
    Soak,
)
from tuner.files import open_file, shown
from tuner.rawfile.lines import (
    CaseLine,
    EndLine,
    HeaderLine,
    OverlapLine,
    ProbeLine,
    SoakLine,
    decode_integers,
    decode_line,
    decode_seconds,
)

SCHEMA = 1

_BUFFER_BYTES = 1 << 17  # a few of the long lines
_TAIL_BYTES = 1 << 12

T = TypeVar("T")

_FORMS = {  # of texts in the header
    "campaign": NAME,
    "date": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ",
    "pattern": PATTERN_SPEC,
    "sync": SYNC,
}


class Phases(NamedTuple):
    """Medians over a case's samples of the communication and the local part on their own."""

    communication_s: float
    local_s: float


class Selected(NamedTuple):
    """The method that the library chose by itself, and its description."""

    method: str
    described: str


@dataclass(slots=True)
class BenchFile:
    """The content of a raw file. Without a header there is nothing to ingest."""

    path: str
    header: Header | None = None
    header_text: str = ""
    complete: bool = False
    cases: list[Case] = field(default_factory=list)
    products: list[Phases] = field(default_factory=list)  # of spmv, one a case
    probes: list[Probe] = field(default_factory=list)
    breakdowns: list[Breakdown] = field(default_factory=list)
    soaks: list[Soak] = field(default_factory=list)
    samples_s: NDArray[np.float32] = field(default_factory=lambda: np.empty(0, np.float32))
    rounds: NDArray[np.uint16] = field(default_factory=lambda: np.empty(0, np.uint16))
    selected: dict[int, Selected] = field(default_factory=dict)  # by size_bytes, where auto ran
    problems: list[Problem] = field(default_factory=list)

    @property
    def samples(self) -> int:
        """Return the number of samples of its cases, probes and methods of overlap."""
        return (
            sum(case.samples for case in self.cases)
            + sum(len(probe.samples_s) for probe in self.probes)
            + sum(each.samples for each in self.breakdowns)
        )


class _UnusableError(ValueError):
    """Error raised when a line is well-formed but cannot be used."""


_LINE_ERRORS = (msgspec.DecodeError, UnicodeDecodeError, RecursionError, _UnusableError)


def read(path: Path) -> BenchFile:
    """Read one raw file. Raise OSError when it cannot be opened or read."""
    with open_file(path, _BUFFER_BYTES) as lines:
        return read_lines(path, lines)


def read_lines(path: Path, lines: Iterable[bytes]) -> BenchFile:
    """Return the content of a raw file's lines."""
    reader = _Reader(BenchFile(shown(path)))
    file = reader.file
    number, line = 0, b""
    for number, line in enumerate(lines, start=1):
        try:
            reader.take(line)
        except _LINE_ERRORS as error:
            file.problems.append(Problem(file.path, number, _explain(line, error)))
        if file.header is None:
            break
    if number == 0:
        file.problems.append(Problem(file.path, 1, "the file is empty"))
    elif file.header is not None and not file.complete:
        message = "no end record: the launch did not finish; its complete cases are used"
        file.problems.append(Problem(file.path, number, message))
    if reader.samples:
        file.samples_s, file.rounds = np.concatenate(reader.samples), np.concatenate(reader.rounds)
    return file


def read_header(line: bytes) -> Header | None:
    """Return the header in the first line of a raw file; None when that is none."""
    try:
        record = decode_line(line)
        return _header(line, record) if isinstance(record, HeaderLine) else None
    except _LINE_ERRORS:
        return None


def read_ends(path: Path) -> tuple[Header | None, bool]:
    """Return a raw file's header, and whether its last line marks it as complete.

    Raises OSError when it cannot be opened or read.
    """
    with open_file(path) as file:
        header = read_header(file.readline())
        try:
            return header, isinstance(decode_line(_last_line(file)), EndLine)
        except _LINE_ERRORS:
            return header, False


def _last_line(file: BufferedReader) -> bytes:
    size, length = file.seek(0, os.SEEK_END), _TAIL_BYTES
    while True:
        start = file.seek(max(size - length, 0))
        tail = file.read()
        before = tail.rstrip(b"\n").rfind(b"\n")
        if before >= 0 or start == 0:
            return tail[before + 1 :]
        length *= 2


def _explain(line: bytes, error: Exception) -> str:
    if isinstance(error, msgspec.ValidationError):
        return f"not a valid record: {error}"
    if isinstance(error, _UnusableError):
        return str(error)
    kind = "not JSON" if line.endswith(b"\n") else "cut off"
    return f"{kind}: {error}"


class _Reader:
    """A reader that fills a BenchFile record by record."""

    def __init__(self, file: BenchFile) -> None:
        self.file = file
        self.samples: list[NDArray[np.float32]] = []
        self.rounds: list[NDArray[np.uint16]] = []
        self._seen: set[tuple[str, int] | tuple[str, int, int] | ProbeKey] = set()
        self._round = _Last(_integers)
        self._late = _Last(_length_and_late)
        self._canary = _Last(_length_and_median)

    def take(self, line: bytes) -> None:
        """Add the content of one line."""
        file = self.file
        record = decode_line(line)
        if file.header is None and not isinstance(record, HeaderLine):
            raise _UnusableError("the first line is not a header; nothing of the file can be used")
        if isinstance(record, CaseLine | ProbeLine | OverlapLine | SoakLine):
            if file.complete:
                raise _UnusableError("a case after the end record")
            if isinstance(record, CaseLine):
                self._take_case(record)
            elif isinstance(record, ProbeLine):
                self._take_probe(record)
            elif isinstance(record, OverlapLine):
                self._take_overlap(record)
            else:
                self._take_soak(record)
        elif isinstance(record, HeaderLine):
            if file.header is not None:
                raise _UnusableError("a second header; one file holds one launch")
            file.header = _header(line, record)
            file.header_text = line.decode().strip()
        else:
            file.complete = True
            kinds = (file.cases, file.probes, file.breakdowns, file.soaks)
            cases = sum(len(kind) for kind in kinds)
            samples = file.samples
            if (record.cases, record.samples) != (cases, samples):
                raise _UnusableError(
                    f"the end record tells of {record.cases} cases with {record.samples} samples; "
                    f"usable are {cases} with {samples}"
                )

    def _take_case(self, record: CaseLine) -> None:
        n = len(record.samples_s)
        rounds = self._round(record.round)
        lates, late = self._late(record.late)
        canaries, canary_s = self._canary(record.canary_s)
        if not len(rounds) == lates == canaries == n:
            raise _UnusableError(
                f"{n} samples_s, but {len(rounds)} round, {lates} late, {canaries} canary_s"
            )
        key = (record.method, record.size_bytes, record.bytes)
        if key in self._seen:
            raise _UnusableError(f"a second case of {record.method} at size_bytes {key[1]}")
        statistics = bytes(record.statistics).decode()
        if not statistics.startswith("{"):
            raise _UnusableError("statistics is not an object")
        if self.file.header and self.file.header.operation == "spmv":
            self.file.products.append(_phases(record))
        self._seen.add(key)
        if record.selected:
            self.file.selected[record.size_bytes] = Selected(record.selected, record.described)
        its = record.features
        features = Features(its.mmax, its.mavg, its.vavg_bytes, its.vmax_bytes, statistics)
        plan_s = median(record.plan_s) if record.plan_s else 0.0
        self.file.cases.append(Case(*key, features, n, late, plan_s, canary_s))
        self.samples.append(np.array(record.samples_s, dtype=np.float32))
        self.rounds.append(rounds)

    def _take_probe(self, record: ProbeLine) -> None:
        if self.file.header and self.file.header.operation != PROBE_OPERATION:
            raise _UnusableError("a probe in a launch that is not of probes")
        paired = QUANTITIES.get(record.quantity)
        if paired is None:
            raise _UnusableError(f"quantity {record.quantity} is not known here")
        if record.scope not in (SCOPES if paired else ("",)):
            raise _UnusableError(f"{record.quantity} has no scope {record.scope!r}")
        key = ProbeKey(
            *(record.quantity, record.scope, record.pairs, record.messages),
            *(record.delay_s, record.size_bytes),
        )
        if key in self._seen:
            raise _UnusableError(f"a second probe of {key.quantity} at size_bytes {key.size_bytes}")
        self._seen.add(key)
        self.file.probes.append(Probe(key, np.array(record.samples_s, dtype=np.float32)))

    def _take_overlap(self, record: OverlapLine) -> None:
        header = self.file.header
        if header is None or header.operation != OVERLAP_OPERATION:
            raise _UnusableError("a record of overlap in a launch of something else")
        n = len(record.samples_s)
        parts = (record.computation_s, record.initiation_s, record.wait_s, record.barrier_s)
        if any(len(each) != n for each in (*parts, record.alone_s)):
            raise _UnusableError(f"{n} samples_s, but other numbers of its parts")
        key = (record.method, record.flops)
        if key in self._seen:
            raise _UnusableError(f"a second record of {record.method} with {record.flops} flops")
        self._seen.add(key)
        medians = map(median, (record.samples_s, *parts, record.alone_s))
        self.file.breakdowns.append(
            Breakdown(
                *(header.pattern, *key, record.full_flops),
                *(record.messages, record.message_bytes, n),
                *medians,
            )
        )

    def _take_soak(self, record: SoakLine) -> None:
        if self.file.header and self.file.header.operation != SOAK_OPERATION:
            raise _UnusableError("a record of a soak in a launch of something else")
        if record.operation not in DEFAULT_METHODS:
            raise _UnusableError(f"operation {record.operation} is not known here")
        key = (record.method, record.size_bytes)
        if key in self._seen:
            raise _UnusableError(f"a second soak of {record.method} at size_bytes {key[1]}")
        self._seen.add(key)
        self.file.soaks.append(
            Soak(
                *(record.operation, record.pattern, *key),
                *(record.executions, record.passed, record.reason),
            )
        )


def _phases(record: CaseLine) -> Phases:
    n, lists = len(record.samples_s), (record.communication_s, record.local_s)
    if not all(len(seconds) == n for seconds in lists):
        raise _UnusableError(
            f"{n} samples_s, but {len(lists[0])} communication_s, {len(lists[1])} local_s"
        )
    return Phases(*map(median, lists))


class _Last(Generic[T]):
    """A decoder that keeps its last result: a block's methods have the same rounds and canaries."""

    def __init__(self, decode: Callable[[bytes], T]) -> None:
        self._decode = decode
        self._text = b"[]"
        self._value = decode(self._text)

    def __call__(self, raw: msgspec.Raw) -> T:
        text = bytes(raw)
        if text != self._text:
            self._value = self._decode(text)
            self._text = text
        return self._value


def _header(line: bytes, record: HeaderLine) -> Header:
    if record.schema != SCHEMA:
        raise _UnusableError(f"schema {record.schema} is not known here, only {SCHEMA}")
    fields: dict[str, Any] = msgspec.json.decode(line)
    fields["yield_setting"] = fields.pop("yield", None)
    header = msgspec.convert(fields, Header)
    if header.operation not in (
        *DEFAULT_METHODS,
        PROBE_OPERATION,
        OVERLAP_OPERATION,
        SOAK_OPERATION,
    ):
        raise _UnusableError(f"operation {header.operation} is not known here")
    for name, least in (("launch", 0), ("procs", 1), ("nodes", 1), ("ppn", 1), ("cores", 1)):
        if not least <= getattr(header, name) < 2**31:
            raise _UnusableError(f"{name} {getattr(header, name)} is out of range")
    for name, form in _FORMS.items():
        if not re.fullmatch(form, getattr(header, name)):
            raise _UnusableError(f"{name} {getattr(header, name)!r} cannot be used, only {form}")
    try:
        datetime.fromisoformat(header.date)
    except ValueError as error:
        raise _UnusableError(f"date {header.date}: {error}") from error
    if len(header.load) != 3 or not all(0 <= load < 1e9 for load in header.load):
        raise _UnusableError(f"load {header.load} is not three load averages")
    return header


def _integers(text: bytes) -> NDArray[np.uint16]:
    return np.array(decode_integers(text), dtype=np.uint16)


def _length_and_late(text: bytes) -> tuple[int, int]:
    """Return how many samples there are, and for how many of them some rank was late."""
    lates = decode_integers(text)
    return len(lates), len(lates) - lates.count(0)


def _length_and_median(text: bytes) -> tuple[int, float]:
    seconds = decode_seconds(text)
    return len(seconds), median(seconds) if seconds else 0.0


def raw_files(sources: list[Path]) -> Iterator[Path]:
    """Yield the raw files named or below named directories, in a fixed order, each once."""
    seen: set[Path] = set()
    for source in sources:
        for path in below(source) if source.is_dir() else [source]:
            if path not in seen:
                seen.add(path)
                yield path


def below(directory: Path) -> list[Path]:
    """Return all raw files below a directory; files deleted meanwhile are left out."""
    found = [Path(place, name) for place, _, names in os.walk(directory) for name in names]
    return sorted(path for path in found if path.suffix == ".jsonl")
