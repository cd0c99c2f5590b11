"""Cells, which join the samples of launches, and their summaries. No input or output."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from tuner import stats
from tuner.domain.cases import CellKey, LaunchKey, Layout
from tuner.domain.records import PART, Cell, CellSummary, Features, Header, Launch, Part, System
from tuner.rawfile.reading import BenchFile

_Part = tuple[int, int, int, int, float, float, float]
"""The fields of a Part, as a plain tuple for speed: there are many."""

_Piece = tuple[_Part, Features, NDArray[np.uint16], NDArray[np.float32]]
"""A launch's samples of a cell: part, features, rounds, seconds."""


def launch_key(header: Header) -> LaunchKey:
    """Return the part of the key that a launch's cells share."""
    return LaunchKey(
        System.of(header).id,
        header.campaign,
        header.operation,
        header.pattern,
        Layout(header.procs, header.nodes, header.ppn, header.oversubscribed),
        header.sync,
    )


def combine(key: LaunchKey, launches: Iterable[tuple[Launch, BenchFile]]) -> list[Cell]:
    """Return the cells that launches of one key fill, in the order of their keys."""
    pieces: dict[tuple[int, int, str], list[_Piece]] = defaultdict(list)
    for launch, file in launches:
        lengths = np.array([case.samples for case in file.cases], dtype=np.int64)
        ordered = stats.sort_segments(file.samples_s, lengths)
        medians = stats.segment_quantiles(ordered, lengths, 0.5).tolist()
        number, identity = launch.number, launch.id
        end = 0
        for case, median_s in zip(file.cases, medians, strict=True):
            method, size_bytes, message_bytes, features, samples, late, plan_s, canary_s = case
            here = slice(end, end + samples)
            end += samples
            part = (number, identity, samples, late, median_s, plan_s, canary_s)
            pieces[size_bytes, message_bytes, method].append(
                (part, features, file.rounds[here], file.samples_s[here])
            )
    return [_join(key.cell(*rest), pieces[rest]) for rest in sorted(pieces)]


def merge(cells: Iterable[Cell]) -> list[Cell]:
    """Unite the cells of equal keys."""
    pieces: dict[CellKey, list[_Piece]] = defaultdict(list)
    for cell in cells:
        pieces[cell.key] += _pieces(cell)
    return [_join(key, pieces[key]) for key in sorted(pieces)]


def without(cells: Iterable[Cell], launches: Collection[int]) -> list[Cell]:
    """Return the cells without some launches; cells that become empty are left out."""
    kept = []
    for cell in cells:
        pieces = [piece for piece in _pieces(cell) if Part(*piece[0]).launch not in launches]
        if pieces:
            kept.append(_join(cell.key, pieces))
    return kept


def _pieces(cell: Cell) -> Iterator[_Piece]:
    end = 0
    for part in cell.parts.tolist():
        here = slice(end, end + Part(*part).samples)
        end = here.stop
        yield part, cell.features, cell.rounds[here], cell.samples_s[here]


def _join(key: CellKey, pieces: list[_Piece]) -> Cell:
    """Return a cell made of its pieces, by launch number whatever their order."""
    pieces.sort(key=itemgetter(0))
    parts, features, rounds, samples = zip(*pieces, strict=True)
    joined = np.concatenate(rounds), np.concatenate(samples)
    return Cell(key, features[-1], np.array(list(parts), PART), *joined)


def summaries(cells: list[Cell]) -> list[CellSummary]:
    """Return the summary of each cell."""
    if not cells:
        return []
    lengths = np.array([len(cell.samples_s) for cell in cells])
    summary = stats.summarise(np.concatenate([cell.samples_s for cell in cells]), lengths)
    launches = np.array([len(cell.parts) for cell in cells])
    low, high = summary.low.copy(), summary.high.copy()
    late, plan_s, canary_s = (np.zeros(len(cells)) for _ in range(3))
    for count in np.unique(launches).tolist():
        here = np.flatnonzero(launches == count)
        packed = b"".join([cells[i].parts.tobytes() for i in here])
        parts = np.frombuffer(packed, PART).reshape(len(here), count)
        late[here] = parts["late"].sum(axis=1) / lengths[here]
        plan_s[here] = np.median(parts["plan_s"], axis=1)
        canary_s[here] = np.median(parts["canary_s"], axis=1)
        if count > 1:
            bounds = np.exp(stats.mean_interval(np.log(parts["median_s"])))
            # The median of all samples lies inside, even where it is not that of the launches.
            low[here] = np.minimum(bounds[0], summary.median[here])
            high[here] = np.maximum(bounds[1], summary.median[here])
    columns = (
        launches,
        lengths,
        summary.median,
        low,
        high,
        summary.p10,
        summary.p90,
        summary.above_2_medians,
        late,
        plan_s,
        canary_s,
    )
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return [CellSummary._make(row) for row in rows]
