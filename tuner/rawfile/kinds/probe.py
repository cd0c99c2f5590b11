"""Probes, which measure parameters of the models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from tuner.domain.cases import ProbeLaunch
from tuner.domain.flat import columns, take
from tuner.domain.records import Header
from tuner.rawfile.kinds.kind import Kind, UnusableError
from tuner.rawfile.lines import NotNegative, Real, Seconds

if TYPE_CHECKING:
    from tuner.store.store import Store

SCOPES = ("on_socket", "on_node", "off_node")
"""Pairs of ranks: on one socket; on one node, but not known to share a socket; on two nodes."""

QUANTITIES = {
    "prtt": True,
    "prtt_synchronous": True,
    "mutual": True,
    "receive": True,
    "copy": False,
    "reduce": False,
    "ibarrier": False,
    "fence": False,
}
"""The quantities that probes measure, and whether each is of pairs of ranks and has a scope."""


class ProbeLine(msgspec.Struct, tag_field="record", tag="probe"):
    """One parameter's measurement at one size."""

    quantity: str
    samples_s: Annotated[list[Seconds], msgspec.Meta(min_length=1)]
    scope: str = ""
    pairs: Annotated[int, msgspec.Meta(ge=1, le=2**31)] = 1
    messages: Annotated[int, msgspec.Meta(ge=1, le=2**31)] = 1
    delay_s: Real = 0.0
    size_bytes: NotNegative = 0


class ProbeKey(NamedTuple):
    """The key of a probe; docs/reference/benchfile.md explains the fields."""

    quantity: str
    scope: str  # one of SCOPES, "" where there is no pair
    pairs: int  # at once
    messages: int
    delay_s: float
    size_bytes: int


class Probe(NamedTuple):
    """The samples of a probe in one launch: bytes of float32, in seconds."""

    key: ProbeKey
    samples: bytes


def _probe(line: ProbeLine, header: Header) -> Probe:
    paired = QUANTITIES.get(line.quantity)
    if paired is None:
        raise UnusableError(f"quantity {line.quantity} is not known here")
    if line.scope not in (SCOPES if paired else ("",)):
        raise UnusableError(f"{line.quantity} has no scope {line.scope!r}")
    key = ProbeKey(
        *(line.quantity, line.scope, line.pairs, line.messages, line.delay_s, line.size_bytes)
    )
    return Probe(key, np.array(line.samples_s, np.float32).tobytes())


KIND = Kind("probe", ProbeLine, _probe, lambda probe: len(probe.samples) // 4)


def stored(
    store: Store, system: str, campaign: str | None = None
) -> dict[ProbeLaunch, dict[ProbeKey, NDArray[np.float32]]]:
    """Return the samples in seconds of all probes of a system or campaign, launch by launch."""
    found: dict[ProbeLaunch, dict[ProbeKey, NDArray[np.float32]]] = {}
    frame = store.records(KIND.name, system, campaign)
    launches, keys = (frame[list(columns(kind))] for kind in (ProbeLaunch, ProbeKey))
    for launch, key, samples in zip(
        launches.itertuples(index=False, name=None),
        keys.itertuples(index=False, name=None),
        frame["samples"],
        strict=True,
    ):
        of_launch = found.setdefault(take(ProbeLaunch, iter(launch)), {})
        of_launch[ProbeKey(*key)] = np.frombuffer(samples, np.float32)
    return found
