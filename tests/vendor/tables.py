"""Tables that choose MPI libraries' own algorithms, and the files made of them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from tests.decisions import PROVENANCE, on, point
from tuner.domain.tables import Rule, Table
from tuner.export.forms import export
from tuner.machine.mpi import Mpi

PROCS = 4
FIRST, SECOND = 1024, 16384  # bytes at which one algorithm becomes another, and that the first
ATTEMPTS = 4  # on a loaded machine ranks may not be seen at work

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
BANNERS = {
    "mpich": "MPICH Version:{}",
    "openmpi": "Open MPI v{}, package: Debian OpenMPI, ident: {}",
}
INTEL = "Intel(R) MPI Library {} for Linux* OS"
FILES = {"mpich": ("mpich", "ch4"), "openmpi": ("openmpi",)}


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


def table(mpi_library: str, rules: list[Rule]) -> Table:
    return Table(replace(PROVENANCE, mpi_library=mpi_library), rules, [])


def table_for(mpi: Mpi, rules: list[Rule]) -> Table:
    return table(BANNERS[mpi.family].format(mpi.version, mpi.version), rules)


def in_turn(operation: str, one: str, other: str) -> list[Rule]:
    """Return rules of one algorithm, another, and the first again."""
    first, second = f"vendor:algorithm={one}", f"vendor:algorithm={other}"
    return [
        rule(operation, first, None, FIRST - 1),
        rule(operation, second, FIRST, SECOND - 1),
        rule(operation, first, SECOND, None),
    ]


def table_of(mpi: Mpi) -> Table:
    """Return rules of every operation."""
    pairs = ALGORITHMS[mpi.family].items()
    return table_for(mpi, [line for operation, two in pairs for line in in_turn(operation, *two)])


def use(file: Path) -> dict[str, str]:
    """Return the environment that a file asks for."""
    asked = re.search(r"Use: (.*)", file.read_text())
    assert asked is not None
    settings = [word.partition("=") for word in asked.group(1).split()]
    return {name: value.replace("THIS_FILE", str(file)) for name, _, value in settings}


def loading(of: Table, forms: Iterable[str], directory: Path) -> dict[str, str]:
    """Return the environment in which a library loads the files of a table."""
    environment = {}
    for form in forms:
        file = directory / form
        file.write_text(export(of, form))
        environment |= use(file)
    return environment
