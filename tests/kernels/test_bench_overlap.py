"""`swpbench overlap`: data arrive right by every method, and parts add up to the whole."""

import json
from pathlib import Path

import pytest

from tests.conftest import Require, packaged
from tests.kernels.benchrun import SWPBENCH, Record, Result, documented_keys, has_type
from tests.kernels.conftest import Kernels, crowded
from tuner.rawfile import reading

CORRUPT = "bench/swpbench_corrupt"
PARTS = ("computation_s", "initiation_s", "wait_s", "barrier_s")
FT = "ft:rows=5,elements=12"
SPMV = "spmv:rows=6,nonzeros=5"
PROCS = [1, 3, pytest.param(8, marks=crowded(8))]
PROCS += (pytest.param(procs, marks=pytest.mark.nightly) for procs in (2, 4, 5))


def overlap(
    kernels: Kernels,
    out: Path,
    procs: int,
    *options: str,
    program: str = SWPBENCH,
    corrupt: str = "",
) -> Result:
    """Run `swpbench overlap` with few samples."""
    words = ["overlap", "--out", str(out), "--max-samples", "3", *options]
    env = {"SWP_CORRUPT": corrupt} if corrupt else None
    done = kernels.run(program, words, procs, env)
    lines = out.read_text().splitlines() if out.is_file() else []
    return Result(done.returncode, done.stdout, done.stderr, [json.loads(line) for line in lines])


def records(result: Result) -> dict[tuple[str, int], Record]:
    """Return the records of a run that went well, by method and flops."""
    assert result.status == 0, result.stderr
    found = [each for each in result.records if each["record"] == "overlap"]
    return {(each["method"], each["flops"]): each for each in found}


@pytest.fixture
def fftw(require: Require) -> None:
    """Require what computes the transforms; without it they are left out."""
    require("fftw", packaged("fftw3"), "pkg-config finds no fftw3")


@pytest.mark.usefixtures("fftw")
@pytest.mark.parametrize("procs", PROCS)
def test_rows_arrive_transformed_by_every_method(
    kernels: Kernels, tmp_path: Path, procs: int
) -> None:
    """Each execution that is verified compares all rows; here are few, so that all ranks fit."""
    out = tmp_path / "o.jsonl"
    methods = "exchange slabs pencils chunks:rows=2"
    found = records(overlap(kernels, out, procs, "--pattern", FT, "--methods", methods, "--quiet"))
    assert {method for method, _ in found} == {
        f"{family}by={by}"
        for family in ("exchange:", "slabs:", "pencils:", "chunks:rows=2,")
        for by in ("isend", "put")
    }
    for (method, flops), record in found.items():
        messages = {"p": 5, "c": 3}.get(method[0], 1)
        assert record["messages"] == (procs - 1) * messages
        assert record["message_bytes"] == {"p": 1, "c": 2}.get(method[0], 5) * 12 * 16
        assert record["verified"] >= 2
        assert len(record["samples_s"]) == 3
        assert all((each > 0) == (flops > 0) for each in record["alone_s"])
        for sample, *parts in zip(
            record["samples_s"], *(record[name] for name in PARTS), strict=True
        ):
            assert sum(parts) <= sample * (1 + 1e-9)
    assert reading.read(out).problems == []


@pytest.mark.parametrize("procs", PROCS)
def test_blocks_arrive_and_are_multiplied_by_every_method(
    kernels: Kernels, tmp_path: Path, procs: int
) -> None:
    out = tmp_path / "o.jsonl"
    found = records(overlap(kernels, out, procs, "--pattern", SPMV, "--computation", "0,100%"))
    depths = [depth for depth in (1, 2, 4) if depth < max(procs - 1, 2)]
    assert {method for method, _ in found} == {
        "bulk:by=get",
        *(f"gather:prefetch={depth},by=get" for depth in depths),
        *(f"scatter:prefetch={depth},by={by}" for depth in depths for by in ("isend", "put")),
    }
    assert {flops for _, flops in found} == {0, 2 * procs * (6 * 5 // procs)}
    for record in found.values():
        assert (record["messages"], record["message_bytes"]) == (procs - 1, 6 * 8)
        assert record["verified"] >= 2
    assert reading.read(out).problems == []


def test_what_is_written_is_what_is_documented(any_kernels: Kernels, tmp_path: Path) -> None:
    result = overlap(any_kernels, tmp_path / "o.jsonl", 2, "--pattern", FT)
    documented = documented_keys("overlap")
    for record in records(result).values():
        assert record.keys() == documented.keys()
        for key, value in record.items():
            assert has_type(value, documented[key]), key


@pytest.mark.usefixtures("fftw")
def test_computation_is_counted_in_flops(any_kernels: Kernels, tmp_path: Path) -> None:
    """20 rows of 4096 elements are 5 n log2 n each; fewer where n has to be smaller."""
    options = ("--pattern", "ft:rows=10,elements=4096", "--methods", "pencils:by=isend")
    computation = ("--computation", "0,25%,1e6,100%")
    found = records(overlap(any_kernels, tmp_path / "o.jsonl", 2, *options, *computation))
    full = 20 * 5 * 4096 * 12
    assert {record["full_flops"] for record in found.values()} == {full}
    none, quarter, million, most = sorted(flops for _, flops in found)
    assert (none, most) == (0, full)
    assert 0.95 * full / 4 <= million <= full / 4 or 0.95e6 <= million <= 1e6
    assert 0.95 * min(full / 4, 1e6) <= quarter <= min(full / 4, 1e6)


def test_a_hundred_is_flops_and_no_share(any_kernels: Kernels, tmp_path: Path) -> None:
    rows = "spmv:rows=60,nonzeros=5"  # 600 flops in all
    options = ("--pattern", rows, "--methods", "bulk", "--computation", "0,100")
    found = records(overlap(any_kernels, tmp_path / "o.jsonl", 2, *options))
    assert {flops for _, flops in found} == {0, 100}


@pytest.mark.parametrize(
    ("pattern", "method", "corrupt", "message"),
    [
        (FT, "slabs:by=isend", "isend", "wrong payload from rank 0"),
        (FT, "slabs:by=put", "put", "wrong payload from rank 0"),
        (SPMV, "scatter:prefetch=1,by=isend", "isend", "wrong payload from rank 0: element 5"),
        (SPMV, "scatter:prefetch=1,by=put", "put", "wrong payload from rank 0: element 5"),
    ],
)
def test_a_wrong_byte_is_an_error(
    any_kernels: Kernels, tmp_path: Path, pattern: str, method: str, corrupt: str, message: str
) -> None:
    options = ("--pattern", pattern, "--methods", method, "--computation", "0")
    out = tmp_path / "o.jsonl"
    result = overlap(any_kernels, out, 2, *options, program=CORRUPT, corrupt=corrupt)
    assert result.status != 0
    (line,) = result.complaints
    assert f"{method} with 0 flops: {message}" in line
    assert not any(record["record"] == "end" for record in result.records)


def test_a_wrong_product_is_an_error(any_kernels: Kernels, tmp_path: Path) -> None:
    options = ("--pattern", SPMV, "--methods", "bulk", "--computation", "100%")
    out = tmp_path / "o.jsonl"
    result = overlap(any_kernels, out, 2, *options, program=CORRUPT, corrupt="row")
    assert result.status != 0
    (line,) = result.complaints
    assert "wrong product: row 0" in line


@pytest.mark.usefixtures("fftw")
def test_a_wrong_transform_is_an_error(any_kernels: Kernels, tmp_path: Path) -> None:
    options = ("--pattern", "ft:rows=1,elements=2", "--methods", "exchange:by=isend")
    computation = ("--computation", "100%")
    out = tmp_path / "o.jsonl"
    result = overlap(
        any_kernels, out, 2, *options, *computation, program=CORRUPT, corrupt="transform"
    )
    assert result.status != 0
    (line,) = result.complaints
    assert "wrong transform from rank 0" in line


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--pattern", "random"), '--pattern "random" is not a pattern of overlap'),
        (("--pattern", "ft:rows=0"), "rows must be an integer from 1 to"),
        (("--pattern", FT, "--methods", "direct"), '"direct" is not a method of ft'),
        (("--pattern", FT, "--methods", "chunks:rows=6"), "rows must be an integer from 1 to 5"),
        (("--pattern", FT, "--methods", "slabs:by=get"), '"by=get" is not a parameter of slabs'),
        (("--pattern", FT, "--methods", "slabs:rows=2"), '"rows=2" is not a parameter of slabs'),
        (("--pattern", FT, "--methods", " "), "--methods names no method"),
        (("--pattern", FT, "--computation", "1e99"), "full rows have"),
        (("--pattern", FT, "--computation", "50%,x"), "write a list of flops or percentages"),
        (("--pattern", FT, "--computation", "inf%"), "write a list of flops or percentages"),
        (("--pattern", FT, "--sizes", "8"), "--sizes is an option of run, not of overlap"),
        (("--pattern", SPMV, "--methods", "gather:prefetch=2"), "an integer from 1 to 1 here"),
        ((), "--pattern SPEC is missing"),
        (("--pattern", "ft:rows=1048576,elements=268435456"), "exceed the largest message"),
    ],
)
def test_what_cannot_be_measured_is_refused_in_one_line(
    any_kernels: Kernels, tmp_path: Path, options: tuple[str, ...], message: str
) -> None:
    result = overlap(any_kernels, tmp_path / "o.jsonl", 2, *options)
    assert result.status != 0
    (line,) = result.complaints
    assert message in line
