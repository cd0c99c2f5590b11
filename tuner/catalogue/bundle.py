"""Bundles: what campaigns found on a system, as one file (docs/reference/table.md).

A bundle is two lines of JSON under gzip: a header with the digest of the second, which is a table
as `switchpoint export --format json` writes it, without the next step. Names of hosts are left out.
"""

from __future__ import annotations

import gzip
import hashlib
import math
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import datetime
from functools import cache, partial
from itertools import accumulate, chain
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from tuner import atomic
from tuner.domain.cases import MOST_NODES, MOST_PPN, NodeCores
from tuner.domain.flat import columns, take
from tuner.domain.operations import AUTO, COLLECTIVES, DEFAULT_METHODS, FOREIGN, RULED_OPERATIONS
from tuner.domain.records import NAME, PATTERN_SPEC, SPEC, SYNC
from tuner.domain.tables import STATUSES, WON, Point, Provenance, Ratio, Table
from tuner.errors import SwitchpointError
from tuner.export import document
from tuner.files import one_line, open_file, printable
from tuner.models.system import SystemModel
from tuner.selection.intervals import degree_class_of
from tuner.selection.trust import CAUSES
from tuner.selection.unmeasured import work
from tuner.store.store import Store

FORMAT, VERSION = "switchpoint-bundle", 1
SUFFIX = ".bundle"

_MOST_FILE_BYTES = 1 << 23
_MOST_BYTES = 1 << 25  # of what is packed
_MOST_VALUES = 1 << 21  # as decoded JSON takes tens of times its bytes
_MOST_LAYOUTS = 64
"""Measured layouts. What infers a size takes a time that grows with their square."""

_MOST_WORK = 1 << 27
"""Values from which the rules of other layouts follow. A million take up to five seconds."""

_MOST_DECISIONS = 1 << 11
"""Points of an operation on a layout. Each of their rules may be compared with each of them."""

_MOST_PROCS = 2**31 - 1
_MOST_CORES = 1 << 12
_MOST_RATIO = 1e9
_MOST_ERROR = math.log(_MOST_RATIO)
_MOST_LEVEL = 1 - 1e-9
_MOST_METHODS = 256  # at a size, beside the default
_MOST_NUMBER = 10**15 - 1  # in a method table, which has 15 digits


class BundleError(SwitchpointError):
    """Error raised when a file is no bundle that can be read; the message says which and why."""


class Bundle(NamedTuple):
    """What is read of a system's table, and its fitted parameters, if any.

    Its rules are not, as those for a borrower are made anew from the points.
    """

    provenance: Provenance
    points: list[Point]
    model: SystemModel | None


class _Header(msgspec.Struct, forbid_unknown_fields=True):
    format: str
    version: int
    sha256: str


class _Content(msgspec.Struct):
    provenance: Provenance
    points: list[dict[str, Any]]
    model: SystemModel | None = None


def without_hosts(
    store: Store, table: Table, model: SystemModel | None
) -> tuple[Table, SystemModel | None]:
    """Return a system's table and parameters without the names of the hosts of its launches."""
    its = table.provenance
    hosts = _hosts(store, its.system)
    called, without = _called(hosts), _without(hosts)

    def hidden(point: Point) -> Point:
        return point._replace(campaign=called(point.campaign))

    provenance = replace(
        its,
        system=called(its.system),
        name=called(its.name),
        environment=called(its.environment),
        campaigns=[called(name) for name in its.campaigns],
        mpi_library=without(its.mpi_library),
        compiler=without(its.compiler),
        soaks=[replace(soak, failure=without(soak.failure)) for soak in its.soaks],
    )
    rules = [rule._replace(evidence=hidden(rule.evidence)) for rule in table.rules]
    found = Table(provenance, rules, [hidden(point) for point in table.points])
    if model:
        model = replace(model, system=provenance.system, campaign=called(model.campaign))
    return found, model


def _hosts(store: Store, system: str) -> set[str]:
    """Return the names of the hosts on which a system was measured, also without their domains."""
    names = store.hosts(system)
    return {name for name in names | {name.partition(".")[0] for name in names} if name}


def _called(hosts: set[str]) -> Callable[[str], str]:
    """Return a function that writes `host` for each host that an id or a name is called after."""
    names = hosts | {re.sub(r"[^A-Za-z0-9.]+", "-", host) for host in hosts}
    return _replaced(rf"(?<![A-Za-z0-9])(?:{_any_of(names)})(?![A-Za-z0-9])", re.IGNORECASE)


def _without(hosts: set[str]) -> Callable[[str], str]:
    """Return a function that writes `host` for hosts in a text, and for who built a library."""
    return _replaced(rf"(?<![^\s,])[^\s,]+@[^\s,]+|(?<![\w.-])(?:{_any_of(hosts)})(?![\w-])", 0)


def _any_of(names: set[str]) -> str:
    """Return a pattern of names in an order in which none is found in a longer one."""
    return "|".join(map(re.escape, sorted(names, key=len, reverse=True))) or r"[^\s\S]"


def _replaced(pattern: str, flags: int) -> Callable[[str], str]:
    """Return a function that writes `host` for what a pattern matches; it keeps its results."""
    return cache(partial(re.compile(pattern, flags).sub, "host"))


def pack(table: Table, model: SystemModel | None) -> bytes:
    """Return the content of a bundle's file; the same table always gives the same."""
    content = document.portable(table, model).encode()
    header = _Header(FORMAT, VERSION, hashlib.sha256(content).hexdigest())
    return gzip.compress(msgspec.json.encode(header) + b"\n" + content, mtime=0)


def write(path: Path, table: Table, model: SystemModel | None) -> int:
    """Write a bundle's file, and return its bytes. Raise OSError, BundleError if `read` would."""
    packed = pack(table, model)
    try:
        unpack(packed)
    except BundleError as error:
        raise BundleError(f"{path} was not written, as nothing could read it: {error}") from error
    atomic.write(path, packed)
    return len(packed)


def read(path: Path) -> Bundle:
    """Return the bundle in a file. Raise BundleError, OSError when it cannot be read."""
    return read_packed(path)[1]


def read_packed(path: Path) -> tuple[bytes, Bundle]:
    """Return the content of a bundle's file as well; the rest as for `read`."""
    with open_file(path) as file:
        packed = file.read(_MOST_FILE_BYTES + 1)
    try:
        return packed, unpack(packed)
    except BundleError as error:
        raise BundleError(f"{path}: {error}") from error


def unpack(packed: bytes) -> Bundle:
    """Return the bundle that `pack` packed. Raise BundleError for anything else."""
    head, _, content = _unzipped(packed).partition(b"\n")
    try:
        header = msgspec.json.decode(head, type=_Header)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise BundleError("not a bundle: the first line is not a bundle header") from error
    if header.format != FORMAT:
        raise BundleError(f"not a bundle, but {one_line(header.format)!r}")
    if header.version != VERSION:
        raise BundleError(f"a bundle of version {header.version}; this reads version {VERSION}")
    if hashlib.sha256(content).hexdigest() != header.sha256:
        raise BundleError("was changed or damaged: its content does not have its digest")
    if sum(map(content.count, (b"{", b"[", b","))) > _MOST_VALUES:
        raise BundleError(f"has more than {_MOST_VALUES} values")
    try:
        found = msgspec.json.decode(content)
        if odd := next((text for text in _texts(found) if printable(text) != text), None):
            raise BundleError(f"a text has control characters: {one_line(odd)}")
        return _bundle(msgspec.convert(found, _Content))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise BundleError(f"not a table: {one_line(str(error))}") from error


def _unzipped(packed: bytes) -> bytes:
    """Return the content of gzip's form. Raise BundleError, also for too much of it."""
    if len(packed) > _MOST_FILE_BYTES:
        raise BundleError(f"larger than {_MOST_FILE_BYTES >> 20} MiB")
    unzip = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
    try:
        text = unzip.decompress(packed, _MOST_BYTES)
    except zlib.error as error:
        raise BundleError("not a bundle; `switchpoint bundle` writes them") from error
    if unzip.unconsumed_tail:
        raise BundleError(f"larger than {_MOST_BYTES >> 20} MiB once unpacked")
    if not unzip.eof:
        raise BundleError("truncated: copy it again")
    if unzip.unused_data:
        raise BundleError("was changed or damaged: something follows its end")
    return text


def _texts(value: Any) -> Iterator[str]:
    """Yield all texts of a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, its in value.items():
            yield name
            yield from _texts(its)
    elif isinstance(value, list):
        for its in value:
            yield from _texts(its)


def _bundle(content: _Content) -> Bundle:
    provenance = content.provenance
    if not re.fullmatch(NAME, provenance.system) or not 0 < provenance.cores <= _MOST_CORES:
        raise BundleError("not a table: the system has no name or no cores")
    counts = [provenance.launches, provenance.samples, provenance.required_executions]
    for soak in provenance.soaks:
        counts += [soak.executions, *chain.from_iterable(soak.places)]
    if not all(0 <= count < 2**63 for count in counts):
        raise BundleError("not a table: a number of launches or executions is out of its range")
    if not _is_dated(provenance.date):
        raise BundleError(f"not a table: not an ISO 8601 date: {one_line(provenance.date)}")
    shares = [provenance.disturbed, provenance.noisy, *provenance.refused.values()]
    if not provenance.refused.keys() <= CAUSES.keys() or not all(0 <= its <= 1 for its in shares):
        raise BundleError("not a table: the shares of disturbed parts are unknown or out of range")
    points = [_point(number, row) for number, row in enumerate(content.points, 1)]
    layouts = {(point.case.layout.nodes, point.case.layout.ppn) for point in points}
    if len(layouts) > _MOST_LAYOUTS:
        raise BundleError(f"has more than {_MOST_LAYOUTS} layouts")
    where = Counter(
        (degree_class_of(point.case, point.mmax, point.mavg), point.case.bytes) for point in points
    )
    if max(where.values(), default=0) > 1:
        raise BundleError("not a table: it decides twice on a size")
    if (
        max(Counter(point.case.of_any_degree for point in points).values(), default=0)
        > _MOST_DECISIONS
    ):
        raise BundleError(f"has more than {_MOST_DECISIONS} decisions of an operation on a layout")
    cores = NodeCores(provenance.known_cores)
    if any(done > _MOST_WORK for done in accumulate(work(points, cores))):
        raise BundleError(f"infers rules of other layouts from more than {_MOST_WORK} values")
    return Bundle(provenance, points, content.model)


def _is_dated(date: str) -> bool:
    """Return whether a text is a date, or a date and time, as ISO 8601 writes them with hyphens."""
    try:
        datetime.fromisoformat(date)
    except ValueError:
        return False
    return re.match(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", date) is not None  # dates are compared as texts


_POINT = columns(Point)


def _point(number: int, row: dict[str, Any]) -> Point:
    try:
        ratios = tuple(Ratio(**its) for its in row["ratios"])
        fields = Point._field_defaults | row | {"ratios": ratios}  # of any earlier version
        taken = take(Point, iter([fields[name] for name in _POINT]))
        point = msgspec.convert(msgspec.to_builtins(taken), Point)  # as `take` checks no types
    except (msgspec.MsgspecError, KeyError, TypeError) as error:
        raise BundleError(f"point {number}: {one_line(str(error))}") from error
    if not _is_sound(point):
        raise BundleError(f"point {number}: a value is out of its range")
    return point


def _is_sound(point: Point) -> bool:
    """Return whether a point has values that some campaign may give."""
    its = point.case
    layout = its.layout
    ratios = [point.ratio, point.ratio_low, point.ratio_high]
    ratios += [end for ratio in point.ratios for end in (ratio.ratio, ratio.low, ratio.high)]
    errors = [ratio.error for ratio in point.ratios if ratio.error is not None]
    methods = [point.method, point.challenger or point.method]
    methods += [ratio.method for ratio in point.ratios]
    counts = (its.size_bytes, point.launches, point.more_launches)
    losses = (point.mavg, point.more_s, point.may_lose or 0.0)
    is_default = point.method == DEFAULT_METHODS.get(its.operation)
    won = not is_default and (point.ratio or 0.0) < 1
    return (
        its.operation in RULED_OPERATIONS
        and re.fullmatch(PATTERN_SPEC, its.pattern) is not None
        and re.fullmatch(SYNC, its.sync) is not None
        and point.status in STATUSES
        and (won if point.status in WON else point.filled or is_default)
        and all(map(_is_nameable, methods))
        and len({ratio.method for ratio in point.ratios}) == len(point.ratios) <= _MOST_METHODS
        and (its.operation not in COLLECTIVES or point.mmax == point.mavg == 0)
        and all(0 <= number <= _MOST_NUMBER for number in (its.bytes, point.mmax))
        and 1 <= layout.nodes <= MOST_NODES
        and 1 <= layout.ppn <= min(layout.procs, MOST_PPN)
        and layout.nodes <= layout.procs <= min(layout.nodes * layout.ppn, _MOST_PROCS)
        and all(0 <= count < 2**63 for count in counts)
        and all(0 <= loss <= _MOST_PROCS for loss in losses)
        and all(1 / _MOST_RATIO <= ratio <= _MOST_RATIO for ratio in ratios if ratio is not None)
        and all(0 <= error <= _MOST_ERROR for error in errors)
        and (point.level is None or 0.5 <= point.level <= _MOST_LEVEL)
    )


def _is_nameable(method: str) -> bool:
    """Return whether a rule may name a method, if the library has it."""
    foreign = method == AUTO or method.startswith(FOREIGN)
    return not foreign and len(method) < 256 and re.fullmatch(SPEC, method) is not None
