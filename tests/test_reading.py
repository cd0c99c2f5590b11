"""Reading raw files, whole and broken ones."""

import json
import os
import shutil
import tempfile
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import synthetic
from tests.cli import fail
from tuner.rawfile import keeping, reading
from tuner.rawfile.ingest import ingest
from tuner.selection.tuning import tune
from tuner.store.store import Store


def records(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def rewrite(path: Path, lines: list[dict[str, Any] | str]) -> Path:
    texts = (line if isinstance(line, str) else json.dumps(line) for line in lines)
    path.write_text("".join(text + "\n" for text in texts))
    return path


@pytest.fixture
def raw(tmp_path: Path) -> Path:
    return synthetic.write(tmp_path, synthetic.Campaign(launches=1, sizes=(8, 64), samples=20))[0]


def test_a_whole_file_is_read_as_written(raw: Path) -> None:
    file = reading.read(raw)
    cases = [record for record in records(raw) if record["record"] == "case"]
    assert file.problems == []
    assert file.complete
    assert file.header is not None
    assert file.header.pattern == "random:degree=6,seed=1"
    assert file.header.yield_setting == ""
    assert [case.method for case in file.cases] == [case["method"] for case in cases]
    written = [sample for case in cases for sample in case["samples_s"]]
    assert file.samples_s.tolist() == pytest.approx(written, rel=1e-6)
    assert file.rounds.tolist() == [number for case in cases for number in case["round"]]


def test_an_unknown_key_is_ignored(raw: Path) -> None:
    lines = [record | {"new_in_schema": [1, 2]} for record in records(raw)]
    assert reading.read(rewrite(raw, lines)).problems == []


def test_a_line_that_is_too_long_is_passed_over_in_little_memory(
    raw: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lines after it are read; what reads the first and the last one stops as well."""
    monkeypatch.setattr(reading, "MOST_LINE_BYTES", 1 << 20)
    lines = raw.read_bytes().splitlines(keepends=True)
    whole = reading.read(raw)
    long = b"x" * (1 << 25) + b"\n"

    def write(*parts: bytes) -> None:
        with raw.open("wb") as written:
            written.writelines(parts)

    tracemalloc.start()
    write(*lines[:2], long, *lines[2:])
    file = reading.read(raw)
    assert [(its.line, its.message) for its in file.problems] == [(3, "a line of over 1 MiB")]
    assert file.cases == whole.cases
    write(*lines[:-1], long)
    assert reading.read_ends(raw) == (whole.header, False)
    write(long)
    assert reading.read_ends(raw) == (None, False)
    assert keeping.header_line(raw) == b"x" * ((1 << 20) + 1)
    report = ingest(raw.parent / "switchpoint.db", [raw])
    assert [its.message for its in report.problems] == ["a line of over 1 MiB"]
    assert tracemalloc.get_traced_memory()[1] < 1 << 24
    tracemalloc.stop()


def test_more_ranks_than_fit_into_16_bits_may_be_late(raw: Path) -> None:
    lines: list[Any] = records(raw)
    lines[3] |= {"late": [0, *[70_000] * 19]}
    file = reading.read(rewrite(raw, lines))
    assert (file.problems, file.cases[2].late) == ([], 19)


def test_want_of_memory_names_the_file(raw: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def read(path: Path) -> None:
        raise MemoryError

    monkeypatch.setattr(reading, "read", read)
    database = raw.parent / "switchpoint.db"
    assert f"not enough memory: to read {raw}" in fail("ingest", raw, "--database", database)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"samples_s": [1e-6]}, "1 samples_s, but 20 round, 20 late, 20 canary_s"),
        ({"plan_s": [1e13]}, "Expected `float` <= "),
        ({"canary_s": [1e13] * 20}, "Expected `float` <= "),
        ({"samples_s": []}, "not a valid record"),
        ({"samples_s": [0.0] * 20}, "not a valid record"),
        ({"samples_s": ["fast"] * 20}, "Expected `float`, got `str`"),
        ({"samples_s": None}, "Expected `array`, got `null`"),
        ({"round": [-1] * 20}, "not a valid record"),
        ({"late": 0}, "not a valid record"),
        ({"bytes": -8}, "not a valid record"),
        ({"features": {"mmax": 6}}, "missing required field `mavg`"),
        ({"statistics": 3}, "not a valid record: Expected `object`, got `int`"),
        ({"statistics": {"mmax": "x"}}, "not a valid record: Expected `float`, got `str`"),
        ({"statistics": {"mmax": 1e31}}, "not a valid record: Expected `float` <= 1e+30"),
        ({"method": "direct\nrule op=exchange"}, "not a valid record"),
        ({"method": "direct\n"}, "not a valid record"),
        ({"bytes": 10**30}, "not a valid record"),
        ({"samples_s": [9e-13] * 20}, "not a valid record"),
        ({"samples_s": [1.2e12] * 20}, "not a valid record"),
        ({"record": "kase"}, "Invalid value 'kase'"),
        ({"verified": 0}, "not a valid record"),
    ],
)
def test_a_bad_case_is_reported_with_its_line_and_the_rest_is_used(
    raw: Path, change: dict[str, Any], message: str
) -> None:
    lines: list[Any] = records(raw)
    lines[3] |= change
    file = reading.read(rewrite(raw, lines))
    assert len(file.cases) == 7
    first = file.problems[0]
    assert (first.path, first.line) == (str(raw), 4)
    assert message in first.message
    assert "the end record counts 8 cases" in file.problems[1].message


def test_a_missing_key_is_an_error(raw: Path) -> None:
    lines: list[Any] = records(raw)
    del lines[2]["canary_s"]
    (problem, _) = reading.read(rewrite(raw, lines)).problems
    assert "missing required field `canary_s`" in problem.message


def test_a_truncated_file_keeps_its_complete_cases(raw: Path) -> None:
    text = raw.read_text()
    raw.write_text(text[: len(text) // 2])
    file = reading.read(raw)
    assert 0 < len(file.cases) < 8
    assert not file.complete
    assert [problem.message.split(":")[0] for problem in file.problems] == [
        "cut off",
        "no end record",
    ]


@pytest.mark.parametrize("skipped", [0, 500])
def test_the_ends_of_a_file_say_whether_it_is_complete(raw: Path, skipped: int) -> None:
    """Wherever it is cut off; its last line may be a long one."""
    lines = records(raw)
    lines[-1]["skipped"] = [{"method": "x", "reason": "does not apply"}] * skipped
    content = rewrite(raw, lines).read_bytes()
    whole = reading.read(raw)
    assert reading.read_ends(raw) == (whole.header, True)
    end = keeping.end_record(raw)
    assert (end.seconds, len(end.skipped)) == (1.0, skipped)
    raw.write_bytes(content.rstrip(b"\n"))
    assert reading.read_ends(raw) == (whole.header, True)
    first, last = content.index(b"\n"), content.rstrip(b"\n").rindex(b"\n")
    for length in (0, first // 2, first, first + 9, last // 2, last, last + 9, len(content) - 3):
        raw.write_bytes(content[:length])
        cut = reading.read(raw)
        assert reading.read_ends(raw) == (cut.header, cut.complete) == (cut.header, False)


def test_garbage_between_records_is_reported(raw: Path) -> None:
    data = raw.read_bytes().splitlines(keepends=True)
    data.insert(2, b"\x00\xff garbage\n")
    raw.write_bytes(b"".join(data))
    (problem,) = reading.read(raw).problems
    assert problem.line == 3
    assert problem.message.startswith("not JSON")


@pytest.mark.parametrize("line", [0, 1])
@pytest.mark.parametrize(
    "garbage",
    [b'"\xff"', b'"\\ud800"', b"[" * 100_000, b"1e999", b"-", b"nan", b'"' + b"x" * 100_000 + b'"'],
)
def test_any_garbage_for_a_value_is_reported(raw: Path, line: int, garbage: bytes) -> None:
    lines = raw.read_bytes().splitlines(keepends=True)
    key = b'"pattern": ' if line == 0 else b'"size_bytes": '
    before, after = lines[line].split(key)
    lines[line] = before + key + garbage + after[after.index(b', "') :]
    raw.write_bytes(b"".join(lines))
    file = reading.read(raw)
    if file.problems:
        assert file.problems[0].line == line + 1
    else:
        assert garbage.endswith(b'x"')
    ingest(raw.with_suffix(".db"), [raw])


def test_a_second_case_of_the_same_method_and_size_is_not_used(raw: Path) -> None:
    lines: list[Any] = records(raw)
    lines.insert(2, lines[1])
    file = reading.read(rewrite(raw, lines))
    assert len(file.cases) == 8
    assert file.problems[0].message == "a second case of direct at size_bytes 8"


def test_what_follows_another_header_is_not_used(raw: Path) -> None:
    """As in files written one after the other, of which the first was cut off."""
    lines = records(raw)
    header, first, *_, end = lines
    file = reading.read(rewrite(raw, [header, first, *lines]))
    assert len(file.cases) == 1
    assert not file.complete
    assert "a second header" in file.problems[0].message
    again = reading.read(rewrite(raw, [*lines, header, end | {"others": 0.5}]))
    assert again.header is not None and again.header.others is None


def test_a_case_in_a_launch_of_probes_is_not_used(raw: Path) -> None:
    header, *lines = records(raw)
    file = reading.read(rewrite(raw, [header | {"operation": "probe"}, *lines]))
    assert not file.cases
    assert file.problems[0].message == "a case in a launch of probe"


def test_of_many_lines_that_cannot_be_used_the_first_are_reported(raw: Path) -> None:
    raw.write_text(raw.read_text().partition("\n")[0] + "\n" * 5000)
    problems = reading.read(raw).problems
    assert len(problems) < 110
    assert "4899 more lines cannot be used" in [problem.message for problem in problems]


@pytest.mark.parametrize(
    ("first", "message"),
    [
        ("", "not JSON"),
        ("{}", "missing required field `record`"),
        ('{"record": "header", "schema": 2}', "schema 2 is not known"),
        ('{"record": "header", "schema": 1}', "not a valid record"),
        ('{"record": "end", "cases": 0, "samples": 0}', "the first line is not a header"),
    ],
)
def test_without_a_good_header_nothing_is_used(raw: Path, first: str, message: str) -> None:
    lines: list[Any] = records(raw)
    lines[0] = first
    file = reading.read(rewrite(raw, lines))
    assert file.header is None
    assert file.cases == []
    (problem,) = file.problems
    assert problem.line == 1
    assert message in problem.message


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"operation": "quilting"}, "operation quilting is not known here"),
        ({"others": 1.5}, "others 1.5 is not a share"),
        ({"launch": -1}, "launch -1 is out of range"),
        ({"procs": 10**12}, "procs 1000000000000 is out of range"),
        ({"procs": 3}, "3 procs cannot be on 1 nodes with 2 ppn"),
        ({"ppn": 3}, "2 procs cannot be on 1 nodes with 3 ppn"),
        ({"nodes": 3}, "2 procs cannot be on 3 nodes with 2 ppn"),
        ({"procs": 2**21, "nodes": 2**21, "ppn": 1}, "cannot be on"),
        ({"procs": 2**13, "ppn": 2**13}, "cannot be on"),
        ({"yield": None}, "not a valid record"),
        ({"campaign": "a<b"}, "campaign 'a<b' cannot be used"),
        ({"campaign": ".."}, "campaign '..' cannot be used"),
        ({"campaign": "a/b"}, "campaign 'a/b' cannot be used"),
        ({"campaign": ""}, "campaign '' cannot be used"),
        ({"campaign": "a\x9b31m"}, "cannot be used"),
        ({"campaign": "a\u202eb"}, "cannot be used"),
        ({"pattern": "random:a\u2066"}, "cannot be used"),
        ({"pattern": "matrix:a\tb.mtx"}, "cannot be used"),
        ({"sync": "window\n"}, "cannot be used"),
        ({"date": "yesterday"}, "date 'yesterday' cannot be used"),
        ({"date": "2026-11-21T03:45:00"}, "cannot be used"),
        ({"date": "2026-13-21T03:45:00Z"}, "date 2026-13-21T03:45:00Z: "),
        ({"load": []}, "load [] is not three load averages"),
        ({"load": [0.1, -0.2, 0.3]}, "is not three load averages"),
        ({"new": json.loads("[" * 100 + "]" * 100)}, "nested deeper than 100 levels"),
    ],
)
def test_a_header_that_makes_no_sense_is_reported(
    raw: Path, change: dict[str, Any], message: str
) -> None:
    lines: list[Any] = records(raw)
    lines[0] |= change
    file = reading.read(rewrite(raw, lines))
    assert file.header is None
    assert message in file.problems[0].message


@settings(max_examples=60)
@given(st.data())
def test_whatever_bytes_change_reading_goes_on(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as directory:
        (path,) = synthetic.write(
            Path(directory), synthetic.Campaign(launches=1, sizes=(8,), samples=6)
        )
        content = bytearray(path.read_bytes())
        for _ in range(data.draw(st.integers(1, 5))):
            content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
        path.write_bytes(content[: data.draw(st.integers(0, len(content)))])
        database = Path(directory, "switchpoint.db")
        report = ingest(database, [path])
        with Store.open(database) as store:
            assert store.cells()["n"].sum() == report.samples
            for system in store.systems()["system"]:
                tune(store, system)


def test_an_empty_file_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "empty.jsonl"
    path.touch()
    (problem,) = reading.read(path).problems
    assert str(problem) == f"{path}:1: the file is empty"


def test_raw_files_are_found_once_and_in_order(tmp_path: Path) -> None:
    paths = synthetic.write(tmp_path, synthetic.Campaign(launches=3))
    assert list(reading.raw_files([tmp_path, paths[0]])) == sorted(paths)


def test_raw_files_behind_links_are_found_and_circles_end(tmp_path: Path) -> None:
    (path,) = synthetic.write(tmp_path / "elsewhere", synthetic.Campaign(launches=1))
    results = tmp_path / "results"
    results.mkdir()
    (results / "system").symlink_to(path.parent)
    (path.parent / "circle").symlink_to(results)
    assert list(reading.raw_files([results])) == [results / "system" / path.name]


def test_directories_that_vanish_while_they_are_searched_are_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """ReFrame deletes the directory of a job that passed, while progress is counted."""
    kept, deleted = tmp_path / "kept.jsonl", tmp_path / "job" / "deleted.jsonl"
    deleted.parent.mkdir()
    kept.touch()
    deleted.touch()
    scan = os.scandir

    def delete_then_scan(path: Path) -> Any:
        if str(path) == str(deleted.parent):
            shutil.rmtree(deleted.parent)
        return scan(path)

    monkeypatch.setattr(os, "scandir", delete_then_scan)
    assert list(reading.raw_files([tmp_path])) == [kept]
    assert keeping.complete_of_campaign(tmp_path, "any") == []
