"""The parameters of a system: one document that is fitted, stored, shown and predicted with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from tuner.domain.cases import ProbeLaunch
from tuner.models import loggp, maxrate
from tuner.models.lines import fit_line
from tuner.models.loggp import LEAST_SIZES, LogGP, Samples
from tuner.models.maxrate import MaxRate
from tuner.models.parameter import NotIdentified, Parameter, parameter
from tuner.models.points import Key, Points, points
from tuner.rawfile.kinds.probe import SCOPES, ProbeKey

Launches = Mapping[ProbeLaunch, Mapping[ProbeKey, NDArray[np.float32]]]

_NO_SCALE = np.inf

_NOT_MEASURED = NotIdentified("not measured")

NEGLIGIBLE = 0.01


@dataclass(frozen=True, slots=True)
class ProbedLayout:
    """The layout that probes were measured on."""

    nodes: int
    ppn: int
    oversubscribed: bool
    launches: int


@dataclass(frozen=True, slots=True)
class PairModel:
    """One kind of pair of ranks; `synchronous` is the extra time of a synchronous send, seconds.

    From `synchronous_from` bytes on it is below NEGLIGIBLE of the time of the message.
    """

    layout: ProbedLayout

    loggp: LogGP | NotIdentified
    maxrate: MaxRate | NotIdentified
    synchronous: Parameter
    synchronous_from: Parameter = _NOT_MEASURED


@dataclass(frozen=True, slots=True)
class Links:
    """The links of a network with known routes, as tuner/simulation/topologies.py names them."""

    kind: str
    sizes: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class SystemModel:
    """The parameters fitted to a campaign's probes. Copying and reducing are in seconds per byte.

    `barrier` is MPI_Ibarrier with its wait and `fence` MPI_Win_fence, seconds, of `together` ranks.
    """

    system: str
    campaign: str
    samples: int
    pairs: dict[str, PairModel]  # by scope
    copying: Parameter
    reducing: Parameter
    barrier: Parameter = _NOT_MEASURED
    fence: Parameter = _NOT_MEASURED
    together: int = 0
    cores: int = 0  # cores of a node; parameters do not hold for more ranks. 0: not known
    links: Links | None = None  # of a simulated machine


def fit(layouts: Sequence[Launches]) -> SystemModel:
    """Fit the probes of one campaign, the launches of each layout apart; there is at least one.

    Each scope is fitted to the first layout that has it. Raises ModelError for invalid times.
    """
    where = next(iter(layouts[0]))
    of_scope: dict[str, Launches] = {}
    for launches in layouts:
        for scope in {key.scope for launch in launches.values() for key in launch}:
            of_scope.setdefault(scope, launches)
    used = [launches for launches in layouts if any(launches is it for it in of_scope.values())]
    alone = list(of_scope.get("", layouts[0]).values())
    return SystemModel(
        system=where.system,
        campaign=where.campaign,
        samples=sum(
            len(samples)
            for launches in used
            for launch in launches.values()
            for samples in launch.values()
        ),
        pairs={scope: _pair(of_scope[scope], scope) for scope in SCOPES if scope in of_scope},
        copying=_per_byte(_one(alone, "copy")),
        reducing=_per_byte(_one(alone, "reduce")),
        barrier=_alone(_one(alone, "ibarrier")),
        fence=_alone(_one(alone, "fence")),
        together=next(iter(of_scope.get("", layouts[0]))).layout.procs,
    )


def encode(model: SystemModel) -> str:
    """Encode a model as JSON, for the store."""
    return msgspec.json.encode(model).decode()


def decode(text: str) -> SystemModel:
    """Decode the text made by `encode`. Raises msgspec.MsgspecError for anything else."""
    return msgspec.json.decode(text, type=SystemModel)


def _pair(launches: Launches, scope: str) -> PairModel:
    layout = next(iter(launches)).layout
    probes = list(launches.values())
    trips: list[Samples] = []
    sweeps: list[Samples] = []
    mutual: list[Samples] = []
    for launch in probes:
        of_scope = {k: v for k, v in launch.items() if k.scope == scope}
        found = {k: v for k, v in of_scope.items() if k.quantity == "prtt"}
        mutual.append(
            {
                (k.size_bytes, k.messages, k.delay_s): v
                for k, v in of_scope.items()
                if k.quantity == "mutual"
            }
        )
        trips.append(
            {(k.size_bytes, k.messages, k.delay_s): v for k, v in found.items() if k.pairs == 1}
        )
        sweeps.append(
            {
                (k.size_bytes, k.pairs): v / 2
                for k, v in found.items()
                if (k.messages, k.delay_s) == (1, 0)
            }
        )
    trips = _aligned(trips)
    slow, plain = _both_ways_of_sending(
        points(_one(probes, "prtt_synchronous", scope)), points(trips)
    )
    return PairModel(
        layout=ProbedLayout(layout.nodes, layout.ppn, layout.oversubscribed, len(launches)),
        loggp=loggp.fit(trips, _one(probes, "receive", scope), mutual),
        maxrate=maxrate.fit(sweeps),
        synchronous=_penalty(slow, plain),
        synchronous_from=_negligible_from(slow, plain),
    )


def _aligned(trips: list[Samples]) -> list[Samples]:
    """Return round trips as if every launch had delayed the messages of a size by the same time.

    Delays follow the round trips that a launch measured; the longest of several counts. One more
    second of a delay that is longer than a round trip makes n messages take n - 1 seconds longer; a
    delay that is shorter in its own launch is left out.
    """
    delays = [_longest_delays(launch) for launch in trips]
    aligned: list[Samples] = []
    for launch, own in zip(trips, delays, strict=True):
        moved: dict[Key, NDArray[Any]] = {key: launch[key] for key in launch if not key[2]}
        for (size, messages), delay_s in own.items():
            common_s = max(each.get((size, messages), 0.0) for each in delays)
            later_s = (messages - 1) * (common_s - delay_s)
            moved[size, messages, common_s] = launch[size, messages, delay_s] + later_s
        aligned.append(moved)
    return aligned


def _longest_delays(launch: Samples) -> dict[tuple[float, float], float]:
    """Return the longest delays by bytes and messages.

    Those count that are no shorter than the launch's round trip.
    """
    longest: dict[tuple[float, float], float] = {}
    for size, messages, delay_s in launch:
        alone = launch.get((size, 1, 0.0))
        if delay_s and alone is not None and delay_s >= np.median(alone):
            longest[size, messages] = max(longest.get((size, messages), 0.0), delay_s)
    return longest


def _one(
    probes: list[Mapping[ProbeKey, NDArray[np.float32]]], quantity: str, scope: str = ""
) -> list[Samples]:
    """Return samples by (bytes,) of a quantity that has no other parameters."""
    return [
        {
            (key.size_bytes,): samples
            for key, samples in launch.items()
            if key.quantity == quantity and key.scope == scope and key.pairs == key.messages == 1
        }
        for launch in probes
    ]


def _per_byte(samples: list[Samples]) -> Parameter:
    each = points(samples)
    if len(each.time_s) < LEAST_SIZES:
        return NotIdentified("not measured at enough sizes")
    return fit_line(each, each.keys[:, 0], _NO_SCALE).parameters(each.launches)[1]


def _alone(samples: list[Samples]) -> Parameter:
    """Return the parameter of one point."""
    each = points(samples)
    if not len(each.time_s):
        return _NOT_MEASURED
    return parameter(float(each.time_s[0]), each.replicates[:, 0], each.launches)


def _both_ways_of_sending(synchronous: Points, trips: Points) -> tuple[Points, Points]:
    """Return single round trips by synchronous and plain sends, of the sizes that have both."""
    if not len(synchronous.time_s) or not len(trips.time_s):
        return synchronous.of(synchronous.time_s < 0), synchronous.of(synchronous.time_s < 0)
    alone = trips.of((trips.keys[:, 1] == 1) & (trips.keys[:, 2] == 0))
    common = np.intersect1d(alone.keys[:, 0], synchronous.keys[:, 0])
    slow, plain = (each.of(np.isin(each.keys[:, 0], common)) for each in (synchronous, alone))
    return slow, plain


def _penalty(slow: Points, plain: Points) -> Parameter:
    """Return half of the extra time of a round trip by synchronous sends.

    The smaller half of the sizes counts.
    """
    if not len(slow.time_s):
        return NotIdentified("no synchronous round trips were measured")
    half = np.arange(len(slow.time_s)) < max(len(slow.time_s) // 2, 1)
    slow, plain = slow.of(half), plain.of(half)
    differences = Points(
        np.column_stack([plain.keys[:, 0], plain.time_s]),
        (slow.time_s - plain.time_s) / 2,
        (slow.replicates - plain.replicates) / 2,
        plain.launches,
    )
    return fit_line(differences, np.zeros(len(plain.time_s)), _NO_SCALE).parameters(plain.launches)[
        0
    ]


def _negligible_from(slow: Points, plain: Points) -> Parameter:
    """Return the measured size from which synchronous sends take less than NEGLIGIBLE longer."""
    if not len(slow.time_s):
        return NotIdentified("no synchronous round trips were measured")
    rows = np.vstack([slow.time_s / plain.time_s, slow.replicates / plain.replicates])
    longer = rows >= 1 + NEGLIGIBLE
    if longer[:, -1].any():
        return NotIdentified("1 % longer or more at the largest size, at least in some launch")
    first = np.where(longer.any(axis=1), longer.shape[1] - longer[:, ::-1].argmax(axis=1), 0)
    sizes = plain.keys[first, 0]
    return parameter(float(sizes[0]), sizes[1:], slow.launches)
