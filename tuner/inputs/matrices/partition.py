"""Partitions of a matrix's rows: by rule, from a file, or kept in a file beside the matrix.

A partition file is text with one line per row: its part number, from 0. Partitions made here are
kept as STEM.PARTITIONER.PARTS.part with a record of the matrix, STEM.….part.json: when the matrix
or the file has changed since, a partition is made anew.
"""

import hashlib
import re
import time
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import msgspec
import numpy as np

from tuner import atomic
from tuner.files import open_file, read_json
from tuner.inputs.matrices.market import (
    Indices,
    MatrixError,
    Pattern,
    blocks,
    has_long_line,
    open_lines,
    stem,
)
from tuner.inputs.matrices.ownership import RULES, Ownership
from tuner.inputs.matrices.partitioners import PARTITIONERS, partitioned, version

SEED = 1

_NAMED = re.compile(r"\.([0-9]+)\.part\Z")
_LINES = re.compile(rb"(?:[ \t]*+-?+[0-9]{1,18}+[ \t]*+\r*+(?:\n|\Z))*+")
"""Lines of a partition file, as kernels/bench/products/partition.c reads it."""


class _Record(msgspec.Struct, frozen=True):
    """The record of the inputs of a kept partition, and of its file."""

    matrix_sha256: str
    parts_sha256: str
    partitioner: str
    seed: int
    partition_s: float


@dataclass(frozen=True)
class Kept:
    """A partition in a file, with the time that it took to make, and whether it was reused."""

    path: Path
    parts: Indices
    partition_s: float
    reused: bool


def ownership(matrix: Path, pattern: Pattern, by: str, procs: int) -> Ownership:
    """Partition the rows of the pattern in the file `matrix` among processes.

    Args:
        matrix: File of the pattern; partitions are kept beside it.
        pattern: The pattern whose rows are partitioned.
        by: One of PARTITIONERS, or the path of a partition file.
        procs: Number of processes.

    Raises:
        MatrixError: the matrix is not square, or the partition cannot be read or does not fit it.
        PartitionerError: the partitioner is not installed, or has too few rows.
    """
    _require_partitionable(matrix, pattern)
    rows = pattern.shape[0]
    if by in RULES:
        return RULES[by](rows, procs)
    if by in PARTITIONERS:
        return Ownership(procs, kept_partition(matrix, pattern, by, procs).parts)
    return Ownership(procs, read_parts(Path(by), rows, procs))


def kept_partition(matrix: Path, pattern: Pattern, by: str, procs: int, seed: int = SEED) -> Kept:
    """Return the partition beside the matrix, made when missing or when of another matrix.

    Raises:
        MatrixError: the matrix is not square, or the existing file was made by something else.
        PartitionerError: the partitioner is not installed, or has too few rows.
    """
    _require_partitionable(matrix, pattern)
    path = matrix.with_name(f"{stem(matrix)}.{by}.{procs}.part")
    beside = path.with_name(f"{path.name}.json")
    matrix_sha256 = _sha256(matrix)
    record = _read_record(beside)
    if path.exists():
        if record is None:
            raise MatrixError(
                f"{path} was not made by `switchpoint matrix partition`: give it as --by {path}, "
                "or move it away"
            )
        held = record.matrix_sha256, record.parts_sha256, record.seed
        if held == (matrix_sha256, _sha256(path), seed) and _is_of(record.partitioner, by):
            parts = read_parts(path, pattern.shape[0], procs)
            return Kept(path, parts, record.partition_s, reused=True)
    start = time.perf_counter()
    parts = partitioned(pattern, by, procs, seed)
    seconds = time.perf_counter() - start
    # The record is emptied first and written last, so that no file is taken for another.
    atomic.write(beside, b"{}")
    content = "".join(f"{part}\n" for part in parts.tolist()).encode("ascii")
    atomic.write(path, content)
    parts_sha256 = hashlib.sha256(content).hexdigest()  # the file may be another process's by now
    record = _Record(matrix_sha256, parts_sha256, version(by), seed, seconds)
    atomic.write(beside, msgspec.json.encode(record) + b"\n")
    return Kept(path, parts, seconds, reused=False)


def _is_of(partitioner: str, by: str) -> bool:
    """Return whether the partitioner that is installed, if one is, has the recorded version."""
    try:
        return partitioner == version(by)
    except PackageNotFoundError:
        return True


def read_parts(path: Path, rows: int, procs: int) -> Indices:
    """Return the part of each row.

    Raises:
        MatrixError: the file cannot be read, or lacks a part from 0 to procs - 1 for each row; or
            its name has another number of parts.
    """
    if (named := _NAMED.search(path.name)) and int(named[1]) != procs:
        raise MatrixError(f"{path} is for {named[1]} parts, but there are {procs} processes")
    found: list[Indices] = [np.empty(0, dtype=np.int64)]
    with open_lines(path) as file:
        for block in blocks(file):
            if has_long_line(block) or not _LINES.fullmatch(block):
                raise MatrixError(f"{path}: not a partition, which has one part number per line")
            found.append(np.array(block.split(), dtype=np.int64))
            if sum(map(len, found)) > rows:
                raise MatrixError(f"{path}: more parts than the {rows} rows of the matrix")
    parts = np.concatenate(found)
    if len(parts) < rows:
        raise MatrixError(f"{path}: {len(parts)} parts for the {rows} rows of the matrix")
    if rows and not 0 <= parts.min() <= parts.max() < procs:
        raise MatrixError(f"{path}: a part is not from 0 to {procs - 1}")
    return parts


def _require_partitionable(matrix: Path, pattern: Pattern) -> None:
    rows, columns = pattern.shape
    if rows != columns:
        raise MatrixError(f"{matrix}: {rows} x {columns}; only a square matrix can be partitioned")


def _read_record(path: Path) -> _Record | None:
    """Return the record, or None when there is none; a broken one matches nothing."""
    try:
        return read_json(path, _Record)
    except FileNotFoundError:
        return None
    except ValueError:
        return _Record("", "", "", 0, 0)


def _sha256(path: Path) -> str:
    with open_file(path) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
