"""Full disks, errors, no memory, kills and losses of power, at each change of a file."""

import errno
import shutil
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from random import Random

import pytest

from tests import powerless, starved
from tests.conftest import by_day
from tests.faults import KILLED, Driver, Repeated, build_library, files, in_memory

ERRORS = ("ENOSPC", "EIO", "EMFILE", "ENOMEM")
FAULTS = {name: getattr(errno, name) for name in ERRORS} | {"kill": 0}
BY_DAY = 25
"""By day, one change in so many fails."""

ALLOCATIONS_BY_DAY, ALLOCATIONS_BY_NIGHT = 311, 10

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
    tried = Repeated(driver, place, command)
    for nth in count(1, every):
        tried.begin_again()
        ended = driver.run(
            tried.results, *tried.words, nth=nth, error=FAULTS[fault], torn=nth % 2 == 0
        )
        check_end(ended.code, ended.said, fault)
        tried.check()
        if not ended.met:
            break
    assert nth > every, "no change is asked for"
    record_property("faults", nth // every)


@pytest.mark.parametrize("command", starved.COMMANDS)
@pytest.mark.parametrize("every", by_day([ALLOCATIONS_BY_DAY], [ALLOCATIONS_BY_NIGHT]))
def test_an_allocation_that_fails_loses_nothing(
    driver: Driver, place: Path, command: str, every: int
) -> None:
    assert starved.starve(driver, place, command, every) > 1


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
    tried = Repeated(driver, place, command)
    results, old, whole = tried.results, tried.old, tried.whole
    ended = driver.record(results, place / "record", *tried.words)
    assert ended.code == 0, ended.said
    tried.begin_again()
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
            for path in left.keys() & whole.keys():
                assert path.suffix == ".db" or left[path] in (old.get(path), whole[path]), path
            tried.check(earlier)
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
