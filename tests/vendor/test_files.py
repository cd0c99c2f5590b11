"""What exported files of MPI libraries' own algorithms say, leave out, and refuse."""

from __future__ import annotations

import json
import os
import re
from dataclasses import replace
from itertools import pairwise, product
from pathlib import Path

import pytest

from tests.conftest import Require
from tests.decisions import PROVENANCE, on, point
from tests.vendor.conftest import installed
from tests.vendor.tables import (
    ALGORITHMS,
    BANNERS,
    FIRST,
    INTEL,
    PROCS,
    SECOND,
    in_turn,
    rule,
    table,
    table_for,
    table_of,
)
from tuner.domain.cases import Layout, NodeCores
from tuner.domain.tables import Rule, Table
from tuner.export.choices import Counts, SizeRange, VendorError, choices_of
from tuner.export.exported import Exported, stated_in
from tuner.export.forms import export
from tuner.export.mpi_library import installation, launcher, made_for
from tuner.export.verify import verify_table
from tuner.machine.mpi import Mpi, library_of
from tuner.selection.rules import compile_rules


@pytest.mark.parametrize("form", ["openmpi", "mpich"])
def test_a_table_of_another_library_is_refused(form: str) -> None:
    rules = [rule("bcast", "vendor:algorithm=binomial")]
    other = BANNERS["mpich" if form == "openmpi" else "openmpi"].format("4.0.2", "4.0.2")
    with pytest.raises(VendorError, match="cannot be exported for"):
        export(table(other, rules), form)


def test_a_table_of_another_version_is_refused(mpi: Mpi) -> None:
    rules = [rule("bcast", "vendor:algorithm=binomial")]
    with pytest.raises(VendorError, match=r"4\.9\.9 .*not on PATH"):
        export(table(BANNERS[mpi.family].format("4.9.9", "4.9.9"), rules), mpi.family)


def test_a_version_is_found_behind_another_of_its_major_version(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first, second, other = (
        Mpi("mpich", "mpich", version, f"/{version}/mpicc", f"/{version}/mpiexec")
        for version in ("4.3.0", "4.2.0", "5.0.2")
    )
    every = [[first, second], [other]]
    monkeypatch.setattr("tuner.export.mpi_library.find_all_mpis", lambda: every)
    assert [installation("mpich", each) for each in ("4.2.0", "5.0.2")] == [second, other]
    with pytest.raises(VendorError, match=r"only MPICH 4\.3\.0 .* MPICH 4\.2\.0 .* MPICH 5\.0\.2"):
        installation("mpich", "4.1.0")


def test_a_file_for_another_version_is_refused(mpi: Mpi, tmp_path: Path) -> None:
    file = tmp_path / "choices"
    text = export(table_of(mpi), mpi.family)
    file.write_text(text)
    assert f"{mpi.version}: {mpi.mpiexec}" in verify_table(file)
    file.write_text(text.replace(mpi.version, "4.9.9"))
    with pytest.raises(VendorError, match=r"4\.9\.9 .*not on PATH .*with other algorithms"):
        verify_table(file)


def test_versions_whose_format_is_unknown_are_refused() -> None:
    rules = [rule("bcast", "vendor:algorithm=binomial")]
    with pytest.raises(VendorError, match=r"6\.0\.0 is not supported"):
        export(table("Open MPI v6.0.0, package: x", rules), "openmpi")


def test_a_file_says_whom_it_is_for_and_where_it_comes_from(mpi: Mpi) -> None:
    text = export(table_of(mpi), mpi.family)
    assert made_for(text) == (mpi.family, mpi.version)
    assert "local-cpu-mpich-1f00ba" in text
    assert "20261121T034500Z" in text


@pytest.mark.parametrize("nodes", [1, 2])
@pytest.mark.parametrize("mpi", ["openmpi4", "openmpi5"], indirect=True)
def test_components_are_in_no_file(mpi: Mpi, nodes: int) -> None:
    rules = [
        rule("bcast", "vendor:algorithm=adapt", FIRST, None, nodes=nodes),
        rule("reduce", "vendor:algorithm=pipeline", nodes=nodes),
        rule("allreduce", "vendor:algorithm=none_such", nodes=nodes),
    ]
    of = table_for(mpi, rules)
    text = export(of, "openmpi")
    assert f"# left out: bcast, {PROCS} processes: adapt is a component, which is used " in text
    assert f"# left out: allreduce, {PROCS} processes: the library has no algorithm none_" in text
    for each in (text, export(of, "han")) if mpi.major > 4 else (text,):
        assert [its.algorithm for its in stated_in(each)] == ["pipeline"]
        assert not re.search("^[^#]*adapt", each, re.MULTILINE)


def test_a_chain_has_the_fan_out_that_it_was_measured_with(require: Require) -> None:
    openmpi = installed("openmpi", require)
    rules = [
        rule("bcast", "vendor:algorithm=chain", None, 99),
        rule("bcast", "vendor:algorithm=pipeline", 100, None),
    ]
    text = export(table_for(openmpi, rules), "openmpi")
    assert re.findall(r"(\d+) 0 # (chain|pipeline)", text) == [("4", "chain"), ("0", "pipeline")]


def test_calls_in_place_that_give_no_size_are_left_to_open_mpi(require: Require) -> None:
    openmpi = installed("openmpi", require)
    rules = in_turn("allgather", *ALGORITHMS["openmpi"]["allgather"][:2])
    text = export(table_for(openmpi, rules), "openmpi")
    entries = re.findall(r"^(\d+) (\d+) \d+ 0 # ", text, re.MULTILINE)
    assert [int(low) for low, _ in entries] == [0, 0, PROCS, PROCS * FIRST, PROCS * SECOND, 0]
    assert [number == "0" for _, number in entries] == [True, True, False, False, False, True]


@pytest.mark.parametrize(("operation", "warned"), [("allreduce", True), ("bcast", False)])
def test_a_file_of_open_mpi_warns_of_reductions_that_do_not_commute(
    require: Require, operation: str, warned: bool
) -> None:
    openmpi = installed("openmpi", require)
    rules = [rule(operation, f"vendor:algorithm={ALGORITHMS['openmpi'][operation][0]}")]
    text = export(table_for(openmpi, rules), "openmpi")
    assert ("caution: " in text and "do not commute" in text) == warned


def test_what_the_library_cannot_do_is_left_to_it_and_listed(mpi: Mpi) -> None:
    rules = [
        rule("bcast", "vendor:algorithm=binomial", None, 99),
        rule("bcast", "orthogonal:grid=2x2", 100, 199),
        rule("bcast", "vendor:algorithm=no_such", 200, None),
        rule("gather", "vendor:algorithm=binomial", None, 99),
        rule("gather", "vendor", 100, None),
    ]
    text = export(table_for(mpi, rules), mpi.family)
    omitted = re.findall(r"left out: (.*)", text)
    assert [re.sub(r"^.*processes: ", "", line)[:40] for line in omitted] == [
        "100 to 199 B: orthogonal:grid=2x2 is not",
        "the library takes the size from argument",
        "the library has no algorithm no_such",
    ]


def test_a_table_without_algorithms_has_nothing_to_export() -> None:
    with pytest.raises(VendorError, match="chooses none of the library's algorithms"):
        choices_of(table("MPICH Version:4.0.2", [rule("bcast", "vendor")]))


def inferred(operation: str, name: str, ppn: tuple[int, int], low: int | None = None) -> Rule:
    measured = rule(operation, f"vendor:algorithm={name}", low, None, 2)
    return measured._replace(ppn_low=ppn[0], ppn_high=ppn[1])


def test_inferred_rules_are_ranges_of_process_counts(mpi: Mpi) -> None:
    rules = [
        rule("bcast", "vendor:algorithm=binomial", procs=2),
        inferred("bcast", "binomial", (3, 5)),
        inferred("allgather", "ring", (3, 4), low=1024),
    ]
    text = export(table_for(mpi, rules), mpi.family)
    assert stated_in(text) == [
        Exported("allgather", 1, 3, 1024, None, "ring", True, 1, 4),
        Exported("bcast", 1, 2, 0, None, "binomial"),
        Exported("bcast", 1, 3, 0, None, "binomial", True, 1, 5),
    ]
    if mpi.family == "openmpi":  # where sizes of an allgather are those of all ranks' blocks
        counts = re.findall(r"(\d+) # processes|^(\d+) [1-9]\d* 0 0 # (\w+)", text, re.MULTILINE)
        assert ["".join(words) for words in counts] == [
            *("1", "3", "3072ring", "4", "4096ring", "5"),
            *("1", "2", "0binomial", "3", "0binomial", "6"),
        ]
        return
    selection = json.loads(text[text.index("*/") + 2 :])
    trees = {op: selection[f"collective={op}"]["comm_type=intra"] for op in ("bcast", "allgather")}
    assert [*trees["bcast"]] == [f"comm_size<={n}" for n in (1, 2, 5)] + ["comm_size=any"]
    assert [*trees["allgather"]] == [f"comm_size<={n}" for n in (2, 3, 4)] + ["comm_size=any"]
    for ring in trees["allgather"]["comm_size<=3"].values():  # of powers of two, and of others
        assert [*ring] == ["total_msg_size<3072", "total_msg_size=any"]
    assert trees["allgather"]["comm_size<=2"] == trees["allgather"]["comm_size=any"]
    assert trees["bcast"]["comm_size<=2"] == trees["bcast"]["comm_size<=5"]


def test_open_mpi_gets_its_algorithm_for_two_processes_for_no_more(require: Require) -> None:
    rules = [
        rule("alltoall", "vendor:algorithm=two_proc", procs=2),
        inferred("alltoall", "two_proc", (3, 5)),
        inferred("allgather", "ring", (3, 5)),
    ]
    text = export(table_for(installed("openmpi", require), rules), "openmpi")
    assert [(its.operation, its.algorithm) for its in stated_in(text)] == [
        ("allgather", "ring"),
        ("alltoall", "two_proc"),
    ]


def of_many_nodes(operation: str, names: tuple[str, str]) -> list[Rule]:
    """Return the rules of four layouts of up to 512 nodes, and of those between them."""
    small, large = (f"vendor:algorithm={name}" for name in names)
    points = [
        on(point(method, size, (0, 0.0), operation=operation), nodes, ppn)
        for nodes, ppn in product((2, 512), (64, 128))
        for method, size in ((small, 8), (small, 1024), (large, 65536))
    ]
    return compile_rules(points, NodeCores(128))


@pytest.mark.parametrize(
    ("form", "operation", "lines"),
    [("openmpi", "bcast", 150), ("openmpi", "alltoall", 1300), ("mpich", "bcast", 5000)],
)
def test_a_file_for_many_nodes_is_small(
    form: str, operation: str, lines: int, require: Require
) -> None:
    """An alltoall has an entry for each 3 % of process counts, as its sizes are those of all."""
    rules = of_many_nodes(operation, ALGORITHMS[form][operation])
    text = export(table_for(installed(form, require), rules), form)
    assert text.count("\n") < lines
    assert len(text) < 50 * lines


def test_process_counts_of_many_nodes_get_the_choices_of_their_layouts() -> None:
    rules = of_many_nodes("bcast", ("binomial", "ring"))
    choices = choices_of(table("MPICH Version:4.0.2", rules)).counts["bcast"]
    assert sum(len(its.whole) for its in choices) > 10000 > 100 * len(choices)
    for its in choices:
        assert [interval.algorithm for interval in its.intervals] == ["binomial", "ring"]
        assert (its.whole[0], its.whole[-1]) == (its.procs, its.most)
        assert its.inferred or its.whole == [its.procs]
    assert all(before.most < after.procs for before, after in pairwise(choices))
    assert {nodes * ppn for nodes, ppn in product((3, 100, 511), (65, 90, 127))} <= {
        procs for its in choices for procs in its.whole
    }


def test_counts_between_layouts_join_where_the_next_has_fewer_processes_on_some_nodes() -> None:
    def runs(*layouts: tuple[int, int, str]) -> list[tuple[int, int]]:
        rules = [
            inferred("bcast", name, (ppn, ppn))._replace(nodes_low=nodes, nodes_high=nodes)
            for nodes, ppn, name in layouts
        ]
        choices = choices_of(table("MPICH Version:4.0.2", rules))
        return [(its.procs, its.most) for its in choices.counts["bcast"]]

    assert runs((3, 5, "ring"), (3, 6, "ring"), (3, 7, "ring")) == [(15, 21)]
    assert runs((3, 5, "ring"), (3, 6, "chain"), (3, 7, "ring")) == [(15, 15), (18, 18), (21, 21)]
    assert runs((1, 5, "ring"), (1, 7, "ring")) == [(5, 5), (7, 7)]  # 6 is of no such layout
    assert runs((3, 2, "ring"), (3, 7, "ring")) == [(6, 6), (21, 21)]  # 7 and 8 are not
    assert runs((3, 5, "ring"), (2, 8, "ring"), (3, 6, "ring")) == [(15, 15), (16, 16), (18, 18)]


@pytest.mark.parametrize("scaled", [False, True])
def test_sizes_that_process_counts_scale_are_those_of_near_counts(scaled: bool) -> None:
    intervals = [SizeRange(0, 99, "ring"), SizeRange(100, None, "chain")]
    counts = Counts((2, 10), (10, 100), True, intervals, [])
    spans = counts.spans(scaled)
    assert [spans[0][0], spans[-1][1]] == [20, 1000]
    assert all(low == high + 1 for (_, high), (low, _) in pairwise(spans))
    if scaled:
        assert len(spans) < 200
        assert all(high - low <= low / 32 for low, high in spans)
        assert spans[0] == (20, 20)
        assert spans[-1] == (1000, 1000)
    assert counts._replace(intervals=intervals[:1]).spans(scaled) == [(20, 1000)]


def test_mpich_gets_no_algorithm_for_powers_of_two_at_inferred_counts(require: Require) -> None:
    mpich = installed("mpich", require)
    name = "recursive_doubling"
    rules = [
        rule("allgather", f"vendor:algorithm={name}", procs=4),
        inferred("allgather", name, (5, 7)),
        inferred("allgather", name, (8, 9)),
        inferred("allgather", name, (16, 16)),
    ]
    text = export(table_for(mpich, rules), "mpich")
    assert [(its.ppn, its.inferred) for its in stated_in(text)] == [(4, False), (16, True)]


@pytest.mark.parametrize(
    "text",
    ["\n" * 10**6, "\n#" * 10**6, " " * 10**6, f"rule: bcast on {'9' * 5000} x 1, 0 to any B: a"],
)
def test_hostile_files_state_no_rules(text: str) -> None:
    """A search that took the square of their line ends would take hours."""
    assert stated_in(text) == []


@pytest.mark.parametrize("mpi", ["mpich4", "mpich5"], indirect=True)
def test_mpich_gets_no_algorithm_for_calls_in_place(mpi: Mpi) -> None:
    name = "pairwise_sendrecv_replace"
    operations = ("alltoall", "alltoallv")
    text = export(
        table_for(mpi, [rule(each, f"vendor:algorithm={name}") for each in operations]), "mpich"
    )
    assert re.findall(r"left out: (.*)", text) == [
        f"{each}, 4 processes: the library has {name} for calls in place only"
        for each in operations
    ]
    assert stated_in(text) == []


@pytest.mark.parametrize("left_out", ["tree", "no_such"])
def test_what_is_left_out_of_a_file_of_mpich_needs_no_second_file(
    require: Require, left_out: str
) -> None:
    of = table_for(installed("mpich", require), [rule("bcast", f"vendor:algorithm={left_out}")])
    text = export(of, "mpich")
    assert f"left out: bcast, {PROCS} processes: " in text
    assert "--format ch4" not in text
    assert f"comm_size<={PROCS}" not in text
    with pytest.raises(VendorError, match="MPICH composes no operation"):
        export(of, "ch4")


def test_what_mpich_does_not_compose_needs_no_second_file(require: Require) -> None:
    mpich = installed("mpich", require)
    other = rule("allgather", "vendor:algorithm=ring")
    with pytest.raises(VendorError, match="MPICH composes no operation"):
        export(table_for(mpich, [other]), "ch4")
    both = table_for(mpich, [rule("bcast", "vendor:algorithm=binomial"), other])
    assert "Of bcast it needs the file of `switchpoint export --format ch4`" in export(
        both, "mpich"
    )
    assert [its.operation for its in stated_in(export(both, "ch4"))] == ["bcast"]


def test_mpich_5_gets_no_rule_that_it_would_take_for_parts_of_operations(require: Require) -> None:
    for name, rules in (("mpich4", 2), ("mpich5", 1)):
        mpich = installed(name, require)
        both = [rule(each, "vendor:algorithm=nb", nodes=PROCS) for each in ("bcast", "alltoall")]
        text = export(table_for(mpich, both), "mpich")
        assert len(stated_in(text)) == rules
        assert ("bcast, 4 processes: with one process on each node" in text) == (rules == 1)


def test_an_uneven_layout_is_not_exported_as_a_full_one() -> None:
    its = point("vendor:algorithm=binomial", degree=(-1, -1.0), operation="bcast")
    uneven = its._replace(case=its.case._replace(layout=Layout(3, 2, 2, False)))
    points = [on(its, 1, 8), uneven]
    rules = compile_rules(points, NodeCores(8))
    of = replace(table(BANNERS["openmpi"].format("4.1.4", "4.1.4"), rules), points=points)
    choices = choices_of(of)
    assert [counts.procs for counts in choices.counts["bcast"]] == [8]
    assert [*choices.left_out] == ["bcast, 4 processes: 2 x 2 was measured with 3 processes alone"]
    with pytest.raises(VendorError, match="have fewer processes on some nodes"):
        choices_of(replace(of, rules=compile_rules([uneven], NodeCores(8)), points=[uneven]))


def test_what_no_launch_proved_is_not_exported() -> None:
    proved = rule("bcast", "vendor:algorithm=binomial", None, 99)
    choices = choices_of(table("x", [proved, rule("bcast", "vendor:environment=ring", 100, None)]))
    (counts,) = choices.counts["bcast"]
    assert [interval.algorithm for interval in counts.intervals] == ["binomial", None]
    assert list(choices.left_out) == [
        "bcast, 4 processes: 100 to any B: vendor:environment=ring: no launch proved that the "
        "library obeys it"
    ]
    han = [rule("bcast", "vendor:environment=han-sm", procs=8, nodes=4)]
    with pytest.raises(VendorError, match=r"no launch proved that it obeys vendor:\S+=han-sm$"):
        choices_of(table("x", han))
    imported = Table(replace(PROVENANCE, name="pico:leonardo"), [proved], [])
    with pytest.raises(VendorError, match="made of results of PICO: no launch proved"):
        choices_of(imported)


def test_one_layout_of_a_process_count_stands() -> None:
    first = rule("bcast", "vendor:algorithm=binomial")
    small = rule("bcast", "vendor:algorithm=ring", high=99, nodes=2)
    large = rule("bcast", "vendor:algorithm=ring", low=100, nodes=2)
    between = first._replace(ppn_low=PROCS + 1, ppn_high=2 * PROCS)
    choices = choices_of(table("MPICH Version:4.0.2", [first, between, small, large]))
    assert choices.counts.keys() == {"bcast"}
    assert [(its.procs, its.most) for its in choices.counts["bcast"]] == [(4, 4), (5, 8)]
    for counts in choices.counts["bcast"]:
        assert [interval.algorithm for interval in counts.intervals] == ["binomial"]
    (omitted,) = choices.left_out
    assert "2 x 2: the library does not distinguish layouts" in omitted


SELECTION = (
    b'{"collective=bcast": {"comm_type=intra": {"algorithm=MPIR_Bcast_intra_binomial": {}}}}'
)


@pytest.mark.parametrize(
    ("wrapper", "content", "words"),
    [
        ("exit 1", b"", "mpicc -show failed"),
        ("exec sleep 60", b"", "mpicc did not end within 0.5 s"),
        ("echo -L{place} -lmpich", SELECTION[:-3] + bytes(4096), "cannot read its selection"),
        ("echo -L{place} -lmpich", bytes(5000), "contains no selection"),
        (
            "echo -L{place} -lmpich",
            b"algorithm=MPIR_Bcast_intra_binomial\0" + SELECTION + bytes(4096),
            "its selection has no reduce",
        ),
    ],
)
def test_a_library_whose_selection_cannot_be_had_is_reported(
    wrapper: str, content: bytes, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "libmpich.so").write_bytes(content)
    mpicc = tmp_path / "mpicc"
    mpicc.write_text(f"#!/bin/sh\n{wrapper.format(place=tmp_path)}\n")
    mpicc.chmod(0o755)
    here = Mpi("mpich", "mpich", "4.9.9", str(mpicc), "mpiexec")
    monkeypatch.setattr("tuner.export.mpi_library.find_all_mpis", lambda: [[here]])
    if "sleep" in wrapper:
        monkeypatch.setattr("tuner.export.mpi_library._TIMEOUT_S", 0.5)
    with pytest.raises(VendorError, match=words):
        export(table("MPICH Version:4.9.9", [rule("reduce", "vendor:algorithm=binomial")]), "mpich")


def test_settings_of_intel_mpi_are_presets_at_sizes_for_jobs_of_one_process_count() -> None:
    rules = [
        *in_turn("bcast", "2", "7"),
        rule("bcast", "vendor:environment=9", procs=8),
        rule("allgatherv", "vendor:environment=4", None, 15),
        rule("allgatherv", "vendor:environment=3", 16, None),
    ]
    text = export(table(INTEL.format("2021.18"), rules), "intelmpi")
    assert made_for(text) == ("intelmpi", "2021.18")
    assert "caution: the environment chose these presets, and no launch proved" in text
    assert text[text.index("case") :].splitlines()[1:] == [
        "4)",
        '  export I_MPI_ADJUST_ALLGATHERV="4:0-15;3:16-2147483647"',
        '  export I_MPI_ADJUST_BCAST="2:0-1023;7:1024-16383;2:16384-2147483647"',
        "  ;;",
        "8)",
        '  export I_MPI_ADJUST_BCAST="9"',
        "  ;;",
        "esac",
    ]
    highs = {its.algorithm: its.high for its in stated_in(text) if its.low in (0, 16, SECOND)}
    assert highs == {"9": None, "4": 15, "3": 2**31 - 1, "2": 2**31 - 1}


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        ([rule("bcast", "vendor:algorithm=ring")], "ring is not the number"),
        ([rule("bcast", "vendor:algorithm=2", 1024, None)], "none can be left to the library"),
    ],
)
def test_what_settings_of_intel_mpi_cannot_say_is_refused(rules: list[Rule], words: str) -> None:
    with pytest.raises(VendorError, match=words):
        export(table(INTEL.format("2021.18"), rules), "intelmpi")


def test_settings_for_another_version_of_intel_mpi_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "settings.sh"
    rules = [rule("bcast", "vendor:algorithm=2")]
    file.write_text(export(table(INTEL.format("2021.1"), rules), "intelmpi"))
    with pytest.raises(VendorError, match=r"Intel MPI 2021\.1 .*not on PATH"):
        verify_table(file)
    with pytest.raises(VendorError, match="is not supported"):
        export(table(INTEL.format("2019"), rules), "intelmpi")


def test_banners_name_family_and_version() -> None:
    assert library_of("MPICH Version:\t4.0.2") == ("mpich", "4.0.2")
    assert library_of("Open MPI v5.0.11, package: x") == ("openmpi", "5.0.11")
    assert library_of(INTEL.format("2021.18")) == ("intelmpi", "2021.18")
    assert library_of("MVAPICH2 Version: 2.3") == ("", "")


@pytest.mark.parametrize("version", ["2021.18", "2021.4.0"])
def test_a_launcher_of_intel_mpi_needs_no_compiler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    program = tmp_path / "mpiexec"
    said = f"Intel(R) MPI Library for Linux* OS, Version {version} Build 20260101"
    program.write_text(f"#!/bin/sh\necho '{said}'\n")
    program.chmod(0o700)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}/usr/bin{os.pathsep}/bin")
    assert launcher("intelmpi", version) == str(program)
    with pytest.raises(VendorError, match="not on PATH"):
        launcher("intelmpi", "2021.1")
