"""Opening the store: what it makes of missing, foreign, older, newer and damaged files."""

import json
import os
import shutil
import signal
import sqlite3
import struct
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest

from tests.synthetic import Campaign, write
from tuner.domain.cases import LaunchKey
from tuner.domain.flat import columns
from tuner.domain.tables import Provenance, Ratio
from tuner.rawfile.ingest import ingest
from tuner.selection.evidence import verdict
from tuner.selection.tuning import tune
from tuner.store.database import APPLICATION_ID, VERSION, MissingStoreError, StoreError
from tuner.store.store import Store


def set_pragma(path: Path, name: str, value: int) -> None:
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA {name} = {value}")
    connection.close()


def test_a_new_store_says_what_it_is(database: Path) -> None:
    connection = sqlite3.connect(database)
    assert connection.execute("PRAGMA application_id").fetchone() == (APPLICATION_ID,)
    assert connection.execute("PRAGMA user_version").fetchone() == (VERSION,)
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)


def test_opening_a_store_to_write_changes_nothing_yet(database: Path) -> None:
    before = database.read_bytes()
    Store.open(database).close()
    assert database.read_bytes() == before


def test_the_launches_of_one_system_are_read_alone(database: Path) -> None:
    with Store.open(database, readonly=True) as store:
        (system,) = store.systems()["system"]
        assert store.launches(system) == store.launches() != {}
        assert store.launches("another") == {}


def test_texts_of_earlier_versions_are_bounded_and_printable(database: Path) -> None:
    connection = sqlite3.connect(database)
    with connection:
        connection.execute("UPDATE system SET mpi_library = ?", ["MPI\x1b[31m " * 10_000])
        connection.execute('UPDATE launch SET "commit" = ?', ["c\x07" * 50_000])
    with Store.open(database) as store:
        (system,), (library,) = store.systems()["system"], store.systems()["mpi_library"]
        tune(store, system)
        of_table = store.provenance(system).mpi_library
        with connection:
            changed = "json_set(provenance, '$.compiler', ?)"
            connection.execute(f"UPDATE tuned SET provenance = {changed}", ["cc\n" * 10_000])
        texts = [library, of_table, store.provenance(system).compiler]
        texts += store.campaigns()["commit"].to_list()
    assert all(len(text) == 255 and text.isprintable() for text in texts)


def test_of_a_name_and_an_environment_the_last_measured_system_is_last(tmp_path: Path) -> None:
    days = {"local:cpu": "2026-11-03", "local:cpu+block": "2026-11-02", "local:gpu": "2026-11-01"}
    for number, (name, day) in enumerate(days.items()):
        its = Campaign(system=name, day=day, launches=1, sizes=(8,), cores=number + 2)
        write(tmp_path / str(number), its)
        ingest(tmp_path / "db", [tmp_path / str(number)])
    with Store.open(tmp_path / "db") as store:
        ids = store.systems().set_index("name")["system"]
        assert store.named("local:cpu", "mpich") == [ids["local:cpu"]]
        both = store.named("local:cpu", "mpich", with_virtual=True)
        assert both == [ids["local:cpu+block"], ids["local:cpu"]]
        assert store.named("local:cpu", "openmpi", with_virtual=True) == []


def test_the_launcher_is_that_of_the_last_launch(database: Path) -> None:
    with Store.open(database) as store:
        (system,) = store.systems()["system"]
        assert store.launcher(system) == ""  # which earlier versions did not record
        for launch, launcher in enumerate(("mpirun", "srun\x1b\n")):
            changed = "json_set(header, '$.launcher', ?), date = date || ?"
            values = [launcher, str(launch), launch]
            store._execute(f"UPDATE launch SET header = {changed} WHERE number = ?", values)
        assert store.launcher(system) == r"srun\x1b "


def test_a_missing_store_is_not_made_by_a_reader(tmp_path: Path) -> None:
    with pytest.raises(MissingStoreError, match="switchpoint ingest"):
        Store.open(tmp_path / "none.db", readonly=True)
    assert not (tmp_path / "none.db").exists()


def test_an_empty_file_is_no_store_yet(tmp_path: Path) -> None:
    (tmp_path / "empty.db").touch()
    with pytest.raises(MissingStoreError):
        Store.open(tmp_path / "empty.db", readonly=True)
    Store.open(tmp_path / "empty.db").close()


@pytest.mark.parametrize("readonly", [True, False])
@pytest.mark.parametrize("content", [b"not a database, only text\n" * 100, b"x"])
def test_a_foreign_file_is_refused_and_left_alone(
    tmp_path: Path, readonly: bool, content: bytes
) -> None:
    path = tmp_path / "foreign.db"
    path.write_bytes(content)
    with pytest.raises(StoreError, match="not a Switchpoint store"):
        Store.open(path, readonly=readonly)
    assert path.read_bytes() == content


@pytest.mark.parametrize("readonly", [True, False])
def test_a_foreign_database_is_refused(tmp_path: Path, readonly: bool) -> None:
    path = tmp_path / "foreign.db"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE cell (x)")
    connection.commit()
    connection.close()
    with pytest.raises(StoreError, match="not a Switchpoint store"):
        Store.open(path, readonly=readonly)


@pytest.mark.parametrize("readonly", [True, False])
def test_a_newer_store_is_refused(database: Path, readonly: bool) -> None:
    set_pragma(database, "user_version", VERSION + 1)
    with pytest.raises(StoreError, match=f"newer than {VERSION}"):
        Store.open(database, readonly=readonly)


@pytest.mark.parametrize("readonly", [True, False])
@pytest.mark.parametrize("version", [0, -1])
def test_a_version_that_no_store_has_is_damage(
    database: Path, readonly: bool, version: int
) -> None:
    set_pragma(database, "user_version", version)
    with pytest.raises(StoreError, match=f"damaged: version {version}; delete it and run"):
        Store.open(database, readonly=readonly)


ENDLESS = "WITH RECURSIVE r(i) AS (SELECT 1 UNION SELECT i + 1 FROM r) SELECT i FROM r"


@pytest.mark.parametrize("readonly", [True, False])
@pytest.mark.parametrize(
    ("name", "change"),
    [
        *(
            (name, f"CREATE VIEW {name}(user_version) AS {ENDLESS}")
            for name in ("odd", "pragma_application_id", "pragma_user_version")
        ),
        ("odd", "CREATE TRIGGER odd DELETE ON cell BEGIN DELETE FROM launch; END"),
        ("odd", "CREATE INDEX odd ON launch (hex(number))"),
        ("odd", "CREATE INDEX odd ON launch (number) WHERE hex(number) > 1"),
        ("odd", "CREATE TABLE odd (x TEXT CHECK (hex(x) > 1))"),
        ("odd", "CREATE TABLE odd (x TEXT DEFAULT (hex(1)))"),
        ("odd", 'CREATE TABLE odd ("--" TEXT CHECK (hex(1) > 1), --\n y TEXT)'),
        ("cell", "ALTER TABLE cell ADD COLUMN odd TEXT AS (hex(zeroblob(100000000)))"),
        (
            "odd",
            "INSERT INTO sqlite_master VALUES ('table', 'odd', 'odd', 0,"
            " 'CREATE VIRTUAL TABLE odd USING fts5(x)')",
        ),
    ],
)
def test_a_schema_that_computes_is_refused(
    database: Path, readonly: bool, name: str, change: str
) -> None:
    connection = sqlite3.connect(database)
    connection.execute("PRAGMA writable_schema = ON")
    with connection:
        connection.execute(change)
    connection.close()
    with pytest.raises(StoreError, match=f"not as Switchpoint made it: {name} is not a plain"):
        Store.open(database, readonly=readonly)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("soak", "DROP TABLE soak"),
        ("overlap", "ALTER TABLE overlap RENAME COLUMN wait_s TO odd"),
        ("rule", "ALTER TABLE rule ADD COLUMN odd"),
        ("probe_launch", "DROP INDEX probe_launch"),
        ("tuned", "DROP TABLE tuned; CREATE TABLE tuned (system TEXT, provenance TEXT)"),
    ],
)
def test_a_store_that_lacks_something_is_damaged(database: Path, name: str, change: str) -> None:
    connection = sqlite3.connect(database)
    connection.executescript(change)
    connection.close()
    for readonly in (True, False):
        with pytest.raises(StoreError, match=f"damaged: {name} is missing or has other columns; "):
            Store.open(database, readonly=readonly)


def test_a_store_with_an_index_of_its_users_is_one(database: Path) -> None:
    connection = sqlite3.connect(database)
    connection.execute("CREATE INDEX mine on launch (date)")
    connection.execute("ANALYZE")
    connection.close()
    Store.open(database).close()


def test_an_older_store_is_reported_to_readers(database: Path) -> None:
    set_pragma(database, "user_version", VERSION - 1)
    with pytest.raises(StoreError, match="older version"):
        Store.open(database, readonly=True)


def test_a_damaged_store_is_reported(database: Path) -> None:
    data = bytearray(database.read_bytes())
    data[4096:] = b"\xff" * (len(data) - 4096)
    database.write_bytes(data)
    with (
        pytest.raises(StoreError, match="damaged; delete it"),
        Store.open(database, readonly=True) as store,
    ):
        store.cells()


@pytest.mark.parametrize(
    ("change", "read"),
    [
        ("UPDATE tuned SET provenance = substr(provenance, 2)", Store.table),
        ("UPDATE tuned SET provenance = '{}'", Store.table),
        ("UPDATE tuned SET provenance = '[]'", Store.table),
        ("UPDATE point SET ratios = '{'", Store.table),
        ("UPDATE point SET ratios = '[1]'", Store.table),
        ("UPDATE cell SET samples = x'00'", Store.contents),
        ("UPDATE cell SET samples = x'0000807f'", Store.contents),  # infinity
        ("UPDATE cell SET samples = x'caf24971'", Store.contents),  # 1e30 s
        ("UPDATE cell SET samples = x'00000000'", Store.contents),
        ("UPDATE cell SET parts = x'00'", Store.contents),
        ("UPDATE cell SET parts = x''", Store.contents),
        ("UPDATE cell SET parts = zeroblob(length(parts))", Store.contents),
        ("UPDATE cell SET parts = substr(parts, 1, length(parts) / 2)", Store.contents),
        ("UPDATE cell SET rounds = substr(rounds, 3)", Store.contents),
        ("UPDATE launch SET header = '{'", lambda store, its: store.hosts(its)),
        ("UPDATE cell SET samples = 'abc'", Store.contents),
        ("UPDATE cell SET median_s = 'abc'", Store.cells),
        ("UPDATE system SET name = x'ff'", lambda store, _: store.systems()),
        ("UPDATE launch SET date = x'ff'", lambda store, _: store.systems()),
        ("UPDATE launch SET date = x'ff'", Store.campaigns),
        ("UPDATE launch SET samples = x'ff'", lambda store, _: store.launches()),
        ("UPDATE launch SET \"commit\" = x'ff'", Store.campaigns),
        ("UPDATE rule SET method = x'ff'", Store.table),
        ("UPDATE rule SET mavg_low = 'abc'", Store.table),
        ("UPDATE point SET challenger = x'ff'", Store.points),
        ('UPDATE point SET ratios = \'{"nap": ["x"]}\'', Store.table),
        ("UPDATE cell SET median_s = 9e999", Store.cells),
        ("UPDATE cell SET median_s = 0", Store.cells),
        ("UPDATE cell SET p90_s = -1.0", Store.cells),
        ("UPDATE cell SET n = 0", Store.cells),
        ("UPDATE cell SET nodes = 0", Store.contents),
        ("UPDATE cell SET procs = 4611686018427387904", Store.cells),
        ("UPDATE cell SET oversubscribed = -1", Store.cells),
        ("UPDATE OR IGNORE cell SET bytes = -1", Store.cells),
        ("UPDATE cell SET pattern = '<b>'", Store.cells),
        ("UPDATE cell SET operation = 'x'", Store.cells),
        ("UPDATE cell SET sync = ''", Store.cells),
        ("UPDATE OR IGNORE cell SET method = '-'", Store.cells),
        ("UPDATE launch SET campaign = '../x'", Store.campaigns),
        ("UPDATE launch SET system = '../x'", lambda store, _: store.campaigns()),
        ("UPDATE system SET cores = 0", lambda store, _: store.systems()),
        (
            "UPDATE system SET cpu_model = CAST(x'ff1b5b33316d' AS TEXT)",
            lambda store, _: store.systems(),
        ),
        ("UPDATE point SET ratio = -1.0", Store.table),
        ("UPDATE point SET status = 'x'", Store.points),
        ("UPDATE point SET ratios = '{\"nap\": [0]}'", Store.table),
        ("UPDATE rule SET nodes_low = NULL", Store.table),
        ("UPDATE rule SET level = 9e999", Store.rules),
        ("UPDATE tuned SET provenance = json_set(provenance, '$.system', '../x')", Store.table),
        ("UPDATE tuned SET provenance = json_set(provenance, '$.cores', 0)", Store.table),
        ("UPDATE launch SET header = json_set(header, '$.load[0]', 'x')", Store.loads),
        ("UPDATE launch SET header = json_remove(header, '$.load')", Store.loads),
    ],
)
def test_what_a_flipped_bit_leaves_is_one_line(
    database: Path, change: str, read: Callable[[Store, str], object]
) -> None:
    with Store.open(database) as store:
        (system,) = store.systems()["system"]
        tune(store, system, required_executions=0)
        store._execute(change)
        with pytest.raises(StoreError, match=r"damaged: .*; delete it and run") as found:
            read(store, system)
        assert str(found.value).isprintable()


def test_an_unwritable_place_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="cannot be opened for writing"):
        Store.open(tmp_path / "file" / "switchpoint.db")


def test_a_reader_can_neither_write_nor_attach(database: Path) -> None:
    with Store.open(database, readonly=True) as store:
        with pytest.raises(StoreError):
            store._execute("DELETE FROM cell")
        with pytest.raises(StoreError, match="attached"):
            store._execute("ATTACH ':memory:' AS other")


def test_a_failed_transaction_leaves_no_trace(database: Path) -> None:
    def fail(store: Store) -> None:
        with store.transaction():
            store._execute("DELETE FROM cell")
            raise RuntimeError("in the middle")

    with Store.open(database) as store:
        with pytest.raises(RuntimeError):
            fail(store)
        assert len(store.cells()) == 8


KILLED_WRITER = """
import os, signal, sys
from pathlib import Path
from tuner.store.store import Store
with Store.open(Path(sys.argv[1])) as store:
    store._execute("PRAGMA cache_size = 1")  # what changes goes to the file at once
    store._execute("BEGIN IMMEDIATE")
    store._execute("CREATE TABLE filler AS SELECT randomblob(1000000) AS content")
    store._execute("DELETE FROM cell")
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("is_open", [False, True])
def test_a_reader_sees_the_store_as_it_was_before_a_killed_writer(
    database: Path, is_open: bool
) -> None:
    with Store.open(database, readonly=True) as earlier:
        before = earlier.cells()
        killed = subprocess.run([sys.executable, "-c", KILLED_WRITER, database], check=False)
        assert killed.returncode == -signal.SIGKILL
        assert database.with_name(database.name + "-journal").exists()
        with earlier if is_open else Store.open(database, readonly=True) as store:
            assert store.cells().equals(before)


@pytest.mark.parametrize("is_reader", [True, False])
def test_a_foreign_journal_cannot_have_a_file_deleted(
    database: Path, tmp_path: Path, is_reader: bool
) -> None:
    (victim := tmp_path / "victim").write_text("mine")
    name, magic = os.fsencode(victim), bytes.fromhex("d9d505f920a163d7")
    header = magic + struct.pack(">5I", 0, 0, database.stat().st_size // 4096, 512, 4096)
    end = struct.pack(">2I", len(name), sum(name)) + magic
    journal = database.with_name(f"{database.name}-journal")
    journal.write_bytes(header.ljust(512, b"\0") + b"\0\0\0\1" + name + end)
    with pytest.raises(StoreError, match="would delete another file"):
        Store.open(database, readonly=is_reader).close()
    assert victim.exists()


def test_a_store_that_stays_locked_is_reported(database: Path) -> None:
    with Store.open(database) as writer, writer.transaction():
        with pytest.raises(StoreError, match="locked by another process"):
            Store.open(database, busy_timeout_s=0)
        Store.open(database, readonly=True).close()


def test_a_store_behind_a_link_is_locked_where_it_lies(
    database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tuner.store.database.has_locks", lambda path: path != database)
    lock = Path(f"{database}.lock")
    lock.mkdir()  # as a killed writer leaves it
    link = tmp_path / "elsewhere" / "link.db"
    link.parent.mkdir()
    link.symlink_to(database)
    with pytest.raises(StoreError, match=f"or delete {lock} of one that was killed"):
        Store.open(link, busy_timeout_s=0)


def test_contents_without_samples_have_all_else(database: Path) -> None:
    with Store.open(database, readonly=True) as store:
        (system,) = store.systems()["system"]
        whole = store.contents(system)
        summarised = store.contents(system, samples=False)
    assert [cell.key for cell in summarised] == [cell.key for cell in whole]
    for cell, other in zip(summarised, whole, strict=True):
        assert cell.parts.tobytes() == other.parts.tobytes()
        assert len(cell.samples_s) == len(cell.rounds) == 0 < len(other.samples_s)


def test_cells_can_be_asked_for_by_key(database: Path) -> None:
    with Store.open(database, readonly=True) as store:
        (system,) = store.systems()["system"]
        cells = store.cells(system=system, operation="exchange", procs=2)
        assert len(cells) == 8
        assert cells["oversubscribed"].dtype == bool
        assert store.cells(operation="discovery").empty
        assert store.cells(pattern="none").empty


def test_the_cases_of_a_campaign_are_those_of_its_cells(database: Path) -> None:
    with Store.open(database, readonly=True) as store:
        cells = store.cells()
        system, campaign = cells.loc[0, ["system", "campaign"]]
        cases = store.cases(system, campaign)
    assert tuple(cases.columns) == columns(LaunchKey)
    assert len(cases) == 1
    assert len(cells.merge(cases)) == len(cells)


def shape(path: Path) -> dict[str, object]:
    """Return the columns of each table, and the text of each index."""
    connection = sqlite3.connect(path)
    found = connection.execute("SELECT type, name, sql FROM sqlite_master").fetchall()
    return {
        name: connection.execute(f"PRAGMA table_info({name})").fetchall()
        if kind == "table"
        else sql
        for kind, name, sql in found
    }


@pytest.mark.parametrize("version", range(1, VERSION))
def test_an_old_store_is_brought_up_to_date(version: int, database: Path, tmp_path: Path) -> None:
    old = Path(shutil.copy(Path(__file__).parent / "data" / f"store-v{version}.db", tmp_path))
    connection = sqlite3.connect(old)
    names = [name for _, name, *_ in connection.execute("PRAGMA table_info(cell)")]
    before = connection.execute(f"SELECT {', '.join(names)} FROM cell").fetchall()
    connection.close()
    with Store.open(old) as store:
        assert store._query(f"SELECT {', '.join(names)} FROM cell") == before
        assert len(before) == len(store.cells()) == 4
        assert store.cells()["n"].tolist() == [40] * 4
        (system,) = store.systems()["system"]
        assert tune(store, system).rules
    assert shape(old) == shape(database)
    Store.open(old, readonly=True).close()


def test_a_table_of_version_8_is_read_with_its_intervals_and_what_was_undecided_as_open(
    tmp_path: Path,
) -> None:
    old = Path(shutil.copy(Path(__file__).parent / "data" / "store-v8.db", tmp_path))
    with sqlite3.connect(old) as connection:
        ((system,),) = connection.execute("SELECT id FROM system").fetchall()
        fields = asdict(Provenance(system, *["x"] * 6, 2, [], 1, 1, *["x"] * 3))
        connection.execute("INSERT INTO tuned VALUES (?, ?)", (system, json.dumps(fields)))
        case = (system, "A", "exchange", "random", 2, 1, 2, 0, "window")
        for size, status, *ratios in ((8, "faster", 0.8, 0.7, 0.9), (64, "tie", 1.0, 0.9, 1.1)):
            values = (*case, size, size, 6, 5.5, "direct", status, "nap", *ratios, 5)
            row = (*values, json.dumps({"nap": ratios[0]}))
            connection.execute(f"INSERT INTO point VALUES ({','.join('?' * len(row))})", row)
    connection.close()
    with Store.open(old) as store:
        faster, tie = store.table(system).points
        assert (faster.status, faster.level, tie.status) == ("faster", 0.95, "open")
        assert faster.ratios == (Ratio("nap", 0.8),)
        assert verdict(faster) == "nap is 1.11 to 1.43 x faster than direct"
        assert verdict(tie) == "direct; nap may gain an unknown factor"


def test_an_interrupted_upgrade_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = Path(shutil.copy(Path(__file__).parent / "data" / "store-v1.db", tmp_path))
    content = old.read_bytes()
    run = Store._run

    def fail(self: Store, script: str) -> None:
        run(self, script)
        raise KeyboardInterrupt

    monkeypatch.setattr(Store, "_run", fail)
    with pytest.raises(KeyboardInterrupt):
        Store.open(old)
    assert old.read_bytes() == content
