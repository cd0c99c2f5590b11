"""The night's parts: complete, within their time, resumed where they ended, with nothing left."""

import json
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests import nightly
from tests.conftest import Require
from tests.endurance import ONE_WAY, PROCS, by_memory
from tests.nightly import PARTS, command_of
from tests.processes import command_lines
from tuner.inputs.matrices.market import read_pattern
from tuner.inputs.matrices.partition import ownership
from tuner.inputs.structure.halo import halo
from tuner.machine.mpi import Mpi, find_mpis
from tuner.paths import CHECKOUT

NIGHT = """
import sys
from pathlib import Path
from tests import nightly
from tests.nightly import NightPart

place = Path(sys.argv.pop())
nightly.build_root = lambda: place
ran = f"echo ran >> {place / 'ran'}"
nightly.PARTS = (
    NightPart("good", 1, command=("sh", "-c", ran)),
    NightPart("bad", 1, command=("sh", "-c", ran + "; exit 3")),
    NightPart("spare", 1, command=("false",), is_optional=True),
    NightPart("slow", 0.001, command=("sh", "-c", f"setsid sleep {sys.argv.pop()} & wait")),
    NightPart("tested", 5, tests=(str(place / "test_three.py"),)),
)
sys.exit(nightly.main())
"""

TESTS = """
import pytest, subprocess, time
from pathlib import Path
pytestmark = pytest.mark.nightly
def test_that_a_process_without_a_parent_goes_when_it_ends():
    orphan = int(subprocess.check_output(["sh", "-c", "sleep 0.1 >&2 & echo $!"]))
    for _ in range(1000):
        if not Path(f"/proc/{orphan}").exists():
            return
        time.sleep(0.02)
    assert False
def test_that_fails(): assert False
def test_that_skips(): pytest.skip("zlib: not here")
"""


def test_the_parts_end_within_three_hours() -> None:
    assert sum(part.limit_min for part in PARTS) <= 175  # and what .ci/nightly installs


def test_each_test_is_in_one_part() -> None:
    tested = [part for part in PARTS if part.tests]
    assert tested[-1].tests == ("tests/",)  # what no other part names
    named = [test for part in tested[:-1] for test in part.tests]
    command = command_of(tested[-1], Path("junit.xml"))
    assert {f"--deselect={test}" for test in named} <= set(map(str, command))
    for path, _, function in (test.partition("::") for test in named):
        there = CHECKOUT / path
        assert there.exists() if not function else f"def {function}(" in there.read_text()


def night(place: Path, sleeping_s: str, *parts: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", NIGHT, *parts, sleeping_s, str(place)]
    return subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True)


def sleeps(sleeping_s: str) -> bool:
    return any(words == ["sleep", sleeping_s] for _, words in command_lines())


def test_a_night_that_is_terminated_ends_what_it_started(tmp_path: Path) -> None:
    sleeping_s = f"8{abs(hash(tmp_path)) % 10**8:08d}"
    long = NIGHT.replace('"slow", 0.001', '"slow", 1')
    command = [sys.executable, "-c", long, "slow", sleeping_s, str(tmp_path)]
    with subprocess.Popen(command, cwd=CHECKOUT) as running:
        while not sleeps(sleeping_s):
            assert running.poll() is None
            time.sleep(0.02)
        running.terminate()
        assert running.wait() == 128 + signal.SIGTERM
    assert not sleeps(sleeping_s)


def test_what_passed_with_other_mpis_is_run_again(monkeypatch: pytest.MonkeyPatch) -> None:
    before = nightly.state()
    monkeypatch.setattr("tests.bench.report.find_mpis", lambda: ["another"])
    assert nightly.state() != before


def test_a_part_during_which_the_checkout_changed_is_of_no_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    states = iter(("before", "after"))
    monkeypatch.setattr(nightly, "build_root", lambda: tmp_path)
    monkeypatch.setattr(nightly, "state", lambda: next(states))
    parts = [nightly.NightPart(name, 1, command=("true",)) for name in ("one", "two")]
    said = "the checkout or an MPI has changed during one; start again"
    with pytest.raises(SystemExit, match=said):
        nightly.run_missing("nightly", parts, nightly.make_parser("a").parse_args([]))
    assert not [*tmp_path.rglob("*.json")]


@pytest.mark.check
def test_a_night_goes_on_where_it_ended_and_leaves_nothing_running(tmp_path: Path) -> None:
    (tmp_path / "test_three.py").write_text(TESTS)
    sleeping_s = f"9{abs(hash(tmp_path)) % 10**8:08d}"
    first = night(tmp_path, sleeping_s)
    assert first.returncode == 1, first.stdout + first.stderr
    rows = re.findall(r"^(\w+) +(\d+) +(\d+) +(\d+) +[\d.]+ min$", first.stdout, re.MULTILINE)
    assert rows == [
        ("good", "1", "0", "0"),
        ("bad", "0", "1", "0"),
        ("spare", "0", "0", "1"),
        ("slow", "0", "1", "0"),
        ("tested", "1", "1", "1"),
    ]
    assert "bad: FAILED: exit status 3" in first.stdout
    assert "slow: FAILED: over its limit of 0.001 min" in first.stdout
    assert "tested: 1 skipped: zlib: not here" in first.stdout
    assert re.search(r"tested: FAILED: .*test_that_fails", first.stdout)
    assert not sleeps(sleeping_s)

    (kept,) = tmp_path.glob("nightly/*/good.json")
    assert json.loads(kept.read_text())["passed"] == 1
    assert not [*tmp_path.glob("nightly/*/spare.json")]  # it may be possible the next time
    again = night(tmp_path, sleeping_s)
    assert (tmp_path / "ran").read_text().split() == ["ran", "ran"]
    table = first.stdout.partition("part ")[2]
    assert again.stdout.partition("part ")[2] == table
    assert night(tmp_path, sleeping_s, "good", "g*").returncode == 0
    assert (tmp_path / "ran").read_text().split() == ["ran"] * 3
    assert "no part b; there are good, bad" in night(tmp_path, sleeping_s, "b").stderr


@pytest.mark.parametrize("share", ["0", "nan"])
def test_a_share_of_nothing_is_refused(share: str) -> None:
    command = [sys.executable, "-m", "tests.endurance", f"--share={share}"]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True)
    assert done.returncode == 2
    assert f"--share={share}: not a positive number" in done.stderr


@pytest.mark.parametrize("procs", PROCS)
def test_endurance_has_messages_that_nothing_but_an_acknowledgement_answers(procs: int) -> None:
    matrix = read_pattern(ONE_WAY)
    messages = halo(matrix, ownership(ONE_WAY, matrix, "contiguous", procs))
    pairs = {*zip(messages.source.tolist(), messages.destination.tolist(), strict=True)}
    assert len(pairs) == procs - 1
    assert not pairs & {(receiver, sender) for sender, receiver in pairs}
    mpi = Mpi(name="mpi", family="", version="", mpicc="", mpiexec="")
    words = [part.command for part in by_memory(mpi, "exchange", 1)]
    assert sum(f"--pattern=matrix:{ONE_WAY}" in each for each in words) == len(PROCS)


@pytest.mark.check
def test_the_smallest_share_of_endurance_runs(require: Require) -> None:
    require("mpi", bool(find_mpis()), "no MPI is installed")
    parts = ["kills-serve", f"discovery-{find_mpis()[0].name}-2-prompt"]
    command = [sys.executable, "-m", "tests.endurance", "--share=1e-6", *parts]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    passed = re.findall(r"^(\S+) +1 +0 +0 +[\d.]+ min$", done.stdout, re.MULTILINE)
    assert passed == parts
