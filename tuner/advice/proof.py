"""Runs of an application with and without a table, in turn, until their difference is resolved."""

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from tuner import stats

Outcome = Literal["gain", "loss", "none", "open"]

LEAST_PAIRS = 3
ERROR_LEVEL = 0.05
EQUAL_WITHIN_LOG = math.log(1.01)
"""The difference that is none: an interval within it resolves the comparison."""


@dataclass(frozen=True, slots=True)
class Proof:
    """The pairs of runs, and time with / time without the table, with its interval.

    The interval holds at ERROR_LEVEL although the runs may stop after each pair: look k has the
    share 6 / (pi k)^2 of that level, and all together have no more than the whole.
    """

    pairs: list[tuple[float, float]]  # seconds without the table, and with it
    ratio: float
    low: float
    high: float

    @classmethod
    def of(cls, pairs: list[tuple[float, float]]) -> "Proof":
        """Return the proof of at least one pair."""
        logs = np.log([with_s / without_s for without_s, with_s in pairs])
        mean, look = float(logs.mean()), len(logs) - LEAST_PAIRS + 1
        reach = math.inf
        if look >= 1:
            level = ERROR_LEVEL * 6 / (math.pi * look) ** 2
            error = float(logs.std(ddof=1)) / math.sqrt(len(logs))
            reach = stats.student(len(logs) - 1, 1 - level / 2) * error
        low, high = (math.exp(min(mean + sign * reach, 700)) for sign in (-1, 1))
        return cls(pairs, math.exp(mean), low, high)

    @property
    def outcome(self) -> Outcome:
        """Return "gain", "loss", "none" for no difference that matters, or "open"."""
        if self.high < 1:
            return "gain"
        if self.low > 1:
            return "loss"
        if math.log(self.high) < EQUAL_WITHIN_LOG and math.log(self.low) > -EQUAL_WITHIN_LOG:
            return "none"
        return "open"


def prove(
    without: Callable[[], float],
    with_table: Callable[[], float],
    end_s: float,
    usual_s: float,
    earlier: Sequence[tuple[float, float]] = (),
) -> Iterator[Proof]:
    """Time both in turn, each first in every second pair, until they are resolved, or time is up.

    Yield the proof after each pair, with the `earlier` ones. None is begun that would end after
    `end_s`, by the longest so far, or two runs of `usual_s`.
    """
    pairs = list(earlier)
    longest_s = 2 * usual_s
    while time.monotonic() + longest_s < end_s:
        begun_s = time.monotonic()
        if len(pairs) % 2 == 0:
            without_s = without()
            pairs.append((without_s, with_table()))
        else:
            with_s = with_table()
            pairs.append((without(), with_s))
        longest_s = max(longest_s, time.monotonic() - begun_s)
        yield (proof := Proof.of(pairs[:]))
        if proof.outcome != "open":
            return
