"""MPI libraries' own algorithms on nodes: the messages that they send, or bytes of the cards."""

import json
import os
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

import pytest

from tests.conftest import Require, by_day
from tests.kernels.benchrun import SWPBENCH
from tests.kernels.conftest import TIMEOUT_S, Kernels, finish
from tests.test_vendor import BANNERS, rule, table, use
from tuner.export.forms import export
from tuner.export.witness import CARDS, witness
from tuner.machine.mpi import Mpi, find_mpis, shim
from tuner.machine.nodes.launch import launch
from tuner.machine.nodes.namespaces import Nodes

pytestmark = pytest.mark.check

PROCS = 8
LAYOUTS = (8, 2, 5)  # ranks on the first nodes: one node, 4 x 2, 5 + 3
SMALL, LARGE = 1024, 65536  # bytes
FROM = 16384  # the bytes from which the rules have an algorithm

WHOLE = ("gather", "scatter")  # rules for all sizes only; one is the default on a node

CHOSEN = {"bcast": "pipeline", "reduce": "in-order_binary", "allreduce": "ring"}
CHOSEN |= {"allgather": "bruck", "gather": "linear_sync", "scatter": "binomial"}
OTHER = {"bcast": "chain", "reduce": "pipeline", "allreduce": "nonoverlapping"}
OTHER |= {"allgather": "neighbor", "gather": "binomial", "scatter": "linear_nb"}

Sent = dict[tuple[str, int], tuple[str, ...]]


@pytest.fixture
def mpi(require: Require) -> Mpi:
    found = [mpi for mpi in find_mpis() if (mpi.family, mpi.major) == ("openmpi", 5)]
    require("openmpi5", bool(found), "this MPI is not installed")
    return found[0]


@pytest.fixture
def send(nodes: Nodes, mpi: Mpi) -> Iterator[Callable[..., Sent]]:
    """Return a function that returns the messages of all operations under an environment."""
    cases = [f"{operation}:{size}" for operation in CHOSEN for size in (SMALL, LARGE)]

    def run(ppn: int, environment: Mapping[str, str], preload: str = "") -> Sent:
        start = launch(nodes, mpi, PROCS, ppn)
        counting = [word.replace("ob1", "ob1,monitoring") for word in start.argv_prefix]
        counting += ["-x", f"LD_PRELOAD={preload}"] if preload else []
        done = subprocess.run(
            [*counting, program.place / "witness", "messages", *cases],
            env=os.environ | start.env | {"OMPI_MCA_pml_monitoring_enable": "1"} | environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
        )
        assert done.returncode == 0, done.stderr[-2000:]
        lines = [line.split() for line in done.stdout.splitlines()]
        return {(operation, int(size)): tuple(pairs) for operation, size, *pairs in lines}

    with witness(mpi) as program:
        yield run


MPICH_CHOSEN = {"bcast": "scatter_ring_allgather", "reduce": "binomial", "alltoall": "brucks"}
MPICH_CHOSEN |= {"allreduce": "recursive_doubling", "allgather": "brucks"}
COMPOSED = ("bcast", "reduce", "allreduce")  # of others, on several nodes
TOLERANCE = 0.05  # of the most that a card sends: acknowledgements


@pytest.mark.parametrize("name", ["mpich", "mpich5"])
def test_exported_selections_make_mpich_run_the_algorithms(
    nodes: Nodes, require: Require, tmp_path: Path, name: str
) -> None:
    """With the variables of the file's use line, without which operations are composed."""
    mpi = {mpi.name: mpi for mpi in find_mpis()}.get(name)
    require(name, mpi is not None, "this MPI is not installed")
    assert mpi is not None
    file = tmp_path / "selection.json"
    rules = [
        rule(each, f"vendor:algorithm={name}", None, None, PROCS)
        for each, name in MPICH_CHOSEN.items()
    ]
    file.write_text(export(table(BANNERS["mpich"].format(mpi.version), rules), "mpich"))
    cases = [(operation, LARGE) for operation in MPICH_CHOSEN]

    named = {f"MPIR_CVAR_{each.upper()}_INTRA_ALGORITHM": n for each, n in MPICH_CHOSEN.items()}
    settings = use(file)
    json_only = {key: value for key, value in settings.items() if "JSON" in key}
    with witness(mpi) as program:
        start = program.start((PROCS // 2, 2), nodes)
        default, tuned, alone, forced = (
            {each: _sent_bytes(words) for (each, _), (words,) in seen.items()}
            for seen in (
                program.see(CARDS, start, cases, environment)
                for environment in (
                    *({}, settings, json_only),
                    named | {"MPIR_CVAR_DEVICE_COLLECTIVES": "none"},
                )
            )
        )
    for each in MPICH_CHOSEN:
        plain = pytest.approx(default[each], abs=_noise(default[each]))
        chosen = pytest.approx(forced[each], abs=_noise(forced[each]))
        assert forced[each] != plain
        assert tuned[each] == chosen
        assert alone[each] == (plain if each in COMPOSED else chosen)


def _sent_bytes(words: Iterable[str]) -> list[int]:
    """Each node's card, of which its first rank tells."""
    cards = {int(rank): int(sent) for rank, sent in (word.split(":") for word in words)}
    return [cards[rank] for rank in range(0, PROCS, 2)]


def _noise(sent_bytes: list[int]) -> float:
    return TOLERANCE * max(sent_bytes)


def forced(algorithms: Mapping[str, str]) -> dict[str, str]:
    named = {f"OMPI_MCA_coll_tuned_{each}_algorithm": name for each, name in algorithms.items()}
    set_aside = {"OMPI_MCA_coll_han_priority": "0", "OMPI_MCA_coll_tuned_use_dynamic_rules": "1"}
    return named | set_aside


@pytest.mark.parametrize(
    ("ppn", "algorithms"),
    by_day([(ppn, CHOSEN) for ppn in LAYOUTS], [(ppn, OTHER) for ppn in LAYOUTS]),
)
def test_exported_rules_make_the_library_run_the_algorithms(
    mpi: Mpi, send: Callable[..., Sent], tmp_path: Path, ppn: int, algorithms: dict[str, str]
) -> None:
    rules = []
    for operation, name in algorithms.items():
        low = None if operation in WHOLE else FROM
        chosen = rule(operation, f"vendor:algorithm={name}", low, None, PROCS)
        rules += [rule(operation, "vendor", None, FROM - 1, PROCS)] * (low is not None) + [chosen]
    of = table(BANNERS["openmpi"].format(mpi.version, mpi.version), rules)
    environment = {}
    for form in ("openmpi", "han"):
        file = tmp_path / form
        file.write_text(export(of, form))
        environment |= use(file)
    default, alone, tuned = send(ppn, {}), send(ppn, forced(algorithms)), send(ppn, environment)
    for key in default:
        is_ruled = key[1] >= FROM or key[0] in WHOLE
        assert tuned[key] == (alone if is_ruled else default)[key], key
    assert all(
        default[key] != alone[key] for key in default if key[1] >= FROM if key[0] not in WHOLE
    )


@pytest.mark.parametrize("ppn", LAYOUTS)
def test_named_algorithms_run_before_components_of_higher_priority(
    mpi: Mpi,
    send: Callable[..., Sent],
    kernels_of: Callable[[str], Kernels],
    tmp_path: Path,
    ppn: int,
) -> None:
    """The preload calls the plans of a table's methods."""
    file = tmp_path / "named.table"
    rules = [f"rule op={each} method=vendor:algorithm={name}" for each, name in CHOSEN.items()]
    file.write_text("\n".join(["switchpoint-table 1", *rules, ""]))
    shim_library = shim(kernels_of(mpi.name).build)
    named = send(ppn, {"SWITCHPOINT_TABLE": str(file)}, str(shim_library))
    assert named == send(ppn, forced(CHOSEN))


def test_names_under_which_the_same_runs_are_not_raced(
    nodes: Nodes, mpi: Mpi, kernels_of: Callable[[str], Kernels], tmp_path: Path
) -> None:
    """A two-level algorithm, where ranks wait in different places from call to call."""
    kernels, out = kernels_of(mpi.name), tmp_path / "raw.jsonl"
    start = launch(nodes, mpi, PROCS, 2)
    command = [str(kernels.build / SWPBENCH), "run", "--op", "allreduce", "--pattern", "blocks"]
    command += ["--methods", "vendor", "--sizes", "16K", "--max-samples", "2", "--out", str(out)]
    before_all = {"OMPI_MCA_coll_han_priority": "100"}
    done = finish([*start.argv_prefix, *command], os.environ | start.env | before_all, TIMEOUT_S)
    assert done.returncode == 0, done.stderr[-2000:]
    records = [json.loads(line) for line in out.read_text().splitlines()]
    assert {record["method"] for record in records if record["record"] == "case"} == {"vendor"}
    assert all("not observed to change" in skip["reason"] for skip in records[-1]["skipped"])
