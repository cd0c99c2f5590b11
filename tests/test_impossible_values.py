"""Values that no campaign leaves in a store: each column with each, in one line where one is read.

A store may come from others.
"""

import re
import shutil
import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests import overlaps, probes, synthetic
from tests.cli import fail
from tests.conftest import by_day
from tuner.cli import main
from tuner.errors import SwitchpointError
from tuner.models import fitting
from tuner.rawfile.kinds import KINDS
from tuner.store.store import Store

VALUES = {
    "INTEGER": [-1, 0, 2**62, None],
    "REAL": [9e999, -1.0, 0.0, None],
    "TEXT": ["x", "\x1b[31m<b>", "../x", b"\xff\x1b[31m"],
    "BLOB": [],
}
TABLES = (
    "cell",
    "launch",
    "model",
    "overlap",
    "point",
    "probe",
    "product",
    "rule",
    "system",
    "tuned",
)
COMMANDS = (
    ("show", "--json"),
    ("show", "models"),
    ("show", "overlap"),
    ("export", "--format", "json"),
    ("bundle", "--output", "its.bundle"),
    ("tune",),
    ("fit",),
)
DAY, NIGHT = 16, 1
"""One change of so many is tried."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a store with rows in each table but those of soaks."""
    place = tmp_path_factory.mktemp("whole")
    small = synthetic.Campaign(launches=2, samples=10, sizes=(8, 64), cores=64)
    products = replace(small, operation="spmv", patterns=(("matrix:a.mtx", 3, 2.0),), sizes=(8,))
    for campaign in (small, synthetic.of_bcast(small), products):
        synthetic.write(place, campaign)
    overlaps.write(place)
    probes.write(place, probes.ProbeCampaign(sizes=[1, 64, 512, 4096], launches=2, samples=5))
    path = synthetic.tuned_store(place)
    with Store.open(path) as store:
        for system in store.systems_with("probe"):
            fitting.fit(store, system)
    return path


def read_all(path: Path) -> None:
    """Read what a store has. Raise StoreError."""
    with Store.open(path, readonly=True) as store:
        store.launches()
        store.cells()
        for system in store.systems()["system"]:
            store.contents(system)
            store.products(system)
            store.table(system)
            store.points(system)
            store.rules(system)
            fitting.last_fitted(store, system)
            for kind in KINDS.values():
                store.records(kind.name, system)
            for campaign in store.campaigns(system)["campaign"]:
                store.decisions(system, campaign)


def changes(whole: Path, table: str) -> list[tuple[str, object]]:
    """Return the columns of a table with values that they get."""
    with sqlite3.connect(whole) as connection:
        rows = connection.execute(f"PRAGMA table_info({table})").fetchall()
    connection.close()
    return [(name, value) for _, name, kind, *_ in rows for value in VALUES[kind]]


@pytest.mark.parametrize(
    ("table", "every"), by_day([(t, DAY) for t in TABLES], [(t, NIGHT) for t in TABLES])
)
def test_an_impossible_value_is_an_error_of_one_line(
    whole: Path, table: str, every: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By day only some are tried, and without commands."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "its.db"
    for number, (name, value) in enumerate(changes(whole, table)):
        if number % every != number // every % every:
            continue
        shutil.copy(whole, path)
        changed = "CAST(? AS TEXT)" if isinstance(value, bytes) else "?"
        connection = sqlite3.connect(path)
        try:
            with connection:
                connection.execute(f'UPDATE OR IGNORE {table} SET "{name}" = {changed}', [value])
        except sqlite3.IntegrityError:  # NULL, where the schema has none
            continue
        finally:
            connection.close()
        try:
            read_all(path)
        except SwitchpointError as error:
            assert str(error).isprintable(), (name, value)
        for command in COMMANDS if every == NIGHT else ():
            answer = CliRunner().invoke(main, [*command, "--database", str(path)])
            assert answer.exception is None or isinstance(answer.exception, SystemExit), name
            assert "\x1b" not in answer.output, (name, value)
        assert not list(tmp_path.parent.glob("x*"))


@pytest.mark.parametrize(
    ("pattern", "value"),
    [
        (r'"value":[^,}]*', '"value":1e308'),
        (r'"alpha_s":[^,}]*', '"alpha_s":-1e308'),
        (r'"b_max":[\d.e+-]+', '"b_max":0.0'),
        (r'"b_inj":[\d.e+-]+,', '"b_inj":-1e29,'),
        (r'"most_processes":\d+', '"most_processes":0'),
        (r'"links":null', '"links":{"kind":"x","sizes":[4,4]}'),
        (r'"links":null', '"links":{"kind":"torus","sizes":[]}'),
        (r'"links":null', '"links":{"kind":"dragonfly","sizes":[4,4]}'),
        (r'"links":null', '"links":{"kind":"fattree","sizes":[9999999999,9999999999]}'),
        (r'"samples":\d+', '"samples":-1'),
        (r'"protocols":\[.*?\]', '"protocols":[]'),
        (r"\Z", "[" * 100_000),
        (r"\A{", '{"x":' + "[" * 100_000),
    ],
    ids=lambda text: text[:16],
)
def test_parameters_that_nobody_fitted_are_fitted_anew(
    whole: Path, pattern: str, value: str, tmp_path: Path
) -> None:
    path = Path(shutil.copy(whole, tmp_path))
    with Store.open(path) as store:
        (system,) = store.systems_with("probe")
        text = re.sub(pattern, value, str(store.model(system)))
        store.put_model(system, text)
        assert fitting.last_fitted(store, system) is None
    assert "run `switchpoint fit`" in fail("show", "models", "--database", path)
