"""The cost of `switchpoint ingest`, `switchpoint tune` and a fit over their unavoidable work.

Times are of whole commands, start-up included, each beside its floor, which is measured right after
it in the same run:

- ingest and tune: decoding the same bytes on as many cores, and inserting the same rows by SQLite
  alone;
- fit: sorting the samples that it fits to.

The bars are ratios to the floors, from several runs on two cores that other work kept busy: ingest
took 1.8 to 2.6 times its floor, tune 2.2 to 3.0 times, fit 83 to 101 times (42 to 93 times by
processor time), and the peak was 1.08 times the raw files. They leave a sixth of the largest, or
more, as room for other machines.
The bench prints the figures beside their bars and exits with 1 when one is missed. The raw files
are synthetic, in the form and of the sizes that swpbench writes: 20 to 200 samples a case.
Run from the checkout: python -m tests.bench.tuner_speed
"""

from __future__ import annotations

import argparse
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from tests import probes, raw, synthetic
from tests.bench.report import Figure, conclude, options_of
from tuner.machine.mpi import available_cores
from tuner.models import maxrate

FACTORS = {"direct": 1.0, "neighbor": 0.9} | {f"stfw:dims={n}": 1 + n / 10 for n in range(2, 8)}
CAMPAIGN = synthetic.Campaign(
    methods=tuple(FACTORS),
    times=lambda method, size: FACTORS[method] * (5e-6 + size * 1e-9),
    sizes=[2**n for n in range(3, 21)],
)
INGEST, TUNE, FIT = 3.0, 4.0, 120.0  # times their floors
PEAK = 1.5  # times the bytes of the raw files
FLOOR = "times its floor"


def cases(spec: synthetic.Campaign, random: np.random.Generator) -> list[dict[str, Any]]:
    """Return the case records of one launch; times are whole nanoseconds, as from a clock."""
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
    """Write raw files until they hold so many samples; return how many they hold."""
    random = np.random.default_rng(1)
    written = degree = 0
    while written < samples:
        degree += 1
        pattern = (f"random:degree={degree},seed=1", degree, degree / 1.1)
        spec = replace(CAMPAIGN, patterns=(pattern,))
        for launch in range(spec.launches):
            records = cases(spec, random)
            header = synthetic.header(spec, launch, pattern[0], 2)
            raw.write_launch(directory / f"{degree}-{launch}.jsonl", header, records)
            written += sum(len(record["samples_s"]) for record in records)
    return written


def run(*arguments: str | Path) -> tuple[float, int]:
    """Run `switchpoint`; return the seconds it took, and the peak bytes of its largest process."""
    started = time.perf_counter()
    command = [sys.executable, "-m", "tuner.cli", *arguments]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"switchpoint {arguments[0]} failed")
    return time.perf_counter() - started, usage.ru_maxrss * 1024


def seconds_of(function: Callable[[], object]) -> float:
    """Return how long a call takes."""
    started = time.perf_counter()
    function()
    return time.perf_counter() - started


def decode(path: Path) -> None:
    """Decode every line of a raw file."""
    for line in path.read_bytes().splitlines():
        msgspec.json.decode(line)


def ingest_floor_s(raw: Path, database: Path) -> float:
    """Return the time to decode the raw files and to insert the store's rows of them."""
    paths = sorted(raw.iterdir())
    with sqlite3.connect(database) as store:
        schema = store.execute("SELECT sql FROM sqlite_master WHERE name = 'cell'").fetchone()[0]
        rows = store.execute("SELECT * FROM cell").fetchall()
    marks = ", ".join("?" for _ in rows[0])
    copy = sqlite3.connect(database.with_suffix(".floor"))

    def decode_all() -> None:
        with ProcessPoolExecutor(available_cores()) as processes:
            list(processes.map(decode, paths))

    def insert_all() -> None:
        with copy:
            copy.execute(schema)
            copy.executemany(f"INSERT INTO cell VALUES ({marks})", rows)

    floor_s = seconds_of(decode_all) + seconds_of(insert_all)
    copy.close()
    return floor_s


def fit(samples: int) -> tuple[float, float]:
    """Return how long the max-rate model takes to fit, and to sort the samples alone.

    The samples are of 39 sizes by 16 numbers of pairs.
    """
    truth = probes.CLUSTER["off_node"]
    pairs = range(1, 17)
    swept = probes.one_way(
        lambda size, count: probes.round_trip_s(truth, size, pairs=count) / 2,
        probes.Noise(),
        seed=1,
        pairs=tuple(pairs),
        samples=-(-samples // (len(probes.SIZES) * len(pairs))),
    )
    fit_s = seconds_of(lambda: maxrate.fit(swept))
    floor_s = seconds_of(lambda: [np.sort(each) for one in swept for each in one.values()])
    return fit_s, floor_s


def ratio(name: str, times: list[tuple[float, float]], samples: int, bar: float) -> list[Figure]:
    """Return the figures of times beside their floors: the median ratio, and the least time."""
    least_s = min(time_s for time_s, _ in times)
    return [
        Figure(
            name, float(np.median([time_s / floor for time_s, floor in times])), FLOOR, most=bar
        ),
        Figure(f"{name}, speed", samples / least_s / 1e6, "million samples/s"),
    ]


def main() -> int:
    """Run everything several times, each time right before its floor."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--samples", type=float, default=6e6)
    parser.add_argument("--fit-samples", type=float, default=1e6)
    parser.add_argument("--repeats", type=int, default=5)
    least = {"samples": 2e4, "fit_samples": 2e4, "repeats": 1}
    options = options_of(parser, "tuner_speed", least)
    ingests, tunes, fits, peaks = [], [], [], []
    with tempfile.TemporaryDirectory(prefix="switchpoint-speed-") as name:
        raw = Path(name, "raw")
        raw.mkdir()
        samples = write_campaign(raw, int(options.samples))
        raw_bytes = sum(path.stat().st_size for path in raw.iterdir())
        for repeat in range(options.repeats):
            database = Path(name, f"{repeat}.db")
            ingest_s, ingest_bytes = run("ingest", raw, "--database", database)
            floor_s = ingest_floor_s(raw, database)
            tune_s, tune_bytes = run("tune", "--database", database)
            ingests.append((ingest_s, floor_s))
            tunes.append((tune_s, floor_s))
            fits.append(fit(int(options.fit_samples)))
            peaks += [ingest_bytes, tune_bytes]
    figures = [
        *ratio("ingest", ingests, samples, INGEST),
        *ratio("tune", tunes, samples, TUNE),
        *ratio("fit", fits, int(options.fit_samples), FIT),
        Figure("peak memory", max(peaks) / raw_bytes, "times the raw files", most=PEAK),
        Figure("peak memory, absolute", max(peaks) / 2**20, "MiB"),
    ]
    print(f"{samples} samples in {raw_bytes / 2**20:.0f} MiB, {options.repeats} times")
    return conclude("tuner_speed", figures, options)


if __name__ == "__main__":
    sys.exit(main())
