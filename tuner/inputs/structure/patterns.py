"""The patterns of `swpbench --pattern` that need no file, made in the same way.

Every rank sends the same messages as there, down to the last one (kernels/bench/patterns).
"""

import functools
import itertools
import math
import re
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from tuner.errors import SwitchpointError
from tuner.inputs.matrices.market import Indices
from tuner.inputs.structure.halo import Halo

_Messages = Iterator[tuple[int, int, list[int]]]
"""Sender, receiver and items of each message, in this order; a rank's items count from 0."""

_WORD = (1 << 64) - 1
_STEP = 0x9E3779B97F4A7C15


class _Parameter(NamedTuple):
    """A parameter with the bounds that it has in the bench."""

    standard: int
    least: int
    most: int


class PatternError(SwitchpointError):
    """Error raised when a pattern cannot be made here; the message says why."""


def pattern(spec: str, procs: int, most_items: int | None = None) -> Halo:
    """Return the messages of a pattern on `procs` processes, of `most_items` in all at most.

    Raise PatternError.
    """
    family, colon, text = spec.partition(":")
    if family not in _FAMILIES:
        raise PatternError(
            f"{spec}: available patterns are {', '.join(_FAMILIES)}, and matrix:FILE"
        )
    make, parameters = _FAMILIES[family]
    given: dict[str, int] = {}
    for word in text.split(",") if colon else []:
        name, _, number = word.partition("=")
        if name not in parameters or not re.fullmatch("[0-9]{1,19}", number):
            raise PatternError(f"{spec}: {word} is none of {', '.join(parameters)} with a number")
        if name in given or not parameters[name].least <= int(number) <= parameters[name].most:
            bounds = ", ".join(
                f"{each} {its.least} to {its.most}" for each, its in parameters.items()
            )
            raise PatternError(f"{spec}: give each once, {bounds.replace(' ', ' is ', 1)}")
        given[name] = int(number)
    values = {name: given.get(name, of.standard) for name, of in parameters.items()}
    messages, items = array("q"), array("q")
    for sender, receiver, sent in make(spec, procs, **values):
        if most_items is not None and len(items) + len(sent) > most_items:
            raise PatternError(f"{spec}: more than {most_items} items on {procs} processes")
        messages.extend((sender, receiver, len(sent)))
        items.extend(sent)
    return _halo(np.array(messages).reshape(-1, 3), np.array(items), procs)


def _halo(messages: Indices, items: Indices, procs: int) -> Halo:
    """Return messages, given sender, receiver and number of items of each, and all items."""
    source, destination, counts = messages.T.copy()
    sender = np.repeat(source, counts)
    owned = np.zeros(procs, dtype=np.int64)
    np.maximum.at(owned, sender, items + 1)
    begins = np.concatenate(([0], np.cumsum(owned)))
    return Halo(
        procs=procs,
        source=source,
        destination=destination,
        first=np.concatenate(([0], np.cumsum(counts))),
        slots=items + begins[sender],
        begins=begins,
    )


def _random(spec: str, procs: int, degree: int, seed: int) -> _Messages:
    others = procs - 1
    for rank in range(procs):
        drawn = _Draws(_hash_pair(seed, rank)).sample(others, min(degree, others))
        for item, other in enumerate(drawn):
            yield rank, other + (other >= rank), [item]


def _hub(spec: str, procs: int, hubs: int, seed: int) -> _Messages:
    chosen = _Draws(seed).sample(procs, min(hubs, procs))
    hub = frozenset(chosen)
    for rank in range(procs):
        receivers = range(procs) if rank in hub else chosen
        for item, other in enumerate(other for other in receivers if other != rank):
            yield rank, other, [item]


def _stencil(spec: str, procs: int, dim: int, points: int, edge: int) -> _Messages:
    if points not in (2 * dim + 1, 3**dim):
        raise PatternError(f"{spec}: points are 2 dim + 1 or 3^dim")
    grid = _balanced(procs, dim)
    lines = [np.arange(edge) * edge ** (dim - 1 - axis) for axis in range(dim)]
    steps = [
        step
        for step in itertools.product((-1, 0, 1), repeat=dim)
        if any(step) and (points == 3**dim or sum(map(abs, step)) == 1)
    ]
    sides = {-1: slice(0, 1), 0: slice(None), 1: slice(edge - 1, edge)}
    for rank in range(procs):
        place = np.unravel_index(rank, grid)
        for step in steps:
            there = [int(at) + by for at, by in zip(place, step, strict=True)]
            if all(0 <= at < size for at, size in zip(there, grid, strict=True)):
                side = [line[sides[by]] for line, by in zip(lines, step, strict=True)]
                items = functools.reduce(np.add.outer, side).ravel().tolist()
                yield rank, int(np.ravel_multi_index(there, grid)), items


def _balanced(procs: int, dim: int) -> tuple[int, ...]:
    """Return factors as MPI_Dims_create: as close to each other as possible, larger ones first."""
    if dim == 1:
        return (procs,)
    best: tuple[int, ...] = (procs, *(1,) * (dim - 1))
    for largest in range(math.ceil(round(procs ** (1 / dim), 9)), procs + 1):
        if procs % largest == 0:
            rest = _balanced(procs // largest, dim - 1)
            if rest[0] <= largest:
                return (largest, *rest)
    return best


class _Draws:
    """SplitMix64, as the bench draws (kernels/bench/base/rng.c)."""

    def __init__(self, state: int) -> None:
        self._state = state

    def _below(self, bound: int) -> int:
        unfair = (1 << 64) % bound
        while True:
            self._state = (self._state + _STEP) & _WORD
            if (drawn := _mix(self._state)) >= unfair:
                return drawn % bound

    def sample(self, count: int, chosen: int) -> list[int]:
        """Return distinct numbers below `count`, increasing (Floyd's sampling)."""
        found: list[int] = []
        for last in range(count - chosen, count):
            drawn = self._below(last + 1)
            at = bisect_left(found, drawn)
            if at < len(found) and found[at] == drawn:
                at, drawn = len(found), last
            found.insert(at, drawn)
        return found


def _mix(x: int) -> int:
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _WORD
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _WORD
    return x ^ (x >> 31)


def _hash_pair(a: int, b: int) -> int:
    return _mix((_mix((a + _STEP) & _WORD) + b) & _WORD)


_SEED = _Parameter(1, 0, 2**63 - 1)
_FAMILIES: dict[str, tuple[Callable[..., _Messages], dict[str, _Parameter]]] = {
    "random": (_random, {"degree": _Parameter(6, 0, 2**31 - 1), "seed": _SEED}),
    "hub": (_hub, {"hubs": _Parameter(4, 1, 2**31 - 1), "seed": _SEED}),
    "stencil": (
        _stencil,
        {
            "dim": _Parameter(3, 1, 3),
            "points": _Parameter(27, 3, 27),
            "edge": _Parameter(4, 1, 512),
        },
    ),
}
