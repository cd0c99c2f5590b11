"""Launches of overlap as raw files, of a machine that hides all communication but initiation."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests import raw, synthetic

PATTERN = "ft:rows=4,elements=256"
FULL_FLOPS = 8 * 5 * 256 * 8
METHODS = ("exchange:by=isend", "pencils:by=put")


def record(method: str, flops: int, samples: int = 5) -> dict[str, Any]:
    """Return a record: 1 Gflop/s, a tenth slower beside communication; 3 us of initiation."""
    alone_s = 1e-9 * flops
    parts_s = {"computation_s": 1.1 * alone_s, "initiation_s": 3e-6, "wait_s": 0, "barrier_s": 1e-6}
    lists = {
        "samples_s": [sum(parts_s.values())] * samples,
        **{name: [seconds] * samples for name, seconds in parts_s.items()},
        "alone_s": [alone_s] * samples,
    }
    sent = {"messages": 1, "message_bytes": 16384}
    what = {"record": "overlap", "method": method, "flops": flops, "full_flops": FULL_FLOPS}
    return what | sent | lists | {"verified": 2}


def write(directory: Path, launches: int = 2, methods: Iterable[str] = METHODS) -> list[Path]:
    """Write every launch, of the system that tests.probes measures, and return the files."""
    system = synthetic.Campaign(operation="overlap", cores=64)
    paths = []
    for launch in range(launches):
        records = [record(each, flops) for each in methods for flops in (0, FULL_FLOPS)]
        header = synthetic.header(system, launch, PATTERN, 2)
        paths.append(raw.write_launch(directory / f"overlap-{launch}.jsonl", header, records))
    return paths
