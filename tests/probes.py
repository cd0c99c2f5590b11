"""Launches of probes on a machine whose parameters are known, as samples and as raw files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tests import raw, synthetic

OCTAVES = tuple(2**k for k in range(21))
SIZES = tuple(sorted((*OCTAVES, *(3 * 2**k for k in range(1, 19)))))


@dataclass(frozen=True)
class TrueProtocol:
    """The truth of messages up to a size: seconds, and bytes per second."""

    up_to_bytes: float
    latency_s: float
    overhead_s: float  # of sending and of receiving
    gap_s: float
    per_byte_s: float
    b_inj: float = 0.0
    b_node: float = np.inf

    @property
    def alpha_s(self) -> float:
        """Return the time of one message alone."""
        return self.latency_s + 2 * self.overhead_s


@dataclass(frozen=True)
class Noise:
    """Relative, log-normal noise of samples and launches; outliers are factors between 2 and 10."""

    samples: float = 0.1
    outliers: float = 0.05
    launches: float = 0.0


def protocol_of(truth: Sequence[TrueProtocol], size: float) -> TrueProtocol:
    return next(each for each in truth if size <= each.up_to_bytes)


def round_trip_s(
    truth: Sequence[TrueProtocol], size: int, messages: int = 1, delay_s: float = 0, pairs: int = 1
) -> float:
    """Return PRTT(n, d, s); several pairs at once share the node by the max-rate model."""
    its = protocol_of(truth, size)
    rate = min(its.b_node, 1 / its.per_byte_s + (pairs - 1) * its.b_inj)
    alone = 2 * (its.alpha_s + pairs * (size - 1) / rate)
    step = max(its.overhead_s + delay_s, its.gap_s + (size - 1) * its.per_byte_s)
    return alone + (messages - 1) * step


CROSSING = 1.25
"""The factor by which a message takes longer while one comes the other way."""


def loaded_s(truth: Sequence[TrueProtocol], size: int) -> float:
    """Return the time of a further message while all ranks send and receive.

    g and G are three times as long.
    """
    its = protocol_of(truth, size)
    return 3 * (its.gap_s + (size - 1) * its.per_byte_s)


def noisy(random: np.random.Generator, true_s: float, count: int, noise: Noise) -> np.ndarray:
    values = true_s * random.lognormal(0, noise.samples, count)
    disturbed = random.random(count) < noise.outliers
    values[disturbed] *= random.uniform(2, 10, disturbed.sum())
    return values


Truth = dict[str, Sequence[TrueProtocol]]  # by scope

LAPTOP: Truth = {
    "on_node": (
        TrueProtocol(4096, 4e-7, 1e-7, 2e-7, 2e-10),
        TrueProtocol(np.inf, 9e-7, 2e-7, 5e-7, 1e-10),
    )
}
CLUSTER: Truth = LAPTOP | {
    "off_node": (
        TrueProtocol(8192, 2e-6, 5e-7, 8e-7, 1e-9, b_inj=5e8),
        TrueProtocol(np.inf, 5e-6, 8e-7, 1.5e-6, 4e-10, b_inj=1.25e9, b_node=7e9),
    )
}


@dataclass(frozen=True)
class ProbeCampaign:
    """The parameters of a synthetic campaign of probes."""

    truth: Truth = field(default_factory=lambda: CLUSTER)
    sizes: Sequence[int] = OCTAVES
    pairs: Sequence[int] = (1, 2, 3, 4, 6, 8)
    launches: int = 5
    samples: int = 30
    noise: Noise = Noise()
    name: str = "20261121T034500Z"
    date: str = "2026-11-21T03:45:00Z"
    oversubscribed: bool = False
    copy_s_per_byte: float = 1e-10
    reduce_s_per_byte: float = 3e-10
    synchronous_s: float = 1.5e-6
    barrier_s: float = 4e-6
    seed: int = 1


def probes(spec: ProbeCampaign, launch: int) -> Iterator[tuple[dict[str, Any], float]]:
    """Yield every probe of a launch without its samples, and its true seconds."""
    for size in spec.sizes:
        for quantity, per_byte_s in (
            ("copy", spec.copy_s_per_byte),
            ("reduce", spec.reduce_s_per_byte),
        ):
            yield {"quantity": quantity, "size_bytes": size}, 2e-8 + per_byte_s * size
        for scope, truth in spec.truth.items():
            where = {"scope": scope, "size_bytes": size}
            trip = round_trip_s(truth, size)
            for pairs in spec.pairs if scope == "off_node" else (1,):
                each = {"quantity": "prtt", "pairs": pairs} | where
                yield each, round_trip_s(truth, size, pairs=pairs)
            flood = {"quantity": "prtt", "messages": 16} | where
            yield flood, round_trip_s(truth, size, 16)
            delay_s = (1.5 + 0.01 * launch) * trip  # as launches measure other round trips
            yield flood | {"delay_s": delay_s}, round_trip_s(truth, size, 16, delay_s)
            yield {"quantity": "receive"} | where, protocol_of(truth, size).overhead_s
            yield {"quantity": "prtt_synchronous"} | where, trip + 2 * spec.synchronous_s
            for messages in (1, 16):
                load = {"quantity": "mutual", "pairs": max(spec.pairs), "messages": messages}
                yield load | where, CROSSING * trip / 2 + (messages - 1) * loaded_s(truth, size)
    yield {"quantity": "ibarrier", "size_bytes": 0}, spec.barrier_s
    yield {"quantity": "fence", "size_bytes": 0}, 2 * spec.barrier_s


def header(spec: ProbeCampaign, launch: int) -> dict[str, Any]:
    nodes = 2 if "off_node" in spec.truth else 1
    ppn = max(spec.pairs)
    cores = synthetic.Campaign(operation="probe", name=spec.name, cores=64)
    return synthetic.header(cores, launch, "pairs", nodes * ppn) | {
        "nodes": nodes,
        "ppn": ppn,
        "date": spec.date,
        "oversubscribed": spec.oversubscribed,
    }


def write(directory: Path, spec: ProbeCampaign) -> list[Path]:
    """Write every launch of a campaign and return the files."""
    random = np.random.default_rng(spec.seed)
    paths = []
    for launch in range(spec.launches):
        level = random.lognormal(0, spec.noise.launches)
        records = [
            {"record": "probe"}
            | each
            | {"samples_s": noisy(random, level * true_s, spec.samples, spec.noise).tolist()}
            for each, true_s in probes(spec, launch)
        ]
        path = directory / f"probe-{spec.name}-{'-'.join(spec.truth)}-{launch}.jsonl"
        paths.append(raw.write_launch(path, header(spec, launch), records))
    return paths


ProbeSamples = dict[tuple[float, ...], np.ndarray]


def round_trips(
    truth: Sequence[TrueProtocol],
    noise: Noise,
    seed: int,
    launches: int = 1,
    sizes: Sequence[int] = SIZES,
) -> list[ProbeSamples]:
    """Return PRTT by (bytes, messages, delay) of each launch: alone, in floods, and delayed."""
    random = np.random.default_rng(seed)
    points = [
        (size, messages, delays * round_trip_s(truth, size))
        for size in sizes
        for messages, delays in ((1, 0), (16, 0), (16, 1.5))
    ]
    return [
        {point: noisy(random, round_trip_s(truth, *point), 30, noise) for point in points}
        for _ in range(launches)
    ]


def receives(
    truth: Sequence[TrueProtocol],
    noise: Noise,
    seed: int,
    launches: int = 1,
    sizes: Sequence[int] = SIZES,
) -> list[ProbeSamples]:
    """Return the seconds of late receives by (bytes,)."""
    random = np.random.default_rng(seed)
    return [
        {(s,): noisy(random, protocol_of(truth, s).overhead_s, 30, noise) for s in sizes}
        for _ in range(launches)
    ]


def one_way(
    time_s: Callable[[int, int], float],
    noise: Noise,
    seed: int,
    launches: int = 1,
    sizes: Sequence[int] = SIZES,
    pairs: Sequence[int] = tuple(range(1, 17)),
    samples: int = 30,
) -> list[ProbeSamples]:
    """Return the seconds of a message by (bytes, pairs)."""
    random = np.random.default_rng(seed)
    levels = [random.lognormal(0, noise.launches) for _ in range(launches)]
    return [
        {
            (size, p): noisy(random, level * time_s(size, p), samples, noise)
            for size in sizes
            for p in pairs
        }
        for level in levels
    ]
