"""Commands that are ended at random: nothing is left running, and what was measured is kept.

Run from the checkout: python -m tests.kills [--kills 100] [--seed 1] run|advise|serve
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
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from tests import synthetic
from tests.faults import dump
from tests.kernels.conftest import build_kernels
from tuner.campaign.order import PLANS
from tuner.machine.mpi import find_mpis
from tuner.rawfile import keeping
from tuner.rawfile.ingest import ingest

SIGNALS = (signal.SIGTERM, signal.SIGKILL, signal.SIGINT)
GRACE_S = 60.0
"""What the processes of a command have to end after it, on a busy machine too."""

START_S = 2.0
LOADING = ", in <module>\n    from "
"""A line of Python's own answer to Ctrl-C, a traceback, while modules are loaded."""


def started_for(results: Path) -> list[int]:
    """Return the running processes that a command with these results has started."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            if f"SWITCHPOINT_RESULTS={results}\0".encode() in path.read_bytes():
                found.append(int(path.parent.name))
    return found


def until(condition: Callable[[], object], timeout_s: float = GRACE_S) -> None:
    """Wait until a function returns a true value."""
    end_s = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < end_s, "timed out"
        time.sleep(0.02)


def end(
    command: Sequence[str], results: Path, number: int, when: Callable[[], object]
) -> tuple[int, str]:
    """Start a command, and signal it at a moment unless it has ended; return its end and words.

    Nothing that it started may run on.
    """
    with tempfile.TemporaryFile("w+") as output:
        with subprocess.Popen(
            command,
            env=os.environ | {"SWITCHPOINT_RESULTS": str(results)},
            stdout=output,
            stderr=output,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        ) as run:
            until(lambda: run.poll() is not None or when())
            run.send_signal(number)
            code = run.wait(GRACE_S)
        until(lambda: not started_for(results))
        output.seek(0)
        return code, output.read()


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
    """Return the finished launches of races that are where they ran, and not among the results."""
    kept = {content.splitlines()[0] for content in launches(results).values()}
    found = []
    for name in PLANS.campaigns():
        stage = Path(PLANS.load(PLANS.path_of(name)).stage)
        found += [
            path
            for path in keeping.complete_of_campaign(stage, name)
            if path.read_bytes().splitlines()[0] not in kept
        ]
    return found


def words_of_run(results: Path) -> list[str]:
    """Return the words that begin a campaign, or resume the one that was ended."""
    for name in PLANS.campaigns():
        if not PLANS.load(PLANS.path_of(name)).ended:
            return ["run", "--resume", name]
    selection = ["--tag=smoke", "--name=exchange|discovery|allreduce", "--setvar=sizes=8,1K"]
    options = ["--minutes", "0.6", "--environment", find_mpis()[0].name]
    return ["run", *options, "--", *selection, f"--prefix={results}/reframe"]


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
    "advise": (words_of_advise, 60.0, False),
    "serve": (words_of_serve, 6.0, False),
}
"""The words of each command, the seconds within which it is ended, and whether it is resumed."""


def is_past(due_s: float) -> bool:
    """Return whether a moment has come."""
    return time.monotonic() >= due_s


def main() -> None:
    """End a command very often; print how often, and how many launches were kept."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--kills", type=int, default=100, help="how often (default: 100)")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("command", choices=COMMANDS)
    options = parser.parse_args()
    chance = random.Random(options.seed)
    words_of, most_s, is_resumed = COMMANDS[options.command]
    made: dict[Path, bytes] = {}
    ends: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as place:
        for kill in range(options.kills):
            results = Path(place) / ("results" if is_resumed else f"results-{kill}")
            os.environ["SWITCHPOINT_RESULTS"] = str(results)
            number, at_s = chance.choice(SIGNALS), chance.uniform(START_S, most_s)
            due_s = time.monotonic() + at_s
            command = [sys.executable, "-m", "tuner.cli", *words_of(results)]
            code, said = end(command, results, number, partial(is_past, due_s))
            assert code in (0, 1, -number, 128 + number), (code, said)
            assert "Traceback" not in said or LOADING in said, said
            ends[number.name if is_past(due_s) else "by itself"] += 1
            kept = check_kept(results, made if is_resumed else {})
            made = made | kept
            if not is_resumed:
                assert lost(results) == []
    print(json.dumps({"command": options.command, "ends": ends, "launches": len(made)}))


if __name__ == "__main__":
    main()
