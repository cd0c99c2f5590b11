"""The long runs, part by part, each within a time of its own; all of them within three hours.

The results of a part are kept in build/nightly/STATE, with its output beside it. A second start at
the same commit, with the same MPIs, continues where the first one ended: parts that are done are
not run again, unless they are named. The program prints one table at the end, and exits with 1 if
something failed.
Run from the checkout: python -m tests.nightly [PART...]
"""

from __future__ import annotations

import argparse
import fnmatch
import hashlib
import json
import math
import os
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from xml.etree import ElementTree

from tests.bench.report import UNKNOWN, commit, lasting, print_table
from tests.limited import run_limited
from tuner import atomic
from tuner.machine.directories import build_root
from tuner.paths import CHECKOUT

SIMGRID = build_root() / "simgrid-4.1"
PYTEST = (sys.executable, "-m", "pytest", "--numprocesses", "2", "--no-loadscope-reorder")


@dataclass(frozen=True)
class NightPart:
    """A part of the night: a command, or the nightly tests below some paths.

    A test belongs to the first part that names it. A failure of an optional part is reported as
    skipped.
    """

    name: str
    limit_min: float
    tests: tuple[str, ...] = ()
    dist: str = "load"  # as pytest-xdist takes it: fixtures of some files are costly
    command: tuple[str | Path, ...] = ()
    is_optional: bool = False


def switchpoint(*arguments: str) -> tuple[str, ...]:
    """Return the command that runs `switchpoint`."""
    return (sys.executable, "-m", "tuner.cli", *arguments)


def with_properties() -> tuple[str, ...]:
    """Return the files of tests that draw examples."""
    draws = re.compile(r"^from hypothesis import.* given", re.MULTILINE)
    files = sorted((CHECKOUT / "tests").rglob("test_*.py"))
    return tuple(
        str(file.relative_to(CHECKOUT)) for file in files if draws.search(file.read_text())
    )


PARTS = (  # limits add up to less than three hours: .ci/nightly installs missing parts before
    NightPart("simgrid", 10, command=(CHECKOUT / ".ci" / "simgrid", SIMGRID), is_optional=True),
    NightPart(
        "properties",
        4,
        command=(*PYTEST, "--dist", "loadfile", "--hypothesis-profile=new", *with_properties()),
    ),
    NightPart(
        "valgrind",
        16,
        tests=(
            "tests/kernels/test_builds.py::test_valgrind_finds_nothing_in_the_whole",
            "tests/kernels/test_neighborhoods.py::test_valgrind_finds_nothing_in_neighborhoods",
            "tests/kernels/test_planned.py::test_valgrind_finds_nothing_in_planned_calls",
        ),
    ),
    NightPart("oracle", 30, tests=("tests/kernels/test_library.py",)),
    NightPart("kernels", 21, tests=("tests/kernels/",)),
    NightPart("fuzzing", 5, tests=("tests/fuzzing/",)),
    NightPart("foreign", 16, tests=("tests/foreign/",)),
    NightPart("simulated", 6, tests=("tests/simulated/",), dist="loadfile"),
    NightPart("rest", 20, tests=("tests/",), dist="loadfile"),
    NightPart(
        "endurance",
        13,
        command=(
            *(sys.executable, "-m", "tests.endurance", "--share=0.01"),
            *("discovery-*-prompt", "kills-*"),
        ),
    ),
    NightPart("campaign", 10, command=switchpoint("run", "--minutes", "7")),
    NightPart(
        "soak",
        24,
        command=switchpoint(
            *("run", "--minutes", "20", "--", "--tag=soak"),
            *("--setvar=soak.executions=1000000", "--setvar=soak.sizes=8"),
        ),
    ),
)


@dataclass
class NightResult:
    """The findings of a part."""

    part: str
    passed: int = 0
    failures: list[str] = field(default_factory=list)
    skipped: dict[str, int] = field(default_factory=dict)  # reason → tests
    seconds: float = 0.0

    def as_row(self) -> list[str]:
        """Return the row of the table."""
        counts = (self.passed, len(self.failures), sum(self.skipped.values()))
        return [self.part, *map(str, counts), f"{self.seconds / 60:.1f} min"]


def command_of(part: NightPart, junit: Path) -> list[str | Path]:
    """Return the command of a part: its own, or pytest without the tests of parts before it."""
    if part.command:
        reported = part.command[: len(PYTEST)] == PYTEST
        return [*part.command, *[f"--junitxml={junit}"] * reported]
    before = [test for other in PARTS[: PARTS.index(part)] for test in other.tests]
    left = [f"--deselect={test}" for test in before]
    command = [*PYTEST, "--dist", part.dist, "-m", "nightly", f"--junitxml={junit}"]
    return [*command, *part.tests, *left]


def run(part: NightPart, limit_min: float, directory: Path) -> NightResult:
    """Run a part, keep its findings in the directory, and return them."""
    junit, log = directory / f"{part.name}.xml", directory / f"{part.name}.log"
    junit.unlink(missing_ok=True)
    env = os.environ | {"SWITCHPOINT_RESULTS": str(directory / "results")}
    env["PATH"] = f"{SIMGRID / 'bin'}:{env['PATH']}"
    with log.open("wb") as output:
        ended = run_limited(command_of(part, junit), limit_min * 60, env, output)
    result = NightResult(part.name, seconds=ended.seconds)
    if junit.exists():
        read_junit(junit, result)
    if not ended.in_time:
        result.failures.append(f"over its limit of {limit_min:g} min")
    elif ended.status and not result.failures:
        result.failures.append(f"exit status {ended.status}; its output is in {log}")
    elif not junit.exists():
        result.passed = 1
    if part.is_optional:
        result.skipped.update(dict.fromkeys(result.failures, 1))
        result.failures.clear()
    if not (part.is_optional and result.skipped):  # it may be possible at the next start
        atomic.write(directory / f"{part.name}.json", json.dumps(asdict(result), indent=1) + "\n")
    return result


def read_junit(path: Path, result: NightResult) -> None:
    """Add the tests of pytest's file to a result."""
    reasons: Counter[str] = Counter()
    for case in ElementTree.parse(path).iter("testcase"):
        skipped = case.find("skipped")
        if skipped is not None:
            reasons[skipped.get("message", "")] += 1
        elif case.find("failure") is not None or case.find("error") is not None:
            result.failures.append(f"{case.get('classname')}::{case.get('name')}")
        else:
            result.passed += 1
    result.skipped.update(reasons)


def kept(path: Path) -> NightResult | None:
    """Return the findings of a part in this state before, None when it was not run to its end."""
    try:
        return NightResult(**json.loads(path.read_text()))
    except OSError:
        return None


def state() -> str:
    """Return the commit, and a digest of how files differ from it and of the machine with its MPIs.

    Without git the state is that of now alone, so that nothing of it is kept.
    """
    if (known := commit()["commit"]) == UNKNOWN:
        return f"{UNKNOWN}-{time.time_ns()}"

    def listed(*words: str) -> bytes:
        return subprocess.run(["git", "-C", str(CHECKOUT), *words], capture_output=True).stdout

    changed = json.dumps(lasting()).encode() + listed("diff", "HEAD")
    for name in listed("ls-files", "-z", "--others", "--exclude-standard").split(b"\0")[:-1]:
        path = CHECKOUT / os.fsdecode(name)
        changed += name
        if path.is_file() and not path.is_symlink():
            changed += path.read_bytes()
    digest = hashlib.sha256(changed).hexdigest()[:8]
    return f"{known:.12}-{digest}"


def show(results: Sequence[NightResult]) -> None:
    """Print the table, and below it the reasons of skips and the failures."""
    minutes = sum(result.seconds for result in results) / 60
    total = ["", "", "", "", f"{minutes:.1f} min"]
    head = ["part", "passed", "failed", "skipped", "time"]
    print_table([head, *(result.as_row() for result in results), total])
    for result in results:
        for reason, count in sorted(result.skipped.items()):
            print(f"{result.part}: {count} skipped: {reason}")
        for failure in result.failures:
            print(f"{result.part}: FAILED: {failure}")


def make_parser(description: str | None) -> argparse.ArgumentParser:
    """Return the options of a program that runs parts; its description begins with one line."""
    parser = argparse.ArgumentParser(description=(description or "").splitlines()[0])
    parser.add_argument(
        "--most-minutes",
        type=float,
        default=math.inf,
        help="of each part, if less than its own limit",
    )
    parser.add_argument(
        "parts",
        nargs="*",
        metavar="PART",
        help="to run, done or not: a name, or a pattern such as 'kills-*' (default: all)",
    )
    return parser


def run_missing(name: str, parts: Sequence[NightPart], options: argparse.Namespace) -> int:
    """Run the parts that are not done yet, or those that are named; return the exit status."""
    known = {part.name: part for part in parts}
    if unknown := [part for part in options.parts if not fnmatch.filter(known, part)]:
        sys.exit(f"{name}: no part {unknown[0]}; there are {', '.join(known)}")
    directory = build_root() / name / state()
    directory.mkdir(parents=True, exist_ok=True)
    print(f"{name}: results in {directory}", flush=True)
    patterns = options.parts or ["*"]
    wanted = {name for pattern in patterns for name in fnmatch.filter(known, pattern)}
    results = []
    for part in (part for part in parts if part.name in wanted):
        result = None if options.parts else kept(directory / f"{part.name}.json")
        if result is None:
            limit_min = min(part.limit_min, options.most_minutes)
            print(f"{name}: {part.name}, at most {limit_min:g} min", flush=True)
            result = run(part, limit_min, directory)
            if not directory.name.startswith(UNKNOWN) and state() != directory.name:
                (directory / f"{part.name}.json").unlink(missing_ok=True)
                what = f"the checkout or an MPI has changed during {part.name}"
                sys.exit(f"{name}: {what}; start again")
        results.append(result)
    show(results)
    return int(any(result.failures for result in results))


def main() -> int:
    """Run the parts of the night."""
    return run_missing("nightly", PARTS, make_parser(__doc__).parse_args())


if __name__ == "__main__":
    sys.exit(main())
