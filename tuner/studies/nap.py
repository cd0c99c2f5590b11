"""Node-aware exchanges of multigrid levels and random matrices: Bienz, Gropp, Olson, JPDC 2019.

The paper ran 32768 processes on Blue Waters; this study runs fewer, on smaller matrices of the same
kinds.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tuner.inputs.matrices import amg, random_rows
from tuner.inputs.matrices.market import read_pattern
from tuner.inputs.matrices.ownership import contiguous
from tuner.inputs.structure.halo import Halo, halo
from tuner.inputs.structure.methods import method
from tuner.models import predict
from tuner.models.networks import as_model
from tuner.studies.findings import Finding
from tuner.studies.matrices import matrices_directory
from tuner.studies.simulator import Simulator, StudyError
from tuner.units import share_text

RANDOM = "random"
_METHODS = ("direct", "nap")
_AS_THEY_ARE = "direct;nap:"  # without the other parameters of nap
_ITEM_BYTES = 8
_SEED = 1


@dataclass(frozen=True)
class NapRequest:
    """The rows of the finest level of each problem, and those of random matrices for each rank.

    Times are simulated up to `simulated` ranks, and predicted beyond.
    """

    procs: Sequence[int]
    rows: int
    random_rows: int
    entries: Sequence[int]  # entries of a row of the random matrices, one matrix for each
    simulated: int


@dataclass(frozen=True)
class NodeExchange:
    """The most messages and bytes of one rank that leave its node, and the times of an exchange."""

    most_messages: int
    most_bytes: int
    off_node_bytes: int
    on_node_bytes: int
    predicted_s: float
    simulated_s: float | None

    @property
    def time_s(self) -> float:
        """Return the simulated time, otherwise the predicted one."""
        return self.predicted_s if self.simulated_s is None else self.simulated_s


@dataclass(frozen=True)
class NapRow:
    """The standard and the node-aware exchange of a matrix."""

    matrix: str
    rows: int
    procs: int
    standard: NodeExchange
    aware: NodeExchange

    @property
    def speedup(self) -> float:
        """Return the speedup of the node-aware exchange."""
        return self.standard.time_s / self.aware.time_s


def study(simulator: Simulator, request: NapRequest) -> Iterator[NapRow]:
    """Yield levels with at least a row for each rank, by problem, then random matrices.

    Raise StudyError, NetworkError, MatrixError, ModelError, LaunchError, RawFileError.
    """
    simulator.require_room(max(request.procs))
    columns, most = min(request.procs) * request.random_rows, max(request.entries, default=0)
    if most > columns:
        raise StudyError(
            f"a random matrix of {columns} rows has no room for {most} entries in each: raise "
            "--random-rows"
        )
    directory = matrices_directory()
    for problem in amg.PROBLEMS:
        simulator.log(f"making the levels of {problem} with {request.rows} rows")
        for level in list(amg.make(problem, request.rows, directory, ".mtx")):
            for procs in request.procs:
                if level.degrees.rows >= procs:
                    label = f"{problem} level {level.level}"
                    yield _row(simulator, label, level.path, procs, request.simulated)
    for procs in request.procs:
        rows = procs * request.random_rows
        for entries in request.entries:
            path = directory / f"{RANDOM}-{rows}-{entries}-{_SEED}.mtx"
            if not path.is_file():
                random_rows.make(path, rows, entries, _SEED)
            yield _row(simulator, f"{RANDOM} {entries}", path, procs, request.simulated)


def _row(simulator: Simulator, matrix: str, path: Path, procs: int, simulated: int) -> NapRow:
    pattern = read_pattern(path)
    rows = pattern.shape[0]
    messages = halo(pattern, contiguous(rows, procs))
    times: dict[str, float] = {}
    if procs <= simulated:
        spec = f"matrix:{path}"
        found = simulator.run("exchange", spec, procs, _AS_THEY_ARE, str(_ITEM_BYTES))
        times = {each.method: each.time_s for each in found}
    standard, aware = (_exchange(simulator, messages, spec, times) for spec in _METHODS)
    return NapRow(matrix, rows, procs, standard, aware)


def _exchange(
    simulator: Simulator, messages: Halo, spec: str, times: dict[str, float]
) -> NodeExchange:
    ppn, model = simulator.ppn, as_model(simulator.machine)
    counts = method(spec, messages.procs).count(messages, ppn).statistics(_ITEM_BYTES)
    predicted_s = predict.of_exchange(model, messages, ppn, [spec]).known_s(_ITEM_BYTES)[spec]
    return NodeExchange(
        counts.off_node_mmax,
        counts.off_node_vmax_bytes,
        counts.off_node_bytes,
        counts.on_node_bytes,
        predicted_s,
        times.get(spec),
    )


def findings(rows: Sequence[NapRow]) -> Iterator[Finding]:
    """Yield the findings on the paper's figures 8 to 14."""
    fewer = [row for row in rows if row.aware.most_messages < row.standard.most_messages]
    ratios = [row.standard.most_messages / max(row.aware.most_messages, 1) for row in rows]
    yield Finding(
        "a rank sends fewer messages off its node on every level",
        len(fewer) == len(rows),
        f"{len(fewer)} of {len(rows)}, up to {max(ratios):.1f} times fewer",
    )
    smaller = [row for row in rows if row.aware.off_node_bytes < row.standard.off_node_bytes]
    shares = [row.aware.off_node_bytes / max(row.standard.off_node_bytes, 1) for row in rows]
    yield Finding(
        "less data leaves the nodes on every level",
        len(smaller) == len(rows),
        f"{len(smaller)} of {len(rows)}, down to {share_text(min(shares), 0)}",
    )
    more = [row for row in rows if row.aware.on_node_bytes > row.standard.on_node_bytes]
    yield Finding(
        "more data moves within nodes", len(more) == len(rows), f"{len(more)} of {len(rows)}"
    )
    levels = [row for row in rows if not row.matrix.startswith(RANDOM)]
    best = max(levels, key=lambda row: row.speedup, default=None)
    if best is not None:
        finest = [row.speedup for row in levels if row.matrix.endswith(" 0")]
        yield Finding(
            "it is faster on coarse levels, by more than on the finest",
            best.speedup > 1 and best.speedup > max(finest),
            f"{best.speedup:.2f} on {best.matrix}, at most {max(finest):.2f} on the finest",
        )
    scattered = [row for row in rows if row.matrix.startswith(RANDOM)]
    if scattered:
        gain = max(row.speedup for row in scattered)
        yield Finding(
            "random matrices gain up to two orders of magnitude", gain > 30, f"up to {gain:.2f}"
        )
