"""Loss of choices beyond the largest size that was measured.

On the layouts of tests.bench.unmeasured the fastest method at one size is asked for at larger ones,
beside the default. Algorithms of the MPI library have rules for all larger sizes, so they must stay
within the risk limit there.
Run from the checkout: python -m tests.bench.larger_sizes
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import combinations, groupby, pairwise

import numpy as np

from tests.bench.report import Figure, conclude, options_of
from tests.bench.unmeasured import MeasuredSize, load
from tuner.domain.operations import DEFAULT_METHODS
from tuner.selection.intervals import NEARLY, degree_class_of
from tuner.selection.unmeasured import MOST_RISK
from tuner.units import share_text

FACTORS = (1, 8, 32, 1 << 20)
"""Larger sizes over the measured one, above each up to the next."""

LIBRARYS = "algorithms of the MPI library"


def losses(measured: Iterable[MeasuredSize]) -> Iterator[tuple[float, bool, float]]:
    """Yield size ratios, whether the method is the MPI library's, and its log over the default."""

    def place(its: MeasuredSize) -> tuple[object, ...]:
        return its.system, its.case.pattern, degree_class_of(its.case, its.mmax, its.mavg)

    ordered = sorted(measured, key=lambda its: (str(place(its)), its.case.bytes))
    for _, sizes in groupby(ordered, place):
        for its, larger in combinations(sizes, 2):
            logs, there = its.logs(slice(None)), larger.logs(slice(None))
            best = min(logs, key=lambda name: logs[name])
            if logs[best] < -NEARLY and best in there:
                default = DEFAULT_METHODS[its.case.operation]
                ratio = larger.case.bytes / its.case.bytes
                yield ratio, best.partition(":")[0] == default, there[best]


def main() -> int:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    options = options_of(parser, "larger_sizes", {})
    found: dict[tuple[str, int], list[float]] = defaultdict(list)
    for ratio, is_librarys, log in losses(load()):
        whose = LIBRARYS if is_librarys else "other methods"
        for low, high in pairwise(FACTORS):
            if low < ratio <= high:
                found[whose, high].append(log)
    figures = []
    for (whose, high), logs in sorted(found.items()):
        holds = whose == LIBRARYS
        slower = float(np.mean(np.array(logs) > NEARLY))
        times = f"at up to {high}" if high < FACTORS[-1] else f"beyond {FACTORS[-2]}"
        name = f"{whose}, {times} times the size"
        print(f"{name}: {share_text(slower)} of {len(logs)} are slower than the default")
        figures += [
            Figure(f"{name}: slower", slower, "of the cases", MOST_RISK if holds else None),
            Figure(f"{name}: mean", float(np.exp(np.mean(logs))), "times the default"),
        ]
    return conclude("larger_sizes", figures, options)


if __name__ == "__main__":
    sys.exit(main())
