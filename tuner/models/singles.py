"""Single parameters: the quantity of probes that each is fitted to, and its fit."""

from collections.abc import Callable
from dataclasses import field, fields
from typing import NamedTuple

import numpy as np

from tuner.models.lines import fit_line
from tuner.models.loggp import LEAST_SIZES
from tuner.models.parameter import NOT_MEASURED, NotIdentified, Parameter, parameter
from tuner.models.points import Points

SYNCHRONOUS_LEAST = 0.01
"""The share of a round trip below which what a synchronous send costs is nothing."""

UNITS = {"us": 1e6, "ns/B": 1e9, "GB/s": 1e-9, "B": 1.0, "KiB": 2**-10}
"""The last words of headings, and how many of them one is, in seconds and bytes."""

_NO_SCALE = np.inf
_NO_SYNCHRONOUS = NotIdentified("no synchronous round trips were measured")

Fit = Callable[[Points, Points], Parameter]
"""A fit to the points of a quantity, and to the plain round trips of the same pair, if any."""


class Single(NamedTuple):
    """The quantity of probes, its fit, and the heading, whose last word is one of UNITS.

    The heading of a parameter of pairs has their {scope}, of all ranks their number, {together}.
    """

    quantity: str
    fit: Fit
    heading: str

    @property
    def is_of_all_ranks(self) -> bool:
        """Return whether all ranks are measured at once."""
        return "{together}" in self.heading


def single(quantity: str, fit: Fit, heading: str) -> Parameter:
    """Return a dataclass's field of a single parameter."""
    return field(default=NOT_MEASURED, metadata={"single": Single(quantity, fit, heading)})


def singles(model: type) -> dict[str, Single]:
    """Return the single parameters of a dataclass by name."""
    found = {each.name: each.metadata.get("single") for each in fields(model)}
    return {name: each for name, each in found.items() if each}


# ---- Fits ----


def per_byte(each: Points, _: Points) -> Parameter:
    """Return the seconds per byte."""
    if len(each.time_s) < LEAST_SIZES:
        return NotIdentified("not measured at enough sizes")
    return fit_line(each, each.keys[:, 0], _NO_SCALE).parameters()[1]


def once(each: Points, _: Points) -> Parameter:
    """Return the seconds of a quantity without sizes."""
    if not len(each.time_s):
        return NOT_MEASURED
    return parameter(float(each.time_s[0]), each.replicates[:, 0], each.launches)


def extra(slow: Points, plain: Points) -> Parameter:
    """Return half of the extra time of synchronous round trips over plain ones, in seconds.

    The smaller half of the sizes counts.
    """
    slow, plain = _of_common_sizes(slow, plain)
    if not len(slow.time_s):
        return _NO_SYNCHRONOUS
    half = np.arange(len(slow.time_s)) < max(len(slow.time_s) // 2, 1)
    slow, plain = slow.of(half), plain.of(half)
    differences = Points(
        np.column_stack([plain.keys[:, 0], plain.time_s]),
        (slow.time_s - plain.time_s) / 2,
        (slow.replicates - plain.replicates) / 2,
        plain.launches,
    )
    return fit_line(differences, np.zeros(len(plain.time_s)), _NO_SCALE).parameters()[0]


def negligible_from(slow: Points, plain: Points) -> Parameter:
    """Return the measured size from which synchronous sends cost less than SYNCHRONOUS_LEAST."""
    slow, plain = _of_common_sizes(slow, plain)
    if not len(slow.time_s):
        return _NO_SYNCHRONOUS
    rows = np.vstack([slow.time_s / plain.time_s, slow.replicates / plain.replicates])
    longer = rows >= 1 + SYNCHRONOUS_LEAST
    if longer[:, -1].any():
        return NotIdentified("1 % longer or more at the largest size, at least in some launch")
    first = np.where(longer.any(axis=1), longer.shape[1] - longer[:, ::-1].argmax(axis=1), 0)
    sizes = plain.keys[first, 0]
    return parameter(float(sizes[0]), sizes[1:], slow.launches)


def _of_common_sizes(slow: Points, plain: Points) -> tuple[Points, Points]:
    common = np.intersect1d(slow.keys[:, 0], plain.keys[:, 0])
    return slow.of(np.isin(slow.keys[:, 0], common)), plain.of(np.isin(plain.keys[:, 0], common))
