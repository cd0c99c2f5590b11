"""Full disks, errors of devices, no free descriptors, kills and losses of power, at each change."""

import errno
import shutil
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from random import Random

import pytest

from tests import powerless, synthetic
from tests.conftest import by_day
from tests.faults import KILLED, Driver, build_library, dump, in_memory

FAULTS = {"ENOSPC": errno.ENOSPC, "EIO": errno.EIO, "EMFILE": errno.EMFILE, "kill": 0}
BY_DAY = 25
"""By day, one change in so many fails."""

POWER_LOSSES = 200


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    driver = Driver(build_library(tmp_path_factory.mktemp("library")))
    yield driver
    driver.close()


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    with in_memory(tmp_path) as place:
        yield place


def campaign(number: int) -> synthetic.Campaign:
    name = f"2026010{number}T000000Z"
    return synthetic.Campaign(name=name, launches=3, sizes=(8,), samples=20, seed=number)


def words_of(command: str, place: Path) -> list[str]:
    """Return the words of a command, whose results are in `results`."""
    if command in ("ingest", "keep"):
        return [command, *map(str, synthetic.write(place / "raw", campaign(2)))]
    if command == "tune":
        return ["tune", "--require-soak", "0"]
    return ["export", "--output", str(place / "results" / "own.table")]


def prepare(driver: Driver, place: Path, command: str) -> tuple[Path, Path, list[str]]:
    """Return results of an earlier campaign, a copy of them, and the words of a command."""
    before, results, words = place / "before", place / "results", words_of(command, place)
    driver.warm_up(before, "ingest", *map(str, synthetic.write(place / "first", campaign(1))))
    if command == "export":
        driver.warm_up(before, "tune", "--require-soak", "0")
        (before / "own.table").write_text("an earlier table\n")
    shutil.copytree(before, results)
    return before, results, words


def files(results: Path) -> dict[Path, set[object]]:
    """Return all that the results hold: of each store its rows, of other files the content."""
    return {
        path.relative_to(results): {*dump(path)} if path.suffix == ".db" else {path.read_bytes()}
        for path in results.rglob("*")
        if path.is_file() and not path.name.endswith(("-wal", "-shm"))
    }


@pytest.mark.parametrize("command", ["ingest", "keep", "tune", "export"])
@pytest.mark.parametrize(
    ("fault", "every"),
    by_day([(fault, BY_DAY) for fault in FAULTS], [(fault, 1) for fault in FAULTS]),
)
def test_a_fault_at_any_change_is_one_line_and_loses_nothing(
    driver: Driver,
    place: Path,
    record_property: Callable[[str, object], None],
    command: str,
    fault: str,
    every: int,
) -> None:
    before, results, words = prepare(driver, place, command)
    ended = driver.warm_up(results, *words)
    assert ended.code == 0, ended.said
    whole, old = files(results), files(before)
    for nth in count(1, every):
        shutil.rmtree(results)
        shutil.copytree(before, results)
        ended = driver.run(results, *words, nth=nth, error=FAULTS[fault], torn=nth % 2 == 0)
        check_end(ended.code, ended.said, fault)
        left = files(results)
        assert all(content & whole[path] <= left[path] for path, content in old.items())
        again = driver.run(results, *words)
        assert again.code == 0, again.said
        assert files(results) == whole
        if not ended.met:
            break
    assert nth > every, "no change is asked for"
    record_property("faults", nth // every)


@pytest.mark.parametrize("command", ["ingest", "keep", "tune", "export"])
@pytest.mark.parametrize(("losses", "seed"), by_day([(2, 0)], [(POWER_LOSSES, 1)]))
def test_a_loss_of_power_takes_the_last_transaction_at_most(
    driver: Driver,
    place: Path,
    record_property: Callable[[str, object], None],
    command: str,
    losses: int,
    seed: int,
) -> None:
    before, results, words = prepare(driver, place, command)
    old = files(before)
    ended = driver.record(results, place / "record", *words)
    assert ended.code == 0, ended.said
    whole = files(results)
    shutil.rmtree(results)
    shutil.copytree(before, results)
    changes, random = powerless.changes(place / "record"), Random(seed)
    points = sorted(random.choices(range(1, len(changes) + 1), k=losses))
    disk, earlier, last = powerless.Disk(results), old, old
    for number, change in enumerate(changes, 1):
        disk.apply(change)
        if change.kind == "delete" and change.path.name.endswith("-journal"):
            earlier, last = last, files(put(results, disk.seen()))  # a transaction has ended
        while points and points[0] == number:
            points.pop(0)
            left = files(put(results, disk.lose_power(random)))
            for kept in old, earlier:
                assert all(its & whole[path] <= left[path] for path, its in kept.items())
            for path in left.keys() & whole.keys():
                assert path.suffix == ".db" or left[path] in (old.get(path), whole[path]), path
            again = driver.run(results, *words)
            assert again.code == 0, again.said
            assert files(results) == whole
    record_property("losses", losses)


def put(results: Path, content: dict[Path, bytes]) -> Path:
    """Make the results what a disk holds; return their directory."""
    shutil.rmtree(results, ignore_errors=True)
    for path, data in content.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return results


def check_end(code: int, said: str, fault: str) -> None:
    """Check that the command was killed, or ended well, or with one line that says why not."""
    if fault == "kill":
        assert code in (0, KILLED), said
    elif code != 0:
        assert code == 1, said
        *_, line, met = said.splitlines()
        assert line.startswith("Error: ") and met == "1", said
        assert said.count("Error") == 1 and "Traceback" not in said
