"""The commands of swpbench that measure nothing."""

import json
from pathlib import Path

from tests.kernels.benchrun import SWPBENCH
from tests.kernels.conftest import Kernels


def test_listing_is_one_aligned_line_a_method(any_kernels: Kernels) -> None:
    done = any_kernels.run_alone(SWPBENCH, "list")
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    assert {len(row) for row in rows} == {4}
    assert len({tuple(map(len, row[:3])) for row in rows}) == 1
    names = {(row[0].strip(), row[1].strip()) for row in rows}
    assert {("exchange", "direct"), ("exchange", "stfw"), ("discovery", "nbx")} <= names


def test_the_specs_of_a_number_of_processes_are_what_a_launch_of_all_takes(
    kernels: Kernels, tmp_path: Path
) -> None:
    listed = kernels.run(SWPBENCH, ["list", "2", "3"], 2).stdout
    specs = [line.split("\t") for line in listed.splitlines()]
    assert {procs for procs, _, _ in specs} == {"2", "3"}
    out = tmp_path / "all.jsonl"
    options = ["--op", "bcast", "--pattern", "blocks", "--sizes", "8", "--max-samples", "1"]
    assert kernels.run(SWPBENCH, ["run", *options, "--out", str(out)], 3).returncode == 0
    *cases, end = [json.loads(line) for line in out.read_text().splitlines()][1:]
    measured = {case["method"] for case in cases}
    known = {spec for procs, operation, spec in specs if (procs, operation) == ("3", "bcast")}
    assert measured <= known <= measured | {case["method"] for case in end["skipped"]}


def test_reading_a_table(any_kernels: Kernels, tmp_path: Path) -> None:
    table = tmp_path / "table"
    table.write_text("switchpoint-table 1\nrule op=exchange method=direct\n")
    done = any_kernels.run(SWPBENCH, ["table", str(table)], 2)
    assert (done.returncode, done.stdout) == (0, f"{table}: 1 rules\n")
    table.write_text("switchpoint-table 1\nrule op=exchange\n")
    done = any_kernels.run(SWPBENCH, ["table", str(table)], 2)
    assert done.returncode != 0
    (line,) = [line for line in done.stderr.splitlines() if line.startswith("swpbench: ")]
    assert f"{table}:2" in line


def test_help_of_run(any_kernels: Kernels) -> None:
    done = any_kernels.run(SWPBENCH, ["run", "--help"], 2)
    assert done.returncode == 0
    assert done.stdout.count("--methods") == 1


def test_version(any_kernels: Kernels) -> None:
    assert any_kernels.run_alone(SWPBENCH, "--version").stdout == "swpbench 0.1.0\n"
