"""The reader of a launch's raw file (docs/reference/benchfile.md), line by line.

A line that cannot be used becomes a Problem with file and line, and reading goes on. Keys that the
store does not keep are ignored.
"""

import os
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from io import BufferedReader
from pathlib import Path
from statistics import median
from typing import Any, BinaryIO, Generic, NamedTuple, TypeVar, Union

import msgspec
import numpy as np
from numpy.typing import NDArray

from tuner.domain.cases import MOST_NODES, MOST_PPN
from tuner.domain.flat import flat
from tuner.domain.operations import DEFAULT_METHODS
from tuner.domain.records import DATE, NAME, PATTERN_SPEC, SYNC, Features, Header, Problem
from tuner.files import files_below, one_line, open_file, shown
from tuner.rawfile.kinds import KINDS
from tuner.rawfile.kinds.kind import Kind, UnusableError
from tuner.rawfile.lines import (
    CaseLine,
    EndLine,
    HeaderLine,
    decode_lates,
    decode_rounds,
    decode_seconds,
    decode_statistics,
)

decode_line = msgspec.json.Decoder(Union[HeaderLine, CaseLine, EndLine, *KINDS]).decode

SCHEMA = 1

_DEEPEST = 100
"""The levels of a header's values: far fewer than any that reads them from the store can take."""

MOST_LINE_BYTES = 1 << 26
"""The longest line that is read, with its end: swpbench writes less than a quarter."""

_MOST_PROBLEMS = 100
"""Lines of a file that are reported one by one if they cannot be used."""

_BUFFER_BYTES = 1 << 17  # a few of the long lines
_TAIL_BYTES = 1 << 12

T = TypeVar("T")

_FORMS = {  # of texts in the header
    "campaign": NAME,
    "date": DATE,
    "pattern": PATTERN_SPEC,
    "sync": SYNC,
}

_SHOWN = ("system", "environment", "cpu_model", "mpi_library", "mpi_standard", "compiler", "commit")
"""The texts in the header that describe a system to users; swpbench limits their length, too."""


class RawCase(NamedTuple):
    """One method at one size in one launch, as in its raw file, without the samples."""

    method: str
    size_bytes: int
    bytes: int
    features: Features
    samples: int
    late: int  # samples for which some rank was late for the start
    plan_s: float  # median of the planning times, 0 when none was taken
    canary_s: float  # median of the ping-pong times


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
    cases: list[RawCase] = field(default_factory=list)
    products: list[Phases] = field(default_factory=list)  # of spmv, one per case
    records: list[Any] = field(default_factory=list)  # of the kind of the launch
    samples_s: NDArray[np.float32] = field(default_factory=lambda: np.empty(0, np.float32))
    rounds: NDArray[np.uint16] = field(default_factory=lambda: np.empty(0, np.uint16))
    selected: dict[int, Selected] = field(default_factory=dict)  # by size_bytes, where auto ran
    problems: list[Problem] = field(default_factory=list)

    @property
    def samples(self) -> int:
        """Return the number of samples of its cases and records."""
        of_cases = sum(case.samples for case in self.cases)
        return of_cases + (sum(map(self.kind.samples, self.records)) if self.kind else 0)

    def medians_s(self) -> dict[tuple[str, int], float]:
        """Return the median seconds of each case, by method and size in bytes."""
        medians, start = {}, 0
        for case in self.cases:
            its = self.samples_s[start : start + case.samples]
            medians[case.method, case.size_bytes] = float(np.median(its))
            start += case.samples
        return medians

    @property
    def kind(self) -> Kind | None:
        """Return the kind of its records; None for a launch that measures cases."""
        return _KIND_OF.get(self.header.operation) if self.header else None


_KIND_OF = {kind.name: kind for kind in KINDS.values()}

_LINE_ERRORS = (msgspec.DecodeError, UnicodeDecodeError, RecursionError, UnusableError)


def read(path: Path) -> BenchFile:
    """Read one raw file. Raise OSError when it cannot be opened or read."""
    with open_file(path, _BUFFER_BYTES) as lines:
        return read_lines(path, lines)


def read_lines(path: Path, content: BinaryIO) -> BenchFile:
    """Return the content of a raw file, line by line."""
    reader = _Reader(BenchFile(shown(path)))
    file = reader.file
    number, line, unusable = 0, b"", 0
    for number, line in enumerate(_lines(content), start=1):
        try:
            reader.take(line)
        except _LINE_ERRORS as error:
            unusable += 1
            if unusable <= _MOST_PROBLEMS:
                file.problems.append(Problem(file.path, number, _explain(line, error)))
        if file.header is None or reader.is_over:
            break
    if unusable > _MOST_PROBLEMS:
        message = f"{unusable - _MOST_PROBLEMS} more lines cannot be used"
        file.problems.append(Problem(file.path, number, message))
    if number == 0:
        file.problems.append(Problem(file.path, 1, "the file is empty"))
    elif file.header is not None and not file.complete:
        message = "no end record: the launch did not finish; its complete cases are used"
        file.problems.append(Problem(file.path, number, message))
    if reader.samples:
        file.samples_s, file.rounds = np.concatenate(reader.samples), np.concatenate(reader.rounds)
    return file


def _lines(content: BinaryIO) -> Iterator[bytes]:
    """Yield each line; of one that is too long, only a begin that is too long as well."""
    while line := read_line(content):
        yield line
        while len(line) > MOST_LINE_BYTES and not line.endswith(b"\n"):
            line = read_line(content)


def read_line(content: BinaryIO) -> bytes:
    """Return the next line, or a begin of it that `read_header` refuses as too long."""
    return content.readline(MOST_LINE_BYTES + 1)


def _record(line: bytes) -> Any:
    """Return what a line holds. Raise one of _LINE_ERRORS."""
    if len(line) > MOST_LINE_BYTES:
        raise UnusableError(f"a line of over {MOST_LINE_BYTES >> 20} MiB")
    return decode_line(line)


def read_header(line: bytes) -> Header | None:
    """Return the header in the first line of a raw file; None when the line is not one."""
    try:
        record = _record(line)
        return _header(line, record) if isinstance(record, HeaderLine) else None
    except _LINE_ERRORS:
        return None


def read_ends(path: Path) -> tuple[Header | None, bool]:
    """Return a raw file's header, and whether its last line marks it as complete.

    Raise OSError when it cannot be opened or read.
    """
    with open_file(path) as file:
        return read_header(read_line(file)), _end(file) is not None


def read_end(path: Path) -> EndLine | None:
    """Return a raw file's end record; None when its last line is not one.

    Raise OSError when it cannot be opened or read.
    """
    with open_file(path) as file:
        return _end(file)


def _end(file: BufferedReader) -> EndLine | None:
    try:
        record = _record(_last_line(file))
    except _LINE_ERRORS:
        return None
    return record if isinstance(record, EndLine) else None


def _last_line(file: BufferedReader) -> bytes:
    size, length = file.seek(0, os.SEEK_END), _TAIL_BYTES
    while True:
        start = file.seek(max(size - length, 0))
        tail = file.read()
        before = tail.rstrip(b"\n").rfind(b"\n")
        if before >= 0 or start == 0 or length > MOST_LINE_BYTES:
            return tail[before + 1 :]
        length *= 2


def _explain(line: bytes, error: Exception) -> str:
    if isinstance(error, msgspec.ValidationError):
        return f"not a valid record: {error}"
    if isinstance(error, UnusableError):
        return str(error)
    kind = "not JSON" if line.endswith(b"\n") else "cut off"
    return f"{kind}: {error}"


class _Reader:
    """A reader that fills a BenchFile record by record."""

    def __init__(self, file: BenchFile) -> None:
        self.file = file
        self.is_over = False  # what follows is of another launch
        self.samples: list[NDArray[np.float32]] = []
        self.rounds: list[NDArray[np.uint16]] = []
        self._seen: set[tuple[Any, ...]] = set()
        self._round = _Last(_rounds)
        self._late = _Last(_length_and_late)
        self._canary = _Last(_length_and_median)

    def take(self, line: bytes) -> None:
        """Add the content of one line."""
        file = self.file
        record = _record(line)
        if file.header is None and not isinstance(record, HeaderLine):
            raise UnusableError("the first line is not a header; the file cannot be used")
        if isinstance(record, HeaderLine):
            if file.header is not None:
                self.is_over = True
                raise UnusableError(
                    "a second header; one file holds one launch, the rest is not used"
                )
            file.header = _header(line, record)
            file.header_text = line.decode().strip()
        elif file.complete and not isinstance(record, EndLine):
            raise UnusableError("a line after the end record")
        elif isinstance(record, CaseLine):
            self._take_case(record)
        elif isinstance(record, EndLine):
            self._take_end(record)
        else:
            self._take_record(record)

    def _take_end(self, record: EndLine) -> None:
        file = self.file
        file.complete = True
        if file.header is not None and record.others is not None:
            file.header = replace(file.header, others=record.others)
        found = len(file.cases) + len(file.records), file.samples
        if found != (record.cases, record.samples):
            raise UnusableError(
                f"the end record counts {record.cases} cases with {record.samples} samples; "
                "usable: {} with {}".format(*found)
            )

    def _take_case(self, record: CaseLine) -> None:
        if self.file.kind:
            raise UnusableError(f"a case in a launch of {self.file.kind.name}")
        n = len(record.samples_s)
        rounds = self._round(record.round)
        lates, late = self._late(record.late)
        canaries, canary_s = self._canary(record.canary_s)
        if not len(rounds) == lates == canaries == n:
            raise UnusableError(
                f"{n} samples_s, but {len(rounds)} round, {lates} late, {canaries} canary_s"
            )
        key = (record.method, record.size_bytes, record.bytes)
        if key in self._seen:
            raise UnusableError(f"a second case of {record.method} at size_bytes {key[1]}")
        statistics = bytes(record.statistics).decode()
        decode_statistics(statistics)  # raises for what is no object of numbers
        if self.file.header and self.file.header.operation == "spmv":
            self.file.products.append(_phases(record))
        self._seen.add(key)
        if record.selected:
            self.file.selected[record.size_bytes] = Selected(record.selected, record.described)
        its = record.features
        features = Features(its.mmax, its.mavg, its.vavg_bytes, its.vmax_bytes, statistics)
        plan_s = median(record.plan_s) if record.plan_s else 0.0
        self.file.cases.append(RawCase(*key, features, n, late, plan_s, canary_s))
        self.samples.append(np.array(record.samples_s, dtype=np.float32))
        self.rounds.append(rounds)

    def _take_record(self, line: Any) -> None:
        header, kind = self.file.header, KINDS[type(line)]
        if header is None or kind is not self.file.kind:
            raise UnusableError(f"a record of {kind.name} in a launch of another kind")
        record = kind.of_line(line, header)
        if record.key in self._seen:
            which = ", ".join(f"{name}={value!r}" for name, value in flat(record.key).items())
            raise UnusableError(f"a second {kind.name}: {which}")
        self._seen.add(record.key)
        self.file.records.append(record)


def _phases(record: CaseLine) -> Phases:
    n, lists = len(record.samples_s), (record.communication_s, record.local_s)
    if not all(len(seconds) == n for seconds in lists):
        raise UnusableError(
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
        raise UnusableError(f"schema {record.schema} is not known here, only {SCHEMA}")
    fields: dict[str, Any] = msgspec.json.decode(line)
    if not _is_shallow(fields, _DEEPEST):
        raise UnusableError(f"values are nested deeper than {_DEEPEST} levels")
    fields["yield_setting"] = fields.pop("yield", None)
    fields |= {name: one_line(fields[name]) for name in _SHOWN if isinstance(fields.get(name), str)}
    header = msgspec.convert(fields, Header)
    if header.operation not in {*DEFAULT_METHODS, *_KIND_OF}:
        raise UnusableError(f"operation {header.operation} is not known here")
    for name, least in (("launch", 0), ("procs", 1), ("nodes", 1), ("ppn", 1), ("cores", 1)):
        if not least <= getattr(header, name) < 2**31:
            raise UnusableError(f"{name} {getattr(header, name)} is out of range")
    procs, nodes, ppn = header.procs, header.nodes, header.ppn
    if not (ppn <= procs <= nodes * ppn and nodes <= min(procs, MOST_NODES) and ppn <= MOST_PPN):
        raise UnusableError(f"{procs} procs cannot be on {nodes} nodes with {ppn} ppn")
    for name, form in _FORMS.items():
        if not re.fullmatch(form, getattr(header, name)):
            raise UnusableError(f"{name} {getattr(header, name)!r} cannot be used, only {form}")
    try:
        datetime.fromisoformat(header.date)
    except ValueError as error:
        raise UnusableError(f"date {header.date}: {error}") from error
    if len(header.load) != 3 or not all(0 <= load < 1e9 for load in header.load):
        raise UnusableError(f"load {header.load} is not three load averages")
    if not 0 <= header.crossing_s < 1e9:
        raise UnusableError(f"crossing_s {header.crossing_s} is not a time")
    if header.others is not None and not 0 <= header.others <= 1:
        raise UnusableError(f"others {header.others} is not a share")
    return header


def _is_shallow(value: Any, levels: int) -> bool:
    """Return whether JSON has no more levels of lists and objects than these."""
    if not isinstance(value, list | dict):
        return True
    inside = value.values() if isinstance(value, dict) else value
    return levels > 0 and all(_is_shallow(each, levels - 1) for each in inside)


def _rounds(text: bytes) -> NDArray[np.uint16]:
    return np.array(decode_rounds(text), dtype=np.uint16)


def _length_and_late(text: bytes) -> tuple[int, int]:
    """Return how many samples there are, and for how many of them some rank was late."""
    lates = decode_lates(text)
    return len(lates), len(lates) - lates.count(0)


def _length_and_median(text: bytes) -> tuple[int, float]:
    seconds = decode_seconds(text)
    return len(seconds), median(seconds) if seconds else 0.0


def raw_files(sources: list[Path]) -> Iterator[Path]:
    """Yield the raw files named or below named directories, in a fixed order, each once."""
    seen: set[Path] = set()
    for source in sources:
        for path in below(source, links=True) if source.is_dir() else [source]:
            if path not in seen:
                seen.add(path)
                yield path


def below(directory: Path, links: bool = False) -> list[Path]:
    """Return all raw files below a directory, also behind links to directories if asked for."""
    return files_below(directory, ".jsonl", links)
