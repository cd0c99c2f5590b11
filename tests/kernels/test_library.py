"""The library against oracles, formulas and misuse: the programs of kernels/tests."""

import os
import re
import subprocess
import sys
from collections.abc import Iterable
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from tests.conftest import by_day
from tests.processes import TIMEOUT_S
from tuner.machine.mpi import available_cores, launch
from tuner.paths import CHECKOUT
from tuner.studies import bine

from .conftest import MPIS, Kernels, crowded, finish, in_turn, on_ranks
from .preloaded import CASES_PASSED, mpi_library, require_of_mpi, write_rules

TESTS = CHECKOUT / "kernels" / "tests"
VALGRIND = (
    "valgrind",
    "--quiet",
    "--error-exitcode=9",
    "--num-callers=60",
    "--keep-debuginfo=yes",
    "--leak-check=full",
    "--show-leak-kinds=definite,indirect",
    "--errors-for-leak-kinds=definite,indirect",
    f"--suppressions={TESTS / 'valgrind.supp'}",
)

BY_NODE = (
    *("exchange:shared", "exchange:nap", "exchange:nap:sharing=no"),
    *("exchange:nap:node=shared", "exchange:nap:sharing=no,node=shared"),
    *("discovery:nap", "discovery:nap:find=dense", "discovery:nap:find=put"),
    *(f"discovery:nap:{find}node=shared" for find in ("", "find=dense,", "find=put,")),
)

ORACLE_PROCS = [1, 2, 3, 4, 5, 6, 7, 8, 12, 16]

# By day under both: alone, a pair, powers of two. Others in turn. By night all to 17 under both.
FEW = [
    pytest.param(mpi, procs, marks=crowded(procs))
    for mpi, procs in (*product(MPIS, (1, 2, 4)), *in_turn([5, 6, 3, 7, 8]))
]
ON_FEW_RANKS = pytest.mark.parametrize(
    ("kernels", "procs"),
    by_day(FEW, [*product(MPIS, range(1, 18)), *in_turn([32, 24])]),
    indirect=["kernels"],
)

# Grids that no `dims=` chooses, beside the specs that the library itself proposes.
GRIDS = {
    1: ["1", "1x1"],
    5: ["2x3", "3x2", "5"],
    7: ["4x2", "2x4", "3x3"],
    8: ["2x4", "8x1"],
    12: ["2x6", "3x2x2", "5x3"],
    16: ["2x8", "3x3x2"],
}

_BY_RADIX = [
    *("gather:knomial:radix=3", "scatter:knomial:radix=3", "reduce:knomial:radix=3"),
    *("alltoall:bruck:radix=3", "allgatherv:bruck:radix=3", "allgather:bruck:radix=8"),
    *("allreduce:multiplying:radix=3", "allgather:multiplying:radix=3"),
    "alltoallv:bruck:radix=3",
]
BUTTERFLIES = ("allreduce", "allgather", "alltoall", "reduce_scatter_block")
# Those of a bine for a torus; and those that swp_collective_counts.c has.
_BINE_GRIDS = {4: ["2x2"], 8: ["2x4", "4x2", "2x2x2"], 16: ["4x4", "8x2", "2x2x4"]}
COUNTED_GRIDS = {8: ["2x4"], 16: ["4x4", "8x2"]}


def unproposed(procs: int) -> list[str]:
    """Return specs that the library does not propose.

    Grids are for a torus, radices many, and some methods the same as others on few ranks.
    """
    grids = product(BUTTERFLIES, _BINE_GRIDS.get(procs, []))
    few = (*bine.RIVALS, "scatter", "reduce") if procs <= 4 else ()
    return [
        *_BY_RADIX,
        *(f"{operation}:bine" for operation in few if operation != "alltoall" or procs != 3),
        *(f"{operation}:bine:grid={sizes}" for operation, sizes in grids),
    ]


def run(
    kernels: Kernels,
    program: str,
    procs: int,
    *arguments: str | Path,
    before: tuple[str, ...] = (),
    env: dict[str, str] | None = None,
    timeout_s: float = TIMEOUT_S,
) -> int:
    """Run a test program; return the number of cases that it says it passed."""
    return outcome(
        kernels, program, procs, *arguments, before=before, env=env, timeout_s=timeout_s
    )[0]


def outcome(
    kernels: Kernels,
    program: str,
    procs: int,
    *arguments: str | Path,
    before: tuple[str, ...] = (),
    env: dict[str, str] | None = None,
    timeout_s: float = TIMEOUT_S,
) -> tuple[int, str]:
    """Run a test program; return the number of cases that it says it passed, and all it prints.

    A failure or hang fails the test with the program's words. `before` goes between launcher and
    program. The time is for what cannot name the case in which it hangs, as the programs do.
    """
    start = launch(kernels.mpi, procs, build=kernels.build)
    command = [*start.argv_prefix, *before, kernels.build / "tests" / program, *arguments]
    environment = os.environ | start.env | (env or {})
    try:
        done = finish([str(part) for part in command], environment, timeout_s, subprocess.STDOUT)
    except subprocess.TimeoutExpired as expired:
        pytest.fail(f"{expired}\n{expired.output}", pytrace=False)
    output = done.stdout
    match = CASES_PASSED.search(output)
    if done.returncode != 0 or match is None:
        lines = sorted(output.splitlines(), key=lambda line: not line.startswith(f"{program}:"))
        words = "\n".join(lines[:40])
        pytest.fail(f"{program}, {procs} ranks, {kernels.mpi}:\n{words}", pytrace=False)
    return int(match.group(1)), output


@ON_FEW_RANKS
def test_every_method_delivers_what_the_oracle_says(kernels: Kernels, procs: int) -> None:
    kinds = ("exchange", "discovery")
    grids = [f"{kind}:stfw:grid={sizes}" for kind in kinds for sizes in GRIDS.get(procs, [])]
    brief = ["--brief"] if procs > max(ORACLE_PROCS) else []
    assert run(kernels, "swp_oracle", procs, *brief, *grids) > 100


@pytest.mark.parametrize(
    ("program", "procs"),
    by_day([("swp_oracle", 2)], product(["swp_oracle", "swp_collectives"], [2, 3, 4])),
)
def test_every_method_works_under_every_library(
    library_kernels: Kernels, program: str, procs: int
) -> None:
    intel = library_kernels.mpi.family == "intelmpi"
    if program == "swp_collectives" and intel and procs > 2:
        pytest.skip("its own reduce and allgather fail with derived types on three ranks and more")
    assert run(library_kernels, program, procs, "--brief") > 60


def test_ctest_starts_more_ranks_than_cores(library_kernels: Kernels) -> None:
    """By the launcher of their MPI, whatever lies on the path."""
    known = (library_kernels.build / "CMakeCache.txt").read_text()
    assert f"MPIEXEC_EXECUTABLE:FILEPATH={library_kernels.mpi.mpiexec}\n" in known
    as_root = dict.fromkeys(("OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"), "1")
    command = ["ctest", "--test-dir", library_kernels.build, "-R", "^swp_slots_4$"]
    done = subprocess.run(command, env=os.environ | as_root, capture_output=True, text=True)
    assert "100% tests passed, 0 tests failed out of 1" in done.stdout, done.stdout


@on_ranks([1], ORACLE_PROCS[1:])
def test_every_method_delivers_in_long_runs(kernels: Kernels, procs: int) -> None:
    assert run(kernels, "swp_oracle", procs, "--long") > 100


@ON_FEW_RANKS
def test_every_collective_method_does_what_mpi_does(kernels: Kernels, procs: int) -> None:
    brief = ["--brief"] if procs > max(ORACLE_PROCS) else []
    more = unproposed(procs)
    assert run(kernels, "swp_collectives", procs, *brief, *more) > (60 if brief else 100)


@on_ranks([1], range(2, 17))
def test_every_variant_of_collective_methods_does_what_mpi_does(
    kernels: Kernels, procs: int
) -> None:
    assert run(kernels, "swp_collectives", procs, "--all") > 300


@on_ranks([1, 2, 3, 4])
def test_what_no_collective_is_planned_for_is_refused(kernels: Kernels, procs: int) -> None:
    assert run(kernels, "swp_refusals", procs) == 6


def on_layouts(
    both: list[str], in_turns: list[str], night: Iterable[str] = ()
) -> pytest.MarkDecorator:
    """Give a test its `kernels` and `layout`: some under both MPIs, others in turn by day."""
    day = [
        pytest.param(mpi, layout, marks=crowded(int(layout.split()[0])))
        for mpi, layout in (*product(MPIS, both), *in_turn(in_turns))
    ]
    every = [*product(MPIS, in_turns), *in_turn(night)]
    return pytest.mark.parametrize(("kernels", "layout"), by_day(day, every), indirect=["kernels"])


@on_layouts(["5 --ppn 2", "7 --ppn 3 --cyclic"], ["8 --ppn 4", "12 --ppn 5"])
def test_every_collective_method_does_it_on_virtual_nodes(kernels: Kernels, layout: str) -> None:
    procs, *nodes = layout.split()
    assert run(kernels, "swp_collectives", int(procs), "--brief", *nodes) > 60


@on_layouts(
    ["4 --ppn 2"],
    ["6 --ppn 3 --cyclic", "8 --ppn 4", "9 --ppn 3 --cyclic"],
    (
        f"{procs} --ppn {ppn}{placement}"
        for procs, ppn, placement in product(range(1, 18), (2, 3, 4), ("", " --cyclic"))
        if procs % ppn == 0 and procs > ppn
    ),
)
def test_methods_for_even_nodes_do_what_mpi_does(kernels: Kernels, layout: str) -> None:
    procs, *nodes = layout.split()
    leaders = [k for k in (1, 2, 3, 4) if int(nodes[1]) % k == 0]
    operations = ("bcast", "allreduce", "allgather", "alltoall")
    kinds = [f"{node}leaders={k}" for node, k in product(("", "node=shared,"), leaders)]
    named = [f"{each}:twolevel:{kind}" for each, kind in product(operations, kinds)]
    named.append("allgather:bruck:levels=2")
    named += (f"alltoallv:bruck:radix={k},global={k}" for k in (2, 3))
    assert run(kernels, "swp_collectives", int(procs), *nodes, "--only", *named) == len(named)


@on_layouts(
    ["5 --ppn 2 --cyclic"],
    ["5 --ppn 4", "7 --scatter 3", "5 --ppn 1", "5 --ppn 3"],
    (
        f"{procs} --ppn {ppn}{placement}"
        for procs, ppn, placement in product(ORACLE_PROCS, (1, 2, 3, 4), ("", " --cyclic"))
    ),
)
def test_every_method_delivers_on_virtual_nodes(kernels: Kernels, layout: str) -> None:
    procs, *nodes = layout.split()
    more = "discovery:nap:barrier=dissemination"
    assert run(kernels, "swp_oracle", int(procs), "--brief", *nodes, more) > 100


@on_layouts(
    ["3 --ppn 2", "7 --ppn 3 --cyclic"],
    ["2 --ppn 1", "4 --ppn 2 --cyclic", "8 --ppn 3", "12 --ppn 1", "12 --scatter 4", "16 --ppn 4"],
)
def test_methods_that_know_nodes_deliver(kernels: Kernels, layout: str) -> None:
    procs, *nodes = layout.split()
    assert run(kernels, "swp_oracle", int(procs), "--brief", *nodes, "--only", *BY_NODE) > 50


@on_ranks([1, 2, 4, 6, 8, 12, 16])
def test_executions_send_copy_and_allocate_what_the_plan_says(kernels: Kernels, procs: int) -> None:
    assert run(kernels, "swp_counts", procs) > 10


@on_ranks([1, 4, 5, 6, 8, 12, 16])
def test_collectives_on_grids_and_nodes_have_the_papers_phases(
    kernels: Kernels, procs: int
) -> None:
    assert run(kernels, "swp_phases", procs) > 10


@on_ranks([1, 2, 3, 5, 6, 8, 13, 16])
def test_collectives_send_what_the_papers_say(kernels: Kernels, procs: int) -> None:
    """And each rank sends each other what the study counts."""
    cases, output = outcome(kernels, "swp_collective_counts", procs)
    assert cases > 60
    if procs not in (8, 16):
        return
    printed = re.findall(r"^(\w+) (\S+) (\d+): (.+)$", output, re.MULTILINE)
    known = [(operation, "bine") for operation in (*bine.RIVALS, "scatter", "reduce")]
    known += ((operation, rival) for operation, rival in bine.RIVALS.items() if rival != "binomial")
    known += product(BUTTERFLIES, (f"bine:grid={sizes}" for sizes in COUNTED_GRIDS[procs]))
    sent = [each for each in printed if each[:2] in known]
    roots = {"bcast": 3, "gather": 3, "scatter": 3, "reduce": 3}
    assert len(sent) == sum(roots.get(operation, 1) for operation, _ in known)
    for operation, method, root, vectors in sent:
        name, _, sizes = method.partition(":grid=")
        grid = [int(size) for size in sizes.split("x") if size]
        expected = np.zeros((procs, procs))
        for sources, destinations, amounts in bine.stages(operation, name, procs, int(root), grid):
            np.add.at(expected, (sources, destinations), amounts)
        assert vectors.split() == [f"{each:g}" for each in expected.flat], (operation, method, root)


@on_ranks([1, 2, 3, 4, 6, 8, 12])
def test_exchange_by_node_follows_the_papers_rules(kernels: Kernels, procs: int) -> None:
    assert run(kernels, "swp_nap", procs) > (220 if procs != 6 else 230)


@on_ranks([3, 4, 5, 8])
def test_messages_on_a_node_go_by_its_memory(kernels: Kernels, procs: int) -> None:
    # A kernel that copies long messages would hide that a waiting rank does not progress them.
    env = {"OMPI_MCA_btl_vader_single_copy_mechanism": "none", "OMPI_MCA_smsc": "^cma,xpmem,knem"}
    assert run(kernels, "swp_slots", procs, env=env) > (11 if procs > 3 else 8)


@pytest.mark.parametrize(
    "kernels", by_day([pytest.param("openmpi", marks=crowded(64))], MPIS), indirect=True
)
def test_figure_4_of_the_stfw_paper_on_its_64_ranks(kernels: Kernels) -> None:
    assert run(kernels, "swp_counts", 64) > 1


@on_ranks([1, 2, 3, 4])
def test_a_failure_of_one_rank_is_an_error_of_all(kernels: Kernels, procs: int) -> None:
    assert run(kernels, "swp_failures", procs) > 100


@on_ranks([1, 2, 3, 4])
def test_fields_are_one_exchange(kernels: Kernels, procs: int) -> None:
    assert run(kernels, "swp_fields", procs) > 30


@on_ranks([1, 2, 3, 4])
def test_what_fails_below_the_library_is_an_error(kernels: Kernels, procs: int) -> None:
    assert run(kernels, "swp_faults", procs) > 10


@on_ranks([1, 2, 3, 4])
def test_all_ranks_know_that_the_nodes_memory_cannot_be_had(kernels: Kernels, procs: int) -> None:
    assert run(kernels, "swp_node_memory", procs) > 100


@on_ranks([1, 2, 3, 4])
def test_nobody_waits_for_a_rank_without_memory(kernels: Kernels, procs: int) -> None:
    assert run(kernels, "swp_no_memory", procs) > 100


@on_ranks([1, 2, 3, 4])
def test_what_a_method_planned_is_freed_once(kernels: Kernels, procs: int) -> None:
    assert run(kernels, "swp_free", procs) > 10


@pytest.mark.parametrize("procs", [1, 2, 4])
def test_two_threads_plan_and_execute_at_once(kernels: Kernels, procs: int) -> None:
    assert run(kernels, "swp_threads", procs) > 90


def test_no_order_of_ranks_breaks_the_protocol_of_boards(any_kernels: Kernels) -> None:
    assert run(any_kernels, "swp_boards", 1) == 39


def test_files_are_replaced_whole(any_kernels: Kernels) -> None:
    assert run(any_kernels, "swp_replace", 1) == 11


@pytest.mark.parametrize("procs", [1, 2, 4])
def test_tables_choose_the_method_and_broken_ones_are_refused(kernels: Kernels, procs: int) -> None:
    assert run(kernels, "swp_tables", procs, TESTS / "tables" / "broken") > 60


@pytest.mark.parametrize("procs", [1, 2, 4])
def test_selectors_find_the_method_and_plans_go_by_it(kernels: Kernels, procs: int) -> None:
    assert run(kernels, "swp_selector", procs) == 7 + 2 * (procs > 1)


@on_ranks([2, 3])
def test_measured_plans_choose_the_fastest_method_and_remember_it(
    kernels: Kernels, procs: int
) -> None:
    assert run(kernels, "swp_measure", procs) > 15


@on_ranks([1, 2, 5])
def test_clocks_of_machines_are_synchronised_as_well_as_they_say(
    kernels: Kernels, procs: int
) -> None:
    assert run(kernels, "swp_clocks", procs) > 5


def test_sizes_share_a_budget_by_the_time_of_their_rounds(kernels: Kernels) -> None:
    assert run(kernels, "swp_budget", 1) == 7


def test_every_wrong_byte_of_a_payload_is_found_and_named(kernels: Kernels) -> None:
    assert run(kernels, "swp_verify", 1) > 50


def test_plans_on_one_communicator_share_what_they_divide_it_into(kernels: Kernels) -> None:
    assert run(kernels, "swp_parts", 8) == 5


def test_sessions_plan_what_needs_no_world(kernels: Kernels, require, tmp_path) -> None:
    require_of_mpi("sessions", kernels, require)
    table = write_rules(tmp_path, "op=exchange method=neighbor", "op=allreduce method=hypercube")
    environment = {"SWITCHPOINT_TABLE": str(table)}
    done = kernels.run("tests/swp_sessions", ["--library"], 2, environment)
    assert done.returncode == 0 and "all right" in done.stdout, done.stdout + done.stderr
    reducing = "vendor" if kernels.mpi.family == "openmpi" else "hypercube"
    assert f"exchange by neighbor, allreduce by {reducing}" in done.stdout


def test_a_plug_in_is_closed_before_its_communicators_end(kernels: Kernels) -> None:
    plug_in = kernels.build / "tests" / "libswp_plug_in.so"
    assert run(kernels, "swp_unloaded", 2, plug_in) == 1


def test_process_grids_follow_the_papers_formulas(kernels: Kernels) -> None:
    assert run(kernels, "swp_grid", 1) > 10


def test_messages_over_two_gib_get_the_right_types(kernels: Kernels) -> None:
    assert run(kernels, "swp_transfer", 1) > 5


def test_a_name_of_the_environment_is_its_variables_and_no_others(kernels: Kernels) -> None:
    cases = run(kernels, "swp_environment", 1)
    assert cases == (16 if kernels.mpi.family == "openmpi" else 1)


def test_public_header_and_error_reference_agree(kernels: Kernels) -> None:
    page = CHECKOUT / "docs" / "reference" / "errors.md"
    assert run(kernels, "swp_header", 1, page) > 8


def test_public_header_compiles_as_cxx(kernels: Kernels, require) -> None:
    program = kernels.build / "tests" / "header_cxx"
    require("c++", program.exists(), "no C++ compiler on the path that finds mpi.h")
    subprocess.run([program], check=True)


def test_public_header_compiles_alone_and_pedantic(kernels: Kernels, tmp_path) -> None:
    source = tmp_path / "alone.c"
    source.write_text('#include "switchpoint.h"\nint main(void) { return swp_version() == 0; }\n')
    flags = ["-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
    include = f"-I{CHECKOUT / 'kernels' / 'include'}"
    subprocess.run(
        [kernels.mpi.mpicc, *flags, include, "-c", source, "-o", "/dev/null"], check=True
    )


def test_a_static_link_takes_no_name_that_an_application_may_have(any_kernels: Kernels) -> None:
    library = any_kernels.build / "libswitchpoint.a"
    listing = subprocess.run(
        ["nm", "--extern-only", "--defined-only", library],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    names = [line.split()[2] for line in listing.splitlines() if len(line.split()) == 3]
    assert "swp_exchange_plan" in names
    assert [name for name in names if not name.startswith("swp_")] == []


def test_the_yield_preload_stands_before_ucx(kernels_of, require) -> None:
    kernels = kernels_of("mpich")
    procs = available_cores() + 1
    setting = launch(kernels.mpi, procs, build=kernels.build).yield_setting
    require("mpich4", "LD_PRELOAD" in setting, f"{kernels.mpi.version} yields without a preload")
    bindings = kernels.run("tests/swp_header", [], procs, env={"LD_DEBUG": "bindings"}).stderr
    assert re.search(r"libmpich\S+ \[0\] to \S*libswp_yield.so .*ucp_worker_progress", bindings)


def test_the_yield_preload_finds_ucx_in_an_interpreter(kernels_of, require) -> None:
    kernels = kernels_of("mpich")
    procs = available_cores() + 1
    setting = launch(kernels.mpi, procs, build=kernels.build).yield_setting
    require("mpich4", "LD_PRELOAD" in setting, f"{kernels.mpi.version} yields without a preload")
    calls = "mpi.MPI_Init(None, None), mpi.MPI_Barrier(0x44000000), mpi.MPI_Finalize()"
    program = f"import ctypes; mpi = ctypes.CDLL({str(mpi_library(kernels))!r}); print({calls})"
    done = kernels.run(sys.executable, ["-c", program], procs)
    assert done.returncode == 0 and done.stdout.count("0 0 0") == procs, done.stderr
