"""Medians of a job's samples, in microseconds, which ReFrame reports."""

import re
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from tuner.domain.operations import DEFAULT_METHODS
from tuner.rawfile import reading


def medians_us(raw_files: Iterable[Path]) -> dict[str, float]:
    """Return the median times of a job by names such as stfw_dims_2_8B, and that of its canary.

    They are of the default and of the fastest method of this job, at its smallest, middle and
    largest size. Of launches of several operations or patterns, return the canary alone.
    """
    samples_s: dict[int, dict[str, list[np.ndarray]]] = defaultdict(lambda: defaultdict(list))
    canaries_s: list[float] = []
    measured: set[tuple[str, str]] = set()  # operations and patterns
    default = ""
    for file in map(reading.read, raw_files):
        if file.header:
            measured.add((file.header.operation, file.header.pattern))
            default = DEFAULT_METHODS.get(file.header.operation, "")
        ends = np.cumsum([case.samples for case in file.cases])
        for case, samples in zip(file.cases, np.split(file.samples_s, ends[:-1]), strict=False):
            samples_s[case.size_bytes][case.method].append(samples)
            canaries_s.append(case.canary_s)
    if len(measured) > 1:
        samples_s.clear()
    found = {"canary": float(np.median(canaries_s))} if canaries_s else {}
    for size in _few(sorted(samples_s)):
        times_s = {method: np.median(np.concatenate(s)) for method, s in samples_s[size].items()}
        fastest = min(times_s, key=lambda method: times_s[method])
        found |= {
            f"{name_of(method)}_{size}B": float(times_s[method])
            for method in (default, fastest)
            if method in times_s
        }
    return {name: 1e6 * seconds for name, seconds in found.items()}


def name_of(method: str) -> str:
    """Return a method's name without colons, which ReFrame's references cannot have."""
    return re.sub(r"\W+", "_", method)


def _few(sizes: list[int]) -> list[int]:
    last = len(sizes) - 1
    return [sizes[place] for place in sorted({0, last // 2, last})] if sizes else []
