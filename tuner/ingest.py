"""Brings raw files into the store: what is new of them, each launch once.

A launch is known by its header line. The same file again changes nothing; the file of a launch that
has grown since takes the place of what was there.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from tuner import benchfile, cells
from tuner.benchfile import BenchFile
from tuner.cells import Piece
from tuner.records import Cell, CellKey, Header, Launch, Problem, System
from tuner.store import Store

BATCH_SAMPLES = 2_000_000
"""Samples to a transaction: bounds the memory."""

PARALLEL_BYTES = 16_000_000
"""From this much to read on, the files are parsed by all cores."""

Progress = Callable[[int, int], None]
"""Told of the files read and of all to be read."""


@dataclass(slots=True)
class Report:
    """What an ingest did."""

    files: int = 0
    unchanged: int = 0
    launches: int = 0
    cells: int = 0
    samples: int = 0
    problems: list[Problem] = field(default_factory=list)


class _Source(NamedTuple):
    path: Path
    content: str


def ingest(database: Path, sources: list[Path], progress: Progress | None = None) -> Report:
    """Ingests raw files, or all `*.jsonl` below directories, and tells what could not be used.

    Raises StoreError, and OSError for a source that cannot be read.
    """
    paths = list(benchfile.raw_files(sources))
    report = Report(files=len(paths))
    with Store.open(database) as store:
        known = store.launches()
        contents = {launch.content: launch for launch in known.values()}
        new: dict[str, _Source] = {}
        for source in _hashed(paths):
            if source.content in contents:
                report.unchanged += 1
                report.problems += _problems(str(source.path), contents[source.content])
            elif source.content in new:
                report.unchanged += 1
            else:
                new[source.content] = source
        done = 0
        for batch in _batches(new.values()):
            with store.transaction():
                _put(store, batch, known, report)
            done += len(batch)
            if progress:
                progress(done, len(new))
    return report


def _problems(path: str, launch: Launch) -> list[Problem]:
    return [Problem(path, line, message) for line, message in json.loads(launch.problems)]


def _hashed(paths: list[Path]) -> Iterator[_Source]:
    with ThreadPoolExecutor() as threads:
        yield from threads.map(_hash, paths)


def _hash(path: Path) -> _Source:
    with path.open("rb") as file:
        return _Source(path, hashlib.file_digest(file, "sha256").hexdigest())


def _read_all(sources: list[_Source]) -> Iterator[BenchFile]:
    paths = [source.path for source in sources]
    cores = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    if cores == 1 or len(paths) < 2 or sum(path.stat().st_size for path in paths) < PARALLEL_BYTES:
        yield from map(benchfile.read, paths)
        return
    with ProcessPoolExecutor(cores) as processes:
        yield from processes.map(benchfile.read, paths)


Batch = list[tuple[_Source, BenchFile]]


def _batches(sources: Iterable[_Source]) -> Iterator[Batch]:
    ordered = list(sources)
    batch: Batch = []
    samples = 0
    for source, file in zip(ordered, _read_all(ordered), strict=True):
        batch.append((source, file))
        samples += len(file.samples_s)
        if samples >= BATCH_SAMPLES:
            yield batch
            batch, samples = [], 0
    if batch:
        yield batch


def _put(store: Store, batch: Batch, known: dict[int, Launch], report: Report) -> None:
    """Stores the launches of a batch and all cells that they change."""
    taken: dict[int, BenchFile] = {}
    replaced: set[int] = set()
    for source, file in batch:
        report.problems += file.problems
        if file.header is None:
            continue
        launch = _launch(source, file, file.header)
        earlier = known.get(launch.id)
        if earlier is not None:
            if (earlier.complete, earlier.samples) > (launch.complete, launch.samples):
                message = f"holds less of its launch than {earlier.path}; not used"
                report.problems.append(Problem(file.path, 1, message))
                continue
            replaced.add(launch.id)
        known[launch.id] = launch
        taken[launch.id] = file
    changed = _changed_cells(store, taken, known, replaced)
    store.put_cells(zip(changed, cells.summaries(changed), strict=True))
    report.cells += len(changed)
    report.launches += len(taken)
    report.samples += sum(len(file.samples_s) for file in taken.values())


def _changed_cells(
    store: Store, taken: dict[int, BenchFile], known: dict[int, Launch], replaced: set[int]
) -> list[Cell]:
    """The cells to which launches add, in the order of their keys; the launches are stored here."""
    pieces: dict[CellKey, list[Piece]] = defaultdict(list)
    keys = set()
    for launch, file in taken.items():
        assert file.header is not None  # noqa: S101
        system = System.of(file.header)
        store.put_launch(system, known[launch])
        key = cells.launch_key(system.id, file.header)
        keys.add(key)
        for cell_key, piece in cells.pieces_of_file(key, file, known[launch]):
            pieces[cell_key].append(piece)
    for key in keys:
        for cell in store.contents(key):
            kept = [
                piece for piece in cells.pieces_of_cell(cell) if piece.part.launch not in replaced
            ]
            if cell.key in pieces or kept:
                pieces[cell.key] += kept
            else:
                store.delete_cell(cell.key)
    return [cells.join(key, pieces[key]) for key in sorted(pieces)]


def _launch(source: _Source, file: BenchFile, header: Header) -> Launch:
    digest = hashlib.sha256(file.header_text.encode()).digest()
    return Launch(
        id=int.from_bytes(digest[:8], "big", signed=True),
        system=System.of(header).id,
        campaign=header.campaign,
        number=header.launch,
        date=header.date,
        content=source.content,
        path=file.path,
        complete=file.complete,
        samples=len(file.samples_s),
        commit=header.commit,
        problems=json.dumps([(problem.line, problem.message) for problem in file.problems]),
        header=file.header_text,
    )
