"""Patterns made for predictions are those that swpbench makes, to the last message."""

from pathlib import Path

import pytest

from tests.kernels.benchrun import bench
from tests.kernels.conftest import Kernels
from tuner.inputs.structure.methods import method
from tuner.inputs.structure.patterns import pattern

SIZE_BYTES = 8


@pytest.mark.parametrize("procs", [1, 2, 5, 12])
@pytest.mark.parametrize(
    "spec",
    [
        "random",
        "random:degree=4,seed=7",
        "hub:hubs=2,seed=5",
        "stencil",
        "stencil:dim=2,points=5,edge=3",
        "stencil:dim=1,points=3,edge=2",
    ],
)
def test_statistics_are_those_of_the_library(
    any_kernels: Kernels, tmp_path: Path, spec: str, procs: int
) -> None:
    ppn = min(procs, 3)
    result = bench(
        any_kernels,
        tmp_path / "o",
        procs,
        pattern=spec,
        methods="direct stfw nap: nap:sharing=no",  # those that are counted
        sizes=str(SIZE_BYTES),
        ppn=ppn,
        max_samples=1,
    )
    assert result.status == 0, result.stderr
    messages = pattern(spec, procs)
    for case in result.cases:
        counted = method(case["method"], procs).count(messages, ppn).statistics(SIZE_BYTES)
        for name in ("stages", "mmax", "mavg", "vmax_bytes", "hop_bytes", "off_node_bytes"):
            assert case["statistics"][name] == pytest.approx(getattr(counted, name)), name
