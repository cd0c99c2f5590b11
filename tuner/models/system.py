"""The parameters of a system: one document that is fitted, stored, shown and predicted with."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from tuner.domain.cases import SCOPES, ProbeKey, ProbeLaunch
from tuner.machine.simulation.topologies import KINDS
from tuner.models import loggp, maxrate
from tuner.models.loggp import LogGP, Samples
from tuner.models.maxrate import MaxRate
from tuner.models.parameter import NOT_SIGNIFICANT, Natural, NotIdentified, Parameter
from tuner.models.points import PointKey, Points, points
from tuner.models.singles import extra, negligible_from, once, per_byte, single, singles

ProbeLaunches = Mapping[ProbeLaunch, Mapping[ProbeKey, NDArray[np.float32]]]

Probes = Sequence[Mapping[ProbeKey, NDArray[np.float32]]]
"""The samples of each launch."""

_NOT_SIGNIFICANT_BEFORE = "not told from zero by these data"
"""The words that stored models may have for NOT_SIGNIFICANT."""

_TRIP = ("size_bytes", "messages", "delay_s")


@dataclass(frozen=True, slots=True)
class ProbedLayout:
    """The layout that probes were measured on."""

    nodes: Natural
    ppn: Natural
    oversubscribed: bool
    launches: Natural


@dataclass(frozen=True, slots=True)
class PairModel:
    """The parameters of one kind of pair of ranks, in seconds and bytes."""

    layout: ProbedLayout
    loggp: LogGP | NotIdentified
    maxrate: MaxRate | NotIdentified
    synchronous: Parameter = single("prtt_synchronous", extra, "synchronous send {scope} us")
    synchronous_from: Parameter = single(
        "prtt_synchronous", negligible_from, "synchronous send {scope} below 1 % from KiB"
    )


@dataclass(frozen=True, slots=True)
class Links:
    """The links of a network with known routes, named as in tuner/machine/simulation."""

    kind: str
    sizes: tuple[Natural, ...]

    @property
    def are_possible(self) -> bool:
        """Return whether such a network can exist."""
        return self.kind in KINDS and not KINDS[self.kind](self.sizes).check()


@dataclass(frozen=True, slots=True)
class SystemModel:
    """The parameters fitted to a campaign's probes, in seconds and bytes."""

    system: str
    campaign: str
    samples: Natural
    pairs: dict[str, PairModel]  # by scope
    copying: Parameter = single("copy", per_byte, "copying ns/B")
    reducing: Parameter = single("reduce", per_byte, "reducing ns/B")
    barrier: Parameter = single("ibarrier", once, "MPI_Ibarrier of {together} ranks us")
    fence: Parameter = single("fence", once, "MPI_Win_fence of {together} ranks us")
    together: Natural = 0  # ranks of what all of them do at once
    cores: Natural = 0  # cores of a node; parameters do not hold for more ranks. 0: not known
    shares_cores: bool = False  # nodes share them, so parameters do not hold for several nodes
    links: Links | None = None  # of a simulated machine


QUANTITIES = dict.fromkeys(("prtt", "mutual", "receive"), True) | {
    each.quantity: of is PairModel
    for of in (PairModel, SystemModel)
    for each in singles(of).values()
}
"""The quantities that probes measure, and whether each is of pairs of ranks and has a scope."""


def fit(layouts: Sequence[ProbeLaunches]) -> SystemModel:
    """Fit the probes of one campaign, the launches of each layout apart; there is at least one.

    Each scope is fitted to the first layout that has it. Raise ModelError for invalid times.
    """
    where = next(iter(layouts[0]))
    of_scope: dict[str, ProbeLaunches] = {}
    for launches in layouts:
        for scope in {key.scope for launch in launches.values() for key in launch}:
            of_scope.setdefault(scope, launches)
    used = {id(launches): launches for launches in of_scope.values()}.values()
    alone = of_scope.get("", layouts[0])
    return SystemModel(
        system=where.system,
        campaign=where.campaign,
        samples=sum(
            len(its) for each in used for launch in each.values() for its in launch.values()
        ),
        pairs={scope: _pair(of_scope[scope], scope) for scope in SCOPES if scope in of_scope},
        together=next(iter(alone)).layout.procs,
        **_singles(SystemModel, list(alone.values()), "", points([])),
    )


def encode(model: SystemModel) -> str:
    """Encode a model as JSON, for the store."""
    return msgspec.json.encode(model).decode()


def decode(text: str) -> SystemModel:
    """Decode the text made by `encode`.

    Raise msgspec.MsgspecError or RecursionError for anything else.
    """
    text = text.replace(_NOT_SIGNIFICANT_BEFORE, NOT_SIGNIFICANT)
    model = msgspec.json.decode(text, type=SystemModel)
    swept = [its.maxrate for its in model.pairs.values() if isinstance(its.maxrate, MaxRate)]
    possible = [each.rates.are_possible for its in swept for each in its.protocols]
    if not all(possible) or (model.links and not model.links.are_possible):
        raise msgspec.ValidationError("no network has such rates or links")
    return model


def _pair(launches: ProbeLaunches, scope: str) -> PairModel:
    layout = next(iter(launches)).layout
    probes = list(launches.values())
    trips = _aligned(_samples(probes, "prtt", scope, *_TRIP, pairs=1))
    mutual = _samples(probes, "mutual", scope, *_TRIP)
    sweeps = _samples(probes, "prtt", scope, "size_bytes", "pairs", messages=1, delay_s=0)
    return PairModel(
        layout=ProbedLayout(layout.nodes, layout.ppn, layout.oversubscribed, len(launches)),
        loggp=loggp.fit(trips, _of_one_pair(probes, "receive", scope), mutual),
        maxrate=maxrate.fit([{key: v / 2 for key, v in launch.items()} for launch in sweeps]),
        **_singles(PairModel, probes, scope, loggp.of_one_message(points(trips))),
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
        moved: dict[PointKey, NDArray[Any]] = {key: launch[key] for key in launch if not key[2]}
        for (size, messages), delay_s in own.items():
            common_s = max(each.get((size, messages), 0.0) for each in delays)
            later_s = (messages - 1) * (common_s - delay_s)
            moved[size, messages, common_s] = launch[size, messages, delay_s] + later_s
        aligned.append(moved)
    return aligned


def _longest_delays(launch: Samples) -> dict[tuple[float, float], float]:
    """Return the longest delays by bytes and messages.

    Only delays that are no shorter than the launch's round trip count.
    """
    longest: dict[tuple[float, float], float] = {}
    for size, messages, delay_s in launch:
        alone = launch.get((size, 1, 0.0))
        if delay_s and alone is not None and delay_s >= np.median(alone):
            longest[size, messages] = max(longest.get((size, messages), 0.0), delay_s)
    return longest


def _samples(probes: Probes, quantity: str, scope: str, *by: str, **of: float) -> list[Samples]:
    """Return the samples of a quantity by these fields of their keys, where others are as `of`."""
    return [
        {
            tuple(getattr(key, name) for name in by): samples
            for key, samples in launch.items()
            if (key.quantity, key.scope) == (quantity, scope)
            and all(getattr(key, name) == value for name, value in of.items())
        }
        for launch in probes
    ]


def _of_one_pair(probes: Probes, quantity: str, scope: str) -> list[Samples]:
    """Return the samples by (bytes,) of one message at a time."""
    return _samples(probes, quantity, scope, "size_bytes", pairs=1, messages=1)


def _singles(model: type, probes: Probes, scope: str, plain: Points) -> dict[str, Any]:
    """Return the single parameters of a model's dataclass; `plain` are its plain round trips."""
    return {
        name: each.fit(points(_of_one_pair(probes, each.quantity, scope)), plain)
        for name, each in singles(model).items()
    }
