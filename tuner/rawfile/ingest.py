"""Ingest of raw files into the store: only new content, each launch once.

A launch is identified by its header line. Ingesting the same file again changes nothing; the file
of a launch that has grown since replaces what was there.
"""

import hashlib
import json
import os
import threading
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, field
from io import BytesIO
from multiprocessing import parent_process
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec

from tuner.domain.cases import LaunchKey, ProbeLaunch
from tuner.domain.flat import flat
from tuner.domain.records import Cell, Header, Launch, Problem, Product, System
from tuner.errors import SwitchpointError
from tuner.files import open_file, shown
from tuner.machine.mpi import available_cores
from tuner.rawfile import cells, reading
from tuner.rawfile.kinds import KINDS
from tuner.rawfile.reading import BenchFile
from tuner.store.cells import CellRow, cell_of, cell_row
from tuner.store.store import Store

T = TypeVar("T")
U = TypeVar("U")

BATCH_SAMPLES = 2_000_000
"""Samples per transaction, which bounds the memory."""

PARALLEL_BYTES = 16_000_000
"""Least number of bytes to read for which all cores parse the files."""


class IngestError(SwitchpointError):
    """Error raised when an ingest cannot go on; what it has committed stays."""


@dataclass(slots=True)
class Report:
    """The result of an ingest."""

    files: int = 0
    unchanged: int = 0
    launches: int = 0
    cells: int = 0
    samples: int = 0
    problems: list[Problem] = field(default_factory=list)
    unused: list[str] = field(default_factory=list)  # sources without a launch, new or present


class _State(NamedTuple):
    """The properties of a file that change when it is written or replaced."""

    file: int
    size_bytes: int
    modified_ns: int


class _Source(NamedTuple):
    path: Path
    content: str  # sha256
    state: _State
    key: LaunchKey | None  # None when the header cannot be read


class _Fullness(NamedTuple):
    """A sort key of one launch's files, the best last; the content breaks ties."""

    complete: bool
    samples: int
    records: int  # soaks have no samples
    content: str

    def is_as_full_as(self, other: "_Fullness") -> bool:
        """Return whether only the content differs."""
        return self[:-1] == other[:-1]


class _Loaded(NamedTuple):
    """The contents of raw files of one launch key."""

    key: LaunchKey | None
    launches: list[tuple[System, Launch]]
    rows: list[CellRow]
    products: list[Product]
    records: list[tuple[str, ProbeLaunch, list[Any]]]  # by the name of their kind
    problems: list[Problem]


def ingest(database: Path, sources: list[Path]) -> Report:
    """Ingest raw files, or all `*.jsonl` below directories, and report what could not be used.

    Raise StoreError.
    """
    paths = list(reading.raw_files(sources))
    report = Report(files=len(paths))
    with Store.open(database) as store:
        new, useful = _new_sources(paths, store, report)
        report.unused = [
            shown(source) for source in sources if useful.isdisjoint(reading.raw_files([source]))
        ]
        groups: dict[LaunchKey | None, list[_Source]] = defaultdict(list)
        for source in new:
            groups[source.key].append(source)
        for batch in _batches(_load_all(list(groups.values()))):
            with store.transaction():
                known = store.launches()
                for loaded in batch:
                    _put(store, loaded, known, report)
    return report


def _new_sources(
    paths: list[Path], store: Store, report: Report
) -> tuple[list[_Source], set[Path]]:
    """Return the files whose content the store does not have, each content once.

    Return the paths of all launches too, new or present.
    """
    known = {launch.content: launch for launch in store.launches().values()}
    new: dict[str, _Source] = {}
    useful: set[Path] = set()
    for source in map(_source, paths):
        if isinstance(source, Problem):
            report.problems.append(source)
            continue
        if source.content in known or source.key:
            useful.add(source.path)
        if source.content in known:
            launch = known[source.content]
            with store.decoding():
                report.problems += [
                    Problem(shown(source.path), line, message)
                    for line, message in json.loads(launch.problems)
                ]
        elif source.content not in new:
            new[source.content] = source
            continue
        report.unchanged += 1
    return list(new.values()), useful


def _source(path: Path) -> _Source | Problem:
    try:
        with open_file(path) as file:
            state = _state(os.fstat(file.fileno()))
            header = reading.read_header(reading.read_line(file))
            file.seek(0)
            content = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        return _unreadable(path, error)
    return _Source(path, content, state, _key(header))


def _state(status: os.stat_result) -> _State:
    return _State(status.st_ino, status.st_size, status.st_mtime_ns)


def _key(header: Header | None) -> LaunchKey | None:
    return cells.launch_key(header) if header else None


def _unreadable(path: Path, error: OSError) -> Problem:
    return Problem(shown(path), 1, f"cannot be read: {error.strerror}")


def _load_all(groups: list[list[_Source]]) -> Iterator[_Loaded]:
    """Load each group, on all cores when that is worth their start-up."""
    size = sum(source.state.size_bytes for group in groups for source in group)
    cores = available_cores()
    if cores == 1 or size < PARALLEL_BYTES:
        yield from map(_load, groups)
        return
    # Few groups are split, so that each core has its share; the parts are merged when stored.
    parts = -(-2 * cores // len(groups))
    units = [group[i::parts] for group in groups for i in range(min(parts, len(group)))]
    try:
        with ProcessPoolExecutor(cores, initializer=_end_with_parent) as processes:
            yield from _in_order(processes, _load, units, ahead=2 * cores)
    except BrokenProcessPool as error:
        raise IngestError(
            "a process that reads raw files was killed, perhaps for want of memory; run "
            "`switchpoint ingest` again"
        ) from error


def _end_with_parent() -> None:
    """Make a worker end when its parent is killed; else it waits for ever to deliver its result."""
    parent = parent_process()

    def watch() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _in_order(
    executor: Executor, function: Callable[[T], U], values: Iterable[T], ahead: int
) -> Iterator[U]:
    """Yield results as `executor.map`, but let at most `ahead` wait, which bounds the memory."""
    waiting: deque[Future[U]] = deque()
    for value in values:
        if len(waiting) == ahead:
            yield waiting.popleft().result()
        waiting.append(executor.submit(function, value))
    while waiting:
        yield waiting.popleft().result()


def _load(group: list[_Source]) -> _Loaded:
    """Read files of one launch key; of several files of one launch the fullest counts."""
    problems: list[Problem] = []
    fullest: dict[int, tuple[Launch, BenchFile]] = {}
    for source in group:
        try:
            content, file = _read(source)
        except OSError as error:  # since it was first looked at
            problems.append(_unreadable(source.path, error))
            continue
        except MemoryError as error:
            raise MemoryError(f"to read {shown(source.path)}") from error
        problems += file.problems
        if _key(file.header) != source.key:
            problems.append(Problem(file.path, 1, "changed while it was read; ingest it again"))
            continue
        if file.header is None:
            continue
        entry = _launch(content, file, file.header), file
        rival = fullest.get(entry[0].id)
        if rival and rival[0].content != entry[0].content:
            (less, loser), (most, entry) = sorted(
                (_fullness(each[0], len(each[1].records)), each) for each in (rival, entry)
            )
            problems += _not_used(loser[0], entry[0], less.is_as_full_as(most))
        fullest[entry[0].id] = entry
    systems = [(System.of(file.header), launch) for launch, file in fullest.values() if file.header]
    key = group[0].key
    combined = cells.combine(key, fullest.values()) if key else []
    products = [each for entry in fullest.values() if key for each in _products(key, *entry)]
    records = [
        (file.kind.name, ProbeLaunch(key.system, key.campaign, key.layout, launch.id), file.records)
        for launch, file in fullest.values()
        if key and file.kind
    ]
    return _Loaded(key, systems, _rows(combined), products, records, problems)


def _read(source: _Source) -> tuple[str, BenchFile]:
    """Return the hash and the content of a file, which may have grown since `source` was made."""
    file = reading.read(source.path)
    if _state(source.path.stat()) == source.state:
        return source.content, file
    with open_file(source.path) as lines:
        content = lines.read()
    file = reading.read_lines(source.path, BytesIO(content))
    return hashlib.sha256(content).hexdigest(), file


def _products(key: LaunchKey, launch: Launch, file: BenchFile) -> Iterator[Product]:
    for case, phases in zip(file.cases, file.products, strict=False):  # other operations have none
        cell = key.cell(case.size_bytes, case.bytes, case.method)
        yield Product(cell, launch.id, *phases)


def _rows(of_cells: list[Cell]) -> list[CellRow]:
    return list(map(cell_row, of_cells, cells.summaries(of_cells)))


def _launch(content: str, file: BenchFile, header: Header) -> Launch:
    digest = hashlib.sha256(file.header_text.encode()).digest()
    return Launch(
        id=int.from_bytes(digest[:8], "big", signed=True),
        system=System.of(header).id,
        campaign=header.campaign,
        number=header.launch,
        date=header.date,
        content=content,
        path=file.path,
        complete=file.complete,
        samples=file.samples,
        commit=header.commit,
        problems=json.dumps([(problem.line, problem.message) for problem in file.problems]),
        header=_stored(file.header_text, header),
    )


def _stored(text: str, header: Header) -> str:
    """Return the header with what only the end record says, each key once, as it was checked."""
    its = msgspec.json.decode(text)
    if header.others is not None:
        its["others"] = header.others
    return msgspec.json.encode(its).decode()


def _fullness(launch: Launch, records: int) -> _Fullness:
    return _Fullness(launch.complete, launch.samples, records, launch.content)


def _fullness_there(store: Store, launch: Launch) -> _Fullness:
    counts = (store.count_of_launch(kind.name, launch.id) for kind in KINDS.values())
    return _fullness(launch, sum(counts))


def _not_used(loser: Launch, winner: Launch, equal: bool) -> list[Problem]:
    """Return the problem of a file that is not used, none when the file has changed since."""
    try:
        with open_file(Path(loser.path)) as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != loser.content:
                return []
    except OSError:
        pass
    reason = "is another file of the same launch as" if equal else "holds less of the launch than"
    return [Problem(loser.path, 1, f"{reason} {winner.path}; not used")]


def _batches(loaded: Iterable[_Loaded]) -> Iterator[list[_Loaded]]:
    batch: list[_Loaded] = []
    samples = 0
    for each in loaded:
        batch.append(each)
        samples += sum(launch.samples for _, launch in each.launches)
        if samples >= BATCH_SAMPLES:
            yield batch
            batch, samples = [], 0
    if batch:
        yield batch


def _put(store: Store, loaded: _Loaded, known: dict[int, Launch], report: Report) -> None:
    """Store what is new, within a transaction; a fuller launch replaces the stored one."""
    report.problems += loaded.problems
    refused, replaced = set(), set()
    counts = {where.launch: len(records) for _, where, records in loaded.records}
    for system, launch in loaded.launches:
        earlier = known.get(launch.id)
        if earlier and earlier.content == launch.content:  # another ingest was faster
            report.unchanged += 1
            refused.add(launch.id)
            continue
        if earlier:
            before = _fullness_there(store, earlier)
            its = _fullness(launch, counts.get(launch.id, 0))
            if before > its:
                report.problems += _not_used(launch, earlier, before.is_as_full_as(its))
                refused.add(launch.id)
                continue
            if before.is_as_full_as(its):
                report.problems += _not_used(earlier, launch, equal=True)
            replaced.add(launch.id)
            store.delete_of_launch(launch.id)
        known[launch.id] = launch
        store.put_launch(system, launch)
        report.launches += 1
        report.samples += launch.samples
    if loaded.key is None or len(refused) == len(loaded.launches):
        return
    rows = loaded.rows
    there = store.contents(**flat(loaded.key))
    if refused or there:
        new = cells.without(map(cell_of, rows), refused)
        for cell in there if replaced else []:
            store.delete_cell(cell.key)
        rows = _rows(cells.merge([*cells.without(there, replaced), *new]))
    store.put_cells(rows)
    store.put_products(each for each in loaded.products if each.launch not in refused)
    for kind, where, records in loaded.records:
        if where.launch not in refused:
            store.put_records(kind, where, records)
    report.cells += len(rows)
