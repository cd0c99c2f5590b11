"""The parameters of networks: published ones, and those fitted to a real system.

A message of s bytes takes twice the overhead, once on each side, plus the latency and
s / bytes_per_s; all messages on a link share its rate. On the node each message has the whole rate
of the memory: SimGrid's loopback is not shared. Protocols scale latency and rate there by the
factors that they have between nodes, as SMPI knows no others.
"""

import re
from importlib.resources import files
from pathlib import Path
from typing import Annotated

import msgspec

from tuner import atomic
from tuner.errors import SwitchpointError
from tuner.files import read_json, shown
from tuner.paths import results_directory

NAME = r"[a-z][a-z0-9]*"
GENERIC = "generic"

_Positive = Annotated[float, msgspec.Meta(gt=0)]
_Seconds = Annotated[float, msgspec.Meta(ge=0)]


class NetworkError(SwitchpointError):
    """Error raised when a network is missing or its file is unusable; the message says why."""


class Protocol(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Messages from a size on. The latency is that between nodes, averaged over pairs."""

    from_bytes: Annotated[int, msgspec.Meta(ge=0)]
    overhead_s: _Seconds  # of each send, and of each receive
    latency_s: _Seconds
    bytes_per_s: _Positive  # of one process


class Network(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Protocols by increasing size, links, and messages on the node beyond their overheads."""

    source: str
    protocols: Annotated[list[Protocol], msgspec.Meta(min_length=1)]
    link_bytes_per_s: _Positive
    on_node_latency_s: _Seconds  # of the first protocol
    on_node_bytes_per_s: _Positive  # of the fastest protocol

    def __post_init__(self) -> None:
        """Raise ValueError where protocols have no order, or no latency to compare others with."""
        sizes = [each.from_bytes for each in self.protocols]
        if sizes[0] != 0 or sizes != sorted(set(sizes)):
            raise ValueError("protocols must begin at 0 bytes and increase")
        if self.protocols[0].latency_s == 0 and any(each.latency_s for each in self.protocols):
            raise ValueError("the first protocol has no latency, but a later one has")

    @property
    def latency_factors(self) -> list[float]:
        """Return the latency of each protocol over that of the first."""
        first_s = self.protocols[0].latency_s
        return [each.latency_s / first_s if first_s else 1.0 for each in self.protocols]

    @property
    def rate_factors(self) -> list[float]:
        """Return the rate of each protocol over that of a link, which is the most."""
        return [min(each.bytes_per_s / self.link_bytes_per_s, 1.0) for each in self.protocols]


def network(name: str) -> Network:
    """Return the network of a name, a published one or else one of `keep`. Raise NetworkError."""
    found = published()
    if name in found:
        return found[name]
    path = _path(name)
    try:
        return read_json(path, Network)
    except FileNotFoundError as error:
        names = ", ".join([*found, *kept()])
        raise NetworkError(f"no network {name!r}; available: {names}") from error
    except ValueError as error:
        raise NetworkError(
            f"{shown(path)}: not a network: {error}; delete it, and make it again with "
            "`switchpoint network create`"
        ) from error


def published() -> dict[str, Network]:
    """Return the networks that come with this program; each names its source."""
    text = files(__package__).joinpath("networks.json").read_bytes()
    return msgspec.json.decode(text, type=dict[str, Network])


def kept() -> list[str]:
    """Return the names of the networks that `keep` wrote."""
    return sorted(path.stem for path in _path("x").parent.glob("*.json"))


def keep(name: str, parameters: Network) -> Path:
    """Write a network where `network` finds it. Raise NetworkError."""
    if not re.fullmatch(NAME, name) or name in published():
        raise NetworkError(
            f"{name!r} cannot name a network: use small letters and digits, and none of "
            f"{', '.join(published())}"
        )
    path = _path(name)
    atomic.write(path, msgspec.json.format(msgspec.json.encode(parameters), indent=1) + b"\n")
    return path


def _path(name: str) -> Path:
    return results_directory() / "networks" / f"{name}.json"
