"""Races, whose sizes have methods and samples of their own, and several launches of one start."""

import json
from pathlib import Path

import pytest

from tests.kernels.benchrun import SWPBENCH, Record
from tests.kernels.conftest import Kernels


def race(kernels: Kernels, out: Path, races: str, *options: str) -> tuple[int, str, list[Record]]:
    """Return status, errors and cases of a launch of races."""
    words = ["run", "--op", "discovery", "--pattern", "random:degree=1", "--out", str(out)]
    done = kernels.run(SWPBENCH, [*words, "--races", races, *options], 2)
    lines = out.read_text().splitlines() if done.returncode == 0 else []
    records = [json.loads(line) for line in lines]
    return done.returncode, done.stderr, [each for each in records if each["record"] == "case"]


def test_sizes_of_a_launch_may_have_methods_and_samples_of_their_own(
    kernels: Kernels, tmp_path: Path
) -> None:
    status, stderr, cases = race(kernels, tmp_path / "r.jsonl", "8:16:x2 3 pex nbx:|512 2 rsx")
    assert status == 0, stderr
    assert {(case["size_bytes"], case["method"], len(case["samples_s"])) for case in cases} == {
        (8, "pex", 3),
        (8, "nbx", 3),
        (16, "pex", 3),
        (16, "nbx", 3),
        (512, "rsx", 2),
    }


@pytest.mark.parametrize(
    ("races", "options", "message"),
    [
        ("8 3 pex|8,16 3 nbx", (), "8 B appears in two races"),
        ("8 none pex", (), '--races "none": write an integer'),
        ("8 3", (), "SIZES SAMPLES METHODS"),
        ("", (), "SIZES SAMPLES METHODS"),
        ("8 3 pex|", (), "SIZES SAMPLES METHODS"),
        ("8,y 3 pex", (), '--sizes "8,y"'),
        ("8 3 pex", ("--sizes", "16"), "leave out --sizes"),
        ("8 3 pex", ("--methods", "nbx"), "leave out --methods"),
        ("8 3 pex", ("--max-samples", "9"), "leave out --max-samples"),
        ("8 3 pex|16 3 nothing", (), '--methods "nothing"'),
    ],
)
def test_wrong_races_are_reported(
    kernels: Kernels, tmp_path: Path, races: str, options: tuple[str, ...], message: str
) -> None:
    status, stderr, _ = race(kernels, tmp_path / "r.jsonl", races, *options)
    assert status != 0
    assert message in stderr


def test_launches_of_one_start_have_files_of_their_own(kernels: Kernels, tmp_path: Path) -> None:
    outs = [tmp_path / f"{number}.jsonl" for number in range(3)]
    wanted = (("exchange", "direct"), ("discovery", "pex"), ("exchange", "nothing"))
    words = ["run"]
    for number, ((operation, method), out) in enumerate(zip(wanted, outs, strict=True)):
        words += ["--then"] * (number > 0)
        words += ["--op", operation, "--methods", method, "--launch", str(number)]
        words += ["--pattern", "random:degree=1", "--sizes", "8", "--out", str(out)]
    done = kernels.run(SWPBENCH, words, 2)
    assert done.returncode != 0
    assert done.stderr.count("swpbench: ") == 1
    assert '--methods "nothing"' in done.stderr
    first, second, _ = (out.read_text().splitlines() if out.exists() else [] for out in outs)
    headers = [json.loads(lines[0]) for lines in (first, second)]
    assert [header["operation"] for header in headers] == ["exchange", "discovery"]
    assert headers[0]["identity"] != headers[1]["identity"]
    assert all(json.loads(lines[-1])["record"] == "end" for lines in (first, second))
    outs[0].unlink()
    done = kernels.run(SWPBENCH, [*words[: words.index("--then")], "--then"], 2)
    assert "--op OPERATION is missing" in done.stderr
