"""Profiles of an application on two ranks."""

import json
from collections.abc import Sequence
from io import BytesIO
from typing import Any

from tuner.advice import recorded
from tuner.advice.profile import Profile

RUN_S, EACH_S, CALLS = 1.0, 1e-3, 500
SAMPLES = [[number, 10.0 + number, EACH_S, 0] for number in range(5)]
GROUP = {"group": 0, "members": "a", "procs": 2, "nodes": 1, "ppn": 2, "samples": SAMPLES}


def tally(call: str, bytes_: int, seconds: float, group: int = 0) -> dict[str, Any]:
    """Return calls of one function in all."""
    own = {"call": call, "group": group, "type": "MPI_INT", "bytes": bytes_}
    return own | {"calls": CALLS, "seconds": seconds}


def content(*calls: dict[str, Any], late_s: Sequence[float] = (0.0, 0.0)) -> bytes:
    """Return the profile of two ranks, each of which reaches its calls so late."""
    lines = []
    for rank, late in enumerate(late_s):
        samples = [
            [number, at + late, max(took - late, 0.0), of] for number, at, took, of in SAMPLES
        ]
        groups = [GROUP | {"samples": samples}]
        own = {"profile": 1, "rank": rank, "procs": 2, "finalized": True, "program": "app"}
        own |= {"node": "n", "seconds": RUN_S, "lost": 0, "calls": calls, "groups": groups}
        lines.append(json.dumps(own))
    return "\n".join(lines).encode()


def parse(text: bytes) -> Profile:
    """Return the profile of a file with this text."""
    return recorded.parse(BytesIO(text))


LINE = content(tally("Bcast", 8, 0.1)).splitlines()[0]
"""The profile of a program with one call."""
