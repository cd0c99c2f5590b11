"""One parser in Python under Atheris: python -m tests.fuzzing.guided PARSER SWP_PARSERS OPTION...

The options are those of libFuzzer, SWITCHPOINT_RESULTS is a scratch directory. Where SWP_PARSERS,
the program, is not empty, the parser of the same name in C must come to the same result.
"""

from __future__ import annotations

import json
import random
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import atheris

from tests.fuzzing import corpora

with atheris.instrument_imports(include=["tuner", "dashboard"]):
    from tests.fuzzing.readers import READERS
    from tuner.paths import results_directory

VALUES: list[Any] = [
    *(None, True, 0, -1, 1, 0.5, 2**31, 2**53 + 1, 2**63 - 1, 2**63, 2**64, 1e-300, 1e300, 1e999),
    *("", "a", "\n", "\x1b[31m", "\u202e", "/", "0", "nan", "x" * 300, "ä", [], [0], {}, [[]]),
]
"""Values that a JSON value may be exchanged for."""


def results_in_c(program: str, parser: str) -> Callable[[Path], bool]:
    """Return a function that asks the program whether the parser in C accepts a file."""
    running = subprocess.Popen(
        [program, f"--parser={parser}"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )

    def ask(path: Path) -> bool:
        assert running.stdin and running.stdout
        running.stdin.write(f"{path}\n")
        running.stdin.flush()
        answer = running.stdout.readline()
        assert answer in ("accepted\n", "refused\n"), "the parser in C has ended"
        return answer == "accepted\n"

    return ask


def mutated(content: bytes, committed: Sequence[bytes], most_bytes: int, seed: int) -> bytes:
    """Return an input with other bytes, or with another value in one of its lines of JSON.

    Decoders of JSON are no Python, so that no coverage says which inputs they accept: some are made
    of committed ones.
    """
    dice = random.Random(seed)
    content = dice.choice(committed) if dice.random() < 0.2 else content
    lines = content.split(b"\n")
    place = dice.randrange(len(lines))
    try:
        value = json.loads(lines[place])
        places = list(_places(value))
    except (ValueError, RecursionError):
        places = []
    if not places or dice.random() < 0.2:
        return bytes(atheris.Mutate(content, most_bytes))
    _change(dice, *dice.choice(places), places)
    lines[place] = json.dumps(value, separators=(",", ":")).encode()
    return b"\n".join(lines)[:most_bytes]


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield every object or list within a value with each of its keys or indices."""
    if not isinstance(value, (dict, list)):
        return
    for key in list(value) if isinstance(value, dict) else range(len(value)):
        yield value, key
        yield from _places(value[key])


def _change(dice: random.Random, parent: Any, key: Any, others: list[tuple[Any, Any]]) -> None:
    """Change a value: to another, to one of another place, or by a little; or remove it."""
    way, old = dice.randrange(5), parent[key]
    if way == 0:
        del parent[key]
    elif way == 1:
        other, its = dice.choice(others)
        parent[key] = json.loads(json.dumps(other.get(its) if isinstance(other, dict) else old))
    elif way == 2 and isinstance(old, (int, float)):
        parent[key] = dice.choice([old + 1, -old, old * 10, old // 3])
    elif way == 3 and isinstance(old, str):
        cut = dice.randrange(len(old) + 1)
        parent[key] = old[:cut] + dice.choice(["", "x", "0", ":", ",", "\n", "é"]) + old[cut + 1 :]
    elif way == 3 and isinstance(parent, list):
        parent.insert(key, old)
    else:
        parent[key] = dice.choice(VALUES)


def main() -> None:
    """Read inputs until the options say to end, or one is a finding."""
    parser, program, *options = sys.argv[1:]
    reader = READERS[parser]
    in_c = results_in_c(program, parser) if program and reader.shared else None
    place, committed = results_directory(), corpora.inputs(parser)

    @atheris.instrument_func  # type: ignore[untyped-decorator] # the result is coverage, too
    def judge(accepted: bool | None) -> str:
        if accepted:
            return "accepted"
        return "refused"

    def read(content: bytes) -> None:
        accepted = reader.accepts(content, place)
        judge(accepted)
        if in_c and accepted is not None:
            (place / "input").write_bytes(content)
            assert in_c(place / "input") == accepted, f"in Python: {accepted}"

    def mutate(content: bytes, most_bytes: int, seed: int) -> bytes:
        return mutated(content, committed, most_bytes, seed)

    # By the first word, libFuzzer starts itself again when it merges.
    again = shlex.join([sys.executable, "-m", "tests.fuzzing.guided", parser, program])
    atheris.Setup([again, *options], read, custom_mutator=mutate)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
