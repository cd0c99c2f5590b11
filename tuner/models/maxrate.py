"""The max-rate model: the cost of a message when several processes of a node send at once.

T = alpha + p s / min(B_N, B_max + (p - 1) B_inj) for p processes and s bytes (Gropp, Olson,
Samfass, EuroMPI'16; equation 10 of Bienz, Gropp, Olson, 2019). B_inj is signed: processes may slow
each other. With one process, or on the node, it is T = alpha + s / B_max.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated

import msgspec
import numpy as np

from tuner.models.loggp import LEAST_SIZES, TOO_FEW, Samples
from tuner.models.parameter import (
    HIDDEN,
    Estimate,
    Natural,
    NotIdentified,
    Number,
    Parameter,
    Rate,
    parameter,
)
from tuner.models.points import Points, points
from tuner.models.segments import FLOOR, Segments, cut, fit_lines
from tuner.stats import Floats, Integers

_PARAMETERS = 4  # parameters of a protocol
_STEPS = 12
_FASTEST = 1e12  # bytes/s; no memory gives a process as much, so a faster rate is chance
_REACH = 50.0  # limit of logarithms, which keeps trial steps finite
_WIDE = 10.0  # times B_max: an interval of B_max as wide leaves B_inj unidentified


@dataclass(frozen=True, slots=True)
class Rates:
    """The parameters of a protocol's predictions, in bytes/s; for one process only, b_inj is 0."""

    alpha_s: Number
    b_max: Rate | None  # None: time does not grow with size
    b_inj: Number
    b_node: Rate | None  # None: no saturation was seen
    most_processes: Natural  # largest number measured at once; rates of more are not extrapolated

    @property
    def are_possible(self) -> bool:
        """Return whether every number of senders has a positive rate."""
        return self.most_processes > 0 and self.rising(self.most_processes) > 0

    def node_rate(self, processes: int) -> float:
        """Return the bytes per second of a node with that many senders; may be infinite."""
        rising = self.rising(processes)
        return rising if self.b_node is None else min(self.b_node, rising)

    def rising(self, processes: int) -> float:
        """Return the bytes per second without saturation; may be infinite."""
        if self.b_max is None:
            return math.inf
        active = max(1, min(processes, self.most_processes))
        return self.b_max + (active - 1) * self.b_inj

    def time_s(self, size_bytes: float, processes: int) -> float:
        """Return the seconds of a message while that many processes of the node send."""
        return self.alpha_s + processes * size_bytes / self.node_rate(processes)


@dataclass(frozen=True, slots=True)
class RateProtocol:
    """The parameters of messages of from_bytes … up_to_bytes, bytes/s; None is unbounded."""

    from_bytes: Natural
    up_to_bytes: Natural | None
    alpha: Parameter  # seconds
    b_max: Parameter
    b_inj: Parameter
    b_node: Parameter
    rates: Rates


class MaxRate(msgspec.Struct, frozen=True, tag="max-rate"):
    """The protocols by size, and the deviation of the points from their fit."""

    protocols: Annotated[list[RateProtocol], msgspec.Meta(min_length=1)]
    scale: Number


def fit(launches: Sequence[Samples]) -> MaxRate | NotIdentified:
    """Fit one-way times of messages of (bytes, processes), by launch.

    Raise ModelError for invalid times.
    """
    swept = points(launches)
    if len(np.unique(swept.keys[:, 0])) < LEAST_SIZES:
        return TOO_FEW
    if (swept.keys[:, 1] == 1).sum() < LEAST_SIZES:
        return NotIdentified("one pair alone was not measured")
    sizes = np.unique(swept.keys[:, 0])
    groups = _groups(swept)
    parameters = min(2 + int(groups.max()), _PARAMETERS)
    found = cut(swept.keys[:, 0], groups, swept.time_s, swept.noise(), parameters)
    protocols = []
    for begin, end in pairwise(found.bounds):
        inside = (swept.keys[:, 0] >= sizes[begin]) & (swept.keys[:, 0] <= sizes[end - 1])
        up_to_bytes = None if end == len(sizes) else int(sizes[end - 1])
        protocols.append(_protocol(int(sizes[begin]), up_to_bytes, swept.of(inside), found))
    return MaxRate(protocols, found.scale)


def _groups(swept: Points) -> Integers:
    return np.unique(swept.keys[:, 1], return_inverse=True)[1]


def _protocol(
    from_bytes: int, up_to_bytes: int | None, part: Points, found: Segments
) -> RateProtocol:
    curve = _Curve(part, found.scale)
    theta = curve.fit()
    if theta is None:
        line = parameter(curve.intercept, curve.intercepts, part.launches)
        flat = NotIdentified("time does not grow with size")
        rates = Rates(curve.intercept, None, 0.0, None, int(part.keys[:, 1].max()))
        return RateProtocol(from_bytes, up_to_bytes, line, flat, flat, flat, rates)
    rates = curve.rates(theta)
    all_rates = curve.replicates(theta)
    alpha, b_max = (
        parameter(value, np.exp(all_rates[:, at]), part.launches)
        for at, value in enumerate(np.exp(theta[:2]).tolist())
    )
    b_inj, b_node = curve.together(theta, all_rates)
    most = rates.most_processes
    b_max, b_node = curve.seen(rates, b_max, 1), curve.seen(rates, b_node, most)
    if isinstance(b_inj, Estimate):
        b_inj = curve.seen(rates, b_inj, most, of_one=rates.b_max or 0.0)
        if not _is_narrow(b_max):
            b_inj = NotIdentified("needs the rate of one process, which is not known well")
    return RateProtocol(from_bytes, up_to_bytes, alpha, b_max, b_inj, b_node, rates)


def _is_narrow(b_max: Parameter) -> bool:
    return isinstance(b_max, Estimate) and b_max.high - b_max.low < _WIDE * b_max.value


class _Curve:
    """A protocol's points, and curves through them.

    A theta holds the logarithms of alpha and of the rate of one process; if several processes were
    measured, that of the most of them; and if the node is saturated, its rate. So the rate is
    positive for every number of processes measured.
    """

    def __init__(self, part: Points, scale: float) -> None:
        self._part, self._scale = part, scale
        self._size, self._processes = part.keys[:, 0], part.keys[:, 1]
        self._levels = np.unique(self._processes)
        self._share = (self._processes - 1) / max(float(self._levels[-1]) - 1, 1.0)
        rows = np.vstack([part.time_s, part.replicates])
        intercepts, slopes, _ = fit_lines(
            self._size, _groups(part), rows, np.ones_like(rows), scale
        )
        self.intercept = float(intercepts[0])
        self.intercepts = intercepts[1:]
        self._slopes = slopes[0]
        # Rates above this take no visible time; the cap keeps them from swamping what they add to.
        longest = self._size == self._size.max()
        largest = float(self._levels[-1]) * float(self._size.max())
        self._fastest = np.log(largest / (FLOOR * float(part.time_s[longest].min())))
        self._noise = max(scale, FLOOR)

    def fit(self) -> Floats | None:
        """Return the theta of least cost, from the separate rates of each number of processes.

        The node is saturated where BIC says so. None when time does not grow with size by more than
        the noise.
        """
        theta = self._least()
        if theta is None:
            return None
        moved = self._residuals(theta[None], self._part.time_s[None])[0] + 1
        alone = float(np.exp(theta[0])) / self._part.time_s
        return theta if (moved - alone).max() > self._noise else None

    def _least(self) -> Floats | None:
        grows = self._slopes * self._size.max() > FLOOR * self.intercept
        if not grows.any():
            return None
        rates = self._levels[grows] / self._slopes[grows]
        share = np.unique(self._share)[grows]
        alpha = np.log(max(self.intercept, 1e-12))
        if len(self._levels) == 1:
            return self.refine(np.array([alpha, np.log(rates[0])]))
        rising = _ends(share, rates) if len(rates) > 1 else (float(rates[0]), float(rates[0]))
        best = self.refine(np.array([alpha, *np.log(rising)]))
        bends = []
        for bend in range(1, len(rates) - 1):  # at least two numbers of processes are saturated
            alone = float(rates[0]), float(rates[0] + rates[-1])
            ends = _ends(share[:bend], rates[:bend]) if bend > 1 else alone
            node = float(np.median(rates[bend:]))
            bends.append(np.array([alpha, *np.log(ends), np.log(node)]))
        if not bends:
            return best
        bent = self.refine(min(bends, key=self._cost))
        n = len(self._size)
        gain = n * np.log(max(self._cost(best), 1e-12) / max(self._cost(bent), 1e-12))
        return bent if gain > np.log(n) and self._is_bent(bent) else best

    def _is_bent(self, theta: Floats) -> bool:
        """Return whether some number of processes is below saturation, and two are above."""
        above = self._rising(theta[None])[0] > np.exp(theta[3])
        return 2 <= len(np.unique(self._processes[above])) < len(self._levels)

    def _rising(self, theta: Floats) -> Floats:
        theta = np.clip(theta, -_REACH, _REACH)
        one = np.exp(theta[:, 1:2])
        if theta.shape[1] == 2:
            return np.broadcast_to(one, (len(theta), len(self._share)))
        rising: Floats = one + (np.exp(theta[:, 2:3]) - one) * self._share
        return rising

    def _residuals(self, theta: Floats, time_s: Floats) -> tuple[Floats, Floats]:
        """Return relative residuals and their derivatives by theta, for rows of both."""
        alpha, rising = np.exp(theta[:, :1]), self._rising(theta)
        node = np.exp(theta[:, 3:4]) if theta.shape[1] == 4 else np.full((len(theta), 1), np.inf)
        rate = np.maximum(np.minimum(rising, node), 1e-20)
        moved = self._processes * self._size / rate
        slope = np.where(rising < node, -moved / rate, 0)
        columns = [np.broadcast_to(alpha, moved.shape)]
        if theta.shape[1] == 2:
            columns.append(slope * np.exp(theta[:, 1:2]))
        else:
            columns.append(slope * np.exp(theta[:, 1:2]) * (1 - self._share))
            columns.append(slope * np.exp(theta[:, 2:3]) * self._share)
        if theta.shape[1] == 4:
            columns.append(np.where(rising < node, 0, -moved))
        return (alpha + moved) / time_s - 1, np.stack(columns, axis=-1) / time_s[..., None]

    def _cost(self, theta: Floats) -> float:
        ratio = self._residuals(theta[None], self._part.time_s[None])[0] / self._scale
        return float(2 * (np.sqrt(1 + ratio**2) - 1).sum())

    def refine(self, theta: Floats) -> Floats:
        """Return the theta of least squared relative residuals under soft_l1, from a near start."""
        from scipy import optimize  # here, because the checks load in half the time without it

        time_s = self._part.time_s[None]
        with np.errstate(over="ignore"):  # from trust regions, which then stay as they are
            solution = optimize.least_squares(
                lambda at: self._residuals(at[None], time_s)[0][0],
                theta,
                jac=lambda at: self._residuals(at[None], time_s)[1][0],
                loss="soft_l1",
                f_scale=self._scale,
                x_scale=1.0,
            )
        return self._capped(solution.x)

    def replicates(self, theta: Floats) -> Floats:
        """Return the theta of each replicate, by Gauss-Newton steps with the loss as weights."""
        time_s = self._part.replicates
        at = np.broadcast_to(theta, (len(time_s), len(theta))).copy()
        for _ in range(_STEPS):
            residuals, slopes = self._residuals(at, time_s)
            weighted = slopes / np.sqrt(1 + (residuals / self._scale) ** 2)[..., None]
            square = np.einsum("rni,rnj->rij", weighted, slopes)
            square += 1e-9 * np.eye(len(theta))
            right = np.einsum("rni,rn->ri", weighted, residuals)
            at -= np.clip(np.linalg.solve(square, right[..., None])[..., 0], -1, 1)
        return self._capped(at)

    def _capped(self, theta: Floats) -> Floats:
        capped = theta.copy()
        capped[..., 1:] = np.minimum(capped[..., 1:], self._fastest)
        return capped

    def rates(self, theta: Floats) -> Rates:
        """Return the parameters of a theta."""
        b_max, b_inj = self._of_one(theta[None])
        b_node = float(np.exp(theta[3])) if len(theta) == 4 else None
        alpha_s, most = float(np.exp(theta[0])), int(self._levels[-1])
        return Rates(alpha_s, float(b_max[0]), float(b_inj[0]), b_node, most)

    def _of_one(self, theta: Floats) -> tuple[Floats, Floats]:
        """Return B_max and B_inj."""
        one = np.exp(theta[:, 1])
        if theta.shape[1] == 2:
            return one, np.zeros(len(theta))
        return one, (np.exp(theta[:, 2]) - one) / (self._levels[-1] - 1)

    def seen(
        self, rates: Rates, rate: Parameter, processes: int, of_one: float | None = None
    ) -> Parameter:
        """Return the rate, unless the sending of `processes` processes is lost in the noise.

        With `of_one`, the rate is the increase for each process after the first.
        """
        if not isinstance(rate, Estimate):
            return rate
        if max(abs(rate.low), rate.high) > _FASTEST:
            return NotIdentified(HIDDEN)
        sent = processes * float(self._size.max())
        for each, share in ((rate.value, self._noise), (rate.high, FLOOR)):
            of_all = each if of_one is None else of_one + (processes - 1) * each
            if sent < share * (rates.alpha_s * of_all + sent):
                return NotIdentified(HIDDEN)
        return rate

    def together(self, theta: Floats, replicates: Floats) -> tuple[Parameter, Parameter]:
        """Return B_inj and B_N, as far as several processes were measured."""
        launches = self._part.launches
        if len(theta) == 2:
            alone = NotIdentified("one pair at a time was measured")
            return alone, alone
        value = self.rates(theta).b_inj
        b_inj = parameter(value, self._of_one(replicates)[1], launches, signed=True)
        if len(theta) == 3:
            most = int(self._levels[-1])
            return b_inj, NotIdentified(f"no saturation up to {most} pairs")
        b_node = parameter(float(np.exp(theta[3])), np.exp(replicates[:, 3]), launches)
        rising = self._rising(theta[None])[0] < np.exp(theta[3])
        if len(np.unique(self._processes[rising])) < 2:
            b_inj = NotIdentified("saturated by two pairs")
        return b_inj, b_node


def _ends(share: Floats, rates: Floats) -> tuple[float, float]:
    """Return the positive rates at both ends of a line through rates, by relative residuals."""
    slope, at_zero = np.polyfit(share, rates, 1, w=1 / rates)
    least = 0.05 * float(rates.min())
    return max(float(at_zero), least), max(float(at_zero + slope), least)
