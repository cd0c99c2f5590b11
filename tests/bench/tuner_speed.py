"""How fast `switchpoint ingest` and `switchpoint tune` are, whole commands, start-up included, and
how fast parameters are fitted to samples in memory.

Prints the figures beside their targets and exits with 1 when one is missed. The raw files are
synthetic, in the form and of the sizes that swpbench writes: 20 to 200 samples a case.
Run from the checkout: python -m tests.bench.tuner_speed
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from tests import probes, synthetic
from tuner.models import maxrate

FACTORS = {"direct": 1.0, "neighbor": 0.9} | {f"stfw:dims={n}": 1 + n / 10 for n in range(2, 8)}
CAMPAIGN = synthetic.Campaign(
    methods=tuple(FACTORS),
    times=lambda method, size: FACTORS[method] * (5e-6 + size * 1e-9),
    sizes=[2**n for n in range(3, 21)],
)
INGEST_SAMPLES_PER_S = 3e6
TUNE_S_PER_SAMPLE = 2e-6
PEAK_BYTES = 2**30
FIT_S = 2.0
FIT_SAMPLES = 1_000_000


def cases(spec: synthetic.Campaign, random: np.random.Generator) -> list[dict[str, Any]]:
    """The case records of one launch; times are whole nanoseconds, as from a clock."""
    records = []
    for size in spec.sizes:
        n = int(20 * 10 ** random.random())
        for record in synthetic.block(replace(spec, samples=n), random, spec.patterns[0], size):
            for name in ("samples_s", "canary_s"):
                record[name] = [float(f"{value:.9f}") for value in record[name]]
            record["skew_s"] = [value / 1e9 for value in random.integers(20, 900, n).tolist()]
            records.append(record)
    return records


def write_campaign(directory: Path, samples: int) -> int:
    """Writes raw files until they hold so many samples; returns how many they hold."""
    random = np.random.default_rng(1)
    written = degree = 0
    while written < samples:
        degree += 1
        pattern = (f"random:degree={degree},seed=1", degree, degree / 1.1)
        spec = replace(CAMPAIGN, patterns=(pattern,))
        for launch in range(spec.launches):
            records = cases(spec, random)
            count = sum(len(record["samples_s"]) for record in records)
            end = {"record": "end", "cases": len(records), "samples": count}
            lines = [synthetic.header(spec, launch, pattern[0], 2), *records, end]
            path = directory / f"{degree}-{launch}.jsonl"
            path.write_text("".join(json.dumps(line) + "\n" for line in lines))
            written += count
    return written


def run(*arguments: str | Path) -> tuple[float, int]:
    """Runs `switchpoint`: the seconds it took, and the peak bytes of its largest process."""
    started = time.perf_counter()
    command = [sys.executable, "-m", "tuner.cli", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"switchpoint {arguments[0]} failed")
    return time.perf_counter() - started, usage.ru_maxrss * 1024


def fit_s() -> float:
    """Seconds to fit the max-rate model to a million samples, 39 sizes by 16 numbers of pairs."""
    truth = probes.CLUSTER["off_node"]
    pairs = range(1, 17)
    swept = probes.one_way(
        lambda size, count: probes.round_trip_s(truth, size, pairs=count) / 2,
        probes.Noise(),
        seed=1,
        pairs=tuple(pairs),
        samples=-(-FIT_SAMPLES // (len(probes.SIZES) * len(pairs))),
    )
    started = time.perf_counter()
    maxrate.fit(swept)
    return time.perf_counter() - started


def main() -> int:
    """Runs both commands several times; of times the least counts, of memory the most."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=float, default=6e6)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="switchpoint-speed-") as name:
        raw = Path(name, "raw")
        raw.mkdir()
        samples = write_campaign(raw, int(options.samples))
        ingests, tunes = [], []
        for repeat in range(options.repeats):
            database = Path(name, f"{repeat}.db")
            ingests.append(run("ingest", raw, "--database", database))
            tunes.append(run("tune", "--database", database))
    ingest_s, tune_s = min(ingests)[0], min(tunes)[0]
    peak_bytes = max(peak for _, peak in ingests + tunes)
    figures = [
        ("ingest", samples / ingest_s / 1e6, ">=", INGEST_SAMPLES_PER_S / 1e6, "million samples/s"),
        ("tune", tune_s / samples * 1e6, "<=", TUNE_S_PER_SAMPLE * 1e6, "s for a million samples"),
        (
            "fit",
            min(fit_s() for _ in range(options.repeats)),
            "<=",
            FIT_S,
            "s for a million samples",
        ),
        ("peak memory", peak_bytes / 2**20, "<=", PEAK_BYTES / 2**20, "MiB"),
    ]
    print(f"{samples} samples, best of {options.repeats}")
    missed = 0
    for name, value, relation, target, unit in figures:
        met = value >= target if relation == ">=" else value <= target
        missed += not met
        verdict = "ok" if met else "MISSED"
        print(f"{name:12} {value:8.2f} {unit}, target {relation} {target:g}: {verdict}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
