"""Exported tables, read by what reads them."""

import json
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from tests.compiler import COMPILER
from tests.conftest import Require
from tests.decisions import PROVENANCE, on, point
from tuner.domain.tables import Point, Table
from tuner.export.document import table_document
from tuner.export.forms import ExportError, export, write
from tuner.selection.rules import compile_rules

POINTS: list[Point] = [
    point("stfw:dims=2", 8, (4, 3.5)),
    point("direct", 1024, (4, 3.5)),
    point("neighbor", 8, (4, 3.9)),
    point("direct", 8, (16, 9.25)),
    point("pex", 8, (4, 3.5), operation="discovery", status="equal"),
    point("nbx", 1024, (4, 3.5), operation="discovery"),
    point("vendor", 8, (0, 0.0), operation="bcast", status="equal"),
    point("binomial", 1024, (0, 0.0), operation="bcast"),
    point("binomial", 8, (0, 0.0), operation="gather", ratio=0.5),
    on(point("binomial", 8, (0, 0.0), operation="gather", ratio=0.9), 1, 4),
]

TABLE = Table(PROVENANCE, compile_rules(POINTS), POINTS)


def test_the_table_is_as_its_grammar_says() -> None:
    rules = [line for line in export(TABLE, "table").splitlines() if line.startswith("rule")]
    assert [re.sub(r" evidence=.*", "", rule) for rule in rules] == [
        "rule op=bcast nodes=1 ppn=8 bytes=0:90 method=vendor",
        "rule op=bcast nodes=1 ppn=8 bytes=91:2048 method=binomial",
        "rule op=discovery nodes=1 ppn=8 bytes=0:90 method=pex",
        "rule op=discovery nodes=1 ppn=8 bytes=91:2048 method=nbx",
        "rule op=exchange nodes=1 ppn=8 mmax=0:8 mavg=0:3.694591 bytes=0:90 method=stfw:dims=2",
        "rule op=exchange nodes=1 ppn=8 mmax=0:8 mavg=0:3.694591 bytes=91:* method=direct",
        "rule op=exchange nodes=1 ppn=8 mmax=0:8 mavg=3.694591:* bytes=0:16 method=neighbor",
        "rule op=exchange nodes=1 ppn=8 mmax=9:* method=direct",
        "rule op=gather nodes=1 ppn=4 bytes=0:16 method=binomial",
        "rule op=gather nodes=1 ppn=5:7 bytes=0:16 method=binomial",
        "rule op=gather nodes=1 ppn=8 bytes=0:16 method=binomial",
    ]


def test_a_rule_prints_its_evidence() -> None:
    assert (
        'evidence="faster: stfw:dims=2 is 1.82 to 2.22 x faster than direct, at 8 B, '
        '5 launches of random:degree=6,seed=1 and its like; not soaked"'
    ) in export(TABLE, "table")


def test_an_inferred_rule_says_so_with_the_weaker_evidence() -> None:
    said = "inferred from 1 x 4, faster: binomial is 1.11 to 2.00 x faster than vendor"
    assert [text.count(said) for text in (export(TABLE, "table"), export(TABLE, "header"))] == [
        1
    ] * 2
    rules = json.loads(export(TABLE, "json"))["rules"]
    assert [rule["ppn_low"] for rule in rules if rule["inferred"]] == [5]


def test_a_rule_of_filled_sizes_among_others_says_so_in_every_form() -> None:
    filled = point("neighbor", 1024, (4, 3.9), status="open")._replace(filled=True)
    points = [*POINTS, filled]
    table = Table(PROVENANCE, compile_rules(points), points)
    marked = [line for line in export(table, "table").splitlines() if "some sizes are open" in line]
    assert [line.split(" evidence=")[0] for line in marked] == [
        "rule op=exchange nodes=1 ppn=8 mmax=0:8 mavg=3.694591:* bytes=0:2048 method=neighbor"
    ]
    assert (
        "at 8 B, 5 launches of random:degree=6,seed=1 and its like; some sizes are open, and filled"
        in (marked[0])
    )
    assert export(table, "header").count("some sizes are open, and filled") == 1
    rules = json.loads(export(table, "json"))["rules"]
    assert [rule["method"] for rule in rules if rule["filled"]] == ["neighbor"]


@pytest.mark.parametrize("form", ["table", "header", "json"])
def test_every_form_carries_its_provenance(form: str) -> None:
    text = export(TABLE, form)
    for value in (
        "local-cpu-mpich-1f00ba",
        "5.0.2",
        "20261121T034500Z",
        "0123abc",
        "2026-11-21T03:45",
    ):
        assert value in text


def test_the_text_stays_one_line_a_record() -> None:
    lines = export(TABLE, "table").splitlines()
    assert lines[0] == "switchpoint-table 1"
    assert all(line.startswith(("#", "provenance ", "rule ")) for line in lines[1:])
    assert all(len(line) <= 4096 for line in lines)


def test_what_no_producer_stated_is_unknown() -> None:
    """The library refuses a table with a provenance of no text."""
    blank = replace(PROVENANCE, compiler=" ", commit="", date="\u200b", cpu_model="\t")
    text = export(replace(TABLE, provenance=blank), "table")
    lines = dict(re.findall(r"^provenance (\w+) ?(.*)$", text, re.MULTILINE))
    assert [lines[key] for key in ("compiler", "commit", "date")] == ["unknown"] * 3
    assert lines["cpu"] == "unknown, 2 cores"


def test_json_holds_rules_and_points() -> None:
    document = json.loads(export(TABLE, "json"))
    assert (document["format"], document["version"]) == ("switchpoint-table", 2)
    assert [rule["method"] for rule in document["rules"]] == [rule.method for rule in TABLE.rules]
    assert len(document["points"]) == len(POINTS)
    said = "stfw:dims=2 is 1.82 to 2.22 x faster than direct"
    assert [document["points"][0]["verdict"], document["rules"][4]["evidence"]["verdict"]] == [
        said
    ] * 2
    assert document["settlement"]["settled"] == document["settlement"]["points"] == len(POINTS)
    assert document["next_step"]["lines"][0].startswith("switchpoint export --system local-cpu")
    assert table_document(TABLE).items() <= document.items()


def test_a_table_without_rules_is_an_error() -> None:
    with pytest.raises(ExportError, match="has no rules"):
        export(Table(PROVENANCE, [], []), "table")


def test_what_cannot_be_written_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ExportError, match="cannot be written"):
        write(TABLE, "table", tmp_path / "file" / "x.table")


LOOKUPS = [
    (("exchange", 1, 8, 4, 3.5, 8), "stfw:dims=2"),
    (("exchange", 1, 8, 4, 3.5, 90), "stfw:dims=2"),
    (("exchange", 1, 8, 4, 3.5, 91), "direct"),
    (("exchange", 1, 8, 4, 3.9, 16), "neighbor"),
    (("exchange", 1, 8, 4, 3.9, 17), None),
    (("exchange", 1, 8, 9, 0.0, 8), "direct"),
    (("exchange", 1, 4, 4, 3.5, 8), None),
    (("discovery", 1, 8, -1, -1.0, 8), "pex"),
    (("discovery", 1, 8, 3, 3.0, 2048), "nbx"),
    (("discovery", 1, 8, -1, -1.0, -1), None),
    (("bcast", 1, 8, -1, -1.0, 2048), "binomial"),
    (("gather", 1, 5, -1, -1.0, 8), "binomial"),
    (("gather", 1, 9, -1, -1.0, 8), None),
    (("collective", 1, 8, 4, 3.5, 8), None),
]


@pytest.mark.parametrize(
    ("compiler", "name", "standard"),
    [(COMPILER, "lookup.c", "c11"), (COMPILER, "lookup.c", "c99"), (["c++"], "lookup.cc", "c++11")],
)
def test_the_header_is_a_program_of_its_own(
    tmp_path: Path, require: Require, compiler: list[str], name: str, standard: str
) -> None:
    require("c++", shutil.which(compiler[0]) is not None, "no C++ compiler on the path")
    write(TABLE, "header", tmp_path / "rules.h")
    calls = [
        f'show(switchpoint_method("{operation}", {nodes}, {ppn}, {mmax}, {mavg}, INT64_C({size})));'
        for (operation, nodes, ppn, mmax, mavg, size), _ in LOOKUPS
    ]
    source = tmp_path / name
    source.write_text(
        '#include "rules.h"\n#include <stdio.h>\n'
        'static void show(const char *method) { puts(method ? method : "none"); }\n'
        f"int main(void) {{ {' '.join(calls)} return 0; }}\n"
    )
    flags = [f"-std={standard}", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
    subprocess.run([*compiler, *flags, source, "-o", tmp_path / "lookup"], check=True)
    said = subprocess.run([tmp_path / "lookup"], check=True, capture_output=True, text=True)
    assert said.stdout.split() == [method or "none" for _, method in LOOKUPS]
