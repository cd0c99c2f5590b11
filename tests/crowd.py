"""Eight writers and eight readers on one store: nothing is lost or doubled, and nobody fails.

Two writers each ingest the same launches from files of their own. A store that is locked for too
long may only say so. Run from the checkout: python -m tests.crowd [--seconds 600]
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import NamedTuple

from tests import synthetic
from tests.faults import dump
from tuner.rawfile.ingest import ingest
from tuner.store.database import StoreError
from tuner.store.store import Store

WRITERS, READERS = 8, 8
LAUNCHES = 2  # of a campaign
METHODS = synthetic.Campaign().methods
LOCKED = "locked by another process; try again"


class Turns(NamedTuple):
    """How often a process wrote or read, how often the store was locked, and what it last held."""

    done: int
    locked: int
    launches: int


def write(database: Path, place: Path, end_s: float, number: int) -> Turns:
    """Ingest one campaign after the other, which another writer has, too."""
    done, locked = 0, 0
    while time.monotonic() < end_s:
        name = (
            f"2026{number // 2 + 1:02d}01T{done // 3600:02d}{done // 60 % 60:02d}{done % 60:02d}Z"
        )
        its = synthetic.Campaign(name=name, launches=LAUNCHES, sizes=(8,), samples=20, seed=done)
        files = synthetic.write(place / str(number), its)
        while True:
            try:
                report = ingest(database, files)
                break
            except StoreError as error:
                assert LOCKED in str(error), error
                locked += 1
        assert not report.problems, report.problems
        done += 1
    return Turns(done, locked, done * LAUNCHES)


def read(database: Path, end_s: float) -> Turns:
    """Read whole launches, never fewer than before."""
    done, locked, most = 0, 0, 0
    while time.monotonic() < end_s:
        try:
            with Store.open(database, readonly=True) as store:
                cells = store.cells()
                launches = len(store.launches())
        except StoreError as error:
            assert LOCKED in str(error), error
            locked += 1
            continue
        of_campaigns = cells.groupby("campaign")["launches"]
        assert (of_campaigns.count() == len(METHODS)).all() and (of_campaigns.nunique() == 1).all()
        assert launches >= of_campaigns.first().sum() >= most
        most = launches
        done += 1
    return Turns(done, locked, most)


def crowd(place: Path, seconds: float) -> dict[str, int]:
    """Let all write and read for some time, and check the store; return how often they did.

    That is with how often the store was locked, and how many launches it holds.
    """
    database = place / "switchpoint.db"
    first = synthetic.Campaign(launches=1, sizes=(8,))
    with ProcessPoolExecutor(WRITERS + READERS, mp_context=get_context("fork")) as pool:
        ingest(database, synthetic.write(place / "first", first))
        end_s = time.monotonic() + seconds
        writing = [pool.submit(write, database, place, end_s, each) for each in range(WRITERS)]
        reading = [pool.submit(read, database, end_s) for _ in range(READERS)]
        wrote, saw = ([its.result() for its in of] for of in (writing, reading))
    dump(database)
    with Store.open(database, readonly=True) as store:
        kept = [(launch.campaign, launch.number) for launch in store.launches().values()]
    pairs = zip(wrote[::2], wrote[1::2], strict=True)
    assert len({*kept}) == len(kept) == 1 + sum(max(its.launches for its in pair) for pair in pairs)
    done = {"ingested": sum(its.done for its in wrote), "read": sum(its.done for its in saw)}
    return done | {"locked": sum(its.locked for its in wrote + saw), "launches": len(kept)}


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=600.0, help="of it all (default: 600)")
    with tempfile.TemporaryDirectory() as place:
        print(json.dumps(crowd(Path(place), parser.parse_args().seconds)))


if __name__ == "__main__":
    main()
