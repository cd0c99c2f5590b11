"""Campaigns with a known truth, written as raw files in the form of docs/reference/benchfile.md."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from tests import raw
from tuner.rawfile import reading
from tuner.rawfile.ingest import ingest
from tuner.selection.tuning import tune_missing
from tuner.store.store import Store

Times = Callable[[str, int], float]
"""The true seconds of a method at a message size."""

LATENCY_S = {"direct": 4e-6, "stfw:dims=2": 2e-6, "neighbor": 4.4e-6, "alltoallv": 9e-6}
PER_BYTE_S = {"direct": 1e-9, "stfw:dims=2": 2e-9, "neighbor": 1e-9, "alltoallv": 1.5e-9}
BCAST_LATENCY_S = {"vendor": 5e-6, "binomial": 3e-6, "orthogonal:grid=2x1": 6e-6}
DISCOVERY_LATENCY_S = {"pex": 6e-6, "pcx": 7e-6, "rsx": 12e-6, "nbx": 4e-6}


def exchange_times(method: str, size: int) -> float:
    """Return times with which stfw wins below 2 KB, direct above; neighbor and alltoallv never."""
    return LATENCY_S[method] + PER_BYTE_S[method] * size


def discovery_times(method: str, size: int) -> float:
    """Return times with which nbx wins everywhere."""
    return DISCOVERY_LATENCY_S[method] + 1e-9 * size


BLOCKS = ("blocks:root=0", 0, 0.0)
"""The pattern of collectives."""


def bcast_times(method: str, size: int) -> float:
    """Return times with which binomial wins up to 4 KB, vendor above."""
    return BCAST_LATENCY_S[method] + (1e-9 if method == "binomial" else 5e-10) * size


@dataclass(frozen=True)
class Campaign:
    """The parameters of a synthetic campaign. Noise and drift are relative."""

    system: str = "local:cpu"
    environment: str = "mpich"
    name: str = "20261121T034500Z"
    operation: str = "exchange"
    patterns: Sequence[tuple[str, int, float]] = (("random:degree=6,seed=1", 6, 5.5),)
    procs: Sequence[int] = (2,)
    cores: int = 2
    sizes: Sequence[int] = (8, 64, 512, 4096, 32768)
    methods: Sequence[str] = tuple(LATENCY_S)
    times: Times = exchange_times
    launches: int = 6
    samples: int = 40
    sample_noise: float = 0.05
    launch_noise: float = 0.01
    heavy_tails: bool = False  # of launches: t-distributed, with 4 degrees of freedom
    drift: float = 0.0  # from a launch's first sample to its last
    seed: int = 1
    sync: str = "window"
    mpi_library: str = "MPICH Version: 5.0.2"
    day: str = "2026-11-21"
    host: str = "node0"
    cpu_model: str = "Synthetic CPU"


def of_discovery(campaign: Campaign) -> Campaign:
    """Return the campaign with discoveries in place of its operation."""
    methods = tuple(DISCOVERY_LATENCY_S)
    return replace(campaign, operation="discovery", methods=methods, times=discovery_times)


def of_bcast(campaign: Campaign) -> Campaign:
    """Return the campaign with broadcasts in place of its operation."""
    methods = tuple(BCAST_LATENCY_S)
    its = replace(campaign, operation="bcast", methods=methods, times=bcast_times)
    return replace(its, patterns=(BLOCKS,))


def header(spec: Campaign, launch: int, pattern: str, procs: int) -> dict[str, Any]:
    """Return the header record of one launch."""
    return {
        "record": "header",
        "schema": 1,
        "program": "swpbench 0.1.0",
        "system": spec.system,
        "environment": spec.environment,
        "campaign": spec.name,
        "launch": launch,
        "date": f"{spec.day}T03:{launch // 60:02d}:{launch % 60:02d}Z",
        "hostnames": [spec.host],
        "cpu_model": spec.cpu_model,
        "cores": spec.cores,
        "mpi_library": spec.mpi_library,
        "mpi_standard": "4.1",
        "compiler": "gcc 12.2.0",
        "flags": "-O2",
        "commit": "0123abc",
        "operation": spec.operation,
        "pattern": pattern,
        "procs": procs,
        "nodes": 1,
        "ppn": procs,
        "oversubscribed": procs > spec.cores,
        "yield": "",
        "binding": "0-1",
        "seed": spec.seed,
        "sync": spec.sync,
        "clock": {"name": "CLOCK_MONOTONIC", "tick_s": 2.5e-8},
        "load": [0.1, 0.2, 0.3],
        "buffers": "warm",
        "budget_s": 0,
    }


def block(
    spec: Campaign, random: np.random.Generator, pattern: tuple[str, int, float], size: int
) -> list[dict[str, Any]]:
    """Return the case records of all methods at one size, in rounds that the drift hits alike."""
    n = spec.samples
    drift = 1 + spec.drift * np.arange(n) / max(n - 1, 1)
    canary = (1e-6 * random.lognormal(0, 0.05, n)).tolist()
    order = random.permuted(np.tile(np.arange(len(spec.methods)), (n, 1)), axis=1)
    sent = {"mmax": pattern[1], "mavg": pattern[2], "vavg_bytes": pattern[2] * size}
    records = []
    for index, method in enumerate(spec.methods):
        launch = random.standard_t(4) if spec.heavy_tails else random.standard_normal()
        level = spec.times(method, size) * math.exp(spec.launch_noise * launch)
        samples = level * drift * random.lognormal(0, spec.sample_noise, n)
        records.append(
            {
                "record": "case",
                "method": method,
                "size_bytes": size,
                "bytes": size,
                "features": sent | {"vmax_bytes": pattern[1] * size},
                "statistics": {"stages": 1, **sent} if spec.operation == "exchange" else {},
                "inner": 1,
                "samples_s": [float(f"{sample:.9e}") for sample in samples],
                "argmax_rank": random.integers(0, 2, n).tolist(),
                "round": list(range(n)),
                "position": np.argmax(order == index, axis=1).tolist(),
                "late": [0] * n,
                "skew_s": [1e-8] * n,
                "canary_s": canary,
                "plan_s": [1e-5, 1.1e-5, 1.2e-5],
                "verified": 2,
            }
        )
        if spec.operation == "spmv":
            records[-1] |= {
                "communication_s": [0.75 * sample for sample in records[-1]["samples_s"]],
                "local_s": [0.5 * sample for sample in records[-1]["samples_s"]],
            }
    return records


def write(results: Path, spec: Campaign) -> list[Path]:
    """Write every launch of a campaign below `results` and return the files."""
    random = np.random.default_rng(spec.seed)
    folder = results / f"{spec.system.replace(':', '-')}-{spec.environment}" / spec.name
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for procs in spec.procs:
        for number, pattern in enumerate(spec.patterns):
            for launch in range(spec.launches):
                cases = [
                    record for size in spec.sizes for record in block(spec, random, pattern, size)
                ]
                path = folder / f"{spec.operation}-p{procs}-{number}-{launch}.jsonl"
                its = header(spec, launch, pattern[0], procs)
                paths.append(raw.write_launch(path, its, cases))
    return paths


def change_record(path: Path, **fields: Any) -> list[str]:
    """Change the first record of a raw file; return the problems of reading it.

    None takes a field away.
    """
    lines = path.read_text().splitlines()
    record = json.loads(lines[1]) | fields
    lines[1] = json.dumps({key: value for key, value in record.items() if value is not None})
    path.write_text("\n".join(lines) + "\n")
    return [problem.message for problem in reading.read(path).problems]


def write_upgrade(results: Path, factor: float) -> tuple[str, str]:
    """Write the campaigns before and after an upgrade of the MPI; return their names.

    Discoveries take `factor` times as long after it, exchanges and broadcasts as long as before.
    """
    before = Campaign(name="20260101T000000Z", samples=20, day="2026-01-01")
    after = replace(
        before, name="20260201T000000Z", mpi_library="MPICH Version: 5.0.3", day="2026-02-01"
    )
    for number, (campaign, slower) in enumerate(((before, 1), (after, factor))):

        def slowed(method: str, size: int, slower: float = slower) -> float:
            return slower * discovery_times(method, size)

        write(results, replace(campaign, seed=10 * number + 1))
        write(results, replace(of_discovery(campaign), times=slowed, seed=10 * number + 2))
        write(results, replace(of_bcast(campaign), seed=10 * number + 3))
    return before.name, after.name


def tuned_store(results: Path) -> Path:
    """Ingest the raw files below `results`, and tune; return the store."""
    path = results / "switchpoint.db"
    ingest(path, [results])
    with Store.open(path) as store:
        tune_missing(store)
    return path


def write_store(path: Path) -> None:
    """Write a small store of the present version, for tests of the ones that follow."""
    with TemporaryDirectory() as place:
        ingest(path, write(Path(place), Campaign(launches=1, sizes=(8,))))


if __name__ == "__main__":
    write_store(Path(sys.argv[1]))
