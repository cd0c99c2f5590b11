"""Puts the samples of launches together into cells, and summarises them. No input or output."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tuner import stats
from tuner.benchfile import BenchFile
from tuner.records import PART, Cell, CellKey, CellSummary, Features, Header, Launch, Part


class Piece(NamedTuple):
    """A launch's samples of a cell."""

    part: Part
    features: Features
    rounds: NDArray[np.uint16]
    samples_s: NDArray[np.float32]


LaunchKey = tuple[str, str, str, str, int, int, int, bool, str]


def launch_key(system: str, header: Header) -> LaunchKey:
    """The fields that lead a cell's key, which a launch gives to all of its cells."""
    return (
        system,
        header.campaign,
        header.operation,
        header.pattern,
        header.procs,
        header.nodes,
        header.ppn,
        header.oversubscribed,
        header.sync,
    )


def pieces_of_file(
    key: LaunchKey, file: BenchFile, launch: Launch
) -> Iterator[tuple[CellKey, Piece]]:
    """What one launch adds to which cells."""
    if not file.cases:
        return
    lengths = np.array([case.samples for case in file.cases])
    ordered = stats.sort_segments(file.samples_s, lengths)
    medians = stats.segment_quantiles(ordered, lengths, 0.5).tolist()
    end = 0
    for case, median_s in zip(file.cases, medians, strict=True):
        here = slice(end, end + case.samples)
        end += case.samples
        part = Part(
            launch.number,
            launch.id,
            case.samples,
            case.late,
            median_s,
            case.plan_s,
            case.canary_s,
        )
        cell = CellKey(*key, case.size_bytes, case.bytes, case.method)
        yield cell, Piece(part, case.features, file.rounds[here], file.samples_s[here])


def pieces_of_cell(cell: Cell) -> Iterator[Piece]:
    """Takes a cell apart, launch by launch."""
    end = 0
    for row in cell.parts.tolist():
        part = Part(*row)
        here = slice(end, end + part.samples)
        end += part.samples
        yield Piece(part, cell.features, cell.rounds[here], cell.samples_s[here])


def join(key: CellKey, pieces: list[Piece]) -> Cell:
    """A cell of its pieces by launch number, whatever the order in which they came."""
    pieces.sort(key=lambda piece: piece.part[:2])
    return Cell(
        key,
        pieces[-1].features,
        np.array([piece.part for piece in pieces], dtype=PART),
        np.concatenate([piece.rounds for piece in pieces]),
        np.concatenate([piece.samples_s for piece in pieces]),
    )


def summaries(cells: list[Cell]) -> Iterator[CellSummary]:
    """The summary of each cell."""
    if not cells:
        return
    lengths = np.array([len(cell.samples_s) for cell in cells])
    summary = stats.summarise(np.concatenate([cell.samples_s for cell in cells]), lengths)
    low, high = _intervals(cells, summary)
    columns = (summary.median, low, high, summary.p10, summary.p90, summary.above_2_medians)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    for cell, n, row in zip(cells, lengths.tolist(), rows, strict=True):
        median, low_s, high_s, p10, p90, above = row
        parts = [Part(*part) for part in cell.parts.tolist()]
        yield CellSummary(
            launches=len(parts),
            n=n,
            median_s=median,
            low_s=low_s,
            high_s=high_s,
            p10_s=p10,
            p90_s=p90,
            above_2_medians=above,
            late=sum(part.late for part in parts) / n,
            plan_median_s=statistics.median(part.plan_s for part in parts),
            canary_median_s=statistics.median(part.canary_s for part in parts),
        )


def _intervals(cells: list[Cell], summary: stats.Summary) -> tuple[stats.Floats, stats.Floats]:
    """Intervals of the cells' medians: from launch to launch where there are several.

    Widened where needed so that the median of all samples lies inside.
    """
    low, high = summary.low.copy(), summary.high.copy()
    launches = np.array([len(cell.parts) for cell in cells])
    for count in np.unique(launches[launches > 1]).tolist():
        here = np.flatnonzero(launches == count)
        medians = np.array([cells[i].parts["median_s"] for i in here])
        bounds = np.exp(stats.mean_interval(np.log(medians)))
        low[here] = np.minimum(bounds[0], summary.median[here])
        high[here] = np.maximum(bounds[1], summary.median[here])
    return low, high
