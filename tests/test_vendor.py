"""Exported choices of MPI libraries' own algorithms: each file makes the library run them."""

from __future__ import annotations

import json
import re
import subprocess
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from tests.conftest import Require, by_day
from tests.test_export import PROVENANCE
from tests.test_rules import on, point
from tuner.domain.tables import Provenance, Rule, Table
from tuner.export.choices import VendorError, choices_of
from tuner.export.exported import Exported, stated_in
from tuner.export.forms import export
from tuner.export.loaded import DID_NOT, RAN, settings_of
from tuner.export.mpi_library import intel_version, library_of, made_for
from tuner.export.verify import VerifyError, verify_rules, verify_table
from tuner.export.witness import STACKS, Case, Seen, WitnessError, witness
from tuner.machine.mpi import Mpi, find_mpis

PROCS = 4
FIRST, SECOND = 1024, 16384  # bytes at which one algorithm becomes another, and that the first
ATTEMPTS = 4  # on a loaded machine ranks may not be seen at work
SIZES = (1020, 1024, 16380, 16384)  # whole integers, on both sides of each

# Two algorithms of each operation, which any process count and size can run.
ALGORITHMS = {
    "mpich": {
        "bcast": ("binomial", "scatter_ring_allgather"),
        "reduce": ("binomial", "reduce_scatter_gather"),
        "allreduce": ("recursive_doubling", "reduce_scatter_allgather"),
        "allgather": ("brucks", "ring"),
        "allgatherv": ("brucks", "ring"),
        "alltoall": ("scattered", "pairwise"),
        "reduce_scatter_block": ("recursive_halving", "pairwise"),
    },
    "openmpi": {
        "bcast": ("binomial", "pipeline"),
        "reduce": ("binomial", "rabenseifner"),
        "allreduce": ("recursive_doubling", "ring"),
        "allgather": ("bruck", "ring"),
        "allgatherv": ("bruck", "ring"),
        "alltoall": ("modified_bruck", "pairwise"),
        "reduce_scatter_block": ("recursive_doubling", "butterfly"),
    },
}
VARIABLES = {
    "mpich": lambda operation: f"MPIR_CVAR_{operation.upper()}_INTRA_ALGORITHM",
    "openmpi": lambda operation: f"OMPI_MCA_coll_tuned_{operation}_algorithm",
}
FORCING = {
    "mpich": {"MPIR_CVAR_DEVICE_COLLECTIVES": "none"},
    "openmpi": {"OMPI_MCA_coll_tuned_use_dynamic_rules": "1"},
}
BANNERS = {
    "mpich": "MPICH Version:{}",
    "openmpi": "Open MPI v{}, package: Debian OpenMPI, ident: {}",
}


def rule(
    operation: str,
    method: str,
    low: int | None = None,
    high: int | None = None,
    procs: int = PROCS,
    nodes: int = 1,
) -> Rule:
    ppn = procs // nodes
    evidence = on(point(method, operation=operation), nodes, ppn)
    return Rule(
        operation, nodes, nodes, ppn, ppn, None, None, None, None, low, high, method, evidence
    )


def provenance(mpi_library: str) -> Provenance:
    return replace(PROVENANCE, mpi_library=mpi_library)


def table(mpi_library: str, rules: list[Rule]) -> Table:
    return Table(provenance(mpi_library), rules, [])


def table_of(mpi: Mpi) -> Table:
    """Of every operation one algorithm, another, and the first again."""
    rules = []
    for operation, (one, other) in ALGORITHMS[mpi.family].items():
        first, second = f"vendor:algorithm={one}", f"vendor:algorithm={other}"
        rules += [
            rule(operation, first, None, FIRST - 1),
            rule(operation, second, FIRST, SECOND - 1),
            rule(operation, first, SECOND, None),
        ]
    return table(BANNERS[mpi.family].format(mpi.version, mpi.version), rules)


VERSIONS = ("mpich4", "openmpi4", "mpich5", "openmpi5")


@pytest.fixture(params=VERSIONS)
def mpi(request: pytest.FixtureRequest, require: Require) -> Mpi:
    found = {f"{mpi.family}{mpi.major}": mpi for mpi in find_mpis()}
    require(request.param, request.param in found, "this MPI is not installed")
    return found[request.param]


class Ran:
    """The functions of the MPI library seen in calls, by operation and bytes."""

    def __init__(self, seen: Seen) -> None:
        self.ever: dict[Case, set[str]] = defaultdict(set)
        self.mostly: dict[Case, set[str]] = defaultdict(set)
        for key, (words,) in seen.items():
            self.ever[key] = {word.replace("!", "") for word in words}
            self.mostly[key] = {word.replace("!", "") for word in words if "!" in word}

    def add(self, again: Ran) -> None:
        """Another run of the same: a stack is a sample, and may miss what is there."""
        for key in again.ever:
            self.ever[key] |= again.ever[key]
            self.mostly[key] |= again.mostly[key]

    def mark(self, key: Case, other: Ran) -> set[str]:
        """What tells these calls from others: is in most stacks here and in none there."""
        return self.mostly[key] - other.ever[key]


@pytest.fixture
def observe(mpi: Mpi) -> Iterator[Callable[[dict[str, str]], Ran]]:
    """The functions that run in calls of operations at every size, under an environment."""

    def run(
        environment: dict[str, str],
        procs: int = PROCS,
        operations: Iterable[str] = ALGORITHMS[mpi.family],
    ) -> Ran:
        cases = [(operation, size) for operation in operations for size in SIZES]
        return Ran(program.see(STACKS, program.start((1, procs)), cases, environment))

    with witness(mpi) as program:
        yield run


def forced(mpi: Mpi, which: int) -> dict[str, str]:
    """An environment in which every operation runs one algorithm."""
    return FORCING[mpi.family] | {
        VARIABLES[mpi.family](operation): names[which]
        for operation, names in ALGORITHMS[mpi.family].items()
    }


def use(file: Path) -> dict[str, str]:
    """The environment that a file asks for."""
    asked = re.search(r"Use: (.*)", file.read_text())
    assert asked is not None
    settings = [word.partition("=") for word in asked.group(1).split()]
    return {name: value.replace("THIS_FILE", str(file)) for name, _, value in settings}


FILES = {"mpich": ("mpich", "ch4"), "openmpi": ("openmpi",)}


def loading(of: Table, forms: Iterable[str], directory: Path) -> dict[str, str]:
    """The environment in which a library loads the files of a table."""
    environment = {}
    for form in forms:
        file = directory / form
        file.write_text(export(of, form))
        environment |= use(file)
    return environment


def test_the_library_runs_what_the_file_says_at_every_size(
    mpi: Mpi, observe: Callable[[dict[str, str]], Ran], tmp_path: Path
) -> None:
    """Functions that run in the one forced algorithm only tell it from the other."""
    environment = loading(table_of(mpi), FILES[mpi.family], tmp_path)
    wanted = {
        (operation, size): {names[FIRST <= size < SECOND]}
        for operation, names in ALGORITHMS[mpi.family].items()
        for size in SIZES
    }
    one, other = Ran({}), Ran({})
    for _ in range(ATTEMPTS):
        one.add(observe(forced(mpi, 0)))
        other.add(observe(forced(mpi, 1)))
        tuned = observe(environment)
        for key in [*wanted]:
            marks = one.mark(key, other), other.mark(key, one)
            names = ALGORITHMS[mpi.family][key[0]]
            found = {n for n, mark in zip(names, marks, strict=True) if tuned.mostly[key] & mark}
            if found == wanted[key]:
                del wanted[key]
        if not wanted:
            break
    assert not wanted


def wrong(mpi: Mpi, text: str) -> str:
    """The text of a file that has another algorithm for allgather than its comment says."""
    if mpi.family == "mpich":
        comment, tree = text.split(" */\n", 1)
        other = tree.replace("MPIR_Allgather_intra_ring", "MPIR_Allgather_intra_brucks")
        return f"{comment} */\n{other}"
    return re.sub(r"\d+ 0 0 # ring", "1 0 0 # ring", text)


@pytest.mark.check
@pytest.mark.parametrize(
    ("mpi", "misled"),
    by_day(
        [("openmpi4", False), ("openmpi4", True), ("mpich4", False)],
        product(VERSIONS, (False, True)),
    ),
    indirect=["mpi"],
)
def test_the_check_prints_what_runs_under_a_file_and_what_does_not(
    mpi: Mpi, tmp_path: Path, misled: bool
) -> None:
    method = f"vendor:algorithm={ALGORITHMS[mpi.family]['allgather'][1]}"
    rules = [rule("allgather", "vendor", None, 255), rule("allgather", method, 256, 511)]
    of_three = [each._replace(ppn_low=3, ppn_high=3) for each in rules]
    banner = BANNERS[mpi.family].format(mpi.version, mpi.version)
    measured_one = "allgather on 1 x 4, 256 to 511 B: ring: "
    if misled:
        content = wrong(mpi, export(table(banner, rules), mpi.family))
        said = [f"{measured_one}{DID_NOT}: at 256 B "]
    else:
        content = export(table(banner, rules + of_three), mpi.family)
        inferred_one = "allgather on 1 x 3, 256 to 511 B: ring, inferred: "
        said = [f"{inferred_one}{RAN}", f"{measured_one}{RAN}"]
    file = tmp_path / "choices"
    file.write_text(content)
    found = [str(its) for its in verify_rules([file])]
    assert len(found) == len(said)
    assert all(line.startswith(start) for line, start in zip(found, said, strict=True))


def test_files_that_cannot_be_checked_together_are_refused(tmp_path: Path) -> None:
    files = [tmp_path / "one", tmp_path / "other"]
    for version, file in enumerate(files):
        file.write_text(f"# Switchpoint's choices for MPICH 4.9.{version}; no rules\n")
    with pytest.raises(VerifyError, match="different libraries"):
        list(verify_rules(files))
    with pytest.raises(VerifyError, match="states no rules; export it again"):
        list(verify_rules(files[:1]))


def test_other_process_counts_are_the_library_s(
    mpi: Mpi, observe: Callable[..., Ran], tmp_path: Path
) -> None:
    """Three processes lie between the measured counts of one operation, and below another's."""
    measured = {"allgather": (2, 4), "allreduce": (4,)}
    rules = [
        rule(operation, f"vendor:algorithm={ALGORITHMS[mpi.family][operation][1]}", procs=procs)
        for operation, counts in measured.items()
        for procs in counts
    ]
    banner = BANNERS[mpi.family].format(mpi.version, mpi.version)
    environment = loading(table(banner, rules), FILES[mpi.family], tmp_path)
    doubtful = {(operation, size) for operation in measured for size in SIZES}
    plain, one, other = Ran({}), Ran({}), Ran({})
    for _ in range(ATTEMPTS):
        plain.add(observe(FORCING[mpi.family], 3, measured))
        one.add(observe(forced(mpi, 0), 3, measured))
        other.add(observe(forced(mpi, 1), 3, measured))
        tuned = observe(environment, 3, measured)
        for key in [*doubtful]:
            strange = tuned.mostly[key] & other.mark(key, one) - plain.ever[key]
            if tuned.mostly[key] and not strange:
                doubtful.remove(key)
        if not doubtful:
            break
    assert not doubtful


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


def test_a_file_tells_whom_it_is_for_and_where_it_comes_from(mpi: Mpi) -> None:
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
    of = table(BANNERS["openmpi"].format(mpi.version, mpi.version), rules)
    text = export(of, "openmpi")
    assert f"# left out: bcast, {PROCS} processes: adapt is a component, which is used " in text
    assert f"# left out: allreduce, {PROCS} processes: the library has no algorithm none_" in text
    for each in (text, export(of, "han")) if mpi.major > 4 else (text,):
        assert [its.algorithm for its in stated_in(each)] == ["pipeline"]
        assert not re.search("^[^#]*adapt", each, re.MULTILINE)


def test_a_chain_has_the_fan_out_that_it_was_measured_with(require: Require) -> None:
    found = {mpi.family: mpi for mpi in find_mpis()}
    require("openmpi", "openmpi" in found, "no openmpi on the path")
    version = found["openmpi"].version
    rules = [
        rule("bcast", "vendor:algorithm=chain", None, 99),
        rule("bcast", "vendor:algorithm=pipeline", 100, None),
    ]
    text = export(table(BANNERS["openmpi"].format(version, version), rules), "openmpi")
    assert re.findall(r"(\d+) 0 # (chain|pipeline)", text) == [("4", "chain"), ("0", "pipeline")]


@pytest.mark.parametrize(("operation", "warned"), [("allreduce", True), ("bcast", False)])
def test_a_file_of_open_mpi_warns_of_reductions_that_do_not_commute(
    require: Require, operation: str, warned: bool
) -> None:
    found = {mpi.family: mpi for mpi in find_mpis()}
    require("openmpi", "openmpi" in found, "no openmpi on the path")
    version = found["openmpi"].version
    rules = [rule(operation, f"vendor:algorithm={ALGORITHMS['openmpi'][operation][0]}")]
    text = export(table(BANNERS["openmpi"].format(version, version), rules), "openmpi")
    assert ("caution: " in text and "do not commute" in text) == warned


def test_what_the_library_cannot_do_is_left_to_it_and_told(mpi: Mpi) -> None:
    rules = [
        rule("bcast", "vendor:algorithm=binomial", None, 99),
        rule("bcast", "orthogonal:grid=2x2", 100, 199),
        rule("bcast", "vendor:algorithm=no_such", 200, None),
        rule("gather", "vendor:algorithm=binomial", None, 99),
        rule("gather", "vendor", 100, None),
    ]
    banner = BANNERS[mpi.family].format(mpi.version, mpi.version)
    text = export(table(banner, rules), mpi.family)
    told = re.findall(r"left out: (.*)", text)
    assert [re.sub(r"^.*processes: ", "", line)[:40] for line in told] == [
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
    text = export(table(BANNERS[mpi.family].format(mpi.version, mpi.version), rules), mpi.family)
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


def test_mpich_gets_no_algorithm_for_powers_of_two_at_inferred_counts(require: Require) -> None:
    found = {mpi.family: mpi for mpi in find_mpis()}
    require("mpich", "mpich" in found, "no mpich on the path")
    name = "recursive_doubling"
    rules = [
        rule("allgather", f"vendor:algorithm={name}", procs=4),
        inferred("allgather", name, (5, 7)),
        inferred("allgather", name, (16, 16)),
    ]
    text = export(table(BANNERS["mpich"].format(found["mpich"].version), rules), "mpich")
    assert [(its.ppn, its.inferred) for its in stated_in(text)] == [(4, False), (16, True)]


def test_what_mpich_does_not_compose_needs_no_second_file(require: Require) -> None:
    found = {mpi.family: mpi for mpi in find_mpis()}
    require("mpich", "mpich" in found, "no mpich on the path")
    banner = BANNERS["mpich"].format(found["mpich"].version)
    other = rule("allgather", "vendor:algorithm=ring")
    with pytest.raises(VendorError, match="MPICH composes no operation"):
        export(table(banner, [other]), "ch4")
    both = table(banner, [rule("bcast", "vendor:algorithm=binomial"), other])
    assert "Of bcast it needs the file of `switchpoint export --format ch4`" in export(
        both, "mpich"
    )
    assert [its.operation for its in stated_in(export(both, "ch4"))] == ["bcast"]


def test_mpich_5_gets_no_rule_that_it_would_take_for_parts_of_operations(require: Require) -> None:
    found = {f"{mpi.family}{mpi.major}": mpi for mpi in find_mpis()}
    for name, rules in (("mpich4", 2), ("mpich5", 1)):
        require(name, name in found, "this MPI is not installed")
        apart = [rule(each, "vendor:algorithm=nb", nodes=PROCS) for each in ("bcast", "alltoall")]
        text = export(table(BANNERS["mpich"].format(found[name].version), apart), "mpich")
        assert len(stated_in(text)) == rules
        assert ("bcast, 4 processes: with one process on each node" in text) == (rules == 1)


def test_what_no_launch_proved_is_not_exported() -> None:
    proved = rule("bcast", "vendor:algorithm=binomial", None, 99)
    choices = choices_of(table("x", [proved, rule("bcast", "vendor:environment=ring", 100, None)]))
    (counts,) = choices.counts["bcast"]
    assert [interval.algorithm for interval in counts.intervals] == ["binomial", None]
    assert choices.left_out == [
        "bcast, 4 processes: 100 to any B: vendor:environment=ring: no launch proved that the "
        "library obeys it"
    ]
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
    (told,) = choices.left_out
    assert "2 x 2: the library does not distinguish layouts" in told


SELECTION = (
    b'{"collective=bcast": {"comm_type=intra": {"algorithm=MPIR_Bcast_intra_binomial": {}}}}'
)


@pytest.mark.parametrize(
    ("wrapper", "content", "words"),
    [
        ("exit 1", b"", "mpicc -show failed"),
        ("exec sleep 60", b"", "cannot run .*mpicc -show: .*timed out"),
        ("echo -L{place} -lmpich", SELECTION[:-3] + bytes(4096), "cannot read its selection"),
        ("echo -L{place} -lmpich", bytes(5000), "contains no selection"),
        (
            "echo -L{place} -lmpich",
            b"algorithm=MPIR_Bcast_intra_binomial\0" + SELECTION + bytes(4096),
            "its selection has no reduce",
        ),
    ],
)
def test_a_library_whose_selection_cannot_be_had_is_told(
    wrapper: str, content: bytes, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "libmpich.so").write_bytes(content)
    mpicc = tmp_path / "mpicc"
    mpicc.write_text(f"#!/bin/sh\n{wrapper.format(place=tmp_path)}\n")
    mpicc.chmod(0o755)
    here = Mpi("mpich", "mpich", "4.9.9", str(mpicc), "mpiexec")
    monkeypatch.setattr("tuner.export.mpi_library.find_mpis", lambda: [here])
    if "sleep" in wrapper:
        monkeypatch.setattr("tuner.export.mpi_library._TIMEOUT_S", 0.5)
    with pytest.raises(VendorError, match=words):
        export(table("MPICH Version:4.9.9", [rule("reduce", "vendor:algorithm=binomial")]), "mpich")


INTEL = "Intel(R) MPI Library {} for Linux* OS"
PRESETS = {
    "bcast": ("1", "2"),
    "reduce": ("1", "2"),
    "allreduce": ("1", "2"),
    "allgather": ("1", "3"),
    "allgatherv": ("1", "3"),
    "alltoall": ("1", "2"),
    "reduce_scatter_block": ("1", "3"),
}


def intel_rules(operation: str, one: str, other: str) -> list[Rule]:
    first, second = f"vendor:algorithm={one}", f"vendor:algorithm={other}"
    return [
        rule(operation, first, None, FIRST - 1),
        rule(operation, second, FIRST, SECOND - 1),
        rule(operation, first, SECOND, None),
    ]


def test_intel_mpi_runs_what_the_settings_say_at_every_size(
    tmp_path: Path, require: Require
) -> None:
    intel = next((mpi for mpi in find_mpis() if mpi.family == "intelmpi"), None)
    require("intelmpi", intel is not None, "this MPI is not installed")
    assert intel is not None
    version = intel_version(intel.mpiexec)
    rules = [line for operation, two in PRESETS.items() for line in intel_rules(operation, *two)]
    file = tmp_path / "settings.sh"
    file.write_text(export(table(INTEL.format(version), rules), "intelmpi"))
    wanted = {
        (operation, size): {two[FIRST <= size < SECOND]}
        for operation, two in PRESETS.items()
        for size in SIZES
    }
    settings = subprocess.run(
        ["sh", "-c", f"SWITCHPOINT_PROCS={PROCS}; . {file}; env"], capture_output=True, text=True
    ).stdout
    of_file = dict(re.findall(r"(I_MPI_ADJUST\w+)=(.*)", settings))

    def force(which: int) -> dict[str, str]:
        return {f"I_MPI_ADJUST_{name.upper()}": two[which] for name, two in PRESETS.items()}

    found: dict[Case, set[str]] = {key: set() for key in wanted}
    with witness(intel) as program:
        start = program.start((1, PROCS))
        for _ in range(ATTEMPTS):
            one, other, tuned = (
                Ran(program.see(STACKS, start, wanted, settings))
                for settings in (force(0), force(1), of_file)
            )
            for key, seen in found.items():
                marks = one.mark(key, other), other.mark(key, one)
                pairs = zip(PRESETS[key[0]], marks, strict=True)
                seen |= {name for name, mark in pairs if tuned.mostly[key] & mark}
            if all(found.values()):
                break
    assert found == wanted


def test_settings_of_intel_mpi_are_presets_at_sizes_for_jobs_of_one_process_count() -> None:
    rules = [
        *intel_rules("bcast", "2", "7"),
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
        '  export I_MPI_ADJUST_BCAST="9:0-2147483647"',
        "  ;;",
        "esac",
    ]


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
    with pytest.raises(VendorError, match=r"Intel MPI 2021\.1, .*not on PATH"):
        verify_table(file)
    with pytest.raises(VendorError, match="is not supported"):
        export(table(INTEL.format("2019"), rules), "intelmpi")


def test_banners_name_family_and_version() -> None:
    assert library_of("MPICH Version:\t4.0.2") == ("mpich", "4.0.2")
    assert library_of("Open MPI v5.0.11, package: x") == ("openmpi", "5.0.11")
    assert library_of(INTEL.format("2021.18")) == ("intelmpi", "2021.18")
    assert library_of("MVAPICH2 Version: 2.3") == ("", "")


def test_a_file_runs_no_code_and_sets_only_what_loads_it(tmp_path: Path) -> None:
    file = tmp_path / "rules"
    hostile = (
        "# Use: LD_PRELOAD=THIS_FILE OMPI_MCA_mca_base_component_path=x OMPI_MCA_coll_a=THIS_FILE"
    )
    assert settings_of(file, hostile, "openmpi", 4) == {"OMPI_MCA_coll_a": str(file)}
    preset = '  export I_MPI_ADJUST_BCAST="3:0-9"'
    text = f'touch {tmp_path}/made\n4)\n  export PATH="x"\n{preset}\n  ;;\n8)\n  ;;\n'
    assert settings_of(file, text, "intelmpi", 4) == {"I_MPI_ADJUST_BCAST": "3:0-9"}
    assert settings_of(file, text, "intelmpi", 8) == settings_of(file, text, "intelmpi", 2) == {}
    assert [*tmp_path.iterdir()] == []


def test_without_a_checkout_it_is_said_where_rules_are_checked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tuner.export.witness.is_checkout", lambda: False)
    with pytest.raises(WitnessError, match="check there"), witness(find_mpis()[0]):
        pass
