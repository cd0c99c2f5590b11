"""Figures of a bench beside bars, printed, and kept as JSON with commit and machine."""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from tuner import atomic
from tuner.machine.directories import build_root
from tuner.machine.mpi import Mpi, available_cores, find_mpis
from tuner.paths import CHECKOUT

UNKNOWN = "unknown"
"""The commit where git cannot say it."""

PEERS = ("SWP_BENCH_MPI_ADVANCE", "SWP_BENCH_PETSC")
"""Variables that name the prefixes of libraries with which ours is compared."""


@dataclass(frozen=True)
class Figure:
    """One figure of a bench. Its bar is an upper or a lower bound; it may have none."""

    name: str
    value: float
    unit: str
    most: float | None = None
    least: float | None = None

    @property
    def bar(self) -> str:
        """Return the bar as text, "" for none."""
        if self.most is not None:
            return f"<= {self.most:g}"
        return "" if self.least is None else f">= {self.least:g}"

    @property
    def met(self) -> bool:
        """Return whether the bar is met; NaN meets none."""
        if self.most is not None:
            return self.value <= self.most
        return self.least is None or self.value >= self.least

    def as_json(self) -> dict[str, Any]:
        """Return the fields of the JSON file."""
        value = self.value if math.isfinite(self.value) else None
        own = {"name": self.name, "figure": value, "unit": self.unit}
        return own | {"bar": self.bar, "met": self.met if self.bar else None}

    def as_row(self, judged: bool) -> list[str]:
        """Return the row of a printed table."""
        result = ("ok" if self.met else "MISSED") if self.bar and judged else ""
        return [self.name, f"{self.value:.4g} {self.unit}".strip(), self.bar, result]


def options_of(
    parser: argparse.ArgumentParser, part: str, least: Mapping[str, Any]
) -> argparse.Namespace:
    """Parse the command line of a part, with the options that all parts have.

    `least` has the defaults of the smallest case, for `--least`.
    """
    parser.add_argument(
        "--least",
        action="store_true",
        help="the smallest case, to see that all runs; no bar counts",
    )
    parser.add_argument(
        "--json", type=Path, default=kept_at(part), help="where the figures go (%(default)s)"
    )
    options = parser.parse_args()
    if options.least:
        parser.set_defaults(**least)
        options = parser.parse_args()
    options.began = commit()
    return options


def raw_files(options: argparse.Namespace, part: str) -> Path:
    """Return a new directory for the raw files of a part, beside its figures."""
    options.json.parent.mkdir(parents=True, exist_ok=True)
    return Path(tempfile.mkdtemp(prefix=f"{part}-", dir=options.json.parent.absolute()))


def measured_mpis(options: argparse.Namespace, name: str | None = None) -> list[Mpi]:
    """Return the MPIs of this machine, or that of the name; for the smallest case one."""
    mpis = [mpi for mpi in find_mpis() if name in (None, mpi.name)]
    return mpis[:1] if options.least else mpis


def kept_at(part: str) -> Path:
    """Return the file of a part's figures."""
    return build_root() / "bench" / f"{part}.json"


def conclude(
    part: str, figures: Sequence[Figure], options: argparse.Namespace, skipped: str = ""
) -> int:
    """Print the figures beside their bars, and write them to `options.json`.

    skipped: what the machine lacks, so that something was not measured. Return 1 if a bar is missed
    or nothing was measured without such a reason, else 0.
    """
    if not figures:
        why = f"skipped: {skipped}" if skipped else "nothing was measured"
        print(f"{part}: {why}", file=sys.stderr)
        if not skipped:
            return 1
    judged, now = not options.least, commit()
    print_table([each.as_row(judged) for each in figures])
    document = {
        "part": part,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": sys.argv[1:],
        "judged": judged,
        "commit": options.began["commit"],
        "dirty": options.began["dirty"] or now != options.began,
        "machine": machine(),
        "figures": [each.as_json() for each in figures],
        "skipped": skipped,
    }
    options.json.parent.mkdir(parents=True, exist_ok=True)
    atomic.write(options.json, json.dumps(document, indent=1) + "\n")
    return int(judged and not all(each.met for each in figures))


def commit() -> dict[str, Any]:
    """Return the commit of the checkout, and whether files differ from it."""

    def said(*words: str) -> str:
        command = ["git", "-C", str(CHECKOUT), *words]
        return subprocess.run(command, capture_output=True, text=True).stdout.strip()

    return {"commit": said("rev-parse", "HEAD") or UNKNOWN, "dirty": bool(said("status", "-s"))}


def machine() -> dict[str, Any]:
    """Return the properties of the machine on which the figures depend."""
    return lasting() | {"load": round(os.getloadavg()[0], 2)}


def lasting() -> dict[str, Any]:
    """Return those properties that stay from one start to the next."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return {
        "cpu": models[0] if models else platform.machine(),
        "cores": available_cores(),
        "kernel": platform.release(),
        "mpi": [str(mpi) for mpi in find_mpis()],
        "peers": {name: os.environ.get(name, "") for name in PEERS},
    }


def print_table(rows: Sequence[Sequence[str]]) -> None:
    """Print rows of text in columns as wide as they need."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = (text.ljust(width) for text, width in zip(row, widths, strict=True))
        print("  ".join(cells).rstrip(), flush=True)
