"""Reports of the profiler mpiP, version 3 (docs/reference/profile.md).

A report has the mean size of each call site, and neither communicators nor datatypes: see `_notes`.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from pathlib import PurePath
from typing import IO, TypeVar

from tuner.advice.profile import (
    Calls,
    Profile,
    ProfileError,
    Shape,
    by_time,
    lines_of,
    tabled,
    tabled_bytes,
)
from tuner.domain.operations import COLLECTIVES, DISPATCHED, NO_DATA
from tuner.files import one_line
from tuner.units import parse_number

T = TypeVar("T", int, float)

FIRST_LINE = b"@ mpiP"

_COMMAND = re.compile(r"@ Command : *(\S*)")
_TASK = re.compile(r"@ MPI Task Assignment *: ([0-9]{1,10}) (\S+)")
_HEADING = re.compile(r"@--- (.+?) -*")
_OF_COLLECTIVE = re.compile(r"([A-Z]\w+) +\S+ +([0-9]{1,10}) - +([0-9]{1,10}) +[0-9]+ - +[0-9]+")
_CALL = re.compile(r"[A-Z][A-Za-z_]{1,60}")
_HEADS = ("Call ", "Name ", "Task ", "Total send")
_MOST = 1e18

_TIMES = "Callsite Time statistics (all, milliseconds)"
_SIZES = "Callsite Message Sent statistics (all, sent bytes)"
_TOP_TIMES = "Aggregate Time (top twenty, descending, milliseconds)"
_TOP_SIZES = "Aggregate Sent Message Size (top twenty, descending, bytes)"
_COLLECTIVES = "Aggregate Collective Time (top twenty, descending)"
_RUN_TIMES = "MPI Time (seconds)"
_END = "End of Report"

_CELLS = {_RUN_TIMES: 4, _TIMES: 9, _SIZES: 8, _TOP_SIZES: 6}
"""How many cells a row of a section has, where all versions have the same."""


@dataclass(frozen=True, slots=True)
class _Site:
    """A function that is called at one place of the program."""

    call: str
    number: int


@dataclass(slots=True)
class _Report:
    """The lines of a report that are used. Times are those of single processes, or of all."""

    program: str = ""
    columns: list[str] = field(default_factory=list)  # of the section that is read
    nodes: dict[int, str] = field(default_factory=dict)  # by rank
    run_s: dict[int, float] = field(default_factory=dict)  # by rank
    seconds: dict[_Site, dict[int, float]] = field(default_factory=lambda: defaultdict(dict))
    counts: dict[_Site, dict[int, int]] = field(default_factory=lambda: defaultdict(dict))
    all_seconds: dict[_Site, float] = field(default_factory=dict)
    all_counts: dict[_Site, int] = field(default_factory=dict)
    bytes: dict[_Site, int] = field(default_factory=dict)
    top_bytes: dict[_Site, int] = field(default_factory=dict)
    procs_of: dict[str, list[range]] = field(default_factory=lambda: defaultdict(list))
    ended: bool = False


def parse(file: IO[bytes]) -> Profile:
    """Return the calls of a report. Raise ProfileError."""
    report = _read(file)
    if not report.nodes or set(report.nodes) != set(range(len(report.nodes))):
        raise ProfileError("the report does not say where each process runs: mpiP's option -c?")
    if set(report.run_s) != set(report.nodes):
        raise ProfileError("the report lacks the times of some processes")
    if not report.seconds and not report.all_seconds:
        raise ProfileError("the report has no times of calls")
    procs = len(report.nodes)
    layout = _layout(report)
    shapes = {site: _shape(report, site, layout) for site in report.seconds or report.all_seconds}
    alike: dict[Shape, list[_Site]] = defaultdict(list)
    for site, shape in shapes.items():
        alike[shape].append(site)
    calls = [_calls(report, shape, sites, procs) for shape, sites in alike.items()]
    return Profile(
        program=report.program or "?",
        procs=procs,
        reported=procs,
        cut=0,
        finalized=report.ended,
        aborted=False,
        seconds=max(report.run_s.values()),
        lost=0,
        communication_s=sum(each.seconds for each in calls),
        bound_s=_bound_s(report, shapes, procs),
        calls=by_time(calls),
        notes=tuple(_notes(report, procs)),
    )


def _read(file: IO[bytes]) -> _Report:
    report, section = _Report(), ""
    for number, line in lines_of(file):
        text = line.decode(errors="replace").strip()
        if found := _HEADING.fullmatch(text):
            section = found[1].partition(": ")[0]
            report.ended |= section == _END
        elif text.startswith("@"):
            _take_intro(report, text)
        elif text.startswith(_HEADS):
            report.columns = text.split()
        elif text.strip("-"):
            try:
                _take_row(report, section, text)
            except ValueError as error:
                raise ProfileError(f"line {number} is not of mpiP: {one_line(text)}") from error
    return report


def _take_intro(report: _Report, text: str) -> None:
    if found := _COMMAND.match(text):
        report.program = one_line(PurePath(found[1]).name)
    elif found := _TASK.fullmatch(text):
        report.nodes[int(found[1])] = found[2]


def _take_row(report: _Report, section: str, text: str) -> None:
    """Add a row of a section. Raise ValueError."""
    cells = text.split()
    if len(cells) != _CELLS.get(section, len(cells)):
        raise ValueError(text)
    if section == _RUN_TIMES:
        if cells[0] != "*":
            report.run_s[_count(cells[0])] = _number(cells[1])
    elif section == _TIMES:
        if cells[2] != "*":
            site, rank = _site(cells), _count(cells[2])
            report.counts[site][rank] = _count(cells[3])
            report.seconds[site][rank] = _count(cells[3]) * _number(cells[5]) / 1e3
    elif section == _SIZES:
        if cells[2] == "*":
            report.bytes[_site(cells)] = _size(cells[5], digits=4)
    elif section == _TOP_TIMES:
        row = dict(zip(report.columns, cells, strict=True))
        report.all_seconds[_site(cells)] = _number(row.get("Time", "")) / 1e3
        if "Count" in row:  # since version 3.5
            report.all_counts[_site(cells)] = _count(row["Count"])
    elif section == _TOP_SIZES:
        report.top_bytes[_site(cells)] = _size(cells[4], digits=3)
        report.all_counts.setdefault(_site(cells), _count(cells[2]))
    elif section == _COLLECTIVES and (found := _OF_COLLECTIVE.fullmatch(text)):
        report.procs_of[found[1]].append(range(int(found[2]), int(found[3]) + 1))


def _site(cells: list[str]) -> _Site:
    if not _CALL.fullmatch(cells[0]):
        raise ValueError(cells[0])
    return _Site(cells[0], _count(cells[1]))


def _count(text: str) -> int:
    return int(_number(text))


def _number(text: str) -> float:
    value = parse_number(text)
    if not 0 <= value <= _MOST:
        raise ValueError(text)
    return value


def _size(text: str, digits: int) -> int:
    """Return a size, which is rounded to digits: the power of two that would be printed so."""
    value = _number(text)
    power = 2 ** round(math.log2(max(value, 1.0)))
    return power if f"{power:.{digits}g}" == f"{value:.{digits}g}" else round(value)


def _layout(report: _Report) -> tuple[int, int, int]:
    """Return the processes, the nodes, and the most processes of a node."""
    counts = Counter(report.nodes.values())
    return counts.total(), len(counts), max(counts.values())


def _shape(report: _Report, site: _Site, layout: tuple[int, int, int]) -> Shape:
    """Return the shape of a call site: without layout where its communicator or size is unknown."""
    procs, nodes, ppn = layout
    name = site.call.lower()
    size = report.bytes.get(site, report.top_bytes.get(site))
    known = not (its := report.procs_of.get(site.call)) or any(procs in each for each in its)
    sized = size is not None or name in NO_DATA
    unknown = procs > 1 and name in COLLECTIVES and not (known and sized)
    if unknown or name.startswith(("wait", "test")):  # the latter have no communicator
        procs = nodes = ppn = 0
    return Shape(site.call, procs, nodes, ppn, tabled_bytes(site.call, size or 0))


def _calls(report: _Report, shape: Shape, sites: Iterable[_Site], procs: int) -> Calls:
    if not report.seconds:
        mean_s = sum(report.all_seconds[site] for site in sites) / procs
        count = math.ceil(sum(report.all_counts.get(site, 0) for site in sites) / procs)
        return Calls(shape, (), count, mean_s, mean_s, None)
    seconds = _sums(report.seconds[site] for site in sites)
    count = max(_sums(report.counts[site] for site in sites).values())
    return Calls(shape, (), count, sum(seconds.values()) / procs, _least(seconds, procs), None)


def _bound_s(report: _Report, shapes: Mapping[_Site, Shape], procs: int) -> float:
    """Return the seconds in calls of operations with tables: see `Profile`."""
    own = tabled(shapes.values())
    sites = [site for site, shape in shapes.items() if shape in own]
    if not report.seconds:
        return sum(report.all_seconds[site] for site in sites) / procs
    return _least(_sums(report.seconds[site] for site in sites), procs)


def _sums(of_ranks: Iterable[Mapping[int, T]]) -> dict[int, T]:
    sums: dict[int, T] = {}
    for rank, value in chain.from_iterable(each.items() for each in of_ranks):
        sums[rank] = sums[rank] + value if rank in sums else value
    return sums


def _least(seconds: Mapping[int, float], procs: int) -> float:
    """Return the seconds of the process that has the least: 0 where one is not in the report."""
    return min(seconds.values()) if len(seconds) >= procs else 0.0


def _notes(report: _Report, procs: int) -> Iterator[str]:
    """Yield what a report does not say, and what is taken for it."""
    yield (
        "mpiP's reports have no datatypes, and of communicators at most a range of sizes: "
        f"collectives are taken to be of all {procs} processes, each call site at its mean size"
    )
    if not report.seconds:
        yield (
            "the report has only the twenty call sites with the most time, and all processes "
            "together: mpiP's option -d?"
        )
        if not set(report.all_seconds) <= set(report.all_counts):
            yield "the report counts only calls with a size"
    if not report.ended:
        yield "the report is truncated: calls may be missing"
    for call, ranges in sorted(report.procs_of.items()):
        if call.lower() in DISPATCHED and not all(procs in each for each in ranges):
            yield f"some communicators of MPI_{call} have other numbers of processes"
