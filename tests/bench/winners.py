"""Check in new launches the methods that a first campaign calls faster.

`switchpoint run` measures with a store of its own. Each size that its table gives to a faster
method is then launched anew with the default in the same rounds, all cases in turn, so that a drift
of the machine is spread over them. It exits with 1 when a bar is missed.
Run from the checkout, on an idle machine: python -m tests.bench.winners
"""

from __future__ import annotations

import argparse
import math
import os
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from tests.bench.report import Figure, conclude, options_of
from tuner.campaign import launches
from tuner.domain.cases import Case
from tuner.domain.operations import BY_ENVIRONMENT, DEFAULT_METHODS, method_word
from tuner.domain.tables import FASTER, Table
from tuner.inputs.matrices.gallery import write_matrix
from tuner.machine.systems import kernels, launch_on
from tuner.store.store import Store

SLOWER, MOST_SLOWER = 0.02, 1.02
"""The most winners that may be slower than the default, and the most time of one over it."""

TIMEOUT_S = 600.0  # far beyond a launch


@dataclass
class Winner:
    """A size that a table gives to a faster method; logarithms of its time / the default's."""

    case: Case
    method: str
    logs: list[float] = field(default_factory=list)

    @property
    def ratio(self) -> float:
        """Return the geometric mean over the launches."""
        return math.exp(float(np.mean(self.logs)))


def campaign(results: Path, words: Iterable[str]) -> Table:
    """Measure, and return the table."""
    env = os.environ | {"SWITCHPOINT_RESULTS": str(results)}
    command = [sys.executable, "-m", "tuner.cli", "run", *words]
    subprocess.run(command, env=env, check=True, stdout=subprocess.DEVNULL)
    with Store.open(results / "switchpoint.db", readonly=True) as store:
        (system,) = store.systems()["system"]
        table = store.table(system)
    assert table is not None
    return table


def winners(table: Table, everything: bool) -> dict[Case, list[Winner]]:
    """Return the sizes given to a faster method by their case without the size.

    everything: sizes of any other status, too, as if their challenger were faster.
    """
    found: dict[Case, list[Winner]] = defaultdict(list)
    for point in table.points:
        method = point.challenger if everything else point.method
        wins = everything or (point.status == FASTER and not point.filled)
        if wins and method is not None and not method.startswith(BY_ENVIRONMENT):
            its = Winner(point.case, method)
            found[point.case._replace(size_bytes=0, bytes=0)].append(its)
    return found


def launch(
    table: Table, case: Case, its: list[Winner], number: int, rounds: int, scratch: Path
) -> None:
    """Launch the winners of a case beside the default once, and add what was measured."""
    system, environment = table.provenance.name.partition("+")[0], table.provenance.environment
    built, layout = kernels((system, environment)), case.layout
    start = launch_on(system, built.mpi, layout.procs, layout.ppn, built.root, case.operation)
    default = DEFAULT_METHODS[case.operation]
    methods = sorted({default, *(winner.method for winner in its)})
    sizes = sorted({winner.case.size_bytes for winner in its})
    options = [
        *("--op", case.operation, "--pattern", _pattern(case.pattern, scratch), "--quiet"),
        *("--sizes", ",".join(map(str, sizes)), "--methods", ";".join(map(method_word, methods))),
        *("--launch", str(number), "--seed", str(1000 + number), "--max-samples", str(rounds)),
    ]
    out = scratch / "launch.jsonl"
    out.unlink(missing_ok=True)
    times_s = launches.run(start, built.swpbench, options, out, TIMEOUT_S, scratch).medians_s()
    for winner in its:
        size = winner.case.size_bytes
        chosen_s, default_s = (times_s.get((name, size)) for name in (winner.method, default))
        if chosen_s and default_s:
            winner.logs.append(math.log(chosen_s / default_s))


def _pattern(pattern: str, scratch: Path) -> str:
    """Return a pattern as swpbench takes it; the matrix of one is written to `scratch`."""
    kind, _, name = pattern.partition(":")
    matrix = name.removesuffix(".mtx")
    return f"matrix:{write_matrix(matrix, scratch).name}" if kind == "matrix" else pattern


def judged(rows: list[Winner]) -> list[Figure]:
    """Print the winners that are the least fast, and return the figures."""
    ratios = np.array([winner.ratio for winner in rows])
    for winner in sorted(rows, key=lambda row: -row.ratio)[:5]:
        case = winner.case
        place = f"{case.size_bytes} B on {case.layout.nodes} x {case.layout.ppn}"
        what = f"{winner.method}, {case.operation} of {place}"
        print(f"{winner.ratio:.3f} of the default's time: {what}")
    return [
        Figure("winners slower than the default", float(np.mean(ratios > 1)), "", most=SLOWER),
        Figure("slowest winner / default", float(ratios.max()), "", most=MOST_SLOWER),
        Figure("speed of all winners / default", math.exp(-np.log(ratios).mean()), ""),
    ]


def main() -> int:
    """Run a campaign, judge its winners, and print figures beside their bars."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--launches", type=int, default=20, help="of each case (%(default)s)")
    parser.add_argument("--rounds", type=int, default=20, help="of a launch (%(default)s)")
    parser.add_argument("--minutes", default="5", help="of the campaign (%(default)s)")
    parser.add_argument("--name", help="the checks of the campaign, as ReFrame takes them")
    least = {"launches": 2, "rounds": 3, "minutes": "1", "name": "discovery.*=1_node(%|$)"}
    options = options_of(parser, "winners", least)
    words = ["--minutes", options.minutes, "--require-soak", "0"]
    words += ["--", f"--name={options.name}"] if options.name else []
    with tempfile.TemporaryDirectory() as name:
        scratch = Path(name)
        table = campaign(scratch, words)
        its = winners(table, everything=options.least)
        for number in range(options.launches):
            for case, of_case in its.items():
                launch(table, case, of_case, number, options.rounds, scratch)
    rows = [row for of_case in its.values() for row in of_case if row.logs]
    print(f"{len(rows)} sizes with a faster method, {options.launches} launches each")
    figures = [Figure("winners judged", len(rows), "sizes", least=1)]
    return conclude("winners", figures + (judged(rows) if rows else []), options)


if __name__ == "__main__":
    sys.exit(main())
