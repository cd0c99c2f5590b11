"""Kills at every write to the store, and what readers, pages and the next ingest make of it."""

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from http import HTTPStatus
from itertools import count, product
from pathlib import Path

import pytest
from flask.testing import FlaskClient

from dashboard.app import create_app
from tests import kill_writers, synthetic
from tests.conftest import by_day
from tests.faults import KILLED, build_library, dump, in_memory
from tuner.paths import CHECKOUT
from tuner.rawfile.ingest import ingest
from tuner.store.database import VERSION, MissingStoreError, StoreError
from tuner.store.store import Store

# Ingests in a child that is killed at the n-th write, for every n that comes in.
DRIVER = """
import ctypes, os, sys
from pathlib import Path
from tuner.rawfile.ingest import ingest
database, raw = sys.argv[1:]
for line in sys.stdin:
    nth, torn = map(int, line.split())
    if not (child := os.fork()):
        place = os.fsencode(database)
        ctypes.CDLL(None).fault_at(place, ctypes.c_long(nth), 0, ctypes.c_bool(torn))
        ingest(Path(database), [Path(raw)])
        os._exit(0)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_library(tmp_path_factory.mktemp("library"))


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Path]:
    with in_memory(tmp_path) as place:
        yield place / "store" / "switchpoint.db"


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    (path,) = synthetic.write(
        tmp_path / "raw", synthetic.Campaign(launches=1, sizes=(8,), samples=5)
    )
    return path


def start(version: int, database: Path) -> None:
    """Put an older store there, or none."""
    shutil.rmtree(database.parent, ignore_errors=True)
    database.parent.mkdir()
    if version:
        shutil.copy(Path(__file__).parent / "data" / f"store-v{version}.db", database)


def kills(version: int, database: Path, raw: Path, library: Path) -> Iterator[None]:
    """Kill an ingest at its first write, at its second, and so on; yield after each."""
    driver = subprocess.Popen(
        [sys.executable, "-c", DRIVER, database, raw],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ | {"LD_PRELOAD": str(library), "PYTHONPATH": str(CHECKOUT)},
        text=True,
    )
    assert driver.stdin is not None
    assert driver.stdout is not None
    with driver:
        for torn in (0, 1):
            for nth in count(1):
                start(version, database)
                print(nth, torn, file=driver.stdin, flush=True)
                ended = int(driver.stdout.readline())
                if ended == 0:
                    break
                assert ended == KILLED
                yield
            assert nth > 10  # else the library is not asked
        driver.stdin.close()


def visit(database: Path, client: FlaskClient, version: int) -> None:
    """Check that a page and a reader find nothing, the older store, or what was ingested."""
    answer = client.get("/")
    if answer.status_code != HTTPStatus.OK:
        assert "an empty store" in answer.text or "older version" in answer.text
        assert "switchpoint ingest" in answer.text
    try:
        with Store.open(database, readonly=True) as store:
            store.systems()
    except MissingStoreError:
        assert version == 0
    except StoreError as error:
        assert f"older version {version};" in str(error)


def leave(database: Path, client: FlaskClient, version: int) -> None:
    """Do nothing: nobody reads in between."""


nightly = pytest.mark.nightly


@pytest.mark.parametrize(
    ("version", "between"),
    [
        *((version, visit) for version in (0, 1, VERSION - 1)),
        *(pytest.param(version, visit, marks=nightly) for version in range(2, VERSION - 1)),
        (0, leave),
        *(pytest.param(version, leave, marks=nightly) for version in range(1, VERSION)),
    ],
)
def test_a_kill_at_any_write_loses_nothing(
    version: int,
    between: Callable[[Path, FlaskClient, int], None],
    database: Path,
    raw: Path,
    library: Path,
) -> None:
    start(version, database)
    ingest(database, [raw])
    whole = dump(database)
    client = create_app(database).server.test_client()
    for _ in kills(version, database, raw, library):
        between(database, client, version)
        ingest(database, [raw])
        assert dump(database) == whole
    assert client.get("/").status_code == HTTPStatus.OK


@pytest.mark.parametrize(
    ("command", "count"),
    by_day(
        [(command, 2) for command in kill_writers.COMMANDS], product(kill_writers.COMMANDS, [20])
    ),
)
def test_a_kill_at_any_moment_beside_a_reader_loses_nothing(
    database: Path, command: str, count: int
) -> None:
    place = database.parent
    place.mkdir()
    assert kill_writers.kill_often(place, command, count, seed=count)["killed"] == count


def test_what_readers_of_earlier_versions_left_is_an_empty_store(database: Path, raw: Path) -> None:
    """Their recovery wrote a page without an application_id."""
    start(0, database)
    connection = sqlite3.connect(database, isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    connection.execute("COMMIT")
    connection.close()
    assert database.stat().st_size > 0
    with pytest.raises(MissingStoreError, match="an empty store"):
        Store.open(database, readonly=True)
    assert ingest(database, [raw]).problems == []
    Store.open(database, readonly=True).close()
