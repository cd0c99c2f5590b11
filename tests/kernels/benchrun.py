"""Runs of swpbench and the files they wrote, read by the documentation alone."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.kernels.conftest import Kernels
from tuner.paths import CHECKOUT

SWPBENCH = "bench/swpbench"
CORRUPT = "bench/swpbench_corrupt"
MATRICES = CHECKOUT / "tests" / "data" / "matrix"
SEVEN = MATRICES / "good" / "general-real.mtx"  # of seven rows
DOCUMENT = CHECKOUT / "docs" / "reference" / "benchfile.md"

Record = dict[str, Any]


@dataclass(frozen=True)
class Result:
    """The exit status of a run, its output, and the records of its file."""

    status: int
    stdout: str
    stderr: str
    records: list[Record]

    @property
    def header(self) -> Record:
        """Return the header record."""
        return self.records[0]

    @property
    def cases(self) -> list[Record]:
        """Return the case records."""
        return [record for record in self.records if record["record"] == "case"]

    @property
    def complaints(self) -> list[str]:
        """Return the lines that swpbench itself wrote to stderr."""
        return [line for line in self.stderr.splitlines() if line.startswith("swpbench: ")]


def bench(
    kernels: Kernels,
    file: Path,
    procs: int = 2,
    program: str = SWPBENCH,
    env: Mapping[str, str] | None = None,
    under: Sequence[str] = (),
    **options: str | int | bool,
) -> Result:
    """Run `swpbench run`; options are those of the command line; four have defaults here."""
    options = {
        "op": "exchange",
        "pattern": "random:degree=3",
        "sizes": "8",
        "max-samples": 4,
        "out": str(file),
    } | {name.replace("_", "-"): value for name, value in options.items()}
    arguments = ["run"]
    for name, value in options.items():
        arguments += [f"--{name}"] if value is True else [f"--{name}", str(value)]
    done = kernels.run(program, arguments, procs, env, under)
    records = [json.loads(line) for line in file.read_text().splitlines()] if file.is_file() else []
    return Result(done.returncode, done.stdout, done.stderr, records)


def documented_keys(record: str) -> dict[str, str]:
    """Return key to type, from the table of that record in docs/reference/benchfile.md."""
    section = DOCUMENT.read_text().split(f"\n## `{record}`", 1)[1].split("\n## ", 1)[0]
    keys: dict[str, str] = {}
    for row in re.findall(r"^\| (`.*?) \| (.*?) \|", section, re.MULTILINE):
        keys |= dict.fromkeys(re.findall(r"`(\w+)`", row[0]), row[1])
    return keys


def has_type(value: object, documented: str) -> bool:
    """Return whether a value read from JSON is of a documented type, as "list of int"."""
    if documented.startswith("list of "):
        words = documented.removeprefix("list of ").split()
        count, kind = (int(words[0]), words[1]) if words[0].isdigit() else (None, words[0])
        return (
            isinstance(value, list)
            and (count is None or len(value) == count)
            and all(has_type(element, kind.removesuffix("s")) for element in value)
        )
    if documented == "number":
        return isinstance(value, int | float) and not isinstance(value, bool)
    if documented == "int":
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, {"string": str, "bool": bool, "object": dict}[documented])


def complaint(result: Result) -> str:
    """Return the one line of a run that failed, whose file does not claim to be complete."""
    assert result.status != 0
    (line,) = result.complaints
    assert "complete" not in result.stdout
    assert not any(record["record"] == "end" for record in result.records)
    return line
