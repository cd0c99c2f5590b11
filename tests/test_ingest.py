"""From raw files to the store: once, all of it, whatever happens."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests import overlaps, probes, synthetic, test_soaks
from tests.crowd import crowd
from tests.processes import TIMEOUT_S
from tuner.domain.cases import CellKey
from tuner.domain.flat import columns, take
from tuner.rawfile import ingest as ingest_module
from tuner.rawfile.ingest import IngestError, Report, ingest
from tuner.rawfile.kinds import KINDS
from tuner.store.database import MissingStoreError
from tuner.store.store import Store

SMALL = synthetic.Campaign(launches=3, sizes=(8, 64), samples=20)


def content(database: Path) -> dict[str, list[Any]]:
    """Return everything that readers can see of a store."""
    with Store.open(database, readonly=True) as store:
        cells = store.cells()
        keys = [
            take(CellKey, iter(row))
            for row in cells[list(columns(CellKey))].itertuples(index=False)
        ]
        return {
            "systems": store.systems().to_dict("records"),
            "campaigns": store.campaigns().to_dict("records"),
            "cells": cells.to_dict("records"),
            "launches": sorted((launch.id, launch.content) for launch in store.launches().values()),
            "samples": [store.samples(key).tolist() for key in keys],
            "records": {
                (kind.name, system): store.records(kind.name, system).to_dict("records")
                for kind in KINDS.values()
                for system in store.systems()["system"]
            },
        }


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "switchpoint.db"


@pytest.fixture
def results(tmp_path: Path) -> Path:
    return tmp_path / "results"


def test_every_sample_arrives(database: Path, results: Path) -> None:
    paths = synthetic.write(results, SMALL)
    report = ingest(database, [results])
    assert report == Report(files=3, launches=3, cells=8, samples=3 * 8 * 20)
    written: dict[tuple[str, int], list[float]] = {}
    for path in paths:
        for record in map(json.loads, path.read_text().splitlines()):
            if record["record"] == "case":
                written.setdefault((record["method"], record["bytes"]), []).extend(
                    record["samples_s"]
                )
    with Store.open(database, readonly=True) as store:
        cells = store.cells()
        assert len(cells) == 8
        for row in cells.itertuples():
            key = take(CellKey, (getattr(row, name) for name in columns(CellKey)))
            samples = written[row.method, row.bytes]
            assert store.samples(key).tolist() == pytest.approx(samples, rel=1e-6)
            assert row.median_s == pytest.approx(np.median(samples), rel=1e-6)
            assert row.low_s <= row.median_s <= row.high_s
            assert (row.launches, row.n) == (3, 60)


def test_the_same_again_changes_nothing(database: Path, results: Path) -> None:
    paths = synthetic.write(results, SMALL)
    ingest(database, [results])
    before = content(database)
    shutil.copy(paths[0], results / "a copy elsewhere.jsonl")
    assert ingest(database, [results]) == Report(files=4, unchanged=4)
    assert content(database) == before


def test_the_order_of_ingestion_does_not_matter(
    database: Path, results: Path, tmp_path: Path
) -> None:
    paths = synthetic.write(results, SMALL)
    for path in reversed(paths):
        ingest(database, [path])
    rebuilt = tmp_path / "rebuilt.db"
    ingest(rebuilt, [results])
    assert content(database) == content(rebuilt)


def test_small_batches_give_the_same_store(
    database: Path, results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synthetic.write(results, SMALL)
    ingest(tmp_path / "whole.db", [results])
    monkeypatch.setattr(ingest_module, "BATCH_SAMPLES", 1)
    monkeypatch.setattr(ingest_module, "PARALLEL_BYTES", 1)
    ingest(database, [results])
    assert content(database) == content(tmp_path / "whole.db")


def test_files_read_by_several_processes_give_the_same_store(
    database: Path, results: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also when files of one launch come to different processes, and records that are no cases."""
    path, *_ = synthetic.write(results, SMALL)
    probes.write(results, probes.ProbeCampaign(launches=1, samples=2))
    overlaps.write(results, launches=1)
    test_soaks.write(results, test_soaks.record("direct"))
    ingest(tmp_path / "whole.db", [results])
    part = "".join(path.read_text().splitlines(keepends=True)[:4])
    (results / "part before.jsonl").write_text(part)
    (results / "zz part after.jsonl").write_text(part + "\n")
    monkeypatch.setattr(ingest_module, "PARALLEL_BYTES", 1)
    ingest(database, [results])
    found = content(database)
    assert found == content(tmp_path / "whole.db")
    assert {kind for (kind, _), records in found["records"].items() if records} == {
        kind.name for kind in KINDS.values()
    }


def test_what_is_read_ahead_is_bounded() -> None:
    begun: list[int] = []

    def values() -> Iterator[int]:
        for value in range(20):
            begun.append(value)
            yield value

    with ThreadPoolExecutor(4) as threads:
        results = ingest_module._in_order(threads, lambda value: 2 * value, values(), ahead=3)
        for taken, result in enumerate(results):
            assert result == 2 * taken
            assert len(begun) <= taken + 1 + 3


def test_a_file_that_has_grown_takes_the_place_of_its_beginning(
    database: Path, results: Path, tmp_path: Path
) -> None:
    path, *_ = synthetic.write(results, SMALL)
    whole = path.read_text()
    path.write_text("".join(whole.splitlines(keepends=True)[:4]))
    report = ingest(database, [path])
    assert report.problems[0].message.startswith("no end record")
    again = ingest(database, [path])
    assert (again.unchanged, again.problems) == (1, report.problems)
    path.write_text(whole)
    assert ingest(database, [path]).problems == []
    ingest(tmp_path / "rebuilt.db", [path])
    assert content(database) == content(tmp_path / "rebuilt.db")


def test_less_of_a_launch_does_not_replace_more(database: Path, results: Path) -> None:
    path, *_ = synthetic.write(results, SMALL)
    ingest(database, [path])
    before = content(database)
    part = results / "part.jsonl"
    part.write_text("".join(path.read_text().splitlines(keepends=True)[:4]))
    report = ingest(database, [part])
    assert "holds less of the launch" in report.problems[-1].message
    assert content(database) == before


@pytest.mark.parametrize("together", [True, False])
def test_two_files_that_claim_one_launch_are_reported_and_one_is_always_taken(
    database: Path, results: Path, tmp_path: Path, together: bool
) -> None:
    path, *_ = synthetic.write(results, synthetic.Campaign(launches=1, samples=20))
    other = tmp_path / "other.jsonl"
    header, *rest = path.read_text().splitlines(keepends=True)
    other.write_text(header + "".join(rest).replace('"verified": 2', '"verified": 3'))
    named, contents = [], []
    for sources in ([path, other], [other, path], [path, other]):
        steps = [sources] if together else [[source] for source in sources]
        problems = [problem for step in steps for problem in ingest(database, step).problems]
        named.append({problem.path for problem in problems})
        contents.append(content(database))
    assert len(set.union(*named)) == 1
    assert contents[0] == contents[1] == contents[2]


def test_both_versions_of_a_launch_at_once_count_once(
    database: Path, results: Path, tmp_path: Path
) -> None:
    path, *_ = synthetic.write(results, SMALL)
    ingest(tmp_path / "whole.db", [path])
    (results / "part.jsonl").write_text("".join(path.read_text().splitlines(keepends=True)[:4]))
    ingest(database, [results / "part.jsonl", path])
    assert content(database) == content(tmp_path / "whole.db")


def test_what_cannot_be_used_is_reported_and_the_rest_ingested(
    database: Path, results: Path
) -> None:
    _, broken, _ = synthetic.write(results, SMALL)
    lines = broken.read_text().splitlines(keepends=True)
    broken.write_text("".join([*lines[:2], "garbage\n", *lines[3:]]))
    (results / "foreign.jsonl").write_text("{}\n")
    (results / "nowhere.jsonl").symlink_to("missing")
    report = ingest(database, [results])
    places = [(Path(problem.path).name, problem.line) for problem in report.problems]
    assert sorted(places) == [
        (broken.name, 3),
        (broken.name, len(lines)),
        ("foreign.jsonl", 1),
        ("nowhere.jsonl", 1),
    ]
    assert report.samples == (3 * 8 - 1) * 20


def test_what_differs_in_the_system_is_another_system(database: Path, results: Path) -> None:
    (path,) = synthetic.write(results, synthetic.Campaign(launches=1, sizes=(8,)))
    other = results / "other.jsonl"
    other.write_text(path.read_text().replace("gcc 12.2.0", "gcc 13.1.0"))
    ingest(database, [results])
    with Store.open(database, readonly=True) as store:
        systems = store.systems()
        assert len(systems) == 2
        assert set(systems["compiler"]) == {"gcc 12.2.0", "gcc 13.1.0"}
        assert store.cells(system=systems["system"][0])["launches"].tolist() == [1] * 4


def test_virtual_nodes_are_another_system(database: Path, results: Path) -> None:
    (path,) = synthetic.write(results, synthetic.Campaign(launches=1, sizes=(8,)))
    for placement in ("block", "cyclic"):
        layout = f'"nodes": 1, "placement": "{placement}"'
        text = path.read_text().replace('"nodes": 1', layout)
        assert layout in text
        (results / f"{placement}.jsonl").write_text(text)
    ingest(database, [results])
    with Store.open(database, readonly=True) as store:
        names = sorted(store.systems()["name"])
    machine = names[0]
    assert names == [machine, f"{machine}+block", f"{machine}+cyclic"]


def test_the_store_has_the_header_that_was_checked(database: Path, results: Path) -> None:
    """Of a key that is given twice, SQLite and the reader take another each."""
    path, *_ = synthetic.write(results, SMALL)
    text = path.read_text()
    path.write_text(text.replace("{", '{"load": ["x", 0, 0], ', 1))
    assert ingest(database, [path]).problems == []
    with Store.open(database, readonly=True) as store:
        (system,) = store.systems()["system"]
        ((low, high),) = store.loads(system).values()
        assert 0 <= low == high


KILLED = """
import sys
from pathlib import Path
from tuner.rawfile import ingest
ingest.BATCH_SAMPLES = 1
ingest.ingest(Path(sys.argv[1]), [Path(sys.argv[2])])
"""


def test_kill_in_the_middle_loses_nothing(database: Path, results: Path, tmp_path: Path) -> None:
    synthetic.write(results, synthetic.Campaign(launches=40, sizes=(8, 64, 512), samples=60))
    ingest(tmp_path / "whole.db", [results])
    interrupted = 0
    with Store.open(database):  # whose making has a journal, too
        pass
    for _ in range(3):
        process = subprocess.Popen([sys.executable, "-c", KILLED, str(database), str(results)])
        journal = database.with_name(database.name + "-journal")
        while process.poll() is None and not journal.exists():
            time.sleep(0.0005)
        process.send_signal(signal.SIGKILL)
        interrupted += process.wait() == -signal.SIGKILL
        with suppress(MissingStoreError):  # killed before there was anything
            content(database)
    assert interrupted > 0
    ingest(database, [results])
    assert content(database) == content(tmp_path / "whole.db")


WORKERS = """
import sys, time
from pathlib import Path
from tuner.rawfile import ingest
def load(_):
    print(flush=True)
    time.sleep(1)
    return bytes(1_000_000)  # more than a pipe holds
ingest.PARALLEL_BYTES = 0
ingest.available_cores = lambda: 2
ingest._load = load
ingest.ingest(Path(sys.argv[1]), [Path(sys.argv[2])])
"""


def test_workers_end_with_a_killed_ingest(database: Path, results: Path) -> None:
    """They hold its standard output, which ends when the last of them has ended."""
    synthetic.write(results, synthetic.Campaign(launches=8))
    process = subprocess.Popen(
        [sys.executable, "-c", WORKERS, str(database), str(results)],
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == b"\n"
        process.kill()
        process.communicate(timeout=TIMEOUT_S)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def killed(_: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_a_killed_worker_is_one_line(
    database: Path, results: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synthetic.write(results, synthetic.Campaign(launches=8))
    monkeypatch.setattr(ingest_module, "PARALLEL_BYTES", 0)
    monkeypatch.setattr(ingest_module, "available_cores", lambda: 2)
    monkeypatch.setattr(ingest_module, "_load", killed)
    with pytest.raises(IngestError, match="a process that reads raw files was killed"):
        ingest(database, [results])


AT_ONCE = """
import sys
from pathlib import Path
from tuner.rawfile import ingest, keeping
load = ingest._load_all
def wait(groups):
    print("has looked at the store", flush=True)
    sys.stdin.readline()
    return load(groups)
ingest._load_all = wait
database, how, *paths = map(Path, sys.argv[1:])
if how.name == "keep":
    keeping.keep(paths)
else:
    report = ingest.ingest(database, paths)
    print(report.launches, report.unchanged, *report.problems, sep="; ")
"""


def at_once(database: Path, how: str, paths: list[Path]) -> subprocess.Popen[str]:
    """Start an ingest, or a campaign's `keep`, that looks at the store and waits for a line."""
    process = subprocess.Popen(
        [sys.executable, "-c", AT_ONCE, database, how, *paths],
        env=os.environ | {"SWITCHPOINT_RESULTS": str(database.parent)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline()
    return process


def test_ingests_of_the_same_files_at_once_and_a_campaign_agree(
    database: Path, results: Path, tmp_path: Path
) -> None:
    paths = synthetic.write(results, SMALL)
    ingest(tmp_path / "alone.db", [results])
    processes = [at_once(database, how, paths) for how in ("ingest", "keep", "ingest", "keep")]
    assert sorted(process.communicate("\n", timeout=TIMEOUT_S) for process in processes) == [
        ("", ""),
        ("", ""),
        ("0; 3\n", ""),
        ("3; 0\n", ""),
    ]
    assert [process.returncode for process in processes] == [0] * 4
    assert content(database) == content(tmp_path / "alone.db")


def test_a_file_that_grows_while_others_ingest_it_is_no_problem(
    database: Path, results: Path
) -> None:
    path, *_ = synthetic.write(results, SMALL)
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:4]))
    process = at_once(database, "ingest", [path])
    path.write_text("".join(lines))
    assert process.communicate("\n", timeout=TIMEOUT_S) == ("1; 0\n", "")
    assert ingest(database, [path]) == Report(files=1, unchanged=1)


def test_a_file_that_is_gone_or_another_when_it_is_read_is_reported(
    database: Path, results: Path
) -> None:
    gone, other, good = synthetic.write(results, SMALL)
    process = at_once(database, "ingest", [gone, other, good])
    gone.unlink()
    other.write_text(
        other.read_text().replace('"ppn": 2', '"ppn": 1').replace('"nodes": 1', '"nodes": 2')
    )
    said, _ = process.communicate("\n", timeout=TIMEOUT_S)
    assert said == (
        f"1; 0; {gone}:1: cannot be read: No such file or directory; "
        f"{other}:1: changed while it was read; ingest it again\n"
    )
    assert ingest(database, [other]) == Report(files=1, launches=1, cells=8, samples=8 * 20)


def test_a_crowd_of_writers_and_readers_loses_and_doubles_nothing(tmp_path: Path) -> None:
    figures = crowd(tmp_path, seconds=2)
    assert figures["ingested"] and figures["read"], figures
