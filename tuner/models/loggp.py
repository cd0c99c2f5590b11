"""LogGP: L, o_s, o_r, g and G of each protocol, from parametrised round trips.

PRTT(n, d, s): n messages of s bytes, d seconds apart, and the answer to the last of them (Hoefler,
Lichei, Rehm, IPDPS'07). PRTT(1, 0, s) = 2 (L + 2o + (s - 1) G), so its half is not a latency;
(PRTT(n, 0, s) - PRTT(1, 0, s)) / (n - 1) = g + (s - 1) G; and with d >= PRTT(1, 0, s)
(PRTT(n, d, s) - PRTT(1, 0, s)) / (n - 1) - d = o_s. o_r is the time of a receive that comes late.
Under load, all four are of messages that all ranks of a node send and receive at once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Annotated, Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from tuner.models.lines import Line, fit_line, no_groups
from tuner.models.parameter import Estimate, Natural, NotIdentified, Number, Parameter, parameter
from tuner.models.points import PointKey, Points, points
from tuner.models.segments import Segments, cut
from tuner.stats import Floats

LEAST_SIZES = 4
"""The least number of sizes for a fit: fewer cannot show a line."""

Samples = Mapping[PointKey, NDArray[Any]]
"""One launch's seconds by (bytes, messages, delay in seconds), or by (bytes,)."""

TOO_FEW = NotIdentified(f"fewer than {LEAST_SIZES} measured sizes")
_NO_FLOODS = NotIdentified("no floods of two sizes were measured")
_NO_DELAYS = NotIdentified("no delayed messages of two sizes were measured")
_NO_LATE = NotIdentified("no late receives of two sizes were measured")
_NO_LOAD = NotIdentified("no floods of all ranks were measured")


@dataclass(frozen=True, slots=True)
class LogGPProtocol:
    """The parameters of messages of from_bytes … up_to_bytes, in seconds; None is unbounded.

    alpha is L + o_s + o_r and beta the seconds per byte, both of single messages; gap and
    gap_per_byte are g and G of many.
    """

    from_bytes: Natural
    up_to_bytes: Natural | None
    alpha: Parameter
    beta: Parameter
    latency: Parameter
    overhead_send: Parameter
    overhead_receive: Parameter
    gap: Parameter
    gap_per_byte: Parameter
    alpha_s: Number  # the fitted alpha and beta, zero where they are not distinguished from it
    beta_s: Number
    loaded_gap: Parameter = _NO_LOAD  # g and G while all ranks send and receive
    loaded_gap_per_byte: Parameter = _NO_LOAD
    loaded_alpha: Parameter = _NO_LOAD  # alpha and beta of a message each way at the same time
    loaded_beta: Parameter = _NO_LOAD


class LogGP(msgspec.Struct, frozen=True, tag="LogGP"):
    """The protocols of one kind of pair by size, and the deviation of the points from their fit."""

    protocols: Annotated[list[LogGPProtocol], msgspec.Meta(min_length=1)]
    scale: Number


def fit(
    prtt: Sequence[Samples], receive: Sequence[Samples] = (), mutual: Sequence[Samples] = ()
) -> LogGP | NotIdentified:
    """Fit round trips of (bytes, messages, delay) and late receives of (bytes,), by launch.

    `mutual` has floods of all ranks, with the keys of round trips. Raise ModelError for invalid
    times.
    """
    trips = points(prtt)
    late = points(receive)
    alone = of_one_message(trips)
    if len(alone.time_s) < LEAST_SIZES:
        return TOO_FEW
    halves = alone.replaced(alone.time_s / 2, alone.replicates / 2)
    found = cut(_rest(halves), no_groups(halves), halves.time_s, halves.noise())
    flood, delayed = _floods(trips, alone), _delays(trips, alone)
    load = points(mutual)
    crossing = of_one_message(load)
    loaded = _floods(load, crossing) if len(load.time_s) else load
    protocols = []
    ends = halves.keys[:, 0]
    for begin, end in pairwise(found.bounds):
        from_bytes = int(ends[begin])
        up_to_bytes = None if end == len(ends) else int(ends[end - 1])
        of_sizes = (flood, delayed, late, loaded, crossing)
        sets = [_between(each, from_bytes, up_to_bytes) for each in of_sizes]
        part = _between(halves, from_bytes, up_to_bytes)
        protocols.append(_protocol(from_bytes, up_to_bytes, part, sets, found))
    return LogGP(protocols, found.scale)


def _protocol(
    from_bytes: int, up_to_bytes: int | None, part: Points, sets: list[Points], found: Segments
) -> LogGPProtocol:
    line = fit_line(part, _rest(part), found.scale)
    flood, delayed, late, loaded, crossing = (
        fit_line(each, _rest(each), found.scale) if len(np.unique(each.keys[:, 0])) > 1 else None
        for each in sets
    )
    alpha, beta = line.parameters()
    gap, gap_per_byte = _parameters(flood, _NO_FLOODS)
    loaded_gap, loaded_gap_per_byte = _parameters(loaded, _NO_LOAD)
    loaded_alpha, loaded_beta = _parameters(crossing, _NO_LOAD)
    # Overheads are of a message of one byte: copying makes those of others longer.
    send, _ = _parameters(delayed, _NO_DELAYS)
    receive, _ = _parameters(late, _NO_LATE)
    latency: Parameter = NotIdentified("needs o_s and o_r, which a ping-pong alone does not give")
    if isinstance(send, Estimate) and isinstance(receive, Estimate) and delayed and late:
        latency = _difference(line, delayed, late)
    return LogGPProtocol(
        from_bytes=from_bytes,
        up_to_bytes=up_to_bytes,
        alpha=alpha,
        beta=beta,
        latency=latency,
        overhead_send=send,
        overhead_receive=receive,
        gap=gap,
        gap_per_byte=gap_per_byte,
        alpha_s=line.values[0],
        beta_s=line.values[1],
        loaded_gap=loaded_gap,
        loaded_gap_per_byte=loaded_gap_per_byte,
        loaded_alpha=loaded_alpha,
        loaded_beta=loaded_beta,
    )


def _parameters(line: Line | None, missing: NotIdentified) -> tuple[Parameter, Parameter]:
    return line.parameters() if line else (missing, missing)


def _difference(line: Line, send: Line, receive: Line) -> Parameter:
    """Return L = (L + 2o) - o_s - o_r."""
    if line.launches != receive.launches:
        return NotIdentified("round trips and late receives are of different launches")
    value = line.values[0] - send.values[0] - receive.values[0]
    replicates = line.replicates[0] - send.replicates[0] - receive.replicates[0]
    if value <= 0:
        return NotIdentified("the overheads are as long as half a round trip")
    return parameter(value, replicates, line.launches)


def _rest(each: Points) -> Floats:
    """Return the bytes behind the first: s - 1."""
    return each.keys[:, 0] - 1


def of_one_message(trips: Points) -> Points:
    """Return the round trips of one message, by size alone."""
    if trips.keys.shape[1] < 3:
        return trips
    chosen = trips.of((trips.keys[:, 1] == 1) & (trips.keys[:, 2] == 0))
    return Points(chosen.keys[:, :1], chosen.time_s, chosen.replicates, chosen.launches)


def _floods(trips: Points, alone: Points) -> Points:
    """Return the seconds per further message of floods."""
    return _further(trips, alone, (trips.keys[:, 1] > 1) & (trips.keys[:, 2] == 0))


def _delays(trips: Points, alone: Points) -> Points:
    """Return the seconds per further message above its delay, if no shorter than a round trip."""
    single = np.interp(trips.keys[:, 0], alone.keys[:, 0], alone.time_s)
    return _further(trips, alone, (trips.keys[:, 1] > 1) & (trips.keys[:, 2] >= single))


def _further(trips: Points, alone: Points, chosen: NDArray[np.bool_]) -> Points:
    sizes = alone.keys[:, 0]
    several = trips.of(chosen & np.isin(trips.keys[:, 0], sizes))
    at = np.searchsorted(sizes, several.keys[:, 0])
    more, delay_s = several.keys[:, 1] - 1, several.keys[:, 2]
    time_s = (several.time_s - alone.time_s[at]) / more - delay_s
    replicates = (several.replicates - alone.replicates[:, at]) / more - delay_s
    # A difference may be small or negative: it is as uncertain as the whole.
    keys = np.column_stack([several.keys[:, 0], several.time_s / more])
    return Points(keys, time_s, replicates, several.launches)


def _between(each: Points, from_bytes: int, up_to_bytes: int | None) -> Points:
    sizes = each.keys[:, 0]
    return each.of((sizes >= from_bytes) & (sizes <= (up_to_bytes or np.inf)))
