"""No parser is brought down by any bytes: the committed inputs by day, guided ones by night."""

import random
import subprocess
from pathlib import Path

import pytest

from tests.conftest import Require, by_day
from tests.fuzzing import corpora
from tests.fuzzing.__main__ import C_RUNS, TARGETS, guided, lacking, runs_of
from tests.fuzzing.readers import READERS
from tests.kernels.conftest import Kernels, build_kernels
from tests.kernels.test_builds import SANITIZED

BY_DAY, SHARE = "python-query", 0.01


def results_in_c(kernels: Kernels, parser: str, directory: Path) -> list[bool]:
    """Return which committed inputs the parser accepts."""
    paths = corpora.unpack(parser, directory)
    done = subprocess.run(
        [kernels.build / "tests" / "swp_parsers", f"--parser={parser}"],
        input="".join(f"{path}\n" for path in paths),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert set(done.stdout.split()) == {"accepted", "refused"}
    return [result == "accepted" for result in done.stdout.split()]


@pytest.mark.parametrize("parser", C_RUNS)
def test_committed_inputs_in_c(any_kernels: Kernels, parser: str, tmp_path: Path) -> None:
    assert len(results_in_c(any_kernels, parser, tmp_path)) == len(corpora.inputs(parser))


@pytest.mark.check
def test_sanitizers_find_nothing_in_committed_inputs(any_kernels: Kernels, tmp_path: Path) -> None:
    built = build_kernels(any_kernels.mpi, "sanitized", *SANITIZED, target="swp_parsers")
    for parser in C_RUNS:
        results_in_c(Kernels(any_kernels.mpi, built), parser, tmp_path / parser)


@pytest.mark.parametrize("parser", READERS)
def test_committed_inputs_in_python(
    parser: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SWITCHPOINT_RESULTS", str(tmp_path))
    results = [READERS[parser].accepts(each, tmp_path) for each in corpora.inputs(parser)]
    assert False in results and {True, None} & {*results}


@pytest.mark.parametrize("parser", [name for name, its in READERS.items() if its.shared])
def test_both_parsers_of_a_grammar_accept_the_same(
    any_kernels: Kernels, parser: str, tmp_path: Path
) -> None:
    in_c = results_in_c(any_kernels, parser, tmp_path)
    for content, result in zip(corpora.inputs(parser), in_c, strict=True):
        assert READERS[parser].accepts(content, tmp_path) in (result, None), content


@pytest.mark.parametrize("target", by_day([BY_DAY], TARGETS))
def test_guided_inputs(target: str, require: Require) -> None:
    lack = lacking(target)
    require(lack or "clang", not lack, "it is not there, or without libFuzzer")
    seed = 1 if target == BY_DAY else random.randrange(1, 1 << 31)
    finding = guided(target, runs_of(target, SHARE), seed)
    assert not finding, finding
