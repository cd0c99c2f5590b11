"""Time and memory to add a campaign to a store, as it grows to many campaigns.

Campaigns are ingested one after the other, each by a command of its own; the times and the peaks of
memory of the last tenth are set beside those of the first. The store must be sound at the end.
Run from the checkout: python -m tests.bench.store_growth
"""

from __future__ import annotations

import argparse
import json
import sqlite3
import sys
import tempfile
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

from tests import synthetic
from tests.bench.report import Figure, conclude, options_of
from tests.bench.tuner_speed import run

LAUNCHES = 25  # of a campaign
CAMPAIGN = synthetic.Campaign(samples=1000)
BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
TIME, MEMORY = 1.5, 1.2


def write_campaign(directory: Path, number: int, records: list[str]) -> None:
    """Write the launches of a campaign, all of the same samples."""
    name = (BEGIN + timedelta(hours=number)).strftime("%Y%m%dT%H%M%SZ")
    spec = replace(CAMPAIGN, name=name)
    for launch in range(LAUNCHES):
        header = synthetic.header(spec, launch, spec.patterns[0][0], spec.procs[0])
        lines = [json.dumps(header), *records]
        (directory / f"{launch}.jsonl").write_text("".join(f"{line}\n" for line in lines))


def launch_records() -> tuple[list[str], int]:
    """Return the records of a launch after its header, as lines, and how many samples they hold."""
    random = np.random.default_rng(1)
    pattern = CAMPAIGN.patterns[0]
    cases = [
        record
        for size in CAMPAIGN.sizes
        for record in synthetic.block(CAMPAIGN, random, pattern, size)
    ]
    samples = len(cases) * CAMPAIGN.samples
    end = {"record": "end", "cases": len(cases), "samples": samples, "seconds": 1.0, "skipped": []}
    return [json.dumps(record) for record in (*cases, end)], samples


def main() -> int:
    """Ingest campaigns, and print figures beside their bars."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--campaigns", type=int, default=200, help="(%(default)s)")
    options = options_of(parser, "store_growth", {"campaigns": 2})
    (records, of_launch), ended = launch_records(), []
    samples = options.campaigns * LAUNCHES * of_launch
    with tempfile.TemporaryDirectory(prefix="switchpoint-growth-") as place:
        database, raw = Path(place, "switchpoint.db"), Path(place, "raw")
        raw.mkdir()
        for number in range(options.campaigns):
            write_campaign(raw, number, records)
            ended.append(run("ingest", raw, "--database", database))
        size_bytes = database.stat().st_size
        with sqlite3.connect(database) as store:
            sound = store.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            (held,) = store.execute("SELECT SUM(samples) FROM launch").fetchone()
    assert sound and held == samples, f"{held} of {samples} samples are held"
    tenth = max(options.campaigns // 10, 1)
    times_s, peaks_bytes = np.array(ended).T
    figures = [
        Figure("samples held", samples / 1e6, "million"),
        Figure("the store", size_bytes / 2**20, "MiB"),
        Figure(
            "time of ingest, last tenth / first",
            float(np.median(times_s[-tenth:]) / np.median(times_s[:tenth])),
            "",
            most=TIME,
        ),
        Figure(
            "memory of ingest, last tenth / first",
            float(peaks_bytes[-tenth:].max() / peaks_bytes[:tenth].max()),
            "",
            most=MEMORY,
        ),
        Figure("memory of ingest", peaks_bytes.max() / 2**20, "MiB"),
    ]
    return conclude("store_growth", figures, options)


if __name__ == "__main__":
    sys.exit(main())
