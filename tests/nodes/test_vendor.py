"""MPI libraries' own algorithms on nodes: the messages that they send, or bytes of the cards."""

import json
import os
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import by_day
from tests.kernels.benchrun import SWPBENCH
from tests.kernels.conftest import Kernels, finish
from tests.processes import TIMEOUT_S
from tests.vendor.tables import INTEL, loading, rule, table, table_for
from tuner.domain.tables import Rule
from tuner.export.forms import export
from tuner.export.witness import CARDS, MESSAGES, SizedCall, Witness, witness
from tuner.machine.mpi import Mpi, preload_library
from tuner.machine.nodes.launch import launch
from tuner.machine.nodes.namespaces import Nodes

pytestmark = pytest.mark.check

PROCS = 8
UNEVEN = (3, 5)
LAYOUTS: tuple[int | tuple[int, ...], ...] = (8, 2, UNEVEN)  # ranks of each node, or of all nodes
FROM = 32768  # the bytes from which the rules have an algorithm
SIZES = (1024, 65536)
CARD_SIZES = (16384, 65536)  # beside which acknowledgements are little

WHOLE = ("gather", "scatter", "alltoallv", "barrier")  # rules for all sizes only
IN_ORDER = ("alltoall", "alltoallv")  # algorithms send the same messages to others in another order

# None is the default at the large size on any layout, of those for all sizes at the one or other.
CHOSEN = {"bcast": "pipeline", "reduce": "in-order_binary", "allreduce": "ring"}
CHOSEN |= {"allgather": "bruck", "gather": "linear_sync", "scatter": "binomial"}
CHOSEN |= {"alltoall": "modified_bruck", "allgatherv": "neighbor", "barrier": "double_ring"}
CHOSEN |= {"reduce_scatter_block": "butterfly", "alltoallv": "pairwise"}
OTHER = {"bcast": "chain", "reduce": "pipeline", "allreduce": "nonoverlapping"}
OTHER |= {"allgather": "neighbor", "gather": "basic_linear", "scatter": "linear_nb"}
OTHER |= {"alltoall": "pairwise", "allgatherv": "ring", "barrier": "tree"}
OTHER |= {"reduce_scatter_block": "basic_linear"}

Sent = dict[SizedCall, set[str]]


@pytest.fixture
def program(mpi: Mpi) -> Iterator[Witness]:
    with witness(mpi) as program:
        yield program


@pytest.fixture
def send(nodes: Nodes, mpi: Mpi, program: Witness) -> Callable[..., Sent]:
    """Return a function that returns the messages of all operations under an environment."""

    def run(
        ppn: int | tuple[int, ...],
        environment: Mapping[str, str],
        preload: str = "",
        operations: Iterable[str] = CHOSEN,
    ) -> Sent:
        start = launch(nodes, mpi, PROCS, ppn)
        if preload:
            start = replace(start, argv_prefix=[*start.argv_prefix, "-x", f"LD_PRELOAD={preload}"])
        seen = program.see(MESSAGES, start, [*product(operations, SIZES)], environment)
        return {
            case: {word for word in words if case[0] in IN_ORDER or ">:" not in word}
            for case, (words,) in seen.items()
        }

    return run


MPICH_CHOSEN = {"bcast": "scatter_ring_allgather", "reduce": "binomial", "alltoall": "brucks"}
MPICH_CHOSEN |= {"allreduce": "recursive_doubling", "allgather": "brucks", "allgatherv": "brucks"}
MPICH_CHOSEN |= {"reduce_scatter_block": "recursive_doubling"}  # of others there is but one
MPICH_CHOSEN |= {"barrier": "nb"}  # that versions 4 and 5 have, and that is not composed
COMPOSED = ("bcast", "reduce", "allreduce", "barrier")  # of others, on several nodes
# Presets below and from the bytes at which the rules change, or the other way round where the
# second is the library's own, which depends on the processor. Those of gather, scatter and
# alltoallv let the cards of two nodes send the same, and a barrier sends too little.
INTEL_CHOSEN = {"bcast": ("1", "3"), "reduce": ("1", "5"), "alltoall": ("2", "1")}
INTEL_CHOSEN |= {"allreduce": ("1", "4"), "allgather": ("2", "3"), "allgatherv": ("2", "3")}
INTEL_CHOSEN |= {"reduce_scatter_block": ("1", "3")}
TOLERANCE = 0.05  # of the most that a card sends: acknowledgements
FRAMES_BYTES = 2000  # so many may always be more

Cards = dict[SizedCall, list[int]]


@pytest.fixture
def cards(nodes: Nodes, mpi: Mpi, program: Witness) -> Callable[..., Cards]:
    """Return a function that returns the bytes that the ranks' cards send in operations."""

    def run(
        ppn: int | tuple[int, ...],
        operations: Iterable[str],
        environment: Mapping[str, str],
        sizes: Iterable[int] = CARD_SIZES,
        procs: int = PROCS,
    ) -> Cards:
        start = launch(nodes, mpi, procs, ppn, program.place)
        seen = program.see(CARDS, start, [*product(operations, sizes)], environment)
        return {case: card_bytes(words) for case, (words,) in seen.items()}

    return run


def rules_of(algorithms: Mapping[str, str]) -> Iterator[Rule]:
    """Yield a rule for each operation, from FROM bytes where they can depend on the size."""
    for operation, name in algorithms.items():
        if operation not in WHOLE:
            yield rule(operation, "vendor", None, FROM - 1, PROCS)
        low = None if operation in WHOLE else FROM
        yield rule(operation, f"vendor:algorithm={name}", low, None, PROCS)


def card_bytes(words: Iterable[str]) -> list[int]:
    sent = dict(word.split(":") for word in words)
    return [int(sent[str(rank)]) for rank in range(len(sent))]


def about(sent_bytes: list[int]) -> object:
    return pytest.approx(sent_bytes, abs=max(FRAMES_BYTES, TOLERANCE * max(sent_bytes)))


@pytest.mark.parametrize(
    ("mpi", "ppn"),
    by_day([("mpich4", 2), ("mpich5", UNEVEN)], product(("mpich4", "mpich5"), (2, UNEVEN))),
    indirect=["mpi"],
)
def test_exported_selections_make_mpich_run_the_algorithms(
    mpi: Mpi, cards: Callable[..., Cards], tmp_path: Path, ppn: int | tuple[int, ...]
) -> None:
    """MPICH composes some operations of others, but for the algorithms of both files."""
    of = table_for(mpi, [*rules_of(MPICH_CHOSEN)])
    named = {f"MPIR_CVAR_{each.upper()}_INTRA_ALGORITHM": n for each, n in MPICH_CHOSEN.items()}
    default, tuned, alone, forced = (
        cards(ppn, MPICH_CHOSEN, environment)
        for environment in (
            {},
            loading(of, ("mpich", "ch4"), tmp_path),
            loading(of, ("mpich",), tmp_path),
            named | {"MPIR_CVAR_DEVICE_COLLECTIVES": "none"},
        )
    )
    for operation, size in default:
        key = operation, size
        if size < FROM and operation not in WHOLE:
            assert tuned[key] == about(default[key]), key
        else:
            assert forced[key] != about(default[key]), key
            assert tuned[key] == about(forced[key]), key
            assert alone[key] == about((default if operation in COMPOSED else forced)[key]), key


@pytest.mark.parametrize("mpi", by_day(["mpich4"], ["mpich5"]), indirect=True)
def test_mpich_goes_on_with_its_default_above_the_rules(
    mpi: Mpi, cards: Callable[..., Cards], tmp_path: Path
) -> None:
    """On eight processes, which it takes for less than eight where sizes are compared first."""
    chosen = rule("bcast", "vendor:algorithm=scatter_ring_allgather", None, FROM - 1, PROCS)
    of = table_for(mpi, [chosen])
    sizes = (CARD_SIZES[0], 1 << 20)
    default, tuned = (
        cards(2, ["bcast"], environment, sizes)
        for environment in ({}, loading(of, ("mpich", "ch4"), tmp_path))
    )
    small, large = (("bcast", size) for size in sizes)
    assert tuned[small] != about(default[small])
    assert tuned[large] == about(default[large])


@pytest.mark.parametrize("mpi", by_day(["mpich4"], ["mpich5"]), indirect=True)
def test_parts_of_what_mpich_composes_are_its_own(
    mpi: Mpi, cards: Callable[..., Cards], tmp_path: Path
) -> None:
    """That of eight processes on four nodes has a part of four, as many as the rule is for."""
    chosen = rule("bcast", "vendor:algorithm=scatter_ring_allgather", procs=4, nodes=2)
    of = table_for(mpi, [chosen])
    loaded = loading(of, ("mpich", "ch4"), tmp_path)
    key = "bcast", CARD_SIZES[-1]
    for procs, is_ruled in ((4, True), (8, False)):
        default, tuned = (
            cards(2, ["bcast"], environment, CARD_SIZES[-1:], procs)[key]
            for environment in ({}, loaded)
        )
        assert (tuned == about(default)) != is_ruled, procs


@pytest.mark.parametrize(
    ("mpi", "ppn"), by_day([("intelmpi2021", UNEVEN)], [("intelmpi2021", 2)]), indirect=["mpi"]
)
def test_exported_settings_make_intel_mpi_run_the_presets(
    mpi: Mpi, cards: Callable[..., Cards], tmp_path: Path, ppn: int | tuple[int, ...]
) -> None:
    default, *forced = (
        cards(ppn, INTEL_CHOSEN, environment)
        for environment in (
            {},
            *(
                {f"I_MPI_ADJUST_{each.upper()}": two[which] for each, two in INTEL_CHOSEN.items()}
                for which in (0, 1)
            ),
        )
    )
    rules, wanted = [], dict(default)
    for operation, two in INTEL_CHOSEN.items():
        keys = [key for key in default if key[0] == operation]
        large = [key for key in keys if key[1] >= FROM]
        other = next(n for n in (1, 0) if all(forced[n][k] != about(default[k]) for k in large))
        assert all(forced[0][key] != about(forced[1][key]) for key in large), operation
        rules.append(rule(operation, f"vendor:environment={two[1 - other]}", None, FROM - 1, PROCS))
        rules.append(rule(operation, f"vendor:environment={two[other]}", FROM, None, PROCS))
        wanted |= {key: forced[other if key in large else 1 - other][key] for key in keys}
    file = tmp_path / "settings.sh"
    file.write_text(export(table(INTEL.format(mpi.version), rules), "intelmpi"))
    command = ["sh", "-c", f"SWITCHPOINT_PROCS={PROCS}; . {file}; env -0"]
    settings = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    chosen = dict(each.split("=", 1) for each in settings.rstrip("\0").split("\0"))
    chosen = {name: value for name, value in chosen.items() if name.startswith("I_MPI_ADJUST_")}
    tuned = cards(ppn, INTEL_CHOSEN, chosen)
    for key, sent in wanted.items():
        assert tuned[key] == about(sent), key


STARTED = {"OMPI_MCA_coll_tuned_use_dynamic_rules": "1"}  # version 4 has names only with it


def forced(algorithms: Mapping[str, str]) -> dict[str, str]:
    named = {f"OMPI_MCA_coll_tuned_{each}_algorithm": name for each, name in algorithms.items()}
    return named | {"OMPI_MCA_coll_han_priority": "0"} | STARTED


def exported(mpi: Mpi, algorithms: Mapping[str, str], directory: Path) -> dict[str, str]:
    """Return what makes the library load files with a rule for each operation, from FROM bytes."""
    of = table_for(mpi, [*rules_of(algorithms)])
    return loading(of, ("openmpi", "han")[: 1 + (mpi.major > 4)], directory)


VERSIONS = ("openmpi4", "openmpi5")
BY_DAY = [("openmpi4", UNEVEN), *product(["openmpi5"], LAYOUTS)]


@pytest.mark.parametrize(
    ("mpi", "ppn", "algorithms"),
    by_day([(*case, CHOSEN) for case in BY_DAY], product(VERSIONS, LAYOUTS, [CHOSEN, OTHER])),
    indirect=["mpi"],
)
def test_exported_rules_make_the_library_run_the_algorithms(
    mpi: Mpi,
    send: Callable[..., Sent],
    tmp_path: Path,
    ppn: int | tuple[int, ...],
    algorithms: dict[str, str],
) -> None:
    environment = exported(mpi, algorithms, tmp_path)
    default, alone, tuned = send(ppn, {}), send(ppn, forced(algorithms)), send(ppn, environment)
    differing = set()
    for operation, size in default:
        key, is_ruled = (operation, size), size >= FROM or operation in WHOLE
        wanted = alone if is_ruled and operation in algorithms else default
        assert tuned[key] == wanted[key], key
        if is_ruled and default[key] != alone[key]:
            differing.add(operation)
    assert differing == algorithms.keys()


BY_HAN = ("bcast", "reduce", "allreduce", "allgather", "gather", "scatter", "barrier")
RULED = {"bcast": "pipeline", "allreduce": "ring"}


@pytest.mark.parametrize(
    ("mpi", "ppn"),
    by_day([("openmpi4", 2), ("openmpi5", 2)], [("openmpi5", UNEVEN)]),
    indirect=["mpi"],
)
def test_another_component_runs_only_where_a_rule_is_exported(
    mpi: Mpi, send: Callable[..., Sent], tmp_path: Path, ppn: int | tuple[int, ...]
) -> None:
    """The default is `han` in version 5, and `tuned` in version 4; rules are read by `tuned`."""
    default, tuned, han, named, loaded = (
        send(ppn, environment, operations=BY_HAN)
        for environment in (
            {},
            {"OMPI_MCA_coll_han_priority": "0"},
            {"OMPI_MCA_coll_han_priority": "100"},
            forced(RULED),
            exported(mpi, RULED, tmp_path),
        )
    )
    assert default == (han if mpi.major > 4 else tuned)
    for operation, size in default:
        key = operation, size
        assert han[key] != tuned[key], key
        if size >= FROM and operation in RULED:
            assert loaded[key] == named[key], key
            assert loaded[key] not in (han[key], tuned[key]), key
        else:
            assert loaded[key] == default[key], key


# Of names of vendor:environment=: what kernels/tests/swp_environment.c expects of one operation.
HAN_PARTS = {"han": {}, "han-sm": {"low_module": "1"}, "han-adapt": {"up_module": "1"}}
HAN_PARTS |= {"han-4096": {"segsize": "4096"}}
HAN_PARTS |= {"han-sm-adapt-4096": {"low_module": "1", "up_module": "1", "segsize": "4096"}}


@pytest.mark.parametrize("mpi", by_day(["openmpi4"], ["openmpi5"]), indirect=True)
def test_han_moves_other_messages_by_each_of_its_parts(mpi: Mpi, send: Callable[..., Sent]) -> None:
    operations = ("bcast", "reduce", "allreduce")
    before_all = {"OMPI_MCA_coll_han_priority": "99"}
    seen = []
    for parts in HAN_PARTS.values():
        named = product(operations, parts.items())
        variables = {f"OMPI_MCA_coll_han_{each}_{part}": value for each, (part, value) in named}
        seen.append(send(2, before_all | variables, operations=operations))
    for operation in operations:
        key = operation, SIZES[-1]
        assert len({frozenset(each[key]) for each in seen}) == len(HAN_PARTS), key


@pytest.mark.parametrize(
    ("mpi", "ppn"), by_day(BY_DAY, product(VERSIONS, LAYOUTS)), indirect=["mpi"]
)
def test_named_algorithms_run_before_components_of_higher_priority(
    mpi: Mpi,
    send: Callable[..., Sent],
    kernels_of: Callable[[str], Kernels],
    tmp_path: Path,
    ppn: int | tuple[int, ...],
) -> None:
    """The preload calls the plans of a table's methods."""
    file = tmp_path / "named.table"
    rules = [f"rule op={each} method=vendor:algorithm={name}" for each, name in CHOSEN.items()]
    file.write_text("\n".join(["switchpoint-table 1", *rules, ""]))
    library = preload_library(kernels_of(mpi.name).build)
    environment = {"SWITCHPOINT_TABLE": str(file)} | STARTED
    named = send(ppn, environment, str(library))
    wanted = send(ppn, forced(CHOSEN))
    # The preload plans those only where counts are promised to stay.
    planned = [key for key in wanted if key[0] not in ("allgatherv", "alltoallv")]
    assert [named[key] for key in planned] == [wanted[key] for key in planned]


@pytest.fixture
def raced(
    nodes: Nodes, mpi: Mpi, kernels_of: Callable[[str], Kernels], tmp_path: Path
) -> Callable[..., list[dict[str, Any]]]:
    """Return a function that races the library's algorithms of an operation at one size.

    It returns the records of the raw file.
    """

    def race(
        operation: str, size: str, ppn: int | tuple[int, ...], environment: Mapping[str, str]
    ) -> list[dict[str, Any]]:
        kernels, out = kernels_of(mpi.name), tmp_path / "raw.jsonl"
        start = launch(nodes, mpi, PROCS, ppn)
        command = [str(kernels.build / SWPBENCH), "run", "--op", operation, "--pattern", "blocks"]
        command += ["--methods", "vendor", "--sizes", size, "--max-samples", "2", "--out", str(out)]
        settings = os.environ | start.env | environment
        done = finish([*start.argv_prefix, *command], settings, TIMEOUT_S)
        assert done.returncode == 0, done.stderr[-2000:]
        return [json.loads(line) for line in out.read_text().splitlines()]

    return race


@pytest.mark.parametrize(
    ("mpi", "ppn"), by_day(BY_DAY, product(VERSIONS, LAYOUTS)), indirect=["mpi"]
)
def test_names_that_send_other_messages_are_raced(
    raced: Callable[..., list[dict[str, Any]]], ppn: int | tuple[int, ...]
) -> None:
    records = raced("bcast", "64K", ppn, {})
    found = {record["method"] for record in records if record["record"] == "case"}
    names = ("basic_linear", "pipeline", "scatter_allgather_ring")
    assert found >= {"vendor", *(f"vendor:algorithm={name}" for name in names)}


@pytest.mark.parametrize("mpi", ["openmpi5"], indirect=True)
def test_names_under_which_the_same_runs_are_not_raced(
    raced: Callable[..., list[dict[str, Any]]],
) -> None:
    """A two-level algorithm, where ranks wait in different places from call to call."""
    records = raced("allreduce", "16K", 2, {"OMPI_MCA_coll_han_priority": "100"})
    assert {record["method"] for record in records if record["record"] == "case"} == {"vendor"}
    reasons = [skip["reason"] for skip in records[-1]["skipped"]]
    assert len(reasons) > 3
    assert all("not observed to change" in reason for reason in reasons)
