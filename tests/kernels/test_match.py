"""All readers of rules choose the same method, whatever is off."""

import math
import os
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from dashboard.rules import selected_intervals, with_speedup
from tests.compiler import COMPILER
from tests.decisions import PROVENANCE, on, point
from tests.kernels.conftest import Kernels
from tuner.domain.cases import DegreeClass
from tuner.domain.flat import flat
from tuner.domain.tables import Rule, Table
from tuner.export import forms
from tuner.export.choices import VendorError, choices_of
from tuner.machine.mpi import launch
from tuner.selection import match, off

METHODS = {
    "exchange": ("direct", "neighbor", "alltoallv", "shared"),
    "discovery": ("pex", "pcx", "dense"),
    "bcast": ("vendor", "binomial", "scatter_allgather", "chain:segment=64"),
}
ALGORITHMS = ("vendor", "binomial", "vendor:algorithm=linear", "vendor:algorithm=chain")
"""For files of MPI libraries; "vendor" leaves the choice to the library, as "binomial" must."""


def spans(numbers: st.SearchStrategy[float]) -> st.SearchStrategy[tuple[float | None, ...]]:
    ends = st.tuples(st.none() | numbers, st.none() | numbers)
    return ends.map(lambda pair: tuple(sorted(pair)) if None not in pair else pair)


small, sizes = st.integers(1, 4), st.integers(0, 12).map(lambda power: 2**power - power % 2)
means = st.sampled_from([0.0, 0.3, 0.6, 0.7, 0.75, 1.0, 1.25, 1.7, 1.75, 2.0, 3.0])


@st.composite
def rules(draw: st.DrawFn, operation: str, methods: Sequence[str]) -> Rule:
    layout = sorted([draw(small), draw(small)]), sorted([draw(small), draw(small)])
    degree = [*draw(spans(small)), *draw(spans(means))]
    if operation not in ("exchange", "discovery"):
        degree = [None] * 4
    method = draw(st.sampled_from(methods))
    bounds = (*layout[0], *layout[1], *degree, *draw(spans(sizes)))
    return Rule(operation, *bounds, method, point(method, operation=operation))


tables = st.lists(
    st.sampled_from(sorted(METHODS)).flatmap(lambda name: rules(name, METHODS[name])),
    min_size=1,
    max_size=12,
)
degrees = st.one_of(st.just((-1, -1.0)), st.tuples(small, means))
cases = st.lists(
    st.tuples(
        st.builds(
            lambda name, nodes, ppn, degree: DegreeClass(
                name, nodes, ppn, *(degree if name != "bcast" else (-1, -1.0))
            ),
            *(st.sampled_from(sorted(METHODS)), small, small, degrees),
        ),
        st.one_of(sizes, st.integers(0, 5000)),
    ),
    min_size=1,
    max_size=20,
)
listed = st.lists(
    st.sampled_from(
        ["neighbor", "alltoallv", "pcx", "dense", "binomial", "chain:segment=64", "node-memory"]
    ),
    max_size=3,
    unique=True,
).map("; ".join)


@contextmanager
def switched_off(names: str) -> Iterator[None]:
    """Switch methods off within the block. Hypothesis has no fixtures within an example."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(off.VARIABLE, names)
        yield


class Library:
    """The library's own first match, in one process for all examples."""

    def __init__(self, kernels: Kernels, directory: Path) -> None:
        start = launch(kernels.mpi, 1, build=kernels.build)
        command = [*start.argv_prefix, str(kernels.build / "tests" / "swp_match")]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "bufsize": 1}
        self._process = subprocess.Popen(command, env=os.environ | start.env, **pipes)
        self._path = directory / "rules.table"

    def methods(
        self, text: str, names: str, of: Sequence[tuple[DegreeClass, int]]
    ) -> list[str | None]:
        self._path.write_text(text)
        lines = [f"off {names}", f"table {self._path}"]
        lines += [f"case {' '.join(map(str, its))} {size}" for its, size in of]
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write("".join(f"{line}\n" for line in lines))
        self._process.stdin.flush()
        said = [self._process.stdout.readline().strip() for _ in of]
        return [None if method == "none" else method for method in said]

    def close(self) -> None:
        """End the process; its launcher may fail if the input ends after the last rank."""
        assert self._process.stdin is not None
        with self._process:
            self._process.stdin.write("end\n")
            assert self._process.wait(timeout=60) == 0


def by_header(
    directory: Path, text: str, of: Sequence[tuple[DegreeClass, int]]
) -> list[str | None]:
    """Compile the exported header, and print what it chooses."""
    (directory / "rules.h").write_text(text)
    calls = (
        f'show(switchpoint_method("{its.operation}", {its.nodes}, {its.ppn}, {its.mmax}, '
        f"{its.mavg}, INT64_C({size})));"
        for its, size in of
    )
    source = directory / "match.c"
    source.write_text(
        '#include "rules.h"\n#include <stdio.h>\n'
        'static void show(const char *method) { puts(method ? method : "none"); }\n'
        f"int main(void) {{ {' '.join(calls)} return 0; }}\n"
    )
    subprocess.run([*COMPILER, "-O0", source, "-o", directory / "match"], check=True)
    said = subprocess.run([directory / "match"], check=True, capture_output=True, text=True)
    return [None if method == "none" else method for method in said.stdout.split()]


def by_page(table: Table, degree_class: DegreeClass, size: int) -> str | None:
    """Return what a page draws at a size."""
    frame = pd.DataFrame([flat(rule.evidence) | rule._asdict() for rule in table.rules])
    selected = selected_intervals(
        with_speedup(frame), pd.Series(degree_class._asdict(), dtype=object)
    )
    held = selected[(selected["bytes_low"] <= size) & (size <= selected["bytes_high"])]
    assert len(held) <= 1
    return str(held["method"].iloc[0]) if len(held) else None


def test_every_reader_of_rules_chooses_the_same(any_kernels: Kernels, tmp_path: Path) -> None:
    library = Library(any_kernels, tmp_path)

    every_degree = (1, 1, 1, 1, None, None, 0.0, None, None, None)

    @settings(max_examples=25)
    @example(
        [Rule("discovery", *every_degree, "pex", point("pex", operation="discovery"))],
        *("", [(DegreeClass("discovery", 1, 1, -1, -1.0), 1)], ""),
    )
    @example(  # 0.7 is not the sum of its digits
        [Rule("exchange", 1, 1, 1, 1, None, None, 0.7, 2.0, None, None, "direct", point("direct"))],
        *("", [(DegreeClass("exchange", 1, 1, 1, 0.7), 8)], ""),
    )
    @given(tables, listed, cases, st.sampled_from(["", "this machine (MPICH 4.0.2, 2 cores)"]))
    def agree(
        found: list[Rule], names: str, of: list[tuple[DegreeClass, int]], borrowed_for: str
    ) -> None:
        table = Table(replace(PROVENANCE, borrowed_for=borrowed_for), found, [])
        used = [rule for rule in found if not off.is_off(rule.method, names)]
        chosen = [match.first(used, degree_class, size) for degree_class, size in of]
        expected = [rule.method if rule else None for rule in chosen]
        assert library.methods(forms.export(table, "table"), names, of) == expected
        with switched_off(names):
            assert [by_page(table, degree_class, size) for degree_class, size in of] == expected
            if used:
                assert by_header(tmp_path, forms.export(table, "header"), of) == expected
            else:
                with pytest.raises(forms.ExportError, match="is off"):
                    forms.export(table, "header")

    agree()
    library.close()


@given(
    st.lists(
        rules("bcast", ALGORITHMS).map(
            lambda rule: rule._replace(nodes_low=1, nodes_high=1, ppn_low=4, ppn_high=4)
        ),
        min_size=1,
        max_size=8,
    ),
    st.lists(st.sampled_from(["binomial", "vendor:algorithm=chain"]), max_size=2).map("; ".join),
    st.lists(st.integers(0, 5000), min_size=1, max_size=20),
)
def test_files_of_mpi_libraries_choose_the_same(
    found: list[Rule], names: str, at: list[int]
) -> None:
    found = [rule._replace(evidence=on(rule.evidence, 1, 4)) for rule in found]
    used = [rule for rule in found if not off.is_off(rule.method, names)]
    table = Table(PROVENANCE, used, [])

    def expected(size: int) -> str | None:
        rule = match.first(used, DegreeClass("bcast", 1, 4), size)
        named = rule is not None and rule.method.startswith("vendor:algorithm=")
        return rule.method.partition("=")[2] if rule and named else None

    try:
        (counts,) = choices_of(table).counts["bcast"]
    except VendorError:
        assert {expected(size) for size in range(5000)} == {None}
        return
    ends = [*(interval.low for interval in counts.intervals[1:]), math.inf]
    for size in at:
        of_size = [
            interval.algorithm
            for interval, end in zip(counts.intervals, ends, strict=True)
            if interval.low <= size < end
        ]
        assert of_size == [expected(size)]
