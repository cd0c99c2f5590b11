"""Partitioners of a matrix's rows: METIS on its graph, Mt-KaHyPar on its hypergraph.

Both weigh a row by its entries, which is the work of its part of the product, and allow an
imbalance of 3 %. They are optional, and installed by the extra `partition`.
"""

from __future__ import annotations

import ctypes
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from importlib import import_module, metadata
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tuner.errors import SwitchpointError
from tuner.inputs.matrices.market import Indices, Pattern
from tuner.inputs.matrices.ownership import contiguous, strided

if TYPE_CHECKING:
    from scipy.sparse import csr_array

IMBALANCE = 0.03
_LARGE = 64  # parts from which on Mt-KaHyPar has its preset for many, which is much faster


class PartitionerError(SwitchpointError):
    """Error raised when a partitioner is not installed, or cannot do what was asked."""


def graph(pattern: Pattern, parts: int, seed: int) -> Indices:
    """Return the parts of least cut of the graph of A + Aᵀ, by METIS: near to the least volume."""
    pymetis = _import("pymetis")
    off = pattern.rows != pattern.columns
    matrix = _matrix(Pattern(pattern.shape, pattern.rows[off], pattern.columns[off]))
    adjacency = matrix + matrix.T
    options = pymetis.Options(seed=seed, ufactor=round(1000 * IMBALANCE))
    with _printing_to_stderr():
        _, found = pymetis.part_graph(
            parts,
            pymetis.CSRAdjacency(adjacency.indptr, adjacency.indices),
            vweights=_weights(pattern),
            options=options,
        )
    return np.array(found, dtype=np.int64)


@contextmanager
def _printing_to_stderr() -> Iterator[None]:
    """Let what a C library prints go to stderr: stdout may be a document."""
    flush = ctypes.CDLL(None).fflush
    sys.stdout.flush()
    flush(None)
    stdout = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        flush(None)
        os.dup2(stdout, 1)
        os.close(stdout)


def hypergraph(pattern: Pattern, parts: int, seed: int) -> Indices:
    """Return the parts of least volume: connectivity - 1 of the column nets, by Mt-KaHyPar.

    The net of a column has its own row too, whose part owns the element of the vector.
    """
    _import("mtkahypar")
    with tempfile.NamedTemporaryFile("w", suffix=".hgr") as file:
        if not _write_hypergraph(pattern, Path(file.name)):
            return contiguous(pattern.shape[0], parts).owner
        # In a process of its own, as its random numbers go on from one partition to the next.
        with ProcessPoolExecutor(1, get_context("spawn")) as process:
            try:
                found = process.submit(_cut_nets, file.name, parts, seed).result()
            except BrokenProcessPool as error:
                raise PartitionerError("Mt-KaHyPar was killed: is there enough memory?") from error
    return np.array(found, dtype=np.int64)


def _cut_nets(file: str, parts: int, seed: int) -> list[int]:
    """Return the part of each vertex; one thread, as several do not repeat what they find."""
    mtkahypar = _import("mtkahypar")
    mtkahypar.set_seed(seed)
    machine = mtkahypar.initialize(1, False)
    presets = mtkahypar.PresetType
    context = machine.context_from_preset(presets.LARGE_K if parts >= _LARGE else presets.DEFAULT)
    context.set_partitioning_parameters(parts, IMBALANCE, mtkahypar.Objective.KM1)
    context.logging = False
    nets = machine.hypergraph_from_file(file, context, mtkahypar.FileFormat.HMETIS)
    return list(nets.partition(context).get_partition())


PARTITIONERS: dict[str, Callable[[Pattern, int, int], Indices]] = {
    "contiguous": lambda pattern, parts, seed: contiguous(pattern.shape[0], parts).owner,
    "strided": lambda pattern, parts, seed: strided(pattern.shape[0], parts).owner,
    "graph": graph,
    "hypergraph": hypergraph,
}


def partitioned(pattern: Pattern, by: str, parts: int, seed: int) -> Indices:
    """Return the part of each row of a square matrix, by one of PARTITIONERS.

    Raises:
        PartitionerError: the partitioner is not installed, or has too few rows.
    """
    rows = pattern.shape[0]
    if by in ("graph", "hypergraph"):
        if parts > rows:
            raise PartitionerError(f"{rows} rows cannot be balanced over {parts} parts")
        if parts == 1:
            return np.zeros(rows, dtype=np.int64)
    return PARTITIONERS[by](pattern, parts, seed)


def version(by: str) -> str:
    """Return the name and version of the partitioner."""
    package = {"graph": "pymetis", "hypergraph": "mtkahypar"}.get(by)
    return f"{package} {metadata.version(package)}" if package else by


def _import(package: str) -> Any:
    try:
        return import_module(package)
    except ImportError as error:
        raise PartitionerError(
            f"{package} is not installed; get it with: pip install {package}"
        ) from error


def _matrix(pattern: Pattern) -> csr_array:
    from scipy.sparse import csr_array

    ones = np.ones(len(pattern.rows), dtype=np.int8)
    matrix = csr_array((ones, (pattern.rows, pattern.columns)), shape=pattern.shape)
    matrix.data[:] = 1
    return matrix


def _weights(pattern: Pattern) -> Indices:
    """Return the entries of each row; empty rows count as well, as METIS wants positive weights."""
    return np.maximum(np.bincount(pattern.rows, minlength=pattern.shape[0]), 1)


def _write_hypergraph(pattern: Pattern, path: Path) -> int:
    """Write an hMETIS file of the nets of at least two rows, and return their number."""
    from scipy.sparse import eye_array

    nets = (_matrix(pattern) + eye_array(pattern.shape[0], dtype=np.int8)).tocsc()
    sizes = np.diff(nets.indptr)
    cuttable = np.flatnonzero(sizes > 1)
    with path.open("w", encoding="ascii") as file:
        file.write(f"{len(cuttable)} {pattern.shape[0]} 10\n")
        for net in cuttable.tolist():
            pins = nets.indices[nets.indptr[net] : nets.indptr[net + 1]] + 1
            file.write(" ".join(map(str, pins.tolist())) + "\n")
        file.writelines(f"{weight}\n" for weight in _weights(pattern).tolist())
    return len(cuttable)
