"""A store as large as a site's: many campaigns, millions of samples, written in seconds.

Cells are put into the store as `switchpoint ingest` would, without raw files between.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np

from tests import probes, synthetic
from tuner.domain.cases import Case, CellKey, Layout, ProbeKey, ProbeLaunch
from tuner.domain.records import PART, Cell, Features, Launch, System
from tuner.models.system import SystemModel, encode, fit
from tuner.rawfile import cells
from tuner.rawfile.kinds.soak import Soak, SoakKey
from tuner.selection import soaks
from tuner.selection.tuning import tune_missing
from tuner.store.cells import cell_row
from tuner.store.store import Store

SIZES = tuple(2**exponent for exponent in range(3, 21))
LAYOUTS = ((1, 2), (1, 16), (4, 16), (16, 16))  # nodes, processes on each
LAUNCHES = 6
LIBRARIES = (
    ("mpich", "MPICH Version: 4.1"),
    ("mpich", "MPICH Version: 4.2"),
    ("openmpi", "Open MPI v5.0.6"),
)
# Latency in units of the default's, and inverse bandwidth, so that the best changes with size.
METHODS = {
    "exchange": {
        "direct": (1.0, 1.0),
        "neighbor": (1.1, 0.98),
        "alltoallv": (1.4, 1.1),
        "nap": (0.8, 1.1),
        "stfw:dims=2": (0.55, 1.6),
        "stfw:dims=3": (0.42, 2.2),
    },
    "discovery": {
        "pex": (1.0, 1.0),
        "pcx": (0.9, 1.0),
        "rsx": (1.2, 1.0),
        "nbx": (0.6, 1.1),
        "dense": (1.5, 0.9),
    },
    "bcast": {"vendor": (1.0, 1.0), "binomial": (0.9, 1.5), "chain": (2.0, 0.8)},
    "allreduce": {"vendor": (1.0, 1.0), "hypercube": (0.8, 1.7), "rabenseifner": (1.3, 0.8)},
    "alltoall": {"vendor": (1.0, 1.0), "bruck": (0.5, 3.0), "pairwise": (1.1, 0.95)},
}
DEGREES = {"exchange": (3, 6), "discovery": (6,)}


@dataclass(frozen=True)
class Size:
    """The size of the store."""

    campaigns: int = 24
    samples: int = 10_000_000


def write(path: Path, size: Size, seed: int = 1) -> None:
    """Write the store, tune its systems and fit their models; each has its campaigns."""
    random = np.random.default_rng(seed)
    cells_each = sum(len(METHODS[name]) * len(DEGREES.get(name, (0,))) for name in METHODS)
    cells_each *= len(LAYOUTS) * len(SIZES)
    samples = max(6, size.samples // (size.campaigns * cells_each * LAUNCHES))
    with Store.open(path) as store:
        for number in range(size.campaigns):
            environment, library = LIBRARIES[number * len(LIBRARIES) // size.campaigns]
            day = date(2026, 1, 1) + timedelta(days=number)
            spec = synthetic.Campaign(
                system="cluster:cpu",
                environment=environment,
                name=f"{day:%Y%m%d}T000000Z",
                samples=samples,
                cores=16,
                day=day.isoformat(),
            )
            system = System(
                *(spec.system, environment, library, "4.0", "gcc 12.2.0", "Synthetic CPU", 16)
            )
            with store.transaction():
                _write_campaign(store, spec, system, number, random)
        _soak(store)
        tune_missing(store)
        fitted = model()
        with store.transaction():
            for name in store.systems()["system"]:
                store.put_model(name, encode(replace(fitted, system=name)))


def _soak(store: Store) -> None:
    """Let all methods pass on every system, in the first of its launches."""
    firsts = {launch.system: launch for launch in reversed(store.launches().values())}
    passed = [
        Soak(SoakKey(operation, "random:degree=6,seed=1", method, 8), soaks.ENOUGH, True, "")
        for operation, methods in METHODS.items()
        for method in methods
    ]
    with store.transaction():
        for system, launch in firsts.items():
            where = ProbeLaunch(system, launch.campaign, Layout(16, 1, 16, False), launch.id)
            store.put_records("soak", where, passed)


def _write_campaign(
    store: Store, spec: synthetic.Campaign, system: System, number: int, random: np.random.Generator
) -> None:
    launches = [number * LAUNCHES + launch for launch in range(LAUNCHES)]
    made = [
        cell
        for operation in METHODS
        for degree in DEGREES.get(operation, (0,))
        for nodes, ppn in LAYOUTS
        for cell in _case(spec, system, operation, degree, (nodes, ppn), launches, random)
    ]
    for index, launch in enumerate(launches):
        record = synthetic.header(spec, index, "random:degree=6,seed=1", 16)
        record |= {"mpi_library": system.mpi_library}
        started = f"{spec.day}T03:{index:02d}:00Z"
        samples = len(made) * spec.samples
        store.put_launch(
            system,
            Launch(
                *(launch, system.id, spec.name, index, started, "", f"{launch}.jsonl"),
                *(True, samples, "0123abc", "[]", json.dumps(record | {"date": started})),
            ),
        )
    summaries = cells.summaries(made)
    store.put_cells(cell_row(cell, row) for cell, row in zip(made, summaries, strict=True))


def _case(
    spec: synthetic.Campaign,
    system: System,
    operation: str,
    degree: int,
    layout: tuple[int, int],
    launches: list[int],
    random: np.random.Generator,
) -> Iterator[Cell]:
    """Yield all methods at all sizes; launches share a campaign's level, methods differ by 2 %."""
    nodes, ppn = layout
    procs = nodes * ppn
    pattern = f"random:degree={degree},seed=1" if degree else "blocks:root=0"
    latency_s = 5e-6 * procs**0.5
    for method, (latency, inverse) in METHODS[operation].items():
        for size in SIZES:
            level = latency_s * latency + 4e-10 * inverse * size
            levels = level * random.lognormal(0, 0.02, (len(launches), 1))
            samples = levels * random.lognormal(0, 0.05, (len(launches), spec.samples))
            parts = np.zeros(len(launches), PART)
            parts["number"], parts["launch"] = range(len(launches)), launches
            parts["samples"], parts["median_s"] = spec.samples, np.median(samples, axis=1)
            parts["plan_s"], parts["canary_s"] = 1e-5, 1e-6
            over = procs > spec.cores * nodes
            case = Case(operation, pattern, Layout(procs, nodes, ppn, over), "window", size, size)
            mean = float(degree)
            counts = {"mmax": degree, "mavg": mean, "vavg_bytes": mean * size * inverse}
            counted = json.dumps(counts if operation == "exchange" else {})
            yield Cell(
                CellKey(system.id, spec.name, case, method),
                Features(degree, mean, mean * size, degree * size, counted),
                parts,
                np.tile(np.arange(spec.samples, dtype=np.uint16), len(launches)),
                samples.astype(np.float32).ravel(),
            )


def model() -> SystemModel:
    """Return parameters that were fitted to two layouts' probes."""
    spec = probes.ProbeCampaign()
    random = np.random.default_rng(spec.seed)
    launches = {}
    for number in range(spec.launches):
        launch = ProbeLaunch("", "20260101T000000Z", Layout(16, 2, 8, False), number)
        launches[launch] = {
            ProbeKey(**(_KEY | each)): probes.noisy(
                random, true_s, spec.samples, spec.noise
            ).astype(np.float32)
            for each, true_s in probes.probes(spec, number)
        }
    return fit([launches])


_KEY: dict[str, Any] = {"scope": "", "pairs": 1, "messages": 1, "delay_s": 0.0}
