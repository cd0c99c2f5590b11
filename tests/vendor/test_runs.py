"""Each exported file makes the library run the algorithms that it names."""

from __future__ import annotations

import re
import subprocess
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from itertools import product
from pathlib import Path

import pytest

from tests.conftest import Require, by_day
from tests.vendor.conftest import VERSIONS, installed
from tests.vendor.tables import (
    ALGORITHMS,
    ATTEMPTS,
    FILES,
    FIRST,
    INTEL,
    PROCS,
    SECOND,
    in_turn,
    loading,
    rule,
    table,
    table_for,
    table_of,
)
from tuner.export import verify
from tuner.export.forms import export
from tuner.export.loaded import DID_NOT, RAN, settings_of
from tuner.export.verify import VerifyError, verify_rules
from tuner.export.witness import STACKS, Seen, SizedCall, Witness, WitnessError, _monitored, witness
from tuner.machine.mpi import LaunchCommand, Mpi, find_mpis

SIZES = (1020, 1024, 16380, 16384)  # whole integers, on both sides of each
VARIABLES = {
    "mpich": lambda operation: f"MPIR_CVAR_{operation.upper()}_INTRA_ALGORITHM",
    "openmpi": lambda operation: f"OMPI_MCA_coll_tuned_{operation}_algorithm",
}
FORCING = {
    "mpich": {"MPIR_CVAR_DEVICE_COLLECTIVES": "none"},
    "openmpi": {"OMPI_MCA_coll_tuned_use_dynamic_rules": "1"},
}


class Ran:
    """The functions of the MPI library seen in calls, by operation and bytes."""

    def __init__(self, seen: Seen) -> None:
        self.ever: dict[SizedCall, set[str]] = defaultdict(set)
        self.mostly: dict[SizedCall, set[str]] = defaultdict(set)
        for key, (words,) in seen.items():
            self.ever[key] = {word.replace("!", "") for word in words}
            self.mostly[key] = {word.replace("!", "") for word in words if "!" in word}

    def add(self, again: Ran) -> None:
        """Add another run of the same: a stack is a sample, and may miss what is there."""
        for key in again.ever:
            self.ever[key] |= again.ever[key]
            self.mostly[key] |= again.mostly[key]

    def mark(self, key: SizedCall, other: Ran) -> set[str]:
        """Return what is in most stacks of these calls and in none of the others."""
        return self.mostly[key] - other.ever[key]


@pytest.fixture
def observe(mpi: Mpi) -> Iterator[Callable[[dict[str, str]], Ran]]:
    """Yield what runs in calls of operations at every size, under an environment."""

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
    """Return an environment in which every operation runs one algorithm."""
    return FORCING[mpi.family] | {
        VARIABLES[mpi.family](operation): names[which]
        for operation, names in ALGORITHMS[mpi.family].items()
    }


@pytest.mark.check
def test_the_library_runs_what_the_file_says_at_every_size(
    mpi: Mpi, observe: Callable[[dict[str, str]], Ran], tmp_path: Path
) -> None:
    """Functions that run in only one forced algorithm distinguish it from the other."""
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


@pytest.mark.parametrize("mpi", by_day(["mpich4"], ["mpich5"]), indirect=True)
def test_mpich_runs_the_barrier_of_both_files(
    mpi: Mpi, observe: Callable[..., Ran], tmp_path: Path
) -> None:
    """It composes its own, also with the first file alone."""
    of = table_for(mpi, [rule("barrier", "vendor:algorithm=nb")])
    loaded, alone = (loading(of, FILES["mpich"][:count], tmp_path) for count in (2, 1))
    named = FORCING["mpich"] | {VARIABLES["mpich"]("barrier"): "nb"}
    key = "barrier", SIZES[0]
    own, forced = Ran({}), Ran({})
    for _ in range(ATTEMPTS):
        for environment in ({}, alone):
            own.add(observe(environment, operations=["barrier"]))
        forced.add(observe(named, operations=["barrier"]))
        if observe(loaded, operations=["barrier"]).mostly[key] & forced.mark(key, own):
            return
    pytest.fail("no function that only the named algorithm runs")


def wrong(mpi: Mpi, text: str) -> str:
    """Return a file's text that has another algorithm for allgather than its comment says."""
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
    measured_one = "allgather on 1 x 4, 256 to 511 B: ring: "
    if misled:
        content = wrong(mpi, export(table_for(mpi, rules), mpi.family))
        said = [f"{measured_one}{DID_NOT}: at 256 B "]
    else:
        content = export(table_for(mpi, rules + of_three), mpi.family)
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
    with pytest.raises(VerifyError, match="one: all rules of the table are left out"):
        list(verify_rules(files[:1]))


def test_files_that_never_end_or_are_too_long_are_refused(tmp_path: Path, monkeypatch) -> None:
    file = tmp_path / "file"
    file.write_text("# Switchpoint's choices for MPICH 4.9.1\n" + " " * 100)
    monkeypatch.setattr(verify, "_MOST_BYTES", 100)
    with pytest.raises(VerifyError, match="over 0 MiB; no export is so long"):
        list(verify_rules([file]))


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
    environment = loading(table_for(mpi, rules), FILES[mpi.family], tmp_path)
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


PRESETS = {
    "bcast": ("1", "2"),
    "reduce": ("1", "2"),
    "allreduce": ("1", "2"),
    "allgather": ("1", "3"),
    "allgatherv": ("1", "3"),
    "alltoall": ("1", "2"),
    "reduce_scatter_block": ("1", "3"),
}


def test_intel_mpi_runs_what_the_settings_say_at_every_size(
    tmp_path: Path, require: Require
) -> None:
    intel = installed("intelmpi", require)
    version = intel.version
    rules = [line for operation, two in PRESETS.items() for line in in_turn(operation, *two)]
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

    found: dict[SizedCall, set[str]] = {key: set() for key in wanted}
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


def test_what_a_library_prints_itself_is_not_taken_for_what_is_seen(tmp_path: Path) -> None:
    program = tmp_path / "witness"
    program.write_text("#!/bin/sh\necho '[0] MPI startup(): Intel'\necho\necho 'bcast 8 0>1:1:8'\n")
    program.chmod(0o755)
    started = Witness(find_mpis()[0], tmp_path)
    assert started.see(STACKS, LaunchCommand([]), [("bcast", 8)], {}) == {
        ("bcast", 8): [frozenset({"0>1:1:8"})]
    }
    with pytest.raises(WitnessError, match="printed nothing of reduce 8"):
        started.see(STACKS, LaunchCommand([]), [("bcast", 8), ("reduce", 8)], {})


def test_without_a_checkout_it_is_said_where_rules_are_checked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tuner.export.witness.is_checkout", lambda: False)
    with pytest.raises(WitnessError, match="check there"), witness(find_mpis()[0]):
        pass


def test_the_module_that_counts_messages_is_named_beside_the_other_alone() -> None:
    words = ["mpiexec", "--mca", "pml", "ob1", "-x", "LD_PRELOAD=/job1/a.so"]
    monitored = _monitored(LaunchCommand(words)).argv_prefix
    assert monitored == [*words[:3], "ob1,monitoring", *words[4:]]
