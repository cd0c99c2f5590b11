"""Commands that are ended at random: nothing is left running, and what was measured is kept.

Another process writes to the same store all the time. Most ends are by SIGKILL, others by SIGTERM
or SIGINT. Run from the checkout:
python -m tests.kill_commands [--kills 100] [--seed 1] run|soak|advise|serve
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from multiprocessing.sharedctypes import Synchronized
from multiprocessing.synchronize import Event
from pathlib import Path

from tests import synthetic
from tests.faults import dump
from tests.kernels.conftest import build_kernels
from tests.kill_writers import FORK, alongside
from tests.processes import environments, wait_for
from tests.test_soaking import measured
from tuner.campaign.order import PLANS, SOAKINGS
from tuner.machine.mpi import find_mpis
from tuner.rawfile import keeping
from tuner.rawfile.ingest import ingest
from tuner.store.database import StoreError
from tuner.store.store import Store

SIGNALS = {signal.SIGKILL: 4, signal.SIGTERM: 1, signal.SIGINT: 1}
"""How often each is sent, relative to the others."""

GRACE_S = 60.0
"""What the processes of a command have to end after it, on a busy machine too."""

WHOLE_S = 600.0
"""What a command may take that nothing ends."""

START_S = 2.0
LOADING = ", in <module>\n    from "
"""A line of Python's own answer to Ctrl-C, a traceback, while modules are loaded."""


def started_for(results: Path) -> list[int]:
    """Return the running processes that a command with these results has started."""
    return [pid for pid, its in environments() if its.get("SWITCHPOINT_RESULTS") == str(results)]


def end(
    command: Sequence[str], results: Path, number: int, when: Callable[[], object]
) -> tuple[int, str, bool]:
    """Start a command, and signal it at a moment unless it has ended by itself.

    Nothing that it started may run on: what does is killed, and the test fails. Return its exit
    code, its words, and whether it was signalled.
    """
    with tempfile.TemporaryFile("w+") as output:
        run = subprocess.Popen(
            command,
            env=os.environ | {"SWITCHPOINT_RESULTS": str(results)},
            stdout=output,
            stderr=output,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        try:
            wait_for(lambda: run.poll() is not None or when(), WHOLE_S)
            was_signalled = run.poll() is None
            run.send_signal(number)
            code = run.wait(GRACE_S)
            wait_for(lambda: not started_for(results), GRACE_S)
        except BaseException:
            run.kill()
            for pid in started_for(results):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            run.wait()
            raise
        output.seek(0)
        return code, output.read(), was_signalled


def launches(results: Path) -> dict[Path, bytes]:
    """Return the raw files that were kept; each launch is kept once."""
    there = {path: path.read_bytes() for path in results.glob("*-*/*/*.jsonl")}
    headers = [content.splitlines()[0] for content in there.values()]
    assert len({*headers}) == len(headers)
    return there


def check_kept(results: Path, before: dict[Path, bytes]) -> dict[Path, bytes]:
    """Check that no launch was lost or changed and that the store is sound; return the launches."""
    there = launches(results)
    assert before.items() <= there.items()
    if (results / "switchpoint.db").exists():
        dump(results / "switchpoint.db")
    return there


def lost(results: Path) -> list[Path]:
    """Return the finished launches that are where they ran, and not among the results."""
    kept = {content.splitlines()[0] for content in launches(results).values()}
    found = []
    for orders in PLANS, SOAKINGS:
        for name in orders.campaigns():
            stage = orders.load(orders.path_of(name)).stage
            paths = keeping.complete_of_campaign(Path(stage), name) if stage else []
            found += [path for path in paths if path.read_bytes().splitlines()[0] not in kept]
    return found


@contextmanager
def second_writer(results: Path, place: Path) -> Iterator[None]:
    """Let another process add launches to the store all the time; each is then there once."""
    written = FORK.Value("i", 0)
    with alongside(write, results / "switchpoint.db", place, written):
        yield
    with Store.open(results / "switchpoint.db", readonly=True) as store:
        campaigns = [its.campaign for its in store.launches().values()]
    kept = [name for name in campaigns if name.startswith(f"{place.name}-")]
    assert len({*kept}) == len(kept) == written.value


def write(ends: Event, database: Path, place: Path, written: Synchronized[int]) -> None:
    """Add launches to the store all the time, and count them."""
    while not ends.wait(0.2):
        name = f"{place.name}-{written.value}"
        its = synthetic.Campaign("elsewhere:cpu", "mpich", name, launches=1, sizes=(8,), samples=20)
        files = synthetic.write(place, its)
        with suppress(StoreError):  # locked, as it says: once more
            assert not ingest(database, files).problems
            written.value += 1


def words_of_run(results: Path) -> list[str]:
    """Return the words that begin a campaign, or resume the one that was ended."""
    for name in PLANS.campaigns():
        if not PLANS.load(PLANS.path_of(name)).ended:
            return ["run", "--resume", name]
    selection = ["--tag=smoke", "--name=exchange|discovery|allreduce", "--setvar=sizes=8,1K"]
    options = ["--minutes", "0.6", "--environment", find_mpis()[0].name]
    return ["run", *options, "--", *selection, f"--prefix={results}/reframe"]


def words_of_soak(results: Path) -> list[str]:
    """Return the words that soak what won a race, ever more often."""
    if not (results / "switchpoint.db").exists():
        (scratch := results.parent / "scratch").mkdir()
        measured(results, scratch)
    soaks = len([*results.glob("*/*Z/soak-*.jsonl")])
    return ["soak", "--system", "local-cpu", "--require-soak", str(200_000 * (soaks + 1))]


def words_of_advise(results: Path) -> list[str]:
    """Return the words that advise on a program whose calls are to be measured."""
    build = build_kernels(find_mpis()[0])
    os.environ["SWITCHPOINT_KERNELS"] = str(build)
    options = ["-n", "2", "--budget", "90s", "--require-soak", "1000"]
    return ["advise", *options, "--", str(build / "tests/swp_mix"), "500", "64", "10"]


def words_of_serve(results: Path) -> list[str]:
    """Return the words that show a store, which is tuned first."""
    ingest(results / "switchpoint.db", synthetic.write(results, synthetic.Campaign()))
    return ["serve", "--port", "0"]


COMMANDS = {
    "run": (words_of_run, 60.0, True),
    "soak": (words_of_soak, 15.0, True),
    "advise": (words_of_advise, 60.0, False),
    "serve": (words_of_serve, 6.0, False),
}
"""The words of each command, the seconds within which it is ended, and whether it is resumed."""


def is_past(due_s: float) -> bool:
    """Return whether a moment has come."""
    return time.monotonic() >= due_s


def main() -> None:
    """Kill a command very often; print how often, and how many launches were kept."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kills", type=int, default=100, help="how often (default: 100)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("command", choices=COMMANDS)
    options = parser.parse_args()
    chance = random.Random(options.seed)
    words_of, most_s, is_resumed = COMMANDS[options.command]
    made: dict[Path, bytes] = {}
    ends: Counter[str] = Counter()
    del os.environ["SWITCHPOINT_REQUIRE_SOAK"]  # by which tests choose without soaks
    with tempfile.TemporaryDirectory() as place:
        while ends["SIGKILL"] < options.kills:
            turn = ends.total()
            results = Path(place) / ("results" if is_resumed else f"results-{turn}")
            os.environ["SWITCHPOINT_RESULTS"] = str(results)
            (number,) = chance.choices([*SIGNALS], [*SIGNALS.values()])
            command = [sys.executable, "-m", "tuner.cli", *words_of(results)]
            due_s = time.monotonic() + chance.uniform(START_S, most_s)
            with second_writer(results, Path(place) / f"writer-{turn}"):
                code, said, was_signalled = end(command, results, number, partial(is_past, due_s))
            ended = (-number,) if number == signal.SIGKILL else (1, -number, 128 + number)
            assert code == 0 or (was_signalled and code in ended), (code, said)
            assert "Traceback" not in said or LOADING in said, said
            ends[number.name if was_signalled else "by itself"] += 1
            kept = check_kept(results, made if is_resumed else {})
            made = made | kept
            if not is_resumed:
                assert lost(results) == []
        if is_resumed:
            subprocess.run([sys.executable, "-m", "tuner.cli", *words_of(results)], check=True)
            assert lost(results) == []
            made = check_kept(results, made)
    print(json.dumps({"command": options.command, "ends": ends, "launches": len(made)}))


if __name__ == "__main__":
    main()
