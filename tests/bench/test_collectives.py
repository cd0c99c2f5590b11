"""The figures of the comparison of collectives, from raw samples."""

import math
from argparse import Namespace
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from tests import raw
from tests.bench.collectives import (
    MEAN,
    WITH_DATA,
    JudgingResult,
    SizeSamples,
    alone_of,
    main,
    means_of,
    paired_log_ratios,
    place,
    read_samples,
)
from tuner.domain.operations import COLLECTIVES
from tuner.machine.mpi import Mpi
from tuner.units import parse_sizes

ROUNDS = range(1, 41)
MPICH = Mpi("mpich", "mpich", "4.0.2", "mpicc", "mpiexec")
SIZES = (8, 1024, 65536)


def size_samples(directory: Path, factor: float, selected: str) -> SizeSamples:
    """Return three drifting launches; `auto` takes `factor` times as long as the default."""
    paths = []
    for launch in range(3):
        drift = [1e-5 * (launch + 1) * 1.1**number for number in ROUNDS]
        cases = {"vendor": drift, "auto": [factor * time_s for time_s in drift]}
        cases["auto"] = cases["auto"][:-5]  # measured in fewer rounds
        records = [
            {"record": "case", "method": method, "size_bytes": 64, "samples_s": times_s}
            | {"round": list(ROUNDS)[: len(times_s)]}
            | ({"selected": selected} if method == "auto" else {})
            for method, times_s in cases.items()
        ]
        lines: list[raw.Record] = [
            {"record": "header", "operation": "bcast"},
            *records,
            {"record": "end"},
        ]
        paths.append(raw.write(directory / f"{launch}.jsonl", lines))
    (size, read), *more = read_samples(paths)["bcast"].items()
    assert (size, read.selected, more) == (64, selected, [])
    return read


def test_ratios_are_paired_within_rounds(tmp_path: Path) -> None:
    low, middle, high = map(
        math.exp, sorted(size_samples(tmp_path, 0.5, "ring").log_ratio("auto", "vendor"))
    )
    assert low == pytest.approx(0.5)
    assert middle == pytest.approx(0.5)
    assert high == pytest.approx(0.5)


def test_samples_are_paired_by_round() -> None:
    ratios = paired_log_ratios(
        np.array([0, 1, 3]),
        np.array([2.0, 4.0, 8.0]),
        np.array([3, 0, 2]),
        np.array([4.0, 1.0, 9.0]),
    )
    assert np.exp(ratios).tolist() == pytest.approx([2.0, 2.0])


@pytest.mark.parametrize(
    ("factor", "selected", "held", "words"),
    [
        (0.8, "ring", True, f"{'bcast':42}0.80 of the default's time"),
        (1.1, "ring", False, "clearly slower than the default: bcast at 64 B"),
        (1.1, "vendor", False, "vendor (same method)"),  # the cost of `auto` beside it
    ],
)
def test_the_bar_is_held_where_the_choice_is_not_slower(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    factor: float,
    selected: str,
    held: bool,
    words: str,
) -> None:
    result = JudgingResult(["bcast"])
    result.add("bcast", 64, size_samples(tmp_path, factor, selected), SizeSamples())
    assert result.conclude() is held
    assert words in capsys.readouterr().out


def test_the_best_algorithm_of_the_library_is_that_of_the_race(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    times_s = {"vendor": 8e-6, "ring": 1e-6, "vendor:algorithm=a": 6e-6, "vendor:algorithm=b": 4e-6}
    samples = {method: {n: ([1], [time_s]) for n in (0, 1)} for method, time_s in times_s.items()}
    samples["vendor:algorithm=once"] = {0: ([1], [1e-6])}  # in one launch: no interval
    chosen = SizeSamples(samples=defaultdict(dict, samples))
    JudgingResult(["bcast"]).add("bcast", 64, size_samples(tmp_path, 0.8, "ring"), chosen)
    assert capsys.readouterr().out.endswith(" 0.50 vendor:algorithm=b\n")


@pytest.mark.parametrize(
    ("family", "version", "named", "most"),
    [
        ("mpich", "4.0.2", COLLECTIVES, 0.75),
        ("mpich", "4.0.2", WITH_DATA, 0.75),
        ("mpich", "4.0.2", (*WITH_DATA[1:], "barrier"), None),
        ("openmpi", "4.1.4", COLLECTIVES, 0.75),
        ("openmpi", "5.0.11", COLLECTIVES, 0.9),  # beside HAN
        ("intelmpi", "2021.18", COLLECTIVES, None),
        ("mpich", "5.0.2", ("bcast",), None),
    ],
)
def test_all_operations_with_data_together_have_a_bar(
    family: str, version: str, named: Sequence[str], most: float | None
) -> None:
    one = Mpi(family, family, version, "mpicc", "mpiexec")
    together, *_ = means_of(one, named, SIZES, on_two=False)
    which = "all" if {*named} >= {*WITH_DATA} else "some"
    assert (together.name, together.most) == (f"{which} operations with data", most)


def judged(
    directory: Path, factors: dict[tuple[str, int], float], on_two: bool = False
) -> JudgingResult:
    """Return results by operation and size; `auto` takes so many times as long as the default."""
    operations, sizes = (list(dict.fromkeys(each)) for each in zip(*factors, strict=True))
    result = JudgingResult(operations, means_of(MPICH, operations, sizes, on_two))
    for (operation, size), factor in factors.items():
        result.add(operation, size, size_samples(directory, factor, "ring"), SizeSamples())
    result.conclude()
    return result


def test_what_moves_no_data_is_apart_from_all_operations(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    factors = {("bcast", 8): 0.8, ("bcast", 512): 0.2, ("gather", 8): 0.9, ("barrier", 1): 0.01}
    means = {each.name: each for each in judged(tmp_path, factors).figures if each.unit == MEAN}
    together = means["some operations with data"]
    assert together.value == pytest.approx(0.6)
    assert not together.bar  # of some operations
    assert means["barrier"].value == pytest.approx(0.01)
    assert not means["barrier"].bar
    assert f"{'barrier':42}0.01 of the default's time" in capsys.readouterr().out
    (alone,) = (each for each in judged(tmp_path, {("barrier", 1): 0.9}).figures if not each.bar)
    assert alone.name == "barrier"


@pytest.mark.parametrize(("factor", "met"), [(0.9, True), (1.1, False)])
def test_two_ranks_have_bars_of_small_and_of_large_sizes(
    tmp_path: Path, factor: float, met: bool
) -> None:
    of_size = {8: 0.4 * factor, 1024: 0.625 * factor, 65536: 0.95 * factor}
    others = {name: 1.0 for name in WITH_DATA if name != "alltoallv"} | {"alltoallv": 0.01}
    factors = {(name, size): its * of_size[size] for name, its in others.items() for size in SIZES}
    barred = {each.name: each for each in judged(tmp_path, factors, on_two=True).figures}
    small, large = (
        barred[f"all with data but alltoallv, {sizes}"] for sizes in ("up to 1 KiB", "at 64 KiB")
    )
    assert [small.value, large.value] == pytest.approx([0.5 * factor, 0.95 * factor])
    assert (small.bar, large.bar) == ("<= 0.5", "<= 0.95")
    assert (small.met, large.met) == (met, met)


def test_a_mean_without_one_of_its_operations_meets_no_bar(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    factors = {(name, size): 0.4 for name in WITH_DATA for size in SIZES}
    del factors["bcast", 65536]  # in too few launches
    large = "all with data but alltoallv, at 64 KiB"
    figures = judged(tmp_path, factors, on_two=True).figures
    assert [each.name for each in figures if not each.met] == [large]
    said = capsys.readouterr().out
    assert f"{large:42}an operation was not compared" in said
    assert "nan" not in said


def test_all_operations_with_data_are_compared_on_two_ranks_alone() -> None:
    options = Namespace(
        least=False, alone=False, operations=[*COLLECTIVES], seconds=50.0, sizes="8", procs=8
    )
    on_two, on_eight = alone_of(options)
    assert (on_two.alone, on_two.procs, on_two.seconds) == (True, 2, 20.0)
    means = means_of(MPICH, on_two.operations, parse_sizes(on_two.sizes), on_two=True)
    assert [mean.most for mean in means] == [0.5, 0.95, 0.8]
    assert (on_eight.alone, on_eight.procs, on_eight.operations) == (True, 8, ["alltoallv"])
    assert alone_of(Namespace(**vars(options) | {"alone": True})) == []
    options.operations = ["bcast"]
    assert alone_of(options) == []
    options.least = True
    assert [(each.procs, each.operations) for each in alone_of(options)] == [(2, ["bcast"])]


@pytest.mark.parametrize(("factor", "met"), [(0.64, True), (0.96, False)])
def test_small_uneven_blocks_have_a_bar(tmp_path: Path, factor: float, met: bool) -> None:
    factors = {("alltoallv", 8): factor, ("alltoallv", 512): 0.81, ("alltoallv", 8192): 0.1}
    means = {each.name: each for each in judged(tmp_path, factors).figures if each.unit == MEAN}
    small = means["alltoallv up to 1 KiB"]
    assert small.value == pytest.approx(0.9 * math.sqrt(factor))
    assert (small.bar, small.met) == ("<= 0.8", met)
    others = judged(tmp_path, {("alltoallv", 8192): 0.1, ("alltoall", 8192): 0.1}).figures
    assert not [each for each in others if "up to" in each.name]


def test_this_machine_alone_needs_no_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.bench.collectives.temporary", None)
    with place(2, without_nodes=True) as (system, start):
        command = start(MPICH, Path("build"))
    assert system == "local:cpu"
    assert "2" in command.argv_prefix


def test_an_operation_that_nothing_was_compared_of_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = JudgingResult(["bcast", "reduce"])
    result.add("bcast", 64, size_samples(tmp_path, 0.5, "ring"), SizeSamples())
    few = SizeSamples(samples={method: {0: ([1], [1e-5])} for method in ("auto", "vendor")})
    result.add("reduce", 64, few, SizeSamples())
    assert not result.conclude()
    alone = JudgingResult(["reduce"])
    alone.add("reduce", 64, few, SizeSamples())
    assert not alone.conclude()
    said = capsys.readouterr().out
    assert "reduce               not compared at any size" in said
    assert "nan" not in said


def test_an_mpi_that_is_not_there_is_an_error(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["collectives", "--mpi", "typo"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert "no MPI typo on PATH" in capsys.readouterr().err
