"""All-to-all of uneven blocks by radix: Fan, Domke, Ba, Kumar, arXiv 2411.02581 and HPDC'25.

The paper shows its times on Polaris and Fugaku as curves. The library is SMPI here, whose
alltoallv sends each block by a message.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from tuner.studies.findings import Finding
from tuner.studies.simulator import Simulator, StudyError
from tuner.units import us_text

LIBRARY, LINEAR = "vendor", "pairwise"
PAPER = {"Polaris": 42, "Fugaku": 138}
"""How many times as fast as the best of others the paper's algorithms are at most."""


@dataclass(frozen=True)
class UnevenRow:
    """Times at a mean block, in seconds: by radix, and by radix both within and between nodes."""

    size_bytes: int
    library_s: float
    linear_s: float
    flat_s: dict[int, float]
    layered_s: dict[int, float]

    @property
    def best_radix(self) -> int:
        """Return the fastest radix of one level."""
        return min(self.flat_s, key=self.flat_s.__getitem__)

    @property
    def gain(self) -> float:
        """Return how many times as long as the fastest radix, of any kind, the library takes."""
        return self.library_s / min([*self.flat_s.values(), *self.layered_s.values()])


def study(
    simulator: Simulator, procs: int, sizes: str, radices: Sequence[int]
) -> Iterator[UnevenRow]:
    """Yield a row for each size, the smallest first.

    Layers are for nodes of as many ranks each, and radices up to these and to the nodes.

    Raise StudyError, NetworkError, LaunchError, RawFileError.
    """
    simulator.require_room(procs)
    if max(radices) > procs or min(radices) < 2:
        raise StudyError(f"a radix is at least 2 and at most the number of ranks, {procs}")
    nodes, odd = divmod(procs, simulator.ppn)
    most = 1 if odd else min(simulator.ppn, nodes)
    flat = {f"bruck:radix={radix}": radix for radix in radices}
    layered = {f"bruck:radix={radix},global={radix}": radix for radix in radices if radix <= most}
    methods = (f"{LIBRARY}:", f"{LINEAR}:", *flat, *layered)
    cases = [("alltoallv", "blocks", procs, method, sizes) for method in methods]
    times: dict[int, dict[str, float]] = defaultdict(dict)
    for each in chain.from_iterable(simulator.run_all(cases)):
        times[each.size_bytes][each.method] = each.time_s
    for size, its in sorted(times.items()):
        yield UnevenRow(
            size,
            its[LIBRARY],
            its[LINEAR],
            {radix: its[method] for method, radix in flat.items()},
            {radix: its[method] for method, radix in layered.items()},
        )


def findings(rows: Sequence[UnevenRow]) -> Iterator[Finding]:
    """Yield the paper's conclusions, and whether they hold here."""
    best = [row.best_radix for row in rows]
    if len(rows) > 1:
        yield Finding(
            "the best radix grows with the blocks",
            best == sorted(best) and best[0] < best[-1],
            ", ".join(f"{row.best_radix} at {row.size_bytes} B" for row in rows),
        )
    most = max(rows, key=lambda row: row.gain)
    theirs = " and ".join(f"{times} on {name}" for name, times in PAPER.items())
    yield Finding(
        f"the gain is up to {theirs}",
        most.gain >= min(PAPER.values()),
        f"{most.gain:.3g} times at {most.size_bytes} B",
    )
    small = rows[0]
    if small.layered_s:
        flat_s, layered_s = min(small.flat_s.values()), min(small.layered_s.values())
        yield Finding(
            "radices within and between nodes beat one radix for small blocks",
            layered_s < flat_s,
            f"{us_text(layered_s)} and {us_text(flat_s)} us at {small.size_bytes} B",
        )
