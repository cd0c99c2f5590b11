"""All benches in turn, and one table of their figures beside their bars.

Each part prints more, and writes all of its figures to build/bench/PART.json, which is renamed to
PART.failed.json if the part fails; each also runs alone, as `python -m tests.bench.planning`. A
second start at the same commit continues where the first one ended: parts that have their figures
are not run again, unless they are named. The exit status is 1 if a bar is missed or a part failed.
Run from the checkout: python -m tests.bench [--least] [PART...]
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from tests.bench.report import UNKNOWN, commit, kept_at, lasting, print_table
from tests.limited import LimitedRun, run_limited

PARTS = (
    *("tuner_speed", "dashboard_speed", "planning", "decisions", "unmeasured", "larger_sizes"),
    *("borrowing", "store_growth", "comparisons", "profiling", "node_layers", "winners"),
    *("same_names", "collectives"),
)
LIMIT_S = 4 * 3600.0  # far beyond the time of a part: one that reaches it hangs


def kept(part: str, directory: Path) -> list[list[str]]:
    """Return the rows of a part that was run at this commit before; none if it was not."""
    path = directory / f"{part}.json"
    try:
        document = json.loads(path.read_text())
    except FileNotFoundError:
        return []
    whole = document["command"] == ["--json", str(path)]  # with the options that it has here
    same = commit() | {"skipped": "", "machine": document["machine"] | lasting()}
    known = whole and not document["dirty"] and same["commit"] != UNKNOWN
    if not known or not document.items() >= same.items():
        return []
    return [*figure_rows(part, document["figures"], False), [part, "", "", "", "kept"]]


def run(part: str, directory: Path, least: bool) -> list[list[str]]:
    """Run a part; return its rows of the table."""
    path = directory / f"{part}.json"
    path.unlink(missing_ok=True)
    print(f"==== {part}", flush=True)
    command = [sys.executable, "-m", f"tests.bench.{part}", "--json", str(path)]
    ended = run_limited([*command, *["--least"] * least], LIMIT_S)
    document: dict[str, Any] = {"figures": [], "skipped": ""}
    if path.exists():
        document = json.loads(path.read_text())
    if path.exists() and failure_of(document["figures"], ended, least):
        path.rename(path.with_suffix(".failed.json"))  # so that the next start does not keep it
    return rows_of(part, document["figures"], ended, least, document["skipped"])


def figure_rows(part: str, figures: list[dict[str, Any]], least: bool) -> list[list[str]]:
    """Return a row for each figure with a bar."""
    rows = []
    for figure in figures:
        if figure["bar"]:
            result = "" if least else "ok" if figure["met"] else "MISSED"
            value = "none" if figure["figure"] is None else f"{figure['figure']:.4g}"
            rows.append([part, figure["name"], f"{value} {figure['unit']}", figure["bar"], result])
    return rows


def rows_of(
    part: str, figures: list[dict[str, Any]], ended: LimitedRun, least: bool, skipped: str = ""
) -> list[list[str]]:
    """Return the rows of a part: one for each bar, and one for how the part ended."""
    failure = failure_of(figures, ended, least)
    result = f"FAILED: {failure}" if failure else f"skipped: {skipped}" if skipped else "ran"
    rows = figure_rows(part, figures, least)
    return [*rows, [part, "", f"{ended.seconds:.0f} s", "", result]]


def failure_of(figures: list[dict[str, Any]], ended: LimitedRun, least: bool) -> str:
    """Return why a part failed, other than by bars that it missed; "" if it did not."""
    if not ended.in_time:
        return f"over its limit of {LIMIT_S / 60:g} min"
    missed = any(figure["bar"] and not figure["met"] for figure in figures) and not least
    return "" if ended.status == int(missed) else f"exit status {ended.status}"


def main() -> int:
    """Run the parts, one after the other."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--least", action="store_true", help="the smallest case of each part")
    parser.add_argument("--directory", type=Path, default=kept_at("x").parent, help="of the JSON")
    parser.add_argument("parts", nargs="*", metavar="PART", help="to run, done or not; else all")
    options = parser.parse_args()
    if unknown := [part for part in options.parts if part not in PARTS]:
        parser.error(f"no part {unknown[0]}; there are {', '.join(PARTS)}")
    rows = []
    for part in options.parts or PARTS:
        done = [] if options.parts or options.least else kept(part, options.directory)
        rows += done or run(part, options.directory, options.least)
    print("====", flush=True)
    print_table([["part", "figure", "", "bar", "result"], *rows])
    return int(any(row[-1].startswith(("MISSED", "FAILED")) for row in rows))


if __name__ == "__main__":
    sys.exit(main())
