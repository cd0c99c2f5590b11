"""The microbenchmark of Hoefler, Siebert, Lumsdaine, PPoPP'10: finding senders among many ranks.

Every rank sends to a few random others. The paper shows its times as curves only; beside the
simulated times stand those of its LogGP formulas, for the same network.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tuner.inputs.structure.patterns import pattern
from tuner.models import predict
from tuner.models.networks import as_model
from tuner.studies.findings import Finding
from tuner.studies.simulator import Simulator

METHODS = ("pex", "pcx", "rsx", "nbx")
_ITEM_BYTES = 8


@dataclass(frozen=True)
class DsdeRow:
    """The times of all methods for a number of ranks and of neighbours, in seconds."""

    procs: int
    degree: int
    simulated_s: dict[str, float]
    formula_s: dict[str, float]

    @property
    def fastest(self) -> str:
        """Return the fastest method by simulation."""
        return min(self.simulated_s, key=self.simulated_s.__getitem__)


def study(simulator: Simulator, cases: Sequence[tuple[int, int]]) -> Iterator[DsdeRow]:
    """Yield a simulated row for each number of ranks with each degree.

    Raise StudyError, NetworkError, LaunchError, RawFileError.
    """
    machine = simulator.machine
    model = as_model(machine)
    for procs, degree in cases:
        spec = f"random:degree={degree},seed=1"
        found = simulator.run("discovery", spec, procs, ";".join(METHODS), str(_ITEM_BYTES))
        predictor = predict.of_discovery(model, pattern(spec, procs), simulator.ppn, METHODS)
        yield DsdeRow(
            procs,
            degree,
            {each.method.partition(":")[0]: each.time_s for each in found},
            predictor.known_s(_ITEM_BYTES),
        )


def findings(rows: Sequence[DsdeRow], few: int) -> Iterator[Finding]:
    """Yield the paper's conclusions on few neighbours and more, and whether they hold here."""
    by_procs = sorted((row for row in rows if row.degree == few), key=lambda row: row.procs)
    least, most = by_procs[0], by_procs[-1]
    yield Finding(
        f"NBX is the fastest with {few} neighbours at the largest scale",
        most.fastest == "nbx",
        f"{most.procs} ranks: {most.fastest}",
    )
    slowest = max(most.simulated_s, key=most.simulated_s.__getitem__)
    yield Finding(
        "PEX performs and scales worst", slowest == "pex", f"slowest: {slowest} at {most.procs}"
    )
    if most.procs > least.procs:
        growth = {name: most.simulated_s[name] / least.simulated_s[name] for name in METHODS}
        text = ", ".join(f"{name} {growth[name]:.2f}" for name in METHODS)
        wanted = math.log2(most.procs) / math.log2(least.procs)
        yield Finding(
            "PEX and PCX grow with the ranks, RSX and NBX with the ranks' logarithm",
            min(growth["pex"], growth["pcx"]) > 2 * wanted
            and max(growth["rsx"], growth["nbx"]) < 2 * wanted,
            f"from {least.procs} to {most.procs}: {text}; lg grows {wanted:.2f}",
        )
    at_most = sorted((row for row in rows if row.procs == most.procs), key=lambda row: row.degree)
    if len(at_most) > 1:
        gains = [row.simulated_s["pcx"] / row.simulated_s["nbx"] for row in at_most]
        ends = f"PCX / NBX {gains[0]:.2f} at {at_most[0].degree}, {gains[-1]:.2f} at "
        yield Finding(
            "the gain of NBX shrinks with more neighbours",
            gains[-1] < gains[0],
            f"{ends}{at_most[-1].degree} neighbours",
        )
