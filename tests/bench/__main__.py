"""All benches in turn, and one table of their figures beside their bars.

Each part prints more, and writes all of its figures to build/bench/PART.json; each also runs alone,
as `python -m tests.bench.planning`. The exit status is 1 if a bar is missed or a part failed.
Run from the checkout: python -m tests.bench [--least] [PART...]
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from tests.bench.report import kept_at, print_table
from tests.limited import Ended, run_limited

PARTS = (
    *("tuner_speed", "collectives", "dashboard_speed", "planning", "decisions", "comparisons"),
    *("unmeasured", "borrowing", "profiling", "winners", "node_layers"),
)
LIMIT_S = 2 * 3600.0  # far beyond the time of a part: one that reaches it hangs


def run(part: str, directory: Path, least: bool) -> list[list[str]]:
    """Run a part; return its rows of the table."""
    kept = directory / f"{part}.json"
    kept.unlink(missing_ok=True)
    print(f"==== {part}", flush=True)
    command = [sys.executable, "-m", f"tests.bench.{part}", "--json", str(kept)]
    ended = run_limited([*command, *["--least"] * least], LIMIT_S)
    figures = json.loads(kept.read_text())["figures"] if kept.exists() else []
    return rows_of(part, figures, ended, least)


def rows_of(part: str, figures: list[dict[str, Any]], ended: Ended, least: bool) -> list[list[str]]:
    """Return the rows of a part: one for each bar, and one for how the part ended."""
    rows, missed = [], False
    for figure in figures:
        if figure["bar"]:
            missed |= not figure["met"]
            verdict = "" if least else "ok" if figure["met"] else "MISSED"
            value = "none" if figure["figure"] is None else f"{figure['figure']:.4g}"
            rows.append([part, figure["name"], f"{value} {figure['unit']}", figure["bar"], verdict])
    if not ended.in_time:
        reason = f"over its limit of {LIMIT_S / 60:g} min"
    elif ended.status != 0 and (least or not missed):
        reason = f"exit status {ended.status}"
    else:
        reason = ""
    verdict = f"FAILED: {reason}" if reason else "ran"
    return [*rows, [part, "", f"{ended.seconds:.0f} s", "", verdict]]


def main() -> int:
    """Run the parts, one after the other."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--least", action="store_true", help="the smallest case of each part")
    parser.add_argument("--directory", type=Path, default=kept_at("x").parent, help="of the JSON")
    parser.add_argument("parts", nargs="*", default=list(PARTS), metavar="PART")
    options = parser.parse_args()
    if unknown := [part for part in options.parts if part not in PARTS]:
        parser.error(f"no part {unknown[0]}; there are {', '.join(PARTS)}")
    rows = [row for part in options.parts for row in run(part, options.directory, options.least)]
    print("====", flush=True)
    print_table([["part", "figure", "", "bar", "verdict"], *rows])
    return int(any(row[-1].startswith(("MISSED", "FAILED")) for row in rows))


if __name__ == "__main__":
    sys.exit(main())
