"""Parsers fed with any bytes, guided by coverage: those in C by libFuzzer, in Python by Atheris.

Inputs that reach new code are kept in build/fuzzing, where the next start goes on with them; one
that is a finding is named at the end. Run from the checkout:
python -m tests.fuzzing [--share 0.01] [--seed N] [--keep] [c-PARSER|python-PARSER...]
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

from tests.fuzzing import corpora
from tests.fuzzing.readers import READERS
from tests.kernels.conftest import build_kernels
from tuner.machine.directories import build_root
from tuner.machine.mpi import find_mpis

C_RUNS = {
    "arguments": 25_000_000,
    "matrix": 1_000_000,
    "methods": 1_000_000,
    "off": 5_000_000,
    "partition": 1_000_000,
    "pattern": 20_000_000,
    "sizes": 20_000_000,
    "spec": 5_000_000,
    "table": 2_000_000,
    "transfers": 20_000_000,
}
"""The parsers in C (kernels/tests/parsers), and how many inputs each is given."""

PYTHON_RUNS = 1_000_000
TARGETS = [*(f"c-{name}" for name in C_RUNS), *(f"python-{name}" for name in READERS)]

_SANITIZERS = "fuzzer-no-link,address,undefined"
_LONGEST_BYTES = 1 << 14
_SLOW_S = 20  # for one input, which is a finding
_MEMORY_MIB = 2048


@cache
def compiler() -> str | None:
    """Return a clang that has libFuzzer and its sanitizers; None if there is none."""
    clang = shutil.which("clang")
    if clang is None:
        return None
    with tempfile.TemporaryDirectory() as scratch:
        source = Path(scratch) / "a.c"
        source.write_text("int LLVMFuzzerTestOneInput(void) { return 0; }\n")
        command = [clang, "-fsanitize=fuzzer,address,undefined", "-o", f"{scratch}/a", str(source)]
        done = subprocess.run(command, capture_output=True)
    return clang if done.returncode == 0 else None


def lacking(target: str) -> str:
    """Return what this machine lacks for a target; "" if nothing."""
    if target.startswith("python-"):
        return "" if importlib.util.find_spec("atheris") else "atheris"
    return "" if compiler() else "clang"


def runs_of(target: str, share: float) -> int:
    """Return how many inputs a share of a target's is."""
    return max(1, round(share * C_RUNS.get(target.removeprefix("c-"), PYTHON_RUNS)))


def _command(target: str) -> list[str]:
    """Return the command of a target, to which libFuzzer's options are added."""
    language, _, parser = target.partition("-")
    mpi = min(find_mpis(), key=lambda mpi: mpi.family != "mpich")
    if language == "c":
        compiled = (f"-DCMAKE_C_COMPILER={compiler()}", f"-DSWITCHPOINT_SANITIZE={_SANITIZERS}")
        others = ("-DSWITCHPOINT_FORTRAN=OFF", "-DSWITCHPOINT_EXAMPLES=OFF")
        build = build_kernels(mpi, "fuzzing", *compiled, *others, target="swp_parsers")
        return [str(build / "tests" / "swp_parsers"), f"--parser={parser}"]
    shared = READERS[parser].shared
    program = build_kernels(mpi, target="swp_parsers") / "tests" / "swp_parsers" if shared else ""
    return [sys.executable, "-m", "tests.fuzzing.guided", parser, str(program)]


@contextmanager
def _inputs(target: str) -> Iterator[tuple[Path, Path]]:
    """Yield the directories of the inputs that were found, and of the committed ones."""
    found = build_root() / "fuzzing" / target / "found"
    found.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=_memory()) as scratch:
        committed = Path(scratch)
        corpora.unpack(target.partition("-")[2], committed)
        yield found, committed


def _libfuzzer(target: str, *options: str | Path) -> subprocess.CompletedProcess[str]:
    with tempfile.TemporaryDirectory(dir=_memory()) as scratch:
        return subprocess.run(
            [*_command(target), *options],
            env=os.environ | {"SWITCHPOINT_RESULTS": scratch},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )


def _memory() -> str | None:
    """Return a directory in memory, where there is one."""
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


def guided(target: str, runs: int, seed: int) -> str:
    """Give a target so many inputs; return what was found, "" for nothing."""
    with _inputs(target) as (found, committed):
        done = _libfuzzer(
            target,
            f"-runs={runs}",
            f"-seed={seed}",
            f"-timeout={_SLOW_S}",
            f"-rss_limit_mb={_MEMORY_MIB}",
            f"-max_len={_LONGEST_BYTES}",
            f"-artifact_prefix={found.parent}/",
            found,
            committed,
        )
    ended = re.search(r"^Done (\d+) runs in (\d+) second", done.stdout, re.MULTILINE)
    if done.returncode or not ended:
        return done.stdout[-8000:]
    print(f"{target}: {ended[1]} inputs in {ended[2]} s, seed {seed}", flush=True)
    return ""


def keep(target: str) -> None:
    """Commit, of the inputs that were found, those that reach code that the committed ones miss."""
    with _inputs(target) as (found, committed):
        known = {path.name for path in committed.iterdir()}
        done = _libfuzzer(target, "-merge=1", "-use_counters=0", committed, found)
        assert done.returncode == 0, done.stdout[-8000:]
        new = [path.read_bytes() for path in committed.iterdir() if path.name not in known]
    print(f"{target}: {corpora.add(target.partition('-')[2], new)} new inputs", flush=True)


def main() -> int:
    """Run the targets that are named, or all; return the exit status."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--share", type=float, default=1.0, help="of the inputs (default: 1)")
    parser.add_argument("--seed", type=int, help="of the inputs (default: another each time)")
    parser.add_argument("--keep", action="store_true", help="commit inputs that were found before")
    parser.add_argument(
        "targets", nargs="*", metavar="TARGET", help="else all", choices=[[], *TARGETS]
    )
    options = parser.parse_args()
    failures = 0
    for target in options.targets or TARGETS:
        if lack := lacking(target):
            print(f"{target}: no {lack}", flush=True)
            failures += 1
        elif options.keep:
            keep(target)
        else:
            seed = random.randrange(1, 1 << 31) if options.seed is None else options.seed
            if finding := guided(target, runs_of(target, options.share), seed):
                print(f"{target}: seed {seed}:\n{finding}", flush=True)
                failures += 1
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main())
