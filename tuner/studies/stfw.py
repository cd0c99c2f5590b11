"""Store-and-forward on look-alikes of the paper's matrices: Selvitopi & Aykanat, SC'19.

Statistics are exact for any number of ranks. Times are simulated as far as requested, both as
planned and by the paper's algorithm, which carries headers and has no plan; they are also predicted
by the model that has the parameters of the simulated network.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tuner.inputs.matrices import lookalike
from tuner.inputs.matrices.market import Pattern, read_pattern
from tuner.inputs.matrices.ownership import RULES, Ownership
from tuner.inputs.matrices.partition import kept_partition
from tuner.inputs.structure.halo import Halo, halo
from tuner.inputs.structure.methods import method
from tuner.models import predict
from tuner.models.networks import as_model
from tuner.studies.matrices import lookalike_file, original_of
from tuner.studies.simulator import Simulator, StudyError

_WORD_BYTES = 8


@dataclass(frozen=True)
class StfwRequest:
    """Matrices by name, the most entries of each, the partition of its rows, and numbers of ranks.

    Times are simulated up to `simulated` ranks, with `headers` also those of the paper's form.
    """

    matrices: Sequence[str]
    entries: int
    by: str
    procs: Sequence[int]
    simulated: int
    headers: bool


@dataclass(frozen=True)
class StfwRow:
    """A scheme (1: direct, else dimensions) on a matrix; times are None where not simulated."""

    matrix: str
    procs: int
    dims: int
    mmax: int
    mavg: float
    vavg_words: float
    buffer_kib: float
    most_entries: int  # entries of the original on one rank
    predicted_s: float
    simulated_s: float | None
    headered_s: float | None

    @property
    def time_s(self) -> float:
        """Return the simulated time, otherwise the predicted one."""
        return self.predicted_s if self.simulated_s is None else self.simulated_s


def names(group: str) -> list[str]:
    """Return the matrices of the paper's set small15 or large10, by name."""
    return [name for name, each in lookalike.originals().items() if group in each.groups]


def study(simulator: Simulator, request: StfwRequest) -> Iterator[StfwRow]:
    """Yield rows of all matrices, one after the other.

    Raise StudyError, NetworkError, MatrixError, PartitionerError, LaunchError, RawFileError.
    """
    most_procs = max(request.procs)
    simulator.require_room(most_procs)
    originals = [original_of(name) for name in request.matrices]
    targets = [lookalike.coarsened(each.target, request.entries) for each in originals]
    for original, target in zip(originals, targets, strict=True):
        if request.by not in RULES and target.rows < most_procs:
            raise StudyError(
                f"{original.name} of {request.entries} entries has {target.rows} rows, too few for "
                f"{most_procs} parts: raise --entries"
            )
    for original, target in zip(originals, targets, strict=True):
        path = lookalike_file(original, target, simulator.log)
        pattern = read_pattern(path)
        words = original.target.rows / target.rows  # of a row, which stands for so many
        for procs in request.procs:
            part, owned = _deal(path, pattern, request.by, procs)
            messages = halo(pattern, owned)
            most = np.bincount(owned.owner[pattern.rows], minlength=procs).max()
            entries = round(most / len(pattern.rows) * original.target.nnz)
            spec = f"matrix:{path},part={part}"
            times = _times(simulator, request, spec, procs, _item_bytes(words))
            yield from _rows(simulator, original.name, messages, words, entries, times)


def schemes(procs: int) -> dict[str, int]:
    """Return method specs for `procs` ranks, with their dimensions."""
    many = {f"stfw:dims={dims}": dims for dims in range(2, procs.bit_length())}
    return {"direct": 1} | many


def _item_bytes(words: float) -> int:
    """Return the bytes of an item whose messages are timed: a whole number."""
    return round(words * _WORD_BYTES)


def _times(
    simulator: Simulator, request: StfwRequest, spec: str, procs: int, item_bytes: int
) -> tuple[dict[int, float], dict[int, float]]:
    """Return simulated times by dimensions, as planned and with headers."""
    if procs > request.simulated:
        return {}, {}
    specs, size = schemes(procs), str(item_bytes)
    found = simulator.run("exchange", spec, procs, ";".join(specs), size)
    planned = {specs[each.method]: each.time_s for each in found}
    if not request.headers:
        return planned, {}
    carried = [each for each, dims in specs.items() if dims > 1]
    found = simulator.run("discovery", spec, procs, ";".join(carried), size)
    return planned, {specs[each.method]: each.time_s for each in found}


def _rows(
    simulator: Simulator,
    name: str,
    messages: Halo,
    words: float,
    entries: int,
    times: tuple[dict[int, float], dict[int, float]],
) -> Iterator[StfwRow]:
    machine, procs = simulator.machine, messages.procs
    specs = schemes(procs)
    predictor = predict.of_exchange(as_model(machine), messages, simulator.ppn, list(specs))
    predicted = predictor.known_s(_item_bytes(words))
    for spec, dims in specs.items():
        counts = method(spec, procs).count(messages, simulator.ppn).statistics(_WORD_BYTES)
        yield StfwRow(
            *(name, procs, dims, counts.mmax, counts.mavg),
            counts.vavg_bytes / _WORD_BYTES * words,
            counts.buffer_bytes / 1024 * words,
            entries,
            predicted[spec],
            times[0].get(dims),
            times[1].get(dims),
        )


def _deal(path: Path, pattern: Pattern, by: str, procs: int) -> tuple[str, Ownership]:
    """Return the partition as swpbench takes it, and the ownership of rows."""
    if by in RULES:
        return by, RULES[by](pattern.shape[0], procs)
    kept = kept_partition(path, pattern, by, procs)
    return str(kept.path), Ownership(procs, kept.parts)
